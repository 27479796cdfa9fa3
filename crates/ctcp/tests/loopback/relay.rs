//! A path that can be bad: datagrams between one client and a server go through here.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ctcp_base::{Prng, Probability};
use tokio::net::UdpSocket;

use super::setup::localhost;

/// What the path does now; change it at any time.
#[derive(Default)]
pub(crate) struct Path {
    /// Nothing gets through.
    pub(crate) is_dead: AtomicBool,
    /// The server sees the client at a new address from now on, as after a change of a NAT's mapping.
    pub(crate) moves: AtomicBool,
    /// Datagrams that got through, both ways.
    pub(crate) carried: AtomicUsize,
}

/// Starts a relay to `server` that loses every datagram with probability `loss`. Clients connect to the address it
/// returns.
pub(crate) async fn start(server: SocketAddr, loss: Probability) -> (SocketAddr, Arc<Path>) {
    let path = Arc::<Path>::default();
    let front = UdpSocket::bind(localhost()).await.unwrap();
    let address = front.local_addr().unwrap();
    tokio::spawn(carry(front, server, loss, Arc::clone(&path)));
    (address, path)
}

async fn carry(front: UdpSocket, server: SocketAddr, loss: Probability, path: Arc<Path>) {
    let mut prng = Prng::new(7);
    let mut back = UdpSocket::bind(localhost()).await.unwrap();
    let mut client = None;
    let (mut from_client, mut from_server) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        if path.moves.swap(false, Ordering::Relaxed) {
            back = UdpSocket::bind(localhost()).await.unwrap();
        }
        let (socket, bytes, to) = tokio::select! {
            Ok((size, from)) = front.recv_from(&mut from_client) => {
                client = Some(from);
                (&back, &from_client[..size], Some(server))
            }
            Ok((size, _)) = back.recv_from(&mut from_server) => (&front, &from_server[..size], client),
            else => continue,
        };
        let is_lost = path.is_dead.load(Ordering::Relaxed) || prng.chance(loss);
        if let Some(to) = to.filter(|_| !is_lost) {
            path.carried.fetch_add(1, Ordering::Relaxed);
            let _ = socket.send_to(bytes, to).await;
        }
    }
}
