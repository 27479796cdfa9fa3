//! The round trip of the empty path (the base), and the queue beyond it.
//!
//! If the path's delay varies little, the base is the smallest round trip of ten seconds, or that of full packets ([`FullSize`]). The queue is
//! the excess of the fastest packet of a round trip. If delay varies by itself (jitter), hardly any packet takes the smallest time. Then both
//! are means over round trips, on which noise has no effect.
//!
//! While more is lost than the path loses by itself, soon after competing, and soon after a longer path turned out to be a queue, the base may
//! fall but not rise. A queue among many flows can
//! last, and must not become the base of those that fill it.

use core::time::Duration;

use ctcp_base::Instant;

use super::calm::NOISE_WINDOW_MIN;
use super::effect;
use super::full_size::FullSize;
use super::noise::Noise;
use super::samples::Samples;
use super::tally::Tally;
use crate::recovery::rtt::{MINIMUM_WINDOW, RttView, nanos};
use crate::recovery::sliding::SlidingMinimum;

/// Minimum number of samples for a mean.
const SAMPLES: u32 = 8;

/// After so many noisy series, means are used for so many series after the last one, and until they are within this fraction of the smallest
/// sample. A packet that is late holds up those behind it. So when many are sent, nearly all are late, and the delay varies little though it
/// is longer.
const NOISY_SERIES: u32 = 4;
const CALM_SERIES: u32 = 32;
const NEAR_MINIMUM: u32 = 16;

/// A longer path is forgotten if a packet takes less by one part in this many of what was added, and otherwise becomes its time. With a
/// small window there may be many flows whose queue was taken for a path, so the second number holds then. What adds at most one part in
/// the third number of the base before may be this flow's own full queue, and is forgotten at once.
const SHORTER: u32 = 8;
const SHORTER_OF_SMALL: u32 = 256;
const MUCH_LONGER: u32 = 8;

/// With a smaller window, means are used only while there is noise.
const WINDOW_MIN: f64 = 32.0;

/// But a window in which no noise can be found shows it only now and then. With at least so many packets, means are used further after so many
/// noisy series.
const WINDOW_MIN_OF_SMALL: f64 = 4.0;
const NOISY_SERIES_OF_SMALL: u32 = 12;

/// If a longer path of a large window is forgotten within so much time, it was the queue of others, as when CUBIC's window grows little for a
/// while. For the second of these times no other path counts as longer.
const MISTAKEN_WITHIN: Duration = Duration::from_secs(10);
const MISTAKEN: Duration = Duration::from_secs(16);

/// A path that became longer.
#[derive(Clone, Copy, Debug)]
struct Longer {
    base: Duration,
    since: Instant,
}

/// Estimates of the empty path.
#[derive(Debug)]
pub(super) struct Base {
    floor: Option<Duration>,
    full: FullSize,
    /// Set if the path became longer than the smallest round trip.
    longer: Option<Longer>,
    /// When a longer path last turned out to be a queue.
    mistaken_at: Option<Instant>,
    means: SlidingMinimum,
    mean: Option<Duration>,
    /// The mean of the latest samples.
    level: Option<Duration>,
    /// Samples that were too few for a mean so far, and the largest window before or after one of their round trips.
    samples: Samples,
    series_window: f64,
    /// The window after the last round trip.
    window_before: f64,
    noise: Noise,
    /// Means are used, because the path's delay varies by itself.
    is_restless: bool,
    /// Noisy series since means are used, and consecutive ones without noise.
    noisy_series: u32,
    calm_series: u32,
}

impl Default for Base {
    fn default() -> Self {
        Self {
            floor: None,
            full: FullSize::default(),
            longer: None,
            mistaken_at: None,
            means: SlidingMinimum::new(nanos(MINIMUM_WINDOW)),
            mean: None,
            level: None,
            samples: Samples::default(),
            series_window: 0.0,
            window_before: 0.0,
            noise: Noise::default(),
            is_restless: false,
            noisy_series: 0,
            calm_series: 0,
        }
    }
}

impl Base {
    /// The round trips of full packets.
    pub(super) fn full_size(&mut self) -> &mut FullSize {
        &mut self.full
    }

    /// The retransmission timeout expired. The window after it has little to do with the one before.
    pub(super) fn on_timeout(&mut self) {
        self.end_series();
        self.window_before = 0.0;
    }

