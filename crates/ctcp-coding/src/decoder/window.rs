//! The state of every symbol between the oldest one held and the newest one referred to.

use crate::slots::{Slot, SlotPool};
use crate::symbol_range::SymbolRange;
use alloc::collections::VecDeque;

/// The state of one symbol.
#[derive(Debug)]
pub(super) enum State {
    /// Unknown, and leading no row.
    Unknown,
    /// Leads the row with this number.
    Seen(u32),
    /// Known, with its contents.
    Known { slot: Slot, is_delivered: bool },
    /// Given up by the sender before it was known.
    Skipped,
}

impl State {
    /// Whether nothing more is to be learned about the symbol.
    fn is_settled(&self) -> bool {
        matches!(self, Self::Known { .. } | Self::Skipped)
    }

    fn is_delivered(&self) -> bool {
        matches!(self, Self::Known { is_delivered: true, .. } | Self::Skipped)
    }
}

/// The symbols `[base, end)`. All symbols below `base` are known, delivered and released, or skipped.
#[derive(Debug, Default)]
pub(super) struct Window {
    symbols: VecDeque<State>,
    base: u64,
    oldest_undelivered: u64,
    oldest_undecoded: u64,
    oldest_unseen: u64,
    /// Known but not yet delivered symbols, in the order they became known.
    decoded: VecDeque<u64>,
}

impl Window {
    /// An empty window: all symbols below `base` are settled.
    pub(super) fn from(base: u64) -> Self {
        Self {
            base,
            oldest_undelivered: base,
            oldest_undecoded: base,
            oldest_unseen: base,
            ..Self::default()
        }
    }

    pub(super) fn end(&self) -> u64 {
        self.base + self.symbols.len() as u64
    }

    pub(super) fn oldest_undelivered(&self) -> u64 {
        self.oldest_undelivered
    }

    pub(super) fn oldest_undecoded(&self) -> u64 {
        self.oldest_undecoded
    }

    pub(super) fn oldest_unseen(&self) -> u64 {
        self.oldest_unseen
    }

    /// Returns the state of a symbol inside `[base, end)`.
    pub(super) fn state(&self, index: u64) -> &State {
        &self.symbols[(index - self.base) as usize]
    }

    /// Returns the state of a symbol if it lies in `[base, end)`.
    pub(super) fn find(&self, index: u64) -> Option<&State> {
        self.symbols.get(usize::try_from(index.checked_sub(self.base)?).ok()?)
    }

    /// Returns the indexes and states from `first` (at least `base`) up to `end` (at most the window's end).
    pub(super) fn states(&self, first: u64, end: u64) -> impl Iterator<Item = (u64, &State)> {
        let skip = (first - self.base) as usize;
        (first..).zip(self.symbols.range(skip..(end - self.base) as usize))
    }

    /// Returns the number of symbols from `first` to the last known one before `end`. Bounds as for [`Window::states`].
    pub(super) fn length_to_last_known(&self, first: u64, end: u64) -> usize {
        let mut states = self.symbols.range((first - self.base) as usize..(end - self.base) as usize);
        states.rposition(|state| matches!(state, State::Known { .. })).map_or(0, |last| last + 1)
    }

    pub(super) fn is_known(&self, index: u64) -> bool {
        index < self.oldest_undecoded || self.find(index).is_some_and(State::is_settled)
    }

    pub(super) fn is_seen(&self, index: u64) -> bool {
        index < self.oldest_unseen || self.find(index).is_some_and(|state| !matches!(state, State::Unknown))
    }

    pub(super) fn known_in(&self, range: SymbolRange) -> usize {
        range.indexes().filter(|&index| self.is_known(index)).count()
    }

    pub(super) fn contents(&self, index: u64) -> Option<&[u8]> {
        match self.find(index)? {
            State::Known { slot, .. } => Some(slot.padded()),
            _ => None,
        }
    }

