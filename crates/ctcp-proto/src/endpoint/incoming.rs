//! First packets: which clients get a connection (PROTOCOL.md section 3).

use core::net::{IpAddr, SocketAddr};

use ctcp_base::Instant;

use super::clients::TOO_MANY_OF_CLIENT;
use super::waiting::Place;
use super::{ConnectionHandle, DatagramOutcome, DropReason, Endpoint, RefusedClient};
use crate::connection::{
    Connection, PendingResponse, Setup, VERSIONS, has_room_for_early_data, is_downgraded, negotiate,
    server_parameters,
};
use crate::crypto::kem::{KEM_KEY_LENGTH, encapsulate};
use crate::crypto::{EarlyKey, PacketProtection, PublicKey, Visit};
use crate::error::ConnectionError;
use crate::handshake::{Admission, Responder};
use crate::id::{ConnectionId, Role};
use crate::memory::{Account, CONNECTION_COST, CONNECTION_MIN, Memory};
use crate::network::NetworkPath;
use crate::wire::{HybridParameter, LongHeader, LongPacket, PART_LENGTH, Parameters, Refusal, RejectReason};

/// Which rate limit applies to a stateless answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asked {
    /// Any datagram can trigger it, even garbage.
    ByAnybody,
    /// The first packet was admitted, which is rate-limited.
    AfterAdmission,
}

/// A client whose first message was opened and whose key the policy accepts.
#[derive(Debug)]
pub struct Incoming {
    responder: Responder,
    client_key: PublicKey,
    parameters: Parameters,
    pub(super) header: LongHeader,
    pub(super) network_path: NetworkPath,
    /// Its address, if it showed a cookie for it.
    pub(super) proven: Option<IpAddr>,
    /// The client's ephemeral key, unique to the handshake.
    pub(super) ephemeral: [u8; 32],
    /// The ticket that it showed, and the key of the early data that follows.
    visit: Option<(Visit, EarlyKey)>,
    /// The client's ML-KEM key, if both sides use one.
    kem_key: Option<Box<[u8; KEM_KEY_LENGTH]>>,
    /// What was reserved while it waited for its part.
    pub(super) place: Option<Place>,
}

/// The texts of refusals.
const NOT_LISTED: &str = "this client's public key is not on the server's list";
const NEWER_VERSION: &str = "both sides support a newer version of the protocol";

impl Incoming {
    /// The client's static public key. The message may be a replay. The key is proved only when the connection receives the client's first
    /// sealed packet, which causes its first event.
    #[must_use]
    pub fn client_key(&self) -> PublicKey {
        self.client_key
    }

    /// The client's address.
    #[must_use]
    pub fn remote(&self) -> SocketAddr {
        self.network_path.remote
    }

    /// Adds the part of message 1. Returns false if it is not the one to which the message commits.
    pub(super) fn complete(&mut self, part: &[u8; PART_LENGTH]) -> bool {
        self.kem_key = self.parameters.hybrid.as_ref().and_then(|hybrid| hybrid.key(part)).map(Box::new);
        self.kem_key.is_some()
    }
}

impl Endpoint {
    /// Creates a half-open connection for a client. Returns `None` if there is no room, no suite in common, or the client's key is invalid.
    pub fn accept(&mut self, now: Instant, incoming: Incoming) -> Option<(ConnectionHandle, Connection)> {
        let place = incoming.place.or_else(|| self.reserve(now, &incoming))?;
        let accepted = self.accept_at(now, place, incoming);
        if accepted.is_none() {
            self.free_place(place);
        }
        accepted
    }

