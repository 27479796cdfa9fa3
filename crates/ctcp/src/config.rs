//! What an application says when it makes an endpoint.

use std::net::SocketAddr;

use ctcp_proto::{ClientPolicy, EndpointConfig, Grant, SecretKey, TransportConfig};

/// An endpoint that only connects.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Our private key; a server knows its clients by the public half.
    pub secret_key: SecretKey,
    /// The local address. `None`: any address and port, IPv6 and IPv4 where the system has both, so that a
    /// change of the machine's addresses needs no new socket.
    pub bind: Option<SocketAddr>,
    /// Limits and time-outs of the connections we open.
    pub transport: TransportConfig,
}

impl ClientConfig {
    /// Any local address, usual limits.
    #[must_use]
    pub fn new(secret_key: SecretKey) -> Self {
        Self { secret_key, bind: None, transport: TransportConfig::default() }
    }
}

/// An endpoint that accepts (and may connect).
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The local address and port. `[::]` takes IPv4 clients too, where the system can.
    pub listen: SocketAddr,
    /// Our private key; clients must know the public half.
    pub secret_key: SecretKey,
    /// Who may connect.
    pub clients: ClientPolicy,
    /// Limits and time-outs of the connections we accept.
    pub transport: TransportConfig,
    /// The profiles clients may choose besides the server's own.
    pub grant: Grant,
    /// Connections at most; beyond it clients are refused.
    pub connections: usize,
    /// Connections of one client's key at most.
    pub connections_per_client: usize,
}

impl ServerConfig {
    /// Usual limits; clients choose among the profiles for general use.
    #[must_use]
    pub fn new(listen: SocketAddr, secret_key: SecretKey, clients: ClientPolicy) -> Self {
        Self {
            listen,
            secret_key,
            clients,
            transport: TransportConfig::default(),
            grant: Grant::default(),
            connections: EndpointConfig::CONNECTIONS,
            connections_per_client: EndpointConfig::CONNECTIONS_PER_CLIENT,
        }
    }
}