    /// Adds the unknown symbols below `end`. The caller has checked `end` against the limit.
    pub(super) fn extend_to(&mut self, end: u64) {
        while self.end() < end {
            self.symbols.push_back(State::Unknown);
        }
    }

    /// Stores the contents of a symbol inside `[base, end)` and returns the row that it led, if any.
    pub(super) fn set_known(&mut self, index: u64, slot: Slot) -> Option<u32> {
        let state = &mut self.symbols[(index - self.base) as usize];
        debug_assert!(!matches!(state, State::Known { .. }), "a symbol becomes known once");
        let row = if let State::Seen(row) = state { Some(*row) } else { None };
        *state = State::Known { slot, is_delivered: false };
        self.decoded.push_back(index);
        if index == self.oldest_undecoded {
            self.oldest_undecoded = self.skip(index, State::is_settled);
        }
        self.skip_seen(index);
        row
    }

    /// Records that a symbol inside `[base, end)` leads the row `row`.
    pub(super) fn set_seen(&mut self, index: u64, row: u32) {
        let state = &mut self.symbols[(index - self.base) as usize];
        debug_assert!(!matches!(state, State::Known { .. }), "a known symbol leads no row");
        *state = State::Seen(row);
        self.skip_seen(index);
    }

    /// Records that a symbol inside `[base, end)` leads no row any more. The caller gives it up or makes it lead another row.
    pub(super) fn set_unseen(&mut self, index: u64) {
        self.symbols[(index - self.base) as usize] = State::Unknown;
    }

    /// Gives up all symbols below `index` (at most the window's end) that are not known. No row may be led by them.
    pub(super) fn give_up_before(&mut self, index: u64) {
        let count = index.saturating_sub(self.base) as usize;
        for state in self.symbols.range_mut(..count) {
            if !state.is_settled() {
                *state = State::Skipped;
            }
        }
        let settled = self.skip(index - 1, State::is_settled);
        let seen = self.skip(index - 1, |state| !matches!(state, State::Unknown));
        self.oldest_undecoded = self.oldest_undecoded.max(settled);
        self.oldest_unseen = self.oldest_unseen.max(seen);
        let waiting = self.symbols.range((self.oldest_undelivered - self.base) as usize..);
        self.oldest_undelivered += waiting.take_while(|state| state.is_delivered()).count() as u64;
    }

    /// Updates `oldest_unseen` after the symbol `index` has become known or seen.
    fn skip_seen(&mut self, index: u64) {
        if index == self.oldest_unseen {
            self.oldest_unseen = self.skip(index, |state| !matches!(state, State::Unknown));
        }
    }

    /// Returns the first symbol after `index` for which `is_so` is false.
    fn skip(&self, index: u64, is_so: impl Fn(&State) -> bool) -> u64 {
        let next = index + 1;
        let states = self.symbols.range((next - self.base) as usize..);
        next + states.take_while(|state| is_so(state)).count() as u64
    }

    /// Returns the next symbol to deliver, which counts as delivered from now on.
    pub(super) fn pop_decoded(&mut self) -> Option<u64> {
        let index = self.decoded.pop_front()?;
        if let Some(State::Known { is_delivered, .. }) = self.symbols.get_mut((index - self.base) as usize) {
            *is_delivered = true;
        }
        if index == self.oldest_undelivered {
            self.oldest_undelivered = self.skip(index, State::is_delivered);
        }
        Some(index)
    }

    /// Frees the symbols below `index`, all of which must have been delivered.
    pub(super) fn release_before(&mut self, index: u64, pool: &mut SlotPool) {
        debug_assert!(index <= self.oldest_undelivered, "no symbol is released before it is delivered");
        while self.base < index {
            if let Some(State::Known { slot, .. }) = self.symbols.pop_front() {
                pool.give_back(slot);
            }
            self.base += 1;
        }
    }

    pub(super) fn shrink(&mut self) {
        self.symbols.shrink_to_fit();
        self.decoded.shrink_to_fit();
    }
}
