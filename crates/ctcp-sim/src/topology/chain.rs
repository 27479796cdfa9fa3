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

use ctcp_baselines::symbolic::SymbolicRecoder;
use ctcp_netem::PathConfig;
use ctcp_proto::Ratio;

use super::Topology;
use super::flows::Flows;
use crate::link::LinkId;
use crate::network::{FlowConfig, Network, NetworkFlow};
use crate::node::NodeId;

/// A chain in the making.
#[derive(Debug)]
pub struct Chain {
    flows: Flows,
    routers: Vec<NodeId>,
    hops: Vec<LinkId>,
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
        Self { flows: Flows::new(topology), routers, hops }
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
        self.flows.add(self.routers[from], self.routers[to], config)
    }

    /// The router `index`, counted from 0, sends `ratio` (R_int) combinations for each that it gets of a flow.
    ///
    /// # Panics
    /// When there is no such router or flow, or the flow's coding is not symbolic.
    pub fn recode_at(&mut self, index: usize, flow: usize, ratio: Ratio) {
        let NetworkFlow { config, server, .. } = self.flows.get(flow);
        let channel = config.symbolic.as_ref();
        let channel = channel.expect("nodes of a simulation re-encode where coding is symbolic");
        let recoder = SymbolicRecoder::new(channel, ratio);
        self.flows.topology.recode(self.routers[index], server.0, recoder);
    }

    /// The network at rest.
    #[must_use]
    pub fn build(self) -> Network {
        self.flows.build(self.hops, self.routers)
    }
}
