//! One connection as its handles and the driver see it: the protocol's part, how far it is, and who waits.
//!
//! ```text
//!   HalfOpen --Connected--> Waiting --accept--> Held --handles dropped--> Abandoned
//!                                        ^ a connection that we open begins here
//! ```

use core::task::Waker;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use ctcp_base::Instant;
use ctcp_proto::{Connection, ConnectionError, ConnectionHandle, Event, StreamId};
use tokio::sync::Notify;

use crate::turns::PeerId;

/// What asynchronous calls on a connection wait for. Each event wakes all waiters, who look again.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// It came up, or it is over.
    pub(crate) changed: Notify,
    /// The peer opened a stream, or it is over.
    pub(crate) stream_opened: Notify,
    /// We may open more streams, or it is over.
    pub(crate) streams_available: Notify,
}

impl Signals {
    pub(crate) fn notify_all(&self) {
        self.changed.notify_waiters();
        self.stream_opened.notify_waiters();
        self.streams_available.notify_waiters();
    }
}

/// Who answers for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Nobody yet: a client that has not proved its key.
    HalfOpen,
    /// In the backlog.
    Waiting,
    /// The application.
    Held,
    /// Nobody any more.
    Abandoned,
}

/// A stream of which the application holds a half. The protocol tells nothing of others, so no event is missed.
#[derive(Debug, Default)]
pub(crate) struct StreamSlot {
    pub(crate) reader: Option<Waker>,
    pub(crate) writer: Option<Waker>,
    /// Waits for the end of the sending half: delivered or stopped.
    pub(crate) settled: Option<Waker>,
    /// The peer has everything.
    pub(crate) is_delivered: bool,
    /// The peer reads no more.
    pub(crate) stopped: Option<u64>,
    halves_dropped: u8,
}

/// A connection and who waits for it.
pub(crate) struct Slot {
    pub(crate) connection: Connection,
    pub(crate) handle: ConnectionHandle,
    pub(crate) signals: Arc<Signals>,
    pub(crate) streams: BTreeMap<StreamId, StreamSlot>,
    pub(crate) owner: Owner,
    pub(crate) is_connected: bool,
    /// Why it is over.
    pub(crate) error: Option<ConnectionError>,
    /// Where the peer was last.
    remote: SocketAddr,
    pub(crate) is_retired: bool,
    /// To whom its costs are charged.
    pub(crate) peer: PeerId,
    /// It waits for a turn of its peer.
    pub(crate) is_ready: bool,
    pub(crate) deadline: Option<Instant>,
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
        }
    }

    /// True when the protocol is done with it and the application too.
    pub(crate) fn is_unwanted(&self) -> bool {
        self.is_retired && matches!(self.owner, Owner::HalfOpen | Owner::Abandoned)
    }

    /// Carries an event to those who wait for it; wakers go to `wakers`.
    pub(crate) fn on_event(&mut self, event: Event, wakers: &mut Vec<Waker>) {
        match event {
            Event::Connected => {
                tracing::debug!(remote = %self.remote(), peer = self.peer(), "connected");
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
            #[allow(unreachable_patterns, reason = "more kinds of events may come")]
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

    /// The peer's name in the log.
    fn peer(&self) -> String {
        self.connection.peer_key().short()
    }

    /// The peer's address, the last one known when the connection is over.
    pub(crate) fn remote(&mut self) -> SocketAddr {
        self.remote = self.connection.remote().unwrap_or(self.remote);
        self.remote
    }

    /// The application dropped a half of a stream; with the second one it is forgotten.
    pub(crate) fn drop_half(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.halves_dropped += 1;
        if stream.halves_dropped == 2 {
            self.streams.remove(&id);
        }
    }
}

/// Keeps the newest waker of a task that waits.
pub(crate) fn register(place: &mut Option<Waker>, waker: &Waker) {
    match place {
        Some(old) => old.clone_from(waker),
        None => *place = Some(waker.clone()),
    }
}
