//! Ways through relays: at each stop of a way, a host has the connections of its hops, and drives them as the runtime does
//! (`ctcp`, `relayed.rs`).
//!
//! ```text
//!   client end            relay                 server end
//!   peers                                       peers            the end-to-end connections
//!     |  datagrams                                |
//!    hop ============ hop | buffers | hop ====== hop             connections of their own, over links
//! ```
//!
//! A way has the same number at all its stops, and a port of its own. The end-to-end connection sees the number as an
//! address ([`relayed_address`]).

use core::net::{IpAddr, SocketAddr};

use ctcp_base::Instant;
use ctcp_proto::{
    Carriage, Connection, ConnectionError, ConnectionHandle, DatagramOutcome, EndpointEvent, Event,
    HopRepair, NetworkPath, PREFERENCE_OF_FIRST, PublicKey, RelayBuffer, Role, TimerKind, Transmit,
    TransportConfig, hop_of, relayed_address,
};

use super::{Host, Peer, World, with_baselines};
use crate::application::Application;
use crate::node::Datagram;

/// The port of the way with the number 0.
const FIRST_PORT: u16 = 20_000;

/// What a host does for a way.
#[derive(Clone, Debug)]
pub(crate) struct WayConfig {
    /// The number of the way.
    pub(crate) number: u16,
    /// The role of the host, if it is an end.
    pub(crate) end: Option<Role>,
    /// The next stop towards the server, unless this is the server.
    pub(crate) next: Option<(IpAddr, PublicKey)>,
    /// How the host repairs losses of its hops.
    pub(crate) repair: HopRepair,
    /// The configuration of the hop to the next stop.
    pub(crate) transport: TransportConfig,
}

/// One side of a hop.
#[derive(Debug)]
struct Hop {
    handle: ConnectionHandle,
    connection: Connection,
    is_open: bool,
}

/// A way at one of its stops.
#[derive(Debug)]
struct Way {
    config: WayConfig,
    /// Towards the client, and towards the server. An end has one of them.
    hops: [Option<Hop>; 2],
    /// What a relay holds, towards the server and towards the client.
    buffers: [RelayBuffer; 2],
}

/// The ways of a host.
#[derive(Debug, Default)]
pub(super) struct Ways {
    list: Vec<Way>,
    /// A carried connection has given a datagram to a hop, or may have something to send.
    is_busy: bool,
}

impl Way {
    fn new(config: WayConfig) -> Self {
        let (size, window) = (usize::from(config.transport.symbol_size_max), config.transport.coding_window);
        let buffers = [(); 2].map(|()| RelayBuffer::new(size, u64::from(window)));
        Self { config, hops: [None, None], buffers }
    }

    fn port(&self) -> u16 {
        FIRST_PORT + self.config.number
    }

    fn number(&self) -> u64 {
        u64::from(self.config.number)
    }

    /// What the connection of a hop does with datagrams.
    fn carriage(&self, side: usize) -> Carriage {
        let repair = self.config.repair;
        if self.config.end.is_some() {
            return Carriage::End { repair };
        }
        let [up, down] = self.buffers.clone();
        let (incoming, outgoing) = if side == 0 { (up, down) } else { (down, up) };
        Carriage::Relay { incoming, outgoing, repair }
    }

    fn is_open(&self) -> bool {
        let hops = usize::from(self.config.end.is_none()) + 1;
        self.hops.iter().flatten().filter(|hop| hop.is_open).count() == hops
    }

    /// The hop of an end.
    fn hop_of_end(&mut self) -> Option<&mut Hop> {
        self.config.end?;
        self.hops.iter_mut().flatten().next()
    }
}

impl Ways {
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let hops = self.list.iter().flat_map(|way| way.hops.iter().flatten());
        hops.filter_map(|hop| hop.connection.poll_timeout()).map(|(time, _)| time).min()
    }

    fn hops_mut(&mut self) -> impl Iterator<Item = &mut Hop> {
        self.list.iter_mut().flat_map(|way| way.hops.iter_mut().flatten())
    }

    /// Forgets the hops, as a process that restarts.
    pub(super) fn lose_hops(&mut self) {
        self.list.iter_mut().for_each(|way| way.hops = [None, None]);
    }

    /// Tells an end-to-end connection how much its hops take now.
    pub(super) fn tell_room(&mut self, carried: &mut Connection) {
        for way in &mut self.list {
            let (number, hop) = (way.number(), way.hop_of_end());
            carried.set_hop_room(number, hop.map_or(0, |hop| hop.connection.relayed_room()));
        }
    }

    /// Takes a datagram of an end-to-end connection. One without a hop is lost.
    pub(super) fn send(&mut self, now: Instant, transmit: &Transmit, datagram: &[u8]) {
        let number = hop_of(transmit.destination);
        let way = self.list.iter_mut().find(|way| Some(way.number()) == number);
        if let Some(hop) = way.and_then(Way::hop_of_end) {
            let _ = hop.connection.send_relayed(now, datagram);
            self.is_busy = true;
        }
    }

    /// Opens a path on each way but the first.
    pub(super) fn spread(&self, now: Instant, carried: &mut Connection) {
        for way in self.list.iter().skip(1) {
            let network = NetworkPath { local: None, remote: relayed_address(way.number()) };
            let _ = carried.add_path(now, network, PREFERENCE_OF_FIRST);
        }
    }
}

