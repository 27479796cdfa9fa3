//! Two hosts and a link, or several.

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

/// A client and a server connected by one link, which most scenarios need, or by several. The client knows the server's
/// key.
///
/// ```text
///   client == link 0 ==[ router ]-- server       with several links, the client has an address on each
///          == link 1 ==
///          == .. ==
/// ```
#[derive(Debug)]
pub struct Pair {
    /// The network.
    pub simulation: Simulation,
    /// The host at the first end of the link.
    pub client: NodeId,
    /// The host at the second end.
    pub server: NodeId,
    /// The link, the first of several. Forward leads to the server.
    pub link: LinkId,
    /// All links, in the order of the client's interfaces.
    pub links: Vec<LinkId>,
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
        Self::build(seed, core::slice::from_ref(path), transports, script, false)
    }

    /// As [`Self::unequal`], with the server at a router at the second end of the link.
    #[must_use]
    pub fn routed(seed: u64, path: &PathConfig, transports: [&TransportConfig; 2], script: &Script) -> Self {
        Self::build(seed, core::slice::from_ref(path), transports, script, true)
    }

    /// As [`Self::routed`], with a client that has an address on each of several links.
    ///
    /// # Panics
    /// Panics if there is no path.
    #[must_use]
    pub fn several(
        seed: u64,
        paths: &[PathConfig],
        transports: [&TransportConfig; 2],
        script: &Script,
    ) -> Self {
        Self::build(seed, paths, transports, script, true)
    }

    fn build(
        seed: u64,
        paths: &[PathConfig],
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
        let link = topology.link("path", client, far_end, &paths[0]);
        let mut links = vec![link];
        for (number, path) in paths.iter().enumerate().skip(1) {
            let link = topology.link(&format!("path{number}"), client, far_end, path);
            topology.interface(client, link, Self::interface_address(number));
            links.push(link);
        }
        let simulation = topology.build(&loosest(client_transport, server_transport));
        Self { simulation, client, server, link, links, transport: client_transport.clone(), attempts: 0 }
    }

    /// Returns the initial address of the client's interface `number`.
    #[must_use]
    pub fn interface_address(number: usize) -> SocketAddr {
        SocketAddr::from(([10, u8::try_from(number).unwrap_or(u8::MAX), 0, 2], Self::CLIENT.1))
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
