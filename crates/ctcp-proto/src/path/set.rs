//! The open paths of a connection.

use core::ops::{Index, IndexMut};

use super::arrivals::EarlyReports;
use super::{Path, PathMode};
use crate::id::PathId;

/// The open paths, in the order in which they were opened. There is always at least one.
pub(crate) struct Paths {
    open: Vec<Path>,
    /// A bit for each id that was ever used. A packet number never repeats under a key, so an id is used once.
    used: [u64; 4],
    mode: PathMode,
    pub(crate) reports: EarlyReports,
}

/// How a packet's path id relates to the open paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathUse {
    /// The path is open.
    Open,
    /// The path was closed.
    Closed,
    /// No such path was ever opened.
    Never,
}

impl Paths {
    pub(crate) fn new(first: Path, mode: PathMode) -> Self {
        let mut paths =
            Self { open: Vec::with_capacity(1), used: [0; 4], mode, reports: EarlyReports::default() };
        paths.insert(first);
        paths
    }

    /// How the paths are used.
    pub(crate) fn mode(&self) -> PathMode {
        self.mode
    }

    /// Adds a path whose id was never used.
    pub(crate) fn insert(&mut self, path: Path) {
        let (word, bit) = place(path.id);
        debug_assert!(self.used[word] & bit == 0, "a path id is used once");
        self.used[word] |= bit;
        self.open.push(path);
    }

    /// Removes a path, unless it is the only one.
    pub(crate) fn remove(&mut self, id: PathId) -> Option<Path> {
        let position = self.open.iter().position(|path| path.id == id).filter(|_| self.open.len() > 1)?;
        Some(self.open.remove(position))
    }

    /// The smallest id that was never used.
    pub(crate) fn unused_id(&self) -> Option<PathId> {
        (0..=u8::MAX).map(PathId).find(|&id| self.state_of(id) == PathUse::Never)
    }

    /// The path will never be opened.
    pub(crate) fn refuse(&mut self, id: PathId) {
        let (word, bit) = place(id);
        self.used[word] |= bit;
    }

    pub(crate) fn state_of(&self, id: PathId) -> PathUse {
        let (word, bit) = place(id);
        if self.used[word] & bit == 0 {
            PathUse::Never
        } else if self.get(id).is_some() {
            PathUse::Open
        } else {
            PathUse::Closed
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// The id of the path at `position`, in the order of opening.
    pub(crate) fn id_at(&self, position: usize) -> Option<PathId> {
        self.open.get(position).map(|path| path.id)
    }

    pub(crate) fn get(&self, id: PathId) -> Option<&Path> {
        self.open.iter().find(|path| path.id == id)
    }

    /// The oldest validated path: its address is the peer's, and it stands for the connection where only one can.
    pub(crate) fn main(&self) -> &Path {
        self.open.iter().find(|path| path.is_validated()).unwrap_or(&self.open[0])
    }

    /// The oldest path that is usable, or else the main one.
    pub(crate) fn working(&self) -> &Path {
        self.open.iter().find(|path| path.is_usable()).unwrap_or_else(|| self.main())
    }

    pub(crate) fn main_mut(&mut self) -> &mut Path {
        let id = self.main().id;
        &mut self[id]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Path> {
        self.open.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Path> {
        self.open.iter_mut()
    }
}

impl Index<PathId> for Paths {
    type Output = Path;

    /// # Panics
    /// Panics if the path is not open.
    fn index(&self, id: PathId) -> &Path {
        self.get(id).expect("an open path")
    }
}

impl IndexMut<PathId> for Paths {
    /// # Panics
    /// Panics if the path is not open.
    fn index_mut(&mut self, id: PathId) -> &mut Path {
        self.open.iter_mut().find(|path| path.id == id).expect("an open path")
    }
}

fn place(id: PathId) -> (usize, u64) {
    (usize::from(id.0) / 64, 1 << (id.0 % 64))
}
