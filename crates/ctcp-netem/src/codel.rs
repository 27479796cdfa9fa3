//! CoDel, controlled delay (RFC 8289): a packet now and then is dropped or marked while the wait stays above a target for
//! longer than an interval, more often the longer that lasts.
//!
//! ```text
//!   wait    target ---------.~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~.------
//!                           |<- interval ->|<- i/1 ->|<- i/v2 ->|
//!   signals                                1         2          3 ..    until one packet waits less
//! ```

use core::time::Duration;

use ctcp_base::Instant;

use crate::CodelConfig;

/// With no more than this many bytes behind a packet the queue is as short as it can be (RFC 8289 section 5.2: one
/// maximum packet). The headers of Ethernet are in it.
pub(crate) const PACKET_MAX: u64 = 1_514;

/// Signals that begin within so many intervals of the last ones begin at about the rate that they had (RFC 8289
/// section 5.5).
const MEMORY_INTERVALS: u32 = 16;

/// The state of one queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Codel {
    /// When the wait will have been above the target for an interval; `None` when it is below.
    first_above: Option<Instant>,
    /// When the next signal is due, while `is_signalling`; afterwards when it would have been.
    next_signal: Instant,
    /// Signals since they began, to which the rate belongs.
    count: u32,
    /// `count` when they began.
    count_at_begin: u32,
    is_signalling: bool,
}

impl Codel {
    /// Judges a packet that leaves the queue at `now` after having waited for `wait`, with `backlog` bytes behind it. True:
    /// it must be dropped, or marked and sent.
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

    /// The queue is empty.
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

    /// RFC 8289 section 5.5: if the last signals are not long ago, their rate is a better guess than the slowest one.
    fn begin(&mut self, now: Instant, config: &CodelConfig) {
        let grown = self.count - self.count_at_begin;
        let is_recent = now < self.next_signal + MEMORY_INTERVALS * config.interval;
        self.count = if grown > 1 && is_recent { grown } else { 1 };
        self.count_at_begin = self.count;
        self.next_signal = now + gap(config, self.count);
        self.is_signalling = true;
    }
}

/// The control law (RFC 8289 section 5.1): the interval by the root of the count.
fn gap(config: &CodelConfig, count: u32) -> Duration {
    let nanos = config.interval.as_nanos() as f64 / f64::from(count.max(1)).sqrt();
    Duration::from_nanos(nanos as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKLOG: u64 = 20_000;

    /// When packets that leave each `step` from `from` until before `end`, having waited for `wait`, are signalled, in
    /// milliseconds.
    fn signals(codel: &mut Codel, from: u64, end: u64, wait: u64) -> Vec<u64> {
        let config = CodelConfig::default();
        let wait = Duration::from_millis(wait);
        (from..end)
            .filter(|&millis| codel.on_departure(Instant::from_millis(millis), wait, BACKLOG, &config))
            .collect()
    }

    #[test]
    fn signals_come_an_interval_after_the_wait_and_then_by_the_root_of_their_number() {
        // After 100 ms; then after 100, 100 / sqrt 2 = 70.7, 57.7, 50, 44.7, 40.8 ms, rounded up to a departure.
        let found = signals(&mut Codel::default(), 1_000, 1_480, 20);
        assert_eq!(found, [1_100, 1_200, 1_271, 1_329, 1_379, 1_424, 1_464]);
    }

    #[test]
    fn a_wait_below_the_target_and_a_queue_of_one_packet_end_the_signals() {
        let config = CodelConfig::default();
        let mut codel = Codel::default();
        assert_eq!(signals(&mut codel, 0, 100, 20), [] as [u64; 0]);
        assert_eq!(signals(&mut codel, 100, 101, 4), [] as [u64; 0]);
        // The interval begins again.
        assert_eq!(signals(&mut codel, 101, 202, 20), [201]);
        let long = Duration::from_millis(20);
        assert!(!codel.on_departure(Instant::from_millis(400), long, PACKET_MAX, &config));
        assert_eq!(signals(&mut codel, 401, 501, 20), [] as [u64; 0]);
    }

    #[test]
    fn signals_that_begin_again_soon_begin_at_the_rate_they_had() {
        let mut codel = Codel::default();
        // Seven signals; the next would be due at 1502 ms.
        assert_eq!(signals(&mut codel, 1_000, 1_480, 20).len(), 7);
        codel.on_empty();
        // From seven, begun at one, they go on with six: gaps of 40.8, then 37.8 and 35.4 ms.
        assert_eq!(signals(&mut codel, 1_500, 1_720, 20), [1_600, 1_641, 1_679, 1_714]);
        codel.on_empty();
        // After 16 intervals that is forgotten.
        assert_eq!(signals(&mut codel, 4_000, 4_201, 20), [4_100, 4_200]);
    }
}
