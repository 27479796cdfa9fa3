//! The course of round-trip times: their mean, how much of their variation is noise, and whether they move.

use core::time::Duration;

/// Differences between samples are taken at this part of a round trip: delay that wanders by itself is forgotten in less.
const PARTS: u32 = 16;

/// Fewer steps say nothing about a course.
const STEPS_MIN: u32 = 3;

/// A course that moves varies more by this factor than its steps explain. Independent samples have one (von Neumann, 1941).
const MOVING: f64 = 2.5;

/// Samples of some time, one an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Samples {
    count: u32,
    sum: f64,
    /// Every so many samples are compared.
    step: u32,
    compared: Option<f64>,
    compared_sum: f64,
    compared_squares: f64,
    steps: u32,
    squared_steps: f64,
}

impl Samples {
    /// For the round trip that follows.
    pub(super) fn following(&self) -> Self {
        Self { step: self.count / PARTS, ..Self::default() }
    }

    /// An acknowledgement came after `rtt`: one sample, however many packets it acknowledges.
    pub(super) fn push(&mut self, rtt: Duration) {
        let seconds = rtt.as_secs_f64();
        if self.count.is_multiple_of(self.step.max(1)) {
            self.compared_sum += seconds;
            self.compared_squares += square(seconds);
            if let Some(before) = self.compared.replace(seconds) {
                self.steps += 1;
                self.squared_steps += square(seconds - before);
            }
        }
        self.count += 1;
        self.sum += seconds;
    }

    /// Takes the samples of `other`, which came right after these, for their mean and noise.
    pub(super) fn join(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.steps += other.steps;
        self.squared_steps += other.squared_steps;
    }

    /// The mean sample.
    pub(super) fn mean(&self) -> Option<Duration> {
        (self.count > 0).then(|| Duration::from_secs_f64(self.sum / f64::from(self.count)))
    }

    /// The standard deviation that samples would have if each were independent of the one a sixteenth of a round trip before: noise,
    /// without what moves slower.
    pub(super) fn noise(&self) -> Duration {
        Duration::from_secs_f64((self.squared_steps / f64::from(2 * self.steps.max(1))).sqrt())
    }

    /// How many samples there are.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Whether samples rise or fall by more than a deviation of `least` seconds, as with a queue. Noise does not.
    pub(super) fn are_moving(&self, least: f64) -> bool {
        let compared = f64::from(self.steps + 1);
        let variance = self.compared_squares / compared - square(self.compared_sum / compared);
        self.steps >= STEPS_MIN && variance > square(least).max(MOVING * square(self.noise().as_secs_f64()))
    }
}

fn square(value: f64) -> f64 {
    value * value
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctcp_base::Prng;

    fn samples(micros: impl IntoIterator<Item = u64>) -> Samples {
        let mut samples = Samples::default();
        micros.into_iter().for_each(|micros| samples.push(Duration::from_micros(micros)));
        samples
    }

    #[test]
    fn the_noise_is_the_deviation_of_independent_samples_and_leaves_out_a_slow_course() {
        let mut prng = Prng::new(2);
        let noise = samples((0..2_000).map(|_| 20_000 + prng.below(12_000))).noise();
        // A uniform distribution deviates by its width over the root of twelve.
        assert!((3_200..3_700).contains(&noise.as_micros()), "{noise:?}");
        let slope = samples((0..2_000).map(|packet| 20_000 + 6 * packet)).noise();
        assert!(slope < Duration::from_micros(10), "{slope:?}");
    }
}
