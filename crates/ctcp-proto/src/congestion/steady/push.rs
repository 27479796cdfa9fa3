//! An experiment: for two round trips more is sent. A flow that fills the link by itself delivers no more by it; one of many delivers
//! nearly as much more.

/// Round trips between two experiments, at first and when they keep showing the same.
const REST_MIN: u32 = 3;
const REST_MAX: u32 = 24;

/// How much more is sent.
const MORE: f64 = 1.3;

/// Round trips that are counted as they are; until what changed is seen; and in all.
const BEFORE: u32 = 2;
const UNSEEN: u32 = 3;
const ROUNDS: u32 = 5;

/// With so many packets before, a result counts in full.
const PACKETS: f64 = 96.0;

/// Below this the rate does not follow.
const FULL: f64 = 0.4;

/// Nothing is known.
const UNKNOWN: f64 = 0.5;

/// What an experiment found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The link is full of our own packets.
    Full,
    /// The delivery rate follows, or it is not clear.
    Follows,
}

/// Experiments of one flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Push {
    round: u32,
    before: u32,
    after: u32,
    /// How far the rate follows, as an exponent, averaged.
    follows: f64,
    rest: u32,
}

impl Default for Push {
    fn default() -> Self {
        Self { round: 0, before: 0, after: 0, follows: UNKNOWN, rest: REST_MIN }
    }
}

impl Push {
    /// Whether one is running: the window must not change.
    pub(super) fn is_running(&self) -> bool {
        self.round >= self.rest
    }

    /// Times what would be sent.
    pub(super) fn gain(&self) -> f64 {
        let is_more = (self.rest + BEFORE..self.rest + ROUNDS - 1).contains(&self.round);
        if is_more { MORE } else { 1.0 }
    }

    /// The window changed: what was counted is void.
    pub(super) fn abandon(&mut self) {
        *self = Self::default();
    }

    /// A round trip is over that brought `acked` packets. Returns what was found when an experiment is over.
    pub(super) fn on_round(&mut self, acked: u32) -> Option<Found> {
        self.round += 1;
        let round = self.round.checked_sub(self.rest + 1)?;
        if round < BEFORE {
            self.before += acked;
        } else if round >= UNSEEN {
            self.after += acked;
        }
        if round + 1 < ROUNDS {
            return None;
        }
        let ratio = f64::from(self.after.max(1)) / f64::from(self.before.max(1));
        let weight = (f64::from(self.before) / PACKETS).min(1.0);
        let exponent = (ratio.ln() / MORE.ln()).clamp(-1.0, 2.0);
        let follows = self.follows + weight * (exponent - self.follows);
        let found = if follows < FULL { Found::Full } else { Found::Follows };
        let rest = if found == Found::Full { (self.rest * 2).min(REST_MAX) } else { REST_MIN };
        *self = Self { follows, rest, ..Self::default() };
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found when the link delivers `before` and then `after` packets a round trip.
    fn found(before: u32, after: u32) -> Found {
        let mut push = Push::default();
        loop {
            let acked = if push.round >= push.rest + UNSEEN { after } else { before };
            if let Some(found) = push.on_round(acked) {
                return found;
            }
        }
    }

    #[test]
    fn a_flow_that_fills_the_link_is_told_from_one_of_many() {
        assert_eq!(found(64, 64), Found::Full);
        assert_eq!(found(64, 80), Found::Follows);
        assert_eq!(found(4, 4), Found::Follows, "too few packets to say");
    }

    #[test]
    fn more_is_sent_for_two_round_trips_of_an_experiment() {
        let mut push = Push::default();
        let gains = (0..9).filter(|_| {
            push.on_round(10);
            push.gain() > 1.0
        });
        assert_eq!(gains.count(), 2);
    }
}
