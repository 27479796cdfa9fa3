//! Opens names inside one directory and nowhere else.
//!
//! The path is walked component by component. Each is opened relative to the previous one and without following links,
//! so the file that is opened is the one that was checked: if a component is replaced by a link in between, the open
//! fails. As a second safeguard, `cap-std` resolves everything below the directory's handle, so a mistake here cannot
//! escape it.

use std::io;
use std::path::Path;

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, OpenOptions, ReadDir};

use super::leftovers::Leftover;
use super::name::SIDECAR;
use super::part::Destination;
use super::{FileError, FileName};
use crate::request::FileIdentity;

/// How many entries a search for parts examines: a tree of this size takes seconds. Parts beyond it are never removed.
const WALK_ENTRIES_MAX: usize = 1_000_000;

/// A directory whose files are served.
#[derive(Debug)]
pub(super) struct ServedDirectory(Dir);

impl ServedDirectory {
    /// Opens the directory at a path of this machine.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Dir::open_ambient_dir(path, ambient_authority()).map(Self)
    }

    /// Returns the directory that holds, or will hold, the file, and the file's name in it.
    pub(super) fn parent<'a>(&self, name: &'a FileName) -> Result<(Dir, &'a str), FileError> {
        let (components, leaf) = name.split();
        let mut directory = self.0.try_clone()?;
        for component in components {
            let metadata = directory.symlink_metadata(component)?;
            if metadata.is_symlink() {
                return Err(FileError::Link);
            }
            if !metadata.is_dir() {
                return Err(FileError::NotFound);
            }
            directory = directory.open_dir_nofollow(component)?;
        }
        Ok((directory, leaf))
    }

    /// Opens a regular file for reading.
    pub(super) fn open_file(&self, name: &FileName) -> Result<(std::fs::File, FileIdentity), FileError> {
        let (directory, leaf) = self.parent(name)?;
        let metadata = directory.symlink_metadata(leaf)?;
        if metadata.is_symlink() {
            return Err(FileError::Link);
        }
        if !metadata.is_file() {
            return Err(FileError::NotAFile);
        }
        let file = open_regular(&directory, leaf, OpenOptions::new().read(true))?;
        let identity = identity(&file.metadata()?);
        Ok((file.into_std(), identity))
    }
}

impl ServedDirectory {
    /// Finds the parts of interrupted uploads anywhere below, described by their sidecars.
    pub(super) fn parts(&self) -> Vec<(FileName, Leftover)> {
        let mut found = Vec::new();
        let mut entries_left = WALK_ENTRIES_MAX;
        let mut directories = vec![String::new()];
        while let Some(prefix) = directories.pop() {
            let Ok(entries) = self.entries(&prefix) else { continue };
            for entry in entries.flatten() {
                let Some(left) = entries_left.checked_sub(1) else { return found };
                entries_left = left;
                let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string()) else {
                    continue;
                };
                let path = format!("{prefix}{name}");
                if kind.is_dir() {
                    directories.push(format!("{path}/"));
                } else if let Some(name) = path.strip_suffix(SIDECAR).filter(|_| kind.is_file()) {
                    found.extend(self.leftover(name));
                }
            }
        }
        found
    }

    /// The entries of a directory below; `prefix` is empty or ends in `/`.
    fn entries(&self, prefix: &str) -> Result<ReadDir, FileError> {
        if prefix.is_empty() {
            return Ok(self.0.entries()?);
        }
        // The parent of any name in it is the directory itself.
        let inside: FileName = format!("{prefix}x").parse()?;
        Ok(self.parent(&inside)?.0.entries()?)
    }

    fn leftover(&self, name: &str) -> Option<(FileName, Leftover)> {
        let name: FileName = name.parse().ok()?;
        let (parent, leaf) = self.parent(&name).ok()?;
        let part = Destination::new(parent, leaf).ok()?.leftover()?;
        Some((name, part))
    }
}

/// Opens a regular file in a directory, not through a link, and without blocking on a pipe.
pub(super) fn open_regular(directory: &Dir, leaf: &str, options: &OpenOptions) -> Result<File, FileError> {
    let mut options = options.clone();
    options.follow(FollowSymlinks::No).nonblock(true);
    let file = directory.open_with(leaf, &options)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(FileError::NotAFile) }
}

/// The identity of a file's content.
pub(super) fn identity(metadata: &Metadata) -> FileIdentity {
    let modified = metadata.modified().ok().map(cap_std::time::SystemTime::into_std);
    FileIdentity { size: metadata.len(), modified: modified.map_or(0, nanoseconds) }
}

/// The same for a file opened by other means.
pub(super) fn identity_of(file: &std::fs::File) -> io::Result<FileIdentity> {
    let metadata = file.metadata()?;
    Ok(FileIdentity { size: metadata.len(), modified: metadata.modified().map_or(0, nanoseconds) })
}

/// Nanoseconds since 1970. Times beyond the range (year 2262) are clamped.
fn nanoseconds(time: std::time::SystemTime) -> i64 {
    match time.duration_since(std::time::UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => {
            i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |nanoseconds| -nanoseconds)
        }
    }
}

/// The space available on the file system of a file, in bytes; `None` if the system does not report it.
#[cfg(unix)]
pub(super) fn free_bytes(file: &std::fs::File) -> Option<u64> {
    let space = rustix::fs::fstatvfs(file).ok()?;
    // Some user-space file systems report no blocks.
    (space.f_blocks > 0).then(|| space.f_bavail.saturating_mul(space.f_frsize))
}

/// Not supported on this system.
#[cfg(not(unix))]
pub(super) fn free_bytes(_: &std::fs::File) -> Option<u64> {
    None
}
