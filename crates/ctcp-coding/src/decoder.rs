//! One decoder for every code: it accepts source symbols and combinations over any ranges.
//!
//! ```text
//!          floor()      oldest_undecoded()            known_end()        limit()
//!             |                 |                          |                |
//!   released  [ k  k  k  k  k  k  ?  k  s  ?  k  k  s  ?  ? )   not yet seen   )  refused
//!                  k known: contents held           s seen: leads an equation   ? neither
//! ```
//!
//! Stored equations form a row-reduced basis with leading (lowest) pivots, the basis matrix of TCP/NC section 3.1. A
//! symbol is *seen* if it is known or leads a row, and that row is its witness. Elimination runs at arrival and works
//! on coefficients alone, which makes rank and "innovative" exact. Each row records which sum of received combinations
//! it is.
//!
//! Payload is touched only when a row has shrunk to a single symbol. That symbol, and all others solved by the same
//! arrival, are then computed in fused sweeps over the payloads and known symbols they depend on. A systematic block
//! with m losses therefore costs m combinations.
//!
//! Invariants:
//!
//! - A row's pivot column is zero in all other rows, and columns of known symbols are zero in all rows.
//! - There are as many equations as rows, and the rows are independent sums of them.
//! - `floor <= oldest undelivered <= oldest undecoded <= known end <= limit`.
//!
//! Requirement: C6, N1

mod components;
mod intervals;
mod rows;
mod skip;
mod solve;
mod tableau;
mod window;

pub use intervals::MissingInterval;

use crate::encoder::SLOTS_KEPT;
use crate::slots::SlotPool;
use crate::symbol_range::SymbolRange;
use alloc::vec;
use alloc::vec::Vec;
use components::Component;
use core::fmt;
use rows::Rows;
use solve::Solver;
use window::{State, Window};

/// The parameters on which sender and receiver have agreed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecoderConfig {
    /// The maximum size of a symbol in bytes.
    pub symbol_size_max: usize,
    /// The sender's window: how many symbols, starting at the oldest undecoded one, may be referred to.
    ///
    /// This bounds memory: the number of symbols and equations held together is less than twice the window.
    pub window: usize,
    /// The maximum number of stored equations. Further equations are dropped, even if they would solve stored ones.
    ///
    /// This bounds memory and work. Each equation has up to `window` coefficients, and each row of the basis is as long
    /// as the longest component, rounded up to a power of two. If the limit is below `window`, the last quarter is
    /// reserved for equations over the oldest undecoded symbol. A sender that sends only combinations needs a limit of
    /// `window`.
    pub equations_max: usize,
    /// The maximum number of symbols that combinations may link, either because their ranges overlap or through the
    /// ranges of others. A combination that would link more is dropped.
    ///
    /// This bounds the work of an arrival: elimination reads at most its square in bytes, and solving everything at
    /// once reads at most its square times the size of a symbol. A sender that codes block by block needs the size of a
    /// block; a sliding window needs the whole window.
    pub component_max: usize,
}

impl DecoderConfig {
    /// Allows as many equations as the window has symbols, linked in any way. This is enough for any sender.
    #[must_use]
    pub const fn new(symbol_size_max: usize, window: usize) -> Self {
        Self { symbol_size_max, window, equations_max: window, component_max: window }
    }
}

/// The effect of an accepted arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It raised the rank by one.
    Innovative,
    /// It added no information and was dropped.
    Redundant,
    /// It arrived late: it refers to released symbols, which the sender no longer combines. It was dropped.
    TooOld,
    /// It was dropped because [`DecoderConfig::equations_max`] equations are stored already, or because it would link
    /// more symbols than [`DecoderConfig::component_max`].
    NoRoom,
}

/// The witness of a seen symbol (TCP/NC, definition 3): a known sum of the symbol and of later, unseen symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// Index of the symbol.
    pub first: u64,
    /// Coefficients of the symbols starting at `first`; the first one is 1. If the symbol is known, there is only that
    /// one.
    pub coefficients: Vec<u8>,
}

