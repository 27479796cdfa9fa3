//! The retransmission timer of classical TCP (RFC 6298): one timer, for the oldest packet that is not acknowledged.
//!
//! The transport's own timers probe and take nothing back. This one is for sources that do exactly what TCP does.

use core::time::Duration;

use ctcp_base::Instant;

use ctcp_proto::congestion::RttEstimator;

/// RFC 6298 (2.4) asks for a second, for the coarse clocks of its day; the simulators of the papers and today's systems have this.
const MINIMUM: Duration = Duration::from_millis(200);
/// RFC 6298 (2.5) allows a bound of at least this.
const MAXIMUM: Duration = Duration::from_secs(60);
/// RFC 6298 (2.1).
const INITIAL: Duration = Duration::from_secs(1);

/// When to send again.
#[derive(Debug, Default)]
pub(super) struct RetransmissionTimer {
    /// It runs since then.
    started: Option<Instant>,
    /// Time-outs since something new was acknowledged (5.5).
    backoff: u32,
}

impl RetransmissionTimer {
    /// A packet was sent: the timer runs from now on unless it does (5.1).
    pub(super) fn on_sent(&mut self, now: Instant) {
        self.started.get_or_insert(now);
    }

    /// Something new was acknowledged: the timer begins anew while there is more to wait for (5.2, 5.3).
    ///
    /// The doubled time-out is kept until a packet that was sent once is acknowledged (Karn's algorithm, section 3).
    pub(super) fn on_ack(&mut self, now: Instant, is_outstanding: bool, has_sample: bool) {
        self.started = is_outstanding.then_some(now);
        if has_sample {
            self.backoff = 0;
        }
    }

    /// It went off (5.5, 5.6).
    pub(super) fn on_timeout(&mut self, now: Instant) {
        self.started = Some(now);
        self.backoff = self.backoff.saturating_add(1);
    }

    /// When it goes off.
    pub(super) fn deadline(&self, rtt: &RttEstimator) -> Option<Instant> {
        let base = if rtt.has_sample() { patience(rtt).max(MINIMUM) } else { INITIAL };
        let interval = base.saturating_mul(1 << self.backoff.min(10)).min(MAXIMUM.max(base));
        Some(self.started? + interval)
    }
}

/// Longer than this no acknowledgement should take: SRTT + 4 RTTVAR (2.3).
pub(super) fn patience(rtt: &RttEstimator) -> Duration {
    rtt.smoothed() + 4 * rtt.variance()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctcp_proto::congestion::INITIAL_RTT;

    #[test]
    fn it_waits_for_its_minimum_doubles_and_begins_anew_with_news() {
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
