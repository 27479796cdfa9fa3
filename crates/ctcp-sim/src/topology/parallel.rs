//! Two routers connected by several links, like a device with WiFi and mobile radio. Each flow uses one of the links.
//!
//! ```text
//!    sender 0 --+      path 0       +-- receiver 0
//!    sender 1 --+-[ l ]=======[ r ]-+-- receiver 1
//!               |      path 1       |
//!    sender n --+      ... ..       +-- receiver n
//! ```
//!
//! Both directions of a flow use its path. A multipath connection will choose by its own addresses.

use ctcp_netem::PathConfig;

use super::Topology;
use super::flows::Flows;
use crate::link::LinkId;
use crate::network::{FlowConfig, Network};
use crate::node::NodeId;

/// Parallel paths under construction.
#[derive(Debug)]
pub struct Parallel {
    flows: Flows,
    ends: [NodeId; 2],
    paths: Vec<LinkId>,
}

impl Parallel {
    /// Creates two routers connected by `paths`; forward is from senders to receivers.
    #[must_use]
    pub fn new(seed: u64, paths: &[PathConfig]) -> Self {
        let mut topology = Topology::new(seed);
        let ends = ["left", "right"].map(|name| topology.router(name));
        let paths = paths.iter().enumerate();
        let paths = paths
            .map(|(index, path)| topology.link(&format!("path{index}"), ends[0], ends[1], path))
            .collect();
        Self { flows: Flows::new(topology), ends, paths }
    }

    /// Adds a flow over the path `path`, counted from 0. Returns its number.
    ///
    /// # Panics
    /// Panics if there is no such path, the configuration is invalid, or there are more than 65,536 flows.
    pub fn flow_over(&mut self, path: usize, config: FlowConfig) -> usize {
        let (link, [left, right]) = (self.paths[path], self.ends);
        let number = self.flows.add(left, right, config);
        let (sender, receiver) = (self.flows.get(number).sender, self.flows.get(number).receiver);
        self.flows.topology.route_by(left, receiver, link);
        self.flows.topology.route_by(right, sender, link);
        number
    }

    /// Builds the network.
    #[must_use]
    pub fn build(self) -> Network {
        let [left, right] = self.ends;
        self.flows.build(self.paths, vec![left, right])
    }
}
