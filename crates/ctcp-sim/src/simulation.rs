//! The main loop: a queue of wake-ups ordered by time and, for equal times, links before nodes. A datagram that arrives
//! at the time of a deadline is thus handled before it, however often the deadline was polled.
//!
//! `carry` transports datagrams between nodes. `changes` has everything that can be changed during a run.

mod carry;
mod changes;

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use ctcp_base::{Instant, Prng};
use ctcp_proto::{ConnectError, PublicKey, TransportConfig};

use crate::agenda::Agenda;
use crate::application::SCRATCH;
use crate::application::script::Script;
use crate::checker::Checker;
use crate::ledger::{ConnectionName, Ledger};
use crate::link::{Direction, DuplexLink, LinkId};
use crate::node::{Datagram, Host, Node, NodeId, Router, Uplinks};
use crate::recorder::Recorder;
use crate::series::Series;
use crate::topology::Plan;

/// The reason why a run stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The condition became true.
    Done,
    /// The time limit was reached.
    TimeUp,
    /// Nothing will ever happen again.
    Silence,
    /// A checker found a violation.
    Violation,
}

/// How closely a simulation checks itself. Checking does not change a run, with one exception: the trailing zeros of a
/// combination are not sent, so with other contents a repair is occasionally a byte shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scrutiny {
    /// Whether every datagram is hashed, so that two runs can be compared.
    pub hash: bool,
    /// Whether streams carry seeded contents and every byte read is compared. Otherwise bytes are only counted.
    pub contents: bool,
    /// Whether the statistics of a connection are compared with its limits after each event.
    pub limits: bool,
}

impl Scrutiny {
    /// All checks, the default and the setting for tests.
    pub const FULL: Self = Self { hash: true, contents: true, limits: true };

    /// No check that takes time, for large runs of scenarios that were tested in small ones.
    pub const LIGHT: Self = Self { hash: false, contents: false, limits: false };
}

/// The owner of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Actor {
    Way(LinkId, Direction),
    Node(NodeId),
}

/// Nodes and links in virtual time.
#[derive(Debug)]
pub struct Simulation {
    now: Instant,
    /// Indexed by the numbers of directions and nodes, see [`Self::number`].
    agenda: Agenda,
    events: u64,
    nodes: Vec<Node>,
    links: Vec<DuplexLink>,
    /// The ports by which each node sends its own datagrams.
    uplinks: Vec<Uplinks>,
    /// Datagrams that arrived by wire, waiting until the host that is active has finished.
    arrivals: VecDeque<(NodeId, Datagram)>,
    outbox: Vec<Datagram>,
    spare: Vec<Vec<u8>>,
    scratch: Vec<u8>,
    recorder: Recorder,
    series: Option<Box<Series>>,
    ledger: Ledger,
    checker: Checker,
    prng: Prng,
}

impl Simulation {
    /// The start time of a simulation. It is not zero, so that durations can be subtracted.
    pub const START: Instant = Instant::from_secs(1_000);

    pub(crate) fn new(seed: u64, plan: Plan, transport: &TransportConfig) -> Self {
        Self {
            now: Self::START,
            agenda: Agenda::default(),
            events: 0,
            nodes: plan.nodes,
            links: plan.links,
            uplinks: plan.uplinks,
            arrivals: VecDeque::new(),
            outbox: Vec::new(),
            spare: Vec::new(),
            scratch: vec![0; SCRATCH],
            recorder: Recorder::default(),
            series: None,
            ledger: Ledger::new(seed, transport.stream_credit.max(transport.stream_credit_max)),
            checker: Checker::new(transport.clone()),
            prng: Prng::new(seed).fork("simulation"),
        }
    }

    /// Sets how closely the simulation checks itself. Must be set before anything is sent.
    pub fn set_scrutiny(&mut self, scrutiny: Scrutiny) {
        self.recorder.set_hashing(scrutiny.hash);
        self.ledger.set_checks_contents(scrutiny.contents);
        self.checker.set_checks_limits(scrutiny.limits);
    }

    /// Returns the present time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns the number of wake-ups so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns the trace so far.
    #[must_use]
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Records time series of these hosts' connections and these directions of links, in bins of this width from now
    /// on.
    pub fn keep_series(&mut self, width: Duration, hosts: Vec<NodeId>, ways: Vec<(LinkId, Direction)>) {
        self.series = Some(Box::new(Series::new(self.now, width, hosts, ways)));
    }

    /// Returns the time series, if they are recorded.
    #[must_use]
    pub fn series(&self) -> Option<&Series> {
        self.series.as_deref()
    }

    /// Keeps a readable log from now on.
    pub fn keep_log(&mut self) {
        self.recorder.keep_log();
    }

    /// Returns the record of all streams.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns a host.
    ///
    /// # Panics
    /// Panics if the node is a router.
    #[must_use]
    pub fn host(&self, id: NodeId) -> &Host {
        match &self.nodes[id.0] {
            Node::Host(host) => host,
            Node::Router(router) => panic!("{} is not a host", router.name()),
        }
    }

