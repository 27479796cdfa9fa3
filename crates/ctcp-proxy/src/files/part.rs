//! An incomplete file: `NAME.part` next to its destination, and the sidecar that describes it.
//!
//! ```text
//!  open ----> have n bytes of (name, size, modified)          sidecar missing, invalid or of another name: have 0
//!    |            |
//!    |            +-- other side has the same --> append from n
//!    +-- begin --> empty, new sidecar -----------> append from 0
//!                                                     |
//!                                  hash verified --> commit: fsync, rename, sidecar removed
//! ```
//!
//! Invariant: the final name changes only in `commit`, and only to a file whose every byte was hashed as it was
//! written. A lock on the part excludes a second transfer; it ends with the process, so nothing needs cleaning up.
//!
//! A server's part holds its [`Upload`], so that it is not kept forever, nor at all when the disk is full. A client's
//! part is kept until it is completed or its user removes it.

use std::fs::TryLockError;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use cap_fs_ext::MetadataExt;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use serde::{Deserialize, Serialize};

use super::beginnings::Beginning;
use super::directory::open_regular;
use super::leftovers::{Leftover, Upload};
use super::name::{PART, SIDECAR};
use super::running_hash::{RunningHash, States};
use super::{FileError, Hash};
use crate::request::FileIdentity;

/// The largest sidecar that is read: it holds a name and two numbers.
const SIDECAR_BYTES_MAX: u64 = 8 * 1024;

const SIDECAR_VERSION: u32 = 1;

/// The final place of a file.
#[derive(Debug)]
pub(super) struct Destination {
    directory: Dir,
    leaf: String,
}

/// Identifies the file that a part is the beginning of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Sidecar {
    version: u32,
    /// The name at the other side.
    name: String,
    identity: FileIdentity,
    /// At a server: the client that uploads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client: Option<String>,
}

/// An open and locked part.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) file: std::fs::File,
    destination: Destination,
    name: String,
    /// The bytes present, and the content they belong to.
    have: Option<(u64, FileIdentity)>,
    hash: RunningHash,
    /// Set at a server. Declared after the file, because the lock must be released when this is dropped.
    upload: Option<Upload>,
}

impl Destination {
    /// A destination at a path of this machine.
    pub(super) fn ambient(path: &Path) -> Result<Self, FileError> {
        let leaf = path.file_name().and_then(|leaf| leaf.to_str()).ok_or(FileError::NotAFile)?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or_else(|| Path::new("."));
        let directory = Dir::open_ambient_dir(parent, ambient_authority())?;
        Self::new(directory, leaf)
    }

    /// A destination in a directory. An existing file of this name must be regular: a link or a device is not replaced.
    pub(super) fn new(directory: Dir, leaf: &str) -> Result<Self, FileError> {
        match directory.symlink_metadata(leaf) {
            Ok(metadata) if metadata.is_symlink() => return Err(FileError::Link),
            Ok(metadata) if !metadata.is_file() => return Err(FileError::NotAFile),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
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

    /// Opens or creates the part, and reads its state. `name` is the file's name at the other side.
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
            // Some network file systems have no locks; the hash still protects the content.
            Err(TryLockError::Error(_)) => {}
        }
        // Between open and lock another transfer may have completed. Then this is the final file and not a part.
        let named = self.directory.symlink_metadata(&path).map_err(|_| FileError::Busy)?;
        if (named.dev(), named.ino()) != (opened.dev(), opened.ino()) {
            return Err(FileError::Busy);
        }
        let length = file.metadata()?.len();
        let described = self.read_sidecar().filter(|sidecar| sidecar.name == name);
        let have = described.map(|sidecar| (length.min(sidecar.identity.size), sidecar.identity));
        Ok(Part {
            file,
            destination: self,
            name: name.to_owned(),
            have,
            hash: RunningHash::new(),
            upload: None,
        })
    }

    /// The part and sidecar of an interrupted upload, if there is one.
    pub(super) fn leftover(&self) -> Option<Leftover> {
        let client = self.read_sidecar()?.client.unwrap_or_default();
        let metadata = self.directory.symlink_metadata(self.part()).ok().filter(|it| it.is_file())?;
        Some(Leftover { client, bytes: metadata.len(), since: metadata.modified().ok()?.into_std() })
    }

    /// Removes the part and its sidecar unless a transfer writes it. Returns true if it was removed.
    pub(super) fn remove_part(&self) -> bool {
        let mut options = OpenOptions::new();
        let Ok(file) = open_regular(&self.directory, &self.part(), options.write(true)) else { return false };
        let file = file.into_std();
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => false,
            Ok(()) | Err(TryLockError::Error(_)) => self.unlink(),
        }
    }

    /// Unlinks the part and its sidecar. Returns true if there was a part.
    fn unlink(&self) -> bool {
        let is_removed = self.directory.remove_file(self.part()).is_ok();
        let _ = self.directory.remove_file(self.sidecar());
        is_removed
    }

    /// Returns `None` if there is no valid sidecar: then the transfer starts over.
    fn read_sidecar(&self) -> Option<Sidecar> {
        let file = open_regular(&self.directory, &self.sidecar(), OpenOptions::new().read(true)).ok()?;
        let mut bytes = Vec::new();
        file.into_std().take(SIDECAR_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        let sidecar: Sidecar = serde_json::from_slice(&bytes).ok()?;
        (sidecar.version == SIDECAR_VERSION).then_some(sidecar)
    }
}

