//! Events of a connection for the application and the endpoint.

use core::net::SocketAddr;

use crate::crypto::ResetToken;
use crate::error::ConnectionError;
use crate::id::{ConnectionId, PathId, StreamId};

/// An event for the application. Events are coalesced: one says that there is something to do, not how much.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The handshake is complete and streams may be opened. Always the first event of an established connection.
    Connected,
    /// The peer opened streams, which [`crate::Connection::accept`] returns.
    StreamOpened,
    /// More streams may be opened than before.
    StreamsAvailable,
    /// [`crate::Connection::read`] returns something new: data, the end, or a reset.
    Readable(StreamId),
    /// [`crate::Connection::write`] accepts data again.
    Writable(StreamId),
    /// [`crate::Connection::receive_message`] returns a message.
    MessageReceived,
    /// [`crate::Connection::take_ticket`] returns a ticket.
    TicketReceived,
    /// All data written to the stream, and its end, has arrived.
    Finished(StreamId),
    /// The peer stopped reading this stream.
    Stopped {
        /// The stream.
        id: StreamId,
        /// The peer's error code.
        code: u64,
    },
    /// A further path is usable.
    PathOpened(PathId),
    /// A path was closed, by either side or because nothing answers.
    PathClosed(PathId),
    /// The connection has closed. Always the last event.
    Closed(ConnectionError),
}

/// A notification of a connection for its endpoint, which the runtime forwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndpointEvent {
    /// The client proved possession of its key: the connection is no longer half open.
    Confirmed,
    /// Datagrams with this destination id are for this connection, too.
    NewConnectionId(ConnectionId),
    /// Datagrams with this destination id of a further path are no longer for this connection.
    RetiredConnectionId(ConnectionId),
    /// A datagram from `remote` that ends with `token` is a stateless reset of this connection.
    ResetToken {
        /// The peer's address.
        remote: SocketAddr,
        /// The reset token.
        token: ResetToken,
    },
    /// The connection is closed and drained: its ids are free.
    Retired,
}
