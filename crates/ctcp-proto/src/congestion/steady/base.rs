//! The round trip of the empty path, and the queue beyond it.
//!
//! Where the path's delay varies little, the base is the smallest round trip of ten seconds, and the queue is what the luckiest packet
//! of a round trip waits beyond it. Where delay varies by itself (jitter), hardly a packet takes the smallest time. There both are means over
//! round trips, which noise leaves alone.
//!
//! While more is lost than the path loses by itself, the base may fall but not rise: a full queue that lasts never becomes the
//! base of those who fill it.

use core::time::Duration;

use ctcp_base::Instant;

use super::noise::Noise;
use super::tally::Tally;
use crate::recovery::rtt::{MINIMUM_WINDOW, RttView};
use crate::recovery::sliding::SlidingMinimum;

/// A mean needs so many samples.
const SAMPLES: u32 = 8;

/// With fewer packets in a round trip, means say little.
const WINDOW_MIN: f64 = 12.0;

/// A path varies by itself when its samples deviate by this part of the base, in the quietest of the last round trips; and no longer
/// when by this.
const RESTLESS: u32 = 30;
const CALMED: u32 = 48;

/// What is known of the empty path.
#[derive(Debug)]
pub(super) struct Base {
    floor: Option<Duration>,
    /// The path became longer than the smallest round trip says.
    longer: Option<Duration>,
    means: SlidingMinimum,
    mean: Option<Duration>,
    /// The mean of the newest samples.
    level: Option<Duration>,
    samples: Tally,
    noise: Noise,
    is_restless: bool,
}

impl Default for Base {
    fn default() -> Self {
        Self {
            floor: None,
            longer: None,
            means: SlidingMinimum::new(nanos(MINIMUM_WINDOW)),
            mean: None,
            level: None,
            samples: Tally::default(),
            noise: Noise::default(),
            is_restless: false,
        }
    }
}

impl Base {
    /// A round trip of `round` is over; `lowest` is its smallest sample, `window` the number of packets in it.
    pub(super) fn on_round(
        &mut self,
        now: Instant,
        round: &Tally,
        lowest: Duration,
        rtt: &RttView,
        window: f64,
    ) {
        if self.longer.is_some_and(|base| lowest < base) {
            self.longer = None;
        }
        self.noise.on_round(lowest, rtt.variance);
        self.samples.join(round);
        if self.samples.acked >= SAMPLES {
            let samples = core::mem::take(&mut self.samples);
            self.level = samples.mean();
            self.noise.on_deviation(samples.deviation());
            self.means.insert(now.as_nanos(), nanos(self.level.unwrap_or(lowest)));
        }
        let part = if self.is_restless { CALMED } else { RESTLESS };
        self.is_restless = window >= WINDOW_MIN && self.noise.deviation() > rtt.minimum / part;
    }

    /// Lets the base follow the path. `is_lossy`: more is lost than the path loses by itself.
    pub(super) fn follow(&mut self, now: Instant, rtt: &RttView, is_lossy: bool) {
        self.floor = kept_low(self.floor, rtt.minimum, is_lossy);
        if let Some(mean) = self.means.minimum(now.as_nanos()).map(Duration::from_nanos) {
            self.mean = kept_low(self.mean, mean, is_lossy);
        }
    }

    /// The smallest round trip.
    pub(super) fn minimum(&self, rtt: &RttView) -> Duration {
        self.floor.map_or(rtt.minimum, |floor| floor.min(rtt.minimum))
    }

    /// The round trip of the empty path.
    pub(super) fn empty(&self, rtt: &RttView) -> Duration {
        let minimum = self.minimum(rtt);
        let usual = self.mean.filter(|_| self.is_restless).map_or(minimum, |mean| mean.max(minimum));
        self.longer.map_or(usual, |longer| longer.max(usual))
    }

    /// The queue of the last round trip, whose smallest sample is `lowest`.
    pub(super) fn queue(&self, rtt: &RttView, lowest: Duration) -> Duration {
        let base = self.empty(rtt);
        let level = if self.is_restless { self.level } else { self.noise.standing(base) };
        level.unwrap_or(lowest).saturating_sub(base)
    }

    /// The path's delay varies by itself.
    pub(super) fn is_restless(&self) -> bool {
        self.is_restless
    }

    /// The standard deviation of samples that is the path's own.
    pub(super) fn deviation(&self) -> Duration {
        self.noise.deviation()
    }

    /// The path is longer than was thought.
    pub(super) fn become_longer(&mut self, base: Duration) {
        self.longer = Some(base);
    }

    /// What was said of a longer path is void.
    pub(super) fn forget_longer(&mut self) {
        self.longer = None;
    }
}

/// `now`, or what was before if that is smaller and may not rise.
fn kept_low(before: Option<Duration>, now: Duration, is_kept: bool) -> Option<Duration> {
    Some(before.filter(|_| is_kept).map_or(now, |before| before.min(now)))
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
