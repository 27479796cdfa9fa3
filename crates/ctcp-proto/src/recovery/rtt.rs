//! Round-trip times of one path: latest, smoothed and variance (RFC 9002 section 5), the minimum as an estimate of the empty path, and the
//! *standing* time of the last round.
//!
//! The paper's back-off `RTTmin / RTT` (CTCP section 4.3) needs more than the latest sample. Noise in RTT would starve it, and so would an
//! RTTmin of a route that no longer exists. `minimum` therefore slides over ten seconds, and `standing` is the minimum of about the last
//! round trip: a queue raises every sample of a round, a late wake-up only some.
//!
//! Requirement: C3

use core::time::Duration;

use ctcp_base::Instant;

use super::sliding::SlidingMinimum;
use crate::connection::RttStats;

/// The estimate before the first sample (RFC 9002 section 6.2.2).
pub const INITIAL_RTT: Duration = Duration::from_millis(333);

/// Length of the window of the minimum: long enough to contain a moment with empty queues, short enough to adapt to a new route soon.
pub(crate) const MINIMUM_WINDOW: Duration = Duration::from_secs(10);

/// Assumed granularity of timers (RFC 9002 section 6.1.2).
pub(crate) const GRANULARITY: Duration = Duration::from_millis(1);

/// After a pause of so many round trips, and at least this long, a shorter sample starts the averages anew: the queue of that time is gone.
const OUTDATED_AFTER: u32 = 4;
const OUTDATED_MIN: Duration = Duration::from_secs(1);

/// The shortest sample accepted, which keeps `RTTmin / RTT` and rates finite.
const SMALLEST_SAMPLE: Duration = Duration::from_micros(1);

/// The round-trip times of a path as congestion control sees them. Before the first sample all equal the initial estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttView {
    /// The latest sample, minus the peer's acknowledgement delay (the paper's RTT).
    pub latest: Duration,
    /// The exponentially smoothed round trip (RFC 9002 section 5.3); after a pause, the minimum.
    pub smoothed: Duration,
    /// The smoothed mean deviation.
    pub variance: Duration,
    /// The minimum of the ten seconds before the latest sample.
    pub minimum: Duration,
    /// The minimum since the path began (exactly the paper's RTTmin).
    pub minimum_ever: Duration,
    /// The minimum of about the last round trip.
    pub standing: Duration,
}

impl RttView {
    /// The queueing part of the standing time: its excess over the minimum.
    #[must_use]
    pub fn standing_queue(&self) -> Duration {
        self.standing.saturating_sub(self.minimum)
    }
}

/// Estimates the round-trip times of one path.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    initial: Duration,
    samples: Option<Samples>,
    minimum: SlidingMinimum,
    round: SlidingMinimum,
}

#[derive(Clone, Copy, Debug)]
struct Samples {
    latest: Duration,
    smoothed: Duration,
    variance: Duration,
    minimum_ever: Duration,
    /// When the latest sample was taken.
    time: Instant,
}

impl Samples {
    fn is_outdated(&self, now: Instant) -> bool {
        now - self.time > (self.smoothed * OUTDATED_AFTER).max(OUTDATED_MIN)
    }
}

impl RttEstimator {
    /// Creates an estimator that returns `initial` until it has a sample.
    pub fn new(initial: Duration) -> Self {
        let initial = initial.max(SMALLEST_SAMPLE);
        Self {
            initial,
            samples: None,
            minimum: SlidingMinimum::new(nanos(MINIMUM_WINDOW)),
            round: SlidingMinimum::new(nanos(initial)),
        }
    }

