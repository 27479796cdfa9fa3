//! Files over coded streams: `get` and `put`, with resume and end-to-end integrity (PROTOCOL.md section 10).
//!
//! ```text
//!  sender                                      receiver
//!   [SHA-256 of the first `start` bytes]  -->   compared with the bytes in NAME.part; only if start > 0
//!   bytes from `start` to the end         -->   written to NAME.part as they arrive
//!   SHA-256 of the whole file             -->   compared; fsync; NAME.part renamed to NAME
//! ```
//!
//! The same two halves serve both directions: for `get` the server sends, for `put` the client does. A file appears
//! under its name only when it is complete and verified. Until then it is `NAME.part`, with a sidecar `NAME.part.json`
//! that identifies its content. An interrupted transfer resumes if the other side still has that content, and starts
//! over otherwise.
//!
//! The name is sent in the first flight, and decoded data is written at once (U4). Reading, hashing and writing run
//! alongside the protocol, on separate threads with bounded queues (U5). Packets are authenticated by the transport;
//! the hash covers everything between the two disks (U9).
//!
//! Requirement: U4, U5, U9

mod beginnings;
mod directory;
mod error;
mod fetch;
mod leftovers;
mod name;
mod part;
mod pour;
mod push;
mod receive;
mod retry;
mod running_hash;
mod send;
mod serve;
mod turns;

pub use error::{FileError, TransferError};
pub use fetch::get;
pub use leftovers::PartLimits;
pub use name::{COMPONENT_BYTES_MAX, FileName, NAME_BYTES_MAX, NameError};
pub use pour::get_to;
pub use push::put;
pub use retry::{BUSY_PATIENCE, FRUITLESS_ATTEMPTS_MAX};
pub use serve::{FileService, UPLOAD_BYTES_MAX, UploadTimes};
pub use turns::{TRANSFERS_MAX, TRANSFERS_PER_CLIENT_MAX, TransferLimits};

/// SHA-256 of a file or of its beginning.
pub type Hash = [u8; 32];

/// Bytes that are read, hashed and queued in one piece. The queues hold [`QUEUE_CHUNKS`] pieces, so a transfer buffers
/// about a megabyte between disk and network.
pub(crate) const CHUNK_BYTES: usize = 128 * 1024;

/// The length of a queue; see [`CHUNK_BYTES`].
pub(crate) const QUEUE_CHUNKS: usize = 8;

/// A transfer without any byte for this long is interrupted, even if no other waits for its slot. Otherwise it would
/// hold the slot and the file name forever. The other side resumes when it reconnects.
const STALL: core::time::Duration = core::time::Duration::from_secs(120);

/// The slowest rate of reading and hashing existing data that a peer waits for, in bytes per second.
const HASH_RATE_MIN: u64 = 16 << 20;

/// How long either side waits for a byte in a transfer from `start`. Both sides first have to read the bytes before it.
fn patience(start: u64) -> core::time::Duration {
    STALL + time_to_hash(start)
}

/// How long reading and hashing this many bytes may take.
fn time_to_hash(bytes: u64) -> core::time::Duration {
    core::time::Duration::from_secs(bytes / HASH_RATE_MIN)
}

/// Waits for a step of a transfer, with a time-out of `patience`.
async fn patiently<T>(
    patience: core::time::Duration,
    step: impl Future<Output = std::io::Result<T>>,
) -> std::io::Result<T> {
    match tokio::time::timeout(patience, step).await {
        Ok(outcome) => outcome,
        Err(_) => Err(std::io::Error::new(std::io::ErrorKind::TimedOut, "nothing moved for minutes")),
    }
}

/// The progress of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes present so far, including those of earlier attempts.
    pub done: u64,
    /// Bytes of the whole file.
    pub total: u64,
}

/// Called for each chunk of a transfer.
pub type OnProgress<'a> = &'a mut (dyn FnMut(Progress) + Send);

/// A transfer that is complete and verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transferred {
    /// Bytes of the file.
    pub size: u64,
    /// Bytes that were not sent again because an earlier attempt had delivered them.
    pub resumed: u64,
    /// SHA-256 of the file.
    pub hash: Hash,
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
