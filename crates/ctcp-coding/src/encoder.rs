//! The sender's window of source symbols, and combinations of them.
//!
//! ```text
//!              first()                        next_index()
//!                 |                               |
//!   released ...  [  s  s  s  s  s  s  s  s  s  s )  not yet pushed
//!                        \______________/
//!                 combine(range, coefficients, out)
//! ```
//!
//! A symbol never changes once pushed. Its slot is reused after its release, so nothing is allocated once the window
//! has been full. Until then, memory grows with the number of symbols held.

use crate::slots::{Slot, SlotPool, round_up_to_line, trimmed_length};
use crate::sweep::{self, OUTPUTS};
use crate::symbol_range::SymbolRange;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;

/// Source symbols from the oldest one that may still be needed to the newest.
#[derive(Debug)]
pub struct Encoder {
    symbols: VecDeque<Slot>,
    first: u64,
    pool: SlotPool,
    symbol_size_max: usize,
    window: usize,
}

/// The reason why a symbol was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushError {
    /// The window is full: release symbols first.
    WindowFull,
    /// The contents exceed the size of a symbol.
    TooLong,
}

/// The reason why a combination was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CombineError {
    /// The range reaches outside `[first, next_index)`.
    OutsideWindow,
    /// The number of coefficients differs from the length of the range.
    CoefficientCount,
}

/// Free slots kept when the window is empty, so that neither small messages nor a fast transfer over a short path allocate.
pub(crate) const SLOTS_KEPT: usize = 256;

impl Encoder {
    /// Returns the bytes of memory used by symbols, including slots kept for reuse.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.pool.memory()
    }

    /// Creates an empty window for `window` symbols of up to `symbol_size_max` bytes. The first symbol has index 0.
    #[must_use]
    pub fn new(symbol_size_max: usize, window: usize) -> Self {
        Self {
            symbols: VecDeque::new(),
            first: 0,
            pool: SlotPool::new(symbol_size_max),
            symbol_size_max,
            window,
        }
    }

    /// Appends a symbol and returns its index. Contents shorter than the maximum count as zero padded in combinations.
    pub fn push(&mut self, contents: &[u8]) -> Result<u64, PushError> {
        if contents.len() > self.symbol_size_max {
            return Err(PushError::TooLong);
        }
        if self.is_full() {
            return Err(PushError::WindowFull);
        }
        let index = self.next_index();
        let mut slot = self.pool.take();
        slot.write(contents);
        self.symbols.push_back(slot);
        Ok(index)
    }

    /// Returns the contents of a symbol in the window, with the length that was pushed.
    #[must_use]
    pub fn symbol(&self, index: u64) -> Option<&[u8]> {
        let position = usize::try_from(index.checked_sub(self.first)?).ok()?;
        let slot = self.symbols.get(position)?;
        Some(&slot.padded()[..slot.used()])
    }

    /// Writes `sum_i coefficients[i] * symbol(range.first + i)` into `out`, replacing its contents.
    ///
    /// The combination is as long as the longest symbol of the range, less its trailing zeros, which the receiver
    /// restores. It may be empty.
    ///
    /// Requirement: C2
    pub fn combine(
        &self,
        range: SymbolRange,
        coefficients: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), CombineError> {
        let mut combination = [(coefficients, core::mem::take(out))];
        let result = self.combine_many(range, &mut combination);
        let [(_, written)] = combination;
        *out = written;
        result
    }

    /// Writes several combinations of one range. Each pair is a row of coefficients and the output, as in
    /// [`Encoder::combine`].
    ///
    /// Four combinations at once cost little more than two separate ones, since every symbol is read only once. Nothing
    /// is written if an error is returned.
    pub fn combine_many(
        &self,
        range: SymbolRange,
        combinations: &mut [(&[u8], Vec<u8>)],
    ) -> Result<(), CombineError> {
        if range.first() < self.first || range.end() > self.next_index() {
            return Err(CombineError::OutsideWindow);
        }
        let count = usize::from(range.length());
        if combinations.iter().any(|(coefficients, _)| coefficients.len() != count) {
            return Err(CombineError::CoefficientCount);
        }
        let skip = (range.first() - self.first) as usize;
        let slots = || self.symbols.range(skip..skip + count);
        let length = round_up_to_line(slots().map(Slot::used).max().unwrap_or(0));
        for group in combinations.chunks_mut(OUTPUTS) {
            let mut rows: [&[u8]; OUTPUTS] = [&[]; OUTPUTS];
            let mut outs: [&mut [u8]; OUTPUTS] = Default::default();
            let filled = group.len();
            for ((row, out), (coefficients, written)) in rows.iter_mut().zip(&mut outs).zip(&mut *group) {
                written.resize(length, 0);
                (*row, *out) = (coefficients, written);
            }
            sweep::combine(&mut outs[..filled], &rows[..filled], slots().map(Slot::padded));
            for (_, written) in group {
                written.truncate(trimmed_length(written));
            }
        }
        Ok(())
    }

    /// Drops the symbols below `index`, at most all of them. A smaller index than before has no effect.
    pub fn release_before(&mut self, index: u64) {
        while self.first < index {
            let Some(slot) = self.symbols.pop_front() else { break };
            self.pool.give_back(slot);
            self.first += 1;
        }
        if self.symbols.is_empty() {
            self.pool.trim(SLOTS_KEPT);
        }
    }

    /// Frees the memory of released symbols. Call it when a connection becomes idle.
    pub fn shrink(&mut self) {
        self.pool.shrink();
        self.symbols.shrink_to_fit();
    }

    /// Returns the index of the oldest symbol held, or of the next one pushed if the window is empty.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Returns the index of the next symbol pushed.
    #[must_use]
    pub fn next_index(&self) -> u64 {
        self.first + self.symbols.len() as u64
    }

    /// Returns the number of symbols held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.symbols.len()
    }

    /// Returns whether no symbol is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// Returns whether the window is full, so that a symbol must be released before the next one is pushed.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.symbols.len() >= self.window
    }

    /// Returns the maximum size of a symbol in bytes.
    #[must_use]
    pub fn symbol_size_max(&self) -> usize {
        self.symbol_size_max
    }

    /// Returns the maximum number of symbols held.
    #[must_use]
    pub fn window(&self) -> usize {
        self.window
    }
}

