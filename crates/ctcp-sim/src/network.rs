//! A network with flows: what a figure of a paper is a picture of. Each flow is a connection of its own between hosts of its own.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use ctcp_base::Instant;
use ctcp_baselines::symbolic::SymbolicChannel;
use ctcp_netem::PathConfig;
use ctcp_proto::{ConnectionStats, PublicKey, TransportConfig};

use crate::application::Application;
use crate::application::script::Script;
use crate::ledger::ConnectionName;
use crate::link::{Direction, LinkId};
use crate::node::NodeId;
use crate::{Simulation, Stop};

/// What a flow is to do.
#[derive(Clone, Debug)]
pub struct FlowConfig {
    /// What sender (the client) and receiver (the server) do.
    pub script: Script,
    /// Profile and limits of both.
    pub transport: TransportConfig,
    /// When it begins to connect, counted from the beginning of the simulation.
    pub start: Duration,
    /// A link between the sender and its router, forward away from the sender; without it the sender is at the router.
    pub access: Option<PathConfig>,
    /// Its combinations have no coefficients and no payload ([`ctcp_baselines::symbolic`]).
    pub symbolic: Option<SymbolicChannel>,
}

impl FlowConfig {
    /// A flow that begins at once.
    #[must_use]
    pub fn new(script: Script, transport: &TransportConfig) -> Self {
        Self { script, transport: transport.clone(), start: Duration::ZERO, access: None, symbolic: None }
    }

    /// The same flow beginning after `start`.
    #[must_use]
    pub fn starting_after(self, start: Duration) -> Self {
        Self { start, ..self }
    }

    /// The same flow with symbolic coding: for a source of TCP/NC.
    #[must_use]
    pub fn symbolic(mut self) -> Self {
        let channel = SymbolicChannel::default();
        self.transport.coding = Some(Arc::new(channel.clone()));
        Self { symbolic: Some(channel), ..self }
    }

    /// The same flow behind an access link.
    #[must_use]
    pub fn over(self, access: PathConfig) -> Self {
        Self { access: Some(access), ..self }
    }
}

/// A flow in a network.
#[derive(Clone, Debug)]
pub struct NetworkFlow {
    /// The client's host.
    pub sender: NodeId,
    /// The server's host.
    pub receiver: NodeId,
    /// Where the server is, and its key.
    pub server: (SocketAddr, PublicKey),
    /// What it does.
    pub config: FlowConfig,
    /// Its connection, once it began.
    pub name: Option<ConnectionName>,
}

/// A simulation and its flows.
#[derive(Debug)]
pub struct Network {
    /// What runs.
    pub simulation: Simulation,
    flows: Vec<NetworkFlow>,
    hops: Vec<LinkId>,
    routers: Vec<NodeId>,
    /// Flows that have not begun, by the time of their start.
    waiting: VecDeque<usize>,
    /// Flows with a lower number are complete: none has to be asked again.
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

    /// The flows, by their numbers.
    #[must_use]
    pub fn flows(&self) -> &[NetworkFlow] {
        &self.flows
    }

    /// The links that flows share, in order.
    #[must_use]
    pub fn hops(&self) -> &[LinkId] {
        &self.hops
    }

    /// The routers, in order.
    #[must_use]
    pub fn routers(&self) -> &[NodeId] {
        &self.routers
    }

    /// Keeps figures over time of every sender, every receiver and both ways of every hop, in bins of this width from now on.
    pub fn keep_series(&mut self, width: Duration) {
        let hosts = self.flows.iter().flat_map(|flow| [flow.sender, flow.receiver]).collect();
        let both = |&hop| [(hop, Direction::Forward), (hop, Direction::Backward)];
        let ways = self.hops.iter().flat_map(both).collect();
        self.simulation.keep_series(width, hosts, ways);
    }

    /// Runs for `limit`, beginning each flow at its time. [`Stop::Silence`] when nothing will happen any more before.
    pub fn run_for(&mut self, limit: Duration) -> Stop {
        self.run(limit, false)
    }

    /// Runs until every flow has played its script, for `limit` at most.
    pub fn run_to_completion(&mut self, limit: Duration) -> Stop {
        self.run(limit, true)
    }

    /// The flow's script is played to its end on both sides.
    #[must_use]
    pub fn is_complete(&self, flow: usize) -> bool {
        is_complete(&self.simulation, &self.flows[flow])
    }

    /// Bytes that the receiver's application of a flow has read so far.
    #[must_use]
    pub fn bytes_read(&self, flow: usize) -> u64 {
        let flow = &self.flows[flow];
        application(&self.simulation, flow, flow.receiver).map_or(0, Application::bytes_read)
    }

    /// The sender's connection in figures.
    #[must_use]
    pub fn sender_stats(&self, flow: usize) -> ConnectionStats {
        self.simulation.host(self.flows[flow].sender).stats()
    }

    /// The receiver's connection in figures.
    #[must_use]
    pub fn receiver_stats(&self, flow: usize) -> ConnectionStats {
        self.simulation.host(self.flows[flow].receiver).stats()
    }

    fn run(&mut self, limit: Duration, to_completion: bool) -> Stop {
        let end = self.simulation.now() + limit;
        loop {
            self.begin_due();
            let next = self.next_start().filter(|start| *start <= end);
            let rest = next.unwrap_or(end) - self.simulation.now();
            let (flows, complete_below) = (&self.flows, &mut self.complete_below);
            let stop = self.simulation.run_for(rest, |simulation| {
                if !to_completion {
                    return false;
                }
                while flows.get(*complete_below).is_some_and(|flow| is_complete(simulation, flow)) {
                    *complete_below += 1;
                }
                *complete_below == flows.len()
            });
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

/// The application of one side of a flow.
fn application<'a>(simulation: &'a Simulation, flow: &NetworkFlow, host: NodeId) -> Option<&'a Application> {
    simulation.host(host).application(flow.name?)
}

fn is_complete(simulation: &Simulation, flow: &NetworkFlow) -> bool {
    let hosts = [flow.sender, flow.receiver];
    flow.name.is_some_and(|name| hosts.iter().all(|&host| simulation.host(host).has_completed(name)))
}
