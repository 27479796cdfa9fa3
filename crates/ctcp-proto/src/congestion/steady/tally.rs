//! What happened in a round trip, or in a stretch of samples.

use core::time::Duration;

/// Fewer packets than these say nothing about a share of them.
const PACKETS_MIN: u32 = 16;

/// Samples and losses of some time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) lowest: Option<Duration>,
    pub(super) highest: Duration,
    pub(super) acked: u32,
    pub(super) lost: u32,
}

impl Tally {
    /// A packet was acknowledged after `rtt`.
    pub(super) fn on_sample(&mut self, rtt: Duration) {
        self.lowest = Some(self.lowest.map_or(rtt, |lowest| lowest.min(rtt)));
        self.highest = self.highest.max(rtt);
        self.acked += 1;
    }

    /// What even the smallest sample has above `base`: a queue, for noise spares some.
    pub(super) fn queue(&self, base: Duration) -> Duration {
        self.lowest.map_or(Duration::ZERO, |lowest| lowest.saturating_sub(base))
    }

    /// The share of packets lost; `None` for too few to say.
    pub(super) fn loss(&self) -> Option<f64> {
        let all = self.acked + self.lost;
        (all >= PACKETS_MIN).then(|| f64::from(self.lost) / f64::from(all))
    }
}
