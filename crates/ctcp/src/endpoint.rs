//! One UDP socket and all connections over it.

use core::fmt;
use core::pin::pin;
use core::task::Waker;
use core::time::Duration;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;

use crate::clock::Clock;
use crate::connection::ConnectionRef;
use crate::driver::Driver;
use crate::slot::Owner;
use crate::socket::{self, Counters, Socket, SocketStats};
use crate::state::{Shared, SocketChange, State};
use crate::{ClientConfig, ConnectError, Connection, EndpointLost, ServerConfig, TransportConfig, entropy};
use ctcp_base::Instant;
use ctcp_proto::{ClientPolicy, ConnectionError, EndpointConfig, EndpointStats, PublicKey, Ticket, hop_of};
use tokio::time::{sleep, timeout};

/// A handshake fails early if it counts as rejected at two checks in a row, this far apart. Rejections are not authenticated: they may be
/// forged, or answer a message that was damaged in transit. In this time the repetitions of that message (PROTOCOL.md section 3) can
/// bring an authenticated answer.
const REJECTED_LOOK: Duration = Duration::from_millis(250);

/// One UDP socket and all connections over it. Cheap to clone; the clones are the same endpoint.
///
/// It runs on the tokio runtime on which it was created. When all handles of it, of its connections and of their streams are dropped, it
/// closes its connections and ends.
#[derive(Clone)]
pub struct Endpoint(Arc<EndpointRef>);

