//! The programs that a forward serves, and which of them gives way to a further one.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use core::time::Duration;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::super::associations::Outlet;
use super::super::{ASSOCIATIONS_PER_CLIENT_MAX, DEADLINE};

/// Addresses of programs that one forward serves: half of what a server grants one client. A resolver uses a new port for each query.
const SOURCES_MAX: usize = ASSOCIATIONS_PER_CLIENT_MAX / 2;

/// For how long a forward stays below the limit that it ran into, and by which fraction.
const LOWERED: Duration = Duration::from_secs(60);
const MARGIN: usize = 8;

/// The association of one program.
pub(super) enum Source<C> {
    /// Messages that wait for it, and since when.
    Opening {
        messages: Vec<(Vec<u8>, Instant)>,
        bytes: usize,
    },
    Open(Arc<Outlet<C>>),
}

/// A program's association, which its task shares with the forward.
pub(super) struct Shared<C> {
    source: Mutex<Source<C>>,
    /// Whether an answer arrived.
    has_answer: AtomicBool,
}

impl<C> Shared<C> {
    pub(super) fn new() -> Self {
        let source = Mutex::new(Source::Opening { messages: Vec::new(), bytes: 0 });
        Self { source, has_answer: AtomicBool::new(false) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Source<C>> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn on_answer(&self) {
        self.has_answer.store(true, Relaxed);
    }
}

pub(super) struct Entry<C> {
    pub(super) shared: Arc<Shared<C>>,
    pub(super) used: Instant,
    pub(super) task: AbortHandle,
}

/// The programs by address.
pub(super) struct Sources<C> {
    pub(super) entries: BTreeMap<SocketAddr, Entry<C>>,
    /// A lower limit, and until when.
    lowered: Option<(usize, Instant)>,
}

impl<C> Default for Sources<C> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), lowered: None }
    }
}

impl<C> Sources<C> {
    /// Removes the programs that must give way to a further one. Returns `None` if none can: all of them wait for their first answer.
    pub(super) fn make_room(&mut self, now: Instant) -> Option<Vec<Entry<C>>> {
        let limit = self.lowered.filter(|(_, until)| now < *until).map_or(SOURCES_MAX, |(limit, _)| limit);
        let mut removed = Vec::new();
        while self.entries.len() >= limit {
            let Some(entry) = self.idlest(now).and_then(|from| self.entries.remove(&from)) else { break };
            removed.push(entry);
        }
        (self.entries.len() < limit || !removed.is_empty()).then_some(removed)
    }

    /// The program that was idle longest, among those that got an answer or no longer wait for one.
    fn idlest(&self, now: Instant) -> Option<SocketAddr> {
        let may_go = |entry: &&Entry<C>| {
            entry.shared.has_answer.load(Relaxed) || now.duration_since(entry.used) >= DEADLINE
        };
        let idle = self.entries.iter().filter(|(_, entry)| may_go(entry));
        idle.min_by_key(|(_, entry)| entry.used).map(|(from, _)| *from)
    }

    /// The server or this proxy has no more associations. The forward takes fewer for a while, so that new programs find room.
    pub(super) fn on_limit(&mut self, now: Instant) {
        let count = self.entries.len();
        self.lowered = Some(((count - count.div_ceil(MARGIN)).max(1), now + LOWERED));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    fn sources(count: usize, now: Instant) -> Sources<()> {
        let mut sources = Sources::default();
        for number in 0..count {
            let task = tokio::spawn(async {}).abort_handle();
            let entry = Entry { shared: Arc::new(Shared::new()), used: now, task };
            sources.entries.insert(address(number as u16 + 1), entry);
        }
        sources
    }

    #[tokio::test]
    async fn a_program_that_waits_for_its_first_answer_does_not_give_way() {
        let now = Instant::now();
        let mut sources = sources(SOURCES_MAX, now);
        assert!(sources.make_room(now).is_none());
        sources.entries[&address(7)].shared.on_answer();
        assert_eq!(sources.make_room(now).map(|removed| removed.len()), Some(1));
        assert!(!sources.entries.contains_key(&address(7)));
        assert_eq!(sources.make_room(now).map(|removed| removed.len()), Some(0));
        let later = now + DEADLINE;
        sources.entries.get_mut(&address(1)).unwrap().used = later;
        assert!(sources.make_room(later).is_some());
    }

    #[tokio::test]
    async fn after_a_refusal_for_a_limit_several_programs_give_way_for_a_while() {
        let now = Instant::now();
        let mut sources = sources(32, now);
        sources.on_limit(now);
        let later = now + DEADLINE;
        assert_eq!(sources.make_room(later).map(|removed| removed.len()), Some(5));
        assert_eq!(sources.entries.len(), 27, "and one that takes the room");
        assert!(sources.make_room(now + LOWERED).is_some_and(|removed| removed.is_empty()));
        let mut one = self::sources(1, now);
        one.on_limit(now);
        assert_eq!(one.make_room(later).map(|removed| removed.len()), Some(1));
    }
}
