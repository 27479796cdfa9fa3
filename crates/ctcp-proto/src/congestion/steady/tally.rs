//! What happened in a round trip, or in a stretch of samples.

use core::time::Duration;

/// Fewer packets than these say nothing about a share of them.
const PACKETS_MIN: u32 = 16;

/// Differences between samples are taken at this part of a round trip: delay that wanders by itself is forgotten in less.
const PARTS: u32 = 16;

/// Fewer steps say nothing about a course.
const STEPS_MIN: u32 = 3;

/// A course that moves varies more by this factor than its steps explain. Independent samples have one (von Neumann, 1941).
const MOVING: f64 = 2.5;

/// So much of a round trip lost while a queue moves is an overflow.
const OVERFLOW: f64 = 0.05;

/// And a move is no smaller than this part of the base.
const MOVE_MIN: u32 = 32;

/// Samples and losses of some time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) lowest: Option<Duration>,
    pub(super) highest: Duration,
    pub(super) acked: u32,
    pub(super) lost: u32,
    samples: u32,
    sum: f64,
    /// Every so many samples are compared.
    step: u32,
    compared: Option<f64>,
    compared_sum: f64,
    compared_squares: f64,
    steps: u32,
    squared_steps: f64,
}

impl Tally {
    /// For the round trip that follows.
    pub(super) fn following(&self) -> Self {
        Self { step: self.samples / PARTS, ..Self::default() }
    }

    /// A packet was acknowledged after `rtt`.
    pub(super) fn on_packet(&mut self, rtt: Duration) {
        self.lowest = Some(self.lowest.map_or(rtt, |lowest| lowest.min(rtt)));
        self.highest = self.highest.max(rtt);
        self.acked += 1;
    }

    /// An acknowledgement came after `rtt`: one sample, however many packets it acknowledges.
    pub(super) fn on_sample(&mut self, rtt: Duration) {
        let seconds = rtt.as_secs_f64();
        if self.samples.is_multiple_of(self.step.max(1)) {
            self.compared_sum += seconds;
            self.compared_squares += square(seconds);
            if let Some(before) = self.compared.replace(seconds) {
                self.steps += 1;
                self.squared_steps += square(seconds - before);
            }
        }
        self.samples += 1;
        self.sum += seconds;
    }

    /// Takes the samples of `other`, which came right after these.
    pub(super) fn join(&mut self, other: &Self) {
        self.samples += other.samples;
        self.sum += other.sum;
        self.compared_sum += other.compared_sum;
        self.compared_squares += other.compared_squares;
        self.steps += other.steps;
        self.squared_steps += other.squared_steps;
    }

    /// The mean sample.
    pub(super) fn mean(&self) -> Option<Duration> {
        (self.samples > 0).then(|| Duration::from_secs_f64(self.sum / f64::from(self.samples)))
    }

    /// The standard deviation that samples would have if each were independent of the one a sixteenth of a round trip before: noise,
    /// without what moves slower.
    pub(super) fn noise(&self) -> Duration {
        Duration::from_secs_f64((self.squared_steps / f64::from(2 * self.steps.max(1))).sqrt())
    }

    /// How many samples there are.
    pub(super) fn samples(&self) -> u32 {
        self.samples
    }

    /// Whether samples rise or fall over the round trip, as with a queue, on a path of `base`. Noise does not, and a difference smaller than a part
    /// of the path is none.
    pub(super) fn is_moving(&self, base: Duration) -> bool {
        let span = self.highest.saturating_sub(self.lowest.unwrap_or_default());
        let compared = f64::from(self.steps + 1);
        let variance = self.compared_squares / compared - square(self.compared_sum / compared);
        // One late packet has the span, but hardly the deviation.
        let least = base.as_secs_f64() / f64::from(4 * MOVE_MIN);
        self.steps >= STEPS_MIN
            && span > base / MOVE_MIN
            && variance > square(least).max(MOVING * square(self.noise().as_secs_f64()))
    }

    /// Whether packets were lost by a queue that overflowed: a good deal was lost while samples moved.
    pub(super) fn is_overflow(&self, base: Duration) -> bool {
        let all = self.acked + self.lost;
        self.lost >= 2 && f64::from(self.lost) > OVERFLOW * f64::from(all) && self.is_moving(base)
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

fn square(value: f64) -> f64 {
    value * value
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctcp_base::Prng;

    const BASE: Duration = Duration::from_millis(20);

    fn tally(micros: impl IntoIterator<Item = u64>, lost: u32) -> Tally {
        let mut tally = Tally { lost, ..Tally::default() };
        for micros in micros {
            tally.on_packet(Duration::from_micros(micros));
            tally.on_sample(Duration::from_micros(micros));
        }
        tally
    }

    #[test]
    fn a_queue_that_fills_or_drains_moves_and_noise_does_not() {
        let mut prng = Prng::new(1);
        let noise: Vec<u64> = (0..64).map(|_| 20_000 + prng.below(10_000)).collect();
        assert!(!tally(noise, 0).is_moving(BASE));
        assert!(tally((0..32).map(|packet| 20_000 + 300 * packet), 0).is_moving(BASE));
        assert!(tally((0..32).map(|packet| 40_000 - 300 * packet), 0).is_moving(BASE));
        assert!(!tally((0..32).map(|packet| 20_000 + 10 * packet), 0).is_moving(BASE), "too little");
        assert!(!tally([20_000, 30_000], 0).is_moving(BASE), "too few");
        let mut late = tally([20_000; 64], 5).following();
        (0..64).for_each(|packet| {
            let rtt = Duration::from_micros(if packet == 29 { 22_000 } else { 20_000 });
            late.on_packet(rtt);
            late.on_sample(rtt);
        });
        assert!(!late.is_moving(BASE), "one packet that is late");
    }

    #[test]
    fn only_loss_while_the_queue_moves_is_an_overflow() {
        let rising = || (0..32).map(|packet| 20_000 + 300 * packet);
        assert!(tally(rising(), 8).is_overflow(BASE));
        assert!(!tally(rising(), 1).is_overflow(BASE), "bad luck");
        assert!(!tally([20_000; 32], 8).is_overflow(BASE), "the path's own");
    }

    #[test]
    fn the_noise_is_the_deviation_of_independent_samples_and_leaves_out_a_slow_course() {
        let mut prng = Prng::new(2);
        let noise = tally((0..2_000).map(|_| 20_000 + prng.below(12_000)), 0).noise();
        // A uniform distribution deviates by its width over the root of twelve.
        assert!((3_200..3_700).contains(&noise.as_micros()), "{noise:?}");
        let slope = tally((0..2_000).map(|packet| 20_000 + 6 * packet), 0).noise();
        assert!(slope < Duration::from_micros(10), "{slope:?}");
    }
}
