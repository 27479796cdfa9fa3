//! The cost of the most expensive packets for a server, from the datagram to the replies it causes, without a socket.

use core::time::Duration;

use ctcp_base::Instant;
use ctcp_proto::wire::{Combination, Frame};
use ctcp_proto::{
    ClientPolicy, Connection, ContextId, DatagramOutcome, Endpoint, EndpointConfig, NetworkPath, SecretKey,
    TransportConfig,
};

use crate::attacker::{self, Attack};

/// A client and a server in memory.
struct Pair {
    client: Connection,
    server: Connection,
    now: Instant,
    from_client: NetworkPath,
}

fn endpoints() -> (Endpoint, Endpoint, SecretKey) {
    let key = SecretKey::from_bytes([2; 32]);
    let server = EndpointConfig::server(key.clone(), ClientPolicy::Any);
    let client = EndpointConfig::client(SecretKey::from_bytes([1; 32]));
    (Endpoint::new(client, [3; 32]), Endpoint::new(server, [4; 32]), key)
}

impl Pair {
    fn connect() -> Self {
        let (mut client_end, mut server_end, key) = endpoints();
        let addresses = ["192.0.2.1:1000", "192.0.2.2:2000"].map(|address| address.parse().unwrap());
        let [from_client, from_server] = addresses.map(|remote| NetworkPath { local: None, remote });
        let now = Instant::from_secs(1);
        let transport = TransportConfig::default();
        let (_, mut client) = client_end
            .connect(now, addresses[1], key.public_key(), transport)
            .expect("a valid configuration");
        let mut server: Option<Connection> = None;
        let mut buffer = Vec::new();
        for _ in 0..8 {
            while client.poll_transmit(now, &mut buffer).is_some() {
                let mut datagram = buffer.clone();
                match server_end.handle_datagram(now, from_client, None, &datagram) {
                    DatagramOutcome::Incoming(incoming) => {
                        server = server_end.accept(now, *incoming).map(|(_, server)| server).or(server);
                    }
                    DatagramOutcome::Connection(_) => {
                        let server = server.as_mut().expect("the server accepted it");
                        server.handle_datagram(now, from_client, None, &mut datagram);
                    }
                    DatagramOutcome::Answer(mut answer) => {
                        client.handle_datagram(now, from_server, None, &mut answer);
                    }
                    DatagramOutcome::Dropped(_) => {}
                }
            }
            while let Some(server) = &mut server
                && server.poll_transmit(now, &mut buffer).is_some()
            {
                client.handle_datagram(now, from_server, None, &mut buffer.clone());
            }
        }
        assert!(client.is_connected());
        Self { client, server: server.expect("the server accepted it"), now, from_client }
    }

