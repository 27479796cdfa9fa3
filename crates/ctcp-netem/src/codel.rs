//! CoDel, controlled delay (RFC 8289). It drops or marks single packets while the wait stays above a target for longer
//! than an interval. The longer that lasts, the more often it does so.
//!
//! ```text
//!   wait    target ---------.~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~.------
//!                           |<- interval ->|<- i/1 ->|<- i/v2 ->|
//!   signals                                1         2          3 ..    until one packet waits less
//! ```

use core::time::Duration;

use ctcp_base::Instant;

use crate::CodelConfig;

/// With at most this many bytes behind a packet, the queue counts as short (RFC 8289 section 5.2: one maximum packet).
/// It includes the Ethernet header.
pub(crate) const PACKET_MAX: u64 = 1_514;

/// If signalling resumes within this many intervals, it starts near its previous rate (RFC 8289 section 5.5).
const MEMORY_INTERVALS: u32 = 16;

/// The state of CoDel for one queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Codel {
    /// When the wait will have been above the target for an interval; `None` while it is below.
    first_above: Option<Instant>,
    /// When the next signal is due. If not `is_signalling`, when it would have been due.
    next_signal: Instant,
    /// Number of signals since signalling began, which determines their rate.
    count: u32,
    /// `count` when signalling began.
    count_at_begin: u32,
    is_signalling: bool,
}

impl Codel {
    /// Decides about a packet that leaves the queue at `now` after waiting for `wait`, with `backlog` bytes behind it.
    /// If this returns true, the packet must be dropped, or marked and sent.
    pub(crate) fn on_departure(
        &mut self,
        now: Instant,
        wait: Duration,
        backlog: u64,
        config: &CodelConfig,
    ) -> bool {
        if !self.is_above_target_for_long(now, wait, backlog, config) {
            self.is_signalling = false;
            return false;
        }
        if !self.is_signalling {
            self.begin(now, config);
            return true;
        }
        if now < self.next_signal {
            return false;
        }
        self.count = self.count.saturating_add(1);
        self.next_signal += gap(config, self.count);
        true
    }

    /// Records that the queue is empty.
    pub(crate) fn on_empty(&mut self) {
        self.first_above = None;
        self.is_signalling = false;
    }

    fn is_above_target_for_long(
        &mut self,
        now: Instant,
        wait: Duration,
        backlog: u64,
        config: &CodelConfig,
    ) -> bool {
        if wait < config.target || backlog <= PACKET_MAX {
            self.first_above = None;
            return false;
        }
        now >= *self.first_above.get_or_insert(now + config.interval)
    }

    /// Starts signalling. If the last signals are recent, their rate is a better guess than the slowest rate (RFC 8289
    /// section 5.5).
    fn begin(&mut self, now: Instant, config: &CodelConfig) {
        let grown = self.count - self.count_at_begin;
        let is_recent = now < self.next_signal + MEMORY_INTERVALS * config.interval;
        self.count = if grown > 1 && is_recent { grown } else { 1 };
        self.count_at_begin = self.count;
        self.next_signal = now + gap(config, self.count);
        self.is_signalling = true;
    }
}

/// The control law (RFC 8289 section 5.1): the interval divided by the square root of the count.
fn gap(config: &CodelConfig, count: u32) -> Duration {
    let nanos = config.interval.as_nanos() as f64 / f64::from(count.max(1)).sqrt();
    Duration::from_nanos(nanos as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKLOG: u64 = 20_000;

    /// Returns when packets are signalled, in milliseconds. A packet leaves every millisecond from `from` until before
    /// `end`, each after waiting for `wait`.
    fn signals(codel: &mut Codel, from: u64, end: u64, wait: u64) -> Vec<u64> {
        let config = CodelConfig::default();
        let wait = Duration::from_millis(wait);
        (from..end)
            .filter(|&millis| codel.on_departure(Instant::from_millis(millis), wait, BACKLOG, &config))
            .collect()
    }

    #[test]
    fn signals_start_after_an_interval_and_follow_the_square_root_law() {
        // The first signal comes after 100 ms. The gaps are then 100, 100 / sqrt 2 = 70.7, 57.7, 50, 44.7 and 40.8 ms,
        // rounded up to the next departure.
        let found = signals(&mut Codel::default(), 1_000, 1_480, 20);
        assert_eq!(found, [1_100, 1_200, 1_271, 1_329, 1_379, 1_424, 1_464]);
    }

    #[test]
    fn a_wait_below_the_target_and_a_queue_of_one_packet_end_the_signals() {
        let config = CodelConfig::default();
        let mut codel = Codel::default();
        assert_eq!(signals(&mut codel, 0, 100, 20), [] as [u64; 0]);
        assert_eq!(signals(&mut codel, 100, 101, 4), [] as [u64; 0]);
        // The interval starts again.
        assert_eq!(signals(&mut codel, 101, 202, 20), [201]);
        let long = Duration::from_millis(20);
        assert!(!codel.on_departure(Instant::from_millis(400), long, PACKET_MAX, &config));
        assert_eq!(signals(&mut codel, 401, 501, 20), [] as [u64; 0]);
    }

    #[test]
    fn signalling_that_resumes_soon_resumes_near_its_previous_rate() {
        let mut codel = Codel::default();
        // Seven signals; the next one would be due at 1502 ms.
        assert_eq!(signals(&mut codel, 1_000, 1_480, 20).len(), 7);
        codel.on_empty();
        // The count grew from one to seven, so signalling resumes with a count of six: gaps of 40.8, 37.8 and 35.4 ms.
        assert_eq!(signals(&mut codel, 1_500, 1_720, 20), [1_600, 1_641, 1_679, 1_714]);
        codel.on_empty();
        // After 16 intervals the previous rate no longer counts.
        assert_eq!(signals(&mut codel, 4_000, 4_201, 20), [4_100, 4_200]);
    }
}
