//! Loss beyond the path's own that lasts.
//!
//! The circuit breaker tolerates much more than the path loses by itself, since it judges a few packets. But the path's own loss is learned in
//! calm moments within a few windows. Loss beyond it that lasts longer comes with a queue, however short. This answers it: the window becomes what
//! arrives on the empty path. Then there are calm moments again, in which the path's own loss is learned anew.

use super::tally::Tally;
use super::{Acked, Mode, Steady};

/// So many round trips with excess loss are no chance.
const ROUNDS: u32 = 4;

/// If loss comes in bursts, it varies too much to tell: the largest variance relative to independent losses.
const DISPERSION_MAX: f64 = 2.0;

/// A smaller window has too few packets to tell.
const WINDOW_MIN: f64 = 6.0;

/// After so many since the path became longer, that was a queue.
const ROUNDS_OF_LONGER: u32 = 8;

/// Counts round trips that lose more than the path does. They need not follow each other, but the average loss must stay above the path's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Excess {
    rounds: u32,
    /// The same since the path became longer.
    of_longer: u32,
}

impl Excess {
    /// A round trip is over. `is_lossy` if the average loss is above the path's own, `is_above` if that of the round trip is, too. `is_longer` if the
    /// path counts as longer.
    fn on_round(&mut self, is_lossy: bool, is_above: bool, is_longer: bool) {
        let count = |rounds: u32, counts| if counts { rounds.saturating_add(u32::from(is_above)) } else { 0 };
        self.rounds = count(self.rounds, is_lossy);
        self.of_longer = count(self.of_longer, is_lossy && is_longer);
    }
}

impl Steady {
    /// A round trip is over. Limits the window if too much has been lost for some of them.
    pub(super) fn answer_lasting_loss(&mut self, acked: &Acked, round: &Tally) {
        let Mode::Hold(mut hold) = self.mode else {
            self.excess = Excess::default();
            return;
        };
        let all = f64::from(round.acked + round.lost);
        // The average may be that of losses long ago.
        let is_above = f64::from(round.lost) > self.origin.seen() * all;
        self.excess.on_round(self.is_lossy, is_above, self.base.is_longer());
        if self.excess.of_longer >= ROUNDS_OF_LONGER {
            self.excess = Excess::default();
            self.base.forget_mistaken(acked.now);
        }
        // A flow that sends less than it may is not limited to that.
        let is_clear =
            !self.base.is_restless() && !acked.is_app_limited && self.origin.dispersion() <= DISPERSION_MAX;
        if self.excess.rounds < ROUNDS || !is_clear || self.tokens < WINDOW_MIN {
            return;
        }
        self.excess.rounds = 0;
        let time = self.base.empty(&acked.rtt) + self.target(&acked.rtt) / 2;
        if self.limit_to(self.delivered_in(time)) {
            self.regain = None;
            self.restart.forbid();
            // What arrives next was sent with the window from before.
            hold.on_congestion();
            hold.slow_down();
            hold.settle();
            self.mode = Mode::Hold(hold);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_round_trips_with_more_loss_count_and_only_while_the_average_is_high() {
        let mut excess = Excess::default();
        (0..3).for_each(|_| excess.on_round(true, true, false));
        assert_eq!(excess, Excess { rounds: 3, of_longer: 0 });
        excess.on_round(true, false, true);
        assert_eq!(excess, Excess { rounds: 3, of_longer: 0 }, "the losses are old");
        (0..2).for_each(|_| excess.on_round(true, true, true));
        assert_eq!(excess, Excess { rounds: 5, of_longer: 2 });
        excess.on_round(true, true, false);
        assert_eq!(excess, Excess { rounds: 6, of_longer: 0 }, "the path is no longer any more");
        excess.on_round(false, true, true);
        assert_eq!(excess, Excess::default());
    }
}
