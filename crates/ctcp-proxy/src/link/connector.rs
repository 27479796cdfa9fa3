//! The connector over [`ctcp`].

use core::fmt;
use core::net::SocketAddr;
use core::str::FromStr;
use core::time::Duration;
use std::io;

use ctcp::{ConnectError, ConnectionError, LocalPath};
use tokio::time::timeout;
use tracing::debug;

use super::paths::{self, PathChoice, PathKeeper};
use super::via::{First, Opener, Ways};
use super::{ConnectFailure, Connector, FailureKind, Tickets};
use crate::address::{AddressError, Host, TargetAddress};
use crate::request::Stop;

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

/// How long the first try at each of several addresses or places takes at most, so that a dead interface does not delay the others. If all
/// fail, each is tried again for the full time.
const FIRST_TRY: Duration = Duration::from_millis(1_500);

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
    /// The ways to the server, if they lead through relays.
    pub via: Ways,
    /// The one that carries a new connection.
    first_way: First,
    /// How long an attempt at one address may take.
    pub attempt: Duration,
}

impl CtcpConnector {
    /// Creates a connector with the default time for an attempt.
    #[must_use]
    pub fn new(endpoint: ctcp::Endpoint, server: ServerAddress, server_key: ctcp::PublicKey) -> Self {
        let attempt = Duration::from_secs(5);
        Self {
            endpoint,
            server,
            server_key,
            own_key: None,
            paths: Vec::new(),
            tickets: None,
            via: Ways::default(),
            first_way: First::default(),
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

    /// Goes through relays, which carry what they cannot read.
    #[must_use]
    pub fn with_via(mut self, via: Ways) -> Self {
        self.via = via;
        self
    }

    /// Connects through relays.
    async fn connect_via(&self) -> Result<ctcp::Connection, ConnectFailure> {
        self.first_way.put(None);
        let mut racing = self.opener().race(&self.via);
        let mut last = ConnectFailure::from("no way leads to the server".to_owned());
        while let Some(opened) = racing.join_next().await {
            let Ok(opened) = opened else { continue };
            let failure = match opened {
                Ok(way) => {
                    match timeout(self.attempt, self.endpoint.connect(way.address, self.server_key)).await {
                        Ok(Ok(connection)) => {
                            self.first_way.put(Some(way));
                            return Ok(connection);
                        }
                        Ok(Err(error)) => {
                            let mut failure = self.failure(way.address, &error);
                            failure.reason =
                                failure.reason.replace(&way.address.to_string(), &self.server.to_string());
                            way.failure(&self.via, failure)
                        }
                        Err(_) => way.failure(&self.via, format!("{} does not answer", self.server).into()),
                    }
                }
                Err(failure) => failure,
            };
            if failure.kind >= last.kind {
                last = failure;
            }
        }
        Err(last)
    }

    fn opener(&self) -> Opener {
        let server = Stop { address: self.server.0.clone(), key: self.server_key };
        Opener {
            endpoint: self.endpoint.clone(),
            server,
            own_key: self.own_key,
            is_only: self.via.count() == 1,
            attempt: self.attempt,
        }
    }

    /// A connection that can be used at once, if there is a ticket for one of the addresses.
    fn connect_early(&self, addresses: &[SocketAddr]) -> Option<ctcp::Connection> {
        let tickets = self.tickets.as_ref()?;
        let address = tickets.address(&self.server_key)?;
        if !addresses.contains(&address) {
            debug!(%address, "the server moved: its ticket is of no use");
            return None;
        }
        // A server takes each ticket once, so it is not taken for a place that cannot send.
        if let Some(place) = self.places(address).into_iter().flatten().next() {
            let bound = place.bind(address).and_then(|socket| self.endpoint.rebind_to(socket));
            bound.inspect_err(|error| debug!(%place, %error, "cannot send from there")).ok()?;
        }
        let (address, ticket) = tickets.take(&self.server_key)?;
        self.endpoint.connect_early(address, self.server_key, &ticket).ok()
    }

    /// How long the first try at one of several ways to the server takes at most.
    fn first_patience(&self) -> Duration {
        FIRST_TRY.min(self.attempt)
    }

    /// Where to connect from, one after the other; `None` lets the system choose.
    fn places(&self, server: SocketAddr) -> Vec<Option<LocalPath>> {
        let places = paths::places(&self.paths, &[server]);
        if places.is_empty() { vec![None] } else { places.into_iter().map(Some).collect() }
    }

    /// The ways to the server: from each place to each of its addresses.
    fn ways(&self, addresses: &[SocketAddr]) -> Vec<(Option<LocalPath>, SocketAddr)> {
        let from =
            |&address: &SocketAddr| self.places(address).into_iter().map(move |place| (place, address));
        addresses.iter().flat_map(from).collect()
    }

    async fn connect_from(
        &self,
        place: Option<&LocalPath>,
        address: SocketAddr,
        patience: Duration,
    ) -> Result<ctcp::Connection, ConnectFailure> {
        if let Some(place) = place {
            place
                .bind(address)
                .and_then(|socket| self.endpoint.rebind_to(socket))
                .map_err(|error| not_sent(format!("{address}: cannot send from {place}: {error}")))?;
        }
        match timeout(patience, self.endpoint.connect(address, self.server_key)).await {
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
            ConnectError::Failed(ConnectionError::Refused { code: ConnectionError::UNLISTED, .. }) => {
                let key = self.own_key.map(|key| format!(" (it is {key})"));
                (format!("{error}{}", key.unwrap_or_default()), FailureKind::Refusal)
            }
            ConnectError::Failed(
                ConnectionError::Refused { code: ConnectionError::FULL, .. } | ConnectionError::Busy,
            ) => (error.to_string(), FailureKind::Busy),
            ConnectError::Failed(
                ConnectionError::Refused { .. } | ConnectionError::VersionMismatch { .. },
            ) => (error.to_string(), FailureKind::Refusal),
            _ => (error.to_string(), FailureKind::NoAnswer),
        };
        ConnectFailure { reason: format!("{address}: {text}"), kind }
    }
}

fn not_sent(reason: String) -> ConnectFailure {
    ConnectFailure { reason, kind: FailureKind::NotSent }
}

fn silence(address: SocketAddr) -> ConnectFailure {
    format!("{address}: no answer (is a server running there, and does UDP get through?)").into()
}

impl Connector for CtcpConnector {
    type Connection = ctcp::Connection;

    fn server(&self) -> String {
        self.server.to_string()
    }

    async fn connect(&self) -> Result<ctcp::Connection, ConnectFailure> {
        if self.via.count() > 0 {
            return self.connect_via().await;
        }
        let resolved = timeout(self.attempt, self.server.resolve()).await;
        let addresses = resolved
            .map_err(|_| format!("{} does not resolve: no answer", self.server))?
            .map_err(|error| format!("{} does not resolve: {error}", self.server))?;
        if let Some(connection) = self.connect_early(&addresses) {
            return Ok(connection);
        }
        let mut last = not_sent(format!("{} has no address", self.server));
        let hasty = (self.ways(&addresses).len() > 1).then_some(self.first_patience());
        for patience in hasty.into_iter().chain([self.attempt]) {
            // Interfaces come and go meanwhile.
            for (place, address) in self.ways(&addresses) {
                let failure = match self.connect_from(place.as_ref(), address, patience).await {
                    Ok(connection) => return Ok(connection),
                    Err(failure) => failure,
                };
                // A refusal is more informative than an address that does not answer.
                if failure.kind >= last.kind {
                    last = failure;
                }
            }
            // A server that has answered would give the same answer.
            if last.kind > FailureKind::NoAnswer {
                break;
            }
        }
        Err(last)
    }

    async fn confirm(&self, connection: &ctcp::Connection) -> Result<(), ConnectFailure> {
        let address = connection.remote_address();
        let has_others = self.places(address).len() > 1;
        let patience = if has_others { self.first_patience() } else { self.attempt };
        match timeout(patience, connection.connected()).await {
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
            if self.paths.is_empty() {
                paths::tell_of_changes(connection).await;
            } else {
                paths.keep().await;
            }
        };
        let keep_tickets = async {
            let Some(tickets) = &self.tickets else { return };
            while let Ok(ticket) = connection.ticket().await {
                tickets.put(&self.server_key, connection.remote_address(), &ticket);
            }
        };
        let keep_ways = async {
            if let Some(way) = self.first_way.put(None) {
                self.opener().keep(&self.via, way, connection).await;
            }
        };
        tokio::join!(keep_paths, keep_tickets, keep_ways);
    }
}
