//! How often the peer should acknowledge the packets of a path.

use ctcp_base::Instant;

use super::Path;
use crate::ack::frequency::Flow;
use crate::profile::AckRule;
use crate::wire::DatagramBuilder;

impl Path {
    /// Decides after an acknowledgement. A path through relays needs few acknowledgements anyway.
    pub(super) fn request_acks(&mut self, now: Instant, acked: usize) {
        if self.profile.rules.acks != AckRule::Requested || self.is_relayed() {
            return;
        }
        let controller = &self.admission.controller;
        self.ack_requests.on_ack(&Flow {
            now,
            window: self.admission.window(),
            acked,
            rtt: self.measured.rtt.smoothed(),
            is_alert: controller.needs_samples(now),
        });
    }

    /// Whether an ACK_FREQUENCY should be sent. While the path does not answer, it can wait.
    pub(crate) fn owes_ack_request(&self) -> bool {
        self.ack_requests.is_due() && self.owed.probe.count() == 0
    }

    /// Writes an ACK_FREQUENCY if one is owed. Returns its number.
    pub(crate) fn write_ack_request(&mut self, builder: &mut DatagramBuilder) -> Option<u64> {
        let is_written = self.owes_ack_request() && builder.write_if_it_fits(&self.ack_requests.frame());
        is_written.then(|| self.ack_requests.on_sent())
    }
}
