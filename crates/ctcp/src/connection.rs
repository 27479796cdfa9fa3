//! The handle of a connection.

use core::fmt;
use core::pin::pin;
use core::task::Waker;
use core::time::Duration;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use ctcp_base::Instant;
use ctcp_proto::{
    ConnectionError, ConnectionStats, HopRepair, MessageError, NetworkPath, OpenError, PathError, PathId,
    PathStats, Profile, PublicKey, StreamId, Ticket, relayed_address,
};
use tokio::sync::Notify;

use crate::Stream;
use crate::relayed::RelayError;
use crate::slot::{Signals, Slot, StreamSlot};
use crate::state::{Key, Shared};

/// A connection to one authenticated peer. Cheap to clone; the clones are the same connection.
///
/// It closes with code 0 when the last handle of it and of its streams is dropped. Data that has not reached the peer by then is lost:
/// wait for [`crate::SendStream::finished`] first.
#[derive(Clone)]
pub struct Connection(Arc<ConnectionRef>);

/// The state that the handles of a connection and of its streams share. The connection lives as long as one of them.
pub(crate) struct ConnectionRef {
    shared: Arc<Shared>,
    key: Key,
    signals: Arc<Signals>,
}

impl ConnectionRef {
    pub(crate) fn new(shared: Arc<Shared>, key: Key, signals: Arc<Signals>) -> Self {
        Self { shared, key, signals }
    }

    /// The time on the endpoint's clock.
    pub(crate) fn now(&self) -> Instant {
        self.shared.clock.now()
    }

    /// Runs an action on the connection that causes no output.
    pub(crate) fn look<T>(&self, action: impl FnOnce(&mut Slot) -> T) -> T {
        let mut state = self.shared.lock();
        action(state.slot(self.key).expect("a slot exists while a handle holds it"))
    }

    /// Runs an action on the connection. If its second value is true, the driver drains the connection's output.
    pub(crate) fn act<T>(&self, action: impl FnOnce(&mut Slot) -> (T, bool)) -> T {
        let mut state = self.shared.lock();
        let slot = state.slot(self.key).expect("a slot exists while a handle holds it");
        let (result, has_output) = action(slot);
        let must_notify = has_output && state.mark_ready(self.key);
        drop(state);
        if must_notify {
            self.shared.work.notify_one();
        }
        result
    }

    /// Calls `look` until it returns a value, each time that `signal` is notified.
    async fn wait_for<T>(&self, signal: &Notify, mut look: impl FnMut(&Self) -> Option<T>) -> T {
        loop {
            let mut notified = pin!(signal.notified());
            notified.as_mut().enable();
            if let Some(found) = look(self) {
                return found;
            }
            notified.await;
        }
    }
}

impl Drop for ConnectionRef {
    fn drop(&mut self) {
        self.shared.lock().release(self.shared.clock.now(), self.key);
        self.shared.work.notify_one();
    }
}

impl fmt::Debug for ConnectionRef {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.look(|slot| formatter.debug_tuple("Connection").field(&slot.remote()).finish())
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl From<ConnectionRef> for Connection {
    fn from(connection: ConnectionRef) -> Self {
        Self(Arc::new(connection))
    }
}

impl Connection {
    /// Opens a new stream. Waits while the peer's limit of open streams is reached. The peer learns of the stream with its first bytes.
    /// Dropping the future opens no stream.
    ///
    /// # Errors
    /// Returns an error if the connection is closed.
    pub async fn open(&self) -> Result<Stream, ConnectionError> {
        let opened = self.0.wait_for(&self.0.signals.streams_available, |connection| {
            connection.act(|slot| {
                let opened = slot.open();
                let has_output = opened.is_some();
                (opened, has_output)
            })
        });
        Ok(self.stream(opened.await?))
    }

    /// Accepts the next stream that the peer opened. Dropping the future loses no stream.
    ///
    /// # Errors
    /// Returns an error if the connection is closed.
    pub async fn accept(&self) -> Result<Stream, ConnectionError> {
        let accepted = self.0.wait_for(&self.0.signals.stream_opened, |connection| {
            connection.act(|slot| {
                let accepted = slot.accept();
                let has_output = accepted.is_some();
                (accepted, has_output)
            })
        });
        Ok(self.stream(accepted.await?))
    }

