//! What happened in a round trip, or in a stretch of samples.

use core::time::Duration;

/// Fewer packets than these say nothing about a share of them.
const PACKETS_MIN: u32 = 16;

/// Samples and losses of some time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) lowest: Option<Duration>,
    pub(super) highest: Duration,
    /// The sum of samples, and in square seconds that of their squares.
    sum: Duration,
    squares: f64,
    pub(super) acked: u32,
    pub(super) lost: u32,
}

impl Tally {
    /// A packet was acknowledged after `rtt`.
    pub(super) fn on_sample(&mut self, rtt: Duration) {
        self.lowest = Some(self.lowest.map_or(rtt, |lowest| lowest.min(rtt)));
        self.highest = self.highest.max(rtt);
        self.sum += rtt;
        self.squares += rtt.as_secs_f64().powi(2);
        self.acked += 1;
    }

    /// Adds the samples of `other` to the mean and the deviation.
    pub(super) fn join(&mut self, other: &Self) {
        self.sum += other.sum;
        self.squares += other.squares;
        self.acked += other.acked;
    }

    /// The mean of the samples.
    pub(super) fn mean(&self) -> Option<Duration> {
        (self.acked > 0).then(|| self.sum / self.acked)
    }

    /// Their standard deviation.
    pub(super) fn deviation(&self) -> Duration {
        let Some(mean) = self.mean() else { return Duration::ZERO };
        let variance = self.squares / f64::from(self.acked) - mean.as_secs_f64().powi(2);
        Duration::from_secs_f64(variance.max(0.0).sqrt())
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
