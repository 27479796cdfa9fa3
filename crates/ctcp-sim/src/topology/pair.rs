//! Two hosts and a link.

use core::net::SocketAddr;
use core::time::Duration;
use std::sync::Arc;

use ctcp_netem::PathConfig;
use ctcp_proto::{ClientPolicy, ConnectError, EndpointConfig, PublicKey, SecretKey, TransportConfig};

use super::{Topology, loosest};
use crate::application::script::Script;
use crate::link::LinkId;
use crate::node::NodeId;
use crate::node::host::HostConfig;
use crate::{Simulation, Stop};

/// A client and a server connected by one link, which most scenarios need. The client knows the server's key.
#[derive(Debug)]
pub struct Pair {
    /// The network.
    pub simulation: Simulation,
    /// The host at the first end of the link.
    pub client: NodeId,
    /// The host at the second end.
    pub server: NodeId,
    /// The link. Forward leads to the server.
    pub link: LinkId,
    /// The client's transport configuration.
    pub transport: TransportConfig,
    /// Number of connections begun.
    attempts: u16,
}

impl Pair {
    /// The server's address.
    pub const SERVER: ([u8; 4], u16) = ([192, 0, 2, 1], 4433);

    /// The client's initial address.
    pub const CLIENT: ([u8; 4], u16) = ([192, 0, 2, 2], 10_000);

    /// Creates two hosts that will play `script`, both with the limits of `transport`.
    #[must_use]
    pub fn new(seed: u64, path: &PathConfig, transport: &TransportConfig, script: &Script) -> Self {
        Self::unequal(seed, path, [transport, transport], script)
    }

    /// Creates two hosts that will play `script`, with separate limits for client and server.
    #[must_use]
    pub fn unequal(seed: u64, path: &PathConfig, transports: [&TransportConfig; 2], script: &Script) -> Self {
        Self::build(seed, path, transports, script, false)
    }

    /// As [`Self::unequal`], with the server at a router at the second end of the link.
    #[must_use]
    pub fn routed(seed: u64, path: &PathConfig, transports: [&TransportConfig; 2], script: &Script) -> Self {
        Self::build(seed, path, transports, script, true)
    }

    fn build(
        seed: u64,
        path: &PathConfig,
        [client_transport, server_transport]: [&TransportConfig; 2],
        script: &Script,
        is_routed: bool,
    ) -> Self {
        let script = Arc::new(script.clone());
        let config = |name: &str, address: ([u8; 4], u16), endpoint| HostConfig {
            name: name.to_owned(),
            address: SocketAddr::from(address),
            endpoint,
            script: script.clone(),
            symbolic: None,
        };
        let mut topology = Topology::new(seed);
        let client = topology.host(config("client", Self::CLIENT, Self::client_config()));
        let server = topology.host(config("server", Self::SERVER, Self::server_config(server_transport)));
        let far_end = if is_routed { topology.router("router") } else { server };
        if is_routed {
            topology.wire(server, far_end);
        }
        let link = topology.link("path", client, far_end, path);
        let simulation = topology.build(&loosest(client_transport, server_transport));
        Self { simulation, client, server, link, transport: client_transport.clone(), attempts: 0 }
    }

    fn client_config() -> EndpointConfig {
        EndpointConfig { memory: u64::MAX, ..EndpointConfig::client(client_key()) }
    }

    /// Returns the configuration of the server's endpoint, for [`Simulation::restart`].
    #[must_use]
    pub fn server_config(transport: &TransportConfig) -> EndpointConfig {
        let listed = [client_key().public_key()].into_iter().collect();
        let config = EndpointConfig::server(server_key(), ClientPolicy::Listed(listed));
        // The limits of a simulation come from its configuration alone, however many hosts share this machine's memory.
        EndpointConfig { transport: transport.clone(), memory: u64::MAX, ..config }
    }

    /// Begins a connection from the client to the server, each time from another port, like a new socket.
    ///
    /// # Errors
    /// As [`ctcp_proto::Endpoint::connect`].
    pub fn connect(&mut self) -> Result<(), ConnectError> {
        self.attempts += 1;
        if self.attempts > 1 {
            let mut address = self.simulation.host(self.client).address();
            address.set_port(Self::CLIENT.1 + self.attempts);
            self.simulation.set_address(self.client, address);
        }
        let remote = SocketAddr::from(Self::SERVER);
        self.simulation.connect(self.client, remote, Self::server_key(), self.transport.clone()).map(|_| ())
    }

    /// Returns the server's public key.
    #[must_use]
    pub fn server_key() -> PublicKey {
        server_key().public_key()
    }

    /// Returns whether both sides of the newest connection have completed their parts of the script.
    #[must_use]
    pub fn is_complete(simulation: &Simulation, client: NodeId, server: NodeId) -> bool {
        let parts = [client, server].map(|host| {
            let application = simulation.host(host).newest().map(|peer| &peer.application)?;
            application.is_complete().then(|| application.name()).flatten()
        });
        matches!(parts, [Some(client), Some(server)] if client == server)
    }

    /// Runs for `limit` or until the script is complete, see [`Simulation::run_for`].
    pub fn run_to_completion(&mut self, limit: Duration) -> Stop {
        let (client, server) = (self.client, self.server);
        self.simulation.run_for(limit, |simulation| Self::is_complete(simulation, client, server))
    }
}

fn client_key() -> SecretKey {
    SecretKey::from_bytes([1; 32])
}

fn server_key() -> SecretKey {
    SecretKey::from_bytes([2; 32])
}
