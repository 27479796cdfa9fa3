//! The configuration of an endpoint. Fields are private and set by methods, so that settings can be added without a breaking change.

use core::time::Duration;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use ctcp_proto::{Catalogue, ClientPolicy, EndpointConfig, Grant, PathMode, Profile, PublicKey, SecretKey};

/// Limits and time-outs of connections. Each side has its own; values that both sides must share are negotiated in the handshake.
///
/// ```
/// # use core::time::Duration;
/// let mut transport = ctcp::TransportConfig::for_client();
/// transport.idle_timeout(Duration::from_secs(60)).streams(100);
/// ```
#[derive(Clone, Debug)]
pub struct TransportConfig(pub(crate) ctcp_proto::TransportConfig);

impl Default for TransportConfig {
    fn default() -> Self {
        Self(ctcp_proto::TransportConfig { path_ids: true, ..ctcp_proto::TransportConfig::default() })
    }
}

impl TransportConfig {
    /// The defaults of [`ClientConfig`]. A client shares its memory with no one, so it lets servers send more before it has read anything: a
    /// long fast path is then full earlier.
    #[must_use]
    pub fn for_client() -> Self {
        let mut transport = Self::default();
        transport.stream_credit(4 << 20, 16 << 20).connection_credit(64 << 20, 1 << 30);
        transport
    }

    /// Adds profiles and parts of profiles beyond those for general use. Meant for laboratories.
    pub fn catalogue(&mut self, catalogue: Arc<Catalogue>) -> &mut Self {
        self.0.catalogue = catalogue;
        self
    }

    /// The profile that a client requests, or that a server uses if the client requests none. Default: [`Profile::default`].
    pub fn profile(&mut self, profile: Profile) -> &mut Self {
        self.0.profile = profile;
        self
    }

    /// How long a connection may receive no packet before it times out. Each side has its own value: a server that keeps
    /// connections longer lets a client resume that was suspended. Default: 30 s.
    pub fn idle_timeout(&mut self, timeout: Duration) -> &mut Self {
        self.0.idle_timeout = timeout;
        self
    }

    /// The longest time without a packet sent on an idle connection. `None` lets an idle connection time out. Default: 10 s.
    pub fn keep_alive(&mut self, interval: Option<Duration>) -> &mut Self {
        self.0.keep_alive = interval;
        self
    }

    /// How long the handshake may take. Default: 10 s.
    pub fn handshake_timeout(&mut self, timeout: Duration) -> &mut Self {
        self.0.handshake_timeout = timeout;
        self
    }

    /// How many streams the peer may have open at once. Default: 256.
    pub fn streams(&mut self, streams: u64) -> &mut Self {
        self.0.streams = streams;
        self
    }

    /// How many bytes the peer may have sent on one stream that the application has not read: initially, and at most while the
    /// application reads fast. Default: 1 MiB and 16 MiB, and with [`Self::for_client`] 4 MiB and 16 MiB.
    pub fn stream_credit(&mut self, first: u64, most: u64) -> &mut Self {
        (self.0.stream_credit, self.0.stream_credit_max) = (first, most.max(first));
        self
    }

    /// The same over all streams of a connection, within the memory of the endpoint. Default: 16 MiB and 1 GiB, and with
    /// [`Self::for_client`] 64 MiB and 1 GiB.
    pub fn connection_credit(&mut self, first: u64, most: u64) -> &mut Self {
        (self.0.connection_credit, self.0.connection_credit_max) = (first, most.max(first));
        self
    }

    /// How many source symbols a receiver stores after the oldest one that it cannot decode, 16 to 65536. With [`Self::symbol_size_max`]
    /// it bounds the memory of a window, and the rate on a long path. Default: 8192.
    pub fn symbol_window(&mut self, symbols: u32) -> &mut Self {
        self.0.symbol_window = symbols;
        self
    }

    /// Largest source symbol in bytes, 256 to 16384. Default: 1440.
    pub fn symbol_size_max(&mut self, bytes: u16) -> &mut Self {
        self.0.symbol_size_max = bytes;
        self
    }

    /// Largest UDP payload in bytes that is sent or accepted, at least 1200. Probing finds the size that fits a path. Default: 1472.
    pub fn datagram_size_max(&mut self, bytes: u16) -> &mut Self {
        self.0.datagram_size_max = bytes;
        self
    }

    /// The maximum number of packets that congestion control keeps in flight, at least 2. Default: 65536.
    pub fn congestion_window_max(&mut self, packets: u32) -> &mut Self {
        self.0.congestion_window_max = packets;
        self
    }

    /// Whether a client asks servers for tickets, by which its next visit may send data in its first flight: see
    /// [`crate::Connection::ticket`] and [`crate::Endpoint::connect_early`]. Default: false.
    pub fn tickets(&mut self, are_wanted: bool) -> &mut Self {
        self.0.tickets = are_wanted;
        self
    }

    /// How many symbols a relay holds in each direction of a connection, 16 to 16384. It bounds the rate on a long path, and the memory.
    /// Default: 1024.
    pub fn relay_window(&mut self, symbols: u32) -> &mut Self {
        self.0.coding_window = symbols;
        self
    }

