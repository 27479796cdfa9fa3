//! The sliding-window code of profile `low-latency`: repairs are spread between the symbols, and each spans only what can still be missing
//! (RFC 8681, with a range that follows the receiver's report).
//!
//! ```text
//!   symbols   0  1  2  3  4  5  6  7  8  9 10 11
//!                      decoded below 3 |         next
//!   repair after 5     [ -- -- ]
//!   repair after 8     [ -- -- -- -- -- ]
//!   repair after 11    [ -- -- -- -- -- -- -- -- ]
//! ```
//!
//! Three reasons to send a repair, in this order:
//!
//! 1. *Deficit*: the repairs in flight that span a gap are fewer than it lacks, with a margin ([`Coverage::short`]).
//! 2. *Protection*: the symbols sent since the last repair are owed one ([`Protection`]).
//! 3. *Tail*: no symbol has followed for an eighth of a round trip, and the last ones have no repair.
//!
//! A block code delays each repair to the end of its block. Here a repair helps as soon as it arrives, and one that was not needed by the
//! oldest gap helps the next one. Decision 0040 compares them.

pub(super) mod coverage;
pub(super) mod protection;

use super::{Choice, CodeSpec, Feedback, Scheme, Sent, Setup, Situation, WindowOf};
use crate::id::SymbolIndex;
use crate::wire::MissingInterval;
use coverage::Coverage;
use ctcp_base::Instant;
use protection::Protection;

/// The part of a round trip without a new symbol after which the last symbols get their repair. It is longer than the pauses of a steady
/// stream that has many symbols in a round trip, and short compared with the round trip that a lost last symbol would otherwise wait.
pub(super) const TAIL_PART: u32 = 8;

pub(super) static SPEC: CodeSpec = CodeSpec {
    number: 7,
    name: "sliding",
    make: |setup| Box::new(SlidingCode::new(setup)),
    redundancies: &["from-loss", "feedback", "fixed"],
    window: WindowOf::Packets,
    spans_window: true,
    expires: true,
};

/// The sender half of the sliding-window code. It stores a byte per symbol of the window and a range per repair in flight.
#[derive(Debug)]
pub(crate) struct SlidingCode {
    coverage: Coverage,
    protection: Protection,
    /// Combinations span little, and rate counts as much as delay.
    is_thrifty: bool,
    /// Maximum number of symbols in a combination.
    length_max: u64,
    /// Key of the next combination.
    key: u16,
    /// When the last symbols get a repair if no other symbol follows.
    tail: Option<Instant>,
}

impl SlidingCode {
    pub(super) fn new(setup: &Setup) -> Self {
        Self::with_protection(setup, Protection::new(setup.redundancy))
    }

    /// For data of which the rate counts as much as the delay.
    pub(super) fn thrifty(setup: &Setup) -> Self {
        Self { is_thrifty: true, ..Self::with_protection(setup, Protection::new(setup.redundancy).thrifty()) }
    }

    fn with_protection(setup: &Setup, protection: Protection) -> Self {
        Self {
            coverage: Coverage::default(),
            protection,
            is_thrifty: false,
            length_max: u64::from(setup.limits.block_size.max(1)),
            key: 0,
            tail: None,
        }
    }

    /// Gaps for which too few repairs are in flight.
    fn short(&self, situation: &Situation) -> Option<MissingInterval> {
        let margin = self.protection.margin(situation.dispersion);
        if self.is_thrifty {
            self.coverage.short_run(margin, self.length_max)
        } else {
            self.coverage.short(margin)
        }
    }

    fn repair_of(&self, gap: MissingInterval) -> Choice {
        if self.is_thrifty { self.combination(gap.first, gap.end) } else { self.repair_up_to(gap.end) }
    }

    /// A combination of the group that is due for one ahead of feedback.
    fn repair_of_group(&self, is_tail: bool) -> Choice {
        let (first, end) = self.coverage.exposed(self.length_max, is_tail);
        self.combination(first, end)
    }

    /// A combination of these symbols, or the only one of them.
    fn combination(&self, first: SymbolIndex, end: SymbolIndex) -> Choice {
        match u16::try_from(end.saturating_sub(first)) {
            Ok(length) if length > 1 => Choice::Combination { first, length, key: self.key },
            _ => Choice::Again(first),
        }
    }

    /// A combination that reaches the symbols before `end`. It begins with the oldest symbol that the receiver may lack if that is near
    /// enough, since this one holds up everything after it.
    fn repair_up_to(&self, end: SymbolIndex) -> Choice {
        let first = self.coverage.oldest().max(end.saturating_sub(self.length_max));
        self.combination(first, self.coverage.next().min(first + self.length_max))
    }
}

/// Whether the newest symbols should get a repair now.
pub(super) fn is_owed(
    coverage: &Coverage,
    protection: &Protection,
    tail: Option<Instant>,
    now: Instant,
) -> bool {
    let is_tail = tail.is_some_and(|tail| tail <= now);
    coverage.is_newest_uncertain() && protection.is_owed(is_tail)
}

impl Scheme for SlidingCode {
    fn choose(&mut self, situation: &Situation) -> Option<Choice> {
        if let Some(gap) = self.short(situation) {
            return Some(self.repair_of(gap));
        }
        if is_owed(&self.coverage, &self.protection, self.tail, situation.now) {
            let is_tail = self.tail.is_some_and(|tail| tail <= situation.now);
            let next = self.coverage.next();
            return Some(if self.is_thrifty {
                self.repair_of_group(is_tail)
            } else {
                self.repair_up_to(next)
            });
        }
        (situation.has_data && situation.has_room).then_some(Choice::NewSymbol)
    }

    fn choose_probe(&mut self) -> Option<Choice> {
        let oldest = self.coverage.oldest();
        (oldest < self.coverage.next()).then(|| self.repair_up_to(oldest))
    }

    fn on_sent(&mut self, choice: Choice, index: SymbolIndex, situation: &Situation) -> Sent {
        let length = match choice {
            Choice::NewSymbol => {
                self.coverage.on_symbol(index);
                self.protection.on_symbol(situation);
                let is_exposed = self.protection.is_exposed();
                self.tail = is_exposed.then(|| situation.now + situation.rtt / TAIL_PART);
                return Sent { first: index, length: 1 };
            }
            Choice::Again(_) => 1,
            Choice::Combination { length, .. } => length,
        };
        let is_for_deficit = self.short(situation).is_some();
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
        self.coverage.on_feedback(feedback);
        if !self.coverage.is_newest_uncertain() {
            self.tail = None;
        }
    }

    fn on_given_up(&mut self, index: SymbolIndex) {
        self.coverage.give_up_before(index);
        if !self.coverage.is_newest_uncertain() {
            self.tail = None;
        }
    }

    fn next_repair(&self) -> Option<Instant> {
        self.tail.filter(|_| self.coverage.is_newest_uncertain() && self.protection.is_owed(true))
    }
}

#[cfg(test)]
mod tests;