impl Host {
    /// Makes the host a stop of a way.
    pub(crate) fn add_way(&mut self, config: WayConfig) {
        self.ways.list.push(Way::new(config));
    }

    /// Connects the first hop of the ways that begin here.
    pub(crate) fn begin_ways(&mut self, world: &mut World<'_>) {
        for index in 0..self.ways.list.len() {
            if self.ways.list[index].config.end == Some(Role::Client) {
                self.connect_hop(index, world);
            }
        }
        self.serve_ways(world);
    }

    /// Returns whether datagrams can pass here on all ways.
    #[must_use]
    pub fn has_open_ways(&self) -> bool {
        self.ways.list.iter().all(Way::is_open)
    }

    /// Returns the bytes that the host holds for others as a relay.
    #[must_use]
    pub fn relayed_memory(&self) -> usize {
        let buffers = self.ways.list.iter().flat_map(|way| &way.buffers);
        buffers.map(RelayBuffer::memory).sum()
    }

    /// Returns the place of the way to whose hops this address belongs.
    pub(super) fn way_at(&self, address: SocketAddr) -> Option<usize> {
        let is_own = address.ip() == self.address.ip();
        self.ways.list.iter().position(|way| is_own && way.port() == address.port())
    }

    fn connect_hop(&mut self, index: usize, world: &mut World<'_>) {
        let way = &mut self.ways.list[index];
        let Some((ip, key)) = way.config.next else { return };
        let remote = SocketAddr::new(ip, way.port());
        let transport = with_baselines(way.config.transport.clone());
        match self.endpoint.connect(world.now, remote, key, transport) {
            Ok((handle, connection)) => {
                way.hops[1] = Some(Hop { handle, connection, is_open: false });
            }
            Err(error) => world.ledger.complain(format!("{}: no hop to {remote}: {error}", self.name)),
        }
    }

    /// Handles a datagram that arrived over a link for a hop.
    pub(super) fn handle_of_way(&mut self, index: usize, mut datagram: Datagram, world: &mut World<'_>) {
        let (now, remote) = (world.now, datagram.source);
        let network = NetworkPath { local: None, remote };
        let way = &mut self.ways.list[index];
        match self.endpoint.handle_datagram(now, network, datagram.ecn, &datagram.bytes) {
            DatagramOutcome::Connection(handle) => {
                if let Some(hop) = way.hops.iter_mut().flatten().find(|hop| hop.handle == handle) {
                    hop.connection.handle_datagram(now, network, datagram.ecn, &mut datagram.bytes);
                }
            }
            DatagramOutcome::Incoming(incoming) if way.hops[0].is_none() => {
                if let Some((handle, connection)) = self.endpoint.accept(now, *incoming) {
                    way.hops[0] = Some(Hop { handle, connection, is_open: false });
                }
            }
            DatagramOutcome::Incoming(_) | DatagramOutcome::Dropped(_) => {}
            DatagramOutcome::Answer(bytes) => {
                self.send((datagram.destination, remote), None, bytes, world);
            }
        }
        self.serve_ways(world);
    }

    /// Handles the deadlines of hops.
    pub(super) fn handle_hop_timeouts(&mut self, world: &mut World<'_>, kinds: &mut Vec<TimerKind>) {
        let (now, before) = (world.now, kinds.len());
        for hop in self.ways.hops_mut() {
            if let Some((_, kind)) = hop.connection.poll_timeout().filter(|(time, _)| *time <= now) {
                kinds.push(kind);
                hop.connection.handle_timeout(now);
            }
        }
        if kinds.len() > before {
            self.serve_ways(world);
            for hop in self.ways.hops_mut() {
                world.checker.check_deadline(&self.name, hop.connection.poll_timeout());
            }
        }
    }

    /// Lets hops and end-to-end connections take turns until nothing more comes out of them.
    pub(super) fn serve_ways(&mut self, world: &mut World<'_>) {
        while !self.ways.is_empty() {
            let mut is_busy = core::mem::take(&mut self.ways.is_busy);
            for index in 0..self.ways.list.len() {
                for side in 0..2 {
                    is_busy |= self.serve_hop((index, side), world);
                }
            }
            if !is_busy {
                return;
            }
            for handle in self.handles() {
                self.drain(handle, world);
            }
        }
    }

