//! The loop: one queue of wake-ups ordered by time and, at the same time, links before nodes: what arrives with a
//! deadline comes before it, however often the deadline was asked for. `carry` says how a datagram goes from node to node,
//! `changes` what may be made another in the middle of a run.

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
use crate::node::{Datagram, Host, Node, NodeId, Port, Router};
use crate::recorder::Recorder;
use crate::series::Series;
use crate::topology::Plan;

/// Why a run stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The condition holds.
    Done,
    /// The time is over.
    TimeUp,
    /// Nothing will ever happen again.
    Silence,
    /// A checker complained.
    Violation,
}

/// How closely a simulation looks at itself. Looking changes nothing that happens, but for one thing: the trailing zeros of a
/// combination are not sent, so that other contents make a repair shorter by a byte now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scrutiny {
    /// Every datagram is hashed, so that two runs can be compared.
    pub hash: bool,
    /// Streams carry bytes that follow from a seed, and every byte that is read is compared; otherwise they are only counted.
    pub contents: bool,
    /// The figures of a connection are compared with its limits after everything that happens to it.
    pub limits: bool,
}

impl Scrutiny {
    /// Everything: for tests, and unless something else is said.
    pub const FULL: Self = Self { hash: true, contents: true, limits: true };

    /// Nothing that takes time: for big runs of what was tested in small ones.
    pub const LIGHT: Self = Self { hash: false, contents: false, limits: false };
}

/// Who is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Actor {
    Way(LinkId, Direction),
    Node(NodeId),
}

/// Nodes and links in virtual time.
#[derive(Debug)]
pub struct Simulation {
    now: Instant,
    /// By the numbers of ways and nodes, see [`Self::number`].
    agenda: Agenda,
    events: u64,
    nodes: Vec<Node>,
    links: Vec<DuplexLink>,
    /// Where what a node sends itself leaves it.
    uplinks: Vec<Option<Port>>,
    /// Came by a wire and waits for its host to be at rest.
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
    /// When a simulation begins. Not zero, so that what is subtracted from a time has room.
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

    /// Looks at itself as closely as this from now on; to be said before anything is sent.
    pub fn set_scrutiny(&mut self, scrutiny: Scrutiny) {
        self.recorder.set_hashing(scrutiny.hash);
        self.ledger.set_checks_contents(scrutiny.contents);
        self.checker.set_checks_limits(scrutiny.limits);
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Wake-ups so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The trace so far.
    #[must_use]
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Keeps figures of these hosts' connections and of these ways over time, in bins of this width from now on.
    pub fn keep_series(&mut self, width: Duration, hosts: Vec<NodeId>, ways: Vec<(LinkId, Direction)>) {
        self.series = Some(Box::new(Series::new(self.now, width, hosts, ways)));
    }

    /// The figures over time, if they are kept.
    #[must_use]
    pub fn series(&self) -> Option<&Series> {
        self.series.as_deref()
    }

    /// Keeps a readable log from now on.
    pub fn keep_log(&mut self) {
        self.recorder.keep_log();
    }

    /// The books of all streams.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// A host.
    ///
    /// # Panics
    /// When the node is a router.
    #[must_use]
    pub fn host(&self, id: NodeId) -> &Host {
        match &self.nodes[id.0] {
            Node::Host(host) => host,
            Node::Router(router) => panic!("{} is not a host", router.name()),
        }
    }

    /// A router.
    ///
    /// # Panics
    /// When the node is a host.
    #[must_use]
    pub fn router(&self, id: NodeId) -> &Router {
        match &self.nodes[id.0] {
            Node::Router(router) => router,
            Node::Host(host) => panic!("{} is not a router", host.name()),
        }
    }

    /// A link.
    #[must_use]
    pub fn link(&self, id: LinkId) -> &DuplexLink {
        &self.links[id.0]
    }

    /// What the checkers complain of.
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

    /// Begins a connection that plays a script of its own, if there is one.
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

    /// Runs for `limit`, or until `is_done` or a checker says so; asked after every event.
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

    /// Makes it later, but not past the next thing that happens.
    pub(crate) fn skip_to(&mut self, time: Instant) {
        let time = time.min(self.next_time().unwrap_or(time));
        self.sample_until(time);
        self.now = self.now.max(time);
    }

    /// Ends the bins that end by `time`, before anything happens at that time.
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

    /// Lets the next thing happen.
    fn step(&mut self) {
        let Some((time, number)) = self.agenda.first() else { return };
        // A deadline in the past is due now: a connection may ask for one when it is told something late.
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

    /// Ways first, so that they come before nodes that are woken at the same time.
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
