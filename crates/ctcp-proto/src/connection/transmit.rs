//! Assembly of one outgoing datagram: each component writes its frames into the remaining room, then the packet is sealed and recorded.

use ctcp_base::Instant;

use super::contents::Contents;
use super::{Established, TransportError};
use crate::code::{Carried, Choice, Situation, SymbolSource};
use crate::crypto::SealHeader;
use crate::error::TransportErrorCode;
use crate::id::ContextId;
use crate::memory::SYMBOLS_MIN;
use crate::network::{Ecn, Transmit};
use crate::recovery::sent::SentPacket;
use crate::stream::{Lane, Outlet, Pace};
use crate::wire::{DatagramBuilder, Frame, NewPacket, symbol_size_for_datagram};

impl Established {
    pub(super) fn poll_transmit(
        &mut self,
        now: Instant,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Transmit>, TransportError> {
        self.timers.pacing = None;
        if let Some(transmit) = self.transmit_response(now, buffer) {
            return Ok(Some(transmit));
        }
        // A server sends nothing else before the client has proved possession of its key and address.
        if self.is_gated() {
            return Ok(None);
        }
        // The congestion window is at most half of this limit, so a peer that lets it fill up acknowledges nothing.
        if !self.path.sent.has_room() {
            return Err(TransportError::new(
                TransportErrorCode::ProtocolViolation,
                "too many packets without an acknowledgement",
            ));
        }
        if let Some(transmit) = self.transmit_path_frames(now, buffer)? {
            return Ok(Some(transmit));
        }
        if let Some(transmit) = self.transmit_mtu_probe(now, buffer)? {
            return Ok(Some(transmit));
        }
        self.transmit_frames(now, buffer)
    }

    /// Opens a packet of at most `size_max` bytes, tag included.
    pub(super) fn open_builder(&self, buffer: Vec<u8>, size_max: usize) -> DatagramBuilder {
        let packet = NewPacket {
            destination: self.remote_id,
            path: self.path.id,
            packet_number: self.path.sent.next_number(),
            largest_acked: self.path.sent.largest_acked(),
        };
        DatagramBuilder::short(buffer, size_max, packet)
    }

    /// Seals a packet without recording it.
    pub(super) fn seal(&mut self, builder: DatagramBuilder) -> Result<Vec<u8>, TransportError> {
        let mut packet = builder.finish();
        let header = SealHeader {
            start: packet.start,
            destination_length: packet.destination_length,
            path: packet.path,
            packet_number: packet.packet_number,
            packet_number_length: packet.packet_number_length,
        };
        match self.protection.seal(&mut packet.buffer, header) {
            Ok(()) => Ok(packet.buffer),
            Err(_) => Err(TransportError::new(
                TransportErrorCode::AeadLimit,
                "the confidentiality limit of the key is reached",
            )),
        }
    }

    /// Seals the packet, records it and updates counters. Ack-eliciting packets are sent as ECN-capable, except probes of the datagram
    /// size, whose loss must have only one meaning.
    pub(super) fn send(
        &mut self,
        now: Instant,
        builder: DatagramBuilder,
        contents: Contents,
        buffer: &mut Vec<u8>,
    ) -> Result<Transmit, TransportError> {
        let may_mark = builder.is_ack_eliciting() && contents.mtu_probe.is_none();
        let ecn = if may_mark { self.path.next_codepoint() } else { None };
        self.send_as(now, builder, contents, buffer, ecn)
    }

    /// The same with an explicit ECN codepoint.
    pub(super) fn send_as(
        &mut self,
        now: Instant,
        builder: DatagramBuilder,
        contents: Contents,
        buffer: &mut Vec<u8>,
        ecn: Option<Ecn>,
    ) -> Result<Transmit, TransportError> {
        let ack_eliciting = builder.is_ack_eliciting();
        let number = self.path.sent.next_number();
        self.renew_keys(now);
        *buffer = self.seal(builder)?;
        self.contexts.streams_mut().sender.on_sealed(contents.combination.as_ref(), buffer);
        let size = buffer.len();
        let is_mtu_probe = contents.mtu_probe.is_some();
        let delivery = self.path.delivery_snapshot(now);
        self.path.on_sent(
            now,
            SentPacket {
                number,
                time: now,
                size: size as u64,
                ack_eliciting,
                in_flight: ack_eliciting,
                is_mtu_probe,
                is_ecn_capable: ecn.is_some(),
                delivery,
                contents,
            },
        );
        self.path.skip_number_sometimes(&mut self.rng);
        self.counts.datagrams_sent += 1;
        self.counts.bytes_sent += size as u64;
        self.timers.on_sent(now, ack_eliciting);
        Ok(self.path.transmit(size, ecn))
    }

    fn transmit_response(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        buffer.extend_from_slice(self.response.as_mut()?.poll(now)?);
        Some(self.path.transmit(buffer.len(), None))
    }

    fn transmit_mtu_probe(
        &mut self,
        now: Instant,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Transmit>, TransportError> {
        if !self.path.has_window() {
            return Ok(None);
        }
        let Some(size) = self.path.owed.mtu.poll_probe(now) else { return Ok(None) };
        if let Some(time) = self.path.next_paced(now) {
            self.timers.pacing = Some(time);
            return Ok(None);
        }
        let length = usize::try_from(size).unwrap_or(usize::MAX);
        let mut builder = self.open_builder(core::mem::take(buffer), length);
        builder.write(&Frame::Ping);
        builder.pad_to(length);
        self.path.owed.mtu.on_probe_sent(size);
        let contents = Contents { mtu_probe: Some(size), ..Contents::default() };
        self.send(now, builder, contents, buffer).map(Some)
    }

    fn transmit_frames(
        &mut self,
        now: Instant,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Transmit>, TransportError> {
        let ack_is_due = self.path.acks.is_due(now);
        // A side that sends only ACKs needs an acknowledgement before its key may be replaced.
        let must_ping = self.ping
            || self.resets.is_due()
            || self.is_key_share_due(now)
            || self.is_ticket_due(now)
            || (ack_is_due && self.protection.needs_acknowledgement());
        self.expire_messages(now);
        self.streams.set_now(now);
        let pace = self.pace(now);
        self.control.fetch(&mut self.streams, pace);
        let is_owed = ack_is_due || must_ping || self.control.is_waiting();
        if !is_owed && !self.may_have_symbols() {
            if !self.is_unpaced() {
                self.path.set_app_limited(self.path.has_window());
            }
            return Ok(None);
        }
        let mut contents = Contents::default();
        let datagram_size = usize::try_from(self.path.datagram_size()).unwrap_or(usize::MAX);
        let mut builder = self.open_builder(core::mem::take(buffer), datagram_size);
        let choice = self.choose(now);
        let must_ping = must_ping || (self.timers.probes_owed > 0 && choice.is_none());
        if choice.is_none() && !is_owed && !must_ping {
            *buffer = builder.abandon();
            return Ok(None);
        }
        if ack_is_due || self.path.acks.has_news() {
            contents.largest_acked = self.path.acks.write(now, self.path.id, &mut builder);
            for (id, context) in self.contexts.used_mut() {
                contents.reports[id as usize] = context.receiver.write_report(&mut builder).unwrap_or(0);
            }
        }
        self.write_reset_token(&mut builder, &mut contents);
        self.write_key_share(now, &mut builder, &mut contents);
        self.write_ticket(now, &mut builder, &mut contents);
        let loss = self.path.measured.loss_average.value();
        self.control.write(&mut self.streams, pace, loss, &mut builder, &mut contents.control);
        if let Some((context, choice)) = choice {
            contents.combination = self.write_combination(now, context, choice, datagram_size, &mut builder);
        }
        // A choice may produce no frame. An owed probe is sent all the same, or its timer would fire again at once.
        let must_ping = must_ping || (self.timers.probes_owed > 0 && builder.is_empty());
        if must_ping && !builder.is_ack_eliciting() {
            builder.write(&Frame::Ping);
        }
        if builder.is_empty() {
            *buffer = builder.abandon();
            buffer.clear();
            return Ok(None);
        }
        if contents.combination.is_none() {
            self.grease.write(&mut self.rng, &mut builder);
        }
        if builder.is_ack_eliciting() {
            self.ping = false;
            self.timers.probes_owed = self.timers.probes_owed.saturating_sub(1);
        }
        if contents.largest_acked.is_some() {
            self.path.acks.on_ack_sent(now, builder.is_ack_eliciting());
        }
        self.send(now, builder, contents, buffer).map(Some)
    }

    /// Writes a combination of the context `id`.
    fn write_combination(
        &mut self,
        now: Instant,
        id: ContextId,
        choice: Choice,
        datagram_size: usize,
        builder: &mut DatagramBuilder,
    ) -> Option<Carried> {
        let situation = self.situation(now, id);
        let source: &mut dyn SymbolSource = match id {
            ContextId::Messages => &mut self.messages.outgoing,
            _ => &mut Outlet { streams: &mut self.streams, lane: Lane::of(id) },
        };
        let sender = &mut self.contexts.open(id).sender;
        let size = symbol_size_for_datagram(datagram_size, &self.remote_id, sender.overhead());
        let size = size.min(self.negotiated.symbol_size_max);
        let carried = sender.write(choice, size, source, builder, &situation);
        self.last_context = id;
        self.tell_controller();
        carried
    }

    /// Whether the context has data to send, sent before or not.
    fn has_data(&self, id: ContextId) -> bool {
        match id {
            ContextId::Messages => self.messages.outgoing.has_data(),
            _ => self.streams.has_data_in(Lane::of(id)),
        }
    }

    fn situation(&self, now: Instant, id: ContextId) -> Situation {
        let sender = self.contexts.get(id).map(|context| &context.sender);
        let (has_room, outstanding) =
            sender.map_or((true, 0), |sender| (sender.has_room(), sender.outstanding()));
        Situation {
            now,
            loss: self.path.measured.loss_average.value(),
            dispersion: self.path.measured.loss_average.dispersion(),
            has_data: self.has_data(id),
            has_room: has_room && (self.streams.room() > 0 || outstanding < SYMBOLS_MIN),
            window: self.path.admission.controller.window(),
            rtt: self.path.measured.rtt.smoothed(),
            thin_repairs: sender.map_or(0.0, |sender| sender.repairs_for(self.config.thin_repair_rate)),
        }
    }

    /// Chooses the coded data to send now and its context, as far as congestion control and pacing allow.
    fn choose(&mut self, now: Instant) -> Option<(ContextId, Choice)> {
        if self.is_unpaced() {
            return self.choose_useful(now);
        }
        if self.timers.probes_owed > 0 {
            let useful = self.choose_useful(now);
            return useful.or_else(|| self.choose_probe());
        }
        if !self.path.has_window() {
            self.path.set_app_limited(false);
            return None;
        }
        let Some(choice) = self.choose_useful(now) else {
            self.path.set_app_limited(true);
            let situation = self.situation(now, ContextId::Streams);
            if situation.has_data && !situation.has_room {
                self.counts.window_stalls += 1;
            }
            return None;
        };
        self.path.set_app_limited(false);
        if let Some(time) = self.path.next_paced(now) {
            self.timers.pacing = Some(time);
            return None;
        }
        Some(choice)
    }

    /// The first context that has something useful to send. Messages and small streams go before bulk data, but those that wait take turns,
    /// so that none can starve another.
    fn choose_useful(&mut self, now: Instant) -> Option<(ContextId, Choice)> {
        use ContextId::{Interactive, Messages, Streams};
        let order = match self.last_context {
            Messages => [Interactive, Streams, Messages],
            Interactive => [Streams, Messages, Interactive],
            Streams => [Messages, Interactive, Streams],
        };
        order.into_iter().find_map(|id| self.choose_in(now, id).map(|choice| (id, choice)))
    }

    fn choose_in(&mut self, now: Instant, id: ContextId) -> Option<Choice> {
        if self.contexts.get(id).is_none() && !self.has_data(id) {
            return None;
        }
        let situation = self.situation(now, id);
        self.contexts.open(id).sender.choose(&situation)
    }

    /// The most useful packet for a path that has been silent.
    fn choose_probe(&mut self) -> Option<(ContextId, Choice)> {
        self.contexts.used_mut().find_map(|(id, context)| Some((id, context.sender.choose_probe()?)))
    }

    /// A cheap test whether there may be something to send.
    fn may_have_symbols(&self) -> bool {
        self.timers.probes_owed > 0
            || ContextId::ALL.into_iter().any(|id| self.has_data(id))
            || self.contexts.used().any(|context| context.sender.outstanding() > 0)
    }

    fn is_unpaced(&self) -> bool {
        self.contexts.streams().sender.scheme().is_unpaced()
    }

    fn pace(&self, now: Instant) -> Pace {
        Pace { now, rtt: self.path.measured.rtt.smoothed() }
    }
}
