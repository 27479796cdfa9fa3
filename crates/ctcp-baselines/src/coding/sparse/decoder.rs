//! Decodes one block of short combinations: elimination inside the band, and the payload along with it.
//!
//! The decoder of connections ([`Decoder`](ctcp_coding::Decoder)) finds out with every arrival which symbols have become known, and
//! therefore keeps how each row came about, which for a block of n unknown symbols costs n coefficients a row, however short the
//! combinations are. This one keeps nothing but the rows, which stay as short as the combinations, and solves them from the
//! last to the first once there are as many as symbols: Algorithm 1 of the thesis and the back-substitution of its equation 3.2. Symbols that
//! came uncoded are known at once here too.
//!
//! Its work is counted ([`SparseDecoder::work`]): products of coefficients, and payloads added.
//!
//! Requirement: U1

use ctcp_coding::echelon::{Echelon, Work};
use ctcp_coding::{Arrival, DecodeError, SymbolRange, check_combination};

/// Takes the packets of one block until it is known, then of another one: its memory is used again.
#[derive(Debug)]
pub struct SparseDecoder {
    block: SymbolRange,
    symbol_size_max: usize,
    rows: Echelon,
}

impl SparseDecoder {
    /// A decoder for `block`, whose symbols have up to `symbol_size_max` bytes.
    #[must_use]
    pub fn new(block: SymbolRange, symbol_size_max: usize) -> Self {
        Self { block, symbol_size_max, rows: Echelon::new(symbol_size_max) }
    }

    /// Forgets the block and begins another one.
    pub fn restart(&mut self, block: SymbolRange) {
        self.rows.drop_below(u64::MAX);
        self.block = block;
    }

    /// Takes the source symbol `index`, uncoded, with or without the zeros at its end.
    pub fn handle_source(&mut self, index: u64, contents: &[u8]) -> Result<Arrival, DecodeError> {
        let range = SymbolRange::new(index, 1).ok_or(DecodeError::OutsideWindow)?;
        self.handle_combination(range, &[1], contents)
    }

    /// Takes `payload = sum_i coefficients[i] * symbol(range.first + i)`, with or without the zeros at its end. With the
    /// last one that was missing the block is solved.
    pub fn handle_combination(
        &mut self,
        range: SymbolRange,
        coefficients: &[u8],
        payload: &[u8],
    ) -> Result<Arrival, DecodeError> {
        check_combination(range, coefficients, payload, self.symbol_size_max)?;
        if range.first() < self.block.first() || range.end() > self.block.end() {
            return Err(DecodeError::OutsideWindow);
        }
        if self.is_decoded() || !self.rows.insert(range.first(), coefficients, payload) {
            return Ok(Arrival::Redundant);
        }
        if self.is_decoded() {
            (0..self.rows.rank()).rev().for_each(|position| self.rows.solve_last(position));
        }
        Ok(Arrival::Innovative)
    }

    /// Contents of a symbol that is known, zero padded to `symbol_size_max` bytes: one that came uncoded, or any when the block is
    /// decoded.
    #[must_use]
    pub fn symbol(&self, index: u64) -> Option<&[u8]> {
        let row = self.rows.rows_in(index, index.checked_add(1)?).next()?;
        (row.coefficients() == [1]).then(|| row.contents(self.symbol_size_max))
    }

    /// Degrees of freedom received.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rows.rank()
    }

    /// Whether all symbols of the block are known.
    #[must_use]
    pub fn is_decoded(&self) -> bool {
        self.rows.rank() == usize::from(self.block.length())
    }

    /// The block that it decodes.
    #[must_use]
    pub fn block(&self) -> SymbolRange {
        self.block
    }

    /// What decoding has cost since this decoder was made.
    #[must_use]
    pub fn work(&self) -> Work {
        self.rows.work()
    }
}
