//! Copies of symbols that must arrive soon, for further paths ([`super::PathMode::Redundant`]): the earliest one wins.

use std::collections::VecDeque;

use ctcp_base::Instant;

use crate::id::{ContextId, SymbolIndex};

/// Symbols that may wait for a path. When more wait, the path is too slow to help the oldest ones.
const WAITING_MAX: usize = 64;

/// How long unused budget is kept, in seconds: enough for a burst of messages.
const SAVED_SECONDS: f64 = 0.25;

/// Symbols of which a copy goes on a path.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    waiting: VecDeque<(ContextId, SymbolIndex)>,
}

impl Copies {
    /// A symbol was sent on another path.
    pub(crate) fn push(&mut self, context: ContextId, index: SymbolIndex) {
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back((context, index));
    }

    /// The oldest symbol for which a copy is still of use.
    pub(crate) fn next(
        &mut self,
        is_needed: impl Fn(ContextId, SymbolIndex) -> bool,
    ) -> Option<(ContextId, SymbolIndex)> {
        while let Some(&(context, index)) = self.waiting.front() {
            if is_needed(context, index) {
                return Some((context, index));
            }
            self.waiting.pop_front();
        }
        None
    }

    /// Whether [`Self::next`] has just returned this symbol.
    pub(crate) fn is_next(&self, context: ContextId, index: SymbolIndex) -> bool {
        self.waiting.front() == Some(&(context, index))
    }

    /// The copy that [`Self::next`] returned was sent.
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
        (0..100).for_each(|index| copies.push(ContextId::Messages, index));
        assert_eq!(copies.next(|_, _| true), Some((ContextId::Messages, 36)));
        assert_eq!(copies.next(|_, index| index >= 50), Some((ContextId::Messages, 50)));
        assert!(copies.is_next(ContextId::Messages, 50));
        copies.on_sent();
        assert_eq!(copies.next(|_, _| true), Some((ContextId::Messages, 51)));
    }
}
