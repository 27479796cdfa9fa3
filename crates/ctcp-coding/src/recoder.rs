//! A relay's half of the symbol space: it takes what the decoder takes, and gives new combinations of it without decoding.
//!
//! ```text
//!  handle_source            rows led by what was seen                    combine(range, weights)
//!  handle_combination  ->   [ . ] [ . . . . ] [ . . ] ... [ . . . ]  ->   range, coefficients, payload
//!                         |                                       |
//!              max(floor, end - window)                          end
//! ```
//!
//! # What a relay keeps
//!
//! Two designs were compared: a ring of the last packets as they came, and a basis, which keeps an arrival only if it is
//! innovative. A ring takes a packet without any arithmetic, but
//!
//! - it does not know its rank. It keeps what repeats, combines over all of it, and goes on sending when the next node has
//!   everything, where a basis can tell by one number that nothing is missing;
//! - it forgets whole packets. Once the sender's floor has passed the first symbol of a packet, a receiver that released this symbol can
//!   not use it; in a sliding window every combination begins at the floor of its time, so each step of the floor empties the
//!   ring. A basis loses one row a step, and what is left is all that can be said about the symbols from the floor on:
//!   the witnesses that section V-B of TCP/NC keeps.
//!
//! The basis costs an elimination at each arrival: on coefficients, and for innovative ones a sweep over the payloads that were
//! subtracted, at most what one combination costs. Figures, from `tests/recoding_chain.rs`: over two hops that lose 10 % each, with
//! a coding window of 32 symbols and the oldest unseen one as floor, the sink sees 0.89 symbols a slot behind a basis, 0.82 behind a
//! ring that heeds the floor, 0.88 behind one of twice the window that does not (which only works while every receiver keeps
//! what lies below the floor), and 0.81 behind a node that forwards.
//!
//! Requirement: N5

use crate::decoder::{Arrival, DecodeError, check_combination};
use crate::echelon::{Echelon, Row, Work};
use crate::gf256;
use crate::slots::trimmed_length;
use crate::symbol_range::{MAX_SPAN, SymbolRange};
use alloc::vec::Vec;
use core::fmt;

/// What a relay holds at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoderConfig {
    /// Most bytes in a symbol.
    pub symbol_size_max: usize,
    /// Symbols up to the newest one heard of that are kept, at most [`MAX_SPAN`], since a combination spans no more. As
    /// many rows are held at most, each with up to as many coefficients.
    ///
    /// With fewer than the sender's window a relay forgets what may still be needed; nothing else goes wrong.
    pub window: u16,
}

/// Why no combination was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecodeError {
    /// The number of weights is not [`Recoder::rank_in`] of the range.
    WeightCount,
    /// No row lies in the range, or all weights are zero.
    Nothing,
}

/// A bounded window of what was heard, as independent rows.
#[derive(Debug)]
pub struct Recoder {
    config: RecoderConfig,
    rows: Echelon,
    announced_floor: u64,
    /// One past the largest index that any arrival involved.
    end: u64,
}

impl Recoder {
    /// A relay that has heard nothing. It allocates when symbols arrive.
    #[must_use]
    pub fn new(config: RecoderConfig) -> Self {
        let window = config.window.min(MAX_SPAN);
        let rows = Echelon::new(config.symbol_size_max);
        Self { config: RecoderConfig { window, ..config }, rows, announced_floor: 0, end: 0 }
    }

    /// Takes the source symbol `index`, uncoded, with or without the zeros at its end.
    pub fn handle_source(&mut self, index: u64, contents: &[u8]) -> Result<Arrival, DecodeError> {
        let range = SymbolRange::new(index, 1).ok_or(DecodeError::OutsideWindow)?;
        self.handle_combination(range, &[1], contents)
    }

    /// Takes a combination, of whatever origin: `payload = sum_i coefficients[i] * symbol(range.first + i)`, with or without
    /// the zeros at its end.
    ///
    /// Nothing is kept of what is redundant, begins below what is kept still ([`Arrival::TooOld`]), or spans more than
    /// the window. Symbols beyond the newest heard of move the window; rows that fall out of it are forgotten.
    pub fn handle_combination(
        &mut self,
        range: SymbolRange,
        coefficients: &[u8],
        payload: &[u8],
    ) -> Result<Arrival, DecodeError> {
        check_combination(range, coefficients, payload, self.config.symbol_size_max)?;
        let Some(lead) = coefficients.iter().position(|&coefficient| coefficient != 0) else {
            return Ok(Arrival::Redundant);
        };
        let (first, coefficients) =
            (range.first() + lead as u64, &coefficients[lead..trimmed_length(coefficients)]);
        if coefficients.len() > usize::from(self.config.window) {
            return Err(DecodeError::OutsideWindow);
        }
        if first < self.oldest_kept() {
            return Ok(Arrival::TooOld);
        }
        self.end = self.end.max(first + coefficients.len() as u64);
        self.rows.drop_below(self.oldest_kept());
        let is_innovative = self.rows.insert(first, coefficients, payload);
        Ok(if is_innovative { Arrival::Innovative } else { Arrival::Redundant })
    }

