//! Full Gaussian elimination on a dense matrix over all symbols ever sent.

use ctcp_coding::{Arrival, DecodeError, MissingInterval, SymbolRange, gf256::element};
use std::collections::BTreeSet;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Unknown,
    Seen,
    Decoded,
}

/// The model of a decoder.
pub(crate) struct Model {
    pub(crate) window: usize,
    equations_max: usize,
    /// The reduced row echelon form of everything accepted, sorted by pivot, with columns starting at symbol 0.
    rows: Vec<Vec<u8>>,
    /// The state of each symbol according to the rows, starting at symbol 0.
    states: Vec<State>,
    known_end: u64,
    delivered: BTreeSet<u64>,
    announced_floor: u64,
    floor: u64,
    given_up: u64,
}

impl Model {
    pub(crate) fn new(window: usize, equations_max: usize) -> Self {
        Self {
            window,
            equations_max,
            rows: Vec::new(),
            states: Vec::new(),
            known_end: 0,
            delivered: BTreeSet::new(),
            announced_floor: 0,
            floor: 0,
            given_up: 0,
        }
    }

    pub(crate) fn source(&mut self, index: u64) -> Result<Arrival, DecodeError> {
        if index >= self.limit() {
            return Err(DecodeError::OutsideWindow);
        }
        if self.is_decoded(index) {
            return Ok(Arrival::Redundant);
        }
        self.known_end = self.known_end.max(index + 1);
        self.add(index, &[1]);
        self.move_floor();
        Ok(Arrival::Innovative)
    }

    pub(crate) fn combination(
        &mut self,
        range: SymbolRange,
        coefficients: &[u8],
    ) -> Result<Arrival, DecodeError> {
        if range.end() > self.limit() || coefficients.len() > self.window {
            return Err(DecodeError::OutsideWindow);
        }
        if range.end() <= self.oldest_undecoded() {
            return Ok(Arrival::Redundant);
        }
        if range.first() < self.floor.max(self.given_up) {
            return Ok(Arrival::TooOld);
        }
        self.known_end = self.known_end.max(range.end());
        self.move_floor();
        let before = self.rows.clone();
        let is_reserved = self.equations_max < self.window && range.first() > self.oldest_undecoded();
        let reserved = if is_reserved { self.equations_max / 4 } else { 0 };
        let has_room = self.equations() < self.equations_max - reserved;
        self.add(range.first(), coefficients);
        if self.rows.len() == before.len() {
            return Ok(Arrival::Redundant);
        }
        if !has_room {
            self.rows = before;
            self.note_states();
            return Ok(Arrival::NoRoom);
        }
        Ok(Arrival::Innovative)
    }

    fn add(&mut self, first: u64, coefficients: &[u8]) {
        let mut row = vec![0; first as usize];
        row.extend_from_slice(coefficients);
        self.rows.push(row);
        reduce(&mut self.rows);
        self.note_states();
    }

    fn note_states(&mut self) {
        self.states.clear();
        self.states.resize(self.rows.first().map_or(0, Vec::len), State::Unknown);
        for row in &self.rows {
            let state = if weight(row) == 1 { State::Decoded } else { State::Seen };
            self.states[pivot(row) as usize] = state;
        }
    }

    fn state(&self, index: u64) -> State {
        self.states.get(index as usize).copied().unwrap_or(State::Unknown)
    }

    pub(crate) fn deliver(&mut self, index: u64) {
        assert!(self.is_decoded(index), "{index} is returned but not decodable");
        assert!(self.delivered.insert(index), "{index} is returned twice");
        self.move_floor();
    }

    pub(crate) fn check_all_delivered(&self) {
        assert!((0..self.known_end).all(|i| !self.is_decoded(i) || self.delivered.contains(&i)));
    }

    pub(crate) fn release_before(&mut self, index: u64) {
        self.announced_floor = self.announced_floor.max(index);
        self.move_floor();
    }

    /// Drops what involves unknown symbols below `index`, and pretends that these are known and delivered. If `index` is beyond the window,
    /// known symbols are dropped, too.
    pub(crate) fn skip_before(&mut self, index: u64) {
        if index > self.limit() {
            self.delivered.extend(0..index);
        }
        self.known_end = self.known_end.max(index);
        if index > self.oldest_undecoded() {
            self.given_up = index;
        }
        self.rows.retain(|row| weight(row) == 1 || pivot(row) >= index);
        self.note_states();
        for lost in 0..index {
            if !self.is_decoded(lost) {
                self.delivered.insert(lost);
                self.add(lost, &[1]);
            }
        }
        self.release_before(index);
    }

