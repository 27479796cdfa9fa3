//! What a relay holds of one direction of a connection: a basis of the symbols that the next hop may still need.
//!
//! ```text
//!   previous hop          Basis          next hop
//!   combinations  ->  [ rows ]  ->  symbols and new combinations
//!        report   <-  floor     <-  report
//! ```
//!
//! The receiver of the previous hop and the sender of the next hop share it, so nothing is stored twice and nothing is decoded only to be
//! coded again. Symbols keep their numbers from hop to hop.
//!
//! A relay accepts no symbol that is a window or more above what the next hop has: its floor is the one that it reports to the previous
//! hop. So a slow hop slows the one before it, and the memory of a relay is bounded.
//!
//! Requirement: N5

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ctcp_coding::echelon::Echelon;
use ctcp_coding::{Arrival, DecodeError, MissingInterval, SymbolRange, check_combination, coefficients};

use super::plug::{SymbolDecoder, SymbolEncoder, generate};
use crate::id::SymbolIndex;

/// The most symbols that a combination of relayed datagrams spans. Each costs a byte of every recoded combination.
pub(crate) const RELAYED_SPAN_MAX: u16 = 16;

/// How many symbols that the next hop has are kept all the same: the previous hop combines them until it knows.
const KEPT_BELOW: u64 = 2 * RELAYED_SPAN_MAX as u64;

/// Buffers of symbols that are kept for reuse while a relay holds nothing.
const SPARE: usize = 128;

/// The part of the window by which the floor rises before the previous hop is told, if nothing else is to be acknowledged.
const TOLD_PART: u64 = 8;

/// The buffer of a relay for one direction, to be given to the connections on both sides of it ([`crate::Carriage`]).
#[derive(Clone, Debug)]
pub struct RelayBuffer(Arc<Mutex<Basis>>);

#[derive(Debug)]
pub(super) struct Basis {
    rows: Echelon,
    /// The next hop has all symbols below this one.
    floor: SymbolIndex,
    /// One past the newest symbol.
    end: SymbolIndex,
    window: u64,
    symbol_size_max: usize,
    /// Leads of rows that are new, or that have become single symbols.
    news: VecDeque<SymbolIndex>,
    /// Rows of more than one symbol.
    sums: usize,
    /// The floor that the previous hop was told.
    told: SymbolIndex,
    #[cfg(test)]
    mischief: Option<super::mischief::Mischief>,
}

impl RelayBuffer {
    /// A buffer for symbols of `symbol_size_max` bytes that stores at most `window` of them, and a few that the next hop has.
    #[must_use]
    pub fn new(symbol_size_max: usize, window: u64) -> Self {
        Self(Arc::new(Mutex::new(Basis {
            rows: Echelon::new(symbol_size_max),
            floor: 0,
            end: 0,
            window,
            symbol_size_max,
            news: VecDeque::new(),
            sums: 0,
            told: 0,
            #[cfg(test)]
            mischief: None,
        })))
    }

    /// Makes it a relay that does not do what it should.
    #[cfg(test)]
    pub(crate) fn misbehave(&self, mischief: super::mischief::Mischief) {
        self.lock().mischief = Some(mischief);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Basis> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.lock().rows.memory()
    }

    /// Whether the floor has risen so far that the previous hop should be told.
    pub(crate) fn take_progress(&self) -> bool {
        let mut basis = self.lock();
        let is_much = basis.floor - basis.told >= (basis.window / TOLD_PART).max(1);
        if is_much {
            basis.told = basis.floor;
        }
        is_much
    }
}

impl Basis {
    pub(super) fn pop_news(&mut self) -> Option<SymbolIndex> {
        self.news.pop_front()
    }

    /// Whether rows exist that involve only symbols of `range`.
    pub(super) fn has_rows_within(&self, range: SymbolRange) -> bool {
        self.rows.rows_within(range).next().is_some()
    }

    /// Whether the symbol itself is there.
    pub(super) fn is_symbol(&self, index: SymbolIndex) -> bool {
        self.rows.row_of(index).is_some_and(ctcp_coding::echelon::Row::is_source)
    }

    /// Whether the row that the symbol leads fits into a combination.
    pub(super) fn is_sendable(&self, index: SymbolIndex) -> bool {
        self.rows.row_of(index).is_some_and(|row| row.coefficients().len() <= usize::from(RELAYED_SPAN_MAX))
    }

    fn limit(&self) -> SymbolIndex {
        self.floor.saturating_add(self.window)
    }