    /// Tells that the sender no longer combines symbols below `index`: rows that involve them are forgotten.
    pub fn release_before(&mut self, index: u64) {
        self.announced_floor = self.announced_floor.max(index);
        self.rows.drop_below(self.oldest_kept());
    }

    /// Writes a combination of the rows within `range`: `weights[i]` times the i-th of them, ascending by leading symbol. Returns
    /// the range it spans, which lies in `range`, and whose coefficients replace those in `coefficients`; the first and the
    /// last are not zero. The payload is without the zeros at its end.
    ///
    /// Weights drawn at random make it a random element of what these rows span: drawn over the whole field, as in Lemma 1 of TCP/NC
    /// ([`coefficients::generate_uniform`](crate::coefficients::generate_uniform)), or without zeros
    /// ([`coefficients::generate`](crate::coefficients::generate)), which never wastes the combination of a single row.
    ///
    /// Requirement: N5
    pub fn combine(
        &self,
        range: SymbolRange,
        weights: &[u8],
        coefficients: &mut Vec<u8>,
        payload: &mut Vec<u8>,
    ) -> Result<SymbolRange, RecodeError> {
        if self.rows_within(range).count() != weights.len() {
            return Err(RecodeError::WeightCount);
        }
        let terms = self.rows_within(range).zip(weights.iter().copied());
        let terms = terms.filter(|&(_, weight)| weight != 0);
        let bounds = terms.clone().fold(None, |bounds, (row, _)| match bounds {
            None => Some((row.pivot(), row.end())),
            Some((first, end)) => Some((first, row.end().max(end))),
        });
        let (first, end) = bounds.ok_or(RecodeError::Nothing)?;
        coefficients.clear();
        coefficients.resize((end - first) as usize, 0);
        for (row, weight) in terms.clone() {
            let start = (row.pivot() - first) as usize;
            let target = &mut coefficients[start..start + row.coefficients().len()];
            gf256::mul_add(target, weight, row.coefficients());
        }
        coefficients.truncate(trimmed_length(coefficients));
        Echelon::combine_payloads(terms, payload);
        // The first row's leading symbol is in no other row, so something is left.
        SymbolRange::from_bounds(first, first + coefficients.len() as u64).ok_or(RecodeError::Nothing)
    }

    fn rows_within(&self, range: SymbolRange) -> impl Iterator<Item = &Row> + Clone {
        self.rows.rows_in(range.first(), range.end()).filter(move |row| row.end() <= range.end())
    }

    /// Number of rows that involve symbols of `range` alone.
    #[must_use]
    pub fn rank_in(&self, range: SymbolRange) -> usize {
        self.rows_within(range).count()
    }

    /// Number of rows: degrees of freedom held.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rows.rank()
    }

    /// From the oldest symbol that a row involves to the newest heard of; `None` when nothing is held.
    #[must_use]
    pub fn span(&self) -> Option<SymbolRange> {
        SymbolRange::from_bounds(self.rows.row(0)?.pivot(), self.end)
    }

    /// Whether a row is led by the symbol: in the words of TCP/NC, whether it is seen and not yet released.
    #[must_use]
    pub fn is_seen(&self, index: u64) -> bool {
        self.rows.has_pivot(index)
    }

    /// The largest floor announced, for the frames that the relay sends. None of its combinations involves an older symbol.
    #[must_use]
    pub fn floor(&self) -> u64 {
        self.announced_floor
    }

    /// Combinations that begin below this index are too old.
    #[must_use]
    pub fn oldest_kept(&self) -> u64 {
        self.announced_floor.max(self.end.saturating_sub(u64::from(self.config.window)))
    }

    /// What the eliminations have cost so far; combinations made are not counted.
    #[must_use]
    pub fn work(&self) -> Work {
        self.rows.work()
    }

    /// What was agreed on; the window is at most [`MAX_SPAN`].
    #[must_use]
    pub fn config(&self) -> RecoderConfig {
        self.config
    }

    /// Gives memory of past peaks back. For a relay that has become idle.
    pub fn shrink(&mut self) {
        self.rows.shrink();
    }
}

impl fmt::Display for RecodeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::WeightCount => "the number of weights is not the number of rows in the range",
            Self::Nothing => "no row lies in the range, or all weights are zero",
        })
    }
}

impl core::error::Error for RecodeError {}

#[cfg(test)]
mod tests;
