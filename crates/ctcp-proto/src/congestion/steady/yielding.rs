//! Yielding: for a round trip or more, less is sent than the link delivers. This reveals the empty path and the origin of loss.

use core::time::Duration;

use super::{Acked, INITIAL_WINDOW, Mode, Steady};
use crate::recovery::rtt::RttView;

/// While yielding, this fraction of what the link delivers is in flight.
const YIELD: f64 = 0.8;

/// The same in a deep experiment. A flow that has a part of a link whose queue is always full makes a difference only if it sends far less.
const YIELD_DEEP: f64 = 0.25;

/// A queue may always be full if more than this fraction is lost in calm moments, though no queue of more than one part of the path in this many was
/// seen. With a smaller window than the last number, a deep experiment would take longer than the delivery rate is remembered.
const LOST_AT_FULL: f64 = 0.15;
const QUEUE_AT_FULL: u32 = 10;
const WINDOW_AT_FULL: f64 = 16.0;

/// Half of the window of the minimum, which thus contains at least one yield.
const YIELD_INTERVAL: Duration = Duration::from_secs(5);

impl Steady {
    /// The window while yielding.
    pub(super) fn while_yielding(&self, rtt: &RttView) -> f64 {
        let part = if self.origin.is_deep() { YIELD_DEEP } else { YIELD };
        self.delivered_in(self.base.empty(rtt)).map_or(self.tokens, |all| self.tokens.min(part * all))
    }

    fn begin_experiment(&mut self, acked: &Acked) {
        let is_deep = self.may_always_be_full(self.base.empty(&acked.rtt));
        self.origin.begin(acked.largest_sent, self.tokens, is_deep);
    }

    /// Whether the queue may always be full, so that its delay passes for that of the empty path. On a path of several, the data would take another
    /// path, and the experiment would not end.
    fn may_always_be_full(&self, base: Duration) -> bool {
        self.tokens >= WINDOW_AT_FULL
            && !self.share.is_one_of_several
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
            // What it needs may never be sent, and what comes next should not find a small window.
            Some(_) if self.origin.is_deep() && acked.is_app_limited => {
                self.origin.abandon();
                self.yielding = None;
            }
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
                self.begin_experiment(acked);
                self.yielding = Some(0);
            }
            None if acked.now - empty_at > YIELD_INTERVAL => {
                self.yielding = Some(0);
                // A good time to check an old verdict.
                if self.origin.is_worth_checking(self.tokens) {
                    self.begin_experiment(acked);
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
    use super::super::loss_origin::Fate;
    use super::*;
    use crate::PacketNumber;
    use crate::recovery::bursts::Doubt;
    use ctcp_base::Instant;

    const RTT: Duration = Duration::from_millis(100);

    /// A flow that loses one packet in `loss_every` in calm moments, and saw a queue of so many milliseconds.
    fn steady(tokens: f64, loss_every: u64, highest_queue: u64) -> Steady {
        let mut steady = Steady::new(1_000);
        steady.tokens = tokens;
        steady.highest_queue = Duration::from_millis(highest_queue);
        for number in 0..300 {
            let (number, is_lost) = (PacketNumber(number), number % loss_every == 0);
            let fate = Fate { now: Instant::ZERO, number, is_lost, is_calm: true };
            steady.origin.on_fate(fate, Doubt { at_once: 0, do_singles_count: true }, 0.0);
        }
        steady
    }

    fn view() -> RttView {
        let variance = Duration::ZERO;
        RttView { latest: RTT, smoothed: RTT, variance, minimum: RTT, minimum_ever: RTT, standing: RTT }
    }

    #[test]
    fn a_queue_that_was_never_seen_may_always_be_full_if_much_is_lost() {
        assert!(steady(16.0, 4, 9).may_always_be_full(RTT));
        assert!(!steady(15.0, 4, 9).may_always_be_full(RTT), "so few packets tell too little");
        assert!(!steady(16.0, 8, 9).may_always_be_full(RTT), "not so much is lost");
        assert!(!steady(16.0, 4, 11).may_always_be_full(RTT), "a queue was seen");
        let mut one_of_several = steady(16.0, 4, 9);
        one_of_several.share.set(Some(0.5));
        assert!(!one_of_several.may_always_be_full(RTT));
    }

    #[test]
    fn a_deep_experiment_sends_far_less_even_if_less_is_lost_then() {
        let window = |is_deep| {
            let mut steady = steady(100.0, 8, 0);
            steady.rate = Some(1e6);
            steady.origin.begin(PacketNumber(300), steady.tokens, is_deep);
            steady.while_yielding(&view()).round()
        };
        assert_eq!([window(true), window(false)], [25.0, 80.0]);
    }

    #[test]
    fn an_application_that_sends_little_ends_a_deep_experiment() {
        let is_yielding = |is_deep, is_app_limited| {
            let mut steady = steady(100.0, 4, 0);
            steady.origin.begin(PacketNumber(300), steady.tokens, is_deep);
            steady.yielding = Some(1);
            let acked = Acked {
                now: Instant::ZERO,
                number: PacketNumber(301),
                sent_time: Instant::ZERO,
                sample: None,
                size: 1_000,
                in_flight: 10,
                largest_sent: PacketNumber(301),
                rtt: view(),
                loss_average: 0.25,
                is_app_limited,
                delivery_rate: None,
                ecn_ce: false,
            };
            steady.consider_yielding(&acked, false, false);
            steady.yielding.is_some()
        };
        assert!(!is_yielding(true, true));
        assert!(is_yielding(true, false) && is_yielding(false, true));
    }
}
