//! Streams: many ordered byte sequences over one space of symbols.
//!
//! ```text
//!   write ──> SendHalf ──┐                                     ┌──> ReceiveHalf ──> read
//!   write ──> SendHalf ──┼─ Scheduler ─> symbols ~~~> symbols ─┼──> ReceiveHalf ──> read
//!   write ──> SendHalf ──┘  (credit)     coded by others       └──> ReceiveHalf ──> read
//! ```
//!
//! A symbol is packed once and never changes; the code below repairs it. So a stream sends each byte once,
//! knows nothing of packets and losses, and learns of delivery by one number: the oldest symbol that the peer
//! has not decoded. Control ([`Control`]) travels beside the symbols and is repeated by its latest value when lost.
//!
//! Source: PROTOCOL.md section 5; states, final sizes and credit as RFC 9000 sections 2 to 4, all streams
//! bidirectional. Needs no time and no randomness.
//!
//! What a peer can make us hold: bytes up to the window of the connection, one page and one [`Streams`] entry
//! for each stream it may open. What the application can: [`SEND_BUFFER_MAX`] a stream, in total about
//! [`SEND_TOTAL_MAX`].

mod assembler;
mod control;
mod event;
mod flow_control;
mod page;
mod receive;
mod scheduler;
mod send;
mod send_buffer;
mod streams;

pub use assembler::Assembler;
pub use control::Control;
pub use event::StreamEvent;
pub use flow_control::Pace;
pub use page::PagePool;
pub use send::SEND_BUFFER_MAX;
pub use streams::{SEND_TOTAL_MAX, Streams, StreamsConfig};

use core::fmt;

/// What a read found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    /// That many bytes, at least one (none only into an empty buffer).
    Data(usize),
    /// Nothing now. A [`StreamEvent::Readable`] follows.
    Blocked,
    /// The peer finished, and all was read.
    Finished,
}

/// Why a stream cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The peer allows no more now. A [`StreamEvent::Available`] follows.
    LimitReached,
}

/// Why nothing can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// There is no such stream, or it is over on both sides.
    UnknownStream,
    /// The buffer is full. A [`StreamEvent::Writable`] follows.
    Blocked,
    /// The peer's application wants no more, for the reason of this code.
    Stopped(u64),
    /// This side has finished the stream.
    Finished,
    /// This side has reset the stream.
    Reset,
}

/// Why nothing can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// There is no such stream, or it is over on both sides.
    UnknownStream,
    /// The peer's application gave the stream up, for the reason of this code.
    Reset(u64),
    /// This side has stopped reading.
    Stopped,
}

/// There is no such stream, or it is over on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownStream;

impl fmt::Display for OpenError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the peer allows no more streams now")
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownStream => UnknownStream.fmt(formatter),
            Self::Blocked => formatter.write_str("the stream's send buffer is full"),
            Self::Stopped(code) => write!(formatter, "the peer stopped reading the stream (code {code})"),
            Self::Finished => formatter.write_str("the stream is finished"),
            Self::Reset => formatter.write_str("the stream was reset by this side"),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownStream => UnknownStream.fmt(formatter),
            Self::Reset(code) => write!(formatter, "the peer reset the stream (code {code})"),
            Self::Stopped => formatter.write_str("this side has stopped reading the stream"),
        }
    }
}

impl fmt::Display for UnknownStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("no such stream, or it is over")
    }
}

impl core::error::Error for OpenError {}
impl core::error::Error for WriteError {}
impl core::error::Error for ReadError {}
impl core::error::Error for UnknownStream {}
