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
pub(super) mod repair_state;

use super::{Choice, CodeSpec, Feedback, Scheme, Sent, Setup, Situation, WindowOf};
use crate::id::SymbolIndex;
use crate::wire::MissingInterval;
use ctcp_base::Instant;
use protection::Protection;
use repair_state::{Owed, RepairState};

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
    state: RepairState,
    /// Combinations span little, and rate counts as much as delay.
    is_thrifty: bool,
    /// Maximum number of symbols in a combination.
    length_max: u64,
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
            state: RepairState::new(protection),
            is_thrifty: false,
            length_max: u64::from(setup.limits.block_size.max(1)),
        }
    }

    /// Gaps for which too few repairs are in flight.
    fn short(&self, situation: &Situation) -> Option<MissingInterval> {
        let margin = self.state.protection.margin(situation.dispersion);
        if self.is_thrifty {
            self.state.coverage.short_run(margin, self.length_max)
        } else {
            self.state.coverage.short(margin)
        }
    }

    fn repair_of(&self, gap: MissingInterval) -> Choice {
        if self.is_thrifty { self.combination(gap.first, gap.end) } else { self.repair_up_to(gap.end) }
    }

    /// A repair ahead of feedback.
    fn repair_ahead(&self, owed: Owed) -> Choice {
        if self.is_thrifty {
            let (first, end) = self.state.coverage.exposed(self.length_max, owed.is_tail);
            self.combination(first, end)
        } else {
            self.repair_up_to(self.state.coverage.next())
        }
    }

    /// A combination of these symbols, or the only one of them.
    fn combination(&self, first: SymbolIndex, end: SymbolIndex) -> Choice {
        match u16::try_from(end.saturating_sub(first)) {
            Ok(length) if length > 1 => Choice::Combination { first, length, key: self.state.key },
            _ => Choice::Again(first),
        }
    }

    /// A combination that reaches the symbols before `end`. It begins with the oldest symbol that the receiver may lack if that is near
    /// enough, since this one holds up everything after it.
    fn repair_up_to(&self, end: SymbolIndex) -> Choice {
        let first = self.state.coverage.oldest().max(end.saturating_sub(self.length_max));
        self.combination(first, self.state.coverage.next().min(first + self.length_max))
    }
}

impl Scheme for SlidingCode {
    fn choose(&mut self, situation: &Situation) -> Option<Choice> {
        if let Some(gap) = self.short(situation) {
            return Some(self.repair_of(gap));
        }
        if let Some(owed) = self.state.owed(situation.now) {
            return Some(self.repair_ahead(owed));
        }
        (situation.has_data && situation.has_room).then_some(Choice::NewSymbol)
    }

    fn choose_probe(&mut self) -> Option<Choice> {
        let oldest = self.state.coverage.oldest();
        (oldest < self.state.coverage.next()).then(|| self.repair_up_to(oldest))
    }

    fn on_sent(&mut self, choice: Choice, index: SymbolIndex, situation: &Situation) -> Sent {
        if choice == Choice::NewSymbol {
            self.state.coverage.on_symbol(index);
            return self.state.on_symbol(index, situation);
        }
        let is_for_deficit = self.short(situation).is_some();
        self.state.on_repair(choice, index, is_for_deficit, situation)
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
        self.state.on_feedback(feedback);
    }

    fn on_given_up(&mut self, index: SymbolIndex) {
        self.state.on_given_up(index);
    }

    fn next_repair(&self) -> Option<Instant> {
        self.state.next_repair()
    }
}

#[cfg(test)]
mod tests;
