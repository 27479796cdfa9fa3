//! A client with a valid key that sends what no honest client would, at a rate that any uplink has.

use core::time::Duration;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use ctcp_base::Instant;
use ctcp_proto::wire::{Combination, Frame};
use ctcp_proto::{
    Connection, ContextId, DatagramOutcome, Endpoint, EndpointConfig, NetworkPath, PublicKey, SecretKey,
    TransportConfig,
};

/// The attacker's rate in bit/s, with the headers of IP and UDP.
pub(crate) const RATE: u64 = 1_000_000;

/// IPv4 and UDP.
const HEADERS: usize = 28;

/// Sends the packet with the given number.
pub(crate) type Attack = fn(u64, &mut dyn FnMut(&[Frame<'_>]));

/// Combinations that create long rows; the last one moves the window's end far beyond them.
const ROWS: u64 = 768;

/// How many symbols a client may be ahead of the decoded ones at any server.
const WINDOW: u64 = 2_048;

fn coded(first: u64, length: u16, key: u64, payload: &[u8]) -> Frame<'_> {
    Frame::Combination(
        ContextId::Streams,
        Combination::Coded { first, length, density: 15, key: key as u16, floor: 0, payload },
    )
}

/// Sends a row for each symbol of a chain of ranges.
fn chain(number: u64, send: &mut dyn FnMut(&[Frame<'_>])) -> bool {
    match number {
        0..ROWS => send(&[coded(number, 256, number, &[])]),
        ROWS => send(&[coded(WINDOW - 256, 256, number, &[])]),
        _ => return false,
    }
    true
}

/// Many rows, followed by PINGs only: each makes the server report what is missing.
pub(crate) fn reports(number: u64, send: &mut dyn FnMut(&[Frame<'_>])) {
    if !chain(number, send) {
        send(&[Frame::Ping]);
    }
}

/// Many rows, followed by new combinations that must be reduced by all of them.
pub(crate) fn eliminations(number: u64, send: &mut dyn FnMut(&[Frame<'_>])) {
    if !chain(number, send) {
        send(&[coded(number * 7 % 1_000, 256, number, &[])]);
    }
}

/// Many rows, followed by symbols beyond their ends, each of which makes the decoder search for another end.
pub(crate) fn tails(number: u64, send: &mut dyn FnMut(&[Frame<'_>])) {
    if !chain(number, send) {
        let index = (ROWS + 255).saturating_sub(number % 1_000).max(1);
        send(&[Frame::Combination(ContextId::Streams, Combination::Source { index, floor: 0, symbol: &[] })]);
    }
}

/// Blocks of which only combinations arrive; the last one makes the server compute all symbols.
pub(crate) fn solutions(number: u64, send: &mut dyn FnMut(&[Frame<'_>])) {
    let (block, place) = (number / 256, number % 256);
    // One long payload makes all symbols long. Its content must be zeros (padding), because it belongs to no frame.
    let long = [0; 1_100];
    send(&[coded(block * 256, 256, place, if place == 0 { &long } else { &[] })]);
}

/// A running attack. It ends when this is dropped.
pub(crate) struct Attacker {
    ends: Arc<AtomicBool>,
    packets: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Attacker {
    pub(crate) fn start(server: SocketAddr, server_key: PublicKey, key: u8, attack: Attack) -> Self {
        let (ends, packets) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let shared = (Arc::clone(&ends), Arc::clone(&packets));
        let thread = std::thread::spawn(move || {
            let mut peer = Peer::connect(server, server_key, key);
            for number in 0.. {
                if shared.0.load(Ordering::Relaxed) {
                    break;
                }
                attack(number, &mut |frames| peer.say(frames));
                shared.1.store(number, Ordering::Relaxed);
                peer.wait_for_rate();
            }
        });
        Self { ends, packets, thread: Some(thread) }
    }

    /// Packets sent so far.
    pub(crate) fn packets(&self) -> u64 {
        self.packets.load(Ordering::Relaxed)
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the attacker does not fail");
        }
    }
}

/// A connection driven by hand.
struct Peer {
    socket: UdpSocket,
    server: SocketAddr,
    endpoint: Endpoint,
    connection: Connection,
    begun: std::time::Instant,
    /// Bytes sent. It starts with the bytes that the time before the attack allowed, so that the attack does not catch
    /// up on them.
    sent: u64,
}

impl Peer {
    #[expect(clippy::disallowed_methods, reason = "the attacker has a clock")]
    fn connect(server: SocketAddr, server_key: PublicKey, key: u8) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.set_read_timeout(Some(Duration::from_millis(1))).expect("a time-out");
        let config = EndpointConfig::client(SecretKey::from_bytes([key; 32]));
        let mut endpoint = Endpoint::new(config, [key; 32]);
        let transport = TransportConfig::default();
        let (_, connection) =
            endpoint.connect(Instant::ZERO, server, server_key, transport).expect("a valid configuration");
        let begun = std::time::Instant::now();
        let mut peer = Self { socket, server, endpoint, connection, begun, sent: 0 };
        while !peer.connection.is_connected() {
            assert!(begun.elapsed() < Duration::from_secs(10), "no connection");
            peer.turn();
        }
        peer.turn();
        peer.sent = (peer.begun.elapsed().as_secs_f64() * RATE as f64 / 8.0) as u64;
        peer
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.begun.elapsed()
    }

    /// Does what an honest client would do now.
    fn turn(&mut self) {
        let now = self.now();
        self.connection.handle_timeout(now);
        let mut buffer = Vec::new();
        while let Some(transmit) = self.connection.poll_transmit(now, &mut buffer) {
            self.sent += (transmit.size + HEADERS) as u64;
            self.socket.send_to(&buffer[..transmit.size], transmit.destination).expect("loopback");
        }
        self.receive();
        while self.connection.poll_event().is_some() {}
    }

    fn receive(&mut self) {
        let mut buffer = [0; 2_048];
        while let Ok((size, remote)) = self.socket.recv_from(&mut buffer) {
            let network_path = NetworkPath { local: None, remote };
            let now = self.now();
            let outcome = self.endpoint.handle_datagram(now, network_path, None, &buffer[..size]);
            if let DatagramOutcome::Connection(_) = outcome {
                self.connection.handle_datagram(now, network_path, None, &mut buffer[..size]);
            }
        }
    }

    fn say(&mut self, frames: &[Frame<'_>]) {
        let datagram = self.connection.forge(self.now(), frames);
        self.sent += (datagram.len() + HEADERS) as u64;
        // The server may have closed the connection; the test checks that.
        let _ = self.socket.send_to(&datagram, self.server);
    }

    fn wait_for_rate(&mut self) {
        let due = Duration::from_secs_f64(self.sent as f64 * 8.0 / RATE as f64);
        while let Some(wait) = due.checked_sub(self.begun.elapsed()).filter(|wait| !wait.is_zero()) {
            // Only receives, so that the socket does not fill.
            self.socket.set_read_timeout(Some(wait.max(Duration::from_micros(100)))).expect("a time-out");
            let mut buffer = [0; 2_048];
            let _ = self.socket.recv_from(&mut buffer);
        }
    }
}
