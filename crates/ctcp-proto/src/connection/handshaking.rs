//! The client's side of the handshake (PROTOCOL.md section 3): sends INITIATE until an answer arrives or the deadline passes.
//!
//! With ML-KEM, INITIATE and RESPONSE have a part in a second datagram. The parts of the RESPONSE may arrive in any order and from different
//! copies: message 2 commits to its part.

use core::net::SocketAddr;
use core::time::Duration;

use ctcp_base::Instant;

use super::negotiation::{is_downgraded, negotiate};
use super::{Connection, EarlyFlight, Established, Setup, State, TimerKind};
use crate::crypto::kem::KemSecret;
use crate::crypto::random::SecretRng;
use crate::crypto::{FirstPacketKey, PacketProtection, PublicKey};
use crate::error::ConnectionError;
use crate::event::{EndpointEvent, Event};
use crate::handshake::{Initiator, Secrets};
use crate::id::ConnectionId;
use crate::network::{NetworkPath, Transmit};
use crate::recovery::rtt::INITIAL_RTT;
use crate::wire::{
    LongHeader, LongPacket, PART_LENGTH, Parameters, Peek, RejectReason, ServerAnswer, VERSION,
    VersionNegotiation, is_long_header, peek,
};

/// First and longest interval between two INITIATEs.
const INTERVAL_MIN: Duration = Duration::from_millis(50);
const INTERVAL_MAX: Duration = Duration::from_millis(500);

/// Number of intervals of the first length, after which they double. With 20 % loss in each direction, doubling at once would make one
/// handshake in seventy take half a second or more.
const INTERVALS_EQUAL: u32 = 3;

/// Maximum number of COOKIEs a client follows in one handshake. A second one is legitimate if the first has expired; many more would be an
/// attack.
const COOKIES_MAX: u32 = 4;

/// Maximum number of packets kept that arrive before the RESPONSE and its part: the initial window of a server that got early data.
const AHEAD_MAX: usize = 32;

/// A client that waits for the RESPONSE.
#[derive(Debug)]
pub(crate) struct ClientHandshake {
    initiator: Initiator,
    message: Vec<u8>,
    kem: Option<KemOffer>,
    /// The part must be sent next.
    is_part_due: bool,
    /// Message 2, which waits for its part: its bytes and what they contain. Another one, of a server that restarted, replaces it.
    opened: Option<(Vec<u8>, Box<Parameters>, Secrets)>,
    /// The last part that arrived before message 2. It may be forged, so the next one replaces it.
    early_part: Option<Box<[u8; PART_LENGTH]>>,
    /// What is sent ahead of the RESPONSE, if the client has a ticket.
    early: Option<EarlyFlight>,
    /// The next datagram of it to send.
    next_early: usize,
    /// Sealed packets that overtook the RESPONSE.
    ahead: Vec<Vec<u8>>,
    /// The random generator that the connection will use.
    rng: SecretRng,
    token: Vec<u8>,
    parameters: Parameters,
    /// A random id for the first datagrams.
    destination: ConnectionId,
    remote: SocketAddr,
    server_key: PublicKey,
    first_packets: FirstPacketKey,
    next_send: Instant,
    /// When the first INITIATE was sent.
    first_sent: Option<Instant>,
    interval: Duration,
    /// When the last INITIATE was sent.
    last_sent: Option<Instant>,
    /// INITIATEs sent.
    sent: u32,
    deadline: Instant,
    cookies: u32,
    /// A REJECT said that the server could not open the INITIATE. It is not authenticated, so it is only noted.
    is_rejected: bool,
    /// A REJECT said that the server has too many handshakes in progress.
    is_busy: bool,
}

/// The ML-KEM key that a client offers.
#[derive(Debug)]
pub(crate) struct KemOffer {
    pub(crate) secret: KemSecret,
    /// The part of the INITIATE.
    pub(crate) part: Box<[u8; PART_LENGTH]>,
}

/// The effect of a datagram on the handshake.
pub(super) enum Step {
    /// No effect on its state.
    Wait,
    /// The server accepted the connection.
    Complete { server: Box<Parameters>, secrets: Secrets },
    /// The handshake failed.
    Failed(ConnectionError),
}

impl ClientHandshake {
    pub(crate) fn new(
        now: Instant,
        ((initiator, message), kem, rng): ((Initiator, Vec<u8>), Option<KemOffer>, SecretRng),
        parameters: Parameters,
        destination: ConnectionId,
        (remote, server_key): (SocketAddr, PublicKey),
        timeout: Duration,
    ) -> Self {
        Self {
            initiator,
            message,
            kem,
            is_part_due: false,
            opened: None,
            early_part: None,
            early: None,
            next_early: 0,
            ahead: Vec::new(),
            rng,
            token: Vec::new(),
            parameters,
            destination,
            remote,
            server_key,
            first_packets: FirstPacketKey::new(&server_key),
            next_send: now,
            first_sent: None,
            interval: INTERVAL_MIN,
            last_sent: None,
            sent: 0,
            deadline: now + timeout,
            cookies: 0,
            is_rejected: false,
            is_busy: false,
        }
    }