    /// Queues a message of at most 65,535 bytes. It goes ahead of streams, is repaired until `deadline` has passed, and is then dropped. It
    /// arrives whole and once, in any order, or not at all.
    ///
    /// # Errors
    /// Returns an error if the message was not queued. Nothing waits: if the queue is full, the application produces more than the path
    /// carries.
    pub fn send_message(&self, data: &[u8], deadline: Duration) -> Result<(), MessageError> {
        let now = self.0.now();
        self.0.act(|slot| {
            let result = slot.connection.send_message(now, data, deadline);
            (result, result.is_ok())
        })
    }

    /// Returns the next message. They wait in a queue of a megabyte, from which the oldest are dropped if nobody reads. Dropping the future
    /// loses no message.
    ///
    /// # Errors
    /// Returns an error if the connection is closed.
    pub async fn receive_message(&self) -> Result<Vec<u8>, ConnectionError> {
        let received = self.0.wait_for(&self.0.signals.message_received, |connection| {
            connection.act(|slot| {
                let message = slot.connection.receive_message().map(Ok);
                (message.or_else(|| slot.error.clone().map(Err)), false)
            })
        });
        received.await
    }

    /// The longest message that the peer takes, in bytes; `None` if it takes none.
    #[must_use]
    pub fn message_size_max(&self) -> Option<usize> {
        self.0.look(|slot| slot.connection.message_size_max())
    }

    /// Makes this connection a hop: other connections of the same endpoint go through it to what its peer carries them to. Returns the
    /// address by which [`crate::Endpoint::connect`] and [`Self::add_path`] name this way. Both sides must do so before anything is
    /// carried.
    ///
    /// # Errors
    /// Returns an error if the connection is closed or carries something already, or if the peer cannot.
    pub fn carry(&self, repair: HopRepair) -> Result<SocketAddr, RelayError> {
        self.0.shared.lock().carry(self.0.key, repair)?;
        Ok(relayed_address(self.0.key))
    }

    /// Relays: what either connection receives for others the other one sends on. At most
    /// [`crate::TransportConfig::relay_window`] symbols are held in each direction. When one of them fails, the other one is closed. When
    /// one is closed, here or by its peer with code 0, the other one still sends what has arrived, until it is closed or dropped.
    ///
    /// # Errors
    /// Returns an error if one of them is closed or carries something already, if its peer cannot, or if they belong to different
    /// endpoints.
    pub fn relay_to(&self, next: &Self, repair: HopRepair) -> Result<(), RelayError> {
        if !Arc::ptr_eq(&self.0.shared, &next.0.shared) {
            return Err(RelayError::DifferentEndpoints);
        }
        let mut state = self.0.shared.lock();
        let window = u64::from(state.transport.coding_window);
        state.join(self.0.key, next.0.key, window, repair)
    }

    fn stream(&self, id: StreamId) -> Stream {
        Stream::new(Arc::clone(&self.0), id)
    }

    /// Waits for a ticket of the server, by which a later connection to it may send data in its first flight. Servers send one after the
    /// handshake, and another every few hours, to clients that ask for it ([`crate::TransportConfig::tickets`]). Dropping the future loses
    /// no ticket.
    ///
    /// # Errors
    /// Returns an error if the connection is closed.
    pub async fn ticket(&self) -> Result<Ticket, ConnectionError> {
        let ticket = self.0.wait_for(&self.0.signals.changed, |connection| {
            connection.look(|slot| {
                let ticket = slot.connection.take_ticket().map(Ok);
                ticket.or_else(|| slot.error.clone().map(Err))
            })
        });
        ticket.await
    }

    /// Waits until the handshake is complete. Only connections of [`crate::Endpoint::connect_early`] exist before.
    ///
    /// # Errors
    /// Returns an error if the handshake failed or the connection is closed.
    pub async fn connected(&self) -> Result<(), ConnectionError> {
        let connected = self.0.wait_for(&self.0.signals.changed, |connection| {
            connection.look(|slot| match &slot.error {
                Some(error) => Some(Err(error.clone())),
                None => slot.is_connected.then_some(Ok(())),
            })
        });
        connected.await
    }

    /// Returns true if a rejection says that the server cannot open our first message (see [`ctcp_proto::Connection::is_rejected`]).
    pub(crate) fn is_rejected(&self) -> bool {
        self.0.look(|slot| slot.connection.is_rejected())
    }

    /// Closes the connection at once, with a code and a text for the peer. Data that has not arrived is lost.
    pub fn close(&self, code: u64, reason: &str) {
        let shared = &self.0.shared;
        let mut wakers = Vec::new();
        {
            let mut state = shared.lock();
            let now = state.at(shared.clock.now());
            state.close_connection(now, self.0.key, (code, reason), &mut wakers);
        }
        wakers.into_iter().for_each(Waker::wake);
        shared.work.notify_one();
    }

