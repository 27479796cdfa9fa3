//! Parts of uploads that were interrupted: kept for their clients to go on, and never for long or in the way of others.
//!
//! ```text
//!  upload begins --> not a leftover --> ends without its file --> empty: removed
//!                                                             --> leftover, until it is resumed, or
//!                                                                 too old, too many, too large together: the oldest goes,
//!                                                                 or an upload finds the disk full: the oldest goes
//! ```
//!
//! An upload that is larger than what is free and what leftovers hold is refused before it begins, see [`Upload::fits`]. One
//! that itself finds the disk full keeps nothing, see [`super::part::Part::write_all`]. Parts of an earlier run of
//! the server are found by one walk through the directory, before the first upload.
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

/// How much is kept of interrupted uploads. Where a limit is passed, the oldest part goes first.
#[derive(Clone, Copy, Debug)]
pub struct PartLimits {
    /// Parts.
    pub number: usize,
    /// Bytes of all parts together. The newest alone may have more, so that every upload can be resumed once.
    pub bytes: u64,
    /// Time since the last byte came; looked at whenever an upload begins or ends.
    pub age: Duration,
}

impl Default for PartLimits {
    /// A part for each of some dozen clients, what a small disk holds, and a week for somebody to come back.
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

/// What is known of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leftover {
    pub(super) bytes: u64,
    /// When the last byte came.
    pub(super) since: SystemTime,
}

/// An upload that goes on. Dropped, its part is a leftover, unless there is none.
#[derive(Debug)]
pub(super) struct Upload {
    leftovers: Arc<Leftovers>,
    name: FileName,
}

impl Leftovers {
    pub(super) fn new(directory: Arc<ServedDirectory>, limits: PartLimits) -> Self {
        Self { directory, limits, parts: Mutex::default(), is_loaded: OnceLock::new() }
    }

    fn parts(&self) -> MutexGuard<'_, BTreeMap<FileName, Leftover>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An upload of this name begins; what is left of an earlier one is its own now. Reads the directory when called for
    /// the first time.
    pub(super) fn begin(self: &Arc<Self>, name: &FileName) -> Upload {
        self.is_loaded.get_or_init(|| {
            let found = self.directory.parts();
            self.parts().extend(found);
        });
        self.parts().remove(name);
        self.enforce();
        Upload { leftovers: self.clone(), name: name.clone() }
    }

    /// Removes the oldest part for an upload that finds the disk full; false when there is none.
    pub(super) fn make_room(&self) -> bool {
        while let Some(name) = self.oldest() {
            if self.remove(&name, "the disk is full") {
                return true;
            }
        }
        false
    }

    fn oldest(&self) -> Option<FileName> {
        self.parts().iter().min_by_key(|(_, part)| part.since).map(|(name, _)| name.clone())
    }

    /// Removes what is beyond the limits.
    fn enforce(&self) {
        while let Some((name, reason)) = self.surplus() {
            self.remove(&name, reason);
        }
    }

    /// The oldest part, if there is too much, and why.
    fn surplus(&self) -> Option<(FileName, &'static str)> {
        let parts = self.parts();
        let (name, oldest) = parts.iter().min_by_key(|(_, part)| part.since)?;
        let bytes = parts.values().fold(0u64, |sum, part| sum.saturating_add(part.bytes));
        let reason = if parts.len() > self.limits.number {
            "there are too many"
        } else if parts.len() > 1 && bytes > self.limits.bytes {
            "they are too large together"
        } else if age(oldest.since) > self.limits.age {
            "nobody went on with it"
        } else {
            return None;
        };
        Some((name.clone(), reason))
    }

    /// Removes a part, unless it is being written; forgets it in any case. Whether it was removed.
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
    /// Whether so many bytes more can be written to the file, when all leftovers are gone.
    pub(super) fn fits(&self, file: &File, bytes: u64) -> bool {
        let held = self.leftovers.parts().values().fold(0u64, |sum, part| sum.saturating_add(part.bytes));
        free_bytes(file).is_none_or(|free| bytes <= free.saturating_add(held))
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
                self.leftovers.parts().insert(self.name.clone(), part);
            }
        }
        self.leftovers.enforce();
    }
}

/// Zero for what is in the future.
#[expect(
    clippy::disallowed_methods,
    reason = "files are dated by the wall clock, and tests set a file's date instead"
)]
fn age(since: SystemTime) -> Duration {
    SystemTime::now().duration_since(since).unwrap_or_default()
}
