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
    /// may delay all packets of a stretch, so only what exceeds the mean of the empty path counts. A large window has more samples in one.
    pub(super) fn visible_queue(&self, rtt: &RttView) -> Duration {
        let may_be_jitter = self.base.is_restless() && self.tokens < LARGE;
        let usual_delay = if may_be_jitter {
            self.base.empty(rtt).saturating_sub(rtt.minimum_ever)
        } else {
            Duration::ZERO
        };
        self.highest_stretch.saturating_sub(usual_delay)
    }
}

/// The longest queue that packets which leave together may cause on a path of `base`.
pub(super) fn own_queue(base: Duration) -> Duration {
    (base / OWN_QUEUE).min(OWN_QUEUE_MAX)
}
