//! Linear combinations of slots, any number of them, without allocating.
//!
//! The kernels take slices of slices. Building those on the heap for each packet would cost an
//! allocation; here they are built on the stack, [`BATCH`] sources at a time.

use crate::gf256::Engine;
use crate::slots::Slot;

/// Sources of one kernel call. The outputs pass through memory once a batch, so 32 keeps that
/// traffic at a few percent, while the stack arrays stay small.
const BATCH: usize = 32;

/// Most outputs computed together: the kernels' widest sweep.
pub(crate) const OUTPUTS: usize = 4;

/// Collects sources with one coefficient an output and adds them up batch by batch.
pub(crate) struct Sweep<'outs, 'sources, 'bytes> {
    engine: Engine,
    outs: &'outs mut [&'bytes mut [u8]],
    rows: [[u8; BATCH]; OUTPUTS],
    sources: [&'sources [u8]; BATCH],
    count: usize,
    is_first_batch: bool,
}

impl<'outs, 'sources, 'bytes> Sweep<'outs, 'sources, 'bytes> {
    /// A sweep into `outs` (1 to [`OUTPUTS`], of equal length), whose old contents do not count.
    pub(crate) fn new(outs: &'outs mut [&'bytes mut [u8]]) -> Self {
        debug_assert!(!outs.is_empty() && outs.len() <= OUTPUTS, "a sweep has 1 to OUTPUTS outputs");
        Self {
            engine: Engine::current(),
            outs,
            rows: [[0; BATCH]; OUTPUTS],
            sources: [&[]; BATCH],
            count: 0,
            is_first_batch: true,
        }
    }

    /// Adds `source`, `coefficients[r]` times into output `r`.
    pub(crate) fn add(&mut self, source: &'sources Slot, coefficients: [u8; OUTPUTS]) {
        if coefficients == [0; OUTPUTS] {
            return;
        }
        if self.count == BATCH {
            self.flush();
        }
        for (row, coefficient) in self.rows.iter_mut().zip(coefficients) {
            row[self.count] = coefficient;
        }
        self.sources[self.count] = source.padded();
        self.count += 1;
    }

    /// Completes the outputs.
    pub(crate) fn finish(mut self) {
        self.flush();
    }

    fn flush(&mut self) {
        let count = self.count;
        let rows = self.rows.each_ref().map(|row| &row[..count]);
        let rows = &rows[..self.outs.len()];
        let sources = &self.sources[..count];
        if self.is_first_batch {
            self.engine.combine_rows(self.outs, rows, sources);
        } else {
            self.engine.combine_rows_add(self.outs, rows, sources);
        }
        self.is_first_batch = false;
        self.count = 0;
    }
}
