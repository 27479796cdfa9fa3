//! A client and a server joined by relays, in virtual time: one chain of hops, or several side by side.
//!
//! ```text
//!              /== relay == relay ==\
//!   client ====                      ==== server      each hop a connection; the end-to-end connection runs inside, with a path per chain
//!              \====== relay =======/
//! ```

use core::net::SocketAddr;
use core::time::Duration;

use ctcp_base::{Instant, Prng};
use ctcp_netem::{Link, Packet};

use super::several::Conditions;
use super::transfer::Transfer;
use crate::{
    Carriage, ClientPolicy, Connection, ConnectionError, ConnectionHandle, DatagramOutcome, Endpoint,
    EndpointConfig, Event, HopRepair, NetworkPath, PREFERENCE_OF_FIRST, PublicKey, RelayBuffer, SecretKey,
    TransportConfig, hop_of, relayed_address,
};

/// How many symbols a relay holds in each direction.
const WINDOW: u32 = 512;

/// The nodes at the ends; relays have the following numbers.
const CLIENT: usize = 0;
const SERVER: usize = 1;
/// The first relay.
const RELAY: usize = 2;

/// Why a connection from end to end must fail.
pub(super) enum Expected {
    /// The client wants a server that has another key than the node which answers.
    AnotherServer,
    ServerThatListsOthers,
}

#[derive(Clone)]
struct Datagram(Vec<u8>);

impl AsRef<[u8]> for Datagram {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl AsMut<[u8]> for Datagram {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl Packet for Datagram {}

/// A connection and where the node's endpoint routes its datagrams.
type Slot = Option<(ConnectionHandle, Connection)>;

/// A node: an end has a hop for each chain, a relay two, the first of them towards the client.
struct Node {
    endpoint: Endpoint,
    hops: Vec<Hop>,
    /// The end-to-end connection.
    end: Slot,
}

/// One side of a hop.
struct Hop {
    line: usize,
    connection: Slot,
}

/// Both directions of a hop.
struct Line {
    up: Link<Datagram>,
    down: Link<Datagram>,
    /// The nodes towards the client and towards the server.
    nodes: [usize; 2],
    /// Bytes of UDP payload that were sent up and down.
    sent: [u64; 2],
    /// Nothing arrives.
    is_cut: bool,
}

/// The longest times without something new for the client.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stall {
    /// Without a byte that the application can read.
    pub(super) in_order: Duration,
    /// Without a packet that helps to decode one.
    pub(super) any: Duration,
}

pub(super) struct Chain {
    pub(super) now: Instant,
    nodes: Vec<Node>,
    lines: Vec<Line>,
    /// What each relay holds, up and down.
    pub(super) buffers: Vec<[RelayBuffer; 2]>,
    transfer: Transfer,
    repair: HopRepair,
    /// Why connections were closed. An error of a hop closes it on both sides.
    pub(super) errors: Vec<ConnectionError>,
}

fn key(node: usize) -> SecretKey {
    SecretKey::from_bytes([node as u8 + 1; 32])
}

fn public(node: usize) -> PublicKey {
    key(node).public_key()
}

impl Line {
    /// The address of the node on one side: 0 is towards the client.
    fn address(line: usize, side: usize) -> SocketAddr {
        SocketAddr::from(([10, 9, line as u8, side as u8 + 1], 1000))
    }

    fn side_of(&self, node: usize) -> usize {
        usize::from(self.nodes[1] == node)
    }
}

fn config() -> TransportConfig {
    TransportConfig { coding_window: WINDOW, ..TransportConfig::default() }
}

impl Chain {
    /// Connects all hops, and the ends through them.
    pub(super) fn new(hops: &[Conditions], repair: HopRepair, seed: u64) -> Self {
        Self::side_by_side(&[hops], repair, seed)
    }

