//! What the application sees of a connection.

use core::net::SocketAddr;

use crate::crypto::ResetToken;
use crate::error::ConnectionError;
use crate::id::StreamId;

/// Something happened that the application may want to act upon. Events are coalesced: one tells that there is
/// something to do, not how much.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The handshake is complete; streams may be opened. Always the first event of a connection that comes up.
    Connected,
    /// The peer opened streams: [`crate::Connection::accept`] has some.
    StreamOpened,
    /// More streams may be opened than before.
    StreamsAvailable,
    /// [`crate::Connection::read`] has something new: data, the end, or a reset.
    Readable(StreamId),
    /// [`crate::Connection::write`] takes data again.
    Writable(StreamId),
    /// Everything written to the stream, and its end, has arrived.
    Finished(StreamId),
    /// The peer reads no more of this stream.
    Stopped {
        /// The stream.
        id: StreamId,
        /// The code the peer gave.
        code: u64,
    },
    /// The connection is over. Always the last event.
    Closed(ConnectionError),
}

/// What a connection tells its endpoint; the runtime carries it there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndpointEvent {
    /// The client proved that it holds its key: the connection is no longer half open.
    Confirmed,
    /// A datagram from `remote` that ends in `token` says that the peer has forgotten this connection.
    ResetToken {
        /// The peer's address.
        remote: SocketAddr,
        /// The token of its parameters.
        token: ResetToken,
    },
    /// The connection is over and drained: its ids are free.
    Retired,
}
