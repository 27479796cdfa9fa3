//! Processing of an ACK (round-trip time, loss detection, congestion control) and of the decoder's report (coding, streams).
//!
//! The order is the paper's Algorithm 1, then 2, then the block bookkeeping of Algorithm 3.
//!
//! Requirement: C3

use ctcp_base::Instant;

use super::{Contents, Established, TransportError};
use crate::error::TransportErrorCode;
use crate::id::{ContextId, PacketNumber};
use crate::recovery::sent::{AckedPacket, LostPacket};
use crate::stream::Lane;
use crate::wire::{DecoderReport, PathAck};

impl Established {
    pub(super) fn handle_ack(&mut self, now: Instant, ack: &PathAck) -> Result<(), TransportError> {
        if ack.path != self.path.id {
            return Err(TransportError::new(
                TransportErrorCode::ProtocolViolation,
                "ACK of a path that was never opened",
            ));
        }
        let mut acked = core::mem::take(&mut self.path.acked_scratch);
        let largest_before = self.path.sent.largest_acked();
        let summary = self.path.sent.on_ack(now, ack.ranges.iter(), &mut acked).map_err(|_| {
            TransportError::new(TransportErrorCode::ProtocolViolation, "ACK of packets that were never sent")
        })?;
        if let Some(sent) = summary.rtt_sample_from {
            self.path.on_rtt_sample(now, now - sent, ack.delay.min(self.negotiated.peer_max_ack_delay));
        }
        if summary.has_ack_eliciting {
            self.path.on_progress(now);
        }
        self.path.on_ecn_counts(self.path.sent.largest_acked() > largest_before, &acked, ack.ecn);
        for packet in acked.drain(..) {
            self.on_packet_acked(now, packet);
        }
        self.path.acked_scratch = acked;
        self.detect_losses(now);
        self.path.finish_ack(now);
        Ok(())
    }

    pub(super) fn handle_report(
        &mut self,
        now: Instant,
        id: ContextId,
        report: &DecoderReport,
    ) -> Result<(), TransportError> {
        let sender = self.contexts.get_mut(id).map(|context| &mut context.sender);
        let Some(sender) = sender.filter(|sender| report.known_end <= sender.next_index()) else {
            return Err(TransportError::new(
                TransportErrorCode::ProtocolViolation,
                "report of symbols that were never sent",
            ));
        };
        if sender.on_report(now, report) {
            self.tell_controller();
            match id {
                ContextId::Messages => self.messages.outgoing.on_peer_decoded_below(report.oldest_undecoded),
                _ => self.streams.on_peer_decoded_below(Lane::of(id), report.oldest_undecoded),
            }
        }
        Ok(())
    }

    fn on_packet_acked(&mut self, now: Instant, acked: AckedPacket<Contents>) {
        let contents = &acked.packet.contents;
        self.protection.on_acked(self.path.id, acked.packet.number);
        if let Some(largest) = contents.largest_acked {
            self.path.acks.on_ack_of_ack(largest);
        }
        for (context, number) in ContextId::ALL.into_iter().zip(contents.reports) {
            if number > 0
                && let Some(context) = self.contexts.get_mut(context)
            {
                context.receiver.on_report_acked(number);
            }
        }
        for control in &contents.control {
            self.streams.on_control_acked(control);
        }
        if let Some(size) = contents.mtu_probe {
            self.path.on_mtu_probe_acked(now, acked.packet.number, size);
        }
        match (acked.was_lost, contents.combination) {
            (Some(spurious), carried) => {
                self.counts.spurious_losses += 1;
                if let Some(carried) = carried {
                    self.contexts.open(carried.context).sender.on_spurious_loss(carried);
                }
                self.path.on_spurious_loss(now, acked.packet.number, spurious);
            }
            (None, Some(carried)) if !acked.was_expired => {
                self.contexts.open(carried.context).sender.on_acked(carried);
            }
            (None, _) => {}
        }
        self.path.on_acked(now, &acked);
    }

    /// Declares packets lost and notifies the components concerned. Coded data is not retransmitted; only the number of degrees of freedom
    /// in flight changes.
    pub(super) fn detect_losses(&mut self, now: Instant) {
        let mut lost = core::mem::take(&mut self.path.lost_scratch);
        let thresholds = self.path.measured.losses.thresholds(now, &self.path.measured.rtt);
        self.path.owed.loss_deadline = self.path.sent.detect_losses(now, thresholds, &mut lost);
        for packet in lost.drain(..) {
            self.on_packet_lost(now, packet);
        }
        self.path.lost_scratch = lost;
        self.path.owed.retransmission.on_lost(self.path.sent.has_ack_eliciting_outstanding());
    }

    fn on_packet_lost(&mut self, now: Instant, lost: LostPacket<Contents>) {
        let contents = &lost.packet.contents;
        contents.tell_again(&mut self.streams, &mut self.resets, &mut self.keys, &mut self.early);
        if let Some(size) = contents.mtu_probe {
            self.path.on_mtu_probe_lost(now, lost.packet.number, size);
            return;
        }
        if let Some(carried) = contents.combination {
            self.contexts.open(carried.context).sender.on_lost(carried, lost.was_expired);
        }
        if lost.packet.in_flight {
            self.counts.packets_lost += 1;
            self.path.on_lost(now, &lost.packet);
        }
    }

    /// Stops counting packets older than 1.5 RTT as in flight (CTCP section 4.5).
    ///
    /// Requirement: C5
    pub(super) fn expire_old_packets(&mut self, now: Instant) {
        let Some(age) = self.path.expiry_age() else { return };
        let (before, frees) = (now.saturating_back(age), self.path.frees_what_expires());
        while let Some(packet) = self.path.sent.poll_expired(before) {
            let number = packet.number;
            if let Some(carried) = packet.contents.combination {
                self.contexts.open(carried.context).sender.on_expired(carried);
            }
            if frees {
                self.path.sent.give_up_flight(PacketNumber(number.0 + 1));
            }
        }
    }

    /// Forwards the signals of a scheme whose congestion window counts symbols to the congestion controller.
    pub(super) fn tell_controller(&mut self) {
        while let Some(signal) = self.contexts.streams_mut().sender.scheme_mut().poll_signal() {
            signal.tell(&mut *self.path.admission.controller);
        }
    }
}