    /// The same with several chains between the ends. The end-to-end connection begins on the first one.
    pub(super) fn side_by_side(chains: &[&[Conditions]], repair: HopRepair, seed: u64) -> Self {
        Self::with_datagrams(chains, repair, seed, |_| config().datagram_size_max)
    }

    /// The same with the size of the largest datagram on each hop. They are counted from the client's, chain after chain.
    pub(super) fn with_datagrams(
        chains: &[&[Conditions]],
        repair: HopRepair,
        seed: u64,
        size: impl Fn(usize) -> u16,
    ) -> Self {
        let mut chain = Self::hops(chains, repair, seed, size);
        chain.connect(public(SERVER));
        let is_up = |chain: &mut Self| chain.client().is_connected();
        assert!(chain.run(Duration::from_secs(20), is_up), "the ends connect");
        for way in 1..chains.len() {
            let network = NetworkPath { local: None, remote: relayed_address(way as u64) };
            let now = chain.now;
            chain.client().add_path(now, network, PREFERENCE_OF_FIRST).expect("room for a path");
        }
        chain
    }

    /// Begins a connection from end to end through one relay, to a server with the key of `expected`, or by a client that the server does
    /// not list. Returns why it failed.
    pub(super) fn refusal(hops: &[Conditions], expected: Expected) -> Option<ConnectionError> {
        let mut chain = Self::hops(&[hops], HopRepair::Combinations, 1, |_| config().datagram_size_max);
        let key = match expected {
            Expected::AnotherServer => public(RELAY + 1),
            Expected::ServerThatListsOthers => {
                chain.nodes[SERVER].endpoint.set_clients(ClientPolicy::Listed([public(RELAY)].into()));
                public(SERVER)
            }
        };
        chain.connect(key);
        chain.run(Duration::from_secs(60), |chain| !chain.errors.is_empty());
        chain.errors.pop()
    }

    /// Connects all hops, which carry from then on.
    fn hops(chains: &[&[Conditions]], repair: HopRepair, seed: u64, size: impl Fn(usize) -> u16) -> Self {
        let mut chain = Self {
            now: Instant::from_secs(1),
            nodes: Vec::new(),
            lines: Vec::new(),
            buffers: Vec::new(),
            transfer: Transfer::default(),
            repair,
            errors: Vec::new(),
        };
        let prng = Prng::new(seed);
        chain.add_node(seed);
        chain.add_node(seed);
        for hops in chains {
            let mut left = CLIENT;
            for (position, conditions) in hops.iter().enumerate() {
                let is_last = position + 1 == hops.len();
                let right = if is_last { SERVER } else { chain.add_node(seed) };
                chain.add_line(&prng, conditions, [left, right], size(chain.lines.len()));
                left = right;
            }
        }
        let are_up = |chain: &mut Self| {
            let hops = chain.nodes.iter().flat_map(|node| node.hops.iter().map(|hop| &hop.connection));
            hops.clone().all(|hop| hop.as_ref().is_some_and(|(_, hop)| hop.is_connected()))
        };
        assert!(chain.run(Duration::from_secs(20), are_up), "the hops connect");
        chain.run(Duration::from_millis(200), |_| false);
        chain.carry();
        chain
    }

    /// Begins the connection from end to end.
    fn connect(&mut self, server: PublicKey) {
        let (now, client) = (self.now, &mut self.nodes[CLIENT]);
        let begun = client.endpoint.connect(now, relayed_address(0), server, config());
        client.end = Some(begun.expect("a valid configuration"));
    }

    fn add_node(&mut self, seed: u64) -> usize {
        let number = self.nodes.len();
        let server = EndpointConfig::server(key(number), ClientPolicy::Any);
        let endpoint = Endpoint::new(
            EndpointConfig { transport: config(), ..server },
            [number as u8 + 3 + seed as u8; 32],
        );
        self.nodes.push(Node { endpoint, hops: Vec::new(), end: None });
        number
    }

