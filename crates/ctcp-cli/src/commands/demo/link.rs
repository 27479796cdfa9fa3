//! An emulated lossy link on loopback, in real time: two UDP sockets with the link model of `ctcp-netem` between them.
//!
//! ```text
//!   client <--> front socket --[ link ]--> back socket <--> server
//!                            <-[ link ]--
//! ```
//!
//! It uses plain threads instead of the runtime's timers: a packet of 1500 bytes takes half a millisecond at 25 Mbit/s,
//! and tokio's timers have a resolution of one millisecond.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant as Clock};

use ctcp_base::{Instant, Prng};
use ctcp_netem::{Link, LinkConfig};

/// The largest datagram on the loopback interface.
const DATAGRAM_MAX: usize = 65_536;

/// How often a thread checks whether the link has ended.
const PATIENCE: Duration = Duration::from_millis(50);

/// A link that runs until it is dropped.
pub(super) struct EmulatedLink {
    front: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// The direction of a datagram.
#[derive(Clone, Copy)]
enum Way {
    ToServer,
    ToClient,
}

struct Shared {
    links: Mutex<Links>,
    wake: Condvar,
    is_over: AtomicBool,
    origin: Clock,
    front: UdpSocket,
    back: UdpSocket,
    server: SocketAddr,
}

struct Links {
    to_server: Link<Vec<u8>>,
    to_client: Link<Vec<u8>>,
    /// The source of the client's last datagram.
    client: Option<SocketAddr>,
}

impl EmulatedLink {
    /// Starts to carry datagrams between clients that send to [`Self::address`] and `server`. Each direction has
    /// `config`.
    pub(super) fn start(config: &LinkConfig, seed: u64, server: SocketAddr) -> io::Result<Self> {
        let bind = || {
            let socket = UdpSocket::bind("127.0.0.1:0")?;
            socket.set_read_timeout(Some(PATIENCE)).map(|()| socket)
        };
        let (front, back) = (bind()?, bind()?);
        let prng = Prng::new(seed);
        let links = Links {
            to_server: Link::new(config.clone(), prng.fork("to server")),
            to_client: Link::new(config.clone(), prng.fork("to client")),
            client: None,
        };
        let address = front.local_addr()?;
        let shared = Arc::new(Shared {
            links: Mutex::new(links),
            wake: Condvar::new(),
            is_over: AtomicBool::new(false),
            origin: clock(),
            front,
            back,
            server,
        });
        let spawn = |work: fn(&Shared)| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || work(&shared))
        };
        let threads = vec![
            spawn(|shared| shared.receive(Way::ToServer)),
            spawn(|shared| shared.receive(Way::ToClient)),
            spawn(Shared::deliver),
        ];
        Ok(Self { front: address, shared, threads })
    }

    /// The address that the client uses as the server's.
    pub(super) fn address(&self) -> SocketAddr {
        self.front
    }
}

impl Drop for EmulatedLink {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        self.shared.wake.notify_all();
        for thread in self.threads.drain(..) {
            // If the thread panicked, its message has been printed.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Receives datagrams from one side and passes them into the link.
    fn receive(&self, way: Way) {
        let mut buffer = vec![0; DATAGRAM_MAX];
        let socket = match way {
            Way::ToServer => &self.front,
            Way::ToClient => &self.back,
        };
        while !self.is_over() {
            // Time-outs, and refusals by a side that is not listening yet, do not end the link.
            let Ok((length, source)) = socket.recv_from(&mut buffer) else { continue };
            let packet = buffer[..length].to_vec();
            let mut links = self.lock();
            let now = self.now();
            match way {
                Way::ToServer => {
                    links.client = Some(source);
                    links.to_server.handle_packet(now, packet);
                }
                Way::ToClient => links.to_client.handle_packet(now, packet),
            }
            drop(links);
            self.wake.notify_one();
        }
    }

    /// Sends each packet at the time at which it leaves the link.
    fn deliver(&self) {
        let mut links = self.lock();
        while !self.is_over() {
            let now = self.now();
            let client = links.client;
            while let Some(packet) = links.to_server.poll_delivery(now) {
                // A full socket buffer counts as loss.
                let _ = self.back.send_to(&packet, self.server);
            }
            while let Some(packet) = links.to_client.poll_delivery(now) {
                if let Some(client) = client {
                    let _ = self.front.send_to(&packet, client);
                }
            }
            let next =
                [links.to_server.poll_timeout(), links.to_client.poll_timeout()].into_iter().flatten().min();
            let wait = next.map_or(PATIENCE, |next| next.saturating_since(self.now()));
            links = self.wake.wait_timeout(links, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn now(&self) -> Instant {
        Instant::ZERO + clock().duration_since(self.origin)
    }
}

/// The demo runs a link model in real time, so it needs its own clock.
#[expect(clippy::disallowed_methods, reason = "the link of the demo runs in real time")]
pub(super) fn clock() -> Clock {
    Clock::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_cross_both_ways_with_the_delay_of_the_link() {
        let server = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        server.set_read_timeout(Some(Duration::from_secs(5))).expect("a time-out");
        let config = LinkConfig::default().with_delay(Duration::from_millis(20));
        let link = EmulatedLink::start(&config, 1, server.local_addr().expect("an address")).expect("a link");
        let client = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        client.set_read_timeout(Some(Duration::from_secs(5))).expect("a time-out");
        let start = clock();
        client.send_to(b"ping", link.address()).expect("sent");
        let mut buffer = [0; 16];
        let (length, from) = server.recv_from(&mut buffer).expect("the datagram");
        assert_eq!(&buffer[..length], b"ping");
        server.send_to(b"pong", from).expect("sent");
        let (length, from) = client.recv_from(&mut buffer).expect("the answer");
        assert_eq!((&buffer[..length], from), (&b"pong"[..], link.address()));
        assert!(clock().duration_since(start) >= Duration::from_millis(40));
    }
}
