//! Processing of one received datagram: open it, drop duplicates, dispatch its frames.

use ctcp_base::Instant;

use super::{Established, TransportError};
use crate::crypto::OpenError;
use crate::crypto::reset::is_reset;
use crate::error::{CloseReason, TransportErrorCode};
use crate::id::{ContextId, PacketNumber, PathId};
use crate::network::{Ecn, NetworkPath};
use crate::path::PathUse;
use crate::wire::{Combination, Frame, LongPacket, frames};

/// The outcome of a received datagram.
#[derive(Debug)]
pub(super) enum Received {
    /// Processed or dropped.
    Handled,
    /// The peer closed the connection.
    Closed(CloseReason),
    /// The peer has forgotten the connection (stateless reset).
    Reset,
}

/// Where an opened packet came from.
#[derive(Clone, Copy)]
struct Packet {
    path: PathId,
    number: PacketNumber,
    network: NetworkPath,
    ecn: Option<Ecn>,
}

impl Established {
    pub(super) fn handle_datagram(
        &mut self,
        now: Instant,
        network_path: NetworkPath,
        ecn: Option<Ecn>,
        datagram: &mut [u8],
    ) -> Result<Received, TransportError> {
        if datagram.first().is_some_and(|first| first & 0x80 != 0) {
            return self.handle_long(now, network_path, datagram).map(|()| Received::Handled);
        }
        let paths = &self.paths;
        let opened = self.protection.open(datagram, self.local_id.as_bytes().len(), |path| {
            paths.get(path).and_then(|path| path.replay.largest())
        });
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => return self.handle_unopened(error, datagram),
        };
        let id = opened.path;
        let payload = datagram.get(opened.payload).unwrap_or_default();
        if !self.takes_packets_of(now, id, network_path, payload)? {
            self.counts.datagrams_dropped += 1;
            return Ok(Received::Handled);
        }
        let path = &mut self.paths[id];
        let is_newest = path.replay.largest().is_none_or(|largest| opened.packet_number > largest);
        if !path.replay.insert(opened.packet_number) {
            self.counts.datagrams_dropped += 1;
            return Ok(Received::Handled);
        }
        self.renew_keys(now);
        self.on_authentic(now, id, network_path, is_newest, datagram.len());
        let packet = Packet { path: id, number: opened.packet_number, network: network_path, ecn };
        self.handle_frames(now, packet, payload)
    }

    fn handle_long(
        &mut self,
        now: Instant,
        network_path: NetworkPath,
        datagram: &[u8],
    ) -> Result<(), TransportError> {
        if let Ok(LongPacket::Early { header, index, sealed }) = LongPacket::parse(datagram) {
            return self.handle_early(now, network_path, header, (index, sealed));
        }
        self.handle_repeated_handshake(network_path, datagram);
        Ok(())
    }

    /// A client that did not get the RESPONSE sends its INITIATE again. A shorter datagram is not answered: the address is not validated
    /// yet, so the answer must not be longer than the datagram that triggered it.
    fn handle_repeated_handshake(&mut self, network_path: NetworkPath, datagram: &[u8]) {
        let Some(response) = &mut self.response else { return };
        let is_repeated = network_path.remote == self.paths.main().network.remote
            && matches!(LongPacket::parse(datagram),
                Ok(LongPacket::Initiate { header, .. } | LongPacket::InitiatePart { header, .. })
                    if header.source == self.remote_id);
        if is_repeated {
            response.on_repeated();
        }
    }

    fn handle_unopened(&mut self, error: OpenError, datagram: &[u8]) -> Result<Received, TransportError> {
        self.counts.datagrams_dropped += 1;
        match error {
            OpenError::ReservedBits => Err(TransportError::violation("reserved bits of the header are set")),
            OpenError::LimitReached => Err(TransportError::new(
                TransportErrorCode::AeadLimit,
                "too many packets failed authentication",
            )),
            OpenError::Malformed | OpenError::NotAuthentic => {
                let is_reset = self.negotiated.reset_token.is_some_and(|token| is_reset(datagram, &token));
                self.counts.datagrams_forged += u64::from(!is_reset);
                Ok(if is_reset { Received::Reset } else { Received::Handled })
            }
        }
    }

    /// The external decoder received combinations by other means than a packet.
    pub(super) fn handle_decoder_news(&mut self, now: Instant) -> Result<(), TransportError> {
        self.counts.datagrams_received += 1;
        self.timers.on_received(now);
        self.timers.last_activity = now;
        self.contexts.streams_mut().receiver.handle_news(&mut self.streams)?;
        self.paths.main_mut().acks.on_news(now);
        Ok(())
    }

    /// Passes a combination to the decoder of its context. Returns whether a symbol became known through it.
    fn handle_combination(
        &mut self,
        path: PathId,
        id: ContextId,
        combination: &Combination<'_>,
    ) -> Result<bool, TransportError> {
        let receiver = &mut self.contexts.open_for_peer(id)?.receiver;
        let redundant = receiver.counts().redundant;
        let is_news = if id == ContextId::Messages {
            let is_news = receiver.handle(combination, &mut self.messages.incoming)?;
            self.messages.incoming.settle_before(combination.floor());
            is_news
        } else if id == ContextId::Relayed {
            receiver.handle(combination, &mut self.relayed.incoming).map_err(super::relayed::name_forgery)?
        } else {
            receiver.handle(combination, &mut self.streams)?
        };
        let received = &mut self.paths[path].received;
        received.combinations += 1;
        received.redundant += receiver.counts().redundant - redundant;
        Ok(is_news)
    }

    /// Updates counters, timers and the address for a packet that is authentic and new.
    fn on_authentic(
        &mut self,
        now: Instant,
        id: PathId,
        network_path: NetworkPath,
        is_newest: bool,
        size: usize,
    ) {
        self.counts.datagrams_received += 1;
        self.counts.bytes_received += size as u64;
        self.timers.on_received(now);
        if !self.is_confirmed {
            self.is_confirmed = true;
            self.is_newly_confirmed = true;
            let first_sent = self.response.take().and_then(|response| response.first_sent);
            // A packet of another path may be faster than the one that answers the RESPONSE.
            if id == self.paths.main().id {
                self.on_handshake_round_trip(now, first_sent);
            }
        }
        self.paths[id].on_received(now, size as u64);
        self.on_network_path(now, id, network_path, is_newest, size as u64);
    }

    fn handle_frames(
        &mut self,
        now: Instant,
        packet: Packet,
        payload: &[u8],
    ) -> Result<Received, TransportError> {
        let id = packet.path;
        let mut ack_eliciting = false;
        let mut is_news = false;
        for frame in frames(payload) {
            let frame = frame?;
            ack_eliciting |= frame.is_ack_eliciting();
            match frame {
                Frame::Padding(_) | Frame::Skippable { .. } => {}
                Frame::Ping => self.on_ping(id, packet.network.remote, payload.len()),
                Frame::PathAck(ack) => self.handle_ack(now, &ack)?,
                Frame::DecoderReport(context, report) => self.handle_report(now, context, &report)?,
                Frame::Arrived { path, largest } => self.handle_arrived(now, path, largest)?,
                Frame::Combination(context, combination) => {
                    self.timers.last_activity = now;
                    self.paths[id].silence.on_coded(now);
                    self.on_data_of_server(id, packet.network.remote);
                    let is_repair = !matches!(combination, Combination::Source { .. });
                    is_news |= self.handle_combination(id, context, &combination)? && is_repair;
                }
                Frame::MaxData(credit) => self.streams.on_max_data(credit)?,
                Frame::MaxStreamData { id, credit } => self.streams.on_max_stream_data(id, credit)?,
                Frame::MaxStreams(count) => self.streams.on_max_streams(count)?,
                Frame::ResetStream { id, code, final_size } => {
                    self.streams.on_reset_stream(id, code, final_size)?;
                }
                Frame::StopSending { id, code } => self.streams.on_stop_sending(id, code)?,
                Frame::KeyShare(public) => self.on_key_share(public)?,
                Frame::ResetToken(token) => self.on_reset_token(token)?,
                Frame::NewTicket(ticket) => self.on_new_ticket(&ticket)?,
                Frame::PathChallenge(data) => self.on_path_challenge(id, packet.network, data),
                Frame::PathResponse(data) => {
                    self.on_path_response(now, id, packet.network.remote, data);
                }
                Frame::AckFrequency(request) => self.paths[id].acks.on_request(packet.number.0, &request),
                Frame::PathPreference(preference) => self.on_path_preference(id, preference)?,
                Frame::NewConnectionId { path, id } => self.on_new_connection_id(path, id)?,
                Frame::PathAbandon(path) => {
                    self.on_path_abandoned(path)?;
                    // Nothing more is expected on a path that is closed.
                    if self.paths.state_of(id) != PathUse::Open {
                        return Ok(Received::Handled);
                    }
                }
                Frame::Close { by_application, code, reason } => {
                    return Ok(Received::Closed(CloseReason {
                        by_application,
                        code,
                        reason: reason.to_owned(),
                    }));
                }
            }
        }
        let acks = &mut self.paths[id].acks;
        acks.on_packet(now, packet.number.0, ack_eliciting, packet.ecn);
        if is_news {
            acks.on_repaired(now);
        }
        Ok(Received::Handled)
    }
}
