//! Linear combinations of any number of sources, without allocating.
//!
//! The kernels take slices of slices. Building these on the heap would cost an allocation per packet, so they are built
//! on the stack, [`BATCH`] sources at a time.

use crate::gf256::Engine;
use crate::slots::Slot;

/// Sources per kernel call. The outputs are read and written once per batch, which is a few percent of all memory
/// traffic.
pub(crate) const BATCH: usize = 64;

/// The maximum number of outputs computed together, which is the kernels' widest sweep.
pub(crate) const OUTPUTS: usize = 4;

/// Computes `outs[r] = sum_j rows[r][j] * source j` for at most [`OUTPUTS`] outputs of equal length. No source may be
/// shorter.
pub(crate) fn combine<'s>(outs: &mut [&mut [u8]], rows: &[&[u8]], sources: impl Iterator<Item = &'s [u8]>) {
    let mut batch: [&[u8]; BATCH] = [&[]; BATCH];
    let (mut start, mut filled) = (0, 0);
    for source in sources {
        if filled == BATCH {
            combine_batch(outs, rows, start, &batch);
            (start, filled) = (start + BATCH, 0);
        }
        batch[filled] = source;
        filled += 1;
    }
    combine_batch(outs, rows, start, &batch[..filled]);
}

/// Computes `outs[r] (^)= sum_j rows[r][start + j] * sources[j]`. The batch that starts at 0 replaces, later ones add.
pub(crate) fn combine_batch(outs: &mut [&mut [u8]], rows: &[&[u8]], start: usize, sources: &[&[u8]]) {
    let mut parts: [&[u8]; OUTPUTS] = [&[]; OUTPUTS];
    for (part, row) in parts.iter_mut().zip(rows) {
        *part = &row[start..start + sources.len()];
    }
    let parts = &parts[..rows.len()];
    let engine = Engine::current();
    if start == 0 {
        engine.combine_rows(outs, parts, sources);
    } else {
        engine.combine_rows_add(outs, parts, sources);
    }
}

/// Computes `out = sum of factor * slot`.
pub(crate) fn sum_into<'a>(out: &mut [u8], terms: impl Iterator<Item = (&'a Slot, u8)>) {
    let engine = Engine::current();
    let (mut factors, mut sources) = ([0; BATCH], [&[][..]; BATCH]);
    let (mut filled, mut is_first) = (0, true);
    for (slot, factor) in terms {
        if filled == BATCH {
            let combine = if is_first { Engine::combine } else { Engine::combine_add };
            combine(engine, out, &factors, &sources);
            (filled, is_first) = (0, false);
        }
        (sources[filled], factors[filled]) = (slot.padded(), factor);
        filled += 1;
    }
    let combine = if is_first { Engine::combine } else { Engine::combine_add };
    combine(engine, out, &factors[..filled], &sources[..filled]);
}