    fn add_line(&mut self, prng: &Prng, conditions: &Conditions, nodes: [usize; 2], datagram_size_max: u16) {
        let line = self.lines.len();
        self.lines.push(Line {
            up: Link::new(conditions.link(), prng.fork(&format!("up {line}"))),
            down: Link::new(conditions.link(), prng.fork(&format!("down {line}"))),
            nodes,
            sent: [0; 2],
            is_cut: false,
        });
        let [left, right] = nodes;
        let config = TransportConfig { datagram_size_max, ..config() };
        let begun =
            self.nodes[left].endpoint.connect(self.now, Line::address(line, 1), public(right), config);
        self.nodes[left].hops.push(Hop { line, connection: Some(begun.expect("a valid configuration")) });
        self.nodes[right].hops.push(Hop { line, connection: None });
    }

    fn carry(&mut self) {
        let repair = self.repair;
        for (number, node) in self.nodes.iter_mut().enumerate() {
            let hops = node.hops.iter_mut().filter_map(|hop| hop.connection.as_mut());
            let mut hops: Vec<&mut Connection> = hops.map(|(_, hop)| hop).collect();
            if number == CLIENT || number == SERVER {
                for hop in hops {
                    hop.carry(Carriage::End { repair }).expect("connected");
                }
                continue;
            }
            let [left, right] = &mut hops[..] else { panic!("a relay has two hops") };
            let [up, down] = [(); 2].map(|()| RelayBuffer::new(1_440, u64::from(WINDOW)));
            self.buffers.push([up.clone(), down.clone()]);
            let (incoming, outgoing) = (up.clone(), down.clone());
            left.carry(Carriage::Relay { incoming, outgoing, repair }).expect("connected");
            right.carry(Carriage::Relay { incoming: down, outgoing: up, repair }).expect("connected");
        }
    }

    pub(super) fn client(&mut self) -> &mut Connection {
        &mut self.nodes[CLIENT].end.as_mut().expect("begun").1
    }

    /// Bytes of UDP payload sent towards the client on a hop. They are counted from the client's, chain after chain.
    pub(super) fn sent_down(&self, hop: usize) -> u64 {
        self.lines[hop].sent[1]
    }

    /// Nothing arrives over a hop any more.
    pub(super) fn cut(&mut self, hop: usize) {
        self.lines[hop].is_cut = true;
    }

    /// Asks for so many bytes.
    pub(super) fn request(&mut self, bytes: u64) {
        let now = self.now;
        self.transfer = Transfer::request(now, self.client(), bytes);
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.transfer.read
    }

    /// How long a download takes.
    pub(super) fn download(&mut self, bytes: u64) -> Duration {
        let begun = self.now;
        self.request(bytes);
        assert!(
            self.run(Duration::from_secs(600), |chain| chain.transfer.is_whole),
            "{} of {bytes} bytes",
            self.bytes_read()
        );
        assert_eq!(self.errors, []);
        self.now - begun
    }

    pub(super) fn is_whole(&self) -> bool {
        self.transfer.is_whole
    }

    /// Runs for a time, or until the download is whole, and returns the longest parts of it without a new byte.
    pub(super) fn longest_stall(&mut self, time: Duration) -> Stall {
        let mut stall = Stall::default();
        let mut last = [(self.now, 0); 2];
        self.run(time, |chain| {
            let counts = chain.client().stats();
            let symbols = counts.symbols_decoded + counts.repairs_received - counts.redundant_received;
            let longest = [&mut stall.in_order, &mut stall.any];
            for ((longest, last), count) in
                longest.into_iter().zip(&mut last).zip([chain.bytes_read(), symbols])
            {
                *longest = (*longest).max(chain.now - last.0);
                if count > last.1 {
                    *last = (chain.now, count);
                }
            }
            chain.is_whole()
        });
        stall
    }

