//! Hashing what is there already, for transfers that go on at their start: work that moves no byte, and that a client may
//! ask for at will.
//!
//! It is done in slices, of one client one at a time and of all clients [`AT_ONCE_MAX`], with a pause behind each; between slices
//! everybody has their turn. So it costs a fixed share of a processor and of the disk, no matter who asks for how much, and
//! stops when nobody waits for it any more.

use core::time::Duration;
use std::sync::Arc;

use tokio::time::sleep;

use super::FileError;
use super::running_hash::{DISTANCE_MIN, States};
use super::serve::blocking;
use crate::shares::Shares;

/// Beginnings that are hashed at once: those of others go on while one waits for a slow disk.
const AT_ONCE_MAX: usize = 2;

/// Bytes of a slice: after each a state of the hash is kept, so that none is done twice.
pub(super) const SLICE: u64 = DISTANCE_MIN;

/// The pause behind a slice that was full. A processor without instructions for SHA-256 hashes a slice in a third of it; with
/// it, the rate is below 170 MB/s.
const PAUSE: Duration = Duration::from_millis(100);

/// What is hashed slice by slice.
pub(super) trait Beginning: Sized + Send + 'static {
    /// Bytes that are not hashed yet.
    fn left(&self) -> u64;

    /// Hashes at most so many bytes more.
    fn hash_some(&mut self, most: u64) -> Result<(), FileError>;
}

/// All hashing of beginnings of a service.
#[derive(Debug)]
pub(super) struct Beginnings {
    shares: Shares,
    pub(super) states: Arc<States>,
}

impl Default for Beginnings {
    fn default() -> Self {
        Self { shares: Shares::new(AT_ONCE_MAX, 1), states: Arc::default() }
    }
}

impl Beginnings {
    /// Hashes to the end of the beginning, for a client.
    pub(super) async fn hash<B: Beginning>(&self, client: &str, mut beginning: B) -> Result<B, FileError> {
        while beginning.left() > 0 {
            let place = self.shares.among_all(self.shares.own(client).await).await;
            let bytes = beginning.left().min(SLICE);
            // The place is given back after the pause, whether or not anybody waits for the hash.
            let slice = async move {
                let hashed = blocking(move || beginning.hash_some(bytes).map(|()| beginning)).await;
                tokio::spawn(async move {
                    sleep(PAUSE.mul_f64(bytes as f64 / SLICE as f64)).await;
                    drop(place);
                });
                hashed
            };
            beginning = tokio::spawn(slice)
                .await
                .unwrap_or_else(|error| Err(FileError::Io(std::io::Error::other(error))))?;
        }
        Ok(beginning)
    }
}
