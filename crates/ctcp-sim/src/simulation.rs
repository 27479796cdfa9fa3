//! The loop: one queue of wake-ups ordered by time and, at the same time, links before hosts: what arrives with a
//! deadline comes before it, however often the deadline was asked for.

use core::cmp::Reverse;
use core::net::SocketAddr;
use core::time::Duration;
use std::collections::{BTreeMap, BinaryHeap};

use ctcp_base::{Instant, Prng, Probability};
use ctcp_netem::{LinkConfig, Schedule};
use ctcp_proto::{ConnectError, EndpointConfig, PublicKey, TransportConfig};

use crate::checker::Checker;
use crate::ledger::Ledger;
use crate::link::{Direction, DuplexLink, LinkId};
use crate::mischief::Mischief;
use crate::node::host::World;
use crate::node::{Datagram, Host, NodeId};
use crate::recorder::{Recorder, Tap};

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

/// Who is woken, in the order of those woken at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Actor {
    Way(LinkId, Direction),
    Host(NodeId),
}

/// Hosts and links in virtual time.
#[derive(Debug)]
pub struct Simulation {
    now: Instant,
    queue: BinaryHeap<Reverse<(Instant, Actor, u64)>>,
    /// For each actor, the entry of the queue that counts; all others of it are out of date.
    wakes: BTreeMap<Actor, (Instant, u64)>,
    inserted: u64,
    events: u64,
    hosts: Vec<Host>,
    links: Vec<DuplexLink>,
    /// The link of each host and the direction away from it.
    uplinks: BTreeMap<NodeId, (LinkId, Direction)>,
    recorder: Recorder,
    ledger: Ledger,
    checker: Checker,
    prng: Prng,
}

