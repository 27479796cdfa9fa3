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

/// A client and a server that knows it, joined by one link: what most scenarios need.
#[derive(Debug)]
pub struct Pair {
    /// The network.
    pub simulation: Simulation,
    /// The host at the first end of the link.
    pub client: NodeId,
    /// The host at the second end.
    pub server: NodeId,
    /// The link. Forward is towards the server.
    pub link: LinkId,
    /// What the client asks for.
    pub transport: TransportConfig,
    /// Connections begun.
    attempts: u16,
}

impl Pair {
    /// Where the server is.
    pub const SERVER: ([u8; 4], u16) = ([192, 0, 2, 1], 4433);

    /// Where the client is at first.
    pub const CLIENT: ([u8; 4], u16) = ([192, 0, 2, 2], 10_000);

    /// Two hosts that will play `script`; both have the limits of `transport`.
    #[must_use]
    pub fn new(seed: u64, path: &PathConfig, transport: &TransportConfig, script: &Script) -> Self {
        Self::unequal(seed, path, [transport, transport], script)
    }

    /// Two hosts that will play `script`, with limits of their own: the client's, the server's.
    #[must_use]
    pub fn unequal(seed: u64, path: &PathConfig, transports: [&TransportConfig; 2], script: &Script) -> Self {
        Self::build(seed, path, transports, script, false)
    }

    /// The same with the server at a router at the second end of the link.
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

    /// The server's endpoint, for [`Simulation::restart`].
    #[must_use]
    pub fn server_config(transport: &TransportConfig) -> EndpointConfig {
        let listed = [client_key().public_key()].into_iter().collect();
        let config = EndpointConfig::server(server_key(), ClientPolicy::Listed(listed));
        // What a simulation grants is what its configuration says, however many hosts share this machine.
        EndpointConfig { transport: transport.clone(), memory: u64::MAX, ..config }
    }

    /// The client begins a connection to the server, from another port each time, as a new socket does.
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

    /// The server's public key.
    #[must_use]
    pub fn server_key() -> PublicKey {
        server_key().public_key()
    }

    /// Both sides of the newest connection have played their parts of the script.
    #[must_use]
    pub fn is_complete(simulation: &Simulation, client: NodeId, server: NodeId) -> bool {
        let parts = [client, server].map(|host| {
            let application = simulation.host(host).newest().map(|peer| &peer.application)?;
            application.is_complete().then(|| application.name()).flatten()
        });
        matches!(parts, [Some(client), Some(server)] if client == server)
    }

    /// Runs for `limit` or until the script is played, see [`Simulation::run_for`].
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
