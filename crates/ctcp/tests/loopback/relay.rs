//! A path with faults: the datagrams between one client and a server pass through it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ctcp_base::{Prng, Probability};
use tokio::net::UdpSocket;

use super::setup::localhost;

/// The faults of the path; they can be changed at any time.
#[derive(Default)]
pub(crate) struct Path {
    /// All datagrams are lost.
    pub(crate) is_dead: AtomicBool,
    /// From now on the server sees the client at a new address, as after a change of a NAT's mapping.
    pub(crate) moves: AtomicBool,
    /// Datagrams delivered, both ways.
    pub(crate) carried: AtomicUsize,
    /// Where the client's last datagram came from.
    pub(crate) client: Mutex<Option<SocketAddr>>,
}

/// Starts a relay to `server` that loses every datagram with probability `loss`. Returns the address that clients
/// connect to.
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
    let (mut from_client, mut from_server) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        if path.moves.swap(false, Ordering::Relaxed) {
            back = UdpSocket::bind(localhost()).await.unwrap();
        }
        let (socket, bytes, to) = tokio::select! {
            Ok((size, from)) = front.recv_from(&mut from_client) => {
                *path.client.lock().unwrap() = Some(from);
                (&back, &from_client[..size], Some(server))
            }
            Ok((size, _)) = back.recv_from(&mut from_server) => (&front, &from_server[..size], *path.client.lock().unwrap()),
            else => continue,
        };
        let is_lost = path.is_dead.load(Ordering::Relaxed) || prng.chance(loss);
        if let Some(to) = to.filter(|_| !is_lost) {
            path.carried.fetch_add(1, Ordering::Relaxed);
            let _ = socket.send_to(bytes, to).await;
        }
    }
}