    /// Returns a router.
    ///
    /// # Panics
    /// Panics if the node is a host.
    #[must_use]
    pub fn router(&self, id: NodeId) -> &Router {
        match &self.nodes[id.0] {
            Node::Router(router) => router,
            Node::Host(host) => panic!("{} is not a router", host.name()),
        }
    }

    /// Returns a link.
    #[must_use]
    pub fn link(&self, id: LinkId) -> &DuplexLink {
        &self.links[id.0]
    }

    /// Returns the violations found by the checkers.
    pub fn violations(&self) -> impl Iterator<Item = &String> {
        self.ledger.violations().iter().chain(self.checker.violations())
    }

    /// Begins a connection that plays the script of its hosts.
    ///
    /// # Errors
    /// As [`ctcp_proto::Endpoint::connect`].
    pub fn connect(
        &mut self,
        client: NodeId,
        remote: SocketAddr,
        key: PublicKey,
        transport: TransportConfig,
    ) -> Result<ConnectionName, ConnectError> {
        self.connect_with(client, (remote, key), transport, None)
    }

    /// Begins a connection, with its own script if `script` is not `None`.
    ///
    /// # Errors
    /// As [`ctcp_proto::Endpoint::connect`].
    pub fn connect_with(
        &mut self,
        client: NodeId,
        (remote, key): (SocketAddr, PublicKey),
        transport: TransportConfig,
        script: Option<Arc<Script>>,
    ) -> Result<ConnectionName, ConnectError> {
        self.recorder.note(self.now, || "connect".to_owned());
        self.with_host(client, |host, world| host.connect(remote, key, transport, script, world))
    }

    /// Runs for `limit`, until `is_done` returns true after an event, or until a checker finds a violation.
    pub fn run_for(&mut self, limit: Duration, mut is_done: impl FnMut(&Self) -> bool) -> Stop {
        let end = self.now + limit;
        loop {
            if !self.ledger.violations().is_empty() || !self.checker.violations().is_empty() {
                return Stop::Violation;
            }
            if is_done(self) {
                return Stop::Done;
            }
            let Some(time) = self.next_time() else { return Stop::Silence };
            self.sample_until(time.min(end));
            if time > end {
                self.now = end;
                return Stop::TimeUp;
            }
            self.step();
        }
    }

    /// Advances the time to `time`, but not past the next event.
    pub(crate) fn skip_to(&mut self, time: Instant) {
        let time = time.min(self.next_time().unwrap_or(time));
        self.sample_until(time);
        self.now = self.now.max(time);
    }

    /// Ends the bins that end by `time`, before any event at that time.
    fn sample_until(&mut self, time: Instant) {
        let Some(series) = &mut self.series else { return };
        while series.next() <= time {
            for id in series.hosts().to_vec() {
                if let Node::Host(host) = &self.nodes[id.0] {
                    series.add_host(id, host);
                }
            }
            series.end_bin(series.next(), &self.links);
        }
    }

    fn next_time(&self) -> Option<Instant> {
        self.agenda.first().map(|(time, _)| time)
    }

    /// Processes the next event.
    fn step(&mut self) {
        let Some((time, number)) = self.agenda.first() else { return };
        // A deadline in the past is due now. A connection may set one when it handles a late event.
        self.now = self.now.max(time);
        self.events += 1;
        self.checker.on_time(self.now);
        let actor = self.actor(number);
        match actor {
            Actor::Node(id) => self.wake(id),
            Actor::Way(id, direction) => self.deliver(id, direction),
        }
        self.reschedule(actor);
    }

    fn wake(&mut self, id: NodeId) {
        if matches!(self.nodes[id.0], Node::Router(_)) {
            return;
        }
        let kinds = self.with_host(id, |host, world| host.handle_timeout(world));
        let Node::Host(host) = &self.nodes[id.0] else { return };
        self.recorder.note(self.now, || format!("{} wakes {kinds:?}", host.name()));
        self.checker.on_wake(id.0, host.name(), &kinds);
    }

    /// Returns the number of an actor. Directions of links have lower numbers than nodes, so they come first at the
    /// same time.
    fn number(&self, actor: Actor) -> usize {
        match actor {
            Actor::Way(link, direction) => way_number(link, direction),
            Actor::Node(id) => 2 * self.links.len() + id.0,
        }
    }

    fn actor(&self, number: usize) -> Actor {
        let ways = 2 * self.links.len();
        if number >= ways {
            return Actor::Node(NodeId(number - ways));
        }
        let direction = if number.is_multiple_of(2) { Direction::Forward } else { Direction::Backward };
        Actor::Way(LinkId(number / 2), direction)
    }

    fn reschedule(&mut self, actor: Actor) {
        let time = match actor {
            Actor::Node(id) => match &self.nodes[id.0] {
                Node::Host(host) => host.next_timeout(),
                Node::Router(_) => None,
            },
            Actor::Way(id, direction) => self.links[id.0].way(direction).poll_timeout(),
        };
        self.agenda.set(self.number(actor), time);
    }
}

fn way_number(link: LinkId, direction: Direction) -> usize {
    2 * link.0 + direction as usize
}
