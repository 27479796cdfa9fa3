//! Packets that arrive although they were declared lost. Those sent to an earlier address do not count, as their loss did not, either.

use ctcp_base::Instant;

use super::Path;
use crate::connection::Contents;
use crate::id::PacketNumber;
use crate::recovery::sent::{AckedPacket, SpuriousLoss};

impl Path {
    /// Raises the thresholds of loss for the late packets of an acknowledgement, before they are used for its other gaps.
    pub(crate) fn learn_from_late(&mut self, now: Instant, acked: &[AckedPacket<Contents>]) {
        let late = acked.iter().filter(|acked| acked.packet.number >= self.first_number);
        for spurious in late.filter_map(|acked| acked.was_lost) {
            self.measured.losses.on_spurious_loss(now, spurious, &self.measured.rtt);
        }
    }

    /// Takes the loss of a late packet back from the average.
    pub(crate) fn on_spurious_loss(&mut self, number: PacketNumber, spurious: SpuriousLoss) {
        if number >= self.first_number {
            self.measured.loss_average.on_spurious_loss(spurious.outcomes_since);
        }
    }
}
