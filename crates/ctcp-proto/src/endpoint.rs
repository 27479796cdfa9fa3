//! One socket: routing by connection id, first packets, and stateless answers.
//!
//! ```text
//!   datagram -- known id ----------------------------------> Connection
//!      |
//!      +-- INITIATE -- tagged? ---- REJECT
//!      |                  |
//!      |               too many? -- COOKIE, REJECT
//!      |                  |
//!      |               opens? ---- REJECT
//!      |                  |
//!      |             key listed? -- RESPONSE with a refusal
//!      |                  |
//!      |             has a part? -- waits for it, half open
//!      |                  |
//!      |               Incoming --> accept --> Connection (half open until its client's first sealed packet)
//!      |
//!      +-- short header, unknown id -- stateless reset
//! ```
//!
//! Invariant: a stateless answer is never longer than the datagram that triggered it. All but cookies are rate-limited. A cookie answers at
//! least 1200 bytes with some 50, and honest clients need it most during a flood.

mod clients;
mod incoming;
mod refused;
mod routing;
mod waiting;

use core::fmt;
use core::net::SocketAddr;
use std::collections::{BTreeMap, VecDeque};

use ctcp_base::Instant;

use crate::config::{EndpointConfig, TransportConfig};
use crate::connection::{
    ClientHandshake, Connection, EarlyFlight, KemOffer, PATH_IDS_SPARE, client_parameters, streams,
};
use crate::crypto::derive::expand;
use crate::crypto::kem::KemSecret;
use crate::crypto::random::SecretRng;
use crate::crypto::reset::{is_reset, write_reset};
use crate::crypto::{FirstPacketKey, PublicKey, ResetKey, SpentTickets, Ticket, TicketKey};
use crate::error::CloseReason;
use crate::event::EndpointEvent;
use crate::handshake::{Census, CookieJar, HalfOpen, Initiator};
use crate::id::{ConnectionId, Role};
use crate::memory::{Account, CONNECTION_COST, CONNECTION_MIN, Memory};
use crate::network::{Ecn, NetworkPath};
use crate::wire::{
    DATAGRAM_SIZE_MIN, HybridParameter, LongPacket, Parameters, Peek, RejectReason, VERSION,
    VersionNegotiation, peek,
};

use incoming::Asked;
pub use incoming::Incoming;
pub use refused::RefusedClient;
use refused::is_version_of_ours;
use routing::{AnswerLimits, Routes};
use waiting::EarlyParts;

/// One client in so many sends a parameter that nobody knows, so that servers keep ignoring those.
const RESERVED_PARAMETER_EVERY: u64 = 4;

/// Identifies a connection of an endpoint. Handles of closed connections are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionHandle(pub usize);

/// What to do with a datagram.
#[derive(Debug)]
pub enum DatagramOutcome {
    /// It belongs to this connection: pass it to [`Connection::handle_datagram`].
    Connection(ConnectionHandle),
    /// A new client that is allowed by the policy: [`Endpoint::accept`] or [`Endpoint::refuse`] it.
    Incoming(Box<Incoming>),
    /// Send this to the source of the datagram.
    Answer(Vec<u8>),
    /// Nothing to do.
    Dropped(DropReason),
}

/// Why a datagram was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DropReason {
    /// It cannot be parsed.
    Malformed,
    /// It is for no known connection, or a first packet although this endpoint accepts none.
    Unknown,
    /// The rate limit of stateless answers is reached, or the handshake message was already received.
    Limited,
    /// Its parameters are invalid.
    Parameters,
    /// It begins a handshake that goes on with the client's next datagram.
    Incomplete,
    /// It is the second datagram of a handshake whose first has not arrived.
    Early,
}

/// Why [`Endpoint::connect`] failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectError {
    /// A setting is out of range.
    InvalidConfig(&'static str),
    /// The limit of connections is reached.
    TooMany,
    /// The existing connections use up the endpoint's memory budget.
    Memory,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidConfig(what) => write!(formatter, "invalid setting: {what}"),
            Self::TooMany => formatter.write_str("too many connections"),
            Self::Memory => formatter.write_str("no memory is left for another connection"),
        }
    }
}

impl core::error::Error for ConnectError {}

/// Counters of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Datagrams without a connection that were dropped.
    pub dropped: u64,
    /// Stateless answers sent: cookies, rejects, refusals, resets, version lists.
    pub answers: u64,
    /// Cookies among these answers.
    pub cookies: u64,
    /// Clients refused because their key is not listed.
    pub refused: u64,
    /// Clients of another version of this protocol that got a version list. Noise and other protocols do not count.
    pub other_versions: u64,
    /// Half-open handshakes, now.
    pub half_open: usize,
    /// Bytes of memory used by all connections or promised to their peers, now.
    pub memory: u64,
}

