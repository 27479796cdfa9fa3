//! A file that is not complete yet: `NAME.part` beside its destination, and the sidecar that describes it.
//!
//! ```text
//!  open ----> have n bytes of (name, size, modified)          sidecar missing, broken or of another name: have 0
//!    |            |
//!    |            +-- other side has the same --> append from n
//!    +-- begin --> empty, new sidecar -----------> append from 0
//!                                                     |
//!                                  hash verified --> commit: fsync, rename, sidecar removed
//! ```
//!
//! Invariant: the final name changes only in `commit`, and only to a file whose every byte was hashed as it was
//! written. A lock on the part keeps a second transfer out; it ends with the process, so nothing is left to clean up.

use std::fs::TryLockError;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use cap_fs_ext::MetadataExt;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

use super::directory::open_regular;
use super::name::{PART, SIDECAR};
use super::{CHUNK_BYTES, FileError};
use crate::request::FileIdentity;

/// Largest sidecar that is read: a name and two numbers.
const SIDECAR_BYTES_MAX: u64 = 8 * 1024;

const SIDECAR_VERSION: u32 = 1;

/// Where a file will be.
#[derive(Debug)]
pub(super) struct Destination {
    directory: Dir,
    leaf: String,
}

/// What a part is the beginning of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Sidecar {
    version: u32,
    /// The name at the other side.
    name: String,
    identity: FileIdentity,
}

/// The part, open and locked.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) file: std::fs::File,
    destination: Destination,
    name: String,
    /// What is there: so many bytes of this content.
    have: Option<(u64, FileIdentity)>,
}

impl Destination {
    /// A path of this machine.
    pub(super) fn ambient(path: &Path) -> Result<Self, FileError> {
        let leaf = path.file_name().and_then(|leaf| leaf.to_str()).ok_or(FileError::NotAFile)?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or_else(|| Path::new("."));
        let directory = Dir::open_ambient_dir(parent, ambient_authority())?;
        Self::new(directory, leaf)
    }

    /// A name in a directory. What exists under it must be a regular file: a link or a device is not replaced.
    pub(super) fn new(directory: Dir, leaf: &str) -> Result<Self, FileError> {
        match directory.symlink_metadata(leaf) {
            Ok(metadata) if metadata.is_symlink() => return Err(FileError::Link),
            Ok(metadata) if !metadata.is_file() => return Err(FileError::NotAFile),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Self { directory, leaf: leaf.to_owned() })
    }

    fn sidecar(&self) -> String {
        format!("{}{SIDECAR}", self.leaf)
    }

    fn part(&self) -> String {
        format!("{}{PART}", self.leaf)
    }

    /// Opens or creates the part, and finds out what is in it. `name` is the file's name at the other side.
    pub(super) fn open_part(self, name: &str) -> Result<Part, FileError> {
        let path = self.part();
        if self.directory.symlink_metadata(&path).is_ok_and(|metadata| metadata.is_symlink()) {
            return Err(FileError::Link);
        }
        let file =
            open_regular(&self.directory, &path, OpenOptions::new().read(true).write(true).create(true))?;
        let opened = file.metadata()?;
        let file = file.into_std();
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(FileError::Busy),
            // Some network file systems know no locks; the hash still protects the content.
            Err(TryLockError::Error(_)) => {}
        }
        // Between open and lock another transfer may have completed: then this is the final file, not a part.
        let named = self.directory.symlink_metadata(&path).map_err(|_| FileError::Busy)?;
        if (named.dev(), named.ino()) != (opened.dev(), opened.ino()) {
            return Err(FileError::Busy);
        }
        let length = file.metadata()?.len();
        let described = self.read_sidecar().filter(|sidecar| sidecar.name == name);
        let have = described.map(|sidecar| (length.min(sidecar.identity.size), sidecar.identity));
        Ok(Part { file, destination: self, name: name.to_owned(), have })
    }

    /// `None` when there is none, or it cannot be understood: then the transfer starts over.
    fn read_sidecar(&self) -> Option<Sidecar> {
        let file = open_regular(&self.directory, &self.sidecar(), OpenOptions::new().read(true)).ok()?;
        let mut bytes = Vec::new();
        file.into_std().take(SIDECAR_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        let sidecar: Sidecar = serde_json::from_slice(&bytes).ok()?;
        (sidecar.version == SIDECAR_VERSION).then_some(sidecar)
    }
}

impl Part {
    /// What is there; `None` when nothing usable is.
    pub(super) fn have(&self) -> Option<(u64, FileIdentity)> {
        self.have.filter(|(bytes, _)| *bytes > 0)
    }

    /// Empties the part and describes the content that will come.
    pub(super) fn begin(&mut self, identity: FileIdentity) -> Result<(), FileError> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        let sidecar = Sidecar { version: SIDECAR_VERSION, name: self.name.clone(), identity };
        let json = serde_json::to_vec(&sidecar).map_err(|error| FileError::Io(error.into()))?;
        let options = OpenOptions::new().write(true).create(true).truncate(true).clone();
        let Destination { directory, .. } = &self.destination;
        let file = open_regular(directory, &self.destination.sidecar(), &options)?;
        let mut file = file.into_std();
        file.write_all(&json)?;
        file.sync_all()?;
        self.have = Some((0, identity));
        Ok(())
    }

    /// Goes on behind the first `start` bytes: reads and hashes them, and drops what is behind them.
    pub(super) fn resume(&mut self, start: u64) -> Result<Context, FileError> {
        let mut context = Context::new(&SHA256);
        self.file.set_len(start)?;
        self.file.seek(SeekFrom::Start(0))?;
        let mut buffer = vec![0; CHUNK_BYTES];
        let mut left = start;
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            let count = self.file.read(buffer.get_mut(..wanted).unwrap_or_default())?;
            if count == 0 {
                return Err(FileError::PrefixDiffers);
            }
            context.update(buffer.get(..count).unwrap_or_default());
            left = left.saturating_sub(count as u64);
        }
        Ok(context)
    }

    /// Forgets what is there, after it proved to be wrong.
    pub(super) fn discard(&mut self) {
        let _ = self.file.set_len(0);
        let _ = self.destination.directory.remove_file(self.destination.sidecar());
        self.have = None;
    }

    /// Removes a part that never held anything, after the other side refused.
    pub(super) fn abandon_if_empty(self) {
        if self.file.metadata().is_ok_and(|metadata| metadata.len() == 0) {
            let _ = self.destination.directory.remove_file(self.destination.part());
            let _ = self.destination.directory.remove_file(self.destination.sidecar());
        }
    }

    /// Gives the verified file its name. The data is on the disk before the name points to it.
    pub(super) fn commit(self) -> Result<(), FileError> {
        let Self { file, destination, .. } = self;
        file.sync_all()?;
        let Destination { directory, leaf } = &destination;
        // An open file cannot be renamed on Windows; elsewhere the lock is held until the part is no more.
        #[cfg(windows)]
        drop(file);
        directory.rename(destination.part(), directory, leaf)?;
        let _ = directory.remove_file(destination.sidecar());
        if let Ok(handle) = directory.open(".") {
            let _ = handle.sync_all(); // not every system can; the rename is atomic without it
        }
        #[cfg(not(windows))]
        drop(file);
        Ok(())
    }
}
