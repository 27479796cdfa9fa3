//! When a client checks a path on which nothing arrives any more.
//!
//! The address of a client that only receives may change without its knowledge, as when a NAT forgets it. The server then goes on sending to
//! the old address until the client sends something on the path. So a client sends a PING soon after a flow of data stops.

use core::time::Duration;

use ctcp_base::Instant;

/// Coded packets that follow each other within this time are a flow.
const FLOW_GAP: Duration = Duration::from_millis(25);

/// How long a flow must stop before the first check.
const FLOW_SILENCE: Duration = Duration::from_millis(40);

/// A flow that stopped may go on within this time.
const FLOW_RECENT: Duration = Duration::from_secs(2);

/// The checks of a flow that stopped.
const CHECKS_MAX: u32 = 4;

/// Times of the packets on a path.
#[derive(Debug)]
pub(crate) struct Silence {
    last_received: Instant,
    last_eliciting: Instant,
    /// When coded data last arrived.
    last_coded: Instant,
    /// Whether the last coded packet followed another within [`FLOW_GAP`].
    is_flow: bool,
    /// The checks since coded data last arrived.
    checks: u32,
}

impl Silence {
    pub(super) fn new(now: Instant) -> Self {
        Self { last_received: now, last_eliciting: now, last_coded: now, is_flow: false, checks: 0 }
    }

    /// An authentic packet arrived.
    pub(crate) fn on_received(&mut self, now: Instant) {
        self.last_received = now;
    }

    /// Coded data arrived.
    pub(crate) fn on_coded(&mut self, now: Instant) {
        self.is_flow = now.saturating_since(self.last_coded) < FLOW_GAP;
        self.last_coded = now;
        self.checks = 0;
    }

    /// Whether coded data has arrived lately.
    pub(crate) fn is_flowing(&self, now: Instant) -> bool {
        self.is_flow && now.saturating_since(self.last_coded) < FLOW_RECENT
    }

    /// An ack-eliciting packet was sent.
    pub(super) fn on_eliciting(&mut self, now: Instant) {
        self.last_eliciting = now;
    }

    /// A check was sent.
    pub(crate) fn on_check(&mut self) {
        self.checks = self.checks.saturating_add(1);
    }

    /// When to check a flow that has stopped. Later checks allow for the round trip of the earlier ones.
    pub(crate) fn check_deadline(&self, rtt: Duration) -> Option<Instant> {
        if !self.is_flow || self.checks >= CHECKS_MAX {
            return None;
        }
        let answer = if self.checks == 0 { Duration::ZERO } else { rtt };
        Some(self.last_packet() + (FLOW_SILENCE + answer) * (1 << self.checks))
    }

    /// When the last packet arrived or was sent that the peer must acknowledge.
    pub(crate) fn last_packet(&self) -> Instant {
        self.last_received.max(self.last_eliciting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn after(millis: u64) -> Instant {
        Instant::from_secs(1) + Duration::from_millis(millis)
    }

    #[test]
    fn a_flow_that_stops_is_checked_a_few_times_and_single_packets_are_not() {
        let mut silence = Silence::new(after(0));
        let receive = |silence: &mut Silence, millis| {
            silence.on_received(after(millis));
            silence.on_coded(after(millis));
        };
        receive(&mut silence, 100);
        assert_eq!(silence.check_deadline(RTT), None);
        receive(&mut silence, 110);
        let mut checks = Vec::new();
        while let Some(deadline) = silence.check_deadline(RTT) {
            checks.push((deadline - after(110)).as_millis());
            silence.on_check();
            silence.on_eliciting(deadline);
        }
        assert_eq!(checks, [40, 320, 880, 2_000]);
        receive(&mut silence, 5_000);
        assert_eq!(silence.check_deadline(RTT), None);
    }
}
