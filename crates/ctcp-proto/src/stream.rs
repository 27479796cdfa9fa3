//! Streams: ordered byte sequences multiplexed over one space of symbols.
//!
//! ```text
//!   write ──> SendHalf ──┐                                     ┌──> ReceiveHalf ──> read
//!   write ──> SendHalf ──┼─ Scheduler ─> symbols ~~~> symbols ─┼──> ReceiveHalf ──> read
//!   write ──> SendHalf ──┘  (credit)     coded in between      └──> ReceiveHalf ──> read
//! ```
//!
//! A symbol is filled once and never changes; the coding layer below repairs it. So a stream sends each byte once and knows nothing of
//! packets and losses. It learns of delivery by one number for each of two lanes: the oldest symbol that the peer has not decoded. Control frames ([`Control`])
//! travel alongside the symbols. If one is lost, its latest value is sent again.
//!
//! Source: PROTOCOL.md section 5. States, final sizes and credit follow RFC 9000 sections 2 to 4; all streams are bidirectional. Needs
//! neither time nor randomness.
//!
//! Memory that a peer can occupy: bytes up to the window of the connection, plus one page and one [`Streams`] entry for each stream it may
//! open. Memory that the application can occupy: [`SEND_BUFFER_MAX`] per stream, and about [`SEND_TOTAL_MAX`] in total.

mod assembler;
mod control;
mod event;
mod flight;
mod flow_control;
mod page;
mod receive;
mod scheduler;
mod send;
mod send_buffer;
mod streams;
mod thin;

pub use assembler::Assembler;
pub use control::Control;
pub use event::StreamEvent;
pub use flight::Lane;
pub use flow_control::Pace;
pub use page::PagePool;
pub use send::SEND_BUFFER_MAX;
pub(crate) use streams::Outlet;
pub use streams::{SEND_TOTAL_MAX, Streams, StreamsConfig};
pub use thin::Interactive;

use core::fmt;

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    /// The number of bytes read, at least one (zero only if the buffer is empty).
    Data(usize),
    /// No data now. A [`StreamEvent::Readable`] follows.
    Blocked,
    /// The peer finished the stream and everything was read.
    Finished,
}

/// Why a stream cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The peer allows no more streams now. A [`StreamEvent::Available`] follows.
    LimitReached,
}

/// Why a write failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// The stream does not exist or has closed in both directions.
    UnknownStream,
    /// The buffer is full. A [`StreamEvent::Writable`] follows.
    Blocked,
    /// The peer's application stopped reading, with this error code.
    Stopped(u64),
    /// This side has finished the stream.
    Finished,
    /// This side has reset the stream.
    Reset,
}

/// Why a read failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The stream does not exist or has closed in both directions.
    UnknownStream,
    /// The peer's application reset the stream with this error code.
    Reset(u64),
    /// This side has stopped reading.
    Stopped,
}

/// The stream does not exist or has closed in both directions.
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
