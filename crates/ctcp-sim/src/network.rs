//! A network with flows, as shown in a figure of a paper. Each flow is a separate connection between separate hosts.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use ctcp_base::Instant;
use ctcp_baselines::symbolic::SymbolicChannel;
use ctcp_netem::{IPV4_UDP_OVERHEAD, PathConfig};
use ctcp_proto::{ConnectionStats, PublicKey, TransportConfig};

use crate::application::Application;
use crate::application::script::Script;
use crate::ledger::ConnectionName;
use crate::link::{Direction, LinkId};
use crate::node::NodeId;
use crate::{Simulation, Stop};

/// The configuration of a flow.
#[derive(Clone, Debug)]
pub struct FlowConfig {
    /// The script of sender (the client) and receiver (the server).
    pub script: Script,
    /// The profile and limits of both sides.
    pub transport: TransportConfig,
    /// When it begins to connect, counted from the start of the simulation.
    pub start: Duration,
    /// An optional link between the sender and its router; forward leads away from the sender. Without it the sender is
    /// wired to the router.
    pub access: Option<PathConfig>,
    /// Further links of a sender that has an access link, to the same router. It has an address on each and opens a path from there.
    pub further: Vec<PathConfig>,
    /// The channel of symbolic coding, in which combinations have no coefficients and no payload
    /// ([`ctcp_baselines::symbolic`]).
    pub symbolic: Option<SymbolicChannel>,
}

impl FlowConfig {
    /// Creates a flow that starts at once.
    #[must_use]
    pub fn new(script: Script, transport: &TransportConfig) -> Self {
        Self {
            script,
            transport: transport.clone(),
            start: Duration::ZERO,
            access: None,
            further: Vec::new(),
            symbolic: None,
        }
    }

    /// Returns the flow with a start after `start`.
    #[must_use]
    pub fn starting_after(self, start: Duration) -> Self {
        Self { start, ..self }
    }

    /// Returns the flow with symbolic coding, for a source of TCP/NC.
    #[must_use]
    pub fn symbolic(mut self) -> Self {
        let channel = SymbolicChannel::default();
        self.transport.coding = Some(Arc::new(channel.clone()));
        Self { symbolic: Some(channel), ..self }
    }

    /// Returns the flow with an access link.
    #[must_use]
    pub fn over(self, access: PathConfig) -> Self {
        Self { access: Some(access), ..self }
    }

    /// Returns the flow with several access links.
    ///
    /// # Panics
    /// Panics if there is none.
    #[must_use]
    pub fn over_several(self, access: &[PathConfig]) -> Self {
        let (first, further) = access.split_first().expect("a link");
        Self { access: Some(first.clone()), further: further.to_vec(), ..self }
    }
}

/// A flow in a network.
#[derive(Clone, Debug)]
pub struct NetworkFlow {
    /// The client's host.
    pub sender: NodeId,
    /// The server's host.
    pub receiver: NodeId,
    /// The address of the server and its key.
    pub server: (SocketAddr, PublicKey),
    /// The configuration of the flow.
    pub config: FlowConfig,
    /// The name of its connection, once it has begun.
    pub name: Option<ConnectionName>,
}

/// A simulation and its flows.
#[derive(Debug)]
pub struct Network {
    /// The simulation.
    pub simulation: Simulation,
    flows: Vec<NetworkFlow>,
    hops: Vec<LinkId>,
    routers: Vec<NodeId>,
    /// Flows that have not begun, sorted by start time.
    waiting: VecDeque<usize>,
    /// All flows with a lower number are complete and need not be checked again.
    complete_below: usize,
}

impl Network {
    pub(crate) fn new(
        simulation: Simulation,
        flows: Vec<NetworkFlow>,
        hops: Vec<LinkId>,
        routers: Vec<NodeId>,
    ) -> Self {
        let mut waiting: Vec<usize> = (0..flows.len()).collect();
        waiting.sort_by_key(|&number| flows[number].config.start);
        Self { simulation, flows, hops, routers, waiting: waiting.into(), complete_below: 0 }
    }

    /// Returns the flows, by their numbers.
    #[must_use]
    pub fn flows(&self) -> &[NetworkFlow] {
        &self.flows
    }

    /// Returns the shared links, in order.
    #[must_use]
    pub fn hops(&self) -> &[LinkId] {
        &self.hops
    }

    /// Returns the routers, in order.
    #[must_use]
    pub fn routers(&self) -> &[NodeId] {
        &self.routers
    }

