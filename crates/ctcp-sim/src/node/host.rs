//! A host: one endpoint with its connections, and an application on each connection. Like the runtime, it drives the
//! public interface: input, drain, poll the deadline.

mod interfaces;
mod keeper;
mod peers;
mod ways;

use core::net::SocketAddr;
use core::time::Duration;
use std::sync::Arc;

use ctcp_base::{Instant, Prng};
use ctcp_baselines::symbolic::SymbolicChannel;
use ctcp_netem::MAX_HELD_PACKETS;
use ctcp_proto::{
    ConnectError, ConnectionHandle, ConnectionStats, DatagramOutcome, Ecn, Endpoint, EndpointConfig,
    EndpointEvent, NetworkPath, PublicKey, Role, TimerKind, TransportConfig, hop_of,
};

use interfaces::Interfaces;
pub use peers::Peer;
use peers::Peers;
pub(crate) use ways::WayConfig;
use ways::Ways;

use super::Datagram;
use crate::agenda::Agenda;
use crate::application::script::Script;
use crate::application::{Application, Drive};
use crate::checker::Checker;
use crate::ledger::{ConnectionName, Ledger};

/// The configuration of a host.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The name in the trace.
    pub name: String,
    /// The initial address.
    pub address: SocketAddr,
    /// The configuration of the endpoint.
    pub endpoint: EndpointConfig,
    /// The script of the applications on connections that do not have their own.
    pub script: Arc<Script>,
    /// The channel of symbolic coding, if the clients connected to this host use it.
    pub symbolic: Option<SymbolicChannel>,
}

/// Counters of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounts {
    /// Number of wake-ups by a deadline.
    pub wakes: u64,
    /// The wake-ups for connections that changed nothing.
    pub idle_wakes: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams received.
    pub received: u64,
    /// Datagrams received for an address that the host no longer has.
    pub misaddressed: u64,
    /// Datagrams that were not sent, because the host no longer has the address of their path.
    pub unsent: u64,
}

/// A host in a simulation.
#[derive(Debug)]
pub struct Host {
    name: String,
    address: SocketAddr,
    /// Addresses other than `address` that connections still use.
    others: Vec<SocketAddr>,
    interfaces: Interfaces,
    key: PublicKey,
    endpoint: Endpoint,
    script: Arc<Script>,
    symbolic: Option<SymbolicChannel>,
    peers: Peers,
    ways: Ways,
    /// Why hops were closed.
    lost_hops: Vec<String>,
    /// The deadline of each connection.
    agenda: Agenda,
    /// Connections that are due, kept to reuse the memory.
    due: Vec<ConnectionHandle>,
    /// Applications whose connections are retired, oldest first.
    retired: Vec<Application>,
    noise: Option<Noise>,
    /// Number of events that applications have handled.
    events: u64,
    counts: HostCounts,
}

/// Spurious calls at random times, which must not change anything.
#[derive(Debug)]
struct Noise {
    prng: Prng,
    next: Instant,
}

impl Noise {
    /// The longest time between two spurious wake-ups.
    const PAUSE_MAX: Duration = Duration::from_millis(300);

    fn plan_next(&mut self, now: Instant) {
        let most = u64::try_from(Self::PAUSE_MAX.as_nanos()).unwrap_or(u64::MAX);
        self.next = now + Duration::from_nanos(self.prng.below(most));
    }
}

/// What a host can access outside itself.
pub(crate) struct World<'a> {
    pub(crate) now: Instant,
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) checker: &'a mut Checker,
    /// Datagrams to send, in order.
    pub(crate) outbox: &'a mut Vec<Datagram>,
    /// Buffers of received datagrams, reused for sending.
    pub(crate) spare: &'a mut Vec<Vec<u8>>,
    /// Buffer for what applications read.
    pub(crate) scratch: &'a mut [u8],
}

/// Number of datagram buffers kept: as many as a link can hold, so that the buffers of a busy time need not be
/// allocated again and again.
const SPARE_MAX: usize = MAX_HELD_PACKETS;

/// Allows clients to request any profile of the papers.
fn for_laboratories(config: EndpointConfig) -> EndpointConfig {
    let transport = with_baselines(config.transport);
    EndpointConfig { transport, grant: ctcp_baselines::everything(), ..config }
}

