//! Network topologies.

mod chain;
mod flows;
mod pair;
mod parallel;
mod relayed;

use core::net::{IpAddr, SocketAddr};

use ctcp_base::Prng;
use ctcp_baselines::symbolic::SymbolicRecoder;
use ctcp_netem::PathConfig;
use ctcp_proto::TransportConfig;

use crate::Simulation;
use crate::link::{Direction, DuplexLink, LinkId};
use crate::node::host::{HostConfig, WayConfig};
use crate::node::{Host, Node, NodeId, Port, Router, Uplinks};
use crate::routes::{self, Neighbours};

pub use chain::Chain;
pub use pair::Pair;
pub use parallel::Parallel;
pub use relayed::Relayed;

/// A network under construction: nodes connected by links.
///
/// A router may have any number of links. A host has one and sends everything over it, unless it gets an address of its
/// own on each further link ([`Topology::interface`]).
#[derive(Debug)]
pub struct Topology {
    seed: u64,
    prng: Prng,
    nodes: Vec<Node>,
    links: Vec<DuplexLink>,
    wires: Vec<(NodeId, NodeId)>,
    /// Fixed routes: at this router, datagrams for this host leave over this link.
    routed: Vec<(NodeId, NodeId, LinkId)>,
    /// The further addresses of hosts, each with its link.
    interfaces: Vec<(NodeId, IpAddr, LinkId)>,
}

/// A finished network, from which a simulation is created.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) nodes: Vec<Node>,
    pub(crate) links: Vec<DuplexLink>,
    pub(crate) uplinks: Vec<Uplinks>,
}

impl Topology {
    /// Creates an empty network. All randomness of the network and of the simulation is derived from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            prng: Prng::new(seed).fork("topology"),
            nodes: Vec::new(),
            links: Vec::new(),
            wires: Vec::new(),
            routed: Vec::new(),
            interfaces: Vec::new(),
        }
    }

    /// Adds a host.
    pub fn host(&mut self, config: HostConfig) -> NodeId {
        let mut seed = [0; 32];
        self.prng.fork(&config.name).fill(&mut seed);
        self.nodes.push(Node::Host(Box::new(Host::new(config, seed))));
        NodeId(self.nodes.len() - 1)
    }

    /// Adds a router.
    pub fn router(&mut self, name: &str) -> NodeId {
        self.nodes.push(Node::Router(Router::new(name)));
        NodeId(self.nodes.len() - 1)
    }

    /// Connects a host to a router without delay, queue or loss. Several hosts at one router stand for several programs
    /// on a node of a paper.
    pub fn wire(&mut self, host: NodeId, router: NodeId) {
        self.wires.push((host, router));
    }

    /// Makes `router` send datagrams for `host` over `link`, even if another route has fewer links.
    pub fn route_by(&mut self, router: NodeId, host: NodeId, link: LinkId) {
        self.routed.push((router, host, link));
    }

    /// Makes a router re-encode datagrams for `destination`.
    ///
    /// # Panics
    /// Panics if the node is a host.
    pub fn recode(&mut self, router: NodeId, destination: SocketAddr, recoder: SymbolicRecoder) {
        match &mut self.nodes[router.0] {
            Node::Router(router) => router.recode(destination, recoder),
            Node::Host(host) => panic!("{} is not a router", host.name()),
        }
    }

    /// Makes a host a stop of a way through relays.
    fn add_way(&mut self, host: NodeId, way: WayConfig) {
        match &mut self.nodes[host.0] {
            Node::Host(host) => host.add_way(way),
            Node::Router(router) => panic!("{} is not a host", router.name()),
        }
    }

    /// Connects two nodes; `path.forward` leads from the first to the second.
    pub fn link(&mut self, name: &str, first: NodeId, second: NodeId, path: &PathConfig) -> LinkId {
        self.links.push(DuplexLink::new(name, [first, second], path, &self.prng));
        LinkId(self.links.len() - 1)
    }

    /// Gives a host a further address, which it uses on `link` alone: datagrams from and to that address take this link,
    /// all others the host's first one. A client opens a path from each of its addresses. The other end of the link must
    /// be a router. Interfaces are numbered from 1 in the order of these calls.
    ///
    /// # Panics
    /// Panics if the node is a router.
    pub fn interface(&mut self, host: NodeId, link: LinkId, address: SocketAddr) {
        match &mut self.nodes[host.0] {
            Node::Host(host) => host.add_interface(address),
            Node::Router(router) => panic!("{} is not a host", router.name()),
        }
        self.interfaces.push((host, address.ip(), link));
    }

    /// Builds the network. `transport` has the limits against which its connections are checked.
    #[must_use]
    pub fn build(self, transport: &TransportConfig) -> Simulation {
        let seed = self.seed;
        Simulation::new(seed, self.plan(), transport)
    }

    /// Computes the routes.
    fn plan(mut self) -> Plan {
        let neighbours = Neighbours::new(self.nodes.len(), &self.links, &self.wires);
        let mut uplinks = vec![Uplinks::default(); self.nodes.len()];
        for (index, link) in self.links.iter().enumerate() {
            for direction in [Direction::Forward, Direction::Backward] {
                uplinks[link.sender(direction).0].set_first(Port::Link(LinkId(index), direction));
            }
        }
        for &(host, router) in &self.wires {
            uplinks[host.0].set_first(Port::Wire(router));
        }
        let is_router: Vec<bool> = self.nodes.iter().map(|node| matches!(node, Node::Router(_))).collect();
        let hosts: Vec<(NodeId, IpAddr)> = self.nodes.iter().enumerate().filter_map(address).collect();
        for (host, address) in hosts {
            let ports = routes::towards(host, &neighbours, |node| is_router[node.0]);
            for (node, port) in self.nodes.iter_mut().zip(ports) {
                if let (Node::Router(router), Some(port)) = (node, port) {
                    router.set_route(address, port);
                }
            }
        }
        for &(router, host, link) in &self.routed {
            let direction = self.links[link.0].direction_from(router);
            let address = address((host.0, &self.nodes[host.0]));
            if let (Node::Router(router), Some((_, address))) = (&mut self.nodes[router.0], address) {
                router.set_route(address, Port::Link(link, direction));
            }
        }
        for &(host, address, link) in &self.interfaces {
            let direction = self.links[link.0].direction_from(host);
            uplinks[host.0].add(address, Port::Link(link, direction));
            let end = self.links[link.0].receiver(direction);
            let mut ports = routes::towards(end, &neighbours, |node| is_router[node.0]);
            ports[end.0] = Some(Port::Link(link, direction.reverse()));
            for (node, port) in self.nodes.iter_mut().zip(ports) {
                if let (Node::Router(router), Some(port)) = (node, port) {
                    router.set_route(address, port);
                }
            }
        }
        Plan { nodes: self.nodes, links: self.links, uplinks }
    }
}

/// Returns the address of a node, if it has one.
fn address((index, node): (usize, &Node)) -> Option<(NodeId, IpAddr)> {
    match node {
        Node::Host(host) => Some((NodeId(index), host.address().ip())),
        Node::Router(_) => None,
    }
}

/// Returns limits that hold for both configurations, no matter which side grants them.
fn loosest(one: &TransportConfig, other: &TransportConfig) -> TransportConfig {
    TransportConfig {
        datagram_size_max: one.datagram_size_max.max(other.datagram_size_max),
        symbol_window: one.symbol_window.max(other.symbol_window),
        stream_credit: one.stream_credit.max(other.stream_credit),
        stream_credit_max: one.stream_credit_max.max(other.stream_credit_max),
        ..one.clone()
    }
}