/// Counts as one handle, however many clones of [`Endpoint`] exist.
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
    /// Creates an endpoint that only connects.
    ///
    /// # Errors
    /// Returns an error if the socket cannot be bound, a setting is out of range, or the system provides no entropy.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with I/O and time enabled.
    pub fn client(config: ClientConfig) -> io::Result<Self> {
        Self::start(config.endpoint(), socket::bind(config.bind)?, &config.transport)
    }

    /// Creates an endpoint that accepts connections and can also connect.
    ///
    /// # Errors
    /// Returns an error if the socket cannot be bound, a setting is out of range, or the system provides no entropy.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with I/O and time enabled.
    pub fn server(config: ServerConfig) -> io::Result<Self> {
        Self::start(config.endpoint(), socket::bind(Some(config.listen))?, &config.transport)
    }

    /// Like [`Self::client`], on a socket that the caller has created and bound. The address of `config` is not used. The socket is made
    /// non-blocking, its buffers are enlarged, and no other code may receive from it.
    ///
    /// # Errors
    /// Returns an error if the socket cannot be used, a setting is out of range, or the system provides no entropy.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with I/O and time enabled.
    pub fn client_on(config: ClientConfig, socket: UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Self::start(config.endpoint(), socket, &config.transport)
    }

    /// Like [`Self::server`], on a socket that the caller has created and bound. The address of `config` is not used. The socket is made
    /// non-blocking, its buffers are enlarged, and no other code may receive from it.
    ///
    /// # Errors
    /// Returns an error if the socket cannot be used, a setting is out of range, or the system provides no entropy.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with I/O and time enabled.
    pub fn server_on(config: ServerConfig, socket: UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Self::start(config.endpoint(), socket, &config.transport)
    }

    fn start(config: EndpointConfig, socket: UdpSocket, transport: &TransportConfig) -> io::Result<Self> {
        transport.check()?;
        TransportConfig(config.transport.clone()).check()?;
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

    /// The local address of the socket.
    ///
    /// # Errors
    /// Returns no error today; the signature allows for endpoints without a socket.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.0.shared.lock().local_address)
    }

    /// Connects to the server that holds the private half of `server_key`. Dropping the future cancels the attempt. If the server cannot
    /// open the first message, most likely because it has another key, the attempt fails after half a second.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn connect(
        &self,
        remote: SocketAddr,
        server_key: PublicKey,
    ) -> Result<Connection, ConnectError> {
        let connection = self.begin_connect(remote, server_key, None)?;
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

    /// Connects with a ticket that the server gave to this client at this address ([`Connection::ticket`]). Returns at once: the first
    /// streams can be opened and written, and about 4 kB of them leave with the first packets. An answer can so arrive after one round
    /// trip. If the server no longer takes the ticket, everything is sent after the handshake instead.
    ///
    /// A failed handshake shows as the end of the connection ([`Connection::connected`], [`Connection::closed`]). The server takes a ticket
    /// once, so nobody can replay early data to it. But this side cannot know whether early data of a failed handshake had its effect:
    /// write only what may be done twice.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect_early(
        &self,
        remote: SocketAddr,
        server_key: PublicKey,
        ticket: &Ticket,
    ) -> Result<Connection, ConnectError> {
        self.begin_connect(remote, server_key, Some(ticket))
    }

    fn begin_connect(
        &self,
        remote: SocketAddr,
        server_key: PublicKey,
        ticket: Option<&Ticket>,
    ) -> Result<Connection, ConnectError> {
        let shared = &self.0.shared;
        let mut state = shared.lock();
        if let Some(lost) = &state.lost {
            return Err(ConnectError::EndpointLost(lost.clone()));
        }
        if state.is_closed {
            return Err(ConnectError::EndpointClosed);
        }
        if let Some(hop) = hop_of(remote) {
            if !state.is_hop(hop) {
                return Err(ConnectError::NoSuchHop);
            }
        } else if !socket::can_reach(state.local_address, remote) {
            return Err(ConnectError::WrongFamily { local: state.local_address, remote });
        }
        let now = state.at(shared.clock.now());
        let transport = state.transport.clone();
        entropy::mix(|fresh| state.endpoint.mix_entropy(fresh));
        let endpoint = &mut state.endpoint;
        let begun = match ticket {
            Some(ticket) => endpoint.connect_early(now, remote, server_key, transport, ticket),
            None => endpoint.connect(now, remote, server_key, transport),
        };
        let (handle, connection) = begun.map_err(ConnectError::from)?;
        let (key, signals) = state.insert(handle, connection, remote, Owner::Held);
        if let Some(hop) = hop_of(remote) {
            state.note_carried(hop, key);
        }
        drop(state);
        shared.work.notify_one();
        Ok(ConnectionRef::new(Arc::clone(shared), key, signals).into())
    }

    /// Replaces the list of clients that may connect. It applies to new handshakes from now on. Connections of clients that are not on it
    /// are closed at once: the client gets the reason that its key is no longer listed, and local handles see
    /// [`ConnectionError::ClosedLocally`]. Outgoing connections stay open.
    ///
    /// An endpoint that was created to connect only still accepts no clients.
    pub fn set_clients(&self, clients: ClientPolicy) {
        let shared = &self.0.shared;
        let mut wakers = Vec::new();
        {
            let mut state = shared.lock();
            let now = state.at(shared.clock.now());
            state.endpoint.set_clients(clients);
            state.close_what_must_go(now, &mut wakers);
        }
        wakers.into_iter().for_each(Waker::wake);
        shared.work.notify_one();
    }

    /// Sets the names of clients for the log lines about refused clients; clients without a name are shown by their keys. Replaces all
    /// names.
    pub fn set_client_names(&self, names: impl IntoIterator<Item = (PublicKey, String)>) {
        let names = names.into_iter().collect();
        self.0.shared.lock().client_names = names;
    }

    /// Waits until the endpoint is lost and returns the reason: a bug of ours, or the end of its runtime. A closed endpoint is not lost:
    /// then this waits forever.
    ///
    /// A program should end when that happens: all connections of this endpoint have failed, and it can open no others.
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

    /// Accepts the next client that proved its key and passed the policy; `None` once the endpoint is closed or lost. On an endpoint that
    /// only connects it waits until then. Dropping the future loses no client.
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

    /// Closes all connections with a code and a text for the peer, accepts no more, and waits until the closing packets are sent.
    /// Connections that carry others are closed after these: after two of their round trips, at most 0.7 s.
    pub async fn close(&self, code: u64, reason: &str) {
        let carriage_time = self.close_with(|state, now| {
            let time = state.carriage_time();
            (state.close(now, (code, reason)), time)
        });
        self.0.shared.incoming.notify_waiters();
        sleep(carriage_time).await;
        self.close_with(|state, now| (state.close_hops(now, (code, reason)), ()));
        self.idle().await;
    }

    fn close_with<T>(&self, close: impl FnOnce(&mut State, Instant) -> (Vec<Waker>, T)) -> T {
        let shared = &self.0.shared;
        let (wakers, result) = {
            let mut state = shared.lock();
            let now = state.at(shared.clock.now());
            close(&mut state, now)
        };
        wakers.into_iter().for_each(Waker::wake);
        shared.work.notify_one();
        result
    }

    /// Waits until nothing waits to be sent.
    async fn idle(&self) {
        let shared = &self.0.shared;
        loop {
            let mut idle = core::pin::pin!(shared.idle.notified());
            idle.as_mut().enable();
            if shared.lock().is_idle() {
                return;
            }
            idle.await;
        }
    }

    /// Moves to a new local socket, bound to `address`. Connections continue from there: peers validate the new address and answer to it.
    /// Datagrams in flight to the old socket are lost, and repaired.
    ///
    /// # Errors
    /// Returns an error if the socket cannot be bound; the old one stays in use.
    pub fn rebind(&self, address: SocketAddr) -> io::Result<()> {
        self.rebind_to(socket::bind(Some(address))?)
    }

    /// Like [`Self::rebind`], to a socket that the caller has created and bound.
    ///
    /// # Errors
    /// Returns an error if the socket cannot be used; the old one stays in use.
    pub fn rebind_to(&self, socket: UdpSocket) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        let local_address = socket.local_addr()?;
        let shared = &self.0.shared;
        {
            let mut state = shared.lock();
            tracing::debug!(old = %state.local_address, new = %local_address, "new local socket");
            state.local_address = local_address;
            state.socket_changes.push(SocketChange::Main(socket));
        }
        shared.work.notify_one();
        Ok(())
    }

    /// Adds a socket for paths that begin at its address, which it returns ([`Connection::add_path`]). It replaces an earlier socket of the
    /// same address. [`crate::LocalPath::bind`] makes such sockets.
    ///
    /// # Errors
    /// Returns an error if the socket is not bound to an address.
    pub fn add_socket(&self, socket: UdpSocket) -> io::Result<IpAddr> {
        socket.set_nonblocking(true)?;
        let local = socket.local_addr()?.ip().to_canonical();
        if local.is_unspecified() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the socket of a path needs an address"));
        }
        self.change_sockets(SocketChange::Add(local, socket));
        Ok(local)
    }

    /// Closes the socket of [`Self::add_socket`] with this address as soon as nothing waits to be sent. Abandon paths that begin there first:
    /// their packets would leave from the main socket, and the server would move them there.
    pub fn remove_socket(&self, local: IpAddr) {
        self.change_sockets(SocketChange::Remove(local));
    }

    fn change_sockets(&self, change: SocketChange) {
        let shared = &self.0.shared;
        shared.lock().socket_changes.push(change);
        shared.work.notify_one();
    }

    /// Counters of the protocol: handshakes, refusals, drops.
    #[must_use]
    pub fn stats(&self) -> EndpointStats {
        self.0.shared.lock().endpoint.stats()
    }

    /// Counters of the socket.
    #[must_use]
    pub fn socket_stats(&self) -> SocketStats {
        self.0.shared.counters.snapshot()
    }
}