    /// Stores a symbol or a combination, as far as it is new.
    fn take(&mut self, range: SymbolRange, factors: &[u8], payload: &[u8]) -> Result<Arrival, DecodeError> {
        #[cfg(test)]
        if let Some(mut mischief) = self.mischief.take() {
            let taken = mischief
                .apply(range, factors, payload, |range, factors, payload| self.take(range, factors, payload));
            self.mischief = Some(mischief);
            return taken;
        }
        if range.length() == 1 && factors == [1] {
            return self.handle_source(range.first(), payload);
        }
        self.handle_combination(range, factors, payload)
    }

    fn handle_source(&mut self, index: SymbolIndex, contents: &[u8]) -> Result<Arrival, DecodeError> {
        if contents.len() > self.symbol_size_max {
            return Err(DecodeError::TooLong);
        }
        if index >= self.limit() {
            return Err(DecodeError::OutsideWindow);
        }
        if index < self.floor {
            return Ok(Arrival::Redundant);
        }
        let led_before = self.rows.row_of(index).map(|row| row.is_source());
        let pivot = self.rows.insert_source(index, contents);
        Ok(self.on_inserted(index + 1, pivot, led_before == Some(false)))
    }

    fn handle_combination(
        &mut self,
        range: SymbolRange,
        coefficients: &[u8],
        payload: &[u8],
    ) -> Result<Arrival, DecodeError> {
        check_combination(range, coefficients, payload, self.symbol_size_max)?;
        if range.end() > self.limit() {
            return Err(DecodeError::OutsideWindow);
        }
        if range.end() <= self.floor {
            return Ok(Arrival::Redundant);
        }
        if range.first() < self.oldest_kept() {
            return Ok(Arrival::TooOld);
        }
        let pivot = self.rows.insert_led(range.first(), coefficients, payload);
        Ok(self.on_inserted(range.end(), pivot, false))
    }

    fn on_inserted(&mut self, end: SymbolIndex, pivot: Option<SymbolIndex>, has_source: bool) -> Arrival {
        self.end = self.end.max(end);
        let Some(pivot) = pivot else { return Arrival::Redundant };
        self.news.push_back(pivot);
        if has_source {
            // The symbol itself took the place of a sum, which has another lead now.
            self.news.push_back(end - 1);
        }
        if self.sums > 0 || self.rows.row_of(pivot).is_some_and(|row| !row.is_source()) {
            self.solve();
        }
        Arrival::Innovative
    }

    /// Finds the rows that are single symbols by now.
    fn solve(&mut self) {
        let mut sums = 0;
        for position in (0..self.rows.rank()).rev() {
            let Some(row) = self.rows.row(position).filter(|row| !row.is_source()) else { continue };
            let lead = row.pivot();
            if self.rows.reduce(position) {
                self.news.push_back(lead);
            } else {
                sums += 1;
            }
        }
        self.sums = sums;
    }

    /// The floor as it is reported to the previous hop.
    fn reported_floor(&self) -> SymbolIndex {
        #[cfg(test)]
        if self.mischief.as_ref().is_some_and(super::mischief::Mischief::lies) {
            return self.end.max(self.floor);
        }
        self.floor
    }

    fn oldest_kept(&self) -> SymbolIndex {
        self.floor.saturating_sub(KEPT_BELOW)
    }

    fn release_before(&mut self, index: SymbolIndex) {
        self.floor = self.floor.max(index.min(self.end));
        self.rows.drop_below(self.oldest_kept());
        if self.floor == self.end {
            self.rows.trim(SPARE);
        }
    }

    /// Runs of symbols that lead no row.
    fn unseen(&self, limit: usize, intervals: &mut Vec<MissingInterval>) -> SymbolIndex {
        let mut next = self.reported_floor();
        let rows = self.rows.rows_in(next, self.end).map(|row| row.pivot());
        for pivot in rows.chain([self.end]) {
            if pivot > next {
                if intervals.len() == limit {
                    return next;
                }
                intervals.push(MissingInterval { first: next, end: pivot, missing: pivot - next });
            }
            next = next.max(pivot + 1);
        }
        self.end.max(self.floor)
    }

    fn oldest_unseen(&self) -> SymbolIndex {
        let mut next = self.floor;
        for row in self.rows.rows_in(self.floor, self.end) {
            if row.pivot() != next {
                break;
            }
            next += 1;
        }
        next
    }
}

/// The receiver of the previous hop. It decodes nothing: the symbols go to the next hop.
#[derive(Debug)]
pub(super) struct BasisDecoder {
    buffer: RelayBuffer,
    coefficients: Vec<u8>,
}

impl BasisDecoder {
    pub(super) fn new(buffer: RelayBuffer) -> Self {
        Self { buffer, coefficients: Vec::new() }
    }
}

