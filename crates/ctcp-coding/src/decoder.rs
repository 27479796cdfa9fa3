//! One decoder for every code: it takes source symbols and combinations over any ranges.
//!
//! ```text
//!          floor()      oldest_undecoded()            known_end()        limit()
//!             |                 |                          |                |
//!   released  [ k  k  k  k  k  k  ?  k  s  ?  k  k  s  ?  ? )  not heard of  )  refused
//!                  k known: contents held           s seen: leads an equation   ? neither
//! ```
//!
//! Stored equations are kept as a row-reduced basis with leading (lowest) pivots: the basis matrix of
//! TCP/NC section 3.1, so a symbol is *seen* if it is known or leads a row, and the row is its
//! witness. Elimination works on coefficients alone, at arrival, which makes rank and "innovative"
//! exact; each row remembers how it came about as a sum of the combinations as they arrived. Payload is touched
//! only when a row has shrunk to a single symbol: then that symbol, and all others of that arrival, are computed in fused
//! sweeps over the payloads and known symbols they depend on. A systematic block with m losses so costs
//! m combinations.
//!
//! Invariants: a row's pivot column is zero in all other rows; columns of known symbols are zero in
//! all rows; there are as many equations as rows, and the rows' sums of them are
//! independent; `floor <= oldest undelivered <= oldest undecoded <= known end <= limit`.
//!
//! Requirement: C6, N1

mod components;
mod intervals;
mod rows;
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

/// What sender and receiver have agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecoderConfig {
    /// Most bytes in a symbol.
    pub symbol_size_max: usize,
    /// Symbols from the oldest undecoded one on that may be referred to: the sender's window.
    ///
    /// It bounds memory: the decoder holds contents of less than twice as many symbols and equations
    /// together.
    pub window: usize,
    /// Equations that wait for others at most; more are not taken, even those that would solve what waits. It bounds memory and work:
    /// each has up to `window` coefficients, and a row of the basis as long as the longest component, rounded up to a power of two. When there are fewer than symbols in the window, the last quarter is kept for those
    /// over the oldest undecoded symbol. A sender of nothing but combinations needs as many as its window has symbols.
    pub equations_max: usize,
    /// Symbols that combinations may link at most: those whose ranges overlap, or are joined by the ranges of others. A combination that
    /// would link more is not taken. It bounds the work of an arrival: elimination reads at most its square in bytes, and the arrival with
    /// which everything falls into place its square times the size of a symbol. A sender that codes block by block needs no more
    /// than a block has symbols; a sliding window needs all.
    pub component_max: usize,
}

impl DecoderConfig {
    /// As many equations as the window has symbols, linked in any way, which is enough for any sender.
    #[must_use]
    pub const fn new(symbol_size_max: usize, window: usize) -> Self {
        Self { symbol_size_max, window, equations_max: window, component_max: window }
    }
}

/// What an accepted arrival was worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It raised the rank by one.
    Innovative,
    /// It told nothing new, and nothing of it was kept.
    Redundant,
    /// It refers to symbols whose contents were released: the sender no longer combines them, so
    /// this was late. Nothing of it was kept.
    TooOld,
    /// [`DecoderConfig::equations_max`] others wait already, or it links more symbols than
    /// [`DecoderConfig::component_max`]. Nothing of it was kept.
    NoRoom,
}

/// What a symbol is seen by (TCP/NC, definition 3): the sum of it and of later symbols, none of them seen, that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// Index of the symbol.
    pub first: u64,
    /// Coefficients of the symbols from `first` on, the first of them 1. No more than that one if the symbol is known.
    pub coefficients: Vec<u8>,
}

/// A sender that breaks the rules. Nothing of such an arrival is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The payload is longer than a symbol may be.
    TooLong,
    /// The number of coefficients is not the length of the range.
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
    /// Combinations that begin below it are too old.
    floor: u64,
    /// The sender's own floor, as far as announced; it counts once everything below is delivered.
    announced_floor: u64,
}

