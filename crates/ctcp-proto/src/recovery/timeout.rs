//! Timeouts: the probe timeout of RFC 9002 section 6.2, and the paper's retransmission timeout `RTO = gamma RTT` (CTCP Table 1), after
//! which Algorithm 2 returns to slow start.
//!
//! They serve different purposes. A probe elicits an ACK, costs a packet or two (more after bursts of losses) and does not change the window. A retransmission timeout
//! indicates that the path has changed so much that the congestion state is worthless.

use core::time::Duration;

use ctcp_base::Instant;

use super::rtt::{GRANULARITY, RttEstimator};

/// The longest interval between probes of a path that has answered before. After an outage of ten seconds, plain doubling would wait up to
/// ten more. A few packets per second do no harm for half a minute, but they keep a phone awake. So the limit rises by as much again after
/// every [`LONG_SILENCE`] probes, up to [`LONG_SILENCE_FACTOR`] times as much.
pub(crate) const PROBE_INTERVAL_MAX: Duration = Duration::from_millis(500);
const LONG_SILENCE: u32 = 60;
const LONG_SILENCE_FACTOR: u32 = 10;

/// The same for a path that has never answered, where there is no hurry.
const PROBE_INTERVAL_MAX_UNKNOWN: Duration = Duration::from_secs(3);

/// The most packets of a probe, and how many probes in a row may have so many.
const BURST_PROBES_MAX: u32 = 16;
const BURST_PROBES: u32 = 4;

/// The most packets of a probe where bursts are not known. They are at most this share of what the path delivered, so that they do no harm even if
/// many flows probe at the same time.
const DOUBLED_MAX: u32 = 8;
const PROBES_SHARE: f64 = 0.25;

/// Maximum exponent of the back-off, whatever the round-trip time.
const BACKOFF_MAX: u32 = 10;

/// The paper's gamma, which it leaves open (`>= 1`). Four round trips without a single ACK while packets are in flight are more than
/// jitter. With two, a queue that doubles the round trip in one burst would already trigger it.
pub(crate) const GAMMA: u32 = 4;

/// The probe timeout with its exponential back-off.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProbeTimeout {
    backoff: u32,
}

impl ProbeTimeout {
    /// Creates one without back-off.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The interval before the next probe, counted from the last ack-eliciting packet.
    pub(crate) fn interval(&self, rtt: &RttEstimator, max_ack_delay: Duration) -> Duration {
        let factor = (1 + self.backoff / LONG_SILENCE).min(LONG_SILENCE_FACTOR);
        let ceiling = if rtt.has_sample() { PROBE_INTERVAL_MAX * factor } else { PROBE_INTERVAL_MAX_UNKNOWN };
        let base = probe_base(rtt, max_ack_delay);
        // A path slower than the ceiling is probed at its own interval.
        base.saturating_mul(1 << self.backoff.min(BACKOFF_MAX)).min(ceiling.max(base))
    }

    /// When to send a probe if the last ack-eliciting packet was sent at `last_sent`.
    pub(crate) fn deadline(
        &self,
        last_sent: Instant,
        rtt: &RttEstimator,
        max_ack_delay: Duration,
    ) -> Instant {
        last_sent + self.interval(rtt, max_ack_delay)
    }

    /// How many packets to send as a probe: two after an unanswered one, the maximum of RFC 9002 6.2.4. With a fifth of the packets lost,
    /// silence is often just the loss of a probe.
    ///
    /// A burst of losses ends only when more is sent. So the second to the fourth probe have up to [`DOUBLED_MAX`] packets if that is little of
    /// the `delivered` ones, which the path delivers until the next probe. If bursts are known to have `burst_length` packets, each of the first
    /// four probes has as many, and each later one half of the one before.
    pub(crate) fn packets(&self, burst_length: u32, delivered: f64) -> u8 {
        let usual = if self.backoff > 1 { 2 } else { 1 };
        let doubled = match self.backoff {
            unanswered @ 2..=BURST_PROBES => (1 << unanswered).min(DOUBLED_MAX),
            _ => 0,
        };
        let little = ((delivered * PROBES_SHARE) as u32).min(doubled);
        let burst =
            burst_length.min(BURST_PROBES_MAX) >> self.backoff.saturating_sub(BURST_PROBES).min(BACKOFF_MAX);
        usual.max(burst.max(little) as u8)
    }