/// An arrival that violates the protocol. Nothing of it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The payload exceeds the size of a symbol.
    TooLong,
    /// The number of coefficients differs from the length of the range.
    CoefficientCount,
    /// It refers to symbols at or beyond [`Decoder::limit`], or spans more than the window.
    OutsideWindow,
}

/// Recovers source symbols from any mix of them and their combinations.
#[derive(Debug)]
pub struct Decoder {
    config: DecoderConfig,
    window: Window,
    rows: Rows,
    solver: Solver,
    pool: SlotPool,
    /// Combinations that begin below this index are too old.
    floor: u64,
    /// The floor announced by the sender. It takes effect once everything below it is delivered.
    announced_floor: u64,
    /// Symbols below this index may have been given up. Combinations that begin below it are too old, also before the floor moves.
    given_up: u64,
    /// Bytes read for rows that stayed when symbols were given up.
    work_of_skips: u64,
}

impl Decoder {
    /// Creates a decoder that has received nothing. It allocates when symbols arrive.
    #[must_use]
    pub fn new(config: DecoderConfig) -> Self {
        Self {
            config,
            window: Window::default(),
            rows: Rows::default(),
            solver: Solver::default(),
            pool: SlotPool::new(config.symbol_size_max),
            floor: 0,
            announced_floor: 0,
            given_up: 0,
            work_of_skips: 0,
        }
    }

    /// Handles the uncoded source symbol `index`, with or without its trailing zeros.
    ///
    /// A symbol that is already known is redundant; its contents are not compared.
    pub fn handle_source(&mut self, index: u64, contents: &[u8]) -> Result<Arrival, DecodeError> {
        if contents.len() > self.config.symbol_size_max {
            return Err(DecodeError::TooLong);
        }
        if index >= self.limit() {
            return Err(DecodeError::OutsideWindow);
        }
        if self.window.is_known(index) {
            return Ok(Arrival::Redundant);
        }
        self.window.extend_to(index + 1);
        let mut slot = self.pool.take();
        slot.write(contents);
        let component = self.rows.component_of(index, &self.window);
        match (self.window.set_known(index, slot), component) {
            (Some(row), Some(component)) => self.rows.release_pivot(row, component, &mut self.window),
            (_, Some(component)) => self.rows.clear_column(index, component),
            (_, None) => self.rows.forget_column(index),
        }
        if let Some(component) = component {
            self.solve(component);
        }
        self.release();
        Ok(Arrival::Innovative)
    }

    /// Handles a combination: `payload = sum_i coefficients[i] * symbol(range.first + i)`, with or without its trailing
    /// zeros.
    ///
    /// The payload of a redundant combination is not checked, so a sender that contradicts itself is not detected.
    pub fn handle_combination(
        &mut self,
        range: SymbolRange,
        coefficients: &[u8],
        payload: &[u8],
    ) -> Result<Arrival, DecodeError> {
        check_combination(range, coefficients, payload, self.config.symbol_size_max)?;
        if range.end() > self.limit() || coefficients.len() > self.config.window {
            return Err(DecodeError::OutsideWindow);
        }
        if range.end() <= self.window.oldest_undecoded() {
            return Ok(Arrival::Redundant);
        }
        if range.first() < self.floor.max(self.given_up) {
            return Ok(Arrival::TooOld);
        }
        self.window.extend_to(range.end());
        let arrival = self.eliminate(range.first(), coefficients, payload, self.room_for(range));
        self.release();
        Ok(arrival)
    }

    /// Reduces the combination of the symbols from `start` by the basis and stores the remainder, unless it is zero. `room` is
    /// the maximum number of equations.
    fn eliminate(&mut self, start: u64, coefficients: &[u8], payload: &[u8], room: usize) -> Arrival {
        let first = start.max(self.window.oldest_undecoded());
        let component = self.rows.linked(first, start + coefficients.len() as u64, &self.window);
        if component.length() > self.config.component_max as u64 {
            return Arrival::NoRoom;
        }
        let skip = (first - start) as usize;
        let Some(lead) = self.rows.reduce(first, &coefficients[skip..], component, &self.window) else {
            return Arrival::Redundant;
        };
        if self.rows.len() >= room {
            return Arrival::NoRoom;
        }
        let mut slot = self.pool.take();
        slot.write(payload);
        self.rows.insert(lead, (start, coefficients, slot), component, &mut self.window);
        self.solve(component);
        Arrival::Innovative
    }

