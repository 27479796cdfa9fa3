//! Processing of an ACK (round-trip time, loss detection, congestion control) and of the decoder's report (coding, streams).
//!
//! The order is the paper's Algorithm 1, then 2, then the block bookkeeping of Algorithm 3.
//!
//! Requirement: C3

use ctcp_base::Instant;

use super::{Contents, Established, TransportError};
use crate::id::{ContextId, PacketNumber, PathId};
use crate::path::{Path, PathUse, Paths, scheduler};
use crate::recovery::sent::{AckedPacket, LostPacket};
use crate::stream::Lane;
use crate::wire::{DecoderReport, PathAck};

impl Established {
    pub(super) fn handle_ack(&mut self, now: Instant, ack: &PathAck) -> Result<(), TransportError> {
        let id = ack.path;
        let Some(path) = acknowledged_path(&mut self.paths, id)? else { return Ok(()) };
        let mut acked = core::mem::take(&mut path.acked_scratch);
        let largest_before = path.sent.largest_acked();
        let summary = path.sent.on_ack(now, ack.ranges.iter(), &mut acked).map_err(|_| never_sent())?;
        if let Some(sent) = summary.rtt_sample_from {
            let delay_max = self.negotiated.peer_max_ack_delay.max(path.ack_requests.delay_max());
            path.on_rtt_sample(now, now - sent, ack.delay.min(delay_max));
        }
        if summary.has_ack_eliciting {
            path.on_progress(now);
        }
        path.on_ecn_counts(path.sent.largest_acked() > largest_before, &acked, ack.ecn);
        let newly = acked.iter().filter(|acked| acked.was_lost.is_none()).count();
        self.handle_fates(now, id, &mut acked);
        self.paths[id].acked_scratch = acked;
        self.paths[id].finish_ack(now, newly);
        scheduler::share_bottlenecks(now, &mut self.paths);
        Ok(())
    }

