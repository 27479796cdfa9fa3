//! A client and a server joined by several paths, in virtual time. The client has an address on each path.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::BTreeSet;

use ctcp_base::{Instant, Prng, Probability, Rate};
use ctcp_netem::{Link, LinkConfig, LossModel, Packet, QueueLimit};

use super::transfer::Transfer;
use crate::{
    ClientPolicy, Connection, ConnectionHandle, ConnectionId, DatagramOutcome, Endpoint, EndpointConfig,
    Event, NetworkPath, PREFERENCE_OF_FIRST, PathId, SecretKey, StreamId, TransportConfig,
};

/// Both directions of a path.
pub(super) struct Line {
    pub(super) client: SocketAddr,
    up: Link<Datagram>,
    down: Link<Datagram>,
    /// Nothing arrives.
    pub(super) is_cut: bool,
    /// The connection ids of the packets sent on it after the handshake.
    pub(super) ids: BTreeSet<Vec<u8>>,
}

#[derive(Clone)]
struct Datagram {
    bytes: Vec<u8>,
    /// The client's address: where it was sent from, or where it is sent to.
    client: SocketAddr,
}

impl AsRef<[u8]> for Datagram {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl AsMut<[u8]> for Datagram {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Packet for Datagram {}

impl Line {
    fn note_id(&mut self, datagram: &[u8]) {
        let is_short = datagram.first().is_some_and(|first| first & 0x80 == 0);
        self.ids.extend(datagram.get(1..=ConnectionId::LOCAL).filter(|_| is_short).map(<[u8]>::to_vec));
    }
}

/// The conditions of a line, the same in both directions.
#[derive(Clone, Copy)]
pub(super) struct Conditions {
    pub(super) megabits: f64,
    pub(super) rtt_ms: u64,
    pub(super) loss: f64,
    /// The mean length of a burst of losses; 1 if they are independent.
    pub(super) burst: f64,
}

impl Conditions {
    pub(super) fn link(self) -> LinkConfig {
        let delay = Duration::from_millis(self.rtt_ms) / 2;
        let packets = self.megabits * 1e6 * self.rtt_ms as f64 / 1e3 / (8.0 * 1_500.0);
        LinkConfig {
            rate: Rate::from_bits_per_second((self.megabits * 1e6) as u64),
            delay,
            loss: self.losses(),
            queue: QueueLimit::Packets((packets as u64).max(20)),
            overhead: 28,
            ..LinkConfig::default()
        }
    }
}

impl Conditions {
    pub(super) const fn new(megabits: f64, rtt_ms: u64, loss: f64) -> Self {
        Self { megabits, rtt_ms, loss, burst: 1.0 }
    }

    fn losses(self) -> LossModel {
        let loss = Probability::new(self.loss).expect("a probability");
        if self.burst > 1.0 {
            LossModel::bursts(loss, self.burst).expect("a possible loss")
        } else {
            LossModel::Bernoulli(loss)
        }
    }
}

pub(super) struct Several {
    pub(super) now: Instant,
    pub(super) client: Connection,
    pub(super) server: Option<Connection>,
    pub(super) lines: Vec<Line>,
    pub(super) client_events: Vec<Event>,
    /// The client's process does not run; what arrives is lost.
    pub(super) is_suspended: bool,
    /// Where a stranger sits who repeats each packet of the client, faster than the client's own arrives.
    pub(super) stranger: Option<SocketAddr>,
    /// Bytes that the stranger has sent to the server and received from it.
    pub(super) strangers_bytes: (usize, usize),
    ends: (Endpoint, Endpoint),
    handles: (ConnectionHandle, Option<ConnectionHandle>),
    server_address: SocketAddr,
    transfer: Transfer,
}

impl Several {
    /// Connects over the first line.
    pub(super) fn new(conditions: &[Conditions], seed: u64) -> Self {
        Self::with_config(conditions, seed, TransportConfig::default())
    }

    /// The same with a configuration of the client.
    pub(super) fn with_config(conditions: &[Conditions], seed: u64, config: TransportConfig) -> Self {
        Self::with_configs(conditions, seed, config, TransportConfig::default())
    }