impl Beginning for Part {
    fn left(&self) -> u64 {
        self.have.map_or(0, |(bytes, _)| bytes.saturating_sub(self.hash.position()))
    }

    fn hash_some(&mut self, most: u64) -> Result<(), FileError> {
        let end = self.hash.position().saturating_add(most.min(self.left()));
        self.hash.read_up_to(&mut self.file, end)
    }
}

impl Part {
    /// The bytes present and their content; `None` if nothing is usable.
    pub(super) fn have(&self) -> Option<(u64, FileIdentity)> {
        self.have.filter(|(bytes, _)| *bytes > 0)
    }

    /// Empties the part and writes the sidecar for new content.
    pub(super) fn begin(&mut self, identity: FileIdentity) -> Result<(), FileError> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        let client = self.upload.as_ref().map(|upload| upload.client().to_owned());
        let sidecar = Sidecar { version: SIDECAR_VERSION, name: self.name.clone(), identity, client };
        let json = serde_json::to_vec(&sidecar).map_err(|error| FileError::Io(error.into()))?;
        let options = OpenOptions::new().write(true).create(true).truncate(true).clone();
        let Destination { directory, .. } = &self.destination;
        let file = open_regular(directory, &self.destination.sidecar(), &options)?;
        let mut file = file.into_std();
        file.write_all(&json)?;
        file.sync_all()?;
        self.have = Some((0, identity));
        self.hash = self.hash.restart();
        Ok(())
    }

    /// Resumes after the first `start` bytes: reads and hashes them, and truncates the rest.
    pub(super) fn resume(&mut self, start: u64) -> Result<(), FileError> {
        if self.file.metadata()?.len() != start {
            self.file.set_len(start)?;
        }
        match self.hash.read_up_to(&mut self.file, start) {
            Err(FileError::Changed) => Err(FileError::PrefixDiffers),
            other => other,
        }
    }

    /// Hashes the next data of the transfer.
    pub(super) fn update_hash(&mut self, data: &[u8]) {
        self.hash.update(data);
    }

    /// The hash of the data so far.
    pub(super) fn hash(&self) -> Hash {
        self.hash.hash()
    }

    /// Stores the state of the hash, for an upload that resumes from here.
    pub(super) fn keep_hash(&self) {
        self.hash.keep(&self.file);
    }

    /// Turns it into a server's part, which is cleaned up after the upload, and whose hash state is stored.
    pub(super) fn of_upload(self, upload: Upload, states: &Arc<States>) -> Self {
        let hash = match self.have() {
            Some((bytes, _)) => RunningHash::of(&self.file, bytes, states),
            None => RunningHash::of_none(states),
        };
        Self { upload: Some(upload), hash, ..self }
    }

    /// Returns true if this many further bytes have room; see [`Upload::fits`].
    pub(super) fn has_room_for(&self, bytes: u64) -> bool {
        self.upload.as_ref().is_none_or(|upload| upload.fits(&self.file, bytes))
    }

    /// Like [`Part::begin`]. If the disk of a server is full, parts of other uploads are removed. If that is not
    /// enough, this part is removed too.
    pub(super) fn begin_upload(mut self, identity: FileIdentity) -> Result<Self, FileError> {
        loop {
            match self.begin(identity) {
                Ok(()) => return Ok(self),
                Err(FileError::NoSpace) if self.make_room() => {}
                Err(error) => {
                    self.discard();
                    return Err(error);
                }
            }
        }
    }

    /// Writes all data. If the disk of a server is full, parts of interrupted uploads are removed to make room.
    pub(super) fn write_all(&mut self, mut data: &[u8]) -> Result<(), FileError> {
        while !data.is_empty() {
            match self.file.write(data) {
                Ok(0) => return Err(FileError::Io(io::ErrorKind::WriteZero.into())),
                Ok(count) => data = data.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => match FileError::from(error) {
                    FileError::NoSpace if self.make_room() => {}
                    error => return Err(error),
                },
            }
        }
        Ok(())
    }

    fn make_room(&self) -> bool {
        self.upload.as_ref().is_some_and(Upload::make_room)
    }

    /// Returns true if this is a server's part, whose space other uploads need if this one cannot continue.
    pub(super) fn is_servers(&self) -> bool {
        self.upload.is_some()
    }

    /// Removes the part because its content is wrong or its space is needed.
    pub(super) fn discard(self) {
        let _ = self.file.set_len(0); // frees the space even if it cannot be removed
        self.destination.unlink();
    }

    /// Removes an empty part after the other side refused.
    pub(super) fn abandon_if_empty(self) {
        if self.file.metadata().is_ok_and(|metadata| metadata.len() == 0) {
            self.destination.unlink();
        }
    }

    /// Renames the verified file to its final name. The data is on the disk before the name points to it.
    pub(super) fn commit(self) -> Result<(), FileError> {
        let Self { file, destination, upload: _upload, .. } = self;
        file.sync_all()?;
        let Destination { directory, leaf } = &destination;
        // An open file cannot be renamed on Windows; elsewhere the lock is held until the part is renamed.
        #[cfg(windows)]
        drop(file);
        directory.rename(destination.part(), directory, leaf)?;
        let _ = directory.remove_file(destination.sidecar());
        if let Ok(handle) = directory.open(".") {
            let _ = handle.sync_all(); // not supported everywhere; the rename is atomic without it
        }
        #[cfg(not(windows))]
        drop(file);
        Ok(())
    }
}
