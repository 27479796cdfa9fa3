//! What packets in flight are worth where several paths carry them: some paths lose more, and some deliver too late to be waited for.

use ctcp_base::Instant;

use crate::id::PathId;
use crate::path::scheduler::PATHS_MAX;

/// What packets in flight on a path are worth for what is sent now on another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prospect {
    /// The path that carries them.
    pub path: PathId,
    /// Its loss average `p`.
    pub loss: f64,
    /// The newest report counts those that were sent before and arrived.
    pub counted: Instant,
    /// Those that were sent after this are overtaken by a packet sent now.
    pub overtaken: Instant,
}

impl Prospect {
    const FIRST: Self = Self { path: PathId(0), loss: 0.0, counted: Instant::ZERO, overtaken: Instant::ZERO };
}

/// The prospects of all paths.
#[derive(Clone, Copy, Debug)]
pub struct Prospects {
    list: [Prospect; PATHS_MAX],
    length: usize,
}

impl Prospects {
    /// Those of a single path, which need no distinction.
    pub const NONE: Self = Self { list: [Prospect::FIRST; PATHS_MAX], length: 0 };

    /// Adds a path, unless there are too many.
    pub fn push(&mut self, prospect: Prospect) {
        if let Some(place) = self.list.get_mut(self.length) {
            *place = prospect;
            self.length += 1;
        }
    }

    /// That of a path. `None` if there is a single path, and for one that has gone.
    #[must_use]
    pub fn of(&self, path: PathId) -> Option<&Prospect> {
        self.list[..self.length].iter().find(|prospect| prospect.path == path)
    }

    /// Whether there is a single path.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}
