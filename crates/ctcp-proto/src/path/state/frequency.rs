//! How often the peer should acknowledge the packets of a path.

use ctcp_base::Instant;

use super::Path;
use crate::ack::frequency::Flow;
use crate::congestion::Phase;
use crate::profile::AckRule;
use crate::wire::DatagramBuilder;

impl Path {
    /// Decides after an acknowledgement. In slow start each packet counts. A path through relays needs few acknowledgements anyway.
    pub(super) fn request_acks(&mut self, now: Instant) {
        if self.profile.rules.acks != AckRule::Requested || self.is_relayed() {
            return;
        }
        let controller = &self.admission.controller;
        self.ack_requests.on_ack(&Flow {
            now,
            window: controller.window(),
            rtt: self.measured.rtt.smoothed(),
            is_alert: controller.phase() == Phase::SlowStart || self.owed.retransmission.has_fired(),
        });
    }

    /// Writes an ACK_FREQUENCY if the peer should be told. Returns whether it did.
    pub(crate) fn write_ack_request(&mut self, builder: &mut DatagramBuilder) -> bool {
        let is_written = self.ack_requests.frame().is_some_and(|frame| builder.write_if_it_fits(&frame));
        if is_written {
            self.ack_requests.on_sent();
        }
        is_written
    }
}
