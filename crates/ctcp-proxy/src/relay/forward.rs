//! Plain forwarding of UDP datagrams, without repair: what relays that repair are compared with.
//!
//! ```text
//!  client <---> facing | onward <---> next stop
//!    only from its IP address, any port
//! ```

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::num::NonZeroU16;
use core::time::Duration;
use std::io;

use socket2::SockRef;
use tokio::net::UdpSocket;
use tokio::task::yield_now;
use tokio::time::Instant;

use crate::udp;

/// The longest datagram of UDP, rounded up.
const DATAGRAM_BYTES_MAX: usize = 65_535;

/// How many datagrams one socket may pass on before the other one and other tasks have their turn.
const BURST: usize = 64;

/// How long the client's port must be silent before another one of the same address takes its place, as when a NAT chose a new one. So others
/// behind that NAT cannot divert what it gets.
const PORT_SILENCE: Duration = Duration::from_secs(1);

/// The kernel buffers requested, in bytes: some 50 ms at 150 Mbit/s.
const BUFFER_BYTES: usize = 1 << 20;

/// Two sockets, and what arrives at one leaves by the other.
#[derive(Debug)]
pub(super) struct Forwarder {
    facing: UdpSocket,
    onward: UdpSocket,
    port: NonZeroU16,
}

impl Forwarder {
    /// Opens the sockets of a relay, to forward between a client and the next stop: at these addresses, with ports of their own.
    ///
    /// # Errors
    /// Returns an error if the system has no socket for it, or if no route leads to the next stop.
    pub(super) fn open(
        [facing, onward]: [SocketAddr; 2],
        client: IpAddr,
        next: SocketAddr,
    ) -> io::Result<Self> {
        let facing = bind(facing, client)?;
        let onward = bind(onward, next.ip())?;
        SockRef::from(&onward).connect(&next.into())?;
        let port = NonZeroU16::new(facing.local_addr()?.port()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { facing, onward, port })
    }

    /// The port that faces the client.
    pub(super) fn port(&self) -> NonZeroU16 {
        self.port
    }

    /// Forwards until the future is dropped. The client's datagrams come from the IP address that `client` tells.
    pub(super) async fn run(self, client: impl Fn() -> IpAddr) {
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        // The client sends first: its port is another one than that of its connection to the relay if a NAT chose it.
        let mut answers_to = None;
        loop {
            let passed = tokio::select! {
                ready = self.facing.readable() => {
                    ready.map(|()| self.pass_onward(&mut buffer, client(), &mut answers_to))
                }
                ready = self.onward.readable() => ready.map(|()| self.pass_back(&mut buffer, answers_to)),
            };
            // Only a runtime that ends says so.
            let Ok(passed) = passed else { return };
            if passed == BURST {
                yield_now().await;
            }
        }
    }

    /// Returns how often it received.
    fn pass_onward(
        &self,
        buffer: &mut [u8],
        client: IpAddr,
        answers_to: &mut Option<(SocketAddr, Instant)>,
    ) -> usize {
        burst(|| {
            let (length, from) = self.facing.try_recv_from(buffer)?;
            if from.ip().to_canonical() == client.to_canonical() {
                let now = Instant::now();
                let is_silent = |(port, at): (SocketAddr, Instant)| port == from || now - at > PORT_SILENCE;
                if answers_to.is_none_or(is_silent) {
                    *answers_to = Some((from, now));
                }
                self.onward.try_send(&buffer[..length])?;
            }
            Ok(())
        })
    }

    fn pass_back(&self, buffer: &mut [u8], answers_to: Option<(SocketAddr, Instant)>) -> usize {
        burst(|| {
            let length = self.onward.try_recv(buffer)?;
            if let Some((client, _)) = answers_to {
                self.facing.try_send_to(&buffer[..length], client)?;
            }
            Ok(())
        })
    }
}

/// Passes on datagrams until none is left. One that cannot be sent is lost, and errors, such as that nobody listens there, end nothing.
fn burst(mut pass: impl FnMut() -> io::Result<()>) -> usize {
    let is_empty = |error: io::Error| error.kind() == io::ErrorKind::WouldBlock;
    (0..BURST).find(|_| pass().is_err_and(is_empty)).unwrap_or(BURST)
}