impl fmt::Display for PushError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::WindowFull => "the window is full",
            Self::TooLong => "the contents are longer than a symbol may be",
        })
    }
}

impl fmt::Display for CombineError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::OutsideWindow => "the range reaches outside the window",
            Self::CoefficientCount => "the number of coefficients is not the length of the range",
        })
    }
}

impl core::error::Error for PushError {}
impl core::error::Error for CombineError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gf256::element;
    use crate::test_random::TestRandom;
    use std::vec;

    #[test]
    fn a_combination_is_the_sum_of_padded_symbols_without_trailing_zeros() {
        let mut random = TestRandom::new(4);
        let mut encoder = Encoder::new(200, 100);
        for _ in 0..100 {
            let length = random.below(201) as usize;
            encoder.push(&random.bytes(length)).unwrap();
        }
        let mut out = vec![1; 7];
        // Miri would take minutes for 200.
        for _ in 0..if cfg!(miri) { 2 } else { 200 } {
            let first = random.below(100);
            let length = (1 + random.below(100 - first)) as u16;
            let range = SymbolRange::new(first, length).unwrap();
            let coefficients = random.bytes(usize::from(length));
            encoder.combine(range, &coefficients, &mut out).unwrap();
            let mut expected = vec![0u8; 200];
            for (index, &coefficient) in range.indexes().zip(&coefficients) {
                for (position, &byte) in encoder.symbol(index).unwrap().iter().enumerate() {
                    expected[position] ^= element::mul(coefficient, byte);
                }
            }
            assert_eq!(out, expected[..trimmed_length(&expected)]);
        }
    }

    #[test]
    fn combining_many_equals_combining_one_by_one() {
        let mut random = TestRandom::new(5);
        let mut encoder = Encoder::new(130, 40);
        for _ in 0..40 {
            let length = random.below(131) as usize;
            encoder.push(&random.bytes(length)).unwrap();
        }
        // Miri would take minutes for the full numbers.
        let (length, most) = if cfg!(miri) { (3, 5) } else { (37, 9) };
        let range = SymbolRange::new(2, length).unwrap();
        let length = usize::from(length);
        for count in 0..=most {
            let rows: Vec<Vec<u8>> = (0..count).map(|_| random.bytes(length)).collect();
            let mut combinations: Vec<(&[u8], Vec<u8>)> =
                rows.iter().map(|row| (row.as_slice(), vec![7; 3])).collect();
            encoder.combine_many(range, &mut combinations).unwrap();
            for (row, written) in &combinations {
                let mut alone = Vec::new();
                encoder.combine(range, row, &mut alone).unwrap();
                assert_eq!(written, &alone);
            }
        }
        let row = vec![1; length];
        let mut wrong = [(&row[..], vec![1]), (&row[1..], vec![2])];
        assert_eq!(encoder.combine_many(range, &mut wrong), Err(CombineError::CoefficientCount));
        assert_eq!((&wrong[0].1, &wrong[1].1), (&vec![1], &vec![2]));
    }

    #[test]
    fn the_window_fills_releases_and_keeps_its_indexes() {
        let mut encoder = Encoder::new(4, 3);
        for index in 0..3 {
            assert_eq!(encoder.push(&[index as u8]), Ok(index));
        }
        assert!(encoder.is_full());
        assert_eq!(encoder.push(&[0]), Err(PushError::WindowFull));
        encoder.release_before(2);
        assert_eq!((encoder.first(), encoder.next_index(), encoder.len()), (2, 3, 1));
        assert_eq!(encoder.symbol(1), None);
        assert_eq!(encoder.symbol(2), Some(&[2][..]));
        encoder.release_before(1);
        assert_eq!(encoder.first(), 2);
        encoder.release_before(u64::MAX);
        assert_eq!((encoder.first(), encoder.is_empty()), (3, true));
        assert_eq!(encoder.push(&[1, 2, 3, 4, 5]), Err(PushError::TooLong));
        assert_eq!(encoder.push(&[]), Ok(3));
        assert_eq!(encoder.symbol(3), Some(&[][..]));
    }

    #[test]
    fn a_range_outside_the_window_and_a_wrong_count_are_refused() {
        let mut encoder = Encoder::new(4, 8);
        for _ in 0..4 {
            encoder.push(&[1]).unwrap();
        }
        encoder.release_before(1);
        let mut out = Vec::new();
        let mut combine = |first, length, count: usize| {
            encoder.combine(SymbolRange::new(first, length).unwrap(), &vec![1; count], &mut out)
        };
        assert_eq!(combine(0, 2, 2), Err(CombineError::OutsideWindow));
        assert_eq!(combine(2, 3, 3), Err(CombineError::OutsideWindow));
        assert_eq!(combine(1, 3, 2), Err(CombineError::CoefficientCount));
        assert_eq!(combine(1, 3, 3), Ok(()));
    }
}