    fn accept_at(
        &mut self,
        now: Instant,
        Place { handle, local }: Place,
        incoming: Incoming,
    ) -> Option<(ConnectionHandle, Connection)> {
        let token = self.reset_key.token(incoming.network_path.remote, &local);
        let account = self.account_of_client(incoming.client_key);
        let config = self.config.transport.within(account.first_promise());
        let mut own =
            server_parameters(&config, &self.config.grant, local, token, &incoming.parameters).ok()?;
        let kem = match &incoming.kem_key {
            Some(key) => Some(encapsulate(key, self.rng.bytes())?),
            None => None,
        };
        if !incoming.parameters.path_ids.is_empty() && own.paths > 1 {
            own.path_ids = self.new_path_ids();
            own.path_ids.iter().for_each(|&id| self.routes.add(handle, id));
        }
        own.hybrid = kem.as_ref().map(|(ciphertext, _)| HybridParameter::of_ciphertext(ciphertext));
        let negotiated =
            negotiate(&self.config.transport.catalogue, &own, &incoming.parameters, &own).ok()?;
        let mut bytes = Vec::new();
        own.write(&mut bytes);
        let gets_tickets = incoming.parameters.tickets && has_room_for_early_data(&config);
        let (message, mut secrets) = incoming.responder.answer(&bytes).ok()?;
        let header = LongHeader { destination: incoming.header.source, source: local };
        let mut response = vec![written(&LongPacket::Response { header, message: &message })];
        if let Some((ciphertext, shared)) = kem {
            response.push(written(&LongPacket::ResponsePart { header, part: &ciphertext }));
            secrets = secrets.with_kem(&shared);
        }

        let visit = incoming.visit.filter(|(visit, _)| self.spent_tickets.spend(visit, incoming.ephemeral));
        // The time that it waited for its part counts.
        let deadline = self.half_open.deadline(&handle)?;
        self.half_open_keys.insert(handle, incoming.client_key);
        let setup = Setup {
            role: Role::Server,
            config,
            protection: PacketProtection::new(negotiated.suite, secrets.send, secrets.receive),
            own,
            peer: incoming.parameters,
            negotiated,
            network: incoming.network_path,
            peer_key: incoming.client_key,
            reset_key: Some(self.reset_key.clone()),
            early_key: visit.map(|(_, key)| key),
            tickets: gets_tickets.then(|| self.tickets.clone()),
            streams: None,
            rng: self.rng.fork(),
        };
        let response = PendingResponse::new(response, deadline);
        let connection = Connection::server(now, setup, response);
        Some((handle, connection.with_lease(account.lease(CONNECTION_COST))))
    }

    /// Drops a client without an answer. It tries again until it times out.
    pub fn refuse(&mut self, incoming: Incoming) {
        if let Some(place) = incoming.place {
            self.free_place(place);
        }
    }

    /// Whether clients with this key may connect.
    pub(super) fn accepts(&self, key: &PublicKey) -> bool {
        self.config.accept.as_ref().is_some_and(|clients| clients.accepts(key))
    }

    pub(super) fn handle_initiate(
        &mut self,
        now: Instant,
        network_path: NetworkPath,
        header: LongHeader,
        token: &[u8],
        message: &[u8],
    ) -> DatagramOutcome {
        let remote = network_path.remote;
        let has_cookie = self.cookies.is_valid(now, remote, &header.source, token);
        let visit = self.tickets.open(now, token).filter(|visit| {
            visit.address == remote.ip().to_canonical() && self.spent_tickets.is_fresh(visit)
        });
        let proven = (has_cookie || visit.is_some()).then_some(remote.ip());
        match self.half_open.admit(now, proven) {
            Admission::Proceed => self.open_initiate(now, network_path, header, (proven, visit), message),
            Admission::DemandCookie => {
                self.stats.cookies += 1;
                let token = self.cookies.make(now, remote, &header.source);
                answer(&LongPacket::Cookie { header: back(header), token: &token })
            }
            Admission::Busy => self.reject(now, header, RejectReason::Busy, Asked::ByAnybody),
        }
    }