    /// How long the server works on a packet with these frames.
    #[expect(clippy::disallowed_methods, reason = "a measurement has a clock")]
    fn cost(&mut self, frames: &[Frame<'_>]) -> Duration {
        // Slow enough that every packet is acknowledged.
        self.now += Duration::from_millis(6);
        let mut datagram = self.client.forge(self.now, frames);
        let mut buffer = Vec::new();
        let begun = std::time::Instant::now();
        self.server.handle_datagram(self.now, self.from_client, None, &mut datagram);
        while self.server.poll_event().is_some() {}
        self.server.handle_timeout(self.now);
        while self.server.poll_transmit(self.now, &mut buffer).is_some() {}
        let cost = begun.elapsed();
        assert!(self.server.is_connected(), "the attack stays within the rules of the wire");
        cost
    }
}

/// Fewer streams than a client may open initially.
const STREAMS: u64 = 32;

/// Grants credit and nothing else, for as many streams as fit a packet.
fn credits(number: u64, send: &mut dyn FnMut(&[Frame<'_>])) {
    let id = |index: u64| ctcp_proto::StreamId(4 * ((number * 97 + index * 13) % STREAMS));
    let frames: Vec<_> =
        (0..100).map(|index| Frame::MaxStreamData { id: id(index), credit: 1 << 40 }).collect();
    send(&frames);
}

/// Symbols full of one-byte frames, each of another stream.
fn crumbs(number: u64, send: &mut dyn FnMut(&[Frame<'_>])) {
    let mut content = vec![0, 0];
    for index in 0..200 {
        let id = 4 * ((number * 97 + index * 13) % STREAMS);
        content.extend([0b0000_1110, 0x40 | (id >> 8) as u8, id as u8]);
        // Every second byte of the stream, so nothing can ever be read.
        let offset = 1 + 2 * number;
        content.extend([0x40 | (offset >> 8) as u8, offset as u8, 1, 7]);
        if content.len() > 1_100 {
            break;
        }
    }
    let length = (content.len() - 2) as u16;
    content[..2].copy_from_slice(&length.to_be_bytes());
    send(&[Frame::Combination(
        ContextId::Streams,
        Combination::Source { index: number, floor: number, symbol: &content },
    )]);
}

/// First pieces of ever new combinations that are never completed.
fn pieces(number: u64, send: &mut dyn FnMut(&[Frame<'_>])) {
    let key = number as u16;
    let piece = [7; 1_000];
    send(&[Frame::Combination(
        ContextId::Streams,
        Combination::Segment {
            first: 0,
            length: 256,
            density: 15,
            key,
            floor: 0,
            offset: 0,
            total: 1_440,
            piece: &piece,
        },
    )]);
}

/// The longest chain that the code of a sliding window links, whatever the profile.
const LINKED: u64 = 768;

fn row(context: ContextId, first: u64, key: u64, floor: u64, payload: &[u8]) -> Frame<'_> {
    let key = key as u16;
    Frame::Combination(context, Combination::Coded { first, length: 256, density: 15, key, floor, payload })
}

/// Many rows in the context of small writes, followed by combinations that must be reduced by all of them.
fn small_eliminations(number: u64, send: &mut dyn FnMut(&[Frame<'_>])) {
    let first = if number < LINKED { number } else { number * 7 % LINKED };
    send(&[row(ContextId::Interactive, first, number, 0, &[])]);
}

/// Many rows in the context of messages, of which each further one gives up the first symbol.
fn expiries(number: u64, send: &mut dyn FnMut(&[Frame<'_>])) {
    let payload: &[u8] = if number == 0 { &[0; 1_100] } else { &[] };
    let floor = (number + 1).saturating_sub(LINKED);
    send(&[row(ContextId::Messages, number, number, floor, payload)]);
}

fn pings(_: u64, send: &mut dyn FnMut(&[Frame<'_>])) {
    send(&vec![Frame::Ping; 1_100]);
}

#[test]
fn no_packet_costs_more_than_its_bound() {
    let attacks: [(&str, Attack, u64); 10] = [
        ("reports", attacker::reports, 4_000),
        ("eliminations", attacker::eliminations, 4_000),
        ("tails", attacker::tails, 2_000),
        ("small eliminations", small_eliminations, 1_800),
        ("expiries", expiries, 1_000),
        ("solutions", attacker::solutions, 256 * 16),
        ("credits", credits, 2_000),
        ("crumbs", crumbs, 500),
        ("pieces", pieces, 2_000),
        ("pings", pings, 2_000),
    ];
    for (name, attack, count) in attacks {
        // The minimum of three identical runs: other work on the machine only adds to a run.
        let mut costs = vec![Duration::MAX; count as usize];
        for _ in 0..3 {
            let mut pair = Pair::connect();
            for (number, least) in (0..count).zip(&mut costs) {
                attack(number, &mut |frames| *least = pair.cost(frames).min(*least));
            }
        }
        let (sum, most) = (costs.iter().sum::<Duration>(), costs.iter().max());
        let mean = sum / count as u32;
        println!("{name}: {mean:?} a packet on average, {:?} at most, {count} packets", most.unwrap());
        // Five times the cost on a slow machine.
        assert!(mean < Duration::from_micros(500), "{name}: {mean:?}");
        // The slowest packet, of which three identical runs kept the shortest time.
        assert!(*most.unwrap() < Duration::from_millis(50), "{name}: {most:?}");
    }
}