    /// Adds a sample: `rtt` from sending a packet to its acknowledgement, and the peer's reported `ack_delay`. The caller limits
    /// `ack_delay` to the peer's maximum.
    pub fn on_sample(&mut self, now: Instant, rtt: Duration, ack_delay: Duration) {
        let rtt = rtt.max(SMALLEST_SAMPLE);
        // RFC 9002 5.2: the minimum ignores the delay, so that a lying peer cannot lower it below that of the path.
        self.minimum.insert(now.as_nanos(), nanos(rtt));
        let floor = self.minimum.minimum(now.as_nanos()).map_or(rtt, Duration::from_nanos);
        let latest = rtt.saturating_sub(ack_delay).max(floor);
        let (smoothed, variance) = match self.samples {
            None => (latest, latest / 2),
            Some(old) if old.is_outdated(now) && latest < old.smoothed => (latest, old.variance),
            // The variance from the old average (RFC 9002 5.3).
            Some(old) => {
                ((old.smoothed * 7 + latest) / 8, (old.variance * 3 + old.smoothed.abs_diff(latest)) / 4)
            }
        };
        let minimum_ever = self.samples.map_or(rtt, |old| old.minimum_ever.min(rtt));
        self.samples = Some(Samples { latest, smoothed, variance, minimum_ever, time: now });
        self.round.resize(nanos(self.smoothed()));
        self.round.insert(now.as_nanos(), nanos(latest));
    }

    /// Whether there was a sample.
    pub fn has_sample(&self) -> bool {
        self.samples.is_some()
    }

    /// The values for statistics.
    pub(crate) fn stats(&self, now: Instant) -> RttStats {
        RttStats { latest: self.latest(), smoothed: self.smoothed(), minimum: self.minimum(now) }
    }

    /// Whether the latest sample is so old that a queue of that time is gone.
    pub fn is_outdated(&self, now: Instant) -> bool {
        self.samples.is_some_and(|samples| samples.is_outdated(now))
    }

    /// The latest sample.
    pub fn latest(&self) -> Duration {
        self.samples.map_or(self.initial, |samples| samples.latest)
    }

    /// The smoothed round-trip time.
    pub fn smoothed(&self) -> Duration {
        self.samples.map_or(self.initial, |samples| samples.smoothed)
    }

    /// The smoothed mean deviation.
    pub fn variance(&self) -> Duration {
        self.samples.map_or(self.initial / 2, |samples| samples.variance)
    }

    /// The minimum of the ten seconds before the latest sample. In a pause, what was known does not become worse.
    pub fn minimum(&self, now: Instant) -> Duration {
        self.minimum.minimum(self.end(now)).map_or(self.initial, Duration::from_nanos)
    }

    /// Where the windows of the minima end.
    fn end(&self, now: Instant) -> u64 {
        self.samples.map_or(now, |samples| samples.time.min(now)).as_nanos()
    }

    /// The minimum of all samples.
    pub fn minimum_ever(&self) -> Duration {
        self.samples.map_or(self.initial, |samples| samples.minimum_ever)
    }

    /// The minimum of about a round trip before the latest sample.
    pub fn standing(&self, now: Instant) -> Duration {
        self.round.minimum(self.end(now)).map_or(self.initial, Duration::from_nanos)
    }

    /// All of these for congestion control.
    pub fn view(&self, now: Instant) -> RttView {
        RttView {
            latest: self.latest(),
            smoothed: if self.is_outdated(now) { self.minimum(now) } else { self.smoothed() },
            variance: self.variance(),
            minimum: self.minimum(now),
            minimum_ever: self.minimum_ever(),
            standing: self.standing(now),
        }
    }
}

