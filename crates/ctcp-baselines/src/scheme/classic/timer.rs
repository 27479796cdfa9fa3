//! The retransmission timer of classical TCP (RFC 6298): one timer, for the oldest packet that is not acknowledged.
//!
//! The transport's own timers send probes and do not go back to earlier data. This one is for sources that behave
//! exactly like TCP.

use core::time::Duration;

use ctcp_base::Instant;

use ctcp_proto::congestion::RttEstimator;

/// RFC 6298 (2.4) requires a second because of the coarse clocks of its time. The papers' simulators and today's
/// systems use this value.
const MINIMUM: Duration = Duration::from_millis(200);
/// RFC 6298 (2.5) allows a maximum of at least this.
const MAXIMUM: Duration = Duration::from_secs(60);
/// RFC 6298 (2.1).
const INITIAL: Duration = Duration::from_secs(1);

/// The retransmission timer.
#[derive(Debug, Default)]
pub(super) struct RetransmissionTimer {
    /// Since when the timer runs.
    started: Option<Instant>,
    /// Number of time-outs since something new was acknowledged (5.5).
    backoff: u32,
}

impl RetransmissionTimer {
    /// Records that a packet was sent, and starts the timer unless it runs (5.1).
    pub(super) fn on_sent(&mut self, now: Instant) {
        self.started.get_or_insert(now);
    }

    /// Records that something new was acknowledged. Restarts the timer if more is outstanding, and stops it otherwise
    /// (5.2, 5.3).
    ///
    /// The doubled time-out is kept until a packet that was sent only once is acknowledged (Karn's algorithm, section
    /// 3).
    pub(super) fn on_ack(&mut self, now: Instant, is_outstanding: bool, has_sample: bool) {
        self.started = is_outstanding.then_some(now);
        if has_sample {
            self.backoff = 0;
        }
    }

    /// Handles the expiry of the timer (5.5, 5.6).
    pub(super) fn on_timeout(&mut self, now: Instant) {
        self.started = Some(now);
        self.backoff = self.backoff.saturating_add(1);
    }

    /// Returns when the timer expires.
    pub(super) fn deadline(&self, rtt: &RttEstimator) -> Option<Instant> {
        let base = if rtt.has_sample() { patience(rtt).max(MINIMUM) } else { INITIAL };
        let interval = base.saturating_mul(1 << self.backoff.min(10)).min(MAXIMUM.max(base));
        Some(self.started? + interval)
    }
}

/// Returns the time within which an acknowledgement should arrive: SRTT + 4 RTTVAR (2.3).
pub(super) fn patience(rtt: &RttEstimator) -> Duration {
    rtt.smoothed() + 4 * rtt.variance()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctcp_proto::congestion::INITIAL_RTT;

    #[test]
    fn the_time_out_has_a_minimum_doubles_and_restarts_with_acknowledgements() {
        let mut rtt = RttEstimator::new(INITIAL_RTT);
        let mut timer = RetransmissionTimer::default();
        let at = Instant::from_millis;
        assert_eq!(timer.deadline(&rtt), None);
        timer.on_sent(at(100));
        timer.on_sent(at(500));
        assert_eq!(timer.deadline(&rtt), Some(at(1_100)));
        rtt.on_sample(at(600), Duration::from_millis(400), Duration::ZERO);
        timer.on_ack(at(600), true, true);
        assert_eq!(timer.deadline(&rtt), Some(at(600) + Duration::from_millis(1_200)));
        timer.on_timeout(at(1_800));
        timer.on_ack(at(2_000), true, false);
        assert_eq!(timer.deadline(&rtt), Some(at(2_000) + Duration::from_millis(2_400)));
        timer.on_ack(at(2_100), true, true);
        assert_eq!(timer.deadline(&rtt), Some(at(2_100) + Duration::from_millis(1_200)));
        timer.on_ack(at(2_200), false, true);
        assert_eq!(timer.deadline(&rtt), None);
    }
}