/// The connections of one socket.
#[derive(Debug)]
pub struct Endpoint {
    config: EndpointConfig,
    rng: SecretRng,
    /// Checks the tags of first packets to this endpoint.
    first_packets: FirstPacketKey,
    cookies: CookieJar,
    tickets: TicketKey,
    spent_tickets: SpentTickets,
    reset_key: ResetKey,
    routes: Routes,
    half_open: HalfOpen<ConnectionHandle>,
    /// Half-open connections, by the ephemeral keys of their first messages.
    half_open_messages: Census<ConnectionHandle, [u8; 32]>,
    /// The keys claimed by the clients of half-open connections.
    half_open_keys: BTreeMap<ConnectionHandle, PublicKey>,
    /// Half-open handshakes that have no connection yet because a part of the first message is missing.
    waiting: BTreeMap<ConnectionHandle, Box<Incoming>>,
    early_parts: EarlyParts,
    /// Confirmed connections, by the client's key.
    clients: Census<ConnectionHandle, PublicKey>,
    memory: Memory,
    /// Memory accounts, by the peer's key.
    accounts: BTreeMap<PublicKey, Account>,
    /// Connections that must be closed, with the reason to send.
    closes: VecDeque<(ConnectionHandle, CloseReason)>,
    /// The client that was refused last.
    refused: Option<RefusedClient>,
    answers: AnswerLimits,
    stats: EndpointStats,
}

impl Endpoint {
    /// Creates an endpoint. All its random choices follow from `seed` and from what [`Self::mix_entropy`] adds. The seed must be secret and
    /// never reused: keys and connection ids are derived from it.
    #[must_use]
    pub fn new(config: EndpointConfig, seed: [u8; 32]) -> Self {
        let tickets = TicketKey::new(expand(&seed, &[b"ctcp tickets"]));
        let mut rng = SecretRng::new(seed);
        Self {
            memory: Memory::new(config.memory),
            first_packets: FirstPacketKey::new(&config.secret_key.public_key()),
            cookies: CookieJar::new(rng.bytes()),
            half_open: HalfOpen::new(rng.bytes()),
            early_parts: EarlyParts::new(rng.bytes()),
            reset_key: ResetKey::new(&config.secret_key),
            tickets,
            spent_tickets: SpentTickets::default(),
            config,
            rng,
            routes: Routes::default(),
            half_open_messages: Census::default(),
            half_open_keys: BTreeMap::new(),
            waiting: BTreeMap::new(),
            clients: Census::default(),
            accounts: BTreeMap::new(),
            closes: VecDeque::new(),
            refused: None,
            answers: AnswerLimits::default(),
            stats: EndpointStats::default(),
        }
    }

    /// Mixes entropy from the operating system into the generator of keys, connection ids and challenges, so that a leaked seed becomes
    /// worthless. Call it before each handshake.
    pub fn mix_entropy(&mut self, entropy: &[u8; 32]) {
        self.rng.mix(entropy);
    }

    /// Begins a connection to the server with this public key.
    ///
    /// # Errors
    /// Returns an error if a setting is out of range, or if there are too many connections or too little memory.
    pub fn connect(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        server_key: PublicKey,
        transport: TransportConfig,
    ) -> Result<(ConnectionHandle, Connection), ConnectError> {
        self.begin(now, (remote, server_key), transport, None)
    }

    /// Begins a connection with a ticket that the server gave to this client at this address. Streams can be opened and written at once:
    /// about 4 kB leave in the first flight, the rest after the handshake. A server that no longer takes the ticket gets everything after
    /// the handshake.
    ///
    /// The server takes a ticket once, so nobody can replay early data to it. Whoever delays the first flight decides when it has its
    /// effect, even if this client has given up.
    ///
    /// # Errors
    /// As for [`Self::connect`].
    pub fn connect_early(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        server_key: PublicKey,
        transport: TransportConfig,
        ticket: &Ticket,
    ) -> Result<(ConnectionHandle, Connection), ConnectError> {
        self.begin(now, (remote, server_key), transport, Some(ticket))
    }