    /// Whether a client expects to open further paths. Both sides then exchange connection ids for them in the handshake, so that an observer
    /// of two networks cannot tell that they carry the same connection. Otherwise all paths have the same id. Default: true.
    pub fn further_paths(&mut self, are_expected: bool) -> &mut Self {
        self.0.path_ids = are_expected;
        self
    }

    /// How a client uses several paths, see [`crate::Connection::add_path`]. A server does as its client asks. Default:
    /// [`PathMode::Aggregate`].
    pub fn path_mode(&mut self, mode: PathMode) -> &mut Self {
        self.0.path_mode = mode;
        self
    }

    pub(crate) fn check(&self) -> io::Result<()> {
        self.0.check().map_err(|what| io::Error::new(io::ErrorKind::InvalidInput, what))
    }
}

/// Configuration of an endpoint that only connects.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    pub(crate) secret_key: SecretKey,
    pub(crate) bind: Option<SocketAddr>,
    pub(crate) transport: TransportConfig,
}

impl ClientConfig {
    /// Uses our private key, by whose public half servers identify us. The local address has its default, and so have the limits
    /// ([`TransportConfig::for_client`]).
    #[must_use]
    pub fn new(secret_key: SecretKey) -> Self {
        Self { secret_key, bind: None, transport: TransportConfig::for_client() }
    }

    /// The local address. By default the system chooses address and port, for both IPv6 and IPv4 if it has both, so that a change of the
    /// machine's addresses needs no new socket.
    pub fn bind(&mut self, address: SocketAddr) -> &mut Self {
        self.bind = Some(address);
        self
    }

    /// Limits and time-outs of outgoing connections.
    pub fn transport(&mut self, transport: TransportConfig) -> &mut Self {
        self.transport = transport;
        self
    }

    pub(crate) fn endpoint(&self) -> EndpointConfig {
        let transport = self.transport.0.clone();
        EndpointConfig { transport, ..EndpointConfig::client(self.secret_key.clone()) }
    }
}

/// Configuration of an endpoint that accepts connections and can also connect.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    pub(crate) listen: SocketAddr,
    endpoint: EndpointConfig,
    pub(crate) transport: TransportConfig,
    addresses: Vec<SocketAddr>,
}

impl ServerConfig {
    /// Listens at an address with our private key, whose public half clients must know, and admits `clients`. Limits have their defaults;
    /// clients may choose among the profiles for general use. `[::]` also accepts IPv4 clients if the system supports it.
    #[must_use]
    pub fn new(listen: SocketAddr, secret_key: SecretKey, clients: ClientPolicy) -> Self {
        let endpoint = EndpointConfig::server(secret_key, clients);
        Self { listen, endpoint, transport: TransportConfig::default(), addresses: Vec::new() }
    }

    /// Limits and time-outs of accepted connections.
    pub fn transport(&mut self, transport: TransportConfig) -> &mut Self {
        self.transport = transport;
        self
    }

    /// Further addresses at which clients reach this server, such as of another family or network. A client with several paths may use
    /// them. At most 8, and no wildcards. Default: none.
    pub fn further_addresses(&mut self, addresses: Vec<SocketAddr>) -> &mut Self {
        self.addresses = addresses;
        self
    }

    /// The profiles that clients may choose besides the server's own. Default: those for general use.
    pub fn grant(&mut self, grant: Grant) -> &mut Self {
        self.endpoint.grant = grant;
        self
    }

    /// Bytes of memory that all connections together may use. A client may use an eighth of what is free. Beyond the limit clients are
    /// refused, and connected clients get smaller windows. Default: 1 GiB.
    pub fn memory(&mut self, bytes: u64) -> &mut Self {
        self.endpoint.memory = bytes;
        self
    }

    /// The maximum number of connections. Beyond it clients are refused. Default: 10,000.
    pub fn connections(&mut self, most: usize) -> &mut Self {
        self.endpoint.connections = most;
        self
    }

    /// The maximum number of connections of one client key. Beyond it the client is refused. Default: 256.
    pub fn connections_per_client(&mut self, most: usize) -> &mut Self {
        self.endpoint.connections_per_client = most;
        self
    }

    /// The keys of relays, which may have more connections and half of the free memory, since each connection carries another client.
    /// Default: none.
    pub fn relays(&mut self, keys: impl IntoIterator<Item = PublicKey>) -> &mut Self {
        self.endpoint.relays = keys.into_iter().collect();
        self
    }

    /// The maximum number of connections of one relay. Default: 10,000.
    pub fn connections_per_relay(&mut self, most: usize) -> &mut Self {
        self.endpoint.connections_per_relay = most;
        self
    }

    pub(crate) fn endpoint(&self) -> EndpointConfig {
        let addresses = self.addresses.clone();
        let transport = ctcp_proto::TransportConfig { addresses, ..self.transport.0.clone() };
        EndpointConfig { transport, ..self.endpoint.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_grants_more_than_a_server_by_default() {
        let key = crate::generate_key().expect("a key");
        let client = ClientConfig::new(key.clone()).endpoint().transport;
        assert_eq!((client.stream_credit, client.connection_credit), (4 << 20, 64 << 20));
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = ServerConfig::new(listen, key, ClientPolicy::Any).transport.0;
        assert_eq!((server.stream_credit, server.connection_credit), (1 << 20, 16 << 20));
    }
}