    /// Returns whether anything has happened that others may have waited for.
    fn serve_hop(&mut self, place: (usize, usize), world: &mut World<'_>) -> bool {
        let closed = self.handle_hop_events(place, world);
        let mut is_busy = self.transmit_hop(place, world);
        if let Some(error) = closed {
            self.on_hop_closed(place, &error, world);
            is_busy = true;
        }
        is_busy | self.hand_on(place, world)
    }

    /// Handles the events of a hop. Returns why it was closed, if it was.
    fn handle_hop_events(
        &mut self,
        (index, side): (usize, usize),
        world: &mut World<'_>,
    ) -> Option<ConnectionError> {
        let way = &mut self.ways.list[index];
        let (carriage, is_relay) = (way.carriage(side), way.config.end.is_none());
        let hop = way.hops[side].as_mut()?;
        let mut closed = None;
        let mut is_new = false;
        while let Some(event) = hop.connection.poll_event() {
            match event {
                Event::Connected => {
                    hop.is_open = hop.connection.carry(carriage.clone()).is_ok();
                    is_new = true;
                }
                Event::Closed(error) => closed = Some(error),
                _ => {}
            }
        }
        if is_new && is_relay && side == 0 {
            self.connect_hop(index, world);
        }
        closed
    }

    /// Sends what a hop has to send. Returns whether there was anything.
    fn transmit_hop(&mut self, (index, side): (usize, usize), world: &mut World<'_>) -> bool {
        let mut has_sent = false;
        loop {
            let way = &mut self.ways.list[index];
            let source = SocketAddr::new(self.address.ip(), way.port());
            let Some(hop) = &mut way.hops[side] else { return has_sent };
            let mut is_retired = false;
            while let Some(event) = hop.connection.poll_endpoint_event() {
                is_retired |= event == EndpointEvent::Retired;
                self.endpoint.handle_event(hop.handle, event);
            }
            let mut buffer = world.spare.pop().unwrap_or_default();
            let transmit = hop.connection.poll_transmit(world.now, &mut buffer);
            if is_retired {
                way.hops[side] = None;
            }
            let Some(transmit) = transmit else {
                world.spare.push(buffer);
                return has_sent;
            };
            has_sent = true;
            self.send((source, transmit.destination), transmit.ecn, buffer, world);
        }
    }

    /// Hands on what a hop has received. Returns whether there was anything for the host itself.
    fn hand_on(&mut self, (index, side): (usize, usize), world: &mut World<'_>) -> bool {
        let way = &mut self.ways.list[index];
        if way.config.end.is_none() {
            if let Some(other) = &mut way.hops[1 - side] {
                other.connection.on_relay_progress(world.now);
            }
            return false;
        }
        let mut is_busy = false;
        while let Some(datagram) =
            self.ways.list[index].hops[side].as_mut().and_then(|hop| hop.connection.receive_relayed())
        {
            self.receive_relayed((index, side), datagram, world);
            is_busy = true;
        }
        is_busy
    }

    /// Gives a datagram to the end-to-end connection for which it is.
    fn receive_relayed(
        &mut self,
        (index, side): (usize, usize),
        mut datagram: Vec<u8>,
        world: &mut World<'_>,
    ) {
        let now = world.now;
        let way = &mut self.ways.list[index];
        let remote = relayed_address(way.number());
        let network = NetworkPath { local: None, remote };
        let Some(hop) = &mut way.hops[side] else { return };
        match self.endpoint.handle_datagram(now, network, None, &datagram) {
            DatagramOutcome::Connection(handle) => {
                let Some(peer) = self.peers.get_mut(handle) else { return };
                let forged = peer.connection.forged_datagrams();
                peer.received += datagram.len() as u64;
                peer.connection.handle_datagram(now, network, None, &mut datagram);
                if peer.connection.forged_datagrams() > forged {
                    hop.connection.on_forged_datagram(now);
                }
            }
            DatagramOutcome::Incoming(incoming) => {
                if let Some((handle, connection)) = self.endpoint.accept(now, *incoming) {
                    let application = Application::new(self.script.clone(), Role::Server, None);
                    let received = datagram.len() as u64;
                    let peer = Peer { received, ..Peer::new(connection, application, self.address) };
                    self.peers.insert(handle, peer);
                }
            }
            DatagramOutcome::Answer(answer) => drop(hop.connection.send_relayed(now, &answer)),
            DatagramOutcome::Dropped(_) => {}
        }
    }

    /// A hop was closed: the other hop of a relay has nothing to do any more, and what an end sent over it is lost.
    fn on_hop_closed(
        &mut self,
        (index, side): (usize, usize),
        error: &ConnectionError,
        world: &mut World<'_>,
    ) {
        let way = &mut self.ways.list[index];
        self.lost_hops.push(error.to_string());
        if way.config.end.is_none() {
            if let Some(other) = &mut way.hops[1 - side] {
                other.connection.close(world.now, 0, "the other side of the relay has ended");
            }
            return;
        }
        let number = way.number();
        for peer in self.peers.values_mut() {
            peer.connection.on_hop_lost(world.now, number);
        }
    }
}