/// Binds a socket for datagrams from and to `peer`, at the relay's address `listening` if that is of the same family.
fn bind(listening: SocketAddr, peer: IpAddr) -> io::Result<UdpSocket> {
    let mut address = match peer.to_canonical() {
        peer if peer.is_ipv4() == listening.is_ipv4() => listening,
        IpAddr::V4(_) => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0),
        IpAddr::V6(_) => SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0),
    };
    address.set_port(0);
    let socket = udp::bind(address)?;
    // Best effort: the system grants an unprivileged process what its limits allow.
    let _ = SockRef::from(&socket).set_recv_buffer_size(BUFFER_BYTES);
    let _ = SockRef::from(&socket).set_send_buffer_size(BUFFER_BYTES);
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinHandle;
    use tokio::time::timeout;

    use super::*;

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    async fn socket() -> UdpSocket {
        UdpSocket::bind("127.0.0.1:0").await.unwrap()
    }

    /// A forwarder to this server, and its address.
    fn start(server: &UdpSocket) -> (JoinHandle<()>, SocketAddr) {
        let listening = "127.0.0.1:1".parse().unwrap();
        let forwarder = Forwarder::open([listening; 2], CLIENT, server.local_addr().unwrap()).unwrap();
        let address = SocketAddr::new(CLIENT, forwarder.port().get());
        (tokio::spawn(forwarder.run(|| CLIENT)), address)
    }

    async fn received(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        let receive = timeout(Duration::from_secs(10), socket.recv_from(&mut buffer));
        let (length, from) = receive.await.expect("a datagram arrives").unwrap();
        (buffer[..length].to_vec(), from)
    }

    #[tokio::test]
    async fn datagrams_pass_both_ways_and_answers_go_to_a_new_port_once_the_old_one_is_silent() {
        let server = socket().await;
        let (_forwarding, address) = start(&server);
        let clients = [socket().await, socket().await];
        for client in &clients {
            tokio::time::sleep(PORT_SILENCE * 11 / 10).await;
            for length in [0, 1, 1_400, 60_000] {
                client.send_to(&vec![7; length], address).await.unwrap();
                let (there, relay) = received(&server).await;
                server.send_to(&vec![8; length + 1], relay).await.unwrap();
                let (back, from) = received(client).await;
                assert_eq!((there, back, from), (vec![7; length], vec![8; length + 1], address));
            }
        }
        clients[0].send_to(b"too soon", address).await.unwrap();
        let (_, relay) = received(&server).await;
        server.send_to(b"answer", relay).await.unwrap();
        assert_eq!(received(&clients[1]).await.0, b"answer");
    }

    #[tokio::test]
    async fn datagrams_of_a_stranger_are_dropped() {
        let server = socket().await;
        let (_forwarding, address) = start(&server);
        let (client, stranger) = (socket().await, UdpSocket::bind("127.0.0.2:0").await.unwrap());
        stranger.send_to(b"stranger", address).await.unwrap();
        client.send_to(b"client", address).await.unwrap();
        let (there, relay) = received(&server).await;
        stranger.send_to(b"stranger", relay).await.unwrap();
        server.send_to(b"answer", relay).await.unwrap();
        assert_eq!((there, received(&client).await.0), (b"client".to_vec(), b"answer".to_vec()));
    }

    #[tokio::test]
    async fn a_server_that_is_away_for_a_while_does_not_end_the_forwarding() {
        // No other test takes its port meanwhile.
        let server = UdpSocket::bind("127.0.0.3:0").await.unwrap();
        let (_forwarding, address) = start(&server);
        let (client, place) = (socket().await, server.local_addr().unwrap());
        drop(server);
        client.send_to(b"nobody", address).await.unwrap();
        client.send_to(b"nobody", address).await.unwrap();
        let server = UdpSocket::bind(place).await.unwrap();
        // One may meet the error of an earlier one.
        client.send_to(b"somebody", address).await.unwrap();
        client.send_to(b"somebody", address).await.unwrap();
        while received(&server).await.0 != b"somebody" {}
    }

    #[tokio::test]
    async fn the_port_is_free_once_the_forwarding_has_ended() {
        let server = socket().await;
        let (forwarding, address) = start(&server);
        assert!(UdpSocket::bind(address).await.is_err());
        forwarding.abort();
        assert!(forwarding.await.unwrap_err().is_cancelled());
        UdpSocket::bind(address).await.unwrap();
    }
}