    /// The packet `largest` of a path has arrived, and the reports so far count what arrived before.
    pub(super) fn handle_arrived(
        &mut self,
        now: Instant,
        id: PathId,
        largest: u64,
    ) -> Result<(), TransportError> {
        let Some(path) = acknowledged_path(&mut self.paths, id)? else { return Ok(()) };
        if largest >= path.sent.next_number().0 {
            return Err(never_sent());
        }
        path.on_arrived(now, PacketNumber(largest));
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
            return Err(TransportError::violation("report of symbols that were never sent"));
        };
        if sender.on_report(now, report) {
            self.tell_controller();
            match id {
                ContextId::Messages => self.messages.outgoing.on_peer_decoded_below(report.oldest_undecoded),
                ContextId::Relayed => self.relayed.outgoing.on_peer_decoded_below(report.oldest_undecoded),
                _ => self.streams.on_peer_decoded_below(Lane::of(id), report.oldest_undecoded),
            }
        }
        Ok(())
    }

    fn on_packet_acked(&mut self, now: Instant, id: PathId, acked: AckedPacket<Contents>) {
        let contents = &acked.packet.contents;
        self.protection.on_acked(id, acked.packet.number);
        if let Some(largest) = contents.largest_acked {
            self.paths[id].acks.on_ack_of_ack(largest);
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
        if let Some(number) = contents.ack_frequency {
            self.paths[id].ack_requests.on_acked(number);
        }
        if let Some(closed) = contents.abandoned {
            self.path_changes.on_told(closed);
        }
        if let Some(size) = contents.mtu_probe {
            self.paths[id].on_mtu_probe_acked(now, acked.packet.number, size);
        }
        match (acked.was_lost, contents.combination) {
            (Some(spurious), carried) => {
                self.counts.spurious_losses += 1;
                if let Some(carried) = carried {
                    self.contexts.open(carried.context).sender.on_spurious_loss(carried);
                }
                self.paths[id].on_spurious_loss(acked.packet.number, spurious);
            }
            (None, Some(carried)) => {
                self.contexts.open(carried.context).sender.on_acked(carried, acked.was_expired);
            }
            (None, None) => {}
        }
        self.paths[id].on_acked(now, &acked);
    }

    /// Declares packets lost.
    pub(super) fn detect_losses(&mut self, now: Instant, id: PathId) {
        self.handle_fates(now, id, &mut Vec::new());
    }

    /// Declares packets lost, and notifies the components concerned of these and of the packets `acked`, in the order in which they were sent: averages of
    /// the loss would swing by the losses of a batch. Coded data is not retransmitted; only the number of degrees of freedom in flight changes.
    fn handle_fates(&mut self, now: Instant, id: PathId, acked: &mut Vec<AckedPacket<Contents>>) {
        let path = &mut self.paths[id];
        let mut lost = core::mem::take(&mut path.lost_scratch);
        path.learn_from_late(now, acked);
        let thresholds = path.measured.losses.thresholds(now, &path.measured.rtt);
        // Packets to an announced address overtake those to the old one, whose fate is known once the path has moved.
        path.owed.loss_deadline = if path.migration.is_announced() {
            None
        } else {
            path.sent.detect_losses(now, thresholds, &mut lost)
        };
        let mut losses = lost.drain(..).peekable();
        for packet in acked.drain(..) {
            while let Some(lost) = losses.next_if(|lost| lost.packet.number < packet.packet.number) {
                self.on_packet_lost(now, id, lost);
            }
            self.on_packet_acked(now, id, packet);
        }
        losses.for_each(|packet| self.on_packet_lost(now, id, packet));
        let path = &mut self.paths[id];
        path.lost_scratch = lost;
        path.owed.retransmission.on_lost(path.sent.has_ack_eliciting_outstanding());
    }

    fn on_packet_lost(&mut self, now: Instant, id: PathId, lost: LostPacket<Contents>) {
        let contents = &lost.packet.contents;
        contents.tell_again(
            &mut self.streams,
            &mut self.resets,
            &mut self.keys,
            &mut self.early,
            &mut self.path_changes,
        );
        if contents.ack_frequency.is_some() {
            self.paths[id].ack_requests.on_lost();
        }
        if let Some(size) = contents.mtu_probe {
            self.paths[id].on_mtu_probe_lost(now, lost.packet.number, size);
            return;
        }
        self.on_report_lost(now, contents.reports);
        if let Some(carried) = contents.combination {
            self.contexts.open(carried.context).sender.on_lost(carried, lost.was_expired);
        }
        if lost.packet.in_flight {
            self.counts.packets_lost += 1;
            self.paths[id].on_lost(now, &lost.packet);
        }
    }

    /// Stops counting packets older than 1.5 RTT as in flight (CTCP section 4.5).
    ///
    /// Requirement: C5
    pub(super) fn expire_old_packets(&mut self, now: Instant, id: PathId) {
        let path = &mut self.paths[id];
        let Some(age) = path.expiry_age() else { return };
        let (before, frees) = (now.saturating_back(age), path.frees_what_expires());
        while let Some(packet) = path.sent.poll_expired(before) {
            let number = packet.number;
            if let Some(carried) = packet.contents.combination {
                self.contexts.open(carried.context).sender.on_expired(carried);
            }
            if frees {
                path.sent.give_up_flight(PacketNumber(number.0 + 1));
            }
        }
    }

    /// Forwards the signals of a scheme whose congestion window counts symbols to the congestion controller.
    pub(super) fn tell_controller(&mut self) {
        while let Some(signal) = self.contexts.streams_mut().sender.scheme_mut().poll_signal() {
            signal.tell(&mut *self.paths.main_mut().admission.controller);
        }
    }
}

fn never_sent() -> TransportError {
    TransportError::violation("ACK or ARRIVED of packets that were never sent")
}

/// The path to which an acknowledgement belongs. `None` if it is closed, which the peer may not have known.
fn acknowledged_path(paths: &mut Paths, id: PathId) -> Result<Option<&mut Path>, TransportError> {
    match paths.state_of(id) {
        PathUse::Open => Ok(Some(&mut paths[id])),
        PathUse::Closed => Ok(None),
        PathUse::Never => Err(TransportError::violation("ACK or ARRIVED of a path that was never opened")),
    }
}
