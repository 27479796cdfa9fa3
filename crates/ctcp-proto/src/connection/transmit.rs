//! Assembly of one outgoing datagram: each component writes its frames into the remaining room, then the packet is sealed and recorded.

use core::time::Duration;

use ctcp_base::Instant;

use super::contents::Contents;
use super::{Established, TransportError};
use crate::code::{Carried, Choice, Prospects, RELAYED_SPAN_MAX, Situation, SymbolSource};
use crate::crypto::SealHeader;
use crate::error::TransportErrorCode;
use crate::id::{ContextId, PathId};
use crate::memory::SYMBOLS_MIN;
use crate::network::{Ecn, Transmit};
use crate::path::scheduler::{self, Ranking, Use};
use crate::path::{PROBES_AT_ONCE, PathMode};
use crate::recovery::rtt::INITIAL_RTT;
use crate::recovery::sent::SentPacket;
use crate::stream::{Lane, Outlet, Pace};
use crate::wire::{DatagramBuilder, Frame, NewPacket, symbol_size_for_datagram};

/// Bytes of a short acknowledgement with a report.
const ACK_TYPICAL: usize = 32;

/// The bytes by which the header of a relay's combination is longer than that of a source's: coefficients instead of a key.
const RELAYED_HEADROOM: usize = RELAYED_SPAN_MAX as usize;

/// A path that may send now, among all.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    pub(super) id: PathId,
    /// Whether it is the best path.
    pub(super) is_first: bool,
    pub(super) ranking: Ranking,
    conditions: Conditions,
}

/// What holds on a path for all contexts: see [`Situation`].
#[derive(Clone, Copy)]
struct Conditions {
    loss: f64,
    prospects: Prospects,
    dispersion: f64,
    window: f64,
    rtt: Duration,
}

