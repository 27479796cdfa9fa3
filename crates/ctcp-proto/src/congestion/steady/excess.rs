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
const WINDOW_MIN: f64 = 4.0;

/// After so many, a path that became longer was a queue after all.
const ROUNDS_OF_LONGER: u32 = 8;

/// Round trips with more loss than the path's own.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Excess {
    /// Since the last answer or the last round trip without, on a path whose delay does not vary by itself.
    rounds: u32,
    /// The same since the path became longer.
    of_longer: u32,
}

impl Steady {
    /// A round trip is over. Limits the window if too much has been lost for some of them.
    pub(super) fn answer_lasting_loss(&mut self, acked: &Acked, round: &Tally) {
        let is_excess = self.is_lossy && !matches!(self.mode, Mode::SlowStart(_));
        // The average may be that of losses long ago.
        let all = f64::from(round.acked + round.lost);
        let still = u32::from(f64::from(round.lost) > self.origin.seen() * all);
        let Excess { rounds, of_longer } = self.excess;
        self.excess = Excess {
            rounds: if is_excess && !self.base.is_restless() { rounds.saturating_add(still) } else { 0 },
            of_longer: if is_excess && self.base.is_longer() { of_longer.saturating_add(still) } else { 0 },
        };
        if self.excess.of_longer >= ROUNDS_OF_LONGER {
            self.excess.of_longer = 0;
            self.base.forget_longer();
        }
        let is_clear = self.tokens >= WINDOW_MIN && self.origin.dispersion() <= DISPERSION_MAX;
        if self.excess.rounds >= ROUNDS && is_clear {
            self.excess.rounds = 0;
            let time = self.base.empty(&acked.rtt) + self.target(&acked.rtt) / 2;
            if self.limit_to(self.delivered_in(time)) {
                self.regain = None;
                if let Mode::Hold(hold) = &mut self.mode {
                    hold.slow_down();
                }
            }
        }
    }
}
