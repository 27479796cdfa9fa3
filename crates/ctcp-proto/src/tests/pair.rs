//! Two endpoints connected by an emulated link, in virtual time.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::BTreeMap;

use ctcp_base::{Instant, Prng};
use ctcp_netem::{Link, LinkConfig, Packet};

use crate::{
    ClientPolicy, Connection, ConnectionHandle, DatagramOutcome, Ecn, Endpoint, EndpointConfig, Event, Grant,
    NetworkPath, SecretKey, TransportConfig,
};

const CLIENT: &str = "192.0.2.1:1000";
const SERVER: &str = "192.0.2.2:2000";

pub(super) struct Side {
    pub(super) endpoint: Endpoint,
    pub(super) connections: BTreeMap<ConnectionHandle, Connection>,
    pub(super) events: Vec<(ConnectionHandle, Event)>,
    pub(super) address: SocketAddr,
}

pub(super) struct Pair {
    pub(super) now: Instant,
    pub(super) client: Side,
    pub(super) server: Side,
    to_server: Link<Datagram>,
    to_client: Link<Datagram>,
    pub(super) server_key: crate::PublicKey,
    /// The network drops larger datagrams.
    pub(super) datagram_size_max: usize,
    /// What the network does to the codepoint of datagrams to the server; `None` drops the datagram.
    pub(super) recoding: fn(u64, Ecn) -> Option<Ecn>,
    /// Which datagrams, to the server or to the client, the network drops.
    pub(super) drops: Option<Drops>,
    /// Number of datagrams to the server with each codepoint: not capable, ECT(0), others.
    pub(super) sent: [u64; 3],
}

/// The direction, true to the server, and which of its datagrams.
pub(super) type Drops = (bool, fn(&[u8]) -> bool);

#[derive(Clone)]
struct Datagram {
    source: SocketAddr,
    destination: SocketAddr,
    ecn: Option<Ecn>,
    bytes: Vec<u8>,
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

impl Pair {
    pub(super) fn new(link: LinkConfig, transport: TransportConfig, seed: u64) -> Self {
        Self::granting(Grant::default(), link, transport, seed)
    }

    pub(super) fn granting(grant: Grant, link: LinkConfig, transport: TransportConfig, seed: u64) -> Self {
        let client_key = SecretKey::from_bytes([1; 32]);
        let server_key = SecretKey::from_bytes([2; 32]);
        let public = server_key.public_key();
        let listed = [client_key.public_key()].into_iter().collect();
        let mut server = EndpointConfig::server(server_key, ClientPolicy::Listed(listed));
        (server.transport, server.grant) = (transport, grant);
        let prng = Prng::new(seed);
        let side = |config, byte, address: &str| Side {
            endpoint: Endpoint::new(config, [byte; 32]),
            connections: BTreeMap::new(),
            events: Vec::new(),
            address: address.parse().expect("an address"),
        };
        Self {
            now: Instant::from_secs(1),
            client: side(EndpointConfig::client(client_key), 3, CLIENT),
            server: side(server, 4, SERVER),
            to_server: Link::new(link.clone(), prng.fork("to server")),
            to_client: Link::new(link, prng.fork("to client")),
            server_key: public,
            datagram_size_max: usize::MAX,
            recoding: |_, ecn| Some(ecn),
            drops: None,
            sent: [0; 3],
        }
    }

    pub(super) fn connect(&mut self, transport: TransportConfig) -> ConnectionHandle {
        let (handle, connection) = self
            .client
            .endpoint
            .connect(self.now, self.server.address, self.server_key, transport)
            .expect("a valid configuration");
        self.client.connections.insert(handle, connection);
        handle
    }

