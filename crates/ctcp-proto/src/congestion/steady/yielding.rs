//! Yielding: for a round trip or more, less is sent than the link delivers. This reveals the empty path and the origin of loss.

use core::time::Duration;

use super::{Acked, INITIAL_WINDOW, Mode, Steady};
use crate::recovery::rtt::RttView;

/// While yielding, this fraction of what the link delivers is in flight.
const YIELD: f64 = 0.8;

/// Half of the window of the minimum, which thus contains at least one yield.
const YIELD_INTERVAL: Duration = Duration::from_secs(5);

impl Steady {
    /// The window while yielding.
    pub(super) fn while_yielding(&self, rtt: &RttView) -> f64 {
        let all = self.delivered_in(self.base.empty(rtt));
        all.map_or(self.tokens, |all| self.tokens.min(YIELD * all))
    }

    /// Begins and ends yielding, but not during a push, nor in the round trip that ends one (`has_pushed`).
    pub(super) fn consider_yielding(&mut self, acked: &Acked, is_empty: bool, has_pushed: bool) {
        if is_empty {
            self.empty_at = Some(acked.now);
        }
        let empty_at = *self.empty_at.get_or_insert(acked.now);
        if self.push.is_running() || has_pushed {
            return;
        }
        match self.yielding {
            Some(rounds) if rounds == 0 || !self.origin.has_enough(acked.largest_sent) => {
                self.yielding = Some(rounds + 1);
            }
            Some(_) => {
                self.origin.stop_sending(acked.largest_sent);
                self.yielding = None;
                self.empty_at = Some(acked.now);
                if let Mode::Hold(hold) = &mut self.mode {
                    hold.settle();
                }
            }
            None if matches!(self.mode, Mode::SlowStart(_)) => {}
            None if self.uses_little(acked) => {}
            None if self.origin.is_suspicious(acked.now, self.tokens) => {
                self.origin.begin(acked.largest_sent, self.tokens);
                self.yielding = Some(0);
            }
            None if acked.now - empty_at > YIELD_INTERVAL => {
                self.yielding = Some(0);
                // A good time to check an old verdict.
                if self.origin.is_worth_checking(self.tokens) {
                    self.origin.begin(acked.largest_sent, self.tokens);
                }
            }
            None => {}
        }
    }

    /// Whether the application sends so little that a queue is hardly its own, or no more than yielding would leave.
    fn uses_little(&self, acked: &Acked) -> bool {
        let is_small = self.tokens <= INITIAL_WINDOW || (acked.in_flight as f64) < YIELD * self.tokens;
        acked.is_app_limited && is_small
    }
}
