//! Copies of symbols for further paths. In [`super::PathMode::Redundant`] they are of latency-sensitive data, and the earliest one wins. In
//! other modes a path that adds little shows with them what it is capable of.
//!
//! ```text
//!   first path    7   8   9   10  11  12
//!   further path  7   8   9   [2..10)  10  11  12  [5..13)       a combination after every third copy
//! ```
//!
//! A burst on one path and a single loss on the other take the same symbol now and then. The next combination then replaces it after a few
//! milliseconds, where a repair after feedback would take a round trip, for which all later symbols of a stream wait.

use std::collections::VecDeque;

use ctcp_base::Instant;

use crate::code::Choice;
use crate::id::{ContextId, SymbolIndex};

/// Packets that may wait for a path. When more wait, the path is too slow to help the oldest ones.
const WAITING_MAX: usize = 64;

/// How long unused budget is kept, in seconds: enough for a burst of messages.
const SAVED_SECONDS: f64 = 0.25;

/// A combination follows so many copies, and spans so many symbols, or as many as a combination may.
const COMBINATION_EVERY: u64 = 3;
const COMBINATION_SPAN: u16 = 8;

/// Keys of combinations on further paths begin here, so that they differ from those of the scheme, which begin at 0.
const KEYS: u16 = 0xff00;

/// Packets that a path owes in addition to its share.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    waiting: VecDeque<(ContextId, Choice)>,
    /// The last symbol of [`Self::push_trial`].
    trial: Option<(ContextId, SymbolIndex)>,
}

impl Copies {
    /// The combination that follows the copy of a symbol, if one does. Combinations span at most `length_max` symbols.
    pub(crate) fn combination_behind(index: SymbolIndex, length_max: u16) -> Option<Choice> {
        let (end, length) = (index + 1, COMBINATION_SPAN.min(length_max));
        let first = end
            .checked_sub(u64::from(length))
            .filter(|_| length > 1 && end.is_multiple_of(COMBINATION_EVERY))?;
        let key = KEYS + (end / COMBINATION_EVERY % 0x100) as u16;
        Some(Choice::Combination { first, length, key })
    }

    /// A symbol was sent on another path, or a combination of some is due.
    pub(crate) fn push(&mut self, context: ContextId, packet: Choice) {
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back((context, packet));
    }

    /// The path must show what it is capable of, with a copy of the newest symbol if nothing else waits.
    pub(crate) fn push_trial(&mut self, context: ContextId, symbol: SymbolIndex) {
        // One that waits for the pacer gives way to a newer one.
        if self.waiting.front().is_some_and(|&(context, packet)| self.is_trial(context, packet)) {
            self.waiting.pop_front();
        }
        if self.waiting.is_empty() {
            self.trial = Some((context, symbol));
            self.push(context, Choice::Again(symbol));
        }
    }

    /// Whether [`Self::push_trial`] added this packet.
    pub(crate) fn is_trial(&self, context: ContextId, packet: Choice) -> bool {
        self.trial.is_some_and(|(of, symbol)| (of, Choice::Again(symbol)) == (context, packet))
    }

    /// The oldest packet that is still of use.
    pub(crate) fn next(
        &mut self,
        is_needed: impl Fn(ContextId, Choice) -> bool,
    ) -> Option<(ContextId, Choice)> {
        while let Some(&(context, packet)) = self.waiting.front() {
            if is_needed(context, packet) {
                return Some((context, packet));
            }
            self.waiting.pop_front();
        }
        None
    }

    /// Whether [`Self::next`] has just returned this packet.
    pub(crate) fn is_next(&self, context: ContextId, packet: Choice) -> bool {
        self.waiting.front() == Some(&(context, packet))
    }

    /// The packet that [`Self::next`] returned was sent.
    pub(crate) fn on_sent(&mut self) {
        self.waiting.pop_front();
    }
}

/// The bytes that copies may take.
#[derive(Debug, Default)]
pub(crate) struct CopyBudget {
    bytes: f64,
    updated: Option<Instant>,
}

impl CopyBudget {
    /// Takes `bytes` of a budget that grows by `bits_per_second`, unless too little is left.
    pub(crate) fn take(&mut self, now: Instant, bits_per_second: u32, bytes: f64) -> bool {
        let rate = f64::from(bits_per_second) / 8.0;
        let elapsed =
            self.updated.map_or(SAVED_SECONDS, |updated| now.saturating_since(updated).as_secs_f64());
        self.bytes = (self.bytes + rate * elapsed).min(rate * SAVED_SECONDS);
        self.updated = Some(now);
        let is_enough = self.bytes >= bytes;
        if is_enough {
            self.bytes -= bytes;
        }
        is_enough
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    #[test]
    fn the_budget_pays_for_its_rate_and_no_more() {
        let (mut budget, mut taken) = (CopyBudget::default(), 0);
        for millis in 0..10_000 {
            let now = Instant::ZERO + Duration::from_millis(millis);
            taken += u32::from(budget.take(now, 800_000, 1_000.0));
        }
        assert!((1_000..=1_025).contains(&taken), "{taken} kB in ten seconds at 100 kB/s");
    }

    #[test]
    fn symbols_that_nobody_needs_are_passed_over_and_the_oldest_give_way() {
        let mut copies = Copies::default();
        (0..100).for_each(|index| copies.push(ContextId::Messages, Choice::Again(index)));
        let again = |index| Some((ContextId::Messages, Choice::Again(index)));
        assert_eq!(copies.next(|_, _| true), again(36));
        assert_eq!(copies.next(|_, packet| packet == Choice::Again(50)), again(50));
        assert!(copies.is_next(ContextId::Messages, Choice::Again(50)));
        copies.on_sent();
        assert_eq!(copies.next(|_, _| true), again(51));
    }

    #[test]
    fn a_trial_that_waits_gives_way_to_a_newer_one_and_to_what_is_owed() {
        let mut copies = Copies::default();
        (3..6).for_each(|symbol| copies.push_trial(ContextId::Streams, symbol));
        assert_eq!(copies.next(|_, _| true), Some((ContextId::Streams, Choice::Again(5))));
        assert!(copies.is_trial(ContextId::Streams, Choice::Again(5)));
        copies.on_sent();
        assert_eq!(copies.next(|_, _| true), None);
        copies.push(ContextId::Messages, Choice::Again(1));
        copies.push_trial(ContextId::Streams, 6);
        assert_eq!(copies.next(|_, _| true), Some((ContextId::Messages, Choice::Again(1))));
    }

    #[test]
    fn every_third_copy_is_followed_by_a_combination_of_the_last_symbols() {
        let combinations: Vec<_> =
            (0..14).filter_map(|index| Copies::combination_behind(index, 512)).collect();
        let of = |first, key| Choice::Combination { first, length: 8, key };
        assert_eq!(combinations, [of(1, KEYS + 3), of(4, KEYS + 4)]);
    }
}
