//! Decodes one block of short combinations: elimination inside the band, with the payload alongside.
//!
//! The decoder of connections ([`Decoder`](ctcp_coding::Decoder)) determines at every arrival which symbols have become
//! known. It therefore records how each row was composed, which for a block of n unknown symbols takes n coefficients
//! per row, however short the combinations are. This decoder keeps only the rows, which stay as short as the
//! combinations. Once there are as many rows as symbols, it solves them from last to first: Algorithm 1 of the thesis
//! and the back-substitution of its equation 3.2. Symbols that arrive uncoded are known at once here too.
//!
//! Its work is counted ([`SparseDecoder::work`]): products of coefficients and additions of payloads.
//!
//! Requirement: U1

use ctcp_coding::echelon::{Echelon, Work};
use ctcp_coding::{Arrival, DecodeError, SymbolRange, check_combination};

/// Decodes one block after another. Its memory is reused.
#[derive(Debug)]
pub struct SparseDecoder {
    block: SymbolRange,
    symbol_size_max: usize,
    rows: Echelon,
}

impl SparseDecoder {
    /// Creates a decoder for `block`, whose symbols have up to `symbol_size_max` bytes.
    #[must_use]
    pub fn new(block: SymbolRange, symbol_size_max: usize) -> Self {
        Self { block, symbol_size_max, rows: Echelon::new(symbol_size_max) }
    }

    /// Drops the present block and starts another one.
    pub fn restart(&mut self, block: SymbolRange) {
        self.rows.drop_below(u64::MAX);
        self.block = block;
    }

    /// Handles the uncoded source symbol `index`, with or without its trailing zeros.
    pub fn handle_source(&mut self, index: u64, contents: &[u8]) -> Result<Arrival, DecodeError> {
        let range = SymbolRange::new(index, 1).ok_or(DecodeError::OutsideWindow)?;
        self.handle_combination(range, &[1], contents)
    }

    /// Handles `payload = sum_i coefficients[i] * symbol(range.first + i)`, with or without its trailing zeros. The
    /// last missing combination solves the block.
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
            for position in (0..self.rows.rank()).rev() {
                let is_solved = self.rows.reduce(position);
                debug_assert!(is_solved, "there are as many rows as symbols");
            }
        }
        Ok(Arrival::Innovative)
    }

    /// Returns the contents of a known symbol, zero padded to `symbol_size_max` bytes. A symbol is known if it arrived
    /// uncoded or the block is decoded.
    #[must_use]
    pub fn symbol(&self, index: u64) -> Option<&[u8]> {
        let row = self.rows.rows_in(index, index.checked_add(1)?).next()?;
        (row.coefficients() == [1]).then(|| row.contents(self.symbol_size_max))
    }

    /// Returns the degrees of freedom received.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rows.rank()
    }

    /// Returns whether all symbols of the block are known.
    #[must_use]
    pub fn is_decoded(&self) -> bool {
        self.rows.rank() == usize::from(self.block.length())
    }

    /// Returns the block being decoded.
    #[must_use]
    pub fn block(&self) -> SymbolRange {
        self.block
    }

    /// Returns the cost of decoding since this decoder was created.
    #[must_use]
    pub fn work(&self) -> Work {
        self.rows.work()
    }
}