    fn end_series(&mut self) {
        self.samples = Samples::default();
        self.series_window = 0.0;
    }

    /// Ends a round trip `round` with `window` packets. `is_kept` if others may fill the queue, so that the base must not rise.
    pub(super) fn on_round(
        &mut self,
        now: Instant,
        round: &Tally,
        rtt: &RttView,
        window: f64,
        is_kept: bool,
    ) {
        let Some(lowest) = round.lowest else { return };
        let before = self.full.empty(self.minimum(rtt));
        if let Some(longer) = self.longer {
            let base = still_longer(longer.base, lowest, before, window);
            self.longer = base.map(|base| Longer { base, ..longer });
            let is_much = longer.base > before + before / MUCH_LONGER && window >= effect::WINDOW_MIN;
            if base.is_none() && is_much && now.saturating_since(longer.since) < MISTAKEN_WITHIN {
                self.mistaken_at = Some(now);
            }
        }
        self.floor = kept_low(self.floor, rtt.minimum, is_kept);
        self.full.on_round(now, self.minimum(rtt), is_kept);
        // The window may have been reduced at the end of the round trip.
        let sent_with = core::mem::replace(&mut self.window_before, window).max(window);
        self.series_window = self.series_window.max(sent_with);
        self.samples.join(&round.samples);
        self.noise.on_round(lowest, rtt.variance);
        if self.samples.count() >= SAMPLES {
            let samples = self.samples;
            self.noise.on_samples(&samples, self.series_window);
            self.end_series();
            if self.noise.is_noisy() {
                self.noisy_series = self.noisy_series.saturating_add(1);
                self.calm_series = 0;
            } else {
                self.calm_series = self.calm_series.saturating_add(1);
            }
            self.level = samples.mean();
            self.means.insert(now.as_nanos(), nanos(self.level.unwrap_or(lowest)));
        }
        if let Some(mean) = self.means.minimum(now.as_nanos()).map(Duration::from_nanos) {
            self.mean = kept_low(self.mean, mean, is_kept);
        }
        self.is_restless = self.noise.is_noisy() || self.is_restless && self.stays_restless(rtt, window);
        if !self.is_restless {
            self.noisy_series = 0;
        }
    }

    /// Whether means are still used though there is no noise.
    fn stays_restless(&self, rtt: &RttView, window: f64) -> bool {
        let excess = self.mean.map_or(Duration::ZERO, |mean| mean.saturating_sub(rtt.minimum));
        let is_known = if window < NOISE_WINDOW_MIN {
            self.noisy_series >= NOISY_SERIES_OF_SMALL && window >= WINDOW_MIN_OF_SMALL
        } else {
            self.noisy_series >= NOISY_SERIES && window >= WINDOW_MIN
        };
        is_known && (self.calm_series < CALM_SERIES || excess > rtt.minimum / NEAR_MINIMUM)
    }

    /// The shortest round trip of a packet of any size.
    fn minimum(&self, rtt: &RttView) -> Duration {
        self.floor.map_or(rtt.minimum, |floor| floor.min(rtt.minimum))
    }

    /// The round trip of the empty path.
    pub(super) fn empty(&self, rtt: &RttView) -> Duration {
        let minimum = self.full.empty(self.minimum(rtt));
        let usual = self.mean.filter(|_| self.is_restless()).map_or(minimum, |mean| mean.max(minimum));
        self.longer.map_or(usual, |longer| longer.base.max(usual))
    }

    /// The queue of the last round trip, whose smallest sample is `lowest`.
    pub(super) fn queue(&self, rtt: &RttView, lowest: Duration) -> Duration {
        let base = self.empty(rtt);
        let level = if self.is_restless() { self.level } else { self.noise.standing(base) };
        level.unwrap_or(lowest).saturating_sub(base)
    }

    /// Whether the path's delay varies by itself.
    pub(super) fn is_restless(&self) -> bool {
        self.is_restless
    }

    /// Whether the delay of the latest packets varies, so that more samples say more.
    pub(super) fn is_noisy(&self) -> bool {
        self.noise.is_noisy()
    }

    /// Whether samples vary, by themselves or because of a queue.
    pub(super) fn varies(&self, rtt: &RttView) -> bool {
        self.noise.varies(self.empty(rtt))
    }

    /// The standard deviation of samples that is due to the path itself.
    pub(super) fn noise(&self) -> Duration {
        self.noise.quietest()
    }

