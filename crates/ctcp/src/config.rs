//! What an application says when it makes an endpoint. Fields are private and set by methods, so that settings can be
//! added without breaking anybody.

use core::time::Duration;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use ctcp_proto::{Catalogue, ClientPolicy, EndpointConfig, Grant, Profile, SecretKey};

/// Limits and time-outs of connections. Each side has its own; what must agree is negotiated in the handshake.
///
/// ```
/// # use core::time::Duration;
/// let mut transport = ctcp::TransportConfig::default();
/// transport.idle_timeout(Duration::from_secs(60)).streams(100);
/// ```
#[derive(Clone, Debug, Default)]
pub struct TransportConfig(pub(crate) ctcp_proto::TransportConfig);

impl TransportConfig {
    /// Profiles and parts of profiles beyond those for general use: for laboratories.
    pub fn catalogue(&mut self, catalogue: Arc<Catalogue>) -> &mut Self {
        self.0.catalogue = catalogue;
        self
    }

    /// Scheme to ask for (client), or to use when the client does not ask (server). [`Profile::default`] unless it is set.
    pub fn profile(&mut self, profile: Profile) -> &mut Self {
        self.0.profile = profile;
        self
    }

    /// Without any packet from the peer for so long the connection is over; 30 s unless it is set. The smaller value of
    /// the two sides counts.
    pub fn idle_timeout(&mut self, timeout: Duration) -> &mut Self {
        self.0.idle_timeout = timeout;
        self
    }

    /// A packet is sent at least this often while the connection is idle; 10 s unless it is set. `None` lets an idle
    /// connection die.
    pub fn keep_alive(&mut self, interval: Option<Duration>) -> &mut Self {
        self.0.keep_alive = interval;
        self
    }

    /// How long the handshake may take; 10 s unless it is set.
    pub fn handshake_timeout(&mut self, timeout: Duration) -> &mut Self {
        self.0.handshake_timeout = timeout;
        self
    }

    /// Streams the peer may have open at once; 256 unless it is set.
    pub fn streams(&mut self, streams: u64) -> &mut Self {
        self.0.streams = streams;
        self
    }

    /// Bytes the peer may have sent on one stream that the application has not read: at first, and at most while the
    /// application reads fast. 1 MiB and 16 MiB unless it is set.
    pub fn stream_credit(&mut self, first: u64, most: u64) -> &mut Self {
        (self.0.stream_credit, self.0.stream_credit_max) = (first, most.max(first));
        self
    }

    /// The same over all streams of a connection: 16 MiB and 1 GiB unless it is set, within the memory of the endpoint.
    pub fn connection_credit(&mut self, first: u64, most: u64) -> &mut Self {
        (self.0.connection_credit, self.0.connection_credit_max) = (first, most.max(first));
        self
    }

    /// Source symbols that a receiver stores behind the oldest one it cannot decode, 16 to 65536; 8192 unless it is set.
    /// With [`Self::symbol_size_max`] it bounds the memory of a window, and the rate on a long path.
    pub fn symbol_window(&mut self, symbols: u32) -> &mut Self {
        self.0.symbol_window = symbols;
        self
    }

    /// Largest source symbol in bytes, 256 to 16384; 1440 unless it is set.
    pub fn symbol_size_max(&mut self, bytes: u16) -> &mut Self {
        self.0.symbol_size_max = bytes;
        self
    }

    /// Largest UDP payload in bytes that is sent or accepted, at least 1200; 1472 unless it is set. Smaller paths are
    /// found out by probing.
    pub fn datagram_size_max(&mut self, bytes: u16) -> &mut Self {
        self.0.datagram_size_max = bytes;
        self
    }

    /// Most packets that congestion control lets be in flight, at least 2; 65536 unless it is set.
    pub fn congestion_window_max(&mut self, packets: u32) -> &mut Self {
        self.0.congestion_window_max = packets;
        self
    }

    pub(crate) fn check(&self) -> io::Result<()> {
        self.0.check().map_err(|what| io::Error::new(io::ErrorKind::InvalidInput, what))
    }
}

/// An endpoint that only connects.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    pub(crate) secret_key: SecretKey,
    pub(crate) bind: Option<SocketAddr>,
    pub(crate) transport: TransportConfig,
}

impl ClientConfig {
    /// With our private key, by whose public half a server knows us; any local address and the usual limits.
    #[must_use]
    pub fn new(secret_key: SecretKey) -> Self {
        Self { secret_key, bind: None, transport: TransportConfig::default() }
    }

    /// The local address. Unless it is set the system chooses address and port, IPv6 and IPv4 where it has both, so that a
    /// change of the machine's addresses needs no new socket.
    pub fn bind(&mut self, address: SocketAddr) -> &mut Self {
        self.bind = Some(address);
        self
    }

    /// Limits and time-outs of the connections that we open.
    pub fn transport(&mut self, transport: TransportConfig) -> &mut Self {
        self.transport = transport;
        self
    }

    pub(crate) fn endpoint(&self) -> EndpointConfig {
        let transport = self.transport.0.clone();
        EndpointConfig { transport, ..EndpointConfig::client(self.secret_key.clone()) }
    }
}

/// An endpoint that accepts (and may connect).
#[derive(Clone, Debug)]
pub struct ServerConfig {
    pub(crate) listen: SocketAddr,
    endpoint: EndpointConfig,
    pub(crate) transport: TransportConfig,
}

impl ServerConfig {
    /// Listens at an address with our private key, whose public half clients must know; lets `clients` in, has the usual
    /// limits and lets clients choose among the profiles for general use. `[::]` takes IPv4 clients too, where the system can.
    #[must_use]
    pub fn new(listen: SocketAddr, secret_key: SecretKey, clients: ClientPolicy) -> Self {
        let endpoint = EndpointConfig::server(secret_key, clients);
        Self { listen, endpoint, transport: TransportConfig::default() }
    }

    /// Limits and time-outs of the connections that we accept.
    pub fn transport(&mut self, transport: TransportConfig) -> &mut Self {
        self.transport = transport;
        self
    }

    /// The profiles that clients may choose besides the server's own; those for general use unless it is set.
    pub fn grant(&mut self, grant: Grant) -> &mut Self {
        self.endpoint.grant = grant;
        self
    }

    /// Bytes of memory that all connections together may take; 1 GiB unless it is set. A client may take an eighth of what is
    /// free. Beyond it clients are refused, and those that are connected get smaller windows.
    pub fn memory(&mut self, bytes: u64) -> &mut Self {
        self.endpoint.memory = bytes;
        self
    }

    /// Connections at most, 10,000 unless it is set. Beyond it clients are refused.
    pub fn connections(&mut self, most: usize) -> &mut Self {
        self.endpoint.connections = most;
        self
    }

    /// Connections of one client's key at most, 256 unless it is set. Beyond it the client is refused.
    pub fn connections_per_client(&mut self, most: usize) -> &mut Self {
        self.endpoint.connections_per_client = most;
        self
    }

    pub(crate) fn endpoint(&self) -> EndpointConfig {
        EndpointConfig { transport: self.transport.0.clone(), ..self.endpoint.clone() }
    }
}