impl SymbolDecoder for BasisDecoder {
    fn handle_source(&mut self, index: SymbolIndex, contents: &[u8]) -> Result<Arrival, DecodeError> {
        let range = SymbolRange::new(index, 1).ok_or(DecodeError::OutsideWindow)?;
        self.buffer.lock().take(range, &[1], contents)
    }

    fn handle_keyed(
        &mut self,
        range: SymbolRange,
        density: u8,
        key: u16,
        payload: &[u8],
    ) -> Result<Arrival, DecodeError> {
        generate(range, density, key, &mut self.coefficients);
        self.buffer.lock().take(range, &self.coefficients, payload)
    }

    fn handle_combination(
        &mut self,
        range: SymbolRange,
        coefficients: &[u8],
        payload: &[u8],
    ) -> Result<Arrival, DecodeError> {
        self.buffer.lock().take(range, coefficients, payload)
    }

    fn poll_decoded(&mut self) -> Option<(SymbolIndex, &[u8])> {
        None
    }

    /// The previous hop releases nothing of its own accord.
    fn release_before(&mut self, _index: SymbolIndex) {}

    /// What the next hop has, so that the previous one is at most a window ahead of it.
    fn oldest_undecoded(&self) -> SymbolIndex {
        self.buffer.lock().reported_floor()
    }

    fn oldest_unseen(&self) -> SymbolIndex {
        let basis = self.buffer.lock();
        basis.oldest_unseen().max(basis.reported_floor())
    }

    fn known_end(&self) -> SymbolIndex {
        let basis = self.buffer.lock();
        basis.end.max(basis.floor)
    }

    fn undecodable_intervals(&self, limit: usize, intervals: &mut Vec<MissingInterval>) -> SymbolIndex {
        self.buffer.lock().unseen(limit, intervals)
    }

    fn memory(&self) -> usize {
        self.buffer.memory()
    }
}

/// The sender of the next hop.
#[derive(Debug)]
pub(super) struct BasisEncoder {
    buffer: RelayBuffer,
    weights: Vec<u8>,
}

impl BasisEncoder {
    pub(super) fn new(buffer: RelayBuffer) -> Self {
        Self { buffer, weights: Vec::new() }
    }
}

impl SymbolEncoder for BasisEncoder {
    /// A relay has no symbols of its own.
    fn push(&mut self, _contents: &[u8]) -> SymbolIndex {
        debug_assert!(false, "a relay has no symbols of its own");
        self.next_index()
    }

    fn symbol(&self, _index: SymbolIndex) -> Option<&[u8]> {
        None
    }

    /// Only of a single symbol, which is sent so if it must be divided.
    fn combine(&mut self, range: SymbolRange, density: u8, key: u16, out: &mut Vec<u8>) -> bool {
        let basis = self.buffer.lock();
        let row = basis.rows.row_of(range.first()).filter(|row| range.length() == 1 && row.is_source());
        let Some(row) = row else { return false };
        let mut factor = [0];
        coefficients::generate(key, density, &mut factor);
        out.clear();
        out.resize(row.value().len(), 0);
        ctcp_coding::gf256::mul_add(out, factor[0], row.value());
        true
    }

    fn recode(
        &mut self,
        range: SymbolRange,
        key: u16,
        coefficients: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Option<SymbolRange> {
        let basis = self.buffer.lock();
        if range.length() == 1 {
            let row = basis.rows.row_of(range.first())?;
            coefficients.clear();
            coefficients.extend_from_slice(row.coefficients());
            out.clear();
            out.extend_from_slice(row.value());
            return SymbolRange::new(row.pivot(), u16::try_from(coefficients.len()).ok()?);
        }
        let rank = basis.rows.rows_within(range).count();
        self.weights.resize(rank, 0);
        coefficients::generate(key, coefficients::DENSITY_MAX, &mut self.weights);
        basis.rows.combine(range, &self.weights, coefficients, out).ok()
    }

    fn recodes(&self) -> bool {
        true
    }

    fn release_before(&mut self, index: SymbolIndex) {
        self.buffer.lock().release_before(index);
    }

    fn first(&self) -> SymbolIndex {
        self.buffer.lock().floor
    }

    fn next_index(&self) -> SymbolIndex {
        let basis = self.buffer.lock();
        basis.end.max(basis.floor)
    }

    fn is_full(&self) -> bool {
        false
    }

    fn window(&self) -> usize {
        usize::try_from(self.buffer.lock().window).unwrap_or(usize::MAX)
    }

    /// The receiver of the previous hop counts it.
    fn memory(&self) -> usize {
        0
    }
}
