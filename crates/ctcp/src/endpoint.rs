//! One UDP socket and all connections over it.

use core::fmt;
use core::pin::pin;
use core::time::Duration;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use crate::clock::Clock;
use crate::connection::ConnectionRef;
use crate::driver::Driver;
use crate::slot::Owner;
use crate::socket::{self, Counters, Socket, SocketStats};
use crate::state::{Shared, State};
use crate::{ClientConfig, ConnectError, Connection, EndpointLost, ServerConfig, TransportConfig, entropy};
use ctcp_proto::{ClientPolicy, ConnectionError, EndpointConfig, EndpointStats, PublicKey};
use tokio::time::timeout;

/// A handshake that was rejected at two looks in a row, so long apart, is given up. Rejections are not authenticated: they
/// may be forged, or answer a message that was damaged on its way. The repetitions of that message (PROTOCOL.md section 3)
/// have this time to bring an answer that is.
const REJECTED_LOOK: Duration = Duration::from_millis(250);

/// One UDP socket and all connections over it. Cheap to clone; the clones are the same endpoint.
///
/// It lives on the tokio runtime on which it was made. When all handles of it, of its connections and of their
/// streams are dropped, it says goodbye to the peers and ends.
#[derive(Clone)]
pub struct Endpoint(Arc<EndpointRef>);

/// Counts as one handle however often [`Endpoint`] is cloned.
struct EndpointRef {
    shared: Arc<Shared>,
}

impl Drop for EndpointRef {
    fn drop(&mut self) {
        self.shared.lock().release_endpoint(self.shared.clock.now());
        self.shared.work.notify_one();
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Endpoint").field(&self.0.shared.lock().local_address).finish()
    }
}

impl Endpoint {
    /// An endpoint that only connects.
    ///
    /// # Errors
    /// When the socket cannot be bound, a setting is out of range, or there is no entropy.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and time enabled.
    pub fn client(config: ClientConfig) -> io::Result<Self> {
        Self::start(config.endpoint(), socket::bind(config.bind)?, &config.transport)
    }

    /// An endpoint that accepts, and may connect as well.
    ///
    /// # Errors
    /// When the socket cannot be bound, a setting is out of range, or there is no entropy.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and time enabled.
    pub fn server(config: ServerConfig) -> io::Result<Self> {
        Self::start(config.endpoint(), socket::bind(Some(config.listen))?, &config.transport)
    }

    /// As [`Self::client`], on a socket that the caller has made and bound. The address of `config` is not used. The
    /// socket is made non-blocking, its buffers are enlarged, and nobody else may receive from it.
    ///
    /// # Errors
    /// When the socket cannot be used, a setting is out of range, or there is no entropy.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and time enabled.
    pub fn client_on(config: ClientConfig, socket: UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Self::start(config.endpoint(), socket, &config.transport)
    }

    /// As [`Self::server`], on a socket that the caller has made and bound. The address of `config` is not used. The
    /// socket is made non-blocking, its buffers are enlarged, and nobody else may receive from it.
    ///
    /// # Errors
    /// When the socket cannot be used, a setting is out of range, or there is no entropy.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and time enabled.
    pub fn server_on(config: ServerConfig, socket: UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Self::start(config.endpoint(), socket, &config.transport)
    }

    fn start(config: EndpointConfig, socket: UdpSocket, transport: &TransportConfig) -> io::Result<Self> {
        transport.check()?;
        let local_address = socket.local_addr()?;
        let counters = Arc::<Counters>::default();
        let socket = Socket::new(socket, Arc::clone(&counters))?;
        let is_server = config.accept.is_some();
        let endpoint = ctcp_proto::Endpoint::new(config, entropy::seed()?);
        let state = State::new(endpoint, transport.0.clone(), local_address);
        let shared = Arc::new(Shared::new(state, Clock::new(), counters));
        tokio::spawn(Driver::new(Arc::clone(&shared), socket, is_server).run());
        tracing::debug!(%local_address, is_server, "endpoint started");
        Ok(Self(Arc::new(EndpointRef { shared })))
    }