    /// Returns how many equations may be stored when one over `range` arrives. The last quarter is reserved for
    /// equations over the oldest undecoded symbol: if later ones used all the room, nothing would ever be solved.
    fn room_for(&self, range: SymbolRange) -> usize {
        let most = self.config.equations_max;
        let is_for_oldest = range.first() <= self.window.oldest_undecoded();
        if is_for_oldest || most >= self.config.window { most } else { most - most / 4 }
    }

    fn solve(&mut self, component: Component) {
        self.solver.solve(component, &mut self.rows, &mut self.window, &mut self.pool);
    }

    /// Returns the index and contents of the next symbol that has become known, zero padded to `symbol_size_max` bytes.
    /// Each symbol is returned once, in the order in which the symbols became known.
    ///
    /// Symbols that have not been polled hold back the window, so poll until `None` after each arrival.
    pub fn poll_decoded(&mut self) -> Option<(u64, &[u8])> {
        self.release();
        let index = self.window.pop_decoded()?;
        self.move_floor();
        let contents = self.window.contents(index)?;
        Some((index, &contents[..self.config.symbol_size_max]))
    }

    /// Returns the contents of a known symbol that is still held, zero padded to `symbol_size_max` bytes.
    #[must_use]
    pub fn symbol(&self, index: u64) -> Option<&[u8]> {
        Some(&self.window.contents(index)?[..self.config.symbol_size_max])
    }

    /// Reports that the sender no longer combines symbols below `index`, so that they need not be held.
    ///
    /// Regardless of `index`, no symbol is released before it is decoded and polled.
    pub fn release_before(&mut self, index: u64) {
        self.announced_floor = self.announced_floor.max(index);
        self.release();
    }

    fn move_floor(&mut self) {
        let announced = self.announced_floor.min(self.window.oldest_undelivered());
        // A sender that refers to the symbol before `end` holds none before `end - window`.
        let out_of_reach = self.window.end().saturating_sub(self.config.window as u64);
        self.floor = self.floor.max(announced).max(out_of_reach);
    }

    /// Frees the symbols below the floor that no stored equation needs.
    fn release(&mut self) {
        self.move_floor();
        let needed = self.rows.oldest_reference().unwrap_or(self.floor);
        self.window.release_before(needed.min(self.floor), &mut self.pool);
        if self.rows.is_empty() && self.floor >= self.window.end() {
            self.pool.trim(SLOTS_KEPT);
        }
    }

