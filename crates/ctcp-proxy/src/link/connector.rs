//! The connector over [`ctcp`].

use core::fmt;
use core::net::SocketAddr;
use core::str::FromStr;
use core::time::Duration;
use std::io;
use std::sync::{Mutex, PoisonError};

use ctcp::{ConnectError, ConnectionError, LocalPath};
use tokio::time::timeout;
use tracing::debug;

use super::paths::{self, PathChoice, PathKeeper};
use super::{ConnectFailure, Connector, FailureKind, Tickets};
use crate::address::{AddressError, Host, TargetAddress};
use crate::relay;
use crate::request::{Carry, ReplyCode, Stop};

/// The address of a ctcp server as configured: `HOST:PORT` with a name or an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAddress(pub TargetAddress);

impl FromStr for ServerAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        text.parse().map(Self)
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl ServerAddress {
    /// Resolves its current addresses, at most [`SERVER_ADDRESSES_MAX`].
    ///
    /// # Errors
    /// Returns an error if the name does not resolve.
    pub async fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        let TargetAddress { host, port } = &self.0;
        match host {
            Host::Address(ip) => Ok(vec![SocketAddr::new(*ip, *port)]),
            Host::Name(name) => {
                let found = tokio::net::lookup_host((name.as_str(), *port)).await?;
                Ok(found.take(SERVER_ADDRESSES_MAX).collect())
            }
        }
    }
}

/// How many addresses of the server's name are tried in one attempt.
pub const SERVER_ADDRESSES_MAX: usize = 8;

/// A connector over [`ctcp`].
#[derive(Debug)]
pub struct CtcpConnector {
    /// The local socket.
    pub endpoint: ctcp::Endpoint,
    /// The address of the server.
    pub server: ServerAddress,
    /// The public key of the server.
    pub server_key: ctcp::PublicKey,
    /// Our own public key, shown in the error if the server does not know it.
    pub own_key: Option<ctcp::PublicKey>,
    /// Where the connection's paths begin; the system chooses if this is empty.
    pub paths: Vec<PathChoice>,
    /// Tickets of the server; `None` to ask for none.
    pub tickets: Option<Tickets>,
    /// The relays on the way to the server, in order.
    pub via: Vec<Stop>,
    /// The connection to the first of them.
    hop: Hop,
    /// How long an attempt at one address may take. This also bounds how late a change of the server's name is noticed.
    pub attempt: Duration,
}

impl CtcpConnector {
    /// Creates a connector with the default time for an attempt.
    #[must_use]
    pub fn new(endpoint: ctcp::Endpoint, server: ServerAddress, server_key: ctcp::PublicKey) -> Self {
        let attempt = Duration::from_secs(5);
        let (own_key, tickets, hop) = (None, None, Hop::default());
        Self {
            endpoint,
            server,
            server_key,
            own_key,
            paths: Vec::new(),
            tickets,
            via: Vec::new(),
            hop,
            attempt,
        }
    }

    /// Sets the own public key, which is shown if a server does not know it.
    #[must_use]
    pub fn with_own_key(mut self, own_key: ctcp::PublicKey) -> Self {
        self.own_key = Some(own_key);
        self
    }

    /// Opens a path from each of these places. The first one that leads to a server carries the handshake.
    #[must_use]
    pub fn with_paths(mut self, paths: Vec<PathChoice>) -> Self {
        self.paths = paths;
        self
    }

    /// Keeps tickets of the server, and sends the first requests of the next connection with its first packets. The endpoint must
    /// ask for tickets ([`ctcp::TransportConfig::tickets`]).
    #[must_use]
    pub fn with_tickets(mut self, tickets: Tickets) -> Self {
        self.tickets = Some(tickets);
        self
    }

    /// Goes through these relays, the nearest first. They are asked for one after the other and carry what they cannot read.
    #[must_use]
    pub fn with_via(mut self, via: Vec<Stop>) -> Self {
        self.via = via;
        self
    }

