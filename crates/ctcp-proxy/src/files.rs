//! Files over coded streams: `get` and `put`, with resume and end-to-end integrity (PROTOCOL.md section 10).
//!
//! ```text
//!  sender                                      receiver
//!   [SHA-256 of the first `start` bytes]  -->   compared with what is in NAME.part; only when start > 0
//!   bytes from `start` to the end         -->   written to NAME.part as they arrive
//!   SHA-256 of the whole file             -->   compared; fsync; NAME.part renamed to NAME
//! ```
//!
//! The same two halves serve both directions: at `get` the server sends, at `put` the client does. A file appears
//! under its name only whole and verified; until then it is `NAME.part`, with a sidecar `NAME.part.json` that says of
//! which content it is the beginning. An interrupted transfer goes on where it stopped if the other side still has
//! that content, and starts over otherwise.
//!
//! The name travels in the first flight, and the decoded prefix is written at once (U4). Reading, hashing and writing
//! happen beside the protocol, on threads of their own with bounded queues (U5). Packets are authenticated by the
//! transport; the hash covers all that lies between the two disks (U9).
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

/// Bytes that are read, hashed and queued in one piece. The queues hold [`QUEUE_CHUNKS`] of them, so that a transfer
/// holds about a megabyte while disk and network differ in pace.
pub(crate) const CHUNK_BYTES: usize = 128 * 1024;

/// See [`CHUNK_BYTES`].
pub(crate) const QUEUE_CHUNKS: usize = 8;

/// Without any byte for so long a transfer is interrupted, even if nobody waits for its place: it would hold that, and the
/// name it writes, for ever. The other side resumes when it comes back.
const STALL: core::time::Duration = core::time::Duration::from_secs(120);

/// Slowest reading and hashing of what is there already that is waited for, in bytes a second.
const HASH_RATE_MIN: u64 = 16 << 20;

/// How long either side waits for a byte in a transfer from `start`, whose beginning both have to read first.
fn patience(start: u64) -> core::time::Duration {
    STALL + time_to_hash(start)
}

/// How long reading and hashing so many bytes may take.
fn time_to_hash(bytes: u64) -> core::time::Duration {
    core::time::Duration::from_secs(bytes / HASH_RATE_MIN)
}

/// Waits with patience for a step of a transfer.
async fn patiently<T>(
    patience: core::time::Duration,
    step: impl Future<Output = std::io::Result<T>>,
) -> std::io::Result<T> {
    match tokio::time::timeout(patience, step).await {
        Ok(outcome) => outcome,
        Err(_) => Err(std::io::Error::new(std::io::ErrorKind::TimedOut, "nothing moved for minutes")),
    }
}

/// How far a transfer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that are there, those of earlier attempts included.
    pub done: u64,
    /// Bytes of the whole file.
    pub total: u64,
}

/// Called as a transfer proceeds, for each chunk.
pub type OnProgress<'a> = &'a mut (dyn FnMut(Progress) + Send);

/// A transfer that is complete and verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transferred {
    /// Bytes of the file.
    pub size: u64,
    /// Bytes that did not have to travel because an earlier attempt had brought them.
    pub resumed: u64,
    /// SHA-256 of the file.
    pub hash: Hash,
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
