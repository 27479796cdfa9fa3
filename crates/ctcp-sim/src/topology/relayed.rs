//! Routers, of which some have a relay of the library, and flows whose connections run through these relays. Every hop is a
//! connection between two neighbouring stops; the ends' connection runs inside and has a path on each way.
//!
//! ```text
//!   chain       0 === 1 === 2 === ..
//!
//!   diamond       /=== 1 ===\          butterfly      /=== 1 ============== 5
//!               0             3                      /      \             /
//!                 \=== 2 ===/                      0         3 ==== 4 ===<
//!                                                    \      /             \
//!                                                     \=== 2 ============== 6
//! ```

use core::net::IpAddr;
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

use ctcp_netem::PathConfig;
use ctcp_proto::{
    ClientPolicy, EndpointConfig, HopRepair, PublicKey, Role, TransportConfig, relayed_address,
};

use super::Topology;
use super::flows::{Flows, address, key};
use crate::application::script::Script;
use crate::link::LinkId;
use crate::network::{FlowConfig, Network};
use crate::node::NodeId;
use crate::node::host::{HostConfig, WayConfig};

/// The longest time that all hops may take to connect.
const OPENING: Duration = Duration::from_secs(60);

/// How long after its hops are open a connection begins: all stops must know that they are.
const SETTLING: Duration = Duration::from_secs(2);

/// A network with relays under construction.
#[derive(Debug)]
pub struct Relayed {
    flows: Flows,
    routers: Vec<NodeId>,
    links: Vec<LinkId>,
    /// The relays, by their routers' numbers.
    relays: BTreeMap<usize, Stop>,
    ways: u16,
    repair: HopRepair,
    hop: TransportConfig,
}

/// A host on a way.
#[derive(Clone, Copy, Debug)]
struct Stop {
    node: NodeId,
    ip: IpAddr,
    key: PublicKey,
}

impl Relayed {
    /// Creates routers, numbered from 0, and links between two of them. All relays repair losses with `repair`.
    #[must_use]
    pub fn new(seed: u64, routers: usize, links: &[(usize, usize, PathConfig)], repair: HopRepair) -> Self {
        let mut topology = Topology::new(seed);
        let routers: Vec<NodeId> = (0..routers).map(|index| topology.router(&format!("r{index}"))).collect();
        let links = links.iter().enumerate();
        let links = links
            .map(|(index, (one, other, path))| {
                topology.link(&format!("link{index}"), routers[*one], routers[*other], path)
            })
            .collect();
        Self {
            flows: Flows::new(topology),
            routers,
            links,
            relays: BTreeMap::new(),
            ways: 0,
            repair,
            hop: TransportConfig::default(),
        }
    }

    /// Creates routers connected in a row by `hops`.
    #[must_use]
    pub fn chain(seed: u64, hops: &[PathConfig], repair: HopRepair) -> Self {
        let links: Vec<_> = hops.iter().enumerate().map(|(at, path)| (at, at + 1, path.clone())).collect();
        Self::new(seed, hops.len() + 1, &links, repair)
    }

    /// Creates a diamond: 0 is connected to 1 and 2, and both to 3.
    #[must_use]
    pub fn diamond(seed: u64, link: &PathConfig, repair: HopRepair) -> Self {
        let links = [(0, 1), (1, 3), (0, 2), (2, 3)];
        Self::new(seed, 4, &links.map(|(one, other)| (one, other, link.clone())), repair)
    }

    /// Creates a butterfly: the source 0 is connected to 1 and 2, both to 3 and to their own sink, 5 and 6, and 3 to 4,
    /// which is connected to both sinks.
    #[must_use]
    pub fn butterfly(seed: u64, link: &PathConfig, repair: HopRepair) -> Self {
        let links = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (1, 5), (2, 6), (4, 5), (4, 6)];
        Self::new(seed, 7, &links.map(|(one, other)| (one, other, link.clone())), repair)
    }

    /// Adds a flow between two routers. Each of its `ways` lists the routers whose relays it passes. Returns its number.
    ///
    /// # Panics
    /// Panics if a way has no relay, or as [`Chain::flow_between`](super::Chain::flow_between).
    pub fn flow(&mut self, from: usize, to: usize, ways: &[&[usize]], config: FlowConfig) -> usize {
        let relays: Vec<Vec<Stop>> =
            ways.iter().map(|way| way.iter().map(|&router| self.relay(router)).collect()).collect();
        let neighbours: Vec<PublicKey> = relays.iter().flatten().map(|relay| relay.key).collect();
        assert!(relays.iter().all(|way| !way.is_empty()), "a way has at least one relay");
        let number = self.flows.add_relayed(self.routers[from], self.routers[to], config, &neighbours);
        let flow = self.flows.get(number);
        let (sender, receiver) = (flow.sender, flow.receiver);
        let server = Stop { node: receiver, ip: flow.server.0.ip(), key: flow.server.1 };
        self.flows.get_mut(number).server.0 = relayed_address(u64::from(self.ways));
        for way in relays {
            let stops: Vec<Stop> = way.into_iter().chain([server]).collect();
            self.add_way(sender, &stops);
        }
        number
    }

    /// Makes the hosts of a way know what they do for it.
    fn add_way(&mut self, sender: NodeId, stops: &[Stop]) {
        let nodes = [sender].into_iter().chain(stops.iter().map(|stop| stop.node));
        for (position, node) in nodes.enumerate() {
            let next = stops.get(position).map(|stop| (stop.ip, stop.key));
            let end = match (position, next) {
                (0, _) => Some(Role::Client),
                (_, None) => Some(Role::Server),
                _ => None,
            };
            let config =
                WayConfig { number: self.ways, end, next, repair: self.repair, transport: self.hop.clone() };
            self.flows.topology.add_way(node, config);
        }
        self.ways += 1;
    }

    /// Returns the relay at a router.
    fn relay(&mut self, router: usize) -> Stop {
        if let Some(relay) = self.relays.get(&router) {
            return *relay;
        }
        let (secret, address) = (key(3, router), address(2, router, 4_433));
        let public = secret.public_key();
        let server = EndpointConfig::server(secret, ClientPolicy::Any);
        let node = self.flows.topology.host(HostConfig {
            name: format!("relay{router}"),
            address,
            endpoint: EndpointConfig { transport: self.hop.clone(), memory: u64::MAX, ..server },
            script: Arc::new(Script::default()),
            symbolic: None,
        });
        self.flows.topology.wire(node, self.routers[router]);
        let relay = Stop { node, ip: address.ip(), key: public };
        self.relays.insert(router, relay);
        relay
    }

    /// Returns the host of the relay at a router.
    #[must_use]
    pub fn relay_at(&self, router: usize) -> Option<NodeId> {
        self.relays.get(&router).map(|relay| relay.node)
    }

    /// Builds the network and opens all hops, which takes some of its time.
    ///
    /// # Panics
    /// Panics if a hop does not open.
    #[must_use]
    pub fn build(self) -> Network {
        let mut network = self.flows.build(self.links, self.routers);
        let senders: Vec<NodeId> = network.flows().iter().map(|flow| flow.sender).collect();
        let simulation = &mut network.simulation;
        senders.iter().for_each(|&sender| simulation.begin_ways(sender));
        let are_open = |simulation: &crate::Simulation| {
            let mut hosts = senders.iter().copied().chain(self.relays.values().map(|relay| relay.node));
            hosts.all(|host| simulation.host(host).has_open_ways())
        };
        simulation.run_for(OPENING, are_open);
        simulation.run_for(SETTLING, |_| false);
        assert!(are_open(simulation), "all hops open");
        network
    }
}