    fn begin(
        &mut self,
        now: Instant,
        (remote, server_key): (SocketAddr, PublicKey),
        transport: TransportConfig,
        ticket: Option<&Ticket>,
    ) -> Result<(ConnectionHandle, Connection), ConnectError> {
        transport.check().map_err(ConnectError::InvalidConfig)?;
        if self.routes.len() >= self.config.connections {
            return Err(ConnectError::TooMany);
        }
        let account = self.account(server_key, Memory::for_server);
        if account.room() < CONNECTION_MIN {
            return Err(ConnectError::Memory);
        }
        let is_client_only = self.config.accept.is_none();
        let promise =
            if is_client_only { account.first_promise_to_server() } else { account.first_promise() };
        let transport = transport.within(promise);
        let (local, destination) = (self.new_id(), self.new_id());
        let mut parameters = client_parameters(&transport, local);
        if transport.path_ids {
            parameters.path_ids = self.new_path_ids();
        }
        let kem = transport.hybrid.then(|| KemSecret::new([self.rng.bytes(), self.rng.bytes()]));
        let kem = kem.map(|secret| {
            let (parameter, part) = HybridParameter::of_key(&secret.public());
            parameters.hybrid = Some(parameter);
            KemOffer { secret, part: Box::new(part) }
        });
        let mut bytes = Vec::new();
        parameters.write(&mut bytes);
        if self.rng.below(RESERVED_PARAMETER_EVERY) == 0 {
            Parameters::write_reserved(&mut bytes, self.rng.next_u64());
        }
        let initiated = Initiator::start(self.rng.bytes(), &self.config.secret_key, &server_key, &bytes)
            .map_err(|_| ConnectError::InvalidConfig("the parameters do not fit into a first packet"))?;
        let timeout = transport.handshake_timeout;
        let path_ids = parameters.path_ids.clone();
        let early = ticket.map(|ticket| {
            let streams = streams(Role::Client, &transport, &parameters);
            (ticket.token(), EarlyFlight::new(ticket, &initiated.1, streams))
        });
        let mut handshake = ClientHandshake::new(
            now,
            (initiated, kem, self.rng.fork()),
            parameters,
            destination,
            (remote, server_key),
            timeout,
        );
        if let Some((token, early)) = early {
            handshake = handshake.with_early(token, early);
        }
        let handle = self.routes.insert(local);
        path_ids.into_iter().for_each(|id| self.routes.add(handle, id));
        let connection = Connection::client(now, transport, handshake);
        Ok((handle, connection.with_lease(account.lease(CONNECTION_COST))))
    }