    /// The deadline passed. The next interval is twice as long.
    pub(crate) fn on_timeout(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    /// The peer newly acknowledged a packet.
    pub(crate) fn on_ack(&mut self) {
        self.backoff = 0;
    }

    /// The number of consecutive unanswered probes.
    pub(crate) fn count(&self) -> u32 {
        self.backoff
    }
}

/// RFC 9002 6.2.1: `smoothed + max(4 variance, granularity) + max_ack_delay`.
fn probe_base(rtt: &RttEstimator, max_ack_delay: Duration) -> Duration {
    rtt.smoothed() + (rtt.variance() * 4).max(GRANULARITY) + max_ack_delay
}

/// The paper's RTO: no ACK for too long while packets are in flight.
///
/// Requirement: C4
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetransmissionTimeout {
    gamma: u32,
    /// The later of the last ACK (`time_lastack`) and the moment from which an ACK is due.
    waiting_since: Option<Instant>,
    /// Timeouts since the last ACK.
    backoff: u32,
}

impl RetransmissionTimeout {
    /// Creates a timeout of `gamma` round trips, at least one.
    pub(crate) fn new(gamma: u32) -> Self {
        Self { gamma: gamma.max(1), waiting_since: None, backoff: 0 }
    }

    /// An ack-eliciting packet was sent. Departure from the paper: there, the time runs from the last ACK even if nothing has been in
    /// flight since, so the first packet after a pause would time out at once.
    pub(crate) fn on_sent(&mut self, now: Instant) {
        self.waiting_since.get_or_insert(now);
    }

    /// An ACK arrived. `is_outstanding` if ack-eliciting packets are still in flight.
    pub(crate) fn on_ack(&mut self, now: Instant, is_outstanding: bool) {
        self.waiting_since = is_outstanding.then_some(now);
        self.backoff = 0;
    }

    /// Packets were declared lost. If no others are in flight, no ACK is due.
    pub(crate) fn on_lost(&mut self, is_outstanding: bool) {
        self.waiting_since = self.waiting_since.filter(|_| is_outstanding);
    }

    /// Whether nothing was acknowledged since the last timeout.
    pub(crate) fn has_fired(&self) -> bool {
        self.backoff > 0
    }

    /// When the timeout expires; `None` while no ACK is due. Never before the peer was obliged to answer. On paths shorter than the
    /// acknowledgement delay that is later than `gamma` round trips.
    pub(crate) fn deadline(&self, rtt: &RttEstimator, max_ack_delay: Duration) -> Option<Instant> {
        let interval = (rtt.smoothed() * self.gamma).max(probe_base(rtt, max_ack_delay));
        self.waiting_since.map(|since| since + interval.saturating_mul(1 << self.backoff))
    }

