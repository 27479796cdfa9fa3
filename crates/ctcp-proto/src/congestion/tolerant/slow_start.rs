//! Doubling until there is a queue, or more packets bring no more (RFC 9406 and draft-ietf-ccwg-bbr 4.3.1 in spirit).

use core::time::Duration;

use super::super::Acked;
use super::interval::Interval;

const QUEUE_MIN: Duration = Duration::from_millis(2);
const SAMPLES: u32 = 4;
const GROWTH: f64 = 1.25;
/// The rate grows as the window does.
const FOLLOWS: f64 = 1.4;
/// More lost than this above what the path loses by itself, while the rate does not follow, is a full link.
const MORE_LOSS: f64 = 0.1;
const SLOWER: f64 = 1.15;
const MUCH_LOSS: f64 = 0.4;
const FLAT_MAX: u32 = 3;
const FLAT_MAX_RESTLESS: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum End {
    /// The link is full.
    Full,
    /// The link is full, and its delay varies by itself: the mean round trip without a queue.
    Restless(Duration),
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SlowStart {
    /// Samples in a row that saw a queue.
    high: u32,
    /// A queue was seen: no growth until it is judged. Intervals since.
    frozen: Option<u32>,
    /// Delay varies: it says nothing.
    is_restless: bool,
    skip: bool,
    follows: bool,
    lossy: u32,
    least_loss: Option<f64>,
    /// The mean and the least round trip of the last interval in which the rate grew as the window did.
    empty: Option<(Duration, Duration)>,
    flat: u32,
    best: f64,
}

impl SlowStart {
    /// On a path whose delay varies by itself, and which has room above what `interval` shows.
    pub(super) fn restless(interval: &Interval) -> Self {
        Self {
            is_restless: true,
            skip: true,
            empty: Some((interval.mean, interval.lowest)),
            best: interval.rate(),
            ..Self::default()
        }
    }

    /// The shortest queue that is told from noise.
    fn visible(base: Duration) -> Duration {
        QUEUE_MIN.max(base / 8)
    }

    /// By how much samples without a queue are longer than the empty path.
    /// Delay varies by itself here.
    pub(super) fn is_restless(&self) -> bool {
        self.is_restless
    }

    /// Whether `interval` shows that the rate grew as the window did.
    pub(super) fn follows(&self, interval: &Interval) -> bool {
        interval.rate() > self.best * FOLLOWS
    }

    pub(super) fn best_rate(&self) -> f64 {
        self.best
    }

    pub(super) fn may_grow(&mut self, acked: &Acked, base: Duration) -> bool {
        if acked.is_sample && !self.is_restless {
            let is_high = acked.rtt.latest > base + Self::visible(base);
            self.high = if is_high { self.high + 1 } else { 0 };
            if self.high >= SAMPLES {
                self.frozen.get_or_insert(0);
            }
        }
        self.frozen.is_none()
    }

    pub(super) fn on_interval(&mut self, interval: &Interval, base: Duration, innocent: f64, deviation: Duration) -> Option<End> {
        let rate = interval.rate();
        self.follows = rate > self.best * FOLLOWS && self.best > 0.0;
        if core::mem::take(&mut self.skip) {
            return None;
        }
        let is_grown = rate > self.best * GROWTH;
        if rate > self.best * FOLLOWS || self.empty.is_none() {
            self.empty = Some((interval.mean, interval.lowest));
        }
        self.flat = if is_grown { 0 } else { self.flat + 1 };
        self.best = self.best.max(rate);
        let least = self.least_loss.unwrap_or(1.0).max(innocent);
        let is_lossy = !self.follows && interval.loss() > innocent + MORE_LOSS;
        let is_more_lossy = self.is_restless && interval.loss() > least + MORE_LOSS;
        self.least_loss = Some(self.least_loss.unwrap_or(1.0).min(interval.loss()));
        if is_more_lossy {
            return Some(self.end(interval));
        }
        self.lossy = if is_lossy { self.lossy + 1 } else { 0 };
        // One interval may be a burst.
        if self.flat > 0 && (self.lossy >= 2 || is_lossy && interval.loss() > innocent + MUCH_LOSS) {
            return Some(self.end(interval));
        }
        if let Some(intervals) = self.frozen {
            let queue = interval.lowest.saturating_sub(base);
            if deviation > (queue / 4).max(base / 32) && intervals > 0 {
                self.is_restless = true;
                // The next interval still shows the window of now.
                (self.frozen, self.flat, self.skip) = (None, 0, true);
                self.best = rate;
                return None;
            }
            if intervals == 0 {
                // What was sent before the freeze is still being acknowledged.
                self.frozen = Some(1);
                return None;
            }
            if queue <= Self::visible(base) {
                // A passing delay.
                (self.frozen, self.high) = (None, 0);
                return None;
            }
            return Some(End::Full);
        }
        // More in flight, and it only takes longer.
        let is_slower = self.empty.is_some_and(|(mean, _)| interval.mean > mean.mul_f64(SLOWER));
        if self.is_restless && !self.follows && is_slower {
            return Some(self.end(interval));
        }
        let flat_max = if self.is_restless { FLAT_MAX_RESTLESS } else { FLAT_MAX };
        (self.flat >= flat_max).then(|| self.end(interval))
    }

    fn end(&self, interval: &Interval) -> End {
        let mean = self.empty.map_or(interval.mean, |(mean, _)| mean);
        if self.is_restless { End::Restless(mean) } else { End::Full }
    }
}