    fn move_floor(&mut self) {
        let reach = self.known_end.saturating_sub(self.window as u64);
        self.floor = self.floor.max(reach).max(self.announced_floor.min(self.oldest_undelivered()));
    }

    pub(crate) fn floor(&self) -> u64 {
        self.floor
    }

    pub(crate) fn limit(&self) -> u64 {
        self.oldest_undelivered() + self.window as u64
    }

    pub(crate) fn known_end(&self) -> u64 {
        self.known_end
    }

    pub(crate) fn equations(&self) -> usize {
        self.states.iter().filter(|&&state| state == State::Seen).count()
    }

    pub(crate) fn is_decoded(&self, index: u64) -> bool {
        self.state(index) == State::Decoded
    }

    pub(crate) fn is_seen(&self, index: u64) -> bool {
        self.state(index) != State::Unknown
    }

    pub(crate) fn oldest_undecoded(&self) -> u64 {
        first_without(|index| self.is_decoded(index))
    }

    pub(crate) fn oldest_unseen(&self) -> u64 {
        first_without(|index| self.is_seen(index))
    }

    fn oldest_undelivered(&self) -> u64 {
        first_without(|index| self.delivered.contains(&index))
    }

    /// Returns the rank of all rows less the rank of their parts outside the range.
    pub(crate) fn rank_in(&self, range: SymbolRange) -> usize {
        let mut outside = self.rows.clone();
        for row in &mut outside {
            for (index, coefficient) in row.iter_mut().enumerate() {
                if range.contains(index as u64) {
                    *coefficient = 0;
                }
            }
        }
        reduce(&mut outside);
        self.rows.len() - outside.len()
    }

    /// Merges the spans of rows that overlap, then adds runs of symbols outside all spans.
    pub(crate) fn intervals(&self) -> Vec<MissingInterval> {
        let mut spans: Vec<(u64, u64)> = Vec::new();
        for row in self.rows.iter().filter(|row| weight(row) > 1) {
            match spans.last_mut().filter(|span| pivot(row) < span.1) {
                Some(span) => span.1 = span.1.max(row_end(row)),
                None => spans.push((pivot(row), row_end(row))),
            }
        }
        let mut intervals: Vec<MissingInterval> = Vec::new();
        for &(first, end) in &spans {
            let unknown = (first..end).filter(|&index| !self.is_decoded(index)).count();
            let rows = self.rows.iter().filter(|row| weight(row) > 1 && (first..end).contains(&pivot(row)));
            intervals.push(MissingInterval { first, end, missing: (unknown - rows.count()) as u64 });
        }
        let is_lone = |index: u64| {
            index < self.known_end
                && !self.is_decoded(index)
                && !spans.iter().any(|&(first, end)| (first..end).contains(&index))
        };
        for first in (0..self.known_end).filter(|&i| is_lone(i) && (i == 0 || !is_lone(i - 1))) {
            let end = (first..).find(|&index| !is_lone(index)).expect("the end is not lone");
            intervals.push(MissingInterval { first, end, missing: end - first });
        }
        intervals.sort_by_key(|interval| interval.first);
        intervals
    }
}

fn first_without(has: impl Fn(u64) -> bool) -> u64 {
    (0..).find(|&index| !has(index)).expect("finitely many have it")
}

fn weight(row: &[u8]) -> usize {
    row.iter().filter(|&&coefficient| coefficient != 0).count()
}

fn pivot(row: &[u8]) -> u64 {
    row.iter().position(|&coefficient| coefficient != 0).expect("no row is zero") as u64
}

fn row_end(row: &[u8]) -> u64 {
    row.iter().rposition(|&coefficient| coefficient != 0).expect("no row is zero") as u64 + 1
}

/// Brings a matrix into reduced row echelon form and removes zero rows.
fn reduce(rows: &mut Vec<Vec<u8>>) {
    let width = rows.iter().map(Vec::len).max().unwrap_or(0);
    rows.iter_mut().for_each(|row| row.resize(width, 0));
    let mut rank = 0;
    for column in 0..width {
        let Some(found) = (rank..rows.len()).find(|&row| rows[row][column] != 0) else { continue };
        rows.swap(rank, found);
        let inverse = element::inverse(rows[rank][column]).expect("not zero");
        let mut lead = std::mem::take(&mut rows[rank]);
        if inverse != 1 {
            lead.iter_mut().for_each(|coefficient| *coefficient = element::mul(inverse, *coefficient));
        }
        for row in rows.iter_mut().filter(|row| row.get(column).is_some_and(|&factor| factor != 0)) {
            let factor = row[column];
            row.iter_mut().zip(&lead).for_each(|(c, &l)| *c ^= element::mul(factor, l));
        }
        rows[rank] = lead;
        rank += 1;
    }
    rows.truncate(rank);
}