    pub(super) fn run(&mut self, limit: Duration, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let end = self.now + limit;
        let mut stuck = 0;
        loop {
            self.serve();
            self.flush();
            if done(self) {
                return true;
            }
            let connections = self.nodes.iter().flat_map(Node::connections);
            let timers = connections.filter_map(Connection::poll_timeout).map(|(time, _)| time);
            let links = self.lines.iter().flat_map(|line| [line.up.poll_timeout(), line.down.poll_timeout()]);
            let Some(next) = timers.chain(links.flatten()).min() else { return false };
            stuck = if next <= self.now { stuck + 1 } else { 0 };
            let due =
                self.nodes.iter().map(|node| node.connections().map(Connection::poll_timeout).collect());
            assert!(
                stuck < 10_000,
                "time does not advance at {}: {:?}",
                self.now,
                due.collect::<Vec<Vec<_>>>()
            );
            if next > end {
                self.now = end;
                return false;
            }
            self.now = self.now.max(next);
            self.deliver();
            let now = self.now;
            for connection in self.nodes.iter_mut().flat_map(Node::connections_mut) {
                if connection.poll_timeout().is_some_and(|(deadline, _)| deadline <= now) {
                    connection.handle_timeout(now);
                }
            }
        }
    }

    fn deliver(&mut self) {
        let now = self.now;
        for index in 0..self.lines.len() {
            let line = &mut self.lines[index];
            let ([left, right], is_cut) = (line.nodes, line.is_cut);
            while let Some(datagram) = line.up.poll_delivery(now) {
                if !is_cut {
                    self.nodes[right].receive(now, index, Line::address(index, 0), datagram.0);
                }
            }
            while let Some(datagram) = line.down.poll_delivery(now) {
                if !is_cut {
                    self.nodes[left].receive(now, index, Line::address(index, 1), datagram.0);
                }
            }
        }
    }

    /// Sends one packet of each hop after the other, until there is nothing left to send.
    fn flush(&mut self) {
        let (now, mut buffer, mut is_busy) = (self.now, Vec::new(), true);
        while core::mem::take(&mut is_busy) {
            for (number, node) in self.nodes.iter_mut().enumerate() {
                node.pass_on(now);
                for hop in &mut node.hops {
                    let Some((_, connection)) = &mut hop.connection else { continue };
                    let Some(transmit) = connection.poll_transmit(now, &mut buffer) else { continue };
                    is_busy = true;
                    let line = &mut self.lines[hop.line];
                    let side = line.side_of(number);
                    line.sent[side] += transmit.size as u64;
                    let way = if side == 0 { &mut line.up } else { &mut line.down };
                    way.handle_packet(now, Datagram(buffer.clone()));
                }
                self.errors.extend(node.drain_events(now));
            }
        }
    }

    fn serve(&mut self) {
        if let Some((_, server)) = &mut self.nodes[SERVER].end {
            self.transfer.serve(self.now, server);
        }
        if let Some((_, client)) = &mut self.nodes[CLIENT].end {
            self.transfer.receive(client);
        }
    }
}

impl Node {
    fn connections(&self) -> impl Iterator<Item = &Connection> {
        let hops = self.hops.iter().map(|hop| &hop.connection);
        hops.chain([&self.end]).flatten().map(|(_, connection)| connection)
    }

    fn connections_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        let hops = self.hops.iter_mut().map(|hop| &mut hop.connection);
        hops.chain([&mut self.end]).flatten().map(|(_, connection)| connection)
    }

    /// A datagram arrives over the network.
    fn receive(&mut self, now: Instant, line: usize, remote: SocketAddr, mut datagram: Vec<u8>) {
        let network = NetworkPath { local: None, remote };
        match self.endpoint.handle_datagram(now, network, None, &datagram) {
            DatagramOutcome::Connection(handle) => {
                let hops = self.hops.iter_mut().filter_map(|hop| hop.connection.as_mut());
                if let Some((_, hop)) = hops.into_iter().find(|(other, _)| *other == handle) {
                    hop.handle_datagram(now, network, None, &mut datagram);
                }
            }
            DatagramOutcome::Incoming(incoming) => {
                let hop = self.hops.iter_mut().find(|hop| hop.line == line && hop.connection.is_none());
                if let Some(hop) = hop {
                    hop.connection = self.endpoint.accept(now, *incoming);
                }
            }
            _ => {}
        }
    }