impl Simulation {
    pub(crate) fn new(
        seed: u64,
        hosts: Vec<Host>,
        links: Vec<DuplexLink>,
        transport: &TransportConfig,
    ) -> Self {
        let mut uplinks = BTreeMap::new();
        for (index, link) in links.iter().enumerate() {
            for direction in [Direction::Forward, Direction::Backward] {
                let sender = match direction {
                    Direction::Forward => link.receiver(Direction::Backward),
                    Direction::Backward => link.receiver(Direction::Forward),
                };
                uplinks.insert(sender, (LinkId(index), direction));
            }
        }
        Self {
            // Not zero, so that what is subtracted from a time has room.
            now: Instant::from_secs(1_000),
            queue: BinaryHeap::new(),
            wakes: BTreeMap::new(),
            inserted: 0,
            events: 0,
            hosts,
            links,
            uplinks,
            recorder: Recorder::default(),
            ledger: Ledger::new(seed, transport.stream_credit.max(transport.stream_credit_max)),
            checker: Checker::new(transport.clone()),
            prng: Prng::new(seed).fork("simulation"),
        }
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
    #[must_use]
    pub fn host(&self, id: NodeId) -> &Host {
        &self.hosts[id.0]
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

    /// Begins a connection.
    ///
    /// # Errors
    /// As [`ctcp_proto::Endpoint::connect`].
    pub fn connect(
        &mut self,
        client: NodeId,
        remote: SocketAddr,
        key: PublicKey,
        transport: TransportConfig,
    ) -> Result<(), ConnectError> {
        self.recorder.note(self.now, || "connect".to_owned());
        self.with_host(client, |host, world| host.connect(remote, key, transport, world).map(|_| ()))
    }

    /// Closes all connections of a host.
    pub fn close(&mut self, host: NodeId, code: u64, reason: &str) {
        self.recorder.note(self.now, || "close".to_owned());
        self.with_host(host, |host, world| host.close(code, reason, world));
    }

    /// The host has another address from now on, as after a change of its NAT's binding: what is on its way to the
    /// old one is lost. No address may be used twice.
    pub fn set_address(&mut self, host: NodeId, address: SocketAddr) {
        self.recorder.note(self.now, || format!("address {address}"));
        self.hosts[host.0].set_address(address);
        self.ledger.on_address(self.hosts[host.0].key(), address);
    }

    /// The host forgets all connections and begins anew, as a restarted process does.
    pub fn restart(&mut self, host: NodeId, config: EndpointConfig) {
        self.recorder.note(self.now, || "restart".to_owned());
        let mut seed = [0; 32];
        self.prng.fill(&mut seed);
        self.hosts[host.0].restart(config, seed);
        self.reschedule(Actor::Host(host));
    }

    /// Makes the host call its endpoint and connections more often than it must.
    pub fn add_noise(&mut self, host: NodeId) {
        let prng = self.prng.fork(self.hosts[host.0].name());
        self.hosts[host.0].set_noise(self.now, prng);
        self.reschedule(Actor::Host(host));
    }

    /// Lets a stranger add to what passes over the link, see [`Mischief`].
    pub fn add_mischief(&mut self, link: LinkId, rate: Probability) {
        let prng = self.prng.fork("mischief");
        self.links[link.0].mischief = Some(Mischief::new(rate, prng));
    }

    /// Datagrams with more bytes than this are lost on the link from now on, both ways.
    pub fn set_mtu(&mut self, link: LinkId, mtu: Option<usize>) {
        self.recorder.note(self.now, || format!("mtu {mtu:?}"));
        for direction in [Direction::Forward, Direction::Backward] {
            self.links[link.0].way_mut(direction).set_mtu(mtu);
        }
    }

    /// Gives one way of a link a script of changes.
    pub fn set_schedule(&mut self, link: LinkId, direction: Direction, schedule: Schedule) {
        self.links[link.0].way_mut(direction).set_schedule(schedule);
        self.reschedule(Actor::Way(link, direction));
    }

    /// Makes one way of a link another one now.
    pub fn set_link(&mut self, link: LinkId, direction: Direction, config: LinkConfig) {
        self.links[link.0].way_mut(direction).set_config(self.now, config);
        self.reschedule(Actor::Way(link, direction));
    }

    /// From now on the link loses, holds back, doubles and damages nothing, and no stranger adds anything.
    pub fn heal(&mut self, link: LinkId) {
        self.recorder.note(self.now, || "heal".to_owned());
        self.links[link.0].mischief = None;
        for direction in [Direction::Forward, Direction::Backward] {
            self.links[link.0].way_mut(direction).heal(self.now);
            self.reschedule(Actor::Way(link, direction));
        }
    }

    /// Runs for `limit`, or until `is_done` or a checker says so; asked after every event.
    pub fn run_for(&mut self, limit: Duration, mut is_done: impl FnMut(&Self) -> bool) -> Stop {
        let end = self.now + limit;
        loop {
            if self.violations().next().is_some() {
                return Stop::Violation;
            }
            if is_done(self) {
                return Stop::Done;
            }
            let Some(time) = self.next_time() else { return Stop::Silence };
            if time > end {
                self.now = end;
                return Stop::TimeUp;
            }
            self.step();
        }
    }

    fn next_time(&mut self) -> Option<Instant> {
        while let Some(&Reverse((time, actor, order))) = self.queue.peek() {
            if self.wakes.get(&actor) == Some(&(time, order)) {
                return Some(time);
            }
            self.queue.pop();
        }
        None
    }

    /// Lets the next thing happen.
    fn step(&mut self) {
        let Some(Reverse((time, actor, _))) = self.queue.pop() else { return };
        self.wakes.remove(&actor);
        // A deadline in the past is due now: a connection may ask for one when it is told something late.
        self.now = self.now.max(time);
        self.events += 1;
        self.checker.on_time(self.now);
        match actor {
            Actor::Host(id) => {
                let kinds = self.with_host(id, |host, world| host.handle_timeout(world));
                self.recorder.note(self.now, || format!("{} wakes {kinds:?}", self.hosts[id.0].name()));
                self.checker.on_wake(self.hosts[id.0].name(), &kinds);
            }
            Actor::Way(id, direction) => self.deliver(id, direction),
        }
        self.reschedule(actor);
    }

    fn deliver(&mut self, id: LinkId, direction: Direction) {
        while let Some(datagram) = self.links[id.0].way_mut(direction).poll_delivery(self.now) {
            let link = &self.links[id.0];
            let (receiver, name) = (link.receiver(direction), link.way(direction).name());
            self.recorder.on_datagram(self.now, Tap::Delivered, name, &datagram.bytes);
            self.with_host(receiver, |host, world| host.handle_datagram(datagram, world));
        }
    }

    /// Lets a host do something, and carries what it sends to its link.
    fn with_host<T>(&mut self, id: NodeId, act: impl FnOnce(&mut Host, &mut World<'_>) -> T) -> T {
        let mut outbox = Vec::new();
        let mut world = World {
            now: self.now,
            ledger: &mut self.ledger,
            checker: &mut self.checker,
            outbox: &mut outbox,
        };
        let result = act(&mut self.hosts[id.0], &mut world);
        for datagram in outbox {
            self.send(id, datagram);
        }
        self.reschedule(Actor::Host(id));
        result
    }

    fn send(&mut self, from: NodeId, datagram: Datagram) {
        let Some(&(link, direction)) = self.uplinks.get(&from) else { return };
        let duplex = &mut self.links[link.0];
        let added = duplex.mischief.as_mut().and_then(|mischief| mischief.on_datagram(&datagram));
        let way = duplex.way_mut(direction);
        for datagram in [Some(datagram), added].into_iter().flatten() {
            self.recorder.on_datagram(self.now, Tap::Sent, way.name(), &datagram.bytes);
            way.handle_packet(self.now, datagram);
        }
        self.reschedule(Actor::Way(link, direction));
    }

    fn reschedule(&mut self, actor: Actor) {
        let time = match actor {
            Actor::Host(id) => self.hosts[id.0].next_timeout(),
            Actor::Way(id, direction) => self.links[id.0].way(direction).poll_timeout(),
        };
        let planned = self.wakes.get(&actor).map(|(time, _)| *time);
        if time == planned {
            return;
        }
        match time {
            None => {
                self.wakes.remove(&actor);
            }
            Some(time) => {
                self.inserted += 1;
                self.wakes.insert(actor, (time, self.inserted));
                self.queue.push(Reverse((time, actor, self.inserted)));
            }
        }
    }
}
