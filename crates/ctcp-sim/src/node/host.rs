//! A host: one endpoint with its connections, and an application on each. It drives the public interface as the
//! runtime does: input, drain, ask for the deadline.

mod peers;

use core::net::SocketAddr;
use core::time::Duration;
use std::sync::Arc;

use ctcp_base::{Instant, Prng};
use ctcp_baselines::symbolic::SymbolicChannel;
use ctcp_netem::MAX_HELD_PACKETS;
use ctcp_proto::{
    ConnectError, ConnectionHandle, ConnectionStats, DatagramOutcome, Ecn, Endpoint, EndpointConfig,
    EndpointEvent, NetworkPath, PublicKey, Role, TimerKind, TransportConfig,
};

pub use peers::Peer;
use peers::Peers;

use super::Datagram;
use crate::agenda::Agenda;
use crate::application::script::Script;
use crate::application::{Application, Drive};
use crate::checker::Checker;
use crate::ledger::{ConnectionName, Ledger};

/// What a host is made of.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Name in the trace.
    pub name: String,
    /// Where it is.
    pub address: SocketAddr,
    /// Its endpoint.
    pub endpoint: EndpointConfig,
    /// What the applications of its connections do that have no script of their own.
    pub script: Arc<Script>,
    /// Its connections are with clients that code symbolically, over this channel.
    pub symbolic: Option<SymbolicChannel>,
}

/// What happened on a host, in figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounts {
    /// Times a deadline woke it.
    pub wakes: u64,
    /// Of these, those that a connection asked for and that came to nothing.
    pub idle_wakes: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams received.
    pub received: u64,
    /// Datagrams that came for an address it no longer has.
    pub misaddressed: u64,
}

/// A host in a simulation.
#[derive(Debug)]
pub struct Host {
    name: String,
    address: SocketAddr,
    /// Addresses beside `address` that connections of ours use.
    others: Vec<SocketAddr>,
    key: PublicKey,
    endpoint: Endpoint,
    script: Arc<Script>,
    symbolic: Option<SymbolicChannel>,
    peers: Peers,
    /// When each of them wants to be woken.
    agenda: Agenda,
    /// Those that are due, kept for its memory.
    due: Vec<ConnectionHandle>,
    /// Applications whose connections are retired, oldest first.
    retired: Vec<Application>,
    noise: Option<Noise>,
    /// Events that applications took.
    events: u64,
    counts: HostCounts,
}

/// Calls that nobody needs, at moments that nobody asked for. They must change nothing.
#[derive(Debug)]
struct Noise {
    prng: Prng,
    next: Instant,
}

impl Noise {
    /// The longest time between two needless wake-ups.
    const PAUSE_MAX: Duration = Duration::from_millis(300);

    fn plan_next(&mut self, now: Instant) {
        let most = u64::try_from(Self::PAUSE_MAX.as_nanos()).unwrap_or(u64::MAX);
        self.next = now + Duration::from_nanos(self.prng.below(most));
    }
}

/// What a host's doings reach beyond it.
pub(crate) struct World<'a> {
    pub(crate) now: Instant,
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) checker: &'a mut Checker,
    /// What it sends, in order.
    pub(crate) outbox: &'a mut Vec<Datagram>,
    /// Memory of datagrams that were received, for those to be sent.
    pub(crate) spare: &'a mut Vec<Vec<u8>>,
    /// What applications read goes here.
    pub(crate) scratch: &'a mut [u8],
}

/// The memory of so many datagrams is kept: as many as a link can hold, so that those under way at a busy time are not made
/// again and again.
const SPARE_MAX: usize = MAX_HELD_PACKETS;

/// Here clients may ask for any profile of the papers.
fn for_laboratories(config: EndpointConfig) -> EndpointConfig {
    let transport = with_baselines(config.transport);
    EndpointConfig { transport, grant: ctcp_baselines::everything(), ..config }
}

/// The papers' sources send as the papers say, unless the configuration brings parts of its own.
fn with_baselines(transport: TransportConfig) -> TransportConfig {
    if transport.catalogue.is_general() {
        TransportConfig { catalogue: ctcp_baselines::simulated(), ..transport }
    } else {
        transport
    }
}