    /// Records time series of every sender, every receiver and both directions of every hop, in bins of this width from
    /// now on.
    pub fn keep_series(&mut self, width: Duration) {
        let hosts = self.flows.iter().flat_map(|flow| [flow.sender, flow.receiver]).collect();
        let both = |&hop| [(hop, Direction::Forward), (hop, Direction::Backward)];
        let ways = self.hops.iter().flat_map(both).collect();
        self.simulation.keep_series(width, hosts, ways);
    }

    /// Runs for `limit` and starts each flow at its time. Returns [`Stop::Silence`] if nothing will ever happen again.
    pub fn run_for(&mut self, limit: Duration) -> Stop {
        self.run(limit, |_, _| false)
    }

    /// The same, until `is_done` returns true after an event.
    pub fn run_until(&mut self, limit: Duration, mut is_done: impl FnMut(&Simulation) -> bool) -> Stop {
        self.run(limit, |simulation, _| is_done(simulation))
    }

    /// Runs until every flow has completed its script, for at most `limit`.
    pub fn run_to_completion(&mut self, limit: Duration) -> Stop {
        let mut complete_below = self.complete_below;
        let stop = self.run(limit, |simulation, flows| {
            while flows.get(complete_below).is_some_and(|flow| is_complete(simulation, flow)) {
                complete_below += 1;
            }
            complete_below == flows.len()
        });
        self.complete_below = complete_below;
        stop
    }

    /// Returns whether both sides have completed the flow's script.
    #[must_use]
    pub fn is_complete(&self, flow: usize) -> bool {
        is_complete(&self.simulation, &self.flows[flow])
    }

    /// Returns the bytes that the receiver's application of a flow has read so far.
    #[must_use]
    pub fn bytes_read(&self, flow: usize) -> u64 {
        let flow = &self.flows[flow];
        application(&self.simulation, flow, flow.receiver).map_or(0, Application::bytes_read)
    }

    /// Returns the bytes of a flow that have arrived at its receiver so far, as a link counts them.
    #[must_use]
    pub fn bytes_arrived(&self, flow: usize) -> u64 {
        let stats = self.receiver_stats(flow);
        stats.bytes_received + IPV4_UDP_OVERHEAD * stats.datagrams_received
    }

    /// Returns the statistics of the sender's connection.
    #[must_use]
    pub fn sender_stats(&self, flow: usize) -> ConnectionStats {
        self.simulation.host(self.flows[flow].sender).stats()
    }

    /// Returns the statistics of the receiver's connection.
    #[must_use]
    pub fn receiver_stats(&self, flow: usize) -> ConnectionStats {
        self.simulation.host(self.flows[flow].receiver).stats()
    }

    fn run(&mut self, limit: Duration, mut is_done: impl FnMut(&Simulation, &[NetworkFlow]) -> bool) -> Stop {
        let end = self.simulation.now() + limit;
        loop {
            self.begin_due();
            let next = self.next_start().filter(|start| *start <= end);
            let rest = next.unwrap_or(end) - self.simulation.now();
            let flows = &self.flows;
            let stop = self.simulation.run_for(rest, |simulation| is_done(simulation, flows));
            match (stop, next) {
                (Stop::TimeUp | Stop::Silence, Some(start)) => self.simulation.skip_to(start),
                _ => return stop,
            }
        }
    }

    fn next_start(&self) -> Option<Instant> {
        self.waiting.front().map(|&number| Simulation::START + self.flows[number].config.start)
    }

    fn begin_due(&mut self) {
        while self.next_start().is_some_and(|start| start <= self.simulation.now()) {
            let Some(number) = self.waiting.pop_front() else { return };
            let flow = &mut self.flows[number];
            let script = Some(Arc::new(flow.config.script.clone()));
            let transport = flow.config.transport.clone();
            let name = self.simulation.connect_with(flow.sender, flow.server, transport, script);
            flow.name =
                Some(name.expect("the configuration was checked, and the host has no other connection"));
        }
    }
}

/// Returns the application of one side of a flow.
fn application<'a>(simulation: &'a Simulation, flow: &NetworkFlow, host: NodeId) -> Option<&'a Application> {
    simulation.host(host).application(flow.name?)
}

fn is_complete(simulation: &Simulation, flow: &NetworkFlow) -> bool {
    let hosts = [flow.sender, flow.receiver];
    flow.name.is_some_and(|name| hosts.iter().all(|&host| simulation.host(host).has_completed(name)))
}
