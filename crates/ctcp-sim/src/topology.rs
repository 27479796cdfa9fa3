//! Networks, written as one would draw them.

use ctcp_base::Prng;
use ctcp_netem::PathConfig;
use ctcp_proto::TransportConfig;

use crate::Simulation;
use crate::link::{DuplexLink, LinkId};
use crate::node::host::HostConfig;
use crate::node::{Host, NodeId};

/// A network in the making. A host has one link; what joins more of them would be another kind of node.
#[derive(Debug)]
pub struct Topology {
    seed: u64,
    prng: Prng,
    hosts: Vec<Host>,
    links: Vec<DuplexLink>,
}

impl Topology {
    /// An empty network. All that is random about it, and about what happens on it, follows from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, prng: Prng::new(seed).fork("topology"), hosts: Vec::new(), links: Vec::new() }
    }

    /// Adds a host.
    pub fn host(&mut self, config: HostConfig) -> NodeId {
        let mut seed = [0; 32];
        self.prng.fork(&config.name).fill(&mut seed);
        self.hosts.push(Host::new(config, seed));
        NodeId(self.hosts.len() - 1)
    }

    /// Joins two hosts; `path.forward` leads from the first to the second.
    pub fn link(&mut self, name: &str, first: NodeId, second: NodeId, path: &PathConfig) -> LinkId {
        self.links.push(DuplexLink::new(name, [first, second], path, &self.prng));
        LinkId(self.links.len() - 1)
    }

    /// The network at rest. `transport` has the limits that its connections are held to.
    #[must_use]
    pub fn build(self, transport: &TransportConfig) -> Simulation {
        Simulation::new(self.seed, self.hosts, self.links, transport)
    }
}