impl Host {
    pub(crate) fn new(config: HostConfig, seed: [u8; 32]) -> Self {
        Self {
            key: config.endpoint.secret_key.public_key(),
            endpoint: Endpoint::new(for_laboratories(config.endpoint), seed),
            name: config.name,
            address: config.address,
            others: Vec::new(),
            script: config.script,
            symbolic: config.symbolic,
            peers: Peers::default(),
            agenda: Agenda::default(),
            due: Vec::new(),
            retired: Vec::new(),
            noise: None,
            events: 0,
            counts: HostCounts::default(),
        }
    }

    /// Its name in the trace.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its address now.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its public key.
    #[must_use]
    pub fn key(&self) -> PublicKey {
        self.key
    }

    /// Its endpoint.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Bytes that the applications of all its peers have read.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.peers().map(|peer| peer.application.bytes_read()).sum()
    }

    /// Its connections that are not retired.
    pub fn peers(&self) -> impl Iterator<Item = &Peer> {
        self.peers.values()
    }

    /// Applications whose connections are retired, oldest first.
    #[must_use]
    pub fn retired(&self) -> &[Application] {
        &self.retired
    }

    /// The application of a connection, retired or not.
    #[must_use]
    pub fn application(&self, name: ConnectionName) -> Option<&Application> {
        let present = self.peers.values().map(|peer| &peer.application);
        present.chain(&self.retired).find(|application| application.name() == Some(name))
    }

    /// The application of a connection has played its part to the end.
    pub(crate) fn has_completed(&self, name: ConnectionName) -> bool {
        let mut applications = self.peers.values().map(|peer| &peer.application).chain(&self.retired);
        // Asked after every event: most are not complete, and their names need no comparison.
        applications.any(|application| application.is_complete() && application.name() == Some(name))
    }

    /// The newest connection that is not retired.
    #[must_use]
    pub fn newest(&self) -> Option<&Peer> {
        self.peers.values().max_by_key(|peer| peer.application.name().map(|name| name.number))
    }

    /// The figures of the newest connection.
    #[must_use]
    pub fn stats(&self) -> ConnectionStats {
        self.newest().map(|peer| peer.connection.stats()).unwrap_or_default()
    }

    /// Figures of the host.
    #[must_use]
    pub fn counts(&self) -> HostCounts {
        self.counts
    }

    pub(crate) fn set_noise(&mut self, now: Instant, prng: Prng) {
        self.noise = Some(Noise { prng, next: now });
    }

    /// Every connection uses this address from now on.
    pub(crate) fn set_address(&mut self, address: SocketAddr) {
        self.address = address;
        self.others.clear();
        for peer in self.peers.values_mut() {
            peer.local = address;
        }
    }

    /// New connections use this address from now on; the others stay where they are.
    pub(crate) fn add_address(&mut self, address: SocketAddr) {
        if address != self.address && self.peers.values().any(|peer| peer.local == self.address) {
            self.others.push(self.address);
        }
        self.address = address;
    }

    /// Forgets every connection and begins anew with the same key, as a restarted process does.
    pub(crate) fn restart(&mut self, config: EndpointConfig, seed: [u8; 32]) {
        self.endpoint = Endpoint::new(for_laboratories(config), seed);
        self.retired.extend(self.peers.take().map(|peer| peer.application));
        self.agenda.clear();
    }

    pub(crate) fn connect(
        &mut self,
        remote: SocketAddr,
        key: PublicKey,
        transport: TransportConfig,
        script: Option<Arc<Script>>,
        world: &mut World<'_>,
    ) -> Result<ConnectionName, ConnectError> {
        let transport = with_baselines(transport);
        let (handle, connection) = self.endpoint.connect(world.now, remote, key, transport)?;
        let name = world.ledger.on_attempt(self.key, self.address);
        if let Some(script) = &script {
            world.ledger.on_script(name, script.clone());
        }
        let script = script.unwrap_or_else(|| self.script.clone());
        let application = Application::new(script, Role::Client, Some(name));
        self.peers.insert(handle, Peer::new(connection, application, self.address));
        self.drain(handle, world);
        Ok(name)
    }

    pub(crate) fn close(&mut self, code: u64, reason: &str, world: &mut World<'_>) {
        for handle in self.handles() {
            if let Some(peer) = self.peers.get_mut(handle) {
                peer.connection.close(world.now, code, reason);
            }
            self.drain(handle, world);
        }
    }

    pub(crate) fn handle_datagram(&mut self, mut datagram: Datagram, world: &mut World<'_>) {
        if datagram.destination != self.address && !self.others.contains(&datagram.destination) {
            self.counts.misaddressed += 1;
            return;
        }
        self.counts.received += 1;
        let size = datagram.bytes.len() as u64;
        world.checker.on_received(&self.name, datagram.source, datagram.bytes.len());
        let (now, remote, local) = (world.now, datagram.source, datagram.destination);
        let network_path = NetworkPath { local: None, remote };
        match self.endpoint.handle_datagram(now, network_path, datagram.ecn, &datagram.bytes) {
            DatagramOutcome::Connection(handle) => {
                match self.peers.get_mut(handle) {
                    Some(peer) => {
                        peer.received += size;
                        if self.symbolic.as_ref().is_some_and(|it| it.takes(Role::Client, &datagram.bytes)) {
                            peer.connection.on_decoder_news(now);
                        } else {
                            let (ecn, bytes) = (datagram.ecn, &mut datagram.bytes);
                            peer.connection.handle_datagram(now, network_path, ecn, bytes);
                        }
                    }
                    None => world.ledger.complain(format!("{}: no connection has {handle:?}", self.name)),
                }
                self.drain(handle, world);
            }
            DatagramOutcome::Incoming(incoming) => {
                if let Some((handle, connection)) = self.endpoint.accept(now, *incoming) {
                    let application = Application::new(self.script.clone(), Role::Server, None);
                    let peer = Peer { received: size, ..Peer::new(connection, application, local) };
                    if self.peers.insert(handle, peer).is_some() {
                        world.ledger.complain(format!("{}: {handle:?} is given twice", self.name));
                    }
                    self.drain(handle, world);
                }
            }
            DatagramOutcome::Answer(bytes) => self.send((local, remote), None, bytes, world),
            DatagramOutcome::Dropped(_) => {}
        }
        if world.spare.len() < SPARE_MAX {
            world.spare.push(datagram.bytes);
        }
    }

    /// Does what is due. Returns why it was woken.
    pub(crate) fn handle_timeout(&mut self, world: &mut World<'_>) -> Vec<TimerKind> {
        let now = world.now;
        let before = self.activity();
        let mut kinds = Vec::new();
        let mut is_for_application = false;
        let is_noise = self.noise.as_ref().is_some_and(|noise| noise.next <= now);
        if let Some(noise) = self.noise.as_mut().filter(|_| is_noise) {
            noise.plan_next(now);
        }
        self.endpoint.handle_timeout(now);
        let mut handles = core::mem::take(&mut self.due);
        self.collect_due(now, is_noise, &mut handles);
        for &handle in &handles {
            let Some(peer) = self.peers.get_mut(handle) else { continue };
            let due = peer.connection.poll_timeout().filter(|(deadline, _)| *deadline <= now);
            let application_is_due = peer.application.next_timeout().is_some_and(|time| time <= now);
            if let Some((_, kind)) = due {
                kinds.push(kind);
                peer.connection.handle_timeout(now);
            }
            is_for_application |= application_is_due;
            if due.is_some() || application_is_due || is_noise {
                self.drain(handle, world);
            } else {
                self.plan(handle);
            }
            if due.is_some() {
                let next = self.peers.get(handle).and_then(|peer| peer.connection.poll_timeout());
                world.checker.check_deadline(&self.name, next);
            }
        }
        self.due = handles;
        self.counts.wakes += 1;
        self.counts.idle_wakes += u64::from(self.activity() == before && !is_for_application && !is_noise);
        kinds
    }

    /// When it wants to be woken.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        let peers = self.agenda.first().map(|(time, _)| time);
        let noise = self.noise.as_ref().filter(|_| !self.peers.is_empty()).map(|noise| noise.next);
        [peers, self.endpoint.poll_timeout(), noise].into_iter().flatten().min()
    }

    fn handles(&self) -> Vec<ConnectionHandle> {
        self.peers.keys().collect()
    }

    /// The connections that are due, or all, in their order.
    fn collect_due(&mut self, now: Instant, all: bool, due: &mut Vec<ConnectionHandle>) {
        due.clear();
        if all {
            due.extend(self.peers.keys());
            return;
        }
        while let Some((_, number)) = self.agenda.first().filter(|(time, _)| *time <= now) {
            self.agenda.set(number, None);
            due.push(ConnectionHandle(number));
        }
        due.sort_unstable();
    }

    /// Remembers when a connection wants to be woken.
    fn plan(&mut self, handle: ConnectionHandle) {
        self.agenda.set(handle.0, self.peers.get(handle).and_then(Peer::next_timeout));
    }

    /// Grows with everything that a wake-up may bring about.
    fn activity(&self) -> (u64, u64, usize) {
        (self.counts.sent, self.events, self.retired.len())
    }

    fn send(
        &mut self,
        (source, destination): (SocketAddr, SocketAddr),
        ecn: Option<Ecn>,
        bytes: Vec<u8>,
        world: &mut World<'_>,
    ) {
        self.counts.sent += 1;
        world.checker.on_sent(&self.name, destination, bytes.len());
        world.outbox.push(Datagram { source, destination, ecn, bytes });
    }

    /// Carries out of a connection all that is in it, until nothing more comes.
    fn drain(&mut self, handle: ConnectionHandle, world: &mut World<'_>) {
        let mut is_retired = false;
        let mut is_first_round = true;
        loop {
            self.call_needlessly(handle, world);
            let Some(peer) = self.peers.get_mut(handle) else { return };
            let driven = peer.application.drive(&mut Drive {
                now: world.now,
                connection: &mut peer.connection,
                ledger: world.ledger,
                scratch: world.scratch,
            });
            self.events += driven.events;
            if !is_first_round && driven.events == 0 && !driven.has_acted {
                break;
            }
            is_first_round = false;
            self.transmit(handle, world);
            while let Some(event) =
                self.peers.get_mut(handle).and_then(|peer| peer.connection.poll_endpoint_event())
            {
                is_retired |= event == EndpointEvent::Retired;
                self.endpoint.handle_event(handle, event);
            }
            while let Some((handle, reason)) = self.endpoint.poll_close() {
                if let Some(peer) = self.peers.get_mut(handle) {
                    peer.connection.close_for(world.now, &reason);
                }
            }
        }
        if let Some(peer) = self.peers.get_mut(handle) {
            world.checker.check_limits(&self.name, peer, world.now);
        }
        if is_retired && let Some(peer) = self.peers.remove(handle) {
            self.retired.push(peer.application);
        }
        self.plan(handle);
    }

    /// Sends all that a connection has to send now.
    fn transmit(&mut self, handle: ConnectionHandle, world: &mut World<'_>) {
        let mut buffer = world.spare.pop().unwrap_or_default();
        while let Some(peer) = self.peers.get_mut(handle) {
            let Some(transmit) = peer.connection.poll_transmit(world.now, &mut buffer) else { break };
            peer.sent += buffer.len() as u64;
            world.checker.on_transmit(&self.name, peer, &transmit, &buffer);
            let local = peer.local;
            self.send((local, transmit.destination), transmit.ecn, buffer, world);
            buffer = world.spare.pop().unwrap_or_default();
        }
        world.spare.push(buffer);
    }

    /// Calls that change nothing, at a whim.
    fn call_needlessly(&mut self, handle: ConnectionHandle, world: &mut World<'_>) {
        let (Some(noise), Some(peer)) = (&mut self.noise, self.peers.get_mut(handle)) else { return };
        let (draw, connection) = (noise.prng.next_u64(), &mut peer.connection);
        // What is due is not needless.
        if draw & 1 != 0 && connection.poll_timeout().is_none_or(|(time, _)| time > world.now) {
            connection.handle_timeout(world.now);
        }
        if draw & 2 != 0 {
            let _ = connection.poll_timeout();
            let _ = connection.stats();
        }
        if draw & 4 != 0 {
            self.endpoint.handle_timeout(world.now);
        }
        if draw & 8 != 0 {
            // Neither a long nor a short header.
            let network_path = NetworkPath { local: None, remote: self.address };
            let _ = self.endpoint.handle_datagram(world.now, network_path, None, &[0; 40]);
        }
    }
}
