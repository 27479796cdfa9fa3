//! A client and a server joined by hops through relays, in virtual time.
//!
//! ```text
//!   node 0 == hop 0 == node 1 == hop 1 == ... node N       each hop a connection; the end-to-end connection runs inside
//! ```

use core::net::SocketAddr;
use core::time::Duration;

use ctcp_base::{Instant, Prng};
use ctcp_netem::{Link, Packet};

use super::several::Conditions;
use super::transfer::Transfer;
use crate::{
    Carriage, ClientPolicy, Connection, ConnectionHandle, DatagramOutcome, Endpoint, EndpointConfig, Event,
    HopRepair, NetworkPath, PublicKey, RelayBuffer, SecretKey, TransportConfig, relayed_address,
};

/// How many symbols a relay holds in each direction.
const WINDOW: u32 = 512;

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

/// A node: an end has one hop, a relay two.
struct Node {
    endpoint: Endpoint,
    /// The hop towards the client, and the one towards the server.
    hops: [Slot; 2],
    /// The end-to-end connection.
    end: Slot,
}

/// Both directions of a hop.
struct Line {
    up: Link<Datagram>,
    down: Link<Datagram>,
    /// Bytes of UDP payload that were sent up and down.
    sent: [u64; 2],
}

pub(super) struct Chain {
    pub(super) now: Instant,
    nodes: Vec<Node>,
    lines: Vec<Line>,
    /// What each relay holds, up and down.
    pub(super) buffers: Vec<[RelayBuffer; 2]>,
    transfer: Transfer,
}

fn address(node: usize) -> SocketAddr {
    SocketAddr::from(([10, 9, node as u8, 1], 1000))
}

fn key(node: usize) -> SecretKey {
    SecretKey::from_bytes([node as u8 + 1; 32])
}

fn public(node: usize) -> PublicKey {
    key(node).public_key()
}

impl Chain {
    /// Connects all hops, and the ends through them.
    pub(super) fn new(hops: &[Conditions], repair: HopRepair, seed: u64) -> Self {
        let prng = Prng::new(seed);
        let config = TransportConfig { coding_window: WINDOW, ..TransportConfig::default() };
        let node = |number: usize| {
            let server = EndpointConfig::server(key(number), ClientPolicy::Any);
            let endpoint = Endpoint::new(
                EndpointConfig { transport: config.clone(), ..server },
                [number as u8 + 3 + seed as u8; 32],
            );
            Node { endpoint, hops: [None, None], end: None }
        };
        let line = |(index, conditions): (usize, &Conditions)| Line {
            up: Link::new(conditions.link(), prng.fork(&format!("up {index}"))),
            down: Link::new(conditions.link(), prng.fork(&format!("down {index}"))),
            sent: [0; 2],
        };
        let mut chain = Self {
            now: Instant::from_secs(1),
            nodes: (0..=hops.len()).map(node).collect(),
            lines: hops.iter().enumerate().map(line).collect(),
            buffers: Vec::new(),
            transfer: Transfer::default(),
        };
        for hop in 0..hops.len() {
            let begun = chain.nodes[hop].endpoint.connect(
                chain.now,
                address(hop + 1),
                public(hop + 1),
                config.clone(),
            );
            chain.nodes[hop].hops[1] = Some(begun.expect("a valid configuration"));
        }
        let are_up = |chain: &mut Self| {
            let hops = chain.nodes.iter().flat_map(|node| node.hops.iter().flatten());
            hops.clone().count() == 2 * chain.lines.len() && hops.clone().all(|(_, hop)| hop.is_connected())
        };
        assert!(chain.run(Duration::from_secs(20), are_up), "the hops connect");
        chain.run(Duration::from_millis(200), |_| false);
        chain.carry(repair);
        let last = hops.len();
        let (now, first) = (chain.now, &mut chain.nodes[0]);
        first.end =
            Some(first.endpoint.connect(now, relayed_address(1), public(last), config).expect("valid"));
        let is_up = |chain: &mut Self| chain.client().is_connected();
        assert!(chain.run(Duration::from_secs(20), is_up), "the ends connect");
        chain
    }

    fn carry(&mut self, repair: HopRepair) {
        let last = self.nodes.len() - 1;
        for number in 0..=last {
            let [towards_client, towards_server] = &mut self.nodes[number].hops;
            match (towards_client, towards_server) {
                (Some((_, left)), Some((_, right))) => {
                    let [up, down] = [(); 2].map(|()| RelayBuffer::new(1_440, u64::from(WINDOW)));
                    self.buffers.push([up.clone(), down.clone()]);
                    let (incoming, outgoing) = (up.clone(), down.clone());
                    left.carry(Carriage::Relay { incoming, outgoing, repair }).expect("connected");
                    right.carry(Carriage::Relay { incoming: down, outgoing: up, repair }).expect("connected");
                }
                (Some((_, hop)), None) | (None, Some((_, hop))) => {
                    hop.carry(Carriage::End { repair }).expect("connected");
                }
                (None, None) => {}
            }
        }
    }