    /// Determines the connection of a datagram, or answers it. Does not change any connection.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        network_path: NetworkPath,
        _ecn: Option<Ecn>,
        datagram: &[u8],
    ) -> DatagramOutcome {
        let outcome = match peek(datagram, ConnectionId::LOCAL) {
            Err(_) => DatagramOutcome::Dropped(DropReason::Malformed),
            Ok(Peek::Short { destination }) => self.handle_short(now, network_path, destination, datagram),
            Ok(Peek::Long { destination, source, version }) => {
                let id = ConnectionId::new(destination);
                match id.and_then(|id| self.routes.find(&id, network_path.remote)) {
                    // A repeated INITIATE has a tag like the first one.
                    Some(_) if is_initiate(datagram) && self.is_untagged(datagram) => {
                        DatagramOutcome::Dropped(DropReason::Malformed)
                    }
                    Some(handle) if self.waiting.contains_key(&handle) => {
                        self.handle_awaited(handle, network_path, datagram)
                    }
                    Some(handle) => DatagramOutcome::Connection(handle),
                    None if version == VERSION => self.handle_long(now, network_path, datagram),
                    None => self.handle_other_version(now, version, (destination, source), datagram),
                }
            }
        };
        match &outcome {
            DatagramOutcome::Answer(_) => self.stats.answers += 1,
            DatagramOutcome::Dropped(DropReason::Incomplete | DropReason::Early) => {}
            DatagramOutcome::Dropped(_) => self.stats.dropped += 1,
            DatagramOutcome::Connection(_) | DatagramOutcome::Incoming(_) => {}
        }
        outcome
    }

    /// Processes an event of [`Connection::poll_endpoint_event`]. Drain [`Self::poll_close`] after it.
    pub fn handle_event(&mut self, handle: ConnectionHandle, event: EndpointEvent) {
        match event {
            EndpointEvent::Confirmed => {
                self.on_confirmed(handle);
                self.no_longer_half_open(handle);
                self.routes.forget_initial(handle);
            }
            EndpointEvent::NewConnectionId(id) => self.routes.add(handle, id),
            EndpointEvent::RetiredConnectionId(id) => self.routes.retire(handle, &id),
            EndpointEvent::ResetToken { remote, token } => self.routes.set_reset_token(handle, remote, token),
            EndpointEvent::Retired => {
                self.no_longer_half_open(handle);
                self.clients.remove(&handle);
                self.routes.remove(handle);
            }
        }
    }

    /// Removes expired half-open handshakes. May be called at any time.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(handle) = self.half_open.poll_expired(now) {
            self.no_longer_half_open(handle);
            if self.waiting.remove(&handle).is_some() {
                self.routes.remove(handle);
            }
        }
    }

    /// When [`Self::handle_timeout`] must be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.half_open.next_timeout()
    }

    /// The statistics of the endpoint.
    #[must_use]
    pub fn stats(&self) -> EndpointStats {
        EndpointStats { half_open: self.half_open.len(), memory: self.memory.used(), ..self.stats }
    }

    /// The memory account of a peer.
    fn account(&mut self, key: PublicKey, open: fn(&Memory) -> Account) -> Account {
        if let Some(account) = self.accounts.get(&key) {
            return account.clone();
        }
        self.accounts.retain(|_, account| !account.is_unused());
        let account = open(&self.memory);
        self.accounts.insert(key, account.clone());
        account
    }

    /// The number of connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.routes.len()
    }

    fn no_longer_half_open(&mut self, handle: ConnectionHandle) {
        self.half_open.remove(&handle);
        self.half_open_messages.remove(&handle);
        self.half_open_keys.remove(&handle);
    }

    fn handle_short(
        &mut self,
        now: Instant,
        network_path: NetworkPath,
        destination: ConnectionId,
        datagram: &[u8],
    ) -> DatagramOutcome {
        if let Some(handle) = self.routes.find(&destination, network_path.remote) {
            if self.waiting.contains_key(&handle) {
                return DatagramOutcome::Dropped(DropReason::Unknown);
            }
            return DatagramOutcome::Connection(handle);
        }
        // If the peer has restarted it answers with a reset, which contains no connection id of this endpoint.
        let tokens = self.routes.reset_tokens(network_path.remote);
        if let Some((handle, _)) = tokens.into_iter().find(|(_, token)| is_reset(datagram, token)) {
            return DatagramOutcome::Connection(handle);
        }
        // If this endpoint has restarted, a reset tells the peer that the connection is unknown.
        if self.config.accept.is_none() {
            return DatagramOutcome::Dropped(DropReason::Unknown);
        }
        if !self.answers.resets.take(now) {
            return DatagramOutcome::Dropped(DropReason::Limited);
        }
        let token = self.reset_key.token(network_path.remote, &destination);
        match write_reset(&token, datagram.len(), &self.rng.bytes()) {
            Some(reset) => DatagramOutcome::Answer(reset),
            None => DatagramOutcome::Dropped(DropReason::Unknown),
        }
    }

    /// Whether the sender of an INITIATE does not know this server's public key.
    fn is_untagged(&self, datagram: &[u8]) -> bool {
        self.config.accept.is_some() && !self.first_packets.is_tagged(datagram)
    }

    fn handle_long(&mut self, now: Instant, network_path: NetworkPath, datagram: &[u8]) -> DatagramOutcome {
        match LongPacket::parse(datagram) {
            Ok(LongPacket::Initiate { header, .. }) if self.is_untagged(datagram) => {
                self.reject(now, header, RejectReason::Unopened, Asked::ByAnybody)
            }
            Ok(LongPacket::Initiate { header, token, message }) if self.config.accept.is_some() => {
                self.handle_initiate(now, network_path, header, token, message)
            }
            Ok(LongPacket::InitiatePart { header, part })
                if self.config.accept.is_some() && !self.is_untagged(datagram) =>
            {
                self.keep_part(network_path.remote, header, part)
            }
            Ok(LongPacket::Early { .. }) => DatagramOutcome::Dropped(DropReason::Early),
            Ok(_) => DatagramOutcome::Dropped(DropReason::Unknown),
            Err(_) => DatagramOutcome::Dropped(DropReason::Malformed),
        }
    }

    fn handle_other_version(
        &mut self,
        now: Instant,
        version: u32,
        (destination, source): (&[u8], &[u8]),
        datagram: &[u8],
    ) -> DatagramOutcome {
        // Version 0 is itself an answer. Answering it could cause a loop.
        if version == 0 || self.config.accept.is_none() || datagram.len() < DATAGRAM_SIZE_MIN {
            return DatagramOutcome::Dropped(DropReason::Unknown);
        }
        if !self.answers.strangers.take(now) {
            return DatagramOutcome::Dropped(DropReason::Limited);
        }
        if is_version_of_ours(version) {
            self.stats.other_versions += 1;
            self.refused = Some(RefusedClient::OtherVersion(version));
        }
        let mut answer = Vec::new();
        VersionNegotiation::write(&mut answer, source, destination);
        DatagramOutcome::Answer(answer)
    }

    #[cfg(test)]
    pub(crate) fn routed_ids(&self) -> usize {
        self.routes.ids()
    }

    /// Connection ids for further paths.
    fn new_path_ids(&mut self) -> Vec<ConnectionId> {
        (0..PATH_IDS_SPARE).map(|_| self.new_id()).collect()
    }

    /// An unpredictable id that is not in use.
    fn new_id(&mut self) -> ConnectionId {
        loop {
            let id = ConnectionId::random(&mut self.rng);
            if !self.routes.contains(&id) {
                return id;
            }
        }
    }
}

fn is_initiate(datagram: &[u8]) -> bool {
    matches!(
        LongPacket::parse(datagram),
        Ok(LongPacket::Initiate { .. } | LongPacket::InitiatePart { .. } | LongPacket::Early { .. })
    )
}
