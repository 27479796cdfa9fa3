//! The transmitter: computes when the last bit of a packet leaves.

use core::time::Duration;

use ctcp_base::{Instant, Rate};

/// Nanoseconds per second times bits per byte.
const BIT_NANOS_PER_BYTE: u128 = 8_000_000_000;

/// Sends packets one after the other at a given rate.
///
/// Fractions of a nanosecond are carried over from packet to packet. A backlog is therefore drained at exactly the rate,
/// even if a packet does not take a whole number of nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Transmitter {
    rate: Rate,
    busy_until: Instant,
    /// The fraction missing in `busy_until`, in units of 1 ns / (bits per second). It is less than the rate.
    remainder: u128,
}

impl Transmitter {
    pub(crate) fn new(rate: Rate) -> Self {
        Self { rate, busy_until: Instant::ZERO, remainder: 0 }
    }

    pub(crate) fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns when everything accepted so far has left.
    pub(crate) fn busy_until(&self) -> Instant {
        self.busy_until
    }

    /// Queues `bytes` after all earlier ones at `now`. Returns when their last bit leaves.
    pub(crate) fn transmit(&mut self, now: Instant, bytes: u64) -> Instant {
        self.occupy(now, u128::from(bytes) * BIT_NANOS_PER_BYTE)
    }

    /// Transmits the rest of a packet that would have taken `rest` longer at the rate `before`.
    pub(crate) fn transmit_rest(&mut self, now: Instant, rest: Duration, before: Rate) -> Instant {
        self.occupy(now, rest.as_nanos() * u128::from(before.as_bits_per_second()))
    }

    /// Drops the schedule and continues at `rate` from `now`.
    pub(crate) fn restart(&mut self, now: Instant, rate: Rate) {
        *self = Self { rate, busy_until: now, remainder: 0 };
    }

    /// Occupies the transmitter with `work` bits times 10^9.
    fn occupy(&mut self, now: Instant, work: u128) -> Instant {
        if now > self.busy_until {
            self.busy_until = now;
            self.remainder = 0;
        }
        let work = work.saturating_add(self.remainder);
        // Nearly always the work fits into 64 bits, for which division is several times as fast.
        if let (Ok(work), rate @ 1..) = (u64::try_from(work), self.rate.as_bits_per_second()) {
            self.busy_until += Duration::from_nanos(work / rate);
            self.remainder = u128::from(work % rate);
            return self.busy_until;
        }
        let rate = u128::from(self.rate.as_bits_per_second());
        // The rate zero means unlimited: no work takes any time.
        if let Some(nanos) = work.checked_div(rate) {
            self.busy_until += Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            self.remainder = work % rate;
        }
        self.busy_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backlog_is_drained_at_exactly_the_rate_for_any_rate() {
        for bits in [1, 9_600, 6_999_999, 25_000_000, 999_999_937] {
            let mut transmitter = Transmitter::new(Rate::from_bits_per_second(bits));
            let mut last = Instant::ZERO;
            for _ in 0..1_000 {
                last = transmitter.transmit(Instant::ZERO, 1_000);
            }
            let exact = 1_000_000_u128 * BIT_NANOS_PER_BYTE / u128::from(bits);
            assert_eq!(u128::from(last.as_nanos()), exact, "{bits} bit/s");
        }
    }

    #[test]
    fn an_idle_transmitter_accumulates_no_credit() {
        let mut transmitter = Transmitter::new(Rate::from_megabits_per_second(8));
        assert_eq!(transmitter.transmit(Instant::ZERO, 1_000), Instant::from_millis(1));
        assert_eq!(transmitter.transmit(Instant::from_secs(5), 1_000), Instant::from_millis(5_001));
    }

    #[test]
    fn without_a_rate_limit_everything_leaves_at_once() {
        let mut transmitter = Transmitter::new(Rate::default());
        let now = Instant::from_millis(3);
        assert_eq!(transmitter.transmit(now, u64::MAX), now);
    }

    #[test]
    fn the_rest_of_a_packet_takes_its_time_at_the_new_rate() {
        let before = Rate::from_megabits_per_second(8);
        let mut transmitter = Transmitter::new(before);
        let end = transmitter.transmit(Instant::ZERO, 1_000);
        let now = Instant::from_micros(250);
        transmitter.restart(now, Rate::from_megabits_per_second(4));
        // 750 us at 8 Mbit/s are 1,500 us at 4 Mbit/s.
        assert_eq!(transmitter.transmit_rest(now, end - now, before), Instant::from_micros(1_750));
    }
}
