//! A token bucket without a queue: a packet passes if the bucket holds enough tokens for its bytes, and is dropped
//! otherwise.

use ctcp_base::Instant;

use crate::PolicerConfig;

/// Tokens per byte: nanoseconds per second times bits per byte. A token is one bit per second for a nanosecond.
const TOKENS_PER_BYTE: u128 = 8_000_000_000;

/// The bucket of a policer.
#[derive(Clone, Debug)]
pub(crate) struct Policer {
    config: PolicerConfig,
    tokens: u128,
    filled: Instant,
}

impl Policer {
    /// Creates a full bucket.
    pub(crate) fn new(now: Instant, config: PolicerConfig) -> Self {
        Self { config, tokens: capacity(&config), filled: now }
    }

    /// Returns whether a packet of `bytes` conforms, and takes its tokens if so.
    pub(crate) fn admits(&mut self, now: Instant, bytes: u64) -> bool {
        let gained = (now - self.filled).as_nanos() * u128::from(self.config.rate.as_bits_per_second());
        self.tokens = self.tokens.saturating_add(gained).min(capacity(&self.config));
        self.filled = now;
        match self.tokens.checked_sub(u128::from(bytes) * TOKENS_PER_BYTE) {
            Some(rest) => {
                self.tokens = rest;
                true
            }
            None => false,
        }
    }
}

fn capacity(config: &PolicerConfig) -> u128 {
    u128::from(config.bucket) * TOKENS_PER_BYTE
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctcp_base::Rate;

    fn policer(megabits: u64, bucket: u64) -> Policer {
        let rate = Rate::from_megabits_per_second(megabits);
        Policer::new(Instant::ZERO, PolicerConfig { rate, bucket })
    }

    #[test]
    fn a_full_bucket_passes_a_burst_and_then_the_rate() {
        // 8 Mbit/s are a packet of 1000 bytes per millisecond; two per millisecond are offered.
        let mut policer = policer(8, 10_000);
        let passed = (0..1_000_u64)
            .flat_map(|millis| [millis, millis])
            .filter(|&millis| policer.admits(Instant::from_millis(millis), 1_000))
            .count();
        assert_eq!(passed, 10 + 999);
    }

    #[test]
    fn fractions_of_a_packet_are_kept_from_call_to_call() {
        // A packet of 1500 bytes at 25 Mbit/s takes 480 us; one is offered every 70 us.
        let mut policer = policer(25, 1_500);
        let passed =
            (0..100_000).filter(|step| policer.admits(Instant::from_micros(step * 70), 1_500)).count();
        // 7 s are 14,583 packets. The bucket holds only one, so tokens that arrive while it is full are lost.
        assert!((13_800..=14_584).contains(&passed), "{passed}");
    }

    #[test]
    fn an_idle_bucket_fills_up_to_its_size_and_larger_packets_never_pass() {
        let mut policer = policer(8, 3_000);
        assert!(!policer.admits(Instant::ZERO, 3_001));
        assert!(policer.admits(Instant::ZERO, 3_000));
        let later = Instant::from_secs(1_000);
        let passed = (0..10).filter(|_| policer.admits(later, 1_000)).count();
        assert_eq!(passed, 3);
        assert!(!policer.admits(Instant::from_secs(2_000), 3_001));
    }
}