    /// Shows the server a ticket, and sends early data by it.
    pub(crate) fn with_early(self, token: &[u8], early: EarlyFlight) -> Self {
        Self { token: token.to_vec(), early: Some(early), ..self }
    }

    pub(super) fn early_mut(&mut self) -> Option<&mut EarlyFlight> {
        self.early.as_mut()
    }

    /// An early stream asks for low latency, or no longer does.
    pub(super) fn want_lane(&mut self, is_wanted: bool) {
        if let Some(early) = &mut self.early {
            early.wants_lane |= is_wanted;
        }
    }

    pub(super) fn server_key(&self) -> PublicKey {
        self.server_key
    }

    pub(super) fn is_rejected(&self) -> bool {
        self.is_rejected
    }

    pub(super) fn remote(&self) -> SocketAddr {
        self.remote
    }

    pub(super) fn next_timeout(&self) -> (Instant, TimerKind) {
        (self.next_send.min(self.deadline), TimerKind::Handshake)
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) -> Option<ConnectionError> {
        let error = match (self.is_rejected, self.is_busy) {
            (false, true) => ConnectionError::Busy,
            (rejected, _) => ConnectionError::HandshakeTimedOut { rejected },
        };
        (now >= self.deadline).then_some(error)
    }

    pub(super) fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        if now >= self.deadline {
            return None;
        }
        let header = LongHeader { destination: self.destination, source: self.parameters.connection_id };
        if core::mem::take(&mut self.is_part_due)
            && let Some(KemOffer { part, .. }) = &self.kem
        {
            LongPacket::InitiatePart { header, part }.write(buffer);
            return Some(self.tagged(buffer));
        }
        if now < self.next_send {
            return self.poll_early(header, buffer);
        }
        self.first_sent.get_or_insert(now);
        self.last_sent = Some(now);
        self.next_send = now + self.interval;
        self.sent += 1;
        if self.sent >= INTERVALS_EQUAL {
            self.interval = (self.interval * 2).min(INTERVAL_MAX);
        }
        self.is_part_due = self.kem.is_some();
        self.next_early = 0;
        LongPacket::Initiate { header, token: &self.token, message: &self.message }.write(buffer);
        Some(self.tagged(buffer))
    }

    /// Sends the next datagram with early data. A server that asked for a COOKIE did not take the ticket.
    fn poll_early(&mut self, header: LongHeader, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let early = self.early.as_mut().filter(|_| self.cookies == 0)?;
        let sealed = early.datagram(self.next_early)?;
        LongPacket::Early { header, index: u8::try_from(self.next_early).ok()?, sealed }.write(buffer);
        self.next_early += 1;
        Some(self.tagged(buffer))
    }

    fn tagged(&self, buffer: &mut [u8]) -> Transmit {
        self.first_packets.write_tag(buffer);
        Transmit { destination: self.remote, source: None, ecn: None, size: buffer.len() }
    }

    pub(super) fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) -> Step {
        if let Ok(Peek::Long { version, .. }) = peek(datagram, ConnectionId::LOCAL)
            && version != VERSION
        {
            return self.handle_other_version(datagram);
        }
        if !is_long_header(datagram) && self.early.is_some() && self.ahead.len() < AHEAD_MAX {
            self.ahead.push(datagram.to_vec());
        }
        match LongPacket::parse(datagram) {
            Ok(LongPacket::Response { message, .. }) => self.handle_response(message),
            Ok(LongPacket::ResponsePart { part, .. }) => self.handle_part(part),
            Ok(LongPacket::Cookie { header, token }) => {
                if header.source == self.destination && self.cookies < COOKIES_MAX {
                    self.cookies += 1;
                    self.token = token.to_vec();
                    // The round trip is that of the INITIATE that the server answers.
                    self.first_sent = None;
                    self.next_send = now;
                }
                Step::Wait
            }
            Ok(LongPacket::Reject { header, reason }) => {
                if header.source == self.destination {
                    self.is_rejected |= reason == RejectReason::Unopened;
                    self.is_busy |= reason == RejectReason::Busy;
                }
                Step::Wait
            }
            Ok(LongPacket::Initiate { .. } | LongPacket::InitiatePart { .. } | LongPacket::Early { .. })
            | Err(_) => Step::Wait,
        }
    }

    fn handle_other_version(&self, datagram: &[u8]) -> Step {
        match VersionNegotiation::parse(datagram) {
            Ok(list)
                if list.source == self.destination.as_bytes()
                    && list.versions().all(|version| version != VERSION) =>
            {
                Step::Failed(ConnectionError::VersionMismatch { server: list.versions().max().unwrap_or(0) })
            }
            _ => Step::Wait,
        }
    }

    fn handle_response(&mut self, message: &[u8]) -> Step {
        if self.opened.as_ref().is_some_and(|(bytes, ..)| bytes == message) {
            return Step::Wait;
        }
        // Anyone can send garbage: only a message that opens is an answer.
        let Ok((parameters, secrets)) = self.initiator.finish(message) else { return Step::Wait };
        let server = match Parameters::parse_from_server(&parameters) {
            // The header is not authenticated. A damaged source id in it must not end a handshake that the sealed one confirms.
            Ok(ServerAnswer::Accepted(server)) => server,
            Ok(ServerAnswer::Refused(refusal)) => {
                return Step::Failed(ConnectionError::Refused { code: refusal.code, reason: refusal.reason });
            }
            Err(_) => return Step::Failed(ConnectionError::HandshakeFailed),
        };
        if is_downgraded(&self.parameters.versions, &server.versions) {
            return Step::Failed(ConnectionError::Downgraded);
        }
        match (&server.hybrid, &self.kem) {
            (None, _) => Step::Complete { server, secrets },
            (Some(_), None) => Step::Failed(ConnectionError::HandshakeFailed),
            (Some(_), Some(_)) => {
                self.opened = Some((message.to_vec(), server, secrets));
                self.early_part.take().map_or(Step::Wait, |part| self.handle_part(&part))
            }
        }
    }

    /// Handles the part of the RESPONSE. Anyone can send one: only what message 2 commits to counts.
    fn handle_part(&mut self, part: &[u8; PART_LENGTH]) -> Step {
        let Some(KemOffer { secret, .. }) = &self.kem else { return Step::Wait };
        let matches = |(_, server, _): &mut (_, Box<Parameters>, _)| {
            server.hybrid.as_ref().is_some_and(|hybrid| hybrid.matches(part))
        };
        if self.opened.is_none() {
            self.early_part = Some(Box::new(*part));
        }
        let Some((_, server, secrets)) = self.opened.take_if(matches) else { return Step::Wait };
        Step::Complete { server, secrets: secrets.with_kem(&secret.open(part)) }
    }
}