    /// The deadline passed: the caller resets the controller and the loss average, and the next interval is twice as long (RFC 6298 5.5).
    /// Without that a dead path of one millisecond would time out a hundred times per second.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        self.waiting_since = Some(now);
        self.backoff = (self.backoff + 1).min(BACKOFF_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACK_DELAY: Duration = Duration::from_millis(5);

    fn measured(millis: u64) -> RttEstimator {
        let mut rtt = RttEstimator::new(Duration::from_millis(333));
        for index in 0..100 {
            rtt.on_sample(Instant::from_millis(index), Duration::from_millis(millis), Duration::ZERO);
        }
        rtt
    }

    #[test]
    fn probe_intervals_double_up_to_half_a_second_on_a_path_that_was_alive() {
        let rtt = measured(20);
        let mut probe = ProbeTimeout::new();
        let mut previous = probe.interval(&rtt, ACK_DELAY);
        assert!((Duration::from_millis(26)..Duration::from_millis(27)).contains(&previous), "{previous:?}");
        for _ in 0..50 {
            probe.on_timeout();
            let interval = probe.interval(&rtt, ACK_DELAY);
            assert!(interval == previous * 2 || interval == PROBE_INTERVAL_MAX, "{interval:?}");
            previous = interval;
        }
        assert_eq!(previous, PROBE_INTERVAL_MAX);
        probe.on_ack();
        assert_eq!(probe.count(), 0);
    }

    #[test]
    fn a_path_that_is_silent_for_long_is_probed_less_often() {
        let rtt = measured(20);
        let mut probe = ProbeTimeout::new();
        let (mut time, mut intervals) = (Duration::ZERO, Vec::new());
        for after in [30, 60, 3_600] {
            while time < Duration::from_secs(after) {
                time += probe.interval(&rtt, ACK_DELAY);
                probe.on_timeout();
            }
            intervals.push(probe.interval(&rtt, ACK_DELAY).as_millis());
        }
        assert_eq!(intervals, [1_000, 1_000, 5_000]);
    }

    #[test]
    fn a_probe_has_more_packets_where_losses_come_in_bursts_and_fewer_from_the_fifth_on() {
        let packets = |burst_length, delivered| {
            let mut probe = ProbeTimeout::new();
            [(); 6].map(|()| {
                probe.on_timeout();
                probe.packets(burst_length, delivered)
            })
        };
        assert_eq!(packets(1, 0.0), [1, 2, 2, 2, 2, 2]);
        assert_eq!(packets(10, 0.0), [10, 10, 10, 10, 5, 2]);
        assert_eq!(packets(1_000, 1e9), [16, 16, 16, 16, 8, 4]);
        // Where bursts are not known, a quarter of what the path delivers is little.
        assert_eq!(packets(1, 1e9), [1, 4, 8, 8, 2, 2]);
        assert_eq!(packets(1, 24.0), [1, 4, 6, 6, 2, 2]);
    }

    #[test]
    fn a_path_slower_than_the_ceiling_is_not_probed_before_its_round_trip_is_over() {
        let rtt = measured(1_500);
        let mut probe = ProbeTimeout::new();
        let first = probe.interval(&rtt, ACK_DELAY);
        probe.on_timeout();
        assert!(first > Duration::from_millis(1_500));
        assert_eq!(probe.interval(&rtt, ACK_DELAY), first);
    }

    // Requirement: C4
    #[test]
    fn the_retransmission_timeout_is_gamma_round_trips_after_the_last_ack() {
        let rtt = measured(20);
        let mut timeout = RetransmissionTimeout::new(GAMMA);
        assert_eq!(timeout.deadline(&rtt, ACK_DELAY), None);
        timeout.on_sent(Instant::from_millis(1_000));
        timeout.on_sent(Instant::from_millis(1_010));
        assert_eq!(timeout.deadline(&rtt, ACK_DELAY), Some(Instant::from_millis(1_080)));
        timeout.on_ack(Instant::from_millis(1_020), true);
        assert_eq!(timeout.deadline(&rtt, ACK_DELAY), Some(Instant::from_millis(1_100)));
        timeout.on_ack(Instant::from_millis(1_030), false);
        assert_eq!(timeout.deadline(&rtt, ACK_DELAY), None);
    }

    #[test]
    fn timeouts_of_a_dead_path_back_off() {
        let rtt = measured(20);
        let mut timeout = RetransmissionTimeout::new(GAMMA);
        timeout.on_sent(Instant::ZERO);
        for millis in [80, 240, 560] {
            assert_eq!(timeout.deadline(&rtt, ACK_DELAY), Some(Instant::from_millis(millis)));
            timeout.on_timeout(Instant::from_millis(millis));
        }
        timeout.on_ack(Instant::from_millis(1_000), true);
        assert_eq!(timeout.deadline(&rtt, ACK_DELAY), Some(Instant::from_millis(1_080)));
    }

    #[test]
    fn no_retransmission_timeout_runs_once_all_packets_in_flight_are_lost() {
        let rtt = measured(20);
        let mut timeout = RetransmissionTimeout::new(GAMMA);
        timeout.on_sent(Instant::from_millis(1_000));
        timeout.on_lost(true);
        assert_eq!(timeout.deadline(&rtt, ACK_DELAY), Some(Instant::from_millis(1_080)));
        timeout.on_lost(false);
        assert_eq!(timeout.deadline(&rtt, ACK_DELAY), None);
    }

    #[test]
    fn the_retransmission_timeout_allows_for_the_acknowledgement_delay() {
        let rtt = measured(1);
        let mut timeout = RetransmissionTimeout::new(1);
        timeout.on_sent(Instant::ZERO);
        let deadline = timeout.deadline(&rtt, ACK_DELAY).expect("a packet is in flight");
        assert!(deadline >= Instant::from_millis(6));
    }
}