    /// Waits until the connection is closed and returns the reason.
    pub async fn closed(&self) -> ConnectionError {
        self.0
            .wait_for(&self.0.signals.changed, |connection| connection.look(|slot| slot.error.clone()))
            .await
    }

    /// The reason why the connection is closed; `None` while it is open.
    #[must_use]
    pub fn close_reason(&self) -> Option<ConnectionError> {
        self.0.look(|slot| slot.error.clone())
    }

    /// Returns true if the connection is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.look(|slot| slot.error.is_some())
    }

    /// Returns the connection's measurements and counters.
    #[must_use]
    pub fn stats(&self) -> ConnectionStats {
        self.0.look(|slot| slot.connection.stats())
    }

    /// The profile that the server granted in the handshake; `None` once the connection is closed.
    #[must_use]
    pub fn profile(&self) -> Option<Profile> {
        self.0.look(|slot| slot.connection.profile())
    }

    /// Whether the keys also come from ML-KEM, so that a future quantum computer cannot decrypt what is recorded now.
    #[must_use]
    pub fn is_hybrid(&self) -> bool {
        self.0.look(|slot| slot.connection.is_hybrid())
    }

    /// Opens a further path to an address of the server, from the address of a socket of [`crate::Endpoint::add_socket`], or to one of
    /// [`Self::carry`], which needs no local address. It is used as soon as both sides have validated it, which [`Self::paths`] shows. If
    /// nothing answers for a while, it is closed. Of paths for backup, the one with the lowest `preference` is used; that of the first path
    /// is [`crate::PREFERENCE_OF_FIRST`].
    ///
    /// # Errors
    /// Returns an error if this side is no client, or if the server allows no further path.
    pub fn add_path(
        &self,
        local: impl Into<Option<IpAddr>>,
        remote: SocketAddr,
        preference: u8,
    ) -> Result<PathId, PathError> {
        let now = self.0.now();
        let network = NetworkPath { local: local.into(), remote };
        self.0.act(|slot| {
            let result = slot.connection.add_path(now, network, preference);
            (result, result.is_ok())
        })
    }

    /// Further addresses that the server told this client, for [`Self::add_path`].
    #[must_use]
    pub fn server_addresses(&self) -> Vec<SocketAddr> {
        self.0.look(|slot| slot.connection.server_addresses().to_vec())
    }

    /// Closes a path. What is in flight on it is repaired on the others.
    ///
    /// # Errors
    /// Returns an error if there is no such path, or no other one that works.
    pub fn abandon_path(&self, id: PathId) -> Result<(), PathError> {
        self.0.act(|slot| {
            let result = slot.connection.abandon_path(id);
            (result, result.is_ok())
        })
    }

    /// The addresses or routes of this machine changed. The server then learns the new address of a client at once.
    pub fn on_network_change(&self) {
        self.0.act(|slot| {
            slot.connection.on_network_change();
            ((), true)
        });
    }

    /// The open paths with their measurements; empty once the connection is closed.
    #[must_use]
    pub fn paths(&self) -> Vec<PathStats> {
        self.0.look(|slot| slot.connection.paths())
    }

    /// The public key by which the peer authenticated itself.
    #[must_use]
    pub fn peer_key(&self) -> PublicKey {
        self.0.look(|slot| slot.connection.peer_key())
    }

    /// The peer's current address. It changes when the peer moves.
    #[must_use]
    pub fn remote_address(&self) -> SocketAddr {
        self.0.look(Slot::remote)
    }
}

impl Slot {
    /// Returns `None` if the peer allows no more streams at present.
    fn open(&mut self) -> Option<Result<StreamId, ConnectionError>> {
        if let Some(error) = &self.error {
            return Some(Err(error.clone()));
        }
        let id = match self.connection.open() {
            Ok(id) => id,
            Err(OpenError::LimitReached) => return None,
        };
        self.streams.insert(id, StreamSlot::default());
        Some(Ok(id))
    }

    /// Returns `None` if the peer has opened no further stream. Streams that it opened before the connection ended can still be read.
    fn accept(&mut self) -> Option<Result<StreamId, ConnectionError>> {
        let Some(id) = self.connection.accept() else {
            return self.error.clone().map(Err);
        };
        self.streams.insert(id, StreamSlot::default());
        Some(Ok(id))
    }
}