    fn open_initiate(
        &mut self,
        now: Instant,
        network_path: NetworkPath,
        header: LongHeader,
        (proven, visit): (Option<IpAddr>, Option<Visit>),
        message: &[u8],
    ) -> DatagramOutcome {
        // A replay of a message whose handshake is half-open, or has spent a ticket.
        let ephemeral = ephemeral_key(message);
        if self.half_open_messages.count(ephemeral) > 0 || self.spent_tickets.was_spent_by(&ephemeral) {
            return DatagramOutcome::Dropped(DropReason::Limited);
        }
        let Ok((responder, client_key, bytes)) =
            Responder::open(self.rng.bytes(), &self.config.secret_key, message)
        else {
            return self.reject(now, header, RejectReason::Unopened, Asked::AfterAdmission);
        };
        let parameters = match Parameters::parse_from_client(&bytes) {
            Ok(parameters) if parameters.connection_id == header.source => parameters,
            Ok(_) | Err(_) => return DatagramOutcome::Dropped(DropReason::Parameters),
        };
        if !self.accepts(&client_key) {
            self.stats.refused += 1;
            self.refused = Some(RefusedClient::Unlisted(client_key));
            return self.refusal(now, header, responder, ConnectionError::UNLISTED, NOT_LISTED);
        }
        if is_downgraded(&VERSIONS, &parameters.versions) {
            return self.refusal(now, header, responder, ConnectionError::NEWER_VERSION, NEWER_VERSION);
        }
        if let Some(reason) = self.no_room(client_key) {
            self.refused = Some(RefusedClient::NoRoom { key: client_key, reason });
            return self.refusal(now, header, responder, ConnectionError::FULL, reason);
        }
        let visit = visit.filter(|visit| visit.client == client_key);
        let visit = visit.map(|visit| {
            let key = visit.early_key(message);
            (visit, key)
        });
        let is_hybrid = self.config.transport.hybrid && parameters.hybrid.is_some();
        let mut incoming = Incoming {
            responder,
            client_key,
            parameters,
            header,
            network_path,
            proven,
            ephemeral,
            visit,
            kem_key: None,
            place: None,
        };
        let early = self.early_parts.take(network_path.remote, header).filter(|_| is_hybrid);
        let is_complete = !is_hybrid || early.is_some_and(|part| incoming.complete(&part));
        if is_complete {
            DatagramOutcome::Incoming(Box::new(incoming))
        } else {
            self.wait_for_part(now, incoming)
        }
    }

    fn account_of_client(&mut self, client: PublicKey) -> Account {
        let is_relay = self.config.relays.contains(&client);
        self.account(client, if is_relay { Memory::for_relay } else { Memory::for_client })
    }

    /// The reason if there is no room for another connection of a client.
    fn no_room(&mut self, client: PublicKey) -> Option<&'static str> {
        if self.routes.len() >= self.config.connections {
            return Some("the server has as many connections as it may have");
        }
        if self.clients.count(client) >= self.config.connections_of(&client) {
            return Some(TOO_MANY_OF_CLIENT);
        }
        let room = self.account_of_client(client).room();
        (room < CONNECTION_MIN)
            .then_some("the server has no memory left for another connection of this client")
    }

    pub(super) fn reject(
        &mut self,
        now: Instant,
        header: LongHeader,
        reason: RejectReason,
        asked: Asked,
    ) -> DatagramOutcome {
        let limit = match asked {
            Asked::ByAnybody => &mut self.answers.strangers,
            Asked::AfterAdmission => &mut self.answers.admitted,
        };
        if !limit.take(now) {
            return DatagramOutcome::Dropped(DropReason::Limited);
        }
        answer(&LongPacket::Reject { header: back(header), reason })
    }

    /// A RESPONSE that only carries a refusal. It is authenticated, and no state is kept.
    fn refusal(
        &mut self,
        now: Instant,
        header: LongHeader,
        responder: Responder,
        code: u8,
        reason: &str,
    ) -> DatagramOutcome {
        if !self.answers.admitted.take(now) {
            return DatagramOutcome::Dropped(DropReason::Limited);
        }
        let id = self.new_id();
        let mut bytes = Vec::new();
        Refusal { connection_id: id, code, reason: reason.to_owned() }.write(&mut bytes);
        match responder.answer(&bytes) {
            Ok((message, _)) => answer(&LongPacket::Response {
                header: LongHeader { destination: header.source, source: id },
                message: &message,
            }),
            Err(_) => DatagramOutcome::Dropped(DropReason::Parameters),
        }
    }
}

/// The client's ephemeral public key, with which its first message begins (Noise IK); zeros if the message is too short.
fn ephemeral_key(message: &[u8]) -> [u8; 32] {
    message.first_chunk().copied().unwrap_or_default()
}

/// The header of a stateless answer. It echoes the client's random destination id, which only observers on the path know.
fn back(header: LongHeader) -> LongHeader {
    let echo: ConnectionId = header.destination;
    LongHeader { destination: header.source, source: echo }
}

fn answer(packet: &LongPacket<'_>) -> DatagramOutcome {
    DatagramOutcome::Answer(written(packet))
}

fn written(packet: &LongPacket<'_>) -> Vec<u8> {
    let mut datagram = Vec::new();
    packet.write(&mut datagram);
    datagram
}
