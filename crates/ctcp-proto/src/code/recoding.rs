//! The sender of a relay: it passes on what is new, and combines what it holds where its own hop loses packets.
//!
//! ```text
//!   rows of the basis     5   6   7        8 + 9        10
//!   next hop, first time  5   6   7  R     8 + 9        10         R: owed for the loss of this hop, over what is held
//!   next hop, again          R over what the report says is missing and this relay has
//! ```
//!
//! It differs from the sliding window of a source ([`super::sliding`]) in what a symbol is: a row that has arrived, in any order. A symbol
//! that has not arrived at the relay is not missing for this hop, and the relay is silent about it.
//!
//! Requirement: N5

use std::collections::VecDeque;

use ctcp_base::Instant;
use ctcp_coding::SymbolRange;

use super::basis::{RELAYED_SPAN_MAX, RelayBuffer};
use super::redundancy::Redundancy;
use super::sliding::protection::Protection;
use super::sliding::repair_state::RepairState;
use super::{Choice, Feedback, Scheme, Sent, Situation};
use crate::id::SymbolIndex;
use crate::wire::MissingInterval;

/// Symbols are combined in groups of so many.
const SPAN: u64 = RELAYED_SPAN_MAX as u64;

/// After so many rows a combination is tried again that was too large. The packets of the next hop may have grown since.
const NARROW_ROWS: u32 = 64;

/// The sender half of a relay.
#[derive(Debug)]
pub(super) struct RecodingCode {
    buffer: RelayBuffer,
    state: RepairState,
    /// Symbols that lead rows which were not sent yet.
    waiting: VecDeque<SymbolIndex>,
    /// How many symbols beyond the oldest one that it lacks the next hop stores.
    peer_window: u64,
    /// Repairs are combinations, some of them ahead of feedback. Otherwise rows are repeated when they are reported missing.
    combines: bool,
    /// How many rows to send before the next combination. The packets of the next hop were too small for one. Single symbols can be divided.
    narrow: u32,
}

impl RecodingCode {
    pub(super) fn new(buffer: RelayBuffer, peer_window: u64, combines: bool) -> Self {
        let redundancy = if combines { Redundancy::FROM_LOSS } else { Redundancy::FEEDBACK };
        Self {
            buffer,
            state: RepairState::new(Protection::new(redundancy).thrifty()),
            waiting: VecDeque::new(),
            peer_window,
            combines,
            narrow: 0,
        }
    }

    /// Learns which rows have arrived.
    fn fetch(&mut self) {
        let mut basis = self.buffer.lock();
        while let Some(lead) = basis.pop_news() {
            self.state.coverage.extend_to(lead + 1);
            if self.state.coverage.is_absent(lead) && basis.is_sendable(lead) {
                self.waiting.push_back(lead);
            }
        }
    }

    /// The next row to send for the first time, if the next hop has room for it.
    fn next_row(&mut self) -> Option<SymbolIndex> {
        while let Some(&lead) = self.waiting.front() {
            if self.state.coverage.is_absent(lead) {
                let limit = self.state.coverage.oldest().saturating_add(self.peer_window);
                return Some(lead).filter(|&lead| lead < limit);
            }
            self.waiting.pop_front();
        }
        None
    }

    fn combines(&self) -> bool {
        self.combines && self.narrow == 0
    }

    /// Gaps for which too few repairs are in flight.
    fn short(&self) -> Option<MissingInterval> {
        self.state.coverage.short_run(self.state.protection.margin(1.0), SPAN)
    }

    /// A repair for what the next hop lacks of a run of gaps.
    fn repair_of(&self, run: MissingInterval) -> Option<Choice> {
        if !self.combines() {
            let is_whole = |&index: &SymbolIndex| self.narrow == 0 || self.buffer.lock().is_symbol(index);
            return self.state.coverage.missing_in(run).filter(is_whole).map(Choice::Again);
        }
        let group_end = (run.first / SPAN + 1) * SPAN;
        let exact = self.combination(run.first, run.end);
        exact.or_else(|| self.combination(run.first, self.state.coverage.next().min(group_end)))
    }

    /// A combination of the rows that involve only these symbols, if there is one.
    fn combination(&self, first: SymbolIndex, end: SymbolIndex) -> Option<Choice> {
        let length = u16::try_from(end.checked_sub(first)?).ok()?;
        let range = SymbolRange::new(first, length)?;
        if !self.buffer.lock().has_rows_within(range) {
            return None;
        }
        Some(if length > 1 {
            Choice::Combination { first, length, key: self.state.key }
        } else {
            Choice::Again(first)
        })
    }
}

impl Scheme for RecodingCode {
    fn choose(&mut self, situation: &Situation) -> Option<Choice> {
        self.fetch();
        if let Some(choice) = self.short().and_then(|run| self.repair_of(run)) {
            return Some(choice);
        }
        if let Some(owed) = self.state.owed(situation.now).filter(|_| self.combines()) {
            let (first, end) = self.state.coverage.exposed(SPAN, owed.is_tail);
            if let Some(choice) = self.combination(first, end) {
                return Some(choice);
            }
            // What is held involves other symbols, too.
            if owed.is_tail {
                self.state.end_tail();
            }
        }
        self.next_row().map(Choice::Again)
    }

    fn choose_probe(&mut self) -> Option<Choice> {
        self.fetch();
        let row = self.next_row().map(Choice::Again);
        row.or_else(|| self.state.coverage.oldest_sent().map(Choice::Again))
    }

    fn on_sent(&mut self, choice: Choice, index: SymbolIndex, situation: &Situation) -> Sent {
        if matches!(choice, Choice::Again(_)) && self.state.coverage.is_absent(index) {
            self.state.coverage.on_present(index);
            self.narrow = self.narrow.saturating_sub(1);
            return self.state.on_symbol(index, situation);
        }
        let is_for_deficit = self.short().is_some();
        self.state.on_repair(choice, index, is_for_deficit, situation)
    }

    /// A sum waits until it is a symbol.
    fn on_too_large(&mut self, choice: Choice) {
        self.narrow = NARROW_ROWS;
        self.state.end_tail();
        if let Choice::Again(index) = choice
            && self.waiting.front() == Some(&index)
        {
            self.waiting.pop_front();
        }
    }

    fn on_acked(&mut self, sent: &Sent) {
        self.state.on_acked(sent);
    }

    fn on_lost(&mut self, sent: &Sent, was_expired: bool) {
        self.state.on_lost(sent, was_expired);
    }

    fn on_spurious_loss(&mut self, _sent: &Sent) {
        self.state.protection.on_spurious_loss();
    }

    fn on_expired(&mut self, sent: &Sent) {
        self.state.coverage.on_gone(sent);
    }

    fn on_feedback(&mut self, _now: Instant, feedback: &Feedback<'_>) {
        self.fetch();
        self.state.on_feedback(feedback);
    }

    fn next_repair(&self) -> Option<Instant> {
        self.state.next_repair().filter(|_| self.combines())
    }
}