    /// Connects through the relays.
    async fn connect_via(&self, first: &Stop, rest: &[Stop]) -> Result<ctcp::Connection, ConnectFailure> {
        let server = Stop { address: self.server.0.clone(), key: self.server_key };
        let stops = rest.iter().cloned().chain([server]).collect();
        let carry = Carry { repair: ctcp::HopRepair::default(), stops };
        let fail = |text: String| ConnectFailure::from(format!("through the relay {first}: {text}"));
        if !carry.fits() {
            return Err(fail("the relays after it are too many, or their names too long".to_owned()));
        }
        self.hop.put(None);
        let opened = timeout(HOPS * self.attempt, relay::open(&self.endpoint, first, carry)).await;
        let (hop, repair) = match opened {
            Err(_) => return Err(fail("no answer".to_owned())),
            Ok(Err((code, text))) => {
                let is_refusal = matches!(code, ReplyCode::NotAllowed | ReplyCode::CommandNotSupported);
                let kind = if is_refusal { FailureKind::Refusal } else { FailureKind::NoAnswer };
                return Err(ConnectFailure { kind, ..fail(text) });
            }
            Ok(Ok(opened)) => opened,
        };
        let address = hop.carry(repair);
        self.hop.put(Some(hop));
        let address = address.map_err(|error| fail(error.to_string()))?;
        match timeout(self.attempt, self.endpoint.connect(address, self.server_key)).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => {
                let failure = self.failure(address, &error);
                let reason = failure.reason.replace(&address.to_string(), &self.server.to_string());
                Err(ConnectFailure { kind: failure.kind, ..fail(reason) })
            }
            Err(_) => Err(fail(format!("{} does not answer", self.server))),
        }
    }

    /// A connection that can be used at once, if there is a ticket for one of the addresses.
    fn connect_early(&self, addresses: &[SocketAddr]) -> Option<ctcp::Connection> {
        let (address, ticket) = self.tickets.as_ref()?.take(&self.server_key)?;
        if !addresses.contains(&address) {
            debug!(%address, "the server moved: its ticket is of no use");
            return None;
        }
        for place in self.places().into_iter().flatten().take(1) {
            let bound = place.bind(address).and_then(|socket| self.endpoint.rebind_to(socket));
            bound.inspect_err(|error| debug!(%place, %error, "cannot send from there")).ok()?;
        }
        self.endpoint.connect_early(address, self.server_key, &ticket).ok()
    }

    /// Where to connect from, one after the other; `None` lets the system choose.
    fn places(&self) -> Vec<Option<LocalPath>> {
        let places = paths::places(&self.paths);
        if places.is_empty() { vec![None] } else { places.into_iter().map(Some).collect() }
    }

    async fn connect_from(
        &self,
        place: Option<LocalPath>,
        address: SocketAddr,
    ) -> Result<ctcp::Connection, ConnectFailure> {
        if let Some(place) = place {
            place
                .bind(address)
                .and_then(|socket| self.endpoint.rebind_to(socket))
                .map_err(|error| format!("{address}: cannot send from {place}: {error}"))?;
        }
        match timeout(self.attempt, self.endpoint.connect(address, self.server_key)).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(self.failure(address, &error)),
            Err(_) => Err(silence(address)),
        }
    }

    fn failure(&self, address: SocketAddr, error: &ConnectError) -> ConnectFailure {
        let (text, kind) = match error {
            ConnectError::Failed(ConnectionError::HandshakeTimedOut { rejected: false }) => {
                return silence(address);
            }
            ConnectError::Failed(ConnectionError::HandshakeTimedOut { rejected: true }) => (
                format!("a server is there, but its public key is not {}", self.server_key),
                FailureKind::Refusal,
            ),
            ConnectError::Failed(ConnectionError::Refused { code: UNLISTED, .. }) => {
                let key = self.own_key.map(|key| format!(" (it is {key})"));
                (format!("{error}{}", key.unwrap_or_default()), FailureKind::Refusal)
            }
            ConnectError::Failed(ConnectionError::Refused { code: FULL, .. } | ConnectionError::Busy) => {
                (error.to_string(), FailureKind::Busy)
            }
            ConnectError::Failed(
                ConnectionError::Refused { .. } | ConnectionError::VersionMismatch { .. },
            ) => (error.to_string(), FailureKind::Refusal),
            _ => (error.to_string(), FailureKind::NoAnswer),
        };
        ConnectFailure { reason: format!("{address}: {text}"), kind }
    }
}

/// The connection to a relay. It is closed when another one takes its place.
#[derive(Debug, Default)]
struct Hop(Mutex<Option<ctcp::Connection>>);

impl Hop {
    fn put(&self, hop: Option<ctcp::Connection>) {
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(old) = core::mem::replace(&mut *place, hop) {
            old.close(0, "the way is not needed any more");
        }
    }
}

impl Drop for Hop {
    fn drop(&mut self) {
        self.put(None);
    }
}

fn silence(address: SocketAddr) -> ConnectFailure {
    format!("{address}: no answer (is a server running there, and does UDP get through?)").into()
}

/// How many times the duration of an attempt the relays of a way may take to connect one after the other.
const HOPS: u32 = 3;

/// Codes of refusals in the handshake (PROTOCOL.md section 3.1).
const UNLISTED: u8 = 1;
const FULL: u8 = 2;

impl Connector for CtcpConnector {
    type Connection = ctcp::Connection;

    fn server(&self) -> String {
        self.server.to_string()
    }

    async fn connect(&self) -> Result<ctcp::Connection, ConnectFailure> {
        if let Some((first, rest)) = self.via.split_first() {
            return self.connect_via(first, rest).await;
        }
        let resolved = timeout(self.attempt, self.server.resolve()).await;
        let addresses = resolved
            .map_err(|_| format!("{} does not resolve: no answer", self.server))?
            .map_err(|error| format!("{} does not resolve: {error}", self.server))?;
        if let Some(connection) = self.connect_early(&addresses) {
            return Ok(connection);
        }
        let mut last = ConnectFailure::from(format!("{} has no address", self.server));
        for address in addresses {
            for place in self.places() {
                let failure = match self.connect_from(place, address).await {
                    Ok(connection) => return Ok(connection),
                    Err(failure) => failure,
                };
                // A refusal is more informative than an address that does not answer.
                if failure.kind >= last.kind {
                    last = failure;
                }
            }
        }
        Err(last)
    }

    async fn confirm(&self, connection: &ctcp::Connection) -> Result<(), ConnectFailure> {
        let address = connection.remote_address();
        match timeout(self.attempt, connection.connected()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.failure(address, &ConnectError::Failed(error))),
            Err(_) => {
                connection.close(0, "no answer");
                Err(silence(address))
            }
        }
    }

    async fn attend(&self, connection: &ctcp::Connection) {
        let paths = PathKeeper::new(&self.paths, &self.endpoint, connection);
        let keep_paths = async {
            if !self.paths.is_empty() {
                paths.keep().await;
            }
        };
        let keep_tickets = async {
            let Some(tickets) = &self.tickets else { return };
            while let Ok(ticket) = connection.ticket().await {
                tickets.put(&self.server_key, connection.remote_address(), &ticket);
            }
        };
        tokio::join!(keep_paths, keep_tickets);
    }
}