    /// Declares `queue` to be part of the path, since no back-off changes it.
    pub(super) fn become_longer(&mut self, now: Instant, rtt: &RttView, queue: Duration) {
        if let Some(level) = self.level.filter(|_| self.is_restless()) {
            self.means = SlidingMinimum::new(nanos(MINIMUM_WINDOW));
            self.means.insert(now.as_nanos(), nanos(level));
            self.mean = Some(level);
        } else {
            self.longer = Some(Longer { base: self.empty(rtt) + queue, since: now });
        }
    }

    /// Whether a longer path turned out lately to be a queue.
    pub(super) fn was_mistaken(&self, now: Instant) -> bool {
        self.mistaken_at.is_some_and(|at| now.saturating_since(at) < MISTAKEN)
    }

    /// Whether the path became longer than the smallest round trip.
    pub(super) fn is_longer(&self) -> bool {
        self.longer.is_some()
    }

    /// Discards the estimate of a longer path, which was a queue.
    pub(super) fn forget_mistaken(&mut self, now: Instant) {
        self.longer = None;
        self.mistaken_at = Some(now);
    }

    /// Discards the estimate of a longer path.
    pub(super) fn forget_longer(&mut self) {
        self.longer = None;
    }
}

/// The base of a path that became longer than `before`, after a round trip whose smallest sample is `lowest`: at most that, or `None` if that is
/// much less.
fn still_longer(longer: Duration, lowest: Duration, before: Duration, window: f64) -> Option<Duration> {
    let added = longer.saturating_sub(before);
    let tolerated = if added <= before / MUCH_LONGER {
        Duration::ZERO
    } else if window >= effect::WINDOW_MIN {
        added / SHORTER
    } else {
        added / SHORTER_OF_SMALL
    };
    let is_less = lowest + tolerated < longer;
    (!is_less).then(|| longer.min(lowest))
}

