//! Paths drawn at random: the simulator and the testbed draw from the same ranges.

use core::fmt;
use core::time::Duration;

use ctcp_base::{Prng, Probability, Rate};
use ctcp_netem::{FULL_PACKET_BYTES, LossModel, PathConfig, QueueLimit};
use serde::{Deserialize, Serialize};

/// A path drawn from a seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomPath {
    /// The seed that it was drawn from.
    pub seed: u64,
    /// The rate of both directions, headers included.
    pub rate: Rate,
    /// The round-trip time without queue and jitter.
    pub rtt: Duration,
    /// The mean loss rate in the direction of the data; the other one loses nothing.
    pub loss: f64,
    /// The mean number of packets lost in a row.
    pub burst: f64,
    /// The most that each direction adds to its delay.
    pub jitter: Duration,
    /// The queue in the direction of the data, in packets.
    pub queue: u64,
}

/// A path as results have it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// The seed that it was drawn from.
    pub seed: u64,
    /// The rate of both directions, headers included.
    pub rate_bps: u64,
    /// The round-trip time without queue and jitter.
    pub rtt_ms: f64,
    /// The mean loss rate in the direction of the data.
    pub loss: f64,
    /// The mean number of packets lost in a row.
    pub burst: f64,
    /// The most that each direction adds to its delay.
    pub jitter_ms: f64,
    /// The queue in the direction of the data, in packets.
    pub queue: u64,
    /// Rate times round-trip time, in packets.
    pub product: f64,
}

impl RandomPath {
    /// Draws a path. Rate 0.5 to 500 Mbit/s and RTT 2 to 600 ms, log-uniform. Loss 0 on a fifth of the paths, else up
    /// to 30 %, in bursts of up to 20 packets on half of them. Jitter up to 30 ms on half. Queue 0.25 to 4
    /// bandwidth-delay products, log-uniform, at least 4 packets.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut prng = Prng::new(seed).fork("random path");
        let mut log_uniform = |low: f64, high: f64| low * (high / low).powf(prng.unit());
        let rate = log_uniform(0.5e6, 500e6);
        let rtt = log_uniform(2e-3, 600e-3);
        let products = log_uniform(0.25, 4.0);
        let is_clean = prng.unit() < 0.2;
        let loss = 0.3 * prng.unit();
        let loss = if is_clean { 0.0 } else { loss };
        let is_bursty = prng.unit() < 0.5;
        let burst = 1.0 + 19.0 * prng.unit();
        let is_restless = prng.unit() < 0.5;
        let jitter = 30e-3 * prng.unit();
        let packets = products * rate * rtt / 8.0 / FULL_PACKET_BYTES as f64;
        Self {
            seed,
            rate: Rate::from_bits_per_second(rate as u64),
            rtt: Duration::from_secs_f64(rtt),
            loss,
            burst: if is_bursty && !is_clean { burst } else { 1.0 },
            jitter: if is_restless { Duration::from_secs_f64(jitter) } else { Duration::ZERO },
            queue: (packets.ceil() as u64).max(4),
        }
    }

    /// The path for an emulator or a simulator.
    ///
    /// # Panics
    /// Panics if the loss rate is not a probability.
    #[must_use]
    pub fn config(&self) -> PathConfig {
        let share = Probability::new(self.loss).expect("a probability");
        let single = LossModel::Bernoulli(share);
        let model = if self.loss > 0.0 && self.burst > 1.0 / (1.0 - self.loss) {
            LossModel::bursts(share, self.burst).unwrap_or(single)
        } else {
            single
        };
        let path =
            PathConfig::new(self.rate, self.rtt, model).with_lossless_return().with_jitter(self.jitter);
        let forward = path.forward.with_queue(QueueLimit::Packets(self.queue));
        let backward = path.backward.with_queue(QueueLimit::Packets(self.queue.max(100)));
        PathConfig { forward, backward }
    }

    /// Rate times round-trip time, in full packets.
    #[must_use]
    pub fn product(&self) -> f64 {
        self.rate.as_bits_per_second() as f64 * self.rtt.as_secs_f64() / 8.0 / FULL_PACKET_BYTES as f64
    }

    /// What results have of it.
    #[must_use]
    pub fn facts(&self) -> Facts {
        Facts {
            seed: self.seed,
            rate_bps: self.rate.as_bits_per_second(),
            rtt_ms: self.rtt.as_secs_f64() * 1e3,
            loss: self.loss,
            burst: self.burst,
            jitter_ms: self.jitter.as_secs_f64() * 1e3,
            queue: self.queue,
            product: self.product(),
        }
    }
}

impl fmt::Display for RandomPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{:7.2} Mbit/s {:6.1} ms, {:8.1} packets, queue {:6}, loss {:.3} bursts {:4.1}, jitter {:4.1} ms",
            self.rate.as_bits_per_second() as f64 / 1e6,
            self.rtt.as_secs_f64() * 1e3,
            self.product(),
            self.queue,
            self.loss,
            self.burst,
            self.jitter.as_secs_f64() * 1e3,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_in_their_ranges_and_a_seed_always_gives_the_same_path() {
        for seed in 0..500 {
            let path = RandomPath::draw(seed);
            assert!((500_000..=500_000_000).contains(&path.rate.as_bits_per_second()), "{path}");
            assert!((0.002..=0.6).contains(&path.rtt.as_secs_f64()), "{path}");
            assert!(path.loss <= 0.3 && (1.0..=20.0).contains(&path.burst), "{path}");
            assert!(path.jitter <= Duration::from_millis(30) && path.queue >= 4, "{path}");
            assert_eq!(path.to_string(), RandomPath::draw(seed).to_string());
        }
    }
}
