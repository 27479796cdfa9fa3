//! The queue, where the path itself is restless.
//!
//! On a link that gathers packets, or waits for its turn on the air, even the luckiest packet of a round trip waits, and only some round trips
//! show the path itself. A queue is what several round trips show then, and where the samples of one differ little, each of
//! them.

use core::time::Duration;

/// How many round trips it takes on a restless path. More would be slow to notice a queue.
const ROUNDS: usize = 2;

/// A path is restless when samples deviate from their average by this part of its shortest round trip,
const RESTLESS: u32 = 20;

/// on average over about so many round trips.
const WEIGHT: f64 = 1.0 / 8.0;

/// Of so many round trips, the quietest shows the noise that is the path's own: a queue does not change all the time.
const DEVIATIONS: usize = 6;

/// The smallest samples of the last round trips.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Noise {
    lowest: [Option<Duration>; ROUNDS],
    /// The average deviation, in seconds.
    deviation: f64,
    rounds: u32,
    /// The deviations of the last round trips.
    deviations: [Option<Duration>; DEVIATIONS],
}

impl Noise {
    /// A round trip is over: its smallest sample, and how far samples deviate by now.
    pub(super) fn on_round(&mut self, lowest: Duration, deviation: Duration) {
        self.lowest.rotate_right(1);
        self.lowest[0] = Some(lowest);
        self.rounds = self.rounds.saturating_add(1);
        let weight = WEIGHT.max(1.0 / f64::from(self.rounds));
        self.deviation += weight * (deviation.as_secs_f64() - self.deviation);
    }

    /// The samples of a round trip deviated so far from their mean.
    pub(super) fn on_deviation(&mut self, deviation: Duration) {
        self.deviations.rotate_right(1);
        self.deviations[0] = Some(deviation);
    }

    /// How far samples deviate by themselves.
    pub(super) fn deviation(&self) -> Duration {
        self.deviations.iter().flatten().min().copied().unwrap_or_default()
    }

    /// What the last round trips show together on a path of `base`.
    pub(super) fn standing(&self, base: Duration) -> Option<Duration> {
        let rounds = if self.is_restless(base) { ROUNDS } else { 1 };
        self.lowest.iter().take(rounds).flatten().min().copied()
    }

    fn is_restless(&self, base: Duration) -> bool {
        self.deviation * f64::from(RESTLESS) > base.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Duration = Duration::from_millis(20);

    fn standing(lowest: &[u64], deviation: u64) -> Option<Duration> {
        let mut noise = Noise::default();
        lowest.iter().for_each(|&millis| {
            noise.on_round(Duration::from_millis(millis), Duration::from_micros(deviation));
        });
        noise.standing(BASE)
    }

    #[test]
    fn one_round_trip_tells_where_samples_differ_little_and_two_where_they_do() {
        let rounds = [[22, 29]; 20].concat();
        assert_eq!(standing(&rounds, 300), Some(Duration::from_millis(29)));
        assert_eq!(standing(&rounds, 3_000), Some(Duration::from_millis(22)));
        assert_eq!(standing(&[20, 29, 29], 3_000), Some(Duration::from_millis(29)), "a queue that stays");
        assert_eq!(standing(&[], 0), None);
    }
}
