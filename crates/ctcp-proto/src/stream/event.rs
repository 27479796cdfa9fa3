//! What streams tell the application. Events are edges, joined while nobody looks: one of a kind for a stream at
//! most, never one for a packet. A stream is named only after the application opened or accepted it.

use crate::id::StreamId;

/// A change that an application may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// The peer opened streams: accept until there is none. Comes again only after an accept found none.
    Opened,
    /// The peer allows more streams, after an open that found the limit reached.
    Available,
    /// There is something to read: bytes, the end, or a reset. Comes again only after a read was blocked.
    Readable(StreamId),
    /// There is room to write, after a write that was not taken whole.
    Writable(StreamId),
    /// The peer's transport has everything that was written and the end.
    Finished(StreamId),
    /// The peer's application wants no more; what was queued is thrown away.
    Stopped {
        /// The stream.
        id: StreamId,
        /// Its reason.
        code: u64,
    },
}
