//! Messages with deadlines: each arrives whole or not at all, in any order, and holds up nothing else.
//!
//! ```text
//!   send_message --> Outgoing --- symbols ---> context of messages ---> Incoming --> receive_message
//!                       |  a deadline has passed:                          ^
//!                       +- before it was sent: dropped from the queue      | fragments are joined; those of a message
//!                       +- after it was sent: the floor rises over it -----+ below the floor are dropped
//! ```
//!
//! All messages of a connection share one window of symbols, so a repair protects every thin flow at once. The sender gives up a symbol
//! when all messages in it have expired, and repairs nothing below that floor. The receiver learns the floor from each frame.

mod incoming;
mod outgoing;

use core::fmt;

pub(crate) use incoming::Incoming;
pub(crate) use outgoing::Outgoing;

/// Bytes of messages that may wait at one side, to be sent or to be read. 64 KB are the longest message; a megabyte is 100 ms of a link of
/// 80 Mbit/s.
pub(crate) const QUEUE_MAX: usize = 1 << 20;

/// What a queued message costs beside its bytes.
pub(crate) const MESSAGE_COST: usize = 64;

/// Why a message was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageError {
    /// The peer takes no messages, or none yet.
    Unsupported,
    /// The message is longer than [`crate::wire::MESSAGE_SIZE_MAX`].
    TooLong,
    /// Too many bytes wait to be sent.
    QueueFull,
    /// The connection is not established.
    Closed,
}

impl fmt::Display for MessageError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Unsupported => "the peer takes no messages",
            Self::TooLong => "the message is longer than 65,535 bytes",
            Self::QueueFull => "too many messages wait to be sent",
            Self::Closed => "the connection is not established",
        })
    }
}

impl core::error::Error for MessageError {}

#[cfg(test)]
mod tests;