    /// The same with configurations of the client and the server.
    pub(super) fn with_configs(
        conditions: &[Conditions],
        seed: u64,
        config: TransportConfig,
        of_server: TransportConfig,
    ) -> Self {
        let (client_key, server_key) = (SecretKey::from_bytes([1; 32]), SecretKey::from_bytes([2; 32]));
        let public = server_key.public_key();
        let server = EndpointConfig::server(server_key, ClientPolicy::Any);
        let server = EndpointConfig { transport: of_server, ..server };
        let mut ends =
            (Endpoint::new(EndpointConfig::client(client_key), [3; 32]), Endpoint::new(server, [4; 32]));
        let prng = Prng::new(seed);
        let line = |(index, conditions): (usize, &Conditions)| Line {
            client: SocketAddr::from(([10, 0, index as u8, 1], 1000)),
            up: Link::new(conditions.link(), prng.fork(&format!("up {index}"))),
            down: Link::new(conditions.link(), prng.fork(&format!("down {index}"))),
            is_cut: false,
            ids: BTreeSet::new(),
        };
        let server_address = SocketAddr::from(([192, 0, 2, 2], 2000));
        let now = Instant::from_secs(1);
        let (handle, client) =
            ends.0.connect(now, server_address, public, config).expect("a valid configuration");
        let lines = conditions.iter().enumerate().map(line).collect();
        Self {
            now,
            client,
            server: None,
            lines,
            client_events: Vec::new(),
            is_suspended: false,
            stranger: None,
            strangers_bytes: (0, 0),
            ends,
            handles: (handle, None),
            server_address,
            transfer: Transfer::default(),
        }
    }

    /// Connects and opens a path over each line.
    pub(super) fn with_all_paths(conditions: &[Conditions], seed: u64) -> Self {
        Self::with_all_paths_of(conditions, seed, TransportConfig::default())
    }

    /// The same with a configuration of the client.
    pub(super) fn with_all_paths_of(conditions: &[Conditions], seed: u64, config: TransportConfig) -> Self {
        let mut several = Self::with_config(conditions, seed, config);
        assert!(several.run(Duration::from_secs(30), |several| several.client.is_connected()));
        for index in 1..conditions.len() {
            several.add_path(index).expect("room for a path");
        }
        several
    }

    pub(super) fn add_path(&mut self, index: usize) -> Result<PathId, crate::PathError> {
        let local = Some(self.lines[index].client.ip());
        self.client.add_path(
            self.now,
            NetworkPath { local, remote: self.server_address },
            PREFERENCE_OF_FIRST + index as u8,
        )
    }

    /// Asks for so many bytes.
    pub(super) fn request(&mut self, bytes: u64) {
        self.transfer = Transfer::request(self.now, &mut self.client, bytes);
    }

    /// Bytes that the client has read.
    pub(super) fn bytes_read(&self) -> u64 {
        self.transfer.read
    }

    /// Whether the server has accepted a stream of the client.
    pub(super) fn has_accepted(&self, stream: StreamId) -> bool {
        self.transfer.serving == Some(stream)
    }

    pub(super) fn is_done(&self) -> bool {
        self.transfer.is_whole
    }

    /// How long the download of `bytes` takes.
    pub(super) fn download(&mut self, bytes: u64) -> Duration {
        let begun = self.now;
        self.request(bytes);
        assert!(self.run(Duration::from_secs(600), |several| several.is_done()), "the download ends");
        self.now - begun
    }

    /// Runs for a time and returns the longest part of it that a new byte ended.
    pub(super) fn longest_stall(&mut self, time: Duration) -> Duration {
        let (mut last, mut stall) = ((self.now, self.bytes_read()), Duration::ZERO);
        self.run(time, |several| {
            if several.bytes_read() > last.1 {
                stall = stall.max(several.now - last.0);
                last = (several.now, several.bytes_read());
            }
            false
        });
        stall
    }

    /// Runs until `done` returns true or `limit` has passed. Returns whether it is done.
    pub(super) fn run(&mut self, limit: Duration, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let end = self.now + limit;
        let mut stuck = 0;
        loop {
            self.serve();
            self.flush();
            if done(self) {
                return true;
            }
            self.flush();
            let client = Some(&self.client).filter(|_| !self.is_suspended);
            let sides = [client, self.server.as_ref()].into_iter().flatten();
            let timers = sides.filter_map(|side| side.poll_timeout()).map(|(time, _)| time);
            let lines = self.lines.iter();
            let links = lines.flat_map(|line| [line.up.poll_timeout(), line.down.poll_timeout()]);
            let Some(next) = timers.chain(links.flatten()).min() else { return false };
            stuck = if next <= self.now { stuck + 1 } else { 0 };
            let kinds = [self.client.poll_timeout(), self.server.as_ref().and_then(Connection::poll_timeout)];
            assert!(stuck < 10_000, "time does not advance at {}: {kinds:?}", self.now);
            if next > end {
                self.now = end;
                return false;
            }
            self.now = self.now.max(next);
            for index in 0..self.lines.len() {
                while let Some(datagram) = self.lines[index].up.poll_delivery(self.now) {
                    if !self.lines[index].is_cut {
                        self.receive_at_server(index, datagram.client, datagram.bytes);
                    }
                }
                while let Some(datagram) = self.lines[index].down.poll_delivery(self.now) {
                    // Nobody is at an address that the client has left.
                    if !self.lines[index].is_cut
                        && !self.is_suspended
                        && datagram.client == self.lines[index].client
                    {
                        self.receive_at_client(index, datagram.bytes);
                    }
                }
            }
            let now = self.now;
            let client = Some(&mut self.client).filter(|_| !self.is_suspended);
            for side in [client, self.server.as_mut()].into_iter().flatten() {
                if side.poll_timeout().is_some_and(|(deadline, _)| deadline <= now) {
                    side.handle_timeout(now);
                }
            }
        }
    }