/// Adds the papers' parts, in which sources send as in the papers, unless the configuration brings its own parts.
pub(crate) fn with_baselines(transport: TransportConfig) -> TransportConfig {
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
            interfaces: Interfaces::default(),
            script: config.script,
            symbolic: config.symbolic,
            peers: Peers::default(),
            ways: Ways::default(),
            lost_hops: Vec::new(),
            agenda: Agenda::default(),
            due: Vec::new(),
            retired: Vec::new(),
            noise: None,
            events: 0,
            counts: HostCounts::default(),
        }
    }

    /// Returns the name in the trace.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the present address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the public key.
    #[must_use]
    pub fn key(&self) -> PublicKey {
        self.key
    }

    /// Returns the endpoint.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns the bytes that the applications on all present connections have read.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.peers().map(|peer| peer.application.bytes_read()).sum()
    }

    /// Returns the connections that are not retired.
    pub fn peers(&self) -> impl Iterator<Item = &Peer> {
        self.peers.values()
    }

    /// Returns the applications whose connections are retired, oldest first.
    #[must_use]
    pub fn retired(&self) -> &[Application] {
        &self.retired
    }

    /// Returns the application of a connection, retired or not.
    #[must_use]
    pub fn application(&self, name: ConnectionName) -> Option<&Application> {
        let present = self.peers.values().map(|peer| &peer.application);
        present.chain(&self.retired).find(|application| application.name() == Some(name))
    }

    /// Returns whether the application of a connection has completed its part of the script.
    pub(crate) fn has_completed(&self, name: ConnectionName) -> bool {
        let mut applications = self.peers.values().map(|peer| &peer.application).chain(&self.retired);
        // This runs after every event, so check the cheap condition first: most applications are not complete.
        applications.any(|application| application.is_complete() && application.name() == Some(name))
    }

    /// Returns the newest connection that is not retired.
    #[must_use]
    pub fn newest(&self) -> Option<&Peer> {
        self.peers.values().max_by_key(|peer| peer.application.name().map(|name| name.number))
    }

    /// Returns the statistics of the newest connection.
    #[must_use]
    pub fn stats(&self) -> ConnectionStats {
        self.newest().map(|peer| peer.connection.stats()).unwrap_or_default()
    }

    /// Returns the counters of the host.
    #[must_use]
    pub fn counts(&self) -> HostCounts {
        self.counts
    }

    /// Returns why hops were closed, oldest first.
    #[must_use]
    pub fn lost_hops(&self) -> &[String] {
        &self.lost_hops
    }

    pub(crate) fn set_noise(&mut self, now: Instant, prng: Prng) {
        self.noise = Some(Noise { prng, next: now });
    }

    /// Moves every connection to this address.
    pub(crate) fn set_address(&mut self, address: SocketAddr) {
        self.address = address;
        self.others.clear();
        for peer in self.peers.values_mut() {
            peer.local = address;
        }
    }

    /// Uses this address for new connections; the others keep theirs.
    pub(crate) fn add_address(&mut self, address: SocketAddr) {
        if address != self.address && self.peers.values().any(|peer| peer.local == self.address) {
            self.others.push(self.address);
        }
        self.address = address;
    }

    /// Gives the host a further interface with this address.
    pub(crate) fn add_interface(&mut self, address: SocketAddr) {
        self.interfaces.add(address);
    }

    /// Returns the address of an interface; 0 is the host's first address.
    ///
    /// # Panics
    /// Panics if there is no such interface.
    #[must_use]
    pub fn interface(&self, number: usize) -> SocketAddr {
        number.checked_sub(1).map_or(self.address, |index| self.interfaces.further()[index])
    }

    /// Changes the address of a further interface, counted from 1. Returns the one before.
    pub(crate) fn set_interface(&mut self, number: usize, address: SocketAddr) -> Option<SocketAddr> {
        self.interfaces.set_address(number, address)
    }

    /// Sets whether the host has the address of an interface.
    pub(crate) fn set_present(&mut self, number: usize, is_present: bool) {
        self.interfaces.set_present(number, is_present);
    }

    /// Drops every connection and restarts with the same key, like a restarted process.
    pub(crate) fn restart(&mut self, config: EndpointConfig, seed: [u8; 32]) {
        self.endpoint = Endpoint::new(for_laboratories(config), seed);
        self.retired.extend(self.peers.take().map(|peer| peer.application));
        self.ways.lose_hops();
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
        // Through relays the server sees the address that stands for the way.
        let seen = if hop_of(remote).is_some() { remote } else { self.address };
        let name = world.ledger.on_attempt(self.key, seen);
        for &further in self.interfaces.further() {
            world.ledger.on_address(self.key, further);
        }
        if let Some(script) = &script {
            world.ledger.on_script(name, script.clone());
        }
        let script = script.unwrap_or_else(|| self.script.clone());
        let application = Application::new(script, Role::Client, Some(name));
        self.peers.insert(handle, Peer::new(connection, application, self.address));
        self.drain(handle, world);
        self.serve_ways(world);
        Ok(name)
    }

    pub(crate) fn close(&mut self, code: u64, reason: &str, world: &mut World<'_>) {
        for handle in self.handles() {
            if let Some(peer) = self.peers.get_mut(handle) {
                peer.connection.close(world.now, code, reason);
            }
            self.drain(handle, world);
        }
        self.serve_ways(world);
    }

    pub(crate) fn handle_datagram(&mut self, mut datagram: Datagram, world: &mut World<'_>) {
        let way = self.way_at(datagram.destination);
        if way.is_none() && !self.has_address(datagram.destination) {
            self.counts.misaddressed += 1;
            return;
        }
        self.counts.received += 1;
        let size = datagram.bytes.len() as u64;
        world.checker.on_received(&self.name, datagram.source, datagram.bytes.len());
        if let Some(way) = way {
            self.handle_of_way(way, datagram, world);
            return;
        }
        let (now, remote, local) = (world.now, datagram.source, datagram.destination);
        let network_path = NetworkPath { local: Some(local.ip()), remote };
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
                        world.ledger.complain(format!("{}: the handle {handle:?} is used twice", self.name));
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

    /// Handles everything that is due. Returns the reasons for the wake-up.
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
        self.handle_hop_timeouts(world, &mut kinds);
        let mut handles = core::mem::take(&mut self.due);
        self.collect_due(now, is_noise, &mut handles);
        for &handle in &handles {
            let Some(peer) = self.peers.get_mut(handle) else { continue };
            let due = peer.connection.poll_timeout().filter(|(deadline, _)| *deadline <= now);
            let application_is_due = peer.next_act().is_some_and(|time| time <= now);
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
        self.serve_ways(world);
        self.counts.wakes += 1;
        self.counts.idle_wakes += u64::from(self.activity() == before && !is_for_application && !is_noise);
        kinds
    }

    /// Returns the next deadline.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        let peers = self.agenda.first().map(|(time, _)| time);
        let noise = self.noise.as_ref().filter(|_| !self.peers.is_empty()).map(|noise| noise.next);
        [peers, self.endpoint.poll_timeout(), noise, self.ways.next_timeout()].into_iter().flatten().min()
    }

    /// Returns whether datagrams for this address are for the host.
    fn has_address(&self, address: SocketAddr) -> bool {
        self.others.contains(&address) || self.interfaces.present(self.address).any(|here| here == address)
    }

    fn handles(&self) -> Vec<ConnectionHandle> {
        self.peers.keys().collect()
    }

    /// Collects the connections that are due, or all connections, in the order of their handles.
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

    /// Updates the deadline of a connection.
    fn plan(&mut self, handle: ConnectionHandle) {
        self.agenda.set(handle.0, self.peers.get(handle).and_then(Peer::next_timeout));
    }

    /// Returns counters of which at least one grows with anything that a wake-up can cause.
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

    /// Drains a connection until nothing more comes out of it.
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
            self.keep_paths(handle, world.now);
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

    /// Sends all datagrams that a connection has to send now.
    fn transmit(&mut self, handle: ConnectionHandle, world: &mut World<'_>) {
        let mut buffer = world.spare.pop().unwrap_or_default();
        while let Some(peer) = self.peers.get_mut(handle) {
            if !self.ways.is_empty() {
                self.ways.tell_room(&mut peer.connection);
            }
            let Some(transmit) = peer.connection.poll_transmit(world.now, &mut buffer) else { break };
            peer.sent += buffer.len() as u64;
            world.checker.on_transmit(&self.name, peer, &transmit, &buffer);
            if hop_of(transmit.destination).is_some() {
                self.ways.send(world.now, &transmit, &buffer);
                continue;
            }
            let Some(source) = self.interfaces.source(transmit.source, peer.local) else {
                self.counts.unsent += 1;
                continue;
            };
            self.send((source, transmit.destination), transmit.ecn, buffer, world);
            buffer = world.spare.pop().unwrap_or_default();
        }
        world.spare.push(buffer);
    }

    /// Opens and closes the paths of a client with several interfaces.
    fn keep_paths(&mut self, handle: ConnectionHandle, now: Instant) {
        let Some(peer) = self.peers.get_mut(handle) else { return };
        let is_client = peer.connection.role() == Role::Client;
        if is_client && !self.ways.is_empty() && peer.connection.is_connected() && !peer.is_spread {
            peer.is_spread = true;
            self.ways.spread(now, &mut peer.connection);
        }
        if is_client && self.interfaces.are_several() {
            let present: Vec<SocketAddr> = self.interfaces.present(peer.local).collect();
            peer.keeper.keep(now, &mut peer.connection, peer.application.path_events(), &present);
        }
    }

    /// Makes random calls that must not change anything.
    fn call_needlessly(&mut self, handle: ConnectionHandle, world: &mut World<'_>) {
        let (Some(noise), Some(peer)) = (&mut self.noise, self.peers.get_mut(handle)) else { return };
        let (draw, connection) = (noise.prng.next_u64(), &mut peer.connection);
        // Handling a deadline that is due is not spurious.
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
            // The datagram has neither a long nor a short header.
            let network_path = NetworkPath { local: None, remote: self.address };
            let _ = self.endpoint.handle_datagram(world.now, network_path, None, &[0; 40]);
        }
    }
}
