//! Series of round-trip samples: their mean, their noise, and whether they follow a trend.

use core::time::Duration;

/// Samples are compared over this fraction of a round trip, which excludes slower variation of the delay.
const PARTS: u32 = 16;

/// Minimum number of steps for a statement about the trend.
const STEPS_MIN: u32 = 3;

/// Ratio of the variance to that explained by the steps above which samples follow a trend. Independent samples have one (von Neumann,
/// 1941).
const MOVING: f64 = 2.5;

/// Round-trip samples of some period, one per acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Samples {
    count: u32,
    sum: f64,
    /// Distance of the samples that are compared.
    step: u32,
    compared: Option<f64>,
    compared_sum: f64,
    compared_squares: f64,
    steps: u32,
    squared_steps: f64,
}

impl Samples {
    /// An empty series for the next round trip.
    pub(super) fn following(&self) -> Self {
        Self { step: self.count / PARTS, ..Self::default() }
    }

    /// Adds the sample of one acknowledgement, however many packets it acknowledges.
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

    /// Adds the samples of `other`, which follow these, for the mean and the noise.
    pub(super) fn join(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.steps += other.steps;
        self.squared_steps += other.squared_steps;
    }

    /// The mean of the samples.
    pub(super) fn mean(&self) -> Option<Duration> {
        (self.count > 0).then(|| Duration::from_secs_f64(self.sum / f64::from(self.count)))
    }

    /// The standard deviation that samples would have if each were independent of the one a sixteenth of a round trip before: the noise,
    /// without slower variation.
    pub(super) fn noise(&self) -> Duration {
        Duration::from_secs_f64((self.squared_steps / f64::from(2 * self.steps.max(1))).sqrt())
    }

    /// The number of samples.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Whether samples rise or fall by more than a deviation of `least` seconds, as with a queue but not with noise.
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
    fn the_noise_is_the_deviation_of_independent_samples_without_slow_trends() {
        let mut prng = Prng::new(2);
        let noise = samples((0..2_000).map(|_| 20_000 + prng.below(12_000))).noise();
        // The standard deviation of a uniform distribution is its width over the root of twelve.
        assert!((3_200..3_700).contains(&noise.as_micros()), "{noise:?}");
        let slope = samples((0..2_000).map(|packet| 20_000 + 6 * packet)).noise();
        assert!(slope < Duration::from_micros(10), "{slope:?}");
    }
}
