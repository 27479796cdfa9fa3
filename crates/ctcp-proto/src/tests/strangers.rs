//! How long honest clients wait during a flood of first packets.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use ctcp_base::{Instant, Prng};

use crate::crypto::FirstPacketKey;
use crate::wire::{LongHeader, LongPacket};
use crate::{
    ClientPolicy, Connection, ConnectionHandle, ConnectionId, DatagramOutcome, Endpoint, EndpointConfig,
    NetworkPath, PublicKey, SecretKey, TransportConfig,
};

/// Interval of attackers' first packets: 10,000 per second.
const KNOCK: Duration = Duration::from_micros(100);
/// Interval of honest clients.
const CLIENT: Duration = Duration::from_millis(25);
/// Delay of an honest client's packets in each direction.
const DELAY: Duration = Duration::from_millis(20);
const FLOOD: Duration = Duration::from_secs(6);

/// The kind of first packets that attackers send.
#[derive(Clone, Copy)]
enum Strangers {
    /// They do not know the server's public key.
    Ignorant,
    /// They know it.
    Informed,
    /// They have valid first messages, too, and never send the parts.
    Incomplete,
}

/// An attacker who receives at its source address and returns with a cookie if it gets one.
struct Stranger {
    path: NetworkPath,
    id: ConnectionId,
    token: Vec<u8>,
    /// A first message that opens.
    message: Vec<u8>,
}

impl Stranger {
    fn new(strangers: Strangers, index: u32) -> Self {
        let [_, a, b, c] = index.wrapping_mul(0x009e_3779).to_be_bytes();
        let remote = SocketAddr::from(([20 + c % 128, b, a, 9], 4_000));
        let id = ConnectionId::new(&u64::from(index).to_be_bytes()).expect("8 bytes");
        let path = NetworkPath { local: None, remote };
        if !matches!(strangers, Strangers::Incomplete) {
            return Self { path, id, token: Vec::new(), message: Vec::new() };
        }
        let (_, mut connection) = connecting(Instant::from_secs(1), index ^ 0xffff_0000);
        let mut initiate = Vec::new();
        connection.poll_transmit(Instant::from_secs(1), &mut initiate).expect("an INITIATE");
        let Ok(LongPacket::Initiate { header, message, .. }) = LongPacket::parse(&initiate) else {
            panic!("an INITIATE")
        };
        Self { path, id: header.source, token: Vec::new(), message: message.to_vec() }
    }

    fn first_packet(&self, strangers: Strangers, server: &PublicKey, prng: &mut Prng) -> Vec<u8> {
        let destination = ConnectionId::new(&prng.next_u64().to_be_bytes()).expect("8 bytes");
        let header = LongHeader { destination, source: self.id };
        let mut message = self.message.clone();
        if message.is_empty() {
            message.resize(200, 0);
            prng.fill(&mut message);
        }
        let mut datagram = Vec::new();
        LongPacket::Initiate { header, token: &self.token, message: &message }.write(&mut datagram);
        if !matches!(strangers, Strangers::Ignorant) {
            FirstPacketKey::new(server).write_tag(&mut datagram);
        }
        datagram
    }

    fn handle_answer(&mut self, answer: &[u8]) {
        if let Ok(LongPacket::Cookie { token, .. }) = LongPacket::parse(answer) {
            self.token = token.to_vec();
        }
    }
}

/// A client that begins to connect.
fn connecting(now: Instant, index: u32) -> (Endpoint, Connection) {
    let mut seed = [7; 32];
    seed[..4].copy_from_slice(&index.to_be_bytes());
    let mut endpoint = Endpoint::new(EndpointConfig::client(SecretKey::from_bytes([1; 32])), seed);
    let (to, key) = (SocketAddr::from(([192, 0, 2, 2], 2_000)), SecretKey::from_bytes([2; 32]).public_key());
    let (_, connection) =
        endpoint.connect(now, to, key, TransportConfig::default()).expect("a valid configuration");
    (endpoint, connection)
}

/// An honest client during its handshake.
struct Client {
    path: NetworkPath,
    began: Instant,
    endpoint: Endpoint,
    connection: Connection,
    waited: Option<Duration>,
}

/// Datagrams in flight, from or to the client with this index.
type Wire = VecDeque<(Instant, usize, Vec<u8>)>;

fn pop_due(wire: &mut Wire, now: Instant) -> Option<(Instant, usize, Vec<u8>)> {
    wire.front().is_some_and(|(due, ..)| *due <= now).then(|| wire.pop_front())?
}

struct Scene {
    now: Instant,
    server: Endpoint,
    server_key: PublicKey,
    connections: BTreeMap<ConnectionHandle, (usize, Connection)>,
    clients: Vec<Client>,
    to_server: Wire,
    to_client: Wire,
}

impl Scene {
    fn new() -> Self {
        let (client, server) = (SecretKey::from_bytes([1; 32]), SecretKey::from_bytes([2; 32]));
        let listed = ClientPolicy::Listed([client.public_key()].into_iter().collect());
        Self {
            now: Instant::from_secs(1),
            server_key: server.public_key(),
            server: Endpoint::new(EndpointConfig::server(server, listed), [4; 32]),
            connections: BTreeMap::new(),
            clients: Vec::new(),
            to_server: VecDeque::new(),
            to_client: VecDeque::new(),
        }
    }

    fn add_client(&mut self) {
        let index = self.clients.len() as u32;
        let address = IpAddr::from([160 + (index % 32) as u8, (index / 32) as u8, 1, 1]);
        let path = NetworkPath { local: None, remote: SocketAddr::new(address, 5_000) };
        let (endpoint, connection) = connecting(self.now, index);
        self.clients.push(Client { path, began: self.now, endpoint, connection, waited: None });
    }

