//! Flows under construction: each has its own sender and receiver at two routers, with keys and addresses.

use core::net::SocketAddr;
use std::sync::Arc;

use ctcp_proto::{ClientPolicy, EndpointConfig, PublicKey, SecretKey, TransportConfig};

use super::{Topology, loosest};
use crate::link::LinkId;
use crate::network::{FlowConfig, Network, NetworkFlow};
use crate::node::NodeId;
use crate::node::host::{HostConfig, with_baselines};

/// The maximum number of flows, limited by the addresses.
const FLOWS_MAX: usize = 1 << 16;

/// The second byte of a sender's address on its first further link.
const FIRST_INTERFACE: u8 = 16;

/// A topology and the flows on it.
#[derive(Debug)]
pub(super) struct Flows {
    pub(super) topology: Topology,
    flows: Vec<NetworkFlow>,
    /// The loosest limits of all flows.
    limits: Option<TransportConfig>,
}

impl Flows {
    pub(super) fn new(topology: Topology) -> Self {
        Self { topology, flows: Vec::new(), limits: None }
    }

    pub(super) fn get(&self, number: usize) -> &NetworkFlow {
        &self.flows[number]
    }

    pub(super) fn get_mut(&mut self, number: usize) -> &mut NetworkFlow {
        &mut self.flows[number]
    }

    /// Adds a flow from a sender at the router `from` to a receiver at the router `to`. Returns its number.
    ///
    /// # Panics
    /// Panics if the configuration is invalid, or there are more than 65,536 flows.
    pub(super) fn add(&mut self, from: NodeId, to: NodeId, config: FlowConfig) -> usize {
        self.add_relayed(from, to, config, &[])
    }

    /// As [`Self::add`], with a receiver that also accepts connections of these relays.
    pub(super) fn add_relayed(
        &mut self,
        from: NodeId,
        to: NodeId,
        config: FlowConfig,
        relays: &[PublicKey],
    ) -> usize {
        let number = self.flows.len();
        assert!(number < FLOWS_MAX, "a network has at most {FLOWS_MAX} flows");
        if let Err(what) = with_baselines(config.transport.clone()).check() {
            panic!("flow {number}: {what}");
        }
        let (client_key, server_key) = (key(1, number), key(2, number));
        let script = Arc::new(config.script.clone());
        let policy = ClientPolicy::Listed(relays.iter().copied().chain([client_key.public_key()]).collect());
        let server = EndpointConfig::server(server_key.clone(), policy);
        let remote = address(1, number, 4_433);
        let sender = HostConfig {
            name: format!("sender{number}"),
            address: address(0, number, 10_000),
            endpoint: EndpointConfig { memory: u64::MAX, ..EndpointConfig::client(client_key) },
            script: script.clone(),
            symbolic: None,
        };
        let receiver = HostConfig {
            name: format!("receiver{number}"),
            address: remote,
            endpoint: EndpointConfig { transport: config.transport.clone(), memory: u64::MAX, ..server },
            script,
            symbolic: config.symbolic.clone(),
        };
        let (sender, receiver) = (self.topology.host(sender), self.topology.host(receiver));
        assert!(config.access.is_some() || config.further.is_empty(), "the first link is the access link");
        match &config.access {
            Some(path) => {
                self.topology.link(&format!("access{number}"), sender, from, path);
                for (further, path) in config.further.iter().enumerate() {
                    let link = self.topology.link(&format!("access{number}.{further}"), sender, from, path);
                    self.topology.interface(
                        sender,
                        link,
                        address(FIRST_INTERFACE + further as u8, number, 10_000),
                    );
                }
            }
            None => self.topology.wire(sender, from),
        }
        self.topology.wire(receiver, to);
        let limits = self.limits.take().unwrap_or_else(|| config.transport.clone());
        self.limits = Some(loosest(&limits, &config.transport));
        let server = (remote, server_key.public_key());
        self.flows.push(NetworkFlow { sender, receiver, server, config, name: None });
        number
    }

    /// Builds the network, given its shared links and its routers.
    pub(super) fn build(self, shared: Vec<LinkId>, routers: Vec<NodeId>) -> Network {
        let limits = self.limits.unwrap_or_default();
        Network::new(self.topology.build(&limits), self.flows, shared, routers)
    }
}

/// Returns a different key for every host.
pub(super) fn key(side: u8, number: usize) -> SecretKey {
    let mut bytes = [side; 32];
    bytes[..8].copy_from_slice(&(number as u64).to_be_bytes());
    SecretKey::from_bytes(bytes)
}

/// Returns the address 10.side.number, with the number in two bytes.
pub(super) fn address(side: u8, number: usize, port: u16) -> SocketAddr {
    let [high, low] = u16::try_from(number).unwrap_or(u16::MAX).to_be_bytes();
    SocketAddr::from(([10, side, high, low], port))
}
