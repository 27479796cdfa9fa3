//! Hashing of existing data, for transfers that resume. This work moves no bytes, and a client may cause it at will.
//!
//! It runs in slices, one slice at a time per client and [`AT_ONCE_MAX`] over all clients, with a pause after each;
//! between slices clients take turns. So it uses a bounded share of a processor and of the disk, whatever clients
//! request, and stops when the requester is gone.

use core::time::Duration;
use std::sync::Arc;

use tokio::time::sleep;

use super::FileError;
use super::running_hash::{DISTANCE_MIN, States};
use super::serve::blocking;
use crate::shares::Shares;

/// How many slices are hashed at once. With two, other clients continue while one waits for a slow disk.
const AT_ONCE_MAX: usize = 2;

/// Bytes of a slice. The state of the hash is stored after each slice, so that none is hashed twice.
pub(super) const SLICE: u64 = DISTANCE_MIN;

/// The pause after a full slice. A processor without SHA-256 instructions hashes a slice in a third of it. With the
/// pause, the rate stays below 170 MB/s.
const PAUSE: Duration = Duration::from_millis(100);

/// Existing data that is hashed slice by slice.
pub(super) trait Beginning: Sized + Send + 'static {
    /// Bytes not hashed yet.
    fn left(&self) -> u64;

    /// Hashes at most this many further bytes.
    fn hash_some(&mut self, most: u64) -> Result<(), FileError>;
}

/// Schedules the hashing of existing data for a service.
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
    /// Hashes the existing data to its end, on behalf of a client.
    pub(super) async fn hash<B: Beginning>(&self, client: &str, mut beginning: B) -> Result<B, FileError> {
        while beginning.left() > 0 {
            let place = self.shares.among_all(self.shares.own(client).await).await;
            let bytes = beginning.left().min(SLICE);
            // The slot is released after the pause, whether or not a caller still waits for the hash.
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