    /// Hands on what the hops have received, and what the end-to-end connection has to send.
    fn pass_on(&mut self, now: Instant) {
        for number in 0..self.hops.len() {
            while let Some(datagram) = self.next_relayed(now, number) {
                self.receive_relayed(now, number, datagram);
            }
        }
        let Some((_, end)) = &mut self.end else { return };
        let mut buffer = Vec::new();
        loop {
            for (number, hop) in self.hops.iter().enumerate() {
                let room = hop.connection.as_ref().map_or(0, |(_, hop)| hop.relayed_room());
                end.set_hop_room(number as u64, room);
            }
            let Some(transmit) = end.poll_transmit(now, &mut buffer) else { return };
            let number = hop_of(transmit.destination).expect("the address of a hop") as usize;
            if let Some((_, hop)) = &mut self.hops[number].connection {
                let _ = hop.send_relayed(now, &buffer);
            }
        }
    }

    fn next_relayed(&mut self, now: Instant, hop: usize) -> Option<Vec<u8>> {
        let (_, hop) = self.hops[hop].connection.as_mut()?;
        hop.on_relay_progress(now);
        hop.receive_relayed()
    }

    fn receive_relayed(&mut self, now: Instant, hop: usize, mut datagram: Vec<u8>) {
        let network = NetworkPath { local: None, remote: relayed_address(hop as u64) };
        match self.endpoint.handle_datagram(now, network, None, &datagram) {
            DatagramOutcome::Connection(handle) => {
                let Some((_, end)) = self.end.as_mut().filter(|(other, _)| *other == handle) else { return };
                let forged = end.forged_datagrams();
                end.handle_datagram(now, network, None, &mut datagram);
                let is_forged = end.forged_datagrams() > forged;
                if let Some((_, hop)) = self.hops[hop].connection.as_mut().filter(|_| is_forged) {
                    hop.on_forged_datagram(now);
                }
            }
            DatagramOutcome::Incoming(incoming) if self.end.is_none() => {
                self.end = self.endpoint.accept(now, *incoming);
            }
            DatagramOutcome::Answer(answer) => {
                if let Some((_, hop)) = &mut self.hops[hop].connection {
                    let _ = hop.send_relayed(now, &answer);
                }
            }
            _ => {}
        }
    }

    /// Returns why connections were closed. Their paths are given up, and the other hop of a relay is closed.
    fn drain_events(&mut self, now: Instant) -> Vec<ConnectionError> {
        let mut errors = Vec::new();
        let Self { endpoint, hops, end } = self;
        let (is_relay, mut is_over) = (end.is_none() && hops.len() == 2, false);
        for (number, hop) in hops.iter_mut().enumerate() {
            let Some(error) = drain(endpoint, &mut hop.connection) else { continue };
            errors.push(error);
            is_over = true;
            if let Some((_, end)) = end {
                end.on_hop_lost(now, number as u64);
            }
        }
        if is_relay && is_over {
            for (_, hop) in hops.iter_mut().filter_map(|hop| hop.connection.as_mut()) {
                hop.close(now, 0, "the relay has ended");
            }
        }
        errors.extend(drain(endpoint, end));
        errors
    }
}

/// Handles the events of a connection, and returns why it was closed.
fn drain(endpoint: &mut Endpoint, slot: &mut Slot) -> Option<ConnectionError> {
    let (handle, connection) = slot.as_mut()?;
    while let Some(event) = connection.poll_endpoint_event() {
        endpoint.handle_event(*handle, event);
    }
    let mut error = None;
    while let Some(event) = connection.poll_event() {
        if let Event::Closed(closed) = event {
            error = Some(closed);
        }
    }
    error
}