/// How a packet leaves: its path, its ECN codepoint, and whether it counts against the congestion window if it elicits an acknowledgement.
#[derive(Clone, Copy)]
pub(super) struct Outgoing {
    pub(super) id: PathId,
    pub(super) ecn: Option<Ecn>,
    pub(super) counts: bool,
}

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
        let mut position = 0;
        while let Some(id) = self.paths.id_at(position) {
            // The congestion window is at most half of this limit, so a peer that lets it fill up acknowledges nothing.
            if !self.paths[id].sent.has_room() {
                return Err(TransportError::violation("too many packets without an acknowledgement"));
            }
            if let Some(transmit) = self.transmit_path_frames(now, id, buffer)? {
                return Ok(Some(transmit));
            }
            position += 1;
        }
        let ranking = Ranking::new(now, &self.paths);
        for id in ranking.iter() {
            if let Some(transmit) = self.transmit_mtu_probe(now, id, buffer)? {
                return Ok(Some(transmit));
            }
            if let Some(transmit) = self.transmit_frames(now, id, ranking, buffer)? {
                return Ok(Some(transmit));
            }
        }
        Ok(None)
    }

    /// Opens a packet of at most `size_max` bytes, tag included.
    pub(super) fn open_builder(&self, id: PathId, buffer: Vec<u8>, size_max: usize) -> DatagramBuilder {
        let path = &self.paths[id];
        let packet = NewPacket {
            destination: path.destination,
            path: id,
            packet_number: path.sent.next_number(),
            largest_acked: path.sent.largest_acked(),
        };
        if path.is_relayed() {
            DatagramBuilder::for_reordering(buffer, size_max, packet)
        } else {
            DatagramBuilder::short(buffer, size_max, packet)
        }
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
        id: PathId,
        builder: DatagramBuilder,
        contents: Contents,
        buffer: &mut Vec<u8>,
    ) -> Result<Transmit, TransportError> {
        let may_mark = builder.is_ack_eliciting() && contents.mtu_probe.is_none();
        let ecn = if may_mark { self.paths[id].next_codepoint() } else { None };
        self.send_as(now, Outgoing { id, ecn, counts: true }, builder, contents, buffer)
    }

    /// The same with an explicit ECN codepoint.
    pub(super) fn send_as(
        &mut self,
        now: Instant,
        outgoing: Outgoing,
        builder: DatagramBuilder,
        contents: Contents,
        buffer: &mut Vec<u8>,
    ) -> Result<Transmit, TransportError> {
        let Outgoing { id, ecn, counts } = outgoing;
        let ack_eliciting = builder.is_ack_eliciting();
        let number = self.paths[id].sent.next_number();
        self.renew_keys(now);
        *buffer = self.seal(builder)?;
        self.contexts.streams_mut().sender.on_sealed(contents.combination.as_ref(), buffer);
        let size = buffer.len();
        let is_mtu_probe = contents.mtu_probe.is_some();
        let context = contents.combination.as_ref().map(|carried| carried.context);
        let hurries = context.is_some_and(|context| self.must_hurry(context));
        let is_alone = hurries && !self.has_bulk();
        let path = &mut self.paths[id];
        let delivery = path.delivery_snapshot(now);
        path.on_sent(
            now,
            SentPacket {
                number,
                time: now,
                size: size as u64,
                ack_eliciting,
                in_flight: ack_eliciting && counts,
                is_mtu_probe,
                is_ecn_capable: ecn.is_some(),
                delivery,
                contents,
            },
        );
        // Relays hold few symbols, so what arrived must be known soon.
        if hurries || context == Some(ContextId::Relayed) {
            path.ack_requests.on_interruption();
        }
        if is_alone {
            path.admission.on_sent_alone(now, path.sent.packets_in_flight());
        }
        path.skip_number_sometimes(&mut self.rng);
        self.counts.datagrams_sent += 1;
        self.counts.bytes_sent += size as u64;
        self.timers.on_sent(now, ack_eliciting);
        Ok(self.paths[id].transmit(size, ecn))
    }

    fn transmit_response(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        buffer.extend_from_slice(self.response.as_mut()?.poll(now)?);
        Some(self.paths.main().transmit(buffer.len(), None))
    }

    fn transmit_mtu_probe(
        &mut self,
        now: Instant,
        id: PathId,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Transmit>, TransportError> {
        let path = &mut self.paths[id];
        if !path.has_window() {
            return Ok(None);
        }
        let Some(size) = path.owed.mtu.poll_probe(now) else { return Ok(None) };
        if let Some(time) = path.next_paced(now) {
            self.timers.wait_until(time);
            return Ok(None);
        }
        let length = usize::try_from(size).unwrap_or(usize::MAX);
        let mut builder = self.open_builder(id, core::mem::take(buffer), length);
        builder.write(&Frame::Ping);
        builder.pad_to(length);
        self.paths[id].owed.mtu.on_probe_sent(size);
        let contents = Contents { mtu_probe: Some(size), ..Contents::default() };
        self.send(now, id, builder, contents, buffer).map(Some)
    }

    fn transmit_frames(
        &mut self,
        now: Instant,
        id: PathId,
        ranking: Ranking,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Transmit>, TransportError> {
        let is_first = ranking.first() == Some(id);
        let ack_is_due = self.paths[id].acks.is_due(now);
        let must_ping =
            ack_is_due && self.protection.needs_acknowledgement() || is_first && self.must_ping(now);
        let pace = self.pace(now);
        if is_first {
            self.prepare(now, pace);
        }
        let reports = is_first && self.poll_report(now);
        let is_owed = ack_is_due || must_ping || reports || is_first && self.control.is_waiting();
        if !is_owed && self.has_nothing_for(id) {
            return Ok(None);
        }
        let turn = Turn { id, is_first, ranking, conditions: self.conditions(now, id) };
        let mut contents = Contents::default();
        let datagram_size = usize::try_from(self.paths[id].datagram_size()).unwrap_or(usize::MAX);
        let mut builder = self.open_builder(id, core::mem::take(buffer), datagram_size);
        let choice = self.choose(now, turn);
        // A transfer may just have ended or stalled.
        let is_owed = is_owed || self.paths[id].owes_ack_request();
        let owes_probe = self.paths[id].owed.probes > 0 && self.paths[id].probes_wait(now).is_none();
        let must_ping = must_ping || (owes_probe && choice.is_none());
        if choice.is_none() && !is_owed && !must_ping {
            *buffer = builder.abandon();
            return Ok(None);
        }
        if ack_is_due
            || !self.cuts_datagram(choice, id, datagram_size, builder.remaining().saturating_sub(ACK_TYPICAL))
        {
            self.write_acknowledgement(now, id, ack_is_due, &mut builder, &mut contents);
        }
        self.report_ahead(now, turn, reports, &mut builder, &mut contents);
        contents.ack_frequency = self.paths[id].write_ack_request(&mut builder);
        if turn.is_first {
            self.write_control(now, id, pace, &mut builder, &mut contents);
        }
        // An acknowledgement leaves alone rather than cut a datagram in two symbols, each with repairs.
        let is_cut =
            !builder.is_empty() && self.cuts_datagram(choice, id, datagram_size, builder.remaining());
        if let Some(choice) = choice.filter(|_| !is_cut) {
            contents.combination = self.write_combination(now, turn, choice, datagram_size, &mut builder);
        }
        // A choice may produce no frame. An owed probe is sent all the same, or its timer would fire again at once.
        let must_ping = must_ping || (owes_probe && builder.is_empty());
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
        self.settle(now, turn, builder.is_ack_eliciting(), contents.largest_acked.is_some());
        self.send(now, id, builder, contents, buffer).map(Some)
    }

    /// A packet pays what was owed: a PING or a probe if it elicits an acknowledgement, and an acknowledgement if it has one.
    fn settle(&mut self, now: Instant, turn: Turn, is_ack_eliciting: bool, acknowledges: bool) {
        let path = &mut self.paths[turn.id];
        if is_ack_eliciting {
            self.ping &= !turn.is_first;
            path.owed.probes = path.owed.probes.saturating_sub(1);
        }
        if acknowledges {
            path.acks.on_ack_sent(now, is_ack_eliciting);
        }
    }

    /// What precedes the packets of all paths.
    fn prepare(&mut self, now: Instant, pace: Pace) {
        self.expire_messages(now);
        self.shrink_if_idle(now);
        self.control.fetch(&mut self.streams, pace);
    }

    /// Writes what is neither an acknowledgement nor coded data.
    fn write_control(
        &mut self,
        now: Instant,
        id: PathId,
        pace: Pace,
        builder: &mut DatagramBuilder,
        contents: &mut Contents,
    ) {
        contents.abandoned = self.path_changes.write(builder);
        contents.path_id = self.path_changes.ids.write(builder);
        self.write_reset_token(builder, contents);
        self.write_key_share(now, builder, contents);
        self.write_ticket(now, builder, contents);
        let loss = self.paths[id].measured.loss_average.value();
        self.control.write(&mut self.streams, pace, loss, builder, &mut contents.control);
    }

    /// Whether something needs an ack-eliciting packet on the first path.
    fn must_ping(&self, now: Instant) -> bool {
        self.ping
            || self.path_changes.is_due()
            || self.path_changes.ids.is_due()
            || self.resets.is_due()
            || self.is_key_share_due(now)
            || self.is_ticket_due(now)
    }

    /// Writes the acknowledgement of a path and the decoders' reports, if there is anything new.
    fn write_acknowledgement(
        &mut self,
        now: Instant,
        id: PathId,
        is_due: bool,
        builder: &mut DatagramBuilder,
        contents: &mut Contents,
    ) {
        let acks = &self.paths[id].acks;
        if is_due || acks.has_news() {
            contents.largest_acked = acks.write(now, id, builder);
            self.write_reports(builder, contents);
        }
    }

    /// Writes the combination that was chosen.
    fn write_combination(
        &mut self,
        now: Instant,
        turn: Turn,
        (id, choice): (ContextId, Choice),
        datagram_size: usize,
        builder: &mut DatagramBuilder,
    ) -> Option<Carried> {
        let situation = self.situation(now, turn, id);
        if self.paths[turn.id].copies.is_next(id, choice) {
            let carried = self.write_copy(turn.id, (id, choice), datagram_size, builder);
            // It may also be the repair that is due, which is cut if it fits no datagram.
            let mut is_due = || self.contexts.open(id).sender.choose(&situation) == Some(choice);
            if carried.is_some() || !builder.is_empty() || !is_due() {
                return carried;
            }
        }
        let size = self.symbol_size(turn.id, id, datagram_size);
        let source: &mut dyn SymbolSource = match id {
            ContextId::Messages => &mut self.messages.outgoing,
            ContextId::Relayed => &mut self.relayed.outgoing,
            _ => &mut Outlet { streams: &mut self.streams, lane: Lane::of(id) },
        };
        let carried = self.contexts.open(id).sender.write(choice, size, source, builder, &situation);
        if let (Choice::NewSymbol, Some(carried)) = (choice, &carried) {
            self.owe_copies(now, turn, id, carried.sent.first);
        }
        self.last_context = id;
        self.tell_controller();
        carried
    }

    /// The size of new symbols of a context in datagrams of `datagram_size` bytes.
    pub(super) fn symbol_size(&mut self, path: PathId, id: ContextId, datagram_size: usize) -> usize {
        let destination = self.paths[path].destination;
        let overhead = self.contexts.open(id).sender.overhead();
        let size = symbol_size_for_datagram(datagram_size, &destination, overhead);
        let size = size.min(self.negotiated.symbol_size_max);
        // Relays write the coefficients of their combinations.
        if id == ContextId::Relayed { size.saturating_sub(RELAYED_HEADROOM) } else { size }
    }

    /// Whether the context has data to send, sent before or not.
    fn has_data(&self, id: ContextId) -> bool {
        match id {
            ContextId::Messages => self.messages.outgoing.has_data(),
            ContextId::Relayed => self.relayed.outgoing.has_data(),
            _ => self.streams.has_data_in(Lane::of(id)),
        }
    }

    /// Whether data that need not hurry waits or is in flight.
    fn has_bulk(&self) -> bool {
        self.has_data(ContextId::Streams) || self.contexts.streams().sender.outstanding() > 0
    }

    fn conditions(&self, now: Instant, id: PathId) -> Conditions {
        let path = &self.paths[id];
        Conditions {
            loss: scheduler::loss(now, &self.paths, path),
            prospects: scheduler::prospects(now, &self.paths, id),
            dispersion: path.measured.loss_average.dispersion(),
            window: scheduler::window(now, &self.paths),
            rtt: path.measured.rtt.smoothed(),
        }
    }

    fn situation(&self, now: Instant, turn: Turn, id: ContextId) -> Situation {
        let sender = self.contexts.get(id).map(|context| &context.sender);
        let (has_room, outstanding) =
            sender.map_or((true, 0), |sender| (sender.has_room(), sender.outstanding()));
        let Conditions { loss, prospects, dispersion, window, rtt } = turn.conditions;
        let situation = Situation {
            now,
            path: turn.id,
            loss,
            prospects,
            dispersion,
            has_data: self.has_data(id),
            has_room: has_room && (self.streams.room() > 0 || outstanding < SYMBOLS_MIN),
            window,
            rtt,
            thin_repairs: sender.map_or(0.0, |sender| sender.repairs_for(self.config.thin_repair_rate)),
            prefers_new: false,
        };
        if turn.is_first {
            return situation;
        }
        let repairs = sender.map_or(0, |sender| sender.scheme().deficit(&situation));
        Situation { prefers_new: turn.ranking.can_repair(now, &self.paths, turn.id, repairs), ..situation }
    }

    /// Chooses the coded data to send now and its context, as far as congestion control and pacing allow.
    fn choose(&mut self, now: Instant, turn: Turn) -> Option<(ContextId, Choice)> {
        if self.is_unpaced() {
            return if turn.is_first { self.choose_useful(now, turn) } else { None };
        }
        let mode = self.paths.mode();
        let path = &mut self.paths[turn.id];
        if !turn.is_first && (path.is_avoided() || mode == PathMode::Backup) {
            // Data would be lost if the path is dead. A PING shows whether it is. A copy may be lost.
            path.owed.probes = path.owed.probes.min(PROBES_AT_ONCE);
            let may_copy = mode == PathMode::Redundant && path.has_window();
            let copy = if may_copy { self.choose_copy(turn.id) } else { None };
            return copy.filter(|_| !self.waits_for_pacer(now, turn.id));
        }
        if let Some(time) = path.probes_wait(now) {
            self.timers.wait_until(time);
            return None;
        }
        if path.owed.probes > 0 {
            let useful = self.choose_useful(now, turn);
            return useful.or_else(|| self.choose_probe());
        }
        if !path.has_window() {
            // Without credit of the peer's, what waits could not be sent.
            let sendable = if self.has_data(ContextId::Streams) { self.streams.queued_bytes() } else { 0 };
            self.paths[turn.id].on_no_room(sendable as u64);
            return None;
        }
        let Some(choice) = self.choose_useful(now, turn) else {
            let path = &mut self.paths[turn.id];
            if turn.is_first {
                path.on_app_limited();
            } else {
                path.on_not_chosen();
            }
            let situation = self.situation(now, turn, ContextId::Streams);
            if turn.is_first && situation.has_data && !situation.has_room {
                self.counts.window_stalls += 1;
            }
            return None;
        };
        Some(choice).filter(|_| !self.waits_for_pacer(now, turn.id))
    }

    /// Whether a packet must wait for the pacer of a path. If so, the timer is set.
    fn waits_for_pacer(&mut self, now: Instant, id: PathId) -> bool {
        let paced = self.paths[id].next_paced(now);
        paced.inspect(|&time| self.timers.wait_until(time)).is_some()
    }

    /// The first context that has something useful to send. Messages and small streams go before bulk data, but those that wait take turns,
    /// so that none can starve another.
    fn choose_useful(&mut self, now: Instant, turn: Turn) -> Option<(ContextId, Choice)> {
        if !turn.is_first {
            let is_redundant = self.paths.mode() == PathMode::Redundant;
            let copy = if is_redundant { self.choose_copy(turn.id) } else { None };
            let urgent = copy.or_else(|| self.choose_urgent(now, turn));
            if urgent.is_some() {
                return urgent;
            }
            // The rest of the latency-sensitive data takes another path.
            let situation = self.situation(now, turn, ContextId::Streams);
            let queued = self.streams.queued_bytes();
            return match turn.ranking.use_of(&self.paths, turn.id, &situation, queued) {
                Use::Nothing => self.choose_copy(turn.id),
                Use::Copies => self.choose_trial(turn.id),
                Use::Symbols => {
                    let choice = self.contexts.streams_mut().sender.choose(&situation);
                    choice.map(|choice| (ContextId::Streams, choice)).or_else(|| self.choose_copy(turn.id))
                }
            };
        }
        let hurries = turn.ranking.urgent() == Some(turn.id);
        let chosen = self.contexts_in_turn().into_iter().find_map(|id| {
            let choice = if hurries || !self.must_hurry(id) { self.choose_in(now, turn, id) } else { None };
            Some((id, choice?))
        });
        // Others may have sent latency-sensitive data before it could.
        chosen.or_else(|| self.choose_copy(turn.id))
    }

    /// The contexts in the order in which they may send.
    pub(super) fn contexts_in_turn(&self) -> [ContextId; 4] {
        use ContextId::{Interactive, Messages, Relayed, Streams};
        match self.last_context {
            Messages => [Interactive, Streams, Relayed, Messages],
            Interactive => [Streams, Relayed, Messages, Interactive],
            Streams => [Relayed, Messages, Interactive, Streams],
            Relayed => [Messages, Interactive, Streams, Relayed],
        }
    }

    pub(super) fn choose_in(&mut self, now: Instant, turn: Turn, id: ContextId) -> Option<Choice> {
        let is_needed = match (self.contexts.get(id), id) {
            (None, _) => false,
            // Their sliding windows repair nothing that has arrived.
            (Some(context), ContextId::Messages | ContextId::Interactive) => context.sender.outstanding() > 0,
            _ => true,
        };
        if !is_needed && !self.has_data(id) {
            return None;
        }
        let situation = self.situation(now, turn, id);
        self.contexts.open(id).sender.choose(&situation)
    }

    /// The most useful packet for a path that has been silent.
    fn choose_probe(&mut self) -> Option<(ContextId, Choice)> {
        self.contexts.used_mut().find_map(|(id, context)| Some((id, context.sender.choose_probe()?)))
    }

    /// Whether there is nothing to send on a path, as far as a cheap test can tell. The path then counts as limited by the application.
    fn has_nothing_for(&mut self, id: PathId) -> bool {
        if self.may_have_symbols(id) {
            return false;
        }
        let is_unpaced = self.is_unpaced();
        let path = &mut self.paths[id];
        if !is_unpaced && path.has_window() {
            path.on_app_limited();
        }
        !path.owes_ack_request()
    }

    /// A cheap test whether there may be something to send.
    fn may_have_symbols(&self, id: PathId) -> bool {
        self.paths[id].owed.probes > 0
            || ContextId::ALL.into_iter().any(|id| self.has_data(id))
            || self.contexts.used().any(|context| context.sender.outstanding() > 0)
    }

    fn is_unpaced(&self) -> bool {
        self.contexts.streams().sender.scheme().is_unpaced()
    }

    /// The pace of flow control: data waits for the slowest path.
    fn pace(&self, now: Instant) -> Pace {
        let validated = self.paths.iter().filter(|path| path.is_validated());
        let rtt = validated.map(|path| path.measured.rtt.smoothed()).max();
        Pace { now, rtt: rtt.unwrap_or(INITIAL_RTT) }
    }
}
