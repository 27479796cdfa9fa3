//! A relay's window: it receives what a decoder receives, and makes new combinations of it without decoding.
//!
//! ```text
//!  handle_source            rows led by seen symbols                     combine(range, weights)
//!  handle_combination  ->   [ . ] [ . . . . ] [ . . ] ... [ . . . ]  ->   range, coefficients, payload
//!                         |                                       |
//!              max(floor, end - window)                          end
//! ```
//!
//! # What a relay keeps
//!
//! Two designs were compared: a ring of the last packets as they arrived, and a basis, which keeps an arrival only if
//! it is innovative. A ring stores a packet without any arithmetic, but it has two disadvantages:
//!
//! - It does not know its rank. It keeps duplicates, combines over all of them, and goes on sending when the next node
//!   already has everything. With a basis, one number tells that nothing is missing.
//! - It drops whole packets. Once the sender's floor has passed the first symbol of a packet, a receiver that released
//!   this symbol cannot use the packet. In a sliding window every combination begins at the floor of its time, so each
//!   step of the floor empties the ring. A basis loses one row per step and keeps everything known about the symbols
//!   from the floor on: the witnesses that section V-B of TCP/NC keeps.
//!
//! The basis costs an elimination at each arrival: on coefficients, and for innovative arrivals a sweep over the
//! subtracted payloads, at most the cost of one combination.
//!
//! `tests/recoding_chain.rs` compares the designs over two hops with 10 % loss each, a coding window of 32 symbols and
//! the oldest unseen symbol as the floor:
//!
//! | relay | symbols seen by the sink per slot |
//! |---|---|
//! | basis | 0.89 |
//! | ring that drops packets below the floor | 0.82 |
//! | ring of twice the window that ignores the floor (requires that receivers keep symbols below the floor) | 0.88 |
//! | forwarding | 0.81 |
//!
//! Requirement: N5

use crate::decoder::{Arrival, DecodeError, check_combination};
use crate::echelon::{Echelon, Work};
use crate::slots::trimmed_length;
use crate::symbol_range::{MAX_SPAN, SymbolRange};
use alloc::vec::Vec;
use core::fmt;

/// The limits of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoderConfig {
    /// The maximum size of a symbol in bytes.
    pub symbol_size_max: usize,
    /// The number of symbols kept, counted back from the newest one referred to. It is at most [`MAX_SPAN`], the
    /// maximum span of a combination. It also limits the number of rows and the coefficients of each.
    ///
    /// If it is smaller than the sender's window, the relay drops rows that may still be needed; nothing else goes
    /// wrong.
    pub window: u16,
}

/// The reason why no combination was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecodeError {
    /// The number of weights differs from [`Recoder::rank_in`] of the range.
    WeightCount,
    /// No row lies in the range, or all weights are zero.
    Nothing,
}

/// A bounded window of what was received, as independent rows.
#[derive(Debug)]
pub struct Recoder {
    config: RecoderConfig,
    rows: Echelon,
    announced_floor: u64,
    /// One past the largest index with a non-zero coefficient in any arrival.
    end: u64,
}

impl Recoder {
    /// Creates a relay that has received nothing. It allocates when symbols arrive.
    #[must_use]
    pub fn new(config: RecoderConfig) -> Self {
        let window = config.window.min(MAX_SPAN);
        let rows = Echelon::new(config.symbol_size_max);
        Self { config: RecoderConfig { window, ..config }, rows, announced_floor: 0, end: 0 }
    }

    /// Handles the uncoded source symbol `index`, with or without its trailing zeros.
    pub fn handle_source(&mut self, index: u64, contents: &[u8]) -> Result<Arrival, DecodeError> {
        let range = SymbolRange::new(index, 1).ok_or(DecodeError::OutsideWindow)?;
        self.handle_combination(range, &[1], contents)
    }

    /// Handles a combination of any origin: `payload = sum_i coefficients[i] * symbol(range.first + i)`, with or
    /// without its trailing zeros.
    ///
    /// It is dropped if it is redundant, begins below the window ([`Arrival::TooOld`]), or spans more than the window.
    /// Newer symbols move the window, and rows that fall out of it are dropped.
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

    /// Reports that the sender no longer combines symbols below `index`. Rows that involve them are dropped.
    pub fn release_before(&mut self, index: u64) {
        self.announced_floor = self.announced_floor.max(index);
        self.rows.drop_below(self.oldest_kept());
    }

    /// Writes a combination of the rows within `range`. `weights[i]` is the factor of the i-th of these rows, ascending
    /// by leading symbol.
    ///
    /// Returns the range spanned by the combination, which lies in `range`. Its coefficients replace those in
    /// `coefficients`; the first and the last are not zero. The payload is written without trailing zeros.
    ///
    /// Random weights give a random element of the span of these rows. Draw them over the whole field, as in Lemma 1 of
    /// TCP/NC ([`coefficients::generate_uniform`](crate::coefficients::generate_uniform)), or without zeros
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
        self.rows.combine(range, weights, coefficients, payload)
    }

    /// Returns the number of rows that involve only symbols of `range`.
    #[must_use]
    pub fn rank_in(&self, range: SymbolRange) -> usize {
        self.rows.rows_within(range).count()
    }

    /// Returns the number of rows, which is the degrees of freedom held.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rows.rank()
    }

    /// Returns the range from the oldest symbol involved in a row to the newest one received, or `None` if there are no
    /// rows.
    #[must_use]
    pub fn span(&self) -> Option<SymbolRange> {
        SymbolRange::from_bounds(self.rows.row(0)?.pivot(), self.end)
    }

    /// Returns whether the symbol leads a row: in the terms of TCP/NC, whether it is seen and not yet released.
    #[must_use]
    pub fn is_seen(&self, index: u64) -> bool {
        self.rows.has_pivot(index)
    }

    /// Returns the largest floor announced, for the frames that the relay sends. No combination involves an older
    /// symbol.
    #[must_use]
    pub fn floor(&self) -> u64 {
        self.announced_floor
    }

    /// Returns the index below which combinations are too old.
    #[must_use]
    pub fn oldest_kept(&self) -> u64 {
        self.announced_floor.max(self.end.saturating_sub(u64::from(self.config.window)))
    }

    /// Returns the cost of elimination so far, not including the cost of [`Recoder::combine`].
    #[must_use]
    pub fn work(&self) -> Work {
        self.rows.work()
    }

    /// Returns the limits in use; the window is at most [`MAX_SPAN`].
    #[must_use]
    pub fn config(&self) -> RecoderConfig {
        self.config
    }

    /// Frees the memory kept from past peaks. Call it when a relay becomes idle.
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
