//! Whether a packet took little longer than on the empty path, so that its loss would be the path's own. And the longest queue seen.

use core::time::Duration;

use super::Steady;
use super::loss::LARGE;
use crate::recovery::rtt::RttView;

/// The variance of the round trip counts as high above this fraction of the base.
const RESTLESS: u32 = 10;

/// On a path measured by means, samples within this many standard deviations of its noise are calm.
const CALM_DEVIATIONS: f64 = 1.4;

/// While the application sends less than the path carries, packets that leave together wait for each other. A queue below this fraction of
/// the base and below this time, which is no longer than any before and was much shorter within a round trip, is then taken for that. Many
/// such flows fill a queue of that size, too, so it has to be short.
const OWN_QUEUE: u32 = 8;
const OWN_QUEUE_MAX: Duration = Duration::from_micros(2_500);

/// A queue of fewer packets of this flow fills and drains between two samples, so it may overflow unseen.
const VISIBLE_PACKETS_MIN: f64 = 5.0;

/// Above this window, noise can be distinguished from a queue.
pub(super) const NOISE_WINDOW_MIN: f64 = 12.0;

impl Steady {
    /// Whether a packet whose neighbours took at most `longest` took little longer than the empty path. On a path whose delay varies by
    /// itself few samples are below the target, so the limit is higher there.
    pub(super) fn is_calm(&self, rtt: &RttView, longest: Duration) -> bool {
        let base = self.base.empty(rtt);
        let target = self.target(rtt);
        let queue = if self.base.is_restless() {
            target.max(self.base.noise().mul_f64(CALM_DEVIATIONS))
        } else if rtt.variance > base / RESTLESS {
            target
        } else if self.tokens > NOISE_WINDOW_MIN {
            target / 2 + 2 * self.base.noise()
        } else {
            target / 2
        };
        let may_be_own = self.is_app_limited && self.has_emptied;
        let own = if may_be_own { self.highest_queue.min(own_queue(base)) } else { Duration::ZERO };
        longest <= base + queue.max(own)
    }

    /// The longest queue that was certainly one: what all samples of a stretch exceed. With a small window, jitter alone
    /// may delay all packets of a stretch, so only what exceeds the mean of the empty path counts. A large window has more samples in one. A queue
    /// of few packets counts as none.
    pub(super) fn visible_queue(&self, rtt: &RttView) -> Duration {
        let may_be_jitter = self.base.is_restless() && self.tokens < LARGE;
        let usual_delay = if may_be_jitter {
            self.base.empty(rtt).saturating_sub(rtt.minimum_ever)
        } else {
            Duration::ZERO
        };
        let queue = self.highest_stretch.saturating_sub(usual_delay);
        let is_seen = self.delivered_in(queue).is_none_or(|packets| packets >= VISIBLE_PACKETS_MIN);
        if is_seen { queue } else { Duration::ZERO }
    }
}

/// The longest queue that packets which leave together may cause on a path of `base`.
pub(super) fn own_queue(base: Duration) -> Duration {
    (base / OWN_QUEUE).min(OWN_QUEUE_MAX)
}

#[cfg(test)]
mod tests {
    use super::super::tally::Tally;
    use super::*;
    use crate::PacketNumber;
    use crate::congestion::Lost;
    use ctcp_base::Instant;

    const RTT: Duration = Duration::from_millis(20);
    const DATAGRAM: u64 = 1_000;

    fn view(variance: Duration) -> RttView {
        RttView { latest: RTT, smoothed: RTT, variance, minimum: RTT, minimum_ever: RTT, standing: RTT }
    }

    #[test]
    fn a_queue_of_few_packets_is_not_visible() {
        let mut steady = Steady::new(DATAGRAM);
        steady.highest_stretch = Duration::from_millis(10);
        let visible = [None, Some(499_000.0), Some(501_000.0)].map(|rate| {
            steady.rate = rate;
            steady.visible_queue(&view(RTT / 10)).as_millis()
        });
        assert_eq!(visible, [10, 0, 10]);
    }

    #[test]
    fn several_neighbours_show_a_calm_moment_where_delay_varies_and_the_window_is_small() {
        let is_calm = |tokens: f64, variance: Duration| {
            let mut steady = Steady::new(DATAGRAM);
            steady.tokens = tokens;
            let mut round = Tally::default();
            round.on_packet(RTT);
            for _ in 0..8 {
                steady.base.on_round(Instant::ZERO, &round, &view(variance), tokens, false);
            }
            for (number, millis) in [(0, 20), (1, 40), (2, 40), (4, 40), (5, 20)] {
                steady.neighbours.on_sample(PacketNumber(number), Duration::from_millis(millis));
            }
            steady.is_calm_loss(&Lost {
                now: Instant::ZERO,
                number: PacketNumber(3),
                sent_time: Instant::ZERO,
                size: DATAGRAM,
                in_flight: 4,
                largest_sent: PacketNumber(9),
                rtt: view(variance),
                loss_average: 0.0,
            })
        };
        let varying = RTT / 10;
        assert!(is_calm(8.0, varying));
        assert!(!is_calm(12.0, varying) && !is_calm(8.0, Duration::ZERO));
    }
}
