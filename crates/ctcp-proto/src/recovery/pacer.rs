//! Pacing of packets: a token bucket in bytes.
//!
//! ```text
//!   credit
//!   cap  |      /-----            accrues at `rate` up to `cap`
//!        |     /                  a packet may be sent if credit covers it,
//!      0 |----/                   which reduces credit by its size
//! ```
//!
//! The cap is the largest burst. A burst queues behind itself and distorts the round-trip samples that the paper's back-off depends on. So
//! the cap is two milliseconds of the rate, but at least two datagrams. Two milliseconds also let a caller whose timer fires up to 1.5 ms
//! late keep the rate.

use core::time::Duration;

use ctcp_base::Instant;

/// The duration of the largest burst at the pacing rate.
pub(crate) const BURST_TIME: Duration = Duration::from_millis(2);
/// The minimum size of the largest burst.
const BURST_DATAGRAMS_MIN: f64 = 2.0;
/// The same for a caller with a punctual timer: longer than the timer's delay, and at most two datagrams at the papers' rates.
const BURST_TIME_PUNCTUAL: Duration = Duration::from_micros(500);
/// The lowest rate; it keeps deadlines finite.
const RATE_MIN: f64 = 1.0;

/// Spreads packets over time.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    /// Bytes per second; `None` for no pacing.
    rate: Option<f64>,
    datagram: f64,
    burst_time: Duration,
    credit: f64,
    updated: Instant,
}

impl Pacer {
    /// Creates a pacer without a rate: everything may be sent.
    pub(crate) fn new(now: Instant, datagram_size: u64) -> Self {
        let datagram = datagram_size as f64;
        let (burst_time, credit) = (BURST_TIME, BURST_DATAGRAMS_MIN * datagram);
        Self { rate: None, datagram, burst_time, credit, updated: now }
    }

    /// For a caller whose timer is late by less than half a millisecond.
    pub(crate) fn punctual(self) -> Self {
        Self { burst_time: BURST_TIME_PUNCTUAL, ..self }
    }

    /// Sets the rate in bytes per second; `None` disables pacing.
    pub(crate) fn set_rate(&mut self, now: Instant, rate: Option<f64>) {
        self.accrue(now);
        self.rate = rate.map(|rate| rate.max(RATE_MIN));
        self.credit = self.credit.min(self.cap());
    }

    /// Whether pacing is enabled.
    pub(crate) fn has_rate(&self) -> bool {
        self.rate.is_some()
    }

    /// Sets the size of a full datagram, after the path's MTU changed.
    pub(crate) fn set_datagram_size(&mut self, bytes: u64) {
        self.datagram = bytes as f64;
    }

    /// Whether `size` bytes may be sent now.
    #[cfg(test)]
    pub(crate) fn can_send(&self, now: Instant, size: u64) -> bool {
        self.next_time(now, size).is_none()
    }

    /// Records that `size` bytes are sent now, whether allowed or not. Bytes sent too early become debt.
    pub(crate) fn on_sent(&mut self, now: Instant, size: u64) {
        self.accrue(now);
        if self.rate.is_some() {
            // The debt is bounded, so that probes that ignore the pacer do not silence the path for long.
            self.credit = (self.credit - size as f64).max(-self.cap());
        }
    }

    /// When `size` bytes may be sent; `None` means now.
    pub(crate) fn next_time(&self, now: Instant, size: u64) -> Option<Instant> {
        let rate = self.rate?;
        // A datagram larger than the cap may be sent when the bucket is full.
        let missing = (size as f64).min(self.cap()) - self.credit;
        // Relative to the last change rather than to now, so that repeated calls return exactly the same time.
        let nanos = (missing / rate * 1e9).max(0.0);
        let time = self.updated + Duration::from_nanos(nanos as u64 + 1);
        (missing > 0.0 && time > now).then_some(time)
    }

    /// The largest burst in bytes.
    fn cap(&self) -> f64 {
        let time_worth = self.rate.unwrap_or(0.0) * self.burst_time.as_secs_f64();
        time_worth.max(BURST_DATAGRAMS_MIN * self.datagram)
    }

    fn credit_at(&self, now: Instant) -> f64 {
        let rate = self.rate.unwrap_or(0.0);
        (self.credit + rate * (now - self.updated).as_secs_f64()).min(self.cap())
    }

    fn accrue(&mut self, now: Instant) {
        self.credit = self.credit_at(now);
        self.updated = self.updated.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATAGRAM: u64 = 1_200;

    /// Sends as much as the pacer allows for `seconds`, waking `late` after each deadline. Returns the number of bytes sent and the largest
    /// number of packets at one instant.
    fn drive(rate: f64, late: Duration, seconds: u64) -> (u64, u64) {
        let mut pacer = Pacer::new(Instant::ZERO, DATAGRAM);
        pacer.set_rate(Instant::ZERO, Some(rate));
        let (mut now, mut sent, mut largest) = (Instant::ZERO, 0, 0);
        while now < Instant::from_secs(seconds) {
            let mut burst = 0;
            while pacer.can_send(now, DATAGRAM) {
                pacer.on_sent(now, DATAGRAM);
                burst += 1;
            }
            sent += burst * DATAGRAM;
            largest = largest.max(burst);
            now = pacer.next_time(now, DATAGRAM).expect("the bucket is empty") + late;
        }
        (sent, largest)
    }

    #[test]
    fn a_punctual_caller_gets_the_rate_without_bursts() {
        let (sent, _) = drive(3.125e6, Duration::ZERO, 2);
        assert!((6_240_000..6_270_000).contains(&sent), "{sent}");
    }

    #[test]
    fn a_caller_that_wakes_a_millisecond_and_a_half_late_gets_the_rate_too() {
        for rate in [625e3, 3.125e6, 12.5e6, 125e6] {
            let (sent, _) = drive(rate, Duration::from_micros(1_500), 2);
            let share = sent as f64 / (2.0 * rate);
            assert!((0.99..1.01).contains(&share), "{rate}: {share}");
        }
    }

    #[test]
    fn bursts_are_two_packets_at_low_rates_and_two_milliseconds_at_high_ones() {
        let late = Duration::from_secs(1);
        assert_eq!(drive(100e3, late, 10).1, 2);
        assert_eq!(drive(625e3, late, 10).1, 2);
        assert_eq!(drive(12.5e6, late, 10).1, 20);
    }

    #[test]
    fn without_a_rate_everything_may_leave() {
        let mut pacer = Pacer::new(Instant::ZERO, DATAGRAM);
        for _ in 0..1_000 {
            assert!(pacer.can_send(Instant::ZERO, DATAGRAM));
            pacer.on_sent(Instant::ZERO, DATAGRAM);
        }
    }

    #[test]
    fn a_packet_sent_without_permission_is_owed() {
        let mut pacer = Pacer::new(Instant::ZERO, DATAGRAM);
        pacer.set_rate(Instant::ZERO, Some(1.2e6));
        for _ in 0..3 {
            pacer.on_sent(Instant::ZERO, DATAGRAM);
        }
        // One packet of debt and one to earn, a millisecond each.
        let next = pacer.next_time(Instant::ZERO, DATAGRAM).expect("in debt");
        assert!((next - Instant::ZERO).abs_diff(Duration::from_millis(2)) < Duration::from_micros(1));
    }
}