    /// Delivers a datagram to the server. Returns its stateless answer, if any.
    fn deliver(&mut self, path: NetworkPath, from: usize, mut datagram: Vec<u8>) -> Option<Vec<u8>> {
        match self.server.handle_datagram(self.now, path, None, &datagram) {
            DatagramOutcome::Answer(answer) => return Some(answer),
            DatagramOutcome::Incoming(incoming) => {
                let (handle, connection) = self.server.accept(self.now, *incoming)?;
                self.connections.insert(handle, (from, connection));
                self.drain(handle);
            }
            DatagramOutcome::Connection(handle) => {
                let (_, connection) = self.connections.get_mut(&handle)?;
                connection.handle_datagram(self.now, path, None, &mut datagram);
                self.drain(handle);
            }
            DatagramOutcome::Dropped(_) => {}
        }
        None
    }

    fn drain(&mut self, handle: ConnectionHandle) {
        let Some((client, connection)) = self.connections.get_mut(&handle) else { return };
        let mut buffer = Vec::new();
        while connection.poll_transmit(self.now, &mut buffer).is_some() {
            self.to_client.push_back((self.now + DELAY, *client, buffer.clone()));
        }
        while let Some(event) = connection.poll_endpoint_event() {
            self.server.handle_event(handle, event);
        }
    }

    /// Processes everything of the honest clients that is due.
    fn advance(&mut self) {
        let now = self.now;
        self.server.handle_timeout(now);
        for (index, client) in self.clients.iter_mut().enumerate().filter(|(_, one)| one.waited.is_none()) {
            if client.connection.poll_timeout().is_some_and(|(deadline, _)| deadline <= now) {
                client.connection.handle_timeout(now);
            }
            if client.connection.is_connected() {
                client.waited = Some(now - client.began);
            }
            let mut buffer = Vec::new();
            while client.connection.poll_transmit(now, &mut buffer).is_some() {
                self.to_server.push_back((now + DELAY, index, buffer.clone()));
            }
        }
        while let Some((_, index, datagram)) = pop_due(&mut self.to_server, now) {
            let path = self.clients[index].path;
            if let Some(answer) = self.deliver(path, index, datagram) {
                self.to_client.push_back((now + DELAY, index, answer));
            }
        }
        while let Some((_, index, mut datagram)) = pop_due(&mut self.to_client, now) {
            let client = &mut self.clients[index];
            let path = NetworkPath { local: None, remote: SocketAddr::from(([192, 0, 2, 2], 2_000)) };
            if let DatagramOutcome::Connection(_) =
                client.endpoint.handle_datagram(now, path, None, &datagram)
            {
                client.connection.handle_datagram(now, path, None, &mut datagram);
            }
        }
    }
}

/// The time within which 95 % of honest clients connect while attackers from this many networks send 10,000 first packets per second;
/// `None` if it is longer than this test lasts.
fn wait_at_95_percent(strangers: Strangers, networks: u32) -> Option<Duration> {
    let mut scene = Scene::new();
    let mut prng = Prng::new(1);
    let mut crowd: Vec<Stranger> = (0..networks).map(|index| Stranger::new(strangers, index)).collect();
    let begin = scene.now;
    let mut next_client = begin;
    for knock in 0..(FLOOD.as_micros() / KNOCK.as_micros()) as usize {
        scene.now = begin + KNOCK * knock as u32;
        let index = knock % crowd.len();
        let datagram = crowd[index].first_packet(strangers, &scene.server_key, &mut prng);
        if let Some(answer) = scene.deliver(crowd[index].path, usize::MAX, datagram) {
            crowd[index].handle_answer(&answer);
        }
        if knock % 10 != 0 {
            continue;
        }
        // The last clients have two seconds.
        if scene.now >= next_client && scene.now + Duration::from_secs(2) < begin + FLOOD {
            next_client = scene.now + CLIENT;
            scene.add_client();
        }
        scene.advance();
    }
    let mut waits: Vec<Duration> =
        scene.clients.iter().map(|client| client.waited.unwrap_or(Duration::MAX)).collect();
    waits.sort_unstable();
    let wait = waits[waits.len() * 95 / 100];
    println!(
        "{networks} networks: 50 % {:?}, 95 % {wait:?}, never {} of {}",
        waits[waits.len() / 2],
        waits.iter().filter(|wait| **wait == Duration::MAX).count(),
        waits.len(),
    );
    (wait < Duration::MAX).then_some(wait)
}

fn assert_soon(strangers: Strangers, networks: u32) {
    let wait = wait_at_95_percent(strangers, networks);
    assert!(wait.is_some_and(|wait| wait < Duration::from_secs(1)), "{networks} networks: {wait:?}");
}

#[test]
fn garbage_from_a_thousand_networks_keeps_no_honest_client_out() {
    assert_soon(Strangers::Ignorant, 1_000);
}

#[test]
fn garbage_from_a_hundred_networks_keeps_no_honest_client_out() {
    assert_soon(Strangers::Ignorant, 100);
}

#[test]
fn a_thousand_networks_that_know_the_public_key_keep_no_honest_client_out() {
    assert_soon(Strangers::Informed, 1_000);
}

#[test]
fn a_hundred_networks_that_know_the_public_key_keep_no_honest_client_out() {
    assert_soon(Strangers::Informed, 100);
}

#[test]
fn a_thousand_networks_that_never_send_their_parts_keep_no_honest_client_out() {
    assert_soon(Strangers::Incomplete, 1_000);
}