impl Decoder {
    /// A decoder that has heard of no symbol. It allocates when symbols arrive.
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
        }
    }

    /// Takes the source symbol `index`, uncoded, with or without the zeros at its end.
    ///
    /// A symbol already known is redundant; its contents are not compared.
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

    /// Takes a combination: `payload = sum_i coefficients[i] * symbol(range.first + i)`, with or
    /// without the zeros at its end.
    ///
    /// A redundant payload is not compared with what is known: a sender that contradicts itself is not noticed.
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
        if range.first() < self.floor {
            return Ok(Arrival::TooOld);
        }
        self.window.extend_to(range.end());
        let arrival = self.eliminate(range, coefficients, payload);
        self.release();
        Ok(arrival)
    }

    /// Reduces a combination by the basis and keeps what is left of it, if anything is.
    fn eliminate(&mut self, range: SymbolRange, coefficients: &[u8], payload: &[u8]) -> Arrival {
        let first = range.first().max(self.window.oldest_undecoded());
        let component = self.rows.linked(first, range.end(), &self.window);
        if component.length() > self.config.component_max as u64 {
            return Arrival::NoRoom;
        }
        let skip = (first - range.first()) as usize;
        let Some(lead) = self.rows.reduce(first, &coefficients[skip..], component, &self.window) else {
            return Arrival::Redundant;
        };
        if self.rows.len() >= self.room_for(range) {
            return Arrival::NoRoom;
        }
        let mut slot = self.pool.take();
        slot.write(payload);
        self.rows.insert(lead, (range.first(), coefficients, slot), component, &mut self.window);
        self.solve(component);
        Arrival::Innovative
    }

    /// Equations that may wait when one over `range` arrives. The last quarter is for those over the oldest undecoded symbol: were it
    /// full of later ones, nothing would ever be solved.
    fn room_for(&self, range: SymbolRange) -> usize {
        let most = self.config.equations_max;
        let is_for_oldest = range.first() <= self.window.oldest_undecoded();
        if is_for_oldest || most >= self.config.window { most } else { most - most / 4 }
    }

    fn solve(&mut self, component: Component) {
        self.solver.solve(component, &mut self.rows, &mut self.window, &mut self.pool);
    }

    /// The next symbol that has become known: its index and its contents, zero padded to
    /// `symbol_size_max` bytes. Each symbol comes once, in the order they became known.
    ///
    /// Symbols not polled hold the window: poll until `None` after each arrival.
    pub fn poll_decoded(&mut self) -> Option<(u64, &[u8])> {
        self.release();
        let index = self.window.pop_decoded()?;
        self.move_floor();
        let contents = self.window.contents(index)?;
        Some((index, &contents[..self.config.symbol_size_max]))
    }

    /// Contents of a known symbol that is still held, zero padded to `symbol_size_max` bytes.
    #[must_use]
    pub fn symbol(&self, index: u64) -> Option<&[u8]> {
        Some(&self.window.contents(index)?[..self.config.symbol_size_max])
    }

    /// Tells that the sender no longer combines symbols below `index`, so that they need not be held.
    ///
    /// Whatever the sender says, no symbol goes before it is decoded and polled.
    pub fn release_before(&mut self, index: u64) {
        self.announced_floor = self.announced_floor.max(index);
        self.release();
    }

    fn move_floor(&mut self) {
        let announced = self.announced_floor.min(self.window.oldest_undelivered());
        // A sender that refers to the symbol before `end` keeps none before `end - window`.
        let out_of_reach = self.window.end().saturating_sub(self.config.window as u64);
        self.floor = self.floor.max(announced).max(out_of_reach);
    }

    /// Frees what lies below the floor and below every stored equation.
    fn release(&mut self) {
        self.move_floor();
        let needed = self.rows.oldest_reference().unwrap_or(self.floor);
        self.window.release_before(needed.min(self.floor), &mut self.pool);
        if self.rows.is_empty() && self.floor >= self.window.end() {
            self.pool.trim(SLOTS_KEPT);
        }
    }

    /// Bytes of memory that symbols and equations take, and what was freed for the next ones.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.pool.memory() + self.rows.memory()
    }

    /// Gives memory of past peaks back. For a connection that has become idle.
    pub fn shrink(&mut self) {
        self.release();
        self.pool.shrink();
        self.window.shrink();
        self.rows.shrink();
        self.solver = Solver::default();
    }

    /// Smallest index that is not seen: neither known nor leading a stored equation.
    #[must_use]
    pub fn oldest_unseen(&self) -> u64 {
        self.window.oldest_unseen()
    }

    /// Smallest index that is not known.
    #[must_use]
    pub fn oldest_undecoded(&self) -> u64 {
        self.window.oldest_undecoded()
    }

    /// One past the largest index that any arrival referred to.
    #[must_use]
    pub fn known_end(&self) -> u64 {
        self.window.end()
    }

    /// Combinations that begin below this index are too old.
    #[must_use]
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// One past the largest acceptable index: oldest undecoded (and unpolled) symbol plus window.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.window.oldest_undelivered().saturating_add(self.config.window as u64)
    }

    /// Whether the symbol is known.
    #[must_use]
    pub fn is_decoded(&self, index: u64) -> bool {
        self.window.is_known(index)
    }

    /// Whether the symbol is known or leads a stored equation.
    #[must_use]
    pub fn is_seen(&self, index: u64) -> bool {
        self.window.is_seen(index)
    }

    /// The witness of a symbol that is seen and not yet released, in memory of its own.
    ///
    /// Requirement: N1
    #[must_use]
    pub fn witness(&self, index: u64) -> Option<Witness> {
        let coefficients = match self.window.find(index)? {
            State::Unknown => return None,
            State::Known { .. } => vec![1],
            State::Seen(row) => self.rows.witness(*row),
        };
        Some(Witness { first: index, coefficients })
    }

    /// Number of stored equations: degrees of freedom that have not yet become symbols.
    #[must_use]
    pub fn equations(&self) -> usize {
        self.rows.len()
    }

    /// Bytes that elimination and solution have read so far: what the arrivals have cost, whatever the processor.
    #[must_use]
    pub fn work(&self) -> u64 {
        self.rows.work() + self.solver.work()
    }

    /// What was agreed on.
    #[must_use]
    pub fn config(&self) -> DecoderConfig {
        self.config
    }

    /// Degrees of freedom about the symbols of `range` alone: the dimension of what is known that
    /// involves no other unknown symbol. It equals the range's length exactly if all are known.
    #[must_use]
    pub fn rank_in(&self, range: SymbolRange) -> usize {
        self.window.known_in(range) + self.rows.rank_within(range)
    }

    /// Where degrees of freedom are missing in `[oldest_undecoded, known_end)`, oldest first.
    ///
    /// Replaces `intervals` by at most `limit` disjoint intervals and returns the end of what they
    /// cover: `known_end`, or the start of the first one that had no room. An interval is either
    /// a run of adjacent unknown symbols that no equation involves (all missing), or the span of equations
    /// whose spans overlap (unknown symbols in it less equations). Between them all is known.
    pub fn undecodable_intervals(&self, limit: usize, intervals: &mut Vec<MissingInterval>) -> u64 {
        intervals::collect(&self.window, &self.rows, limit, intervals)
    }
}

/// What every receiver asks of a combination, whatever it keeps.
///
/// # Errors
/// When it asks too much.
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
