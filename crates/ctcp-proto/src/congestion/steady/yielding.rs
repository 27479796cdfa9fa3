//! Yielding: for a round trip or more, less is sent than the link delivers. This reveals the empty path and the origin of loss.

use core::time::Duration;

use super::{Acked, INITIAL_WINDOW, Mode, Steady};
use crate::recovery::rtt::RttView;

/// While yielding, this fraction of what the link delivers is in flight.
const YIELD: f64 = 0.8;

/// The same in an experiment if the queue may always be full, so that its delay passes for the empty path. A flow that has a part of such a link
/// makes a difference only if it sends far less.
const YIELD_FULL: f64 = 0.25;

/// A queue may always be full if more than this fraction is lost in calm moments, though no queue of more than one part of the path in this many was
/// seen. A smaller window would take too long to send enough.
const LOST_AT_FULL: f64 = 0.15;
const QUEUE_AT_FULL: u32 = 10;
const WINDOW_AT_FULL: f64 = 16.0;

/// Half of the window of the minimum, which thus contains at least one yield.
const YIELD_INTERVAL: Duration = Duration::from_secs(5);

impl Steady {
    /// The window while yielding.
    pub(super) fn while_yielding(&self, rtt: &RttView) -> f64 {
        let base = self.base.empty(rtt);
        let part = if self.may_always_be_full(base) { YIELD_FULL } else { YIELD };
        self.delivered_in(base).map_or(self.tokens, |all| self.tokens.min(part * all))
    }

    /// Whether an experiment is running and the delay of the empty path may be that of a queue which is always full. On a path of several, the data
    /// would take another path, and the experiment would not end.
    fn may_always_be_full(&self, base: Duration) -> bool {
        let may_send_less = self.tokens >= WINDOW_AT_FULL && !self.share.is_one_of_several;
        may_send_less
            && self.origin.is_experimenting()
            && self.origin.seen() > LOST_AT_FULL
            && self.highest_queue < base / QUEUE_AT_FULL
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PacketNumber;
    use crate::congestion::steady::loss_origin::Fate;
    use crate::recovery::bursts::Doubt;
    use ctcp_base::Instant;

    #[test]
    fn an_experiment_sends_far_less_where_the_queue_may_always_be_full() {
        let rtt = Duration::from_millis(100);
        let view = RttView {
            latest: rtt,
            smoothed: rtt,
            variance: Duration::ZERO,
            minimum: rtt,
            minimum_ever: rtt,
            standing: rtt,
        };
        let window = |loss_every: u64, highest_queue: u64, is_experiment: bool| {
            let mut steady = Steady::new(1_000);
            steady.tokens = 100.0;
            steady.rate = Some(1e6);
            steady.highest_queue = Duration::from_millis(highest_queue);
            for number in 0..300 {
                let (number, is_lost) = (PacketNumber(number), number % loss_every == 0);
                let fate = Fate { now: Instant::ZERO, number, is_lost, is_calm: true };
                steady.origin.on_fate(fate, Doubt { at_once: 0, do_singles_count: true }, 0.0);
            }
            if is_experiment {
                steady.origin.begin(PacketNumber(300), steady.tokens);
            }
            steady.while_yielding(&view).round()
        };
        assert_eq!(window(4, 9, true), 25.0);
        assert_eq!(window(4, 11, true), 80.0, "a queue was seen, so the path is known");
        assert_eq!(window(8, 9, true), 80.0, "not so much is lost");
        assert_eq!(window(4, 9, false), 80.0, "not an experiment");
    }
}