    /// The address of the socket.
    ///
    /// # Errors
    /// None today; an endpoint without a socket would have none.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.0.shared.lock().local_address)
    }

    /// Connects to the server that holds the private half of `server_key`. Dropping the future gives up. A server that
    /// cannot open the first message, most likely because its key is another, ends the attempt after half a second.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn connect(
        &self,
        remote: SocketAddr,
        server_key: PublicKey,
    ) -> Result<Connection, ConnectError> {
        let connection = self.begin_connect(remote, server_key)?;
        let mut was_rejected = false;
        {
            let mut connected = pin!(connection.connected());
            loop {
                if let Ok(outcome) = timeout(REJECTED_LOOK, connected.as_mut()).await {
                    outcome.map_err(ConnectError::Failed)?;
                    break;
                }
                let is_rejected = connection.is_rejected();
                if was_rejected && is_rejected {
                    return Err(ConnectError::Failed(ConnectionError::HandshakeTimedOut { rejected: true }));
                }
                was_rejected = is_rejected;
            }
        }
        Ok(connection)
    }

    fn begin_connect(&self, remote: SocketAddr, server_key: PublicKey) -> Result<Connection, ConnectError> {
        let shared = &self.0.shared;
        let mut state = shared.lock();
        if let Some(lost) = &state.lost {
            return Err(ConnectError::EndpointLost(lost.clone()));
        }
        if state.is_closed {
            return Err(ConnectError::EndpointClosed);
        }
        if !socket::can_reach(state.local_address, remote) {
            return Err(ConnectError::WrongFamily { local: state.local_address, remote });
        }
        let now = state.at(shared.clock.now());
        let transport = state.transport.clone();
        entropy::mix(|fresh| state.endpoint.mix_entropy(fresh));
        let (handle, connection) =
            state.endpoint.connect(now, remote, server_key, transport).map_err(ConnectError::from)?;
        let (key, signals) = state.insert(handle, connection, remote, Owner::Held);
        drop(state);
        shared.work.notify_one();
        Ok(ConnectionRef::new(Arc::clone(shared), key, signals).into())
    }

    /// Replaces the list of clients that may connect. New handshakes are judged by it from now on. Connections of clients
    /// that are not on it are closed at once: the client is told that its key is no longer listed, and handles here see
    /// [`ConnectionError::ClosedLocally`]. Connections that we opened stay.
    ///
    /// An endpoint that was made to connect only goes on accepting nobody.
    pub fn set_clients(&self, clients: ClientPolicy) {
        let shared = &self.0.shared;
        let mut wakers = Vec::new();
        {
            let mut state = shared.lock();
            let now = state.at(shared.clock.now());
            state.endpoint.set_clients(clients);
            state.close_what_must_go(now, &mut wakers);
        }
        wakers.into_iter().for_each(core::task::Waker::wake);
        shared.work.notify_one();
    }

    /// Names clients for the log lines about those that are refused; others are called by their keys. It replaces all names.
    pub fn set_client_names(&self, names: impl IntoIterator<Item = (PublicKey, String)>) {
        let names = names.into_iter().collect();
        self.0.shared.lock().client_names = names;
    }

    /// Waits until the endpoint is lost, which is our own fault or that of its runtime, and says why. An endpoint that was
    /// closed is not lost: then this waits for ever.
    ///
    /// A program should end when that happens: no connection of this endpoint goes on, and none can be made.
    pub async fn lost(&self) -> EndpointLost {
        let shared = &self.0.shared;
        loop {
            let mut changed = pin!(shared.incoming.notified());
            changed.as_mut().enable();
            if let Some(lost) = &shared.lock().lost {
                return lost.clone();
            }
            changed.await;
        }
    }

    /// The next client that proved its key and passed the policy; `None` once the endpoint is closed or lost. For an
    /// endpoint that only connects it waits until then. Dropping the future loses no client.
    pub async fn accept(&self) -> Option<Connection> {
        let shared = &self.0.shared;
        loop {
            let mut incoming = core::pin::pin!(shared.incoming.notified());
            incoming.as_mut().enable();
            {
                let mut state = shared.lock();
                if let Some((key, signals)) = state.accept() {
                    return Some(ConnectionRef::new(Arc::clone(shared), key, signals).into());
                }
                if state.is_closed {
                    return None;
                }
            }
            incoming.await;
        }
    }

    /// Closes all connections with a code and a text for the peer, accepts no more, and waits until the peers
    /// were told.
    pub async fn close(&self, code: u64, reason: &str) {
        let shared = &self.0.shared;
        let wakers = {
            let mut state = shared.lock();
            let now = state.at(shared.clock.now());
            state.close(now, code, reason)
        };
        wakers.into_iter().for_each(core::task::Waker::wake);
        shared.incoming.notify_waiters();
        shared.work.notify_one();
        loop {
            let mut idle = core::pin::pin!(shared.idle.notified());
            idle.as_mut().enable();
            if shared.lock().is_idle() {
                return;
            }
            idle.await;
        }
    }

    /// Moves to a new local socket, bound to `address`. Connections go on from there: peers validate the new
    /// address and answer to it. What was on the way to the old socket is lost, and repaired.
    ///
    /// # Errors
    /// When the socket cannot be bound; the old one stays in use.
    pub fn rebind(&self, address: SocketAddr) -> io::Result<()> {
        let socket = socket::bind(Some(address))?;
        let local_address = socket.local_addr()?;
        let shared = &self.0.shared;
        {
            let mut state = shared.lock();
            tracing::info!(old = %state.local_address, new = %local_address, "new local socket");
            state.local_address = local_address;
            state.new_socket = Some(socket);
        }
        shared.work.notify_one();
        Ok(())
    }

    /// Counts of the protocol: handshakes, refusals, drops.
    #[must_use]
    pub fn stats(&self) -> EndpointStats {
        self.0.shared.lock().endpoint.stats()
    }

    /// Counts of the socket.
    #[must_use]
    pub fn socket_stats(&self) -> SocketStats {
        self.0.shared.counters.snapshot()
    }
}
