//! What decides on repairs, for a source and for a relay: what the receiver lacks, what the newest symbols are owed, and when the last of them
//! get their repair.

use ctcp_base::Instant;

use super::super::{Choice, Feedback, Sent, Situation};
use super::coverage::Coverage;
use super::protection::Protection;
use crate::id::SymbolIndex;

/// The part of a round trip without a new symbol after which the last symbols get their repair. It is longer than the pauses of a steady
/// stream that has many symbols in a round trip, and short compared with the round trip that a lost last symbol would otherwise wait.
pub(super) const TAIL_PART: u32 = 8;

/// The newest symbols should get a repair now.
#[derive(Clone, Copy, Debug)]
pub(in crate::code) struct Owed {
    /// No other symbol has followed for a while.
    pub(in crate::code) is_tail: bool,
}

/// The state of repairs.
#[derive(Debug)]
pub(in crate::code) struct RepairState {
    pub(in crate::code) coverage: Coverage,
    pub(in crate::code) protection: Protection,
    /// Key of the next combination.
    pub(in crate::code) key: u16,
    /// When the last symbols get a repair if no other symbol follows.
    tail: Option<Instant>,
}

impl RepairState {
    pub(in crate::code) fn new(protection: Protection) -> Self {
        Self { coverage: Coverage::default(), protection, key: 0, tail: None }
    }

    /// A symbol was sent for the first time, which the coverage knows.
    pub(in crate::code) fn on_symbol(&mut self, index: SymbolIndex, situation: &Situation) -> Sent {
        self.protection.on_symbol(situation);
        self.tail = self.protection.is_exposed().then(|| situation.now + situation.rtt / TAIL_PART);
        situation.sent(index, 1)
    }

    /// A repair was sent that begins with `first`.
    pub(in crate::code) fn on_repair(
        &mut self,
        choice: Choice,
        first: SymbolIndex,
        is_for_deficit: bool,
        situation: &Situation,
    ) -> Sent {
        let length = if let Choice::Combination { length, .. } = choice { length } else { 1 };
        self.key = self.key.wrapping_add(1);
        let sent = situation.sent(first, length);
        self.coverage.on_repair(&sent);
        self.protection.on_repair(is_for_deficit);
        if !is_for_deficit {
            self.tail = None;
        }
        sent
    }

    pub(in crate::code) fn on_acked(&mut self, sent: &Sent) {
        self.protection.on_fate(false);
        self.coverage.on_acked(sent);
    }

    pub(in crate::code) fn on_lost(&mut self, sent: &Sent, was_expired: bool) {
        self.protection.on_fate(true);
        if !was_expired {
            self.coverage.on_gone(sent);
        }
    }

    pub(in crate::code) fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.coverage.on_feedback(feedback);
        self.end_tail_if_certain();
    }

    pub(in crate::code) fn on_given_up(&mut self, index: SymbolIndex) {
        self.coverage.give_up_before(index);
        self.end_tail_if_certain();
    }

    /// Whether the newest symbols should get a repair now.
    pub(in crate::code) fn owed(&self, now: Instant) -> Option<Owed> {
        let is_tail = self.tail.is_some_and(|tail| tail <= now);
        let is_owed = self.coverage.is_newest_uncertain() && self.protection.is_owed(is_tail);
        is_owed.then_some(Owed { is_tail })
    }

    /// When the last symbols are owed a repair although nothing has happened.
    pub(in crate::code) fn next_repair(&self) -> Option<Instant> {
        self.tail.filter(|_| self.coverage.is_newest_uncertain() && self.protection.is_owed(true))
    }

    /// The last symbols get no repair until another one follows.
    pub(in crate::code) fn end_tail(&mut self) {
        self.tail = None;
    }

    fn end_tail_if_certain(&mut self) {
        if !self.coverage.is_newest_uncertain() {
            self.tail = None;
        }
    }
}
