//! The hash of a file up to a position, and stored hash states for transfers that resume later.
//!
//! ```text
//!  file   |#########|#########|#########|######            states are stored at each | and where a transfer ended;
//!                                       ^   ^              one that resumes at the second ^ reads from the first
//! ```
//!
//! SHA-256 cannot start in the middle of a file, so without a state a resumed transfer reads everything before its
//! start. A state belongs to an inode and its change time (`ctime`), which no program can set, so it is never used for
//! other content. On systems without these, no state is stored.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ring::digest::{Context, SHA256};

use super::{CHUNK_BYTES, FileError, Hash};

/// How many files have stored states: more than simultaneous transfers. The least recently used one is removed first.
const FILES_MAX: usize = 128;

/// States of one file at even distances, some 200 bytes each: with [`FILES_MAX`], some 7 MB in all.
const STATES_MAX: u64 = 256;

/// The minimum distance of states, which is hashed in some 30 ms.
pub(super) const DISTANCE_MIN: u64 = 16 << 20;

/// Distinguishes a content from all others that this machine ever had under the same inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

/// The stored states.
#[derive(Debug, Default)]
pub(super) struct States(Mutex<Vec<Kept>>);

/// The states of one content, by position.
struct Kept {
    key: Key,
    states: BTreeMap<u64, Context>,
}

impl core::fmt::Debug for Kept {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.debug_struct("Kept").field("key", &self.key).finish_non_exhaustive()
    }
}

impl States {
    /// The files, the least recently used first.
    fn files(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last stored state up to a position.
    fn up_to(&self, key: &Key, end: u64) -> Option<(u64, Context)> {
        let mut files = self.files();
        let index = files.iter().position(|kept| kept.key == *key)?;
        let kept = files.remove(index);
        let state = kept.states.range(..=end).next_back().map(|(at, state)| (*at, state.clone()));
        files.push(kept);
        state
    }

    fn keep(&self, key: &Key, position: u64, state: &Context) {
        let mut files = self.files();
        let index = files.iter().position(|kept| kept.key == *key);
        let mut kept = match index {
            Some(index) => files.remove(index),
            None => Kept { key: key.clone(), states: BTreeMap::new() },
        };
        // Besides the states at even distances there are those where transfers ended.
        if kept.states.len() as u64 >= 2 * STATES_MAX {
            kept.states.pop_first();
        }
        kept.states.insert(position, state.clone());
        if files.len() >= FILES_MAX {
            files.remove(0);
        }
        files.push(kept);
    }
}

/// The hash of the first bytes of a file.
pub(super) struct RunningHash {
    context: Context,
    position: u64,
    states: Option<Arc<States>>,
    /// The key of the content being read, if its states are to be stored.
    key: Option<Key>,
}

impl core::fmt::Debug for RunningHash {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.debug_struct("RunningHash").field("position", &self.position).finish_non_exhaustive()
    }
}

impl RunningHash {
    /// The hash of no bytes; no state is stored.
    pub(super) fn new() -> Self {
        Self { context: Context::new(&SHA256), position: 0, states: None, key: None }
    }

    /// The hash of the longest prefix of the first `end` bytes of the file for which a state is stored.
    pub(super) fn of(file: &File, end: u64, states: &Arc<States>) -> Self {
        let key = key(file);
        let found = key.as_ref().and_then(|key| states.up_to(key, end));
        let (position, context) = found.unwrap_or_else(|| (0, Context::new(&SHA256)));
        Self { context, position, states: Some(states.clone()), key }
    }

    /// The hash of no bytes, for a file that will be written; its state is stored by [`RunningHash::keep`].
    pub(super) fn of_none(states: &Arc<States>) -> Self {
        Self { states: Some(states.clone()), ..Self::new() }
    }

    /// The hash of no bytes again, when the file is rewritten from its beginning.
    pub(super) fn restart(&self) -> Self {
        Self { states: self.states.clone(), ..Self::new() }
    }

    /// The number of bytes hashed.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Hashes further data.
    pub(super) fn update(&mut self, data: &[u8]) {
        self.context.update(data);
        self.position = self.position.saturating_add(data.len() as u64);
    }

    /// The hash of all data so far.
    pub(super) fn hash(&self) -> Hash {
        let mut hash = Hash::default();
        hash.copy_from_slice(self.context.clone().finish().as_ref());
        hash
    }

