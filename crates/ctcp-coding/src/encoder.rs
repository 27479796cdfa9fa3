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
//! A symbol never changes once pushed. Its slot is used again after its release, so that nothing is
//! allocated once the window has been full; before that, memory grows with the symbols held.

use crate::slots::{Slot, SlotPool, round_up_to_line, trimmed_length};
use crate::sweep::{OUTPUTS, Sweep};
use crate::symbol_range::SymbolRange;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;

/// Source symbols between the oldest one that may still be needed and the newest.
#[derive(Debug)]
pub struct Encoder {
    symbols: VecDeque<Slot>,
    first: u64,
    pool: SlotPool,
    symbol_size_max: usize,
    window: usize,
}

/// Why a symbol was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushError {
    /// The window holds as many symbols as it may: release some first.
    WindowFull,
    /// The contents are longer than a symbol may be.
    TooLong,
}

/// Why a combination was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CombineError {
    /// The range reaches outside `[first, next_index)`.
    OutsideWindow,
    /// The number of coefficients is not the length of the range.
    CoefficientCount,
}

impl Encoder {
    /// An empty window for `window` symbols of up to `symbol_size_max` bytes, the first of index 0.
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

    /// Appends a symbol and returns its index. Contents may be shorter than the maximum: in
    /// combinations they count as if padded with zeros.
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

    /// The contents of a symbol in the window, as long as they were pushed.
    #[must_use]
    pub fn symbol(&self, index: u64) -> Option<&[u8]> {
        let position = usize::try_from(index.checked_sub(self.first)?).ok()?;
        let slot = self.symbols.get(position)?;
        Some(&slot.padded()[..slot.used()])
    }

    /// Writes `sum_i coefficients[i] * symbol(range.first + i)` into `out`, replacing its contents.
    ///
    /// The combination is as long as the longest symbol of the range, less the zeros at its end,
    /// which the receiver restores. It may be empty.
    ///
    /// Requirement: C2
    pub fn combine(
        &self,
        range: SymbolRange,
        coefficients: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), CombineError> {
        if range.first() < self.first || range.end() > self.next_index() {
            return Err(CombineError::OutsideWindow);
        }
        if coefficients.len() != usize::from(range.length()) {
            return Err(CombineError::CoefficientCount);
        }
        let skip = (range.first() - self.first) as usize;
        let slots = || self.symbols.range(skip..skip + coefficients.len());
        let length = slots().map(Slot::used).max().unwrap_or(0);
        out.resize(round_up_to_line(length), 0);
        let mut outs = [out.as_mut_slice()];
        let mut sweep = Sweep::new(&mut outs);
        for (slot, &coefficient) in slots().zip(coefficients) {
            let mut column = [0; OUTPUTS];
            column[0] = coefficient;
            sweep.add(slot, column);
        }
        sweep.finish();
        out.truncate(trimmed_length(out));
        Ok(())
    }

    /// Forgets the symbols below `index` (at most all of them; never takes back an earlier release).
    pub fn release_before(&mut self, index: u64) {
        while self.first < index {
            let Some(slot) = self.symbols.pop_front() else { break };
            self.pool.give_back(slot);
            self.first += 1;
        }
    }

    /// Gives the memory of released symbols back. For a connection that has become idle.
    pub fn shrink(&mut self) {
        self.pool.shrink();
        self.symbols.shrink_to_fit();
    }

    /// Index of the oldest symbol held, or of the next one pushed when none is.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Index of the next symbol pushed.
    #[must_use]
    pub fn next_index(&self) -> u64 {
        self.first + self.symbols.len() as u64
    }

    /// Number of symbols held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.symbols.len()
    }

    /// Whether no symbol is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// Whether no symbol can be pushed before one is released.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.symbols.len() >= self.window
    }

    /// Largest number of bytes in a symbol.
    #[must_use]
    pub fn symbol_size_max(&self) -> usize {
        self.symbol_size_max
    }

    /// Most symbols held at a time.
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
        // Miri takes minutes for as many.
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
