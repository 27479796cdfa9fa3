//! What to do when nothing is heard: the probe time-out of RFC 9002 section 6.2, and the paper's retransmission
//! time-out `RTO = gamma RTT` (CTCP Table 1) that sends Algorithm 2 back to slow start.
//!
//! The two are different things. A probe asks the peer what it has, costs a packet or two and changes no window. A
//! retransmission time-out says the path changed so much that what we knew of it is worthless.

use core::time::Duration;

use ctcp_base::Instant;

use super::rtt::{GRANULARITY, RttEstimator};

/// The longest time between probes of a path that was alive once. After an outage of ten seconds plain
/// doubling would wait up to ten more; a few packets a second harm nobody.
pub(crate) const PROBE_INTERVAL_MAX: Duration = Duration::from_millis(500);

/// The same for a path that never answered: each probe is bigger news there, and there is no hurry.
const PROBE_INTERVAL_MAX_UNKNOWN: Duration = Duration::from_secs(3);

/// The exponent beyond which doubling is over, whatever the round-trip time.
const BACKOFF_MAX: u32 = 10;

/// The paper's gamma, which it leaves open (`>= 1`). Four round trips without a single ACK while packets are
/// in flight are no jitter: with two, a queue that doubles the round trip in one burst would already count.
pub(crate) const GAMMA: u32 = 4;

/// The probe time-out with its exponential back-off.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProbeTimeout {
    backoff: u32,
}

impl ProbeTimeout {
    /// Without back-off.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The interval before the next probe, counted from the last ack-eliciting packet.
    pub(crate) fn interval(&self, rtt: &RttEstimator, max_ack_delay: Duration) -> Duration {
        let ceiling = if rtt.has_sample() { PROBE_INTERVAL_MAX } else { PROBE_INTERVAL_MAX_UNKNOWN };
        let base = probe_base(rtt, max_ack_delay);
        // A path slower than the ceiling keeps its own pace.
        base.saturating_mul(1 << self.backoff.min(BACKOFF_MAX)).min(ceiling.max(base))
    }

    /// When to probe, if the last ack-eliciting packet left at `last_sent`.
    pub(crate) fn deadline(
        &self,
        last_sent: Instant,
        rtt: &RttEstimator,
        max_ack_delay: Duration,
    ) -> Instant {
        last_sent + self.interval(rtt, max_ack_delay)
    }

    /// How many packets a probe is: behind one that was not answered two, the most that RFC 9002 6.2.4 allows, for where one of
    /// five gets lost a silence is often just that.
    pub(crate) fn packets(&self) -> u8 {
        if self.backoff > 1 { 2 } else { 1 }
    }

    /// The deadline passed: the next one is twice as far.
    pub(crate) fn on_timeout(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    /// The peer acknowledged something new.
    pub(crate) fn on_ack(&mut self) {
        self.backoff = 0;
    }

    /// How many probes went unanswered in a row.
    pub(crate) fn count(&self) -> u32 {
        self.backoff
    }
}

/// RFC 9002 6.2.1: `smoothed + max(4 variance, granularity) + max_ack_delay`.
fn probe_base(rtt: &RttEstimator, max_ack_delay: Duration) -> Duration {
    rtt.smoothed() + (rtt.variance() * 4).max(GRANULARITY) + max_ack_delay
}

/// The paper's RTO: too long without an ACK while packets are under way.
///
/// Requirement: C4
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetransmissionTimeout {
    gamma: u32,
    /// The later of the last ACK (`time_lastack`) and the moment from which we wait for one.
    waiting_since: Option<Instant>,
    /// Time-outs since the last ACK.
    backoff: u32,
}

impl RetransmissionTimeout {
    /// A time-out of `gamma` round trips, at least one.
    pub(crate) fn new(gamma: u32) -> Self {
        Self { gamma: gamma.max(1), waiting_since: None, backoff: 0 }
    }

    /// An ack-eliciting packet left. Departure from the paper: there the clock runs from the last ACK even when
    /// nothing was under way since, and the first packet after a pause would be late at once.
    pub(crate) fn on_sent(&mut self, now: Instant) {
        self.waiting_since.get_or_insert(now);
    }

    /// An ACK arrived; `is_outstanding`: ack-eliciting packets are still under way.
    pub(crate) fn on_ack(&mut self, now: Instant, is_outstanding: bool) {
        self.waiting_since = is_outstanding.then_some(now);
        self.backoff = 0;
    }

    /// Packets were declared lost. When no other is under way, no answer is due.
    pub(crate) fn on_lost(&mut self, is_outstanding: bool) {
        self.waiting_since = self.waiting_since.filter(|_| is_outstanding);
    }

    /// Whether the last time-out is not answered yet.
    pub(crate) fn has_fired(&self) -> bool {
        self.backoff > 0
    }

    /// When the path counts as timed out; `None` while no answer is due. Never before the peer was obliged to
    /// answer, which on paths shorter than the acknowledgement delay is later than `gamma` round trips.
    pub(crate) fn deadline(&self, rtt: &RttEstimator, max_ack_delay: Duration) -> Option<Instant> {
        let interval = (rtt.smoothed() * self.gamma).max(probe_base(rtt, max_ack_delay));
        self.waiting_since.map(|since| since + interval.saturating_mul(1 << self.backoff))
    }

    /// The deadline passed: the controller and the loss average are reset, and the wait begins again, twice as long
    /// (RFC 6298 5.5): on a path of a millisecond that died, nobody wants to hear of it a hundred times a second.
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
    fn probes_double_and_stop_at_half_a_second_once_the_path_was_alive() {
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
    fn the_retransmission_time_out_is_gamma_round_trips_after_the_last_ack() {
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
    fn a_path_that_stays_dead_times_out_ever_more_rarely() {
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
    fn no_retransmission_time_out_runs_when_all_that_was_under_way_is_lost() {
        let rtt = measured(20);
        let mut timeout = RetransmissionTimeout::new(GAMMA);
        timeout.on_sent(Instant::from_millis(1_000));
        timeout.on_lost(true);
        assert_eq!(timeout.deadline(&rtt, ACK_DELAY), Some(Instant::from_millis(1_080)));
        timeout.on_lost(false);
        assert_eq!(timeout.deadline(&rtt, ACK_DELAY), None);
    }

    #[test]
    fn on_a_path_shorter_than_the_acknowledgement_delay_the_peer_still_gets_its_delay() {
        let rtt = measured(1);
        let mut timeout = RetransmissionTimeout::new(1);
        timeout.on_sent(Instant::ZERO);
        let deadline = timeout.deadline(&rtt, ACK_DELAY).expect("a packet is under way");
        assert!(deadline >= Instant::from_millis(6));
    }
}
