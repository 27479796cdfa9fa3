//! Parts of interrupted uploads: kept so that clients can resume, but not forever and not at the expense of other
//! clients.
//!
//! ```text
//!  upload starts --> not a leftover --> ends without its file --> empty: removed
//!                                                             --> leftover, until it is resumed, or
//!                                                                 too old: removed,
//!                                                                 too many, too large together, or the disk is full:
//!                                                                 the oldest of the client with the most is removed
//! ```
//!
//! So a client that leaves many or large parts loses its own parts and not those of others.
//!
//! An upload larger than the free space plus all leftovers is refused at its start, see [`Upload::fits`]. One that
//! finds the disk full while it writes keeps nothing, see [`super::part::Part::write_all`]. Parts of an earlier run of
//! the server are found by one search of the directory, before the first upload.
//!
//! Invariant: a part is removed only under its lock, so never while it is written.

use core::time::Duration;
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

use ctcp_base::Escaped;
use tracing::info;

use super::FileName;
use super::directory::{ServedDirectory, free_bytes};
use super::part::Destination;

/// How much is kept of interrupted uploads. Beyond a limit, the oldest part of the client with the most is removed
/// first.
#[derive(Clone, Copy, Debug)]
pub struct PartLimits {
    /// The number of parts.
    pub number: usize,
    /// Bytes of all parts together. A single part may be larger, so that a large upload can be resumed if there are no
    /// others.
    pub bytes: u64,
    /// Time since the last byte arrived. Checked whenever an upload starts or ends.
    pub age: Duration,
}

impl Default for PartLimits {
    /// A part for each of some dozen clients, the size of a small disk, and a week for a client to come back.
    fn default() -> Self {
        Self { number: 64, bytes: 64 << 30, age: Duration::from_secs(7 * 24 * 3600) }
    }
}

/// The leftovers in a served directory.
#[derive(Debug)]
pub(super) struct Leftovers {
    directory: Arc<ServedDirectory>,
    limits: PartLimits,
    parts: Mutex<BTreeMap<FileName, Leftover>>,
    is_loaded: OnceLock<()>,
}

/// What is known about a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leftover {
    /// The client that left it; empty if unknown.
    pub(super) client: String,
    pub(super) bytes: u64,
    /// When the last byte arrived.
    pub(super) since: SystemTime,
}

/// A running upload. When it is dropped, its part becomes a leftover, if there is a part.
#[derive(Debug)]
pub(super) struct Upload {
    leftovers: Arc<Leftovers>,
    name: FileName,
    client: String,
}

impl Leftovers {
    pub(super) fn new(directory: Arc<ServedDirectory>, limits: PartLimits) -> Self {
        Self { directory, limits, parts: Mutex::default(), is_loaded: OnceLock::new() }
    }

    fn parts(&self) -> MutexGuard<'_, BTreeMap<FileName, Leftover>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a client's upload of this name, which takes over the part of an earlier one. The first call searches the
    /// directory for parts.
    pub(super) fn begin(self: &Arc<Self>, name: &FileName, client: &str) -> Upload {
        self.is_loaded.get_or_init(|| {
            let found = self.directory.parts();
            self.parts().extend(found);
        });
        self.parts().remove(name);
        self.enforce();
        Upload { leftovers: self.clone(), name: name.clone(), client: client.to_owned() }
    }

    /// Removes a part for an upload that finds the disk full. Returns false if there is none.
    pub(super) fn make_room(&self) -> bool {
        while let Some(name) = self.next_to_go(bytes) {
            if self.remove(&name, "the disk is full") {
                return true;
            }
        }
        false
    }

    fn next_to_go(&self, weight: fn(&Leftover) -> u64) -> Option<FileName> {
        oldest_of_largest(&self.parts(), weight)
    }

    /// Removes parts beyond the limits.
    fn enforce(&self) {
        while let Some((name, reason)) = self.surplus() {
            self.remove(&name, reason);
        }
    }

    /// The next part to remove, if there are too many, and the reason.
    fn surplus(&self) -> Option<(FileName, &'static str)> {
        let parts = self.parts();
        let (name, oldest) = parts.iter().min_by_key(|(_, part)| part.since)?;
        if age(oldest.since) > self.limits.age {
            return Some((name.clone(), "it was not resumed"));
        }
        if parts.len() > self.limits.number {
            return Some((oldest_of_largest(&parts, |_| 1)?, "there are too many of them"));
        }
        let sum = parts.values().fold(0u64, |sum, part| sum.saturating_add(part.bytes));
        if parts.len() > 1 && sum > self.limits.bytes {
            return Some((oldest_of_largest(&parts, bytes)?, "they are too large together"));
        }
        None
    }

    /// Removes a part unless it is being written, and forgets it in any case. Returns true if it was removed.
    fn remove(&self, name: &FileName, reason: &str) -> bool {
        self.parts().remove(name);
        let is_removed = self.destination(name).is_some_and(|destination| destination.remove_part());
        if is_removed {
            info!(name = %Escaped(name.as_str()), reason, "the part of an interrupted upload is removed");
        }
        is_removed
    }

    fn destination(&self, name: &FileName) -> Option<Destination> {
        let (parent, leaf) = self.directory.parent(name).ok()?;
        Destination::new(parent, leaf).ok()
    }
}

impl Upload {
    /// Returns true if this many further bytes fit on the disk once all leftovers are removed.
    pub(super) fn fits(&self, file: &File, bytes: u64) -> bool {
        let held = self.leftovers.parts().values().fold(0u64, |sum, part| sum.saturating_add(part.bytes));
        free_bytes(file).is_none_or(|free| bytes <= free.saturating_add(held))
    }

    /// The client of the upload.
    pub(super) fn client(&self) -> &str {
        &self.client
    }

    /// See [`Leftovers::make_room`].
    pub(super) fn make_room(&self) -> bool {
        self.leftovers.make_room()
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let Some(destination) = self.leftovers.destination(&self.name) else { return };
        match destination.leftover() {
            None => return,
            Some(part) if part.bytes == 0 => {
                destination.remove_part();
            }
            Some(part) => {
                let part = Leftover { client: self.client.clone(), ..part };
                self.leftovers.parts().insert(self.name.clone(), part);
            }
        }
        self.leftovers.enforce();
    }
}

fn bytes(part: &Leftover) -> u64 {
    part.bytes
}

/// The oldest part of the client whose parts have the largest total weight.
fn oldest_of_largest(parts: &BTreeMap<FileName, Leftover>, weight: fn(&Leftover) -> u64) -> Option<FileName> {
    let mut weights: BTreeMap<&str, u64> = BTreeMap::new();
    for part in parts.values() {
        let sum = weights.entry(&part.client).or_default();
        *sum = sum.saturating_add(weight(part));
    }
    let (largest, _) = weights.into_iter().max_by_key(|(_, weight)| *weight)?;
    let of_largest = parts.iter().filter(|(_, part)| part.client == largest);
    of_largest.min_by_key(|(_, part)| part.since).map(|(name, _)| name.clone())
}

/// The age of a file; zero if its date is in the future.
#[expect(
    clippy::disallowed_methods,
    reason = "files are dated by the wall clock, and tests set a file's date instead"
)]
fn age(since: SystemTime) -> Duration {
    SystemTime::now().duration_since(since).unwrap_or_default()
}