    /// How many connection ids lead to the client and to the server.
    pub(super) fn routed_ids(&self) -> (usize, usize) {
        (self.ends.0.routed_ids(), self.ends.1.routed_ids())
    }

    /// The server's process is restarted: it has the same key, and knows no connection.
    pub(super) fn restart_server(&mut self) {
        let config = EndpointConfig::server(SecretKey::from_bytes([2; 32]), ClientPolicy::Any);
        self.ends.1 = Endpoint::new(config, [5; 32]);
        self.server = None;
    }

    /// A datagram arrives at the server, over a line.
    pub(super) fn receive_at_server(&mut self, index: usize, client: SocketAddr, mut datagram: Vec<u8>) {
        let network = NetworkPath { local: None, remote: client };
        match self.ends.1.handle_datagram(self.now, network, None, &datagram) {
            DatagramOutcome::Connection(_) => {
                if let Some(server) = &mut self.server {
                    server.handle_datagram(self.now, network, None, &mut datagram);
                }
            }
            // A late copy of the INITIATE: nobody will confirm it.
            DatagramOutcome::Incoming(_) if self.server.is_some() => {}
            DatagramOutcome::Incoming(incoming) => {
                if let Some((handle, server)) = self.ends.1.accept(self.now, *incoming) {
                    self.handles.1 = Some(handle);
                    self.server = Some(server);
                }
            }
            DatagramOutcome::Answer(answer) => {
                let datagram = Datagram { bytes: answer, client };
                self.lines[index].down.handle_packet(self.now, datagram);
            }
            DatagramOutcome::Dropped(_) => {}
        }
    }

    fn receive_at_client(&mut self, index: usize, mut datagram: Vec<u8>) {
        let local = Some(self.lines[index].client.ip());
        let network = NetworkPath { local, remote: self.server_address };
        if let DatagramOutcome::Connection(_) =
            self.ends.0.handle_datagram(self.now, network, None, &datagram)
        {
            self.client.handle_datagram(self.now, network, None, &mut datagram);
        }
    }

    fn flush(&mut self) {
        let mut buffer = Vec::new();
        while !self.is_suspended
            && let Some(transmit) = self.client.poll_transmit(self.now, &mut buffer)
        {
            // A system without this address sends from the one it has.
            let is_source = |line: &Line| transmit.source == Some(line.client.ip());
            let index = self.lines.iter().position(is_source).unwrap_or(0);
            let line = &mut self.lines[index];
            line.note_id(&buffer);
            line.up.handle_packet(self.now, Datagram { bytes: buffer.clone(), client: line.client });
            if let Some(stranger) = self.stranger {
                self.strangers_bytes.0 += buffer.len();
                self.receive_at_server(index, stranger, buffer.clone());
            }
        }
        while let Some(event) = self.client.poll_event() {
            self.client_events.push(event);
        }
        while let Some(event) = self.client.poll_endpoint_event() {
            self.ends.0.handle_event(self.handles.0, event);
        }
        while let Some(server) = &mut self.server
            && let Some(transmit) = server.poll_transmit(self.now, &mut buffer)
        {
            let datagram = Datagram { bytes: buffer.clone(), client: transmit.destination };
            if self.stranger == Some(transmit.destination) {
                self.strangers_bytes.1 += datagram.bytes.len();
            }
            if let Some(line) = self.lines.iter_mut().find(|line| line.client == transmit.destination) {
                line.note_id(&datagram.bytes);
                line.down.handle_packet(self.now, datagram);
            }
        }
        if let Some(server) = &mut self.server {
            while let Some(event) = server.poll_event() {
                assert!(!matches!(event, Event::Closed(_)), "{event:?}");
            }
            while let (Some(event), Some(handle)) = (server.poll_endpoint_event(), self.handles.1) {
                self.ends.1.handle_event(handle, event);
            }
        }
    }

    fn serve(&mut self) {
        if let Some(server) = &mut self.server {
            self.transfer.serve(self.now, server);
        }
        self.transfer.receive(&mut self.client);
    }
}
