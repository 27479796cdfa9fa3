//! Distinguishes a queue from the path's own noise.
//!
//! On a link that aggregates packets or waits for air time, even the fastest packet of a round trip waits, and only some round trips show
//! the empty path. A queue is then what several round trips show. If the samples of one vary little, each round trip shows it.

use core::time::Duration;

use super::calm::NOISE_WINDOW_MIN;
use super::samples::Samples;

/// Number of round trips combined on a path that varies. More would detect a queue late.
const ROUNDS: usize = 2;

/// A path varies if the mean deviation of samples exceeds this fraction of its shortest round trip.
const VARIES: u32 = 20;

/// Weight of one round trip in the average deviation.
const WEIGHT: f64 = 1.0 / 8.0;

/// Means are used if the noise of the quietest recent round trip exceeds this fraction of the round trip and the time of this many packets
/// of the flow. They are used until it falls below the second pair.
const NOISY: (f64, f64) = (1.0 / 45.0, 1.0);
const CALMED: (f64, f64) = (1.0 / 80.0, 0.6);

/// Means are not used with a window below this, which has too few packets to tell. But what larger windows showed is believed for as many series, up to
/// so many: a burst of losses leaves a small window on a path that is as noisy as before.
const WINDOW_CALMED: f64 = 6.0;
const BELIEVED_MAX: u32 = 8;

/// Number of round trips of which the quietest counts.
const QUIETEST: usize = 6;

/// The smallest samples and the noise of the last round trips.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Noise {
    lowest: [Option<Duration>; ROUNDS],
    /// The average deviation of samples in seconds.
    average: f64,
    noises: [Option<Duration>; QUIETEST],
    is_noisy: bool,
    /// Noisy series of larger windows that a smaller one has not used up.
    believed: u32,
}

impl Noise {
    /// Ends a round trip with its smallest sample and the current deviation of samples.
    pub(super) fn on_round(&mut self, lowest: Duration, deviation: Duration) {
        self.lowest.rotate_right(1);
        self.lowest[0] = Some(lowest);
        self.average += WEIGHT * (deviation.as_secs_f64() - self.average);
    }

    /// Adds a series of samples of a flow with `window` packets per round trip.
    pub(super) fn on_samples(&mut self, samples: &Samples, window: f64) {
        let Some(mean) = samples.mean() else { return };
        self.noises.rotate_right(1);
        self.noises[0] = Some(samples.noise());
        let share = self.quietest().as_secs_f64() / mean.as_secs_f64().max(1e-9);
        let (least, packets) = if self.is_noisy { CALMED } else { NOISY };
        let window_min = if self.is_noisy { WINDOW_CALMED } else { NOISE_WINDOW_MIN };
        let is_believed = self.is_noisy && window < WINDOW_CALMED && self.believed > 0;
        let looks_noisy = share > least && (share * window > packets || is_believed);
        if is_believed {
            self.believed -= 1;
        } else if looks_noisy && window >= NOISE_WINDOW_MIN {
            self.believed = (self.believed + 1).min(BELIEVED_MAX);
        }
        self.is_noisy = looks_noisy && (window >= window_min || is_believed);
    }

    /// The noise of the quietest recent round trip.
    pub(super) fn quietest(&self) -> Duration {
        self.noises.iter().flatten().min().copied().unwrap_or_default()
    }

    /// Whether hardly any packet takes as little time as the empty path.
    pub(super) fn is_noisy(&self) -> bool {
        self.is_noisy
    }

    /// The smallest sample common to the last round trips, on a path of `base`.
    pub(super) fn standing(&self, base: Duration) -> Option<Duration> {
        let rounds = if self.varies(base) { ROUNDS } else { 1 };
        self.lowest.iter().take(rounds).flatten().min().copied()
    }

    /// Whether samples vary on a path of `base`, by themselves or because of a queue.
    pub(super) fn varies(&self, base: Duration) -> bool {
        self.average * f64::from(VARIES) > base.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Duration = Duration::from_millis(20);

    fn standing(lowest: &[u64], deviation: u64) -> Option<Duration> {
        let mut noise = Noise::default();
        lowest.iter().for_each(|&millis| {
            let lowest = Duration::from_millis(millis);
            noise.on_round(lowest, Duration::from_micros(deviation));
        });
        noise.standing(BASE)
    }

    #[test]
    fn one_round_trip_shows_a_queue_on_a_quiet_path_and_two_on_a_varying_one() {
        let rounds = [[22, 29]; 20].concat();
        assert_eq!(standing(&rounds, 300), Some(Duration::from_millis(29)));
        assert_eq!(standing(&rounds, 3_000), Some(Duration::from_millis(22)));
        assert_eq!(standing(&[20, 29, 29], 3_000), Some(Duration::from_millis(29)), "a queue that stays");
        assert_eq!(standing(&[], 0), None);
    }

    #[test]
    fn noise_counts_only_where_no_recent_round_trip_was_quiet() {
        let samples = |micros: u64| {
            let mut samples = Samples::default();
            (0..32).for_each(|sample| samples.push(BASE + Duration::from_micros(micros * (sample % 2))));
            samples
        };
        let mut noise = Noise::default();
        noise.on_samples(&samples(4_000), 64.0);
        assert!(noise.is_noisy());
        noise.on_samples(&samples(0), 64.0);
        assert!(!noise.is_noisy(), "a quiet round trip: the earlier variation was not noise");
        (0..QUIETEST).for_each(|_| noise.on_samples(&samples(4_000), 64.0));
        assert!(noise.is_noisy());
        noise.on_samples(&samples(4_000), 4.0);
        assert!(noise.is_noisy(), "larger windows have shown it");
        (0..BELIEVED_MAX).for_each(|_| noise.on_samples(&samples(4_000), 4.0));
        assert!(!noise.is_noisy(), "too few packets to tell it from a queue");
        noise.on_samples(&samples(4_000), 11.0);
        assert!(!noise.is_noisy(), "no noise is found with so few packets");
    }
}