    pub(super) fn client(&mut self) -> &mut Connection {
        &mut self.nodes[0].end.as_mut().expect("begun").1
    }

    /// Bytes of UDP payload sent towards the client on a hop.
    pub(super) fn sent_down(&self, hop: usize) -> u64 {
        self.lines[hop].sent[1]
    }

    /// Asks for so many bytes.
    pub(super) fn request(&mut self, bytes: u64) {
        self.transfer = Transfer::request(self.client(), bytes);
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
        self.now - begun
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
            assert!(stuck < 10_000, "time does not advance at {}", self.now);
            if next > end {
                self.now = end;
                return false;
            }
            self.now = self.now.max(next);
            let now = self.now;
            for hop in 0..self.lines.len() {
                while let Some(datagram) = self.lines[hop].up.poll_delivery(now) {
                    self.nodes[hop + 1].receive(now, address(hop), datagram.0);
                }
                while let Some(datagram) = self.lines[hop].down.poll_delivery(now) {
                    self.nodes[hop].receive(now, address(hop + 1), datagram.0);
                }
            }
            for connection in self.nodes.iter_mut().flat_map(Node::connections_mut) {
                if connection.poll_timeout().is_some_and(|(deadline, _)| deadline <= now) {
                    connection.handle_timeout(now);
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
                for (side, hop) in node.hops.iter_mut().enumerate() {
                    let Some((_, hop)) = hop else { continue };
                    let Some(transmit) = hop.poll_transmit(now, &mut buffer) else { continue };
                    is_busy = true;
                    let line = &mut self.lines[number + side - 1];
                    let way = if side == 1 { &mut line.up } else { &mut line.down };
                    line.sent[1 - side] += transmit.size as u64;
                    way.handle_packet(now, Datagram(buffer.clone()));
                }
                node.drain_events();
            }
        }
    }

    fn serve(&mut self) {
        let last = self.nodes.len() - 1;
        if let Some((_, server)) = &mut self.nodes[last].end {
            self.transfer.serve(server);
        }
        if let Some((_, client)) = &mut self.nodes[0].end {
            self.transfer.receive(client);
        }
    }
}

impl Node {
    fn connections(&self) -> impl Iterator<Item = &Connection> {
        self.hops.iter().chain([&self.end]).flatten().map(|(_, connection)| connection)
    }

    fn connections_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.hops.iter_mut().chain([&mut self.end]).flatten().map(|(_, connection)| connection)
    }

    /// A datagram arrives over the network.
    fn receive(&mut self, now: Instant, remote: SocketAddr, mut datagram: Vec<u8>) {
        let network = NetworkPath { local: None, remote };
        match self.endpoint.handle_datagram(now, network, None, &datagram) {
            DatagramOutcome::Connection(handle) => {
                let hop = self.hops.iter_mut().flatten().find(|(other, _)| *other == handle);
                if let Some((_, hop)) = hop {
                    hop.handle_datagram(now, network, None, &mut datagram);
                }
            }
            DatagramOutcome::Incoming(incoming) if self.hops[0].is_none() => {
                self.hops[0] = self.endpoint.accept(now, *incoming);
            }
            _ => {}
        }
    }

    /// Hands on what the hops have received, and what the end-to-end connection has to send.
    fn pass_on(&mut self, now: Instant) {
        for hop in self.hops.iter_mut().flatten() {
            hop.1.on_relay_progress(now);
        }
        let Some((_, hop)) = self.hops.iter_mut().flatten().next() else { return };
        let network = NetworkPath { local: None, remote: relayed_address(1) };
        while let Some(mut datagram) = hop.receive_relayed() {
            match self.endpoint.handle_datagram(now, network, None, &datagram) {
                DatagramOutcome::Connection(handle) => {
                    if let Some((_, end)) = self.end.as_mut().filter(|(other, _)| *other == handle) {
                        end.handle_datagram(now, network, None, &mut datagram);
                    }
                }
                DatagramOutcome::Incoming(incoming) if self.end.is_none() => {
                    self.end = self.endpoint.accept(now, *incoming);
                }
                DatagramOutcome::Answer(answer) => {
                    let _ = hop.send_relayed(now, &answer);
                }
                _ => {}
            }
        }
        let Some((_, end)) = &mut self.end else { return };
        let mut buffer = Vec::new();
        end.set_hop_room(1, hop.relayed_room());
        while end.poll_transmit(now, &mut buffer).is_some() {
            let _ = hop.send_relayed(now, &buffer);
            end.set_hop_room(1, hop.relayed_room());
        }
    }

    fn drain_events(&mut self) {
        let Self { endpoint, hops, end } = self;
        for (handle, connection) in hops.iter_mut().chain([end]).flatten() {
            while let Some(event) = connection.poll_endpoint_event() {
                endpoint.handle_event(*handle, event);
            }
            while let Some(event) = connection.poll_event() {
                if let Event::Closed(error) = event {
                    panic!("{error}");
                }
            }
        }
    }
}
