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
use super::sliding::coverage::Coverage;
use super::sliding::protection::Protection;
use super::sliding::{TAIL_PART, is_owed};
use super::{Choice, Feedback, Scheme, Sent, Situation};
use crate::id::SymbolIndex;
use crate::wire::MissingInterval;

/// Symbols are combined in groups of so many.
const SPAN: u64 = RELAYED_SPAN_MAX as u64;

/// The sender half of a relay.
#[derive(Debug)]
pub(super) struct RecodingCode {
    buffer: RelayBuffer,
    coverage: Coverage,
    protection: Protection,
    /// Symbols that lead rows which were not sent yet.
    waiting: VecDeque<SymbolIndex>,
    /// How many symbols beyond the oldest one that it lacks the next hop stores.
    peer_window: u64,
    /// Repairs are combinations, some of them ahead of feedback. Otherwise rows are repeated when they are reported missing.
    combines: bool,
    key: u16,
    tail: Option<Instant>,
}

impl RecodingCode {
    pub(super) fn new(buffer: RelayBuffer, peer_window: u64, combines: bool) -> Self {
        let redundancy = if combines { Redundancy::FROM_LOSS } else { Redundancy::FEEDBACK };
        Self {
            buffer,
            coverage: Coverage::default(),
            protection: Protection::new(redundancy).thrifty(),
            waiting: VecDeque::new(),
            peer_window,
            combines,
            key: 0,
            tail: None,
        }
    }

    /// Learns which rows have arrived.
    fn fetch(&mut self) {
        let mut basis = self.buffer.lock();
        while let Some(lead) = basis.pop_news() {
            self.coverage.extend_to(lead + 1);
            if self.coverage.is_absent(lead) && basis.is_sendable(lead) {
                self.waiting.push_back(lead);
            }
        }
    }

    /// The next row to send for the first time, if the next hop has room for it.
    fn next_row(&mut self) -> Option<SymbolIndex> {
        while let Some(&lead) = self.waiting.front() {
            if self.coverage.is_absent(lead) {
                let limit = self.coverage.oldest().saturating_add(self.peer_window);
                return Some(lead).filter(|&lead| lead < limit);
            }
            self.waiting.pop_front();
        }
        None
    }

    /// Gaps for which too few repairs are in flight.
    fn short(&self) -> Option<MissingInterval> {
        self.coverage.short_run(self.protection.margin(1.0), SPAN)
    }

    /// A repair for what the next hop lacks of a run of gaps.
    fn repair_of(&self, run: MissingInterval) -> Option<Choice> {
        if !self.combines {
            return self.coverage.missing_in(run).map(Choice::Again);
        }
        let group_end = (run.first / SPAN + 1) * SPAN;
        let exact = self.combination(run.first, run.end);
        exact.or_else(|| self.combination(run.first, self.coverage.next().min(group_end)))
    }

    /// A combination of the rows that involve only these symbols, if there is one.
    fn combination(&self, first: SymbolIndex, end: SymbolIndex) -> Option<Choice> {
        let length = u16::try_from(end.checked_sub(first)?).ok()?;
        let range = SymbolRange::new(first, length)?;
        if !self.buffer.lock().has_rows_within(range) {
            return None;
        }
        Some(if length > 1 {
            Choice::Combination { first, length, key: self.key }
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
        if is_owed(&self.coverage, &self.protection, self.tail, situation.now) {
            let is_tail = self.tail.is_some_and(|tail| tail <= situation.now);
            let (first, end) = self.coverage.exposed(SPAN, is_tail);
            if let Some(choice) = self.combination(first, end) {
                return Some(choice);
            }
        }
        self.next_row().map(Choice::Again)
    }

    fn choose_probe(&mut self) -> Option<Choice> {
        self.fetch();
        let row = self.next_row().map(Choice::Again);
        row.or_else(|| self.coverage.oldest_sent().map(Choice::Again))
    }

    fn on_sent(&mut self, choice: Choice, index: SymbolIndex, situation: &Situation) -> Sent {
        if matches!(choice, Choice::Again(_)) && self.coverage.is_absent(index) {
            self.coverage.on_present(index);
            self.protection.on_symbol(situation);
            self.tail = self.protection.is_exposed().then(|| situation.now + situation.rtt / TAIL_PART);
            return Sent { first: index, length: 1 };
        }
        let length = if let Choice::Combination { length, .. } = choice { length } else { 1 };
        let is_for_deficit = self.short().is_some();
        self.key = self.key.wrapping_add(1);
        let sent = Sent { first: index, length };
        self.coverage.on_repair(&sent);
        self.protection.on_repair(is_for_deficit);
        if !is_for_deficit {
            self.tail = None;
        }
        sent
    }

    fn on_acked(&mut self, sent: &Sent) {
        self.protection.on_fate(false);
        self.coverage.on_acked(sent);
    }

    fn on_lost(&mut self, sent: &Sent, was_expired: bool) {
        self.protection.on_fate(true);
        if !was_expired {
            self.coverage.on_gone(sent);
        }
    }

    fn on_spurious_loss(&mut self, _sent: &Sent) {
        self.protection.on_spurious_loss();
    }

    fn on_expired(&mut self, sent: &Sent) {
        self.coverage.on_gone(sent);
    }

    fn on_feedback(&mut self, _now: Instant, feedback: &Feedback<'_>) {
        self.fetch();
        self.coverage.on_feedback(feedback);
        if !self.coverage.is_newest_uncertain() {
            self.tail = None;
        }
    }

    fn next_repair(&self) -> Option<Instant> {
        self.tail.filter(|_| self.coverage.is_newest_uncertain() && self.protection.is_owed(true))
    }
}