/// Returns `now`, or `before` if it is smaller and `is_kept` forbids a rise.
fn kept_low(before: Option<Duration>, now: Duration, is_kept: bool) -> Option<Duration> {
    Some(before.filter(|_| is_kept).map_or(now, |before| before.min(now)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::rtt::{INITIAL_RTT, RttEstimator};
    use ctcp_base::Prng;

    struct Bench {
        base: Base,
        rtt: RttEstimator,
        prng: Prng,
        now: Instant,
        lowest: Duration,
        /// Of each round trip, and the window after it.
        samples: u32,
        window: f64,
    }

    impl Bench {
        fn new() -> Self {
            let (base, rtt) = (Base::default(), RttEstimator::new(INITIAL_RTT));
            Self {
                base,
                rtt,
                prng: Prng::new(3),
                now: Instant::ZERO,
                lowest: Duration::ZERO,
                samples: 32,
                window: 64.0,
            }
        }

        /// Simulates round trips of `millis` plus up to `jitter` milliseconds.
        fn rounds(&mut self, rounds: u32, millis: u64, jitter: u64, is_kept: bool) {
            for _ in 0..rounds {
                let mut tally = Tally::default();
                self.now += Duration::from_millis(millis + jitter);
                for _ in 0..self.samples {
                    let sample = Duration::from_micros(millis * 1_000 + self.prng.below(jitter * 1_000 + 1));
                    self.rtt.on_sample(self.now, sample, Duration::ZERO);
                    tally.on_packet(sample);
                    tally.samples.push(sample);
                }
                self.lowest = tally.lowest.unwrap_or_default();
                let view = self.rtt.view(self.now);
                self.base.on_round(self.now, &tally, &view, self.window, is_kept);
            }
        }

        fn empty(&self) -> u128 {
            self.base.empty(&self.rtt.view(self.now)).as_millis()
        }

        fn queue(&self) -> u128 {
            self.base.queue(&self.rtt.view(self.now), self.lowest).as_millis()
        }
    }

    #[test]
    fn the_base_is_the_minimum_of_a_quiet_path_and_the_mean_of_a_restless_one() {
        let mut bench = Bench::new();
        bench.rounds(10, 20, 0, false);
        assert_eq!((bench.empty(), bench.queue(), bench.base.is_restless()), (20, 0, false));
        let mut bench = Bench::new();
        bench.rounds(10, 20, 20, false);
        assert!(bench.base.is_restless() && (26..31).contains(&bench.empty()), "{}", bench.empty());
        bench.rounds(1, 50, 20, false);
        assert!((27..35).contains(&bench.queue()), "{}", bench.queue());
    }

    #[test]
    fn full_packets_that_always_take_longer_than_small_ones_make_the_base() {
        let mut bench = Bench::new();
        bench.rounds(1, 20, 0, false);
        let took = Duration::from_millis(24);
        bench.base.full_size().on_packet_time(Duration::from_millis(5));
        for _ in 0..12 {
            bench.base.full_size().on_packet(bench.now, took, true);
            bench.rounds(1, 24, 0, false);
        }
        assert_eq!((bench.empty(), bench.queue()), (24, 0));
    }

    #[test]
    fn noise_belongs_to_the_window_with_which_it_was_measured() {
        let is_restless = |rounds: &[(u32, f64)]| {
            let mut bench = Bench::new();
            for &(samples, window) in rounds {
                (bench.samples, bench.window) = (samples, window);
                bench.rounds(1, 20, 20, false);
            }
            bench.base.is_restless()
        };
        assert!(is_restless(&[(1, 64.0), (32, 8.0)]), "the window was large when the samples were sent");
        assert!(is_restless(&[(1, 64.0), (6, 8.0), (6, 8.0)]), "and when the first of them was");
        assert!(!is_restless(&[(32, 8.0), (32, 8.0)]));
    }

    #[test]
    fn a_restless_path_stays_one_while_all_packets_are_late() {
        let mut bench = Bench::new();
        bench.rounds(10, 20, 20, false);
        // Now each packet waits for one that is late.
        bench.rounds(60, 40, 0, false);
        assert!(bench.base.is_restless() && bench.empty() >= 26, "{}", bench.empty());
        // After ten seconds the smallest sample is as long.
        bench.rounds(300, 40, 0, false);
        assert_eq!((bench.base.is_restless(), bench.empty()), (false, 40));
    }

    #[test]
    fn with_few_packets_a_path_stays_restless_after_more_noise() {
        let stays = |series: u32, window: f64| {
            let mut bench = Bench::new();
            bench.rounds(series, 20, 20, false);
            bench.window = window;
            bench.rounds(4, 40, 0, false);
            bench.base.is_restless()
        };
        assert!(stays(6, 32.0) && !stays(6, 31.0));
        assert!(stays(16, 4.0) && stays(16, 11.0) && !stays(16, 12.0));
        assert!(!stays(8, 11.0) && !stays(16, 3.0));
    }

    #[test]
    fn a_queue_that_others_may_fill_never_becomes_the_base() {
        for (is_kept, expected) in [(true, 20), (false, 40)] {
            let mut bench = Bench::new();
            bench.rounds(10, 20, 0, false);
            bench.rounds(400, 40, 0, is_kept);
            assert_eq!(bench.empty(), expected, "kept: {is_kept}");
        }
    }

    #[test]
    fn a_longer_base_lasts_until_a_packet_takes_much_less() {
        let mut bench = Bench::new();
        bench.rounds(10, 20, 0, false);
        bench.base.become_longer(bench.now, &bench.rtt.view(bench.now), Duration::from_millis(30));
        bench.rounds(1, 50, 0, false);
        assert_eq!(bench.empty(), 50);
        bench.rounds(1, 47, 0, false);
        assert_eq!(bench.empty(), 47, "a little less");
        bench.rounds(1, 30, 0, false);
        assert_eq!(bench.empty(), 20);
    }

    #[test]
    fn a_path_that_is_longer_for_a_few_seconds_only_was_the_queue_of_others() {
        let mistaken = |seconds: u32, added_millis: u64| {
            let mut bench = Bench::new();
            bench.rounds(10, 20, 0, false);
            let (now, added) = (bench.now, Duration::from_millis(added_millis));
            bench.base.become_longer(now, &bench.rtt.view(now), added);
            bench.rounds(seconds * 20, 50, 0, false);
            bench.rounds(1, 21, 0, false);
            (bench.base.was_mistaken(bench.now), bench.base.was_mistaken(bench.now + MISTAKEN))
        };
        assert_eq!(mistaken(5, 30), (true, false));
        assert_eq!(mistaken(11, 30), (false, false), "a route that has changed back");
        assert_eq!(mistaken(5, 2), (false, false), "a queue of few packets");
    }
}