    /// Reads and hashes up to `end`, and leaves the file's position there.
    ///
    /// # Errors
    /// [`FileError::Changed`] if the file ends before that.
    pub(super) fn read_up_to(&mut self, file: &mut File, end: u64) -> Result<(), FileError> {
        file.seek(SeekFrom::Start(self.position))?;
        let mut buffer = vec![0; CHUNK_BYTES];
        while self.position < end {
            self.read(file, end, &mut buffer)?;
        }
        Ok(())
    }

    /// Reads and hashes the next data of the file, at most one buffer and up to `end`, and returns it.
    pub(super) fn read<'a>(
        &mut self,
        file: &mut File,
        end: u64,
        buffer: &'a mut [u8],
    ) -> Result<&'a [u8], FileError> {
        let left = usize::try_from(end.saturating_sub(self.position)).unwrap_or(usize::MAX);
        let wanted = left.min(buffer.len());
        let count = file.read(buffer.get_mut(..wanted).unwrap_or_default())?;
        if count == 0 {
            return Err(FileError::Changed);
        }
        let data = buffer.get(..count).unwrap_or_default();
        let before = self.position;
        self.update(data);
        if let (Some(key), Some(states)) = (&self.key, &self.states) {
            let distance = DISTANCE_MIN.max(key.size / STATES_MAX);
            if before / distance != self.position / distance {
                states.keep(key, self.position, &self.context);
            }
        }
        Ok(data)
    }

    /// Stores the state for a transfer that resumes from here, for the file as it is now.
    pub(super) fn keep(&self, file: &File) {
        if let (Some(key), Some(states)) = (key(file), &self.states)
            && self.position > 0
        {
            states.keep(&key, self.position, &self.context);
        }
    }
}

#[cfg(unix)]
fn key(file: &File) -> Option<Key> {
    use std::os::unix::fs::MetadataExt;
    let metadata = file.metadata().ok()?;
    let changed = (metadata.ctime(), metadata.ctime_nsec());
    Some(Key { device: metadata.dev(), inode: metadata.ino(), size: metadata.len(), changed })
}

#[cfg(not(unix))]
fn key(_: &File) -> Option<Key> {
    None
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn hashed(file: &mut File, end: u64, states: &Arc<States>) -> (u64, Hash) {
        let mut hash = RunningHash::of(file, end, states);
        let known = hash.position();
        hash.read_up_to(file, end).unwrap();
        (known, hash.hash())
    }

    #[cfg(unix)]
    #[test]
    fn content_is_read_once_up_to_a_state_and_again_after_a_change() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let end = 3 * DISTANCE_MIN + 5;
        fs::write(&path, vec![7; usize::try_from(end).unwrap()]).unwrap();
        let states = Arc::default();
        let mut file = File::options().read(true).write(true).open(&path).unwrap();
        let (first, hash) = hashed(&mut file, end, &states);
        assert_eq!((first, hashed(&mut file, end, &states)), (0, (3 * DISTANCE_MIN, hash)));
        assert_eq!(hashed(&mut file, 2 * DISTANCE_MIN + 1, &states).0, 2 * DISTANCE_MIN);

        let modified = file.metadata().unwrap().modified().unwrap();
        std::thread::sleep(core::time::Duration::from_millis(20)); // a tick of the file system's clock
        fs::write(&path, vec![8; usize::try_from(end).unwrap()]).unwrap();
        file.set_modified(modified).unwrap();
        let (known, other) = hashed(&mut file, end, &states);
        assert!(known == 0 && other != hash);
    }

    #[cfg(unix)]
    #[test]
    fn the_numbers_of_files_and_of_states_per_file_are_bounded() {
        let states = States::default();
        let context = Context::new(&SHA256);
        let key = |inode| Key { device: 0, inode, size: 0, changed: (0, 0) };
        for inode in 0..2 * FILES_MAX as u64 {
            states.keep(&key(inode), 1, &context);
        }
        for position in 0..10 * STATES_MAX {
            states.keep(&key(0), position, &context);
        }
        let files = states.files();
        assert_eq!(files.len(), FILES_MAX);
        assert!(files.iter().all(|kept| kept.states.len() as u64 <= 2 * STATES_MAX));
    }
}