    /// Runs until `done` returns true or `limit` has passed. Returns whether it is done.
    pub(super) fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let end = self.now + limit;
        let mut stuck = 0;
        loop {
            self.flush();
            if done(self) {
                return true;
            }
            self.flush();
            let next = [
                self.to_server.poll_timeout(),
                self.to_client.poll_timeout(),
                self.client.next_timeout(),
                self.server.next_timeout(),
            ];
            let Some(next) = next.into_iter().flatten().min() else { return false };
            stuck = if next <= self.now { stuck + 1 } else { 0 };
            assert!(stuck < 10_000, "time does not advance at {}: {:?}", self.now, self.timers());
            if next > end {
                self.now = end;
                return false;
            }
            self.now = self.now.max(next);
            while let Some(mut datagram) = self.to_server.poll_delivery(self.now) {
                let ecn = datagram.ecn.unwrap_or(Ecn::NotCapable);
                self.sent[(ecn as usize).min(2)] += 1;
                if self.drops.is_some_and(|(to_server, is_hit)| to_server && is_hit(&datagram.bytes)) {
                    continue;
                }
                let Some(recoded) = (self.recoding)(self.sent.iter().sum(), ecn) else { continue };
                datagram.ecn = Some(recoded);
                let client = datagram.source;
                if let Some(bytes) = self.server.receive(self.now, datagram) {
                    let answer =
                        Datagram { source: self.server.address, destination: client, ecn: None, bytes };
                    self.to_client.handle_packet(self.now, answer);
                }
            }
            while let Some(datagram) = self.to_client.poll_delivery(self.now) {
                if self.drops.is_some_and(|(to_server, is_hit)| !to_server && is_hit(&datagram.bytes)) {
                    continue;
                }
                self.client.receive(self.now, datagram);
            }
            self.client.handle_timeouts(self.now);
            self.server.handle_timeouts(self.now);
        }
    }

    fn flush(&mut self) {
        self.client.flush(self.now, self.datagram_size_max, &mut self.to_server);
        self.server.flush(self.now, self.datagram_size_max, &mut self.to_client);
    }

    pub(super) fn client_connection(&mut self) -> &mut Connection {
        self.client.connections.values_mut().next().expect("a connection")
    }

    pub(super) fn server_connection(&mut self) -> Option<&mut Connection> {
        self.server.connections.values_mut().next()
    }

    fn timers(&self) -> Vec<Option<(Instant, crate::TimerKind)>> {
        let all = self.client.connections.values().chain(self.server.connections.values());
        all.map(Connection::poll_timeout).collect()
    }
}

impl Side {
    /// The datagrams that this side's first connection sends now.
    pub(super) fn first_flight(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let connection = self.connections.values_mut().next().expect("a connection");
        let mut buffer = Vec::new();
        core::iter::from_fn(|| connection.poll_transmit(now, &mut buffer).map(|_| buffer.clone())).collect()
    }

    fn flush(&mut self, now: Instant, size_max: usize, link: &mut Link<Datagram>) {
        let mut buffer = Vec::new();
        for (&handle, connection) in &mut self.connections {
            while let Some(transmit) = connection.poll_transmit(now, &mut buffer) {
                let (source, destination) = (self.address, transmit.destination);
                if buffer.len() <= size_max {
                    let (ecn, bytes) = (transmit.ecn, buffer.clone());
                    link.handle_packet(now, Datagram { source, destination, ecn, bytes });
                }
            }
            while let Some(event) = connection.poll_event() {
                self.events.push((handle, event));
            }
            while let Some(event) = connection.poll_endpoint_event() {
                self.endpoint.handle_event(handle, event);
            }
        }
        while let Some((handle, reason)) = self.endpoint.poll_close() {
            if let Some(connection) = self.connections.get_mut(&handle) {
                connection.close_for(now, &reason);
            }
        }
    }

    /// Processes a datagram. Returns the stateless answer, if any.
    fn receive(&mut self, now: Instant, mut datagram: Datagram) -> Option<Vec<u8>> {
        if datagram.destination != self.address {
            return None;
        }
        let network_path = NetworkPath { local: None, remote: datagram.source };
        match self.endpoint.handle_datagram(now, network_path, datagram.ecn, &datagram.bytes) {
            DatagramOutcome::Connection(handle) => {
                if let Some(connection) = self.connections.get_mut(&handle) {
                    connection.handle_datagram(now, network_path, datagram.ecn, &mut datagram.bytes);
                }
            }
            DatagramOutcome::Incoming(incoming) => {
                if let Some((handle, connection)) = self.endpoint.accept(now, *incoming) {
                    self.connections.insert(handle, connection);
                }
            }
            DatagramOutcome::Answer(answer) => return Some(answer),
            DatagramOutcome::Dropped(_) => {}
        }
        None
    }

    fn handle_timeouts(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        for connection in self.connections.values_mut() {
            if connection.poll_timeout().is_some_and(|(deadline, _)| deadline <= now) {
                connection.handle_timeout(now);
            }
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.connections
            .values()
            .filter_map(|connection| connection.poll_timeout())
            .map(|(time, _)| time)
            .min()
    }
}