impl Connection {
    /// Applies a step of the handshake. Returns packets that arrived before it was complete.
    pub(super) fn apply_handshake(
        &mut self,
        now: Instant,
        network_path: NetworkPath,
        step: Step,
    ) -> Vec<Vec<u8>> {
        let State::Handshaking(handshake) = &mut self.state else { return Vec::new() };
        let (server, secrets) = match step {
            Step::Wait => return Vec::new(),
            Step::Failed(error) => {
                self.end(error);
                return Vec::new();
            }
            Step::Complete { server, secrets } => (server, secrets),
        };
        let negotiated = match negotiate(&self.config.catalogue, &handshake.parameters, &server, &server) {
            Ok(negotiated) => negotiated,
            Err(mismatch) => {
                self.end(ConnectionError::NothingInCommon(mismatch));
                return Vec::new();
            }
        };
        let early = handshake.early.take();
        // The ticket promised that many.
        if early.as_ref().is_some_and(|early| early.streams.opened() > server.max_streams) {
            self.end(ConnectionError::HandshakeFailed);
            return Vec::new();
        }
        let wants_lane = early.as_ref().is_some_and(|early| early.wants_lane);
        let ahead = core::mem::take(&mut handshake.ahead);
        let network = NetworkPath { local: network_path.local, remote: handshake.remote };
        let (first_sent, last_sent) = (handshake.first_sent, handshake.last_sent);
        if let Some(token) = negotiated.reset_token {
            self.endpoint_events.push_back(EndpointEvent::ResetToken { remote: network.remote, token });
        }
        let setup = Setup {
            role: self.role,
            config: self.config.clone(),
            protection: PacketProtection::new(negotiated.suite, secrets.send, secrets.receive),
            own: handshake.parameters.clone(),
            peer: *server,
            negotiated,
            network,
            reset_key: None,
            peer_key: self.peer_key,
            early_key: None,
            tickets: None,
            streams: early.map(|early| early.streams),
            rng: handshake.rng.fork(),
        };
        let mut established = Established::new(now, setup);
        established.is_confirmed = true;
        established.on_handshake_round_trip(now, first_sent);
        established.paths.main_mut().set_hasty_rtt(last_sent.map_or(INITIAL_RTT, |sent| now - sent));
        // The server sends nothing until it has received a packet under the new keys.
        established.ping = true;
        if wants_lane {
            established.open_lane();
        }
        self.state = State::Established(Box::new(established));
        self.events.push_back(Event::Connected);
        ahead
    }
}
