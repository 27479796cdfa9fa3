//! Routers in a row and flows along them: the tandem network of TCP/NC's figures and, with a single hop, the dumbbell
//! of all papers on fairness.
//!
//! ```text
//!    sender 0 --+                                   +-- receiver 0
//!               |     hop 0        hop 1            |
//!    sender 1 --+-[ 0 ]=====[ 1 ]=====[ 2 ]= .. =[ k ]-- receiver 1
//!               |                                   |
//!    sender n --+                                   +-- receiver n
//! ```
//!
//! Only the hops have delay, unless a flow has its own access link between its sender and the first router. A flow runs
//! from end to end, or between any two routers in either direction.

use ctcp_baselines::symbolic::SymbolicRecoder;
use ctcp_netem::PathConfig;
use ctcp_proto::Ratio;

use super::Topology;
use super::flows::Flows;
use crate::link::LinkId;
use crate::network::{FlowConfig, Network, NetworkFlow};
use crate::node::NodeId;

/// A chain under construction.
#[derive(Debug)]
pub struct Chain {
    flows: Flows,
    routers: Vec<NodeId>,
    hops: Vec<LinkId>,
}

impl Chain {
    /// Creates routers connected by `hops`; forward is from the first router to the last.
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
        Self { flows: Flows::new(topology), routers, hops }
    }

    /// Creates a dumbbell, in which all flows share one link.
    #[must_use]
    pub fn dumbbell(seed: u64, bottleneck: &PathConfig) -> Self {
        Self::new(seed, core::slice::from_ref(bottleneck))
    }

    /// Adds a flow from the first router to the last. Returns its number.
    ///
    /// # Panics
    /// As [`Self::flow_between`].
    pub fn flow(&mut self, config: FlowConfig) -> usize {
        self.flow_between(0, self.hops.len(), config)
    }

    /// Adds a flow from a sender at the router `from` to a receiver at the router `to`, both counted from 0. Returns
    /// its number.
    ///
    /// # Panics
    /// Panics if there is no such router, the configuration is invalid, or there are more than 65,536 flows.
    pub fn flow_between(&mut self, from: usize, to: usize, config: FlowConfig) -> usize {
        self.flows.add(self.routers[from], self.routers[to], config)
    }

    /// Makes the router `index`, counted from 0, send `ratio` (R_int) combinations for each one it receives from a
    /// flow.
    ///
    /// # Panics
    /// Panics if there is no such router or flow, or the flow's coding is not symbolic.
    pub fn recode_at(&mut self, index: usize, flow: usize, ratio: Ratio) {
        let NetworkFlow { config, server, .. } = self.flows.get(flow);
        let channel = config.symbolic.as_ref();
        let channel = channel.expect("routers re-encode only flows with symbolic coding");
        let recoder = SymbolicRecoder::new(channel, ratio);
        self.flows.topology.recode(self.routers[index], server.0, recoder);
    }

    /// Builds the network.
    #[must_use]
    pub fn build(self) -> Network {
        self.flows.build(self.hops, self.routers)
    }
}