/// A duration as a position or value of a sliding window.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn before_the_first_sample_the_initial_estimate_is_returned() {
        let rtt = RttEstimator::new(INITIAL_RTT);
        assert!(!rtt.has_sample());
        assert_eq!(rtt.smoothed(), INITIAL_RTT);
        assert_eq!(rtt.standing(at(5)), INITIAL_RTT);
    }

    #[test]
    fn the_first_sample_replaces_the_guess_and_the_next_move_the_average_by_an_eighth() {
        let mut rtt = RttEstimator::new(INITIAL_RTT);
        rtt.on_sample(at(0), ms(80), ms(0));
        assert_eq!((rtt.smoothed(), rtt.variance()), (ms(80), ms(40)));
        rtt.on_sample(at(1), ms(160), ms(0));
        assert_eq!((rtt.smoothed(), rtt.variance()), (ms(90), ms(50)));
    }

    #[test]
    fn the_acknowledgement_delay_is_taken_off_but_never_below_the_minimum() {
        let mut rtt = RttEstimator::new(INITIAL_RTT);
        rtt.on_sample(at(0), ms(20), ms(15));
        assert_eq!(rtt.latest(), ms(20), "a first sample is its own minimum");
        rtt.on_sample(at(1), ms(28), ms(5));
        assert_eq!(rtt.latest(), ms(23));
        rtt.on_sample(at(2), ms(28), ms(25));
        assert_eq!(rtt.latest(), ms(20));
        assert_eq!(rtt.minimum(at(2)), ms(20));
    }

    #[test]
    fn a_longer_route_replaces_the_minimum_after_ten_seconds_but_not_the_minimum_ever() {
        let mut rtt = RttEstimator::new(INITIAL_RTT);
        rtt.on_sample(at(0), ms(20), ms(0));
        for millis in (100..=10_500).step_by(100) {
            rtt.on_sample(at(millis), ms(50), ms(0));
        }
        assert_eq!(rtt.minimum(at(10_500)), ms(50));
        assert_eq!(rtt.minimum_ever(), ms(20));
    }

    #[test]
    fn a_queue_raises_the_standing_time_and_noise_on_some_samples_does_not() {
        let mut rtt = RttEstimator::new(INITIAL_RTT);
        for millis in 0..100 {
            rtt.on_sample(at(millis), ms(20 + millis % 5), ms(0));
        }
        assert_eq!(rtt.standing(at(100)), ms(20));
        for millis in 100..140 {
            rtt.on_sample(at(millis), ms(30 + millis % 5), ms(0));
        }
        assert_eq!(rtt.standing(at(140)), ms(30));
        assert_eq!(rtt.view(at(140)).standing_queue(), ms(10));
    }

    #[test]
    fn after_a_pause_a_shorter_sample_starts_the_averages_anew_and_a_longer_one_does_not() {
        let with_queue = || {
            let mut rtt = RttEstimator::new(INITIAL_RTT);
            rtt.on_sample(at(0), ms(20), ms(0));
            (100..=200).step_by(10).for_each(|millis| rtt.on_sample(at(millis), ms(400), ms(0)));
            rtt
        };
        let mut paused = with_queue();
        let queued = paused.smoothed();
        assert!(queued > ms(250) && paused.view(at(1_000)).smoothed == queued, "no pause yet");
        assert_eq!((paused.view(at(15_000)).smoothed, paused.minimum(at(15_000))), (ms(20), ms(20)));
        paused.on_sample(at(15_000), ms(30), ms(0));
        assert_eq!((paused.smoothed(), paused.minimum_ever()), (ms(30), ms(20)));
        assert_eq!(paused.variance(), with_queue().variance(), "what varied may vary again");
        assert_eq!(paused.minimum(at(15_000)), ms(30), "the new route's");
        let mut stalled = with_queue();
        stalled.on_sample(at(15_000), ms(3_000), ms(0));
        assert_eq!(stalled.smoothed(), (queued * 7 + ms(3_000)) / 8);
    }

    #[test]
    fn the_variance_of_a_thin_flow_stays_small() {
        let mut rtt = RttEstimator::new(INITIAL_RTT);
        for second in 0..40 {
            rtt.on_sample(at(2_000 * second), ms(50 + second % 2), ms(0));
        }
        assert!(rtt.variance() < ms(3), "{:?}", rtt.variance());
    }

    #[test]
    fn a_sample_of_zero_is_raised_to_a_positive_time() {
        let mut rtt = RttEstimator::new(INITIAL_RTT);
        rtt.on_sample(at(0), ms(0), ms(0));
        assert!(rtt.minimum(at(0)) > Duration::ZERO && rtt.smoothed() > Duration::ZERO);
    }
}