    /// Returns the bytes of memory used by symbols and equations, including buffers kept for reuse.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.pool.memory() + self.rows.memory()
    }

    /// Frees the memory kept from past peaks. Call it when a connection becomes idle.
    pub fn shrink(&mut self) {
        self.release();
        self.pool.shrink();
        self.window.shrink();
        self.rows.shrink();
        self.solver = Solver::default();
    }

    /// Returns the smallest index that is not seen, that is, neither known nor leading a stored equation.
    #[must_use]
    pub fn oldest_unseen(&self) -> u64 {
        self.window.oldest_unseen()
    }

    /// Returns the smallest index that is neither known nor given up.
    #[must_use]
    pub fn oldest_undecoded(&self) -> u64 {
        self.window.oldest_undecoded()
    }

    /// Returns one past the largest index to which any arrival has referred.
    #[must_use]
    pub fn known_end(&self) -> u64 {
        self.window.end()
    }

    /// Combinations that begin below this index are too old.
    #[must_use]
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// Returns one past the largest acceptable index: the oldest symbol not yet decoded and polled, plus the window.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.window.oldest_undelivered().saturating_add(self.config.window as u64)
    }

    /// Returns whether the symbol is known or was given up by the sender ([`Decoder::skip_before`]).
    #[must_use]
    pub fn is_decoded(&self, index: u64) -> bool {
        self.window.is_known(index)
    }

    /// Returns whether the symbol is known or leads a stored equation.
    #[must_use]
    pub fn is_seen(&self, index: u64) -> bool {
        self.window.is_seen(index)
    }

    /// Returns a copy of the witness of a symbol that is seen and not yet released.
    ///
    /// Requirement: N1
    #[must_use]
    pub fn witness(&self, index: u64) -> Option<Witness> {
        let coefficients = match self.window.find(index)? {
            State::Unknown | State::Skipped => return None,
            State::Known { .. } => vec![1],
            State::Seen(row) => self.rows.witness(*row),
        };
        Some(Witness { first: index, coefficients })
    }

    /// Returns the number of stored equations: degrees of freedom that have not yet become symbols.
    #[must_use]
    pub fn equations(&self) -> usize {
        self.rows.len()
    }

    /// Returns the bytes read by elimination and solving so far, a measure of cost that does not depend on the
    /// processor.
    #[must_use]
    pub fn work(&self) -> u64 {
        self.rows.work() + self.solver.work() + self.work_of_skips
    }

    /// Returns the agreed parameters.
    #[must_use]
    pub fn config(&self) -> DecoderConfig {
        self.config
    }

    /// Returns the degrees of freedom about the symbols of `range` alone: the dimension of what is known that involves
    /// no unknown symbol outside it. It equals the length of the range if and only if all its symbols are known.
    #[must_use]
    pub fn rank_in(&self, range: SymbolRange) -> usize {
        self.window.known_in(range) + self.rows.rank_within(range)
    }

    /// Lists where degrees of freedom are missing in `[oldest_undecoded, known_end)`, oldest first.
    ///
    /// Replaces `intervals` by at most `limit` disjoint intervals. Returns the end of the part they cover: `known_end`,
    /// or the start of the first interval that did not fit. An interval is one of two things:
    ///
    /// - a run of adjacent unknown symbols that no equation involves, all of which are missing;
    /// - the joint span of overlapping equations, in which the unknown symbols less the equations are missing.
    ///
    /// All symbols between the intervals are known.
    pub fn undecodable_intervals(&self, limit: usize, intervals: &mut Vec<MissingInterval>) -> u64 {
        intervals::collect(&self.window, &self.rows, limit, intervals)
    }

    /// Lists the runs of symbols in `[oldest_undecoded, known_end)` that are not seen, oldest first, with the limit and the result of
    /// [`Self::undecodable_intervals`].
    ///
    /// A random combination that spans such a symbol is innovative, whatever else it spans, with the probability of Lemma 1 of TCP/NC.
    /// So these runs tell a sender with short combinations where one helps, which the long span of joined equations does not.
    pub fn unseen_intervals(&self, limit: usize, intervals: &mut Vec<MissingInterval>) -> u64 {
        intervals::collect_unseen(&self.window, limit, intervals)
    }
}

/// Checks the size of a combination, as every receiver must.
///
/// # Errors
/// Returns an error if the payload is longer than a symbol, or the number of coefficients differs from the range.
pub fn check_combination(
    range: SymbolRange,
    coefficients: &[u8],
    payload: &[u8],
    symbol_size_max: usize,
) -> Result<(), DecodeError> {
    if payload.len() > symbol_size_max {
        return Err(DecodeError::TooLong);
    }
    if coefficients.len() != usize::from(range.length()) {
        return Err(DecodeError::CoefficientCount);
    }
    Ok(())
}

impl fmt::Display for DecodeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::TooLong => "the payload is longer than a symbol may be",
            Self::CoefficientCount => "the number of coefficients is not the length of the range",
            Self::OutsideWindow => "the range reaches outside the window",
        })
    }
}

impl core::error::Error for DecodeError {}

#[cfg(test)]
mod tests;
