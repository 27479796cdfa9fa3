//! Events of streams for the application. They are edge-triggered and coalesced: at most one of each kind is pending per stream. An event
//! concerns only streams that the application has opened or accepted.

use crate::id::StreamId;

/// A change that an application may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// The peer opened streams: call accept until it returns none. Repeated only after an accept that returned none.
    Opened,
    /// The peer allows more streams, after an open that failed at the limit.
    Available,
    /// There is something to read: bytes, the end, or a reset. Repeated only after a blocked read.
    Readable(StreamId),
    /// There is room to write, after a write that accepted only part of its data.
    Writable(StreamId),
    /// The peer has received all data and the end of the stream.
    Finished(StreamId),
    /// The peer's application stopped reading. Queued data was discarded.
    Stopped {
        /// The stream.
        id: StreamId,
        /// The peer's error code.
        code: u64,
    },
}
