//! One connection as its handles and the driver see it: the protocol's connection, its state, and the tasks waiting for
//! it.
//!
//! ```text
//!   HalfOpen --Connected--> Waiting --accept--> Held --handles dropped--> Abandoned
//!                                        ^ an outgoing connection starts here
//! ```

use core::task::Waker;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use ctcp_base::Instant;
use ctcp_proto::{Connection, ConnectionError, ConnectionHandle, Event, StreamId};
use tokio::sync::Notify;

use crate::relayed::Load;
use crate::turns::PeerId;

/// What asynchronous calls on a connection wait for. Each event wakes all waiting tasks, which then check again.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// The connection was established or closed.
    pub(crate) changed: Notify,
    /// The peer opened a stream, or the connection was closed.
    pub(crate) stream_opened: Notify,
    /// More streams may be opened, or the connection was closed.
    pub(crate) streams_available: Notify,
    /// A message arrived, or the connection was closed.
    pub(crate) message_received: Notify,
}

impl Signals {
    pub(crate) fn notify_all(&self) {
        self.changed.notify_waiters();
        self.stream_opened.notify_waiters();
        self.streams_available.notify_waiters();
        self.message_received.notify_waiters();
    }
}

/// Who owns a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// No one yet: the client has not proved its key.
    HalfOpen,
    /// The backlog.
    Waiting,
    /// The application.
    Held,
    /// No one: all handles were dropped.
    Abandoned,
}

/// A stream of which the application holds a half. The protocol reports no events of other streams, so none is missed.
#[derive(Debug, Default)]
pub(crate) struct StreamSlot {
    pub(crate) reader: Option<Waker>,
    pub(crate) writer: Option<Waker>,
    /// The task waiting for the end of the sending half: delivered or stopped.
    pub(crate) settled: Option<Waker>,
    /// The peer has received everything.
    pub(crate) is_delivered: bool,
    /// The peer stopped reading, with this code.
    pub(crate) stopped: Option<u64>,
    halves_dropped: u8,
}

/// A connection and the tasks waiting for it.
pub(crate) struct Slot {
    pub(crate) connection: Connection,
    pub(crate) handle: ConnectionHandle,
    pub(crate) signals: Arc<Signals>,
    pub(crate) streams: BTreeMap<StreamId, StreamSlot>,
    pub(crate) owner: Owner,
    pub(crate) is_connected: bool,
    /// Why the connection is closed.
    pub(crate) error: Option<ConnectionError>,
    /// The peer's last known address.
    remote: SocketAddr,
    pub(crate) is_retired: bool,
    /// The peer that its costs are charged to.
    pub(crate) peer: PeerId,
    /// The connection is queued for a turn of its peer.
    pub(crate) is_ready: bool,
    pub(crate) deadline: Option<Instant>,
    /// What it carries for others.
    pub(crate) load: Option<Load>,
}

impl Slot {
    pub(crate) fn new(
        handle: ConnectionHandle,
        connection: Connection,
        remote: SocketAddr,
        owner: Owner,
        peer: PeerId,
    ) -> Self {
        Self {
            connection,
            peer,
            handle,
            signals: Arc::default(),
            streams: BTreeMap::new(),
            owner,
            is_connected: false,
            error: None,
            remote,
            is_retired: false,
            is_ready: false,
            deadline: None,
            load: None,
        }
    }

    /// Returns true if neither the protocol nor the application needs the connection any more.
    pub(crate) fn is_unwanted(&self) -> bool {
        self.is_retired && matches!(self.owner, Owner::HalfOpen | Owner::Abandoned)
    }

    /// Returns true if it carries connections of this endpoint.
    pub(crate) fn is_hop(&self) -> bool {
        matches!(self.load, Some(Load::Carried(_)))
    }

    /// Returns true if an application closed the connection: this one, or that of the peer with code 0.
    pub(crate) fn was_closed_in_order(&self) -> bool {
        let is_orderly =
            |error: &ConnectionError| *error == ConnectionError::ClosedLocally || error.is_orderly_close();
        self.error.as_ref().is_some_and(is_orderly)
    }

    /// Passes an event to the waiting tasks; their wakers are added to `wakers`.
    pub(crate) fn on_event(&mut self, event: Event, wakers: &mut Vec<Waker>) {
        match event {
            Event::Connected => {
                let hybrid = self.connection.is_hybrid();
                tracing::debug!(remote = %self.remote(), peer = self.peer(), hybrid, "connected");
                if let Some((asked, granted)) =
                    self.connection.declined_profile().zip(self.connection.profile())
                {
                    tracing::warn!(%asked, %granted, "the server does not grant the profile and uses its own");
                }
                self.is_connected = true;
                self.signals.notify_all();
            }
            Event::StreamOpened => self.signals.stream_opened.notify_waiters(),
            Event::StreamsAvailable => self.signals.streams_available.notify_waiters(),
            Event::MessageReceived => self.signals.message_received.notify_waiters(),
            Event::PathOpened(_) | Event::PathClosed(_) | Event::TicketReceived => {
                self.signals.changed.notify_waiters();
            }
            Event::Readable(id) => {
                wakers.extend(self.streams.get_mut(&id).and_then(|stream| stream.reader.take()));
            }
            Event::Writable(id) => {
                wakers.extend(self.streams.get_mut(&id).and_then(|stream| stream.writer.take()));
            }
            Event::Finished(id) => {
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.is_delivered = true;
                    wakers.extend(stream.settled.take());
                }
            }
            Event::Stopped { id, code } => {
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.stopped = Some(code);
                    wakers.extend(stream.settled.take());
                    wakers.extend(stream.writer.take());
                }
            }
            Event::Closed(error) => self.on_closed(error, wakers),
            #[allow(unreachable_patterns, reason = "the enum may grow")]
            _ => {}
        }
    }

    fn on_closed(&mut self, error: ConnectionError, wakers: &mut Vec<Waker>) {
        if self.is_connected {
            tracing::debug!(remote = %self.remote(), peer = self.peer(), reason = %error, "connection closed");
        } else {
            tracing::debug!(remote = %self.remote(), peer = self.peer(), reason = %error, "connection failed");
        }
        self.error = Some(error);
        for stream in self.streams.values_mut() {
            wakers.extend(stream.reader.take());
            wakers.extend(stream.writer.take());
            wakers.extend(stream.settled.take());
        }
        self.signals.notify_all();
    }

    /// The peer's short key, for the log.
    fn peer(&self) -> String {
        self.connection.peer_key().short()
    }

    /// The peer's address, or the last known one if the connection is closed.
    pub(crate) fn remote(&mut self) -> SocketAddr {
        self.remote = self.connection.remote().unwrap_or(self.remote);
        self.remote
    }

    /// The application dropped a half of a stream. The entry is removed with the second half.
    pub(crate) fn drop_half(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.halves_dropped += 1;
        if stream.halves_dropped == 2 {
            self.streams.remove(&id);
        }
    }
}

/// Stores the waker of a waiting task, replacing an older one.
pub(crate) fn register(place: &mut Option<Waker>, waker: &Waker) {
    match place {
        Some(old) => old.clone_from(waker),
        None => *place = Some(waker.clone()),
    }
}
