//! Routers in a row and flows along them: the tandem network of TCP/NC's figures, and with a single hop the dumbbell of all
//! papers on fairness.
//!
//! ```text
//!    sender 0 --+                                   +-- receiver 0
//!               |     hop 0        hop 1            |
//!    sender 1 --+-[ 0 ]=====[ 1 ]=====[ 2 ]= .. =[ k ]-- receiver 1
//!               |                                   |
//!    sender n --+                                   +-- receiver n
//! ```
//!
//! The hops are the only links that take time, unless a flow has an access link of its own: then it stands between its sender
//! and the first router. A flow goes from end to end, or between any two of the routers, in either direction.

use core::net::SocketAddr;
use std::sync::Arc;

use ctcp_netem::PathConfig;
use ctcp_proto::{ClientPolicy, EndpointConfig, Ratio, SecretKey, SymbolicRecoder, TransportConfig};

use super::{Topology, loosest};
use crate::link::LinkId;
use crate::network::{FlowConfig, Network, NetworkFlow};
use crate::node::NodeId;
use crate::node::host::HostConfig;

/// More flows have no addresses.
const FLOWS_MAX: usize = 1 << 16;

/// A chain in the making.
#[derive(Debug)]
pub struct Chain {
    topology: Topology,
    routers: Vec<NodeId>,
    hops: Vec<LinkId>,
    flows: Vec<NetworkFlow>,
    /// The loosest limits of all flows.
    limits: Option<TransportConfig>,
}

impl Chain {
    /// Routers joined by `hops`; forward is from the first router to the last.
    #[must_use]
    pub fn new(seed: u64, hops: &[PathConfig]) -> Self {
        let mut topology = Topology::new(seed);
        let routers: Vec<NodeId> =
            (0..=hops.len()).map(|index| topology.router(&format!("r{index}"))).collect();
        let ends = routers.iter().zip(&routers[1..]);
        let hops = hops.iter().zip(ends).enumerate();
        let hops = hops
            .map(|(index, (path, (&left, &right)))| topology.link(&format!("hop{index}"), left, right, path))
            .collect();
        Self { topology, routers, hops, flows: Vec::new(), limits: None }
    }

    /// All flows share one link.
    #[must_use]
    pub fn dumbbell(seed: u64, bottleneck: &PathConfig) -> Self {
        Self::new(seed, core::slice::from_ref(bottleneck))
    }

    /// Adds a flow from one end to the other; returns its number.
    ///
    /// # Panics
    /// As [`Self::flow_between`].
    pub fn flow(&mut self, config: FlowConfig) -> usize {
        self.flow_between(0, self.hops.len(), config)
    }

    /// Adds a flow from a sender at the router `from` to a receiver at the router `to`, both counted from 0; returns its number.
    ///
    /// # Panics
    /// When there is no such router, the configuration is not valid, or there are more than 65,536 flows.
    pub fn flow_between(&mut self, from: usize, to: usize, config: FlowConfig) -> usize {
        let number = self.flows.len();
        assert!(number < FLOWS_MAX, "a chain has at most {FLOWS_MAX} flows");
        if let Err(what) = config.transport.check() {
            panic!("flow {number}: {what}");
        }
        let (client_key, server_key) = (key(1, number), key(2, number));
        let script = Arc::new(config.script.clone());
        let policy = ClientPolicy::Listed([client_key.public_key()].into_iter().collect());
        let server = EndpointConfig::server(server_key.clone(), policy);
        let remote = address(1, number, 4_433);
        let sender = HostConfig {
            name: format!("sender{number}"),
            address: address(0, number, 10_000),
            endpoint: EndpointConfig::client(client_key),
            script: script.clone(),
        };
        let receiver = HostConfig {
            name: format!("receiver{number}"),
            address: remote,
            endpoint: EndpointConfig { transport: config.transport.clone(), ..server },
            script,
        };
        let (sender, receiver) = (self.topology.host(sender), self.topology.host(receiver));
        match &config.access {
            Some(path) => {
                self.topology.link(&format!("access{number}"), sender, self.routers[from], path);
            }
            None => self.topology.wire(sender, self.routers[from]),
        }
        self.topology.wire(receiver, self.routers[to]);
        let limits = self.limits.take().unwrap_or_else(|| config.transport.clone());
        self.limits = Some(loosest(&limits, &config.transport));
        let server = (remote, server_key.public_key());
        self.flows.push(NetworkFlow { sender, receiver, server, config, name: None });
        number
    }

    /// The router `index`, counted from 0, sends `ratio` (R_int) combinations for each that it gets of a flow.
    ///
    /// # Panics
    /// When there is no such router or flow, or the flow's coding is not symbolic.
    pub fn recode_at(&mut self, index: usize, flow: usize, ratio: Ratio) {
        let NetworkFlow { config, server, .. } = &self.flows[flow];
        let channel = config.transport.symbolic.as_ref();
        let channel = channel.expect("nodes of a simulation re-encode where coding is symbolic");
        let recoder = SymbolicRecoder::new(channel, ratio);
        self.topology.recode(self.routers[index], server.0, recoder);
    }

    /// The network at rest.
    #[must_use]
    pub fn build(self) -> Network {
        let limits = self.limits.unwrap_or_default();
        Network::new(self.topology.build(&limits), self.flows, self.hops, self.routers)
    }
}

/// A key of its own for every host.
fn key(side: u8, number: usize) -> SecretKey {
    let mut bytes = [side; 32];
    bytes[..8].copy_from_slice(&(number as u64).to_be_bytes());
    SecretKey::from_bytes(bytes)
}

/// 10.side.number, in two bytes.
fn address(side: u8, number: usize, port: u16) -> SocketAddr {
    let [high, low] = u16::try_from(number).unwrap_or(u16::MAX).to_be_bytes();
    SocketAddr::from(([10, side, high, low], port))
}
