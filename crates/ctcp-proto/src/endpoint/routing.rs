//! The mapping of ids to connections, and the rate limits of stateless answers.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use ctcp_base::Instant;

use super::ConnectionHandle;
use crate::crypto::ResetToken;
use crate::id::ConnectionId;

/// The ids, handles and reset tokens of an endpoint's connections.
#[derive(Debug, Default)]
pub(super) struct Routes {
    entries: Vec<Option<Entry>>,
    free: Vec<usize>,
    by_id: BTreeMap<ConnectionId, ConnectionHandle>,
    /// A client's first destination id counts only together with its address, because another client may draw the same id.
    by_initial: BTreeMap<(ConnectionId, SocketAddr), ConnectionHandle>,
    by_reset: BTreeMap<(SocketAddr, ConnectionHandle), ResetToken>,
}

#[derive(Debug)]
struct Entry {
    local: ConnectionId,
    initial: Option<(ConnectionId, SocketAddr)>,
    reset: Option<SocketAddr>,
    /// The ids of further paths.
    further: Vec<ConnectionId>,
}

impl Routes {
    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// How many ids lead to a connection.
    #[cfg(test)]
    pub(super) fn ids(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn contains(&self, id: &ConnectionId) -> bool {
        self.by_id.contains_key(id)
    }

    pub(super) fn find(&self, id: &ConnectionId, remote: SocketAddr) -> Option<ConnectionHandle> {
        self.by_id.get(id).or_else(|| self.by_initial.get(&(*id, remote))).copied()
    }

    pub(super) fn insert(&mut self, local: ConnectionId) -> ConnectionHandle {
        let entry = Some(Entry { local, initial: None, reset: None, further: Vec::new() });
        let handle = match self.free.pop() {
            Some(index) => {
                self.entries[index] = entry;
                ConnectionHandle(index)
            }
            None => {
                self.entries.push(entry);
                ConnectionHandle(self.entries.len() - 1)
            }
        };
        self.by_id.insert(local, handle);
        handle
    }

    /// Adds the id of a further path. An id that is taken is left to its owner, although 61 random bits make that unlikely: the path then
    /// does not work.
    pub(super) fn add(&mut self, handle: ConnectionHandle, id: ConnectionId) {
        if self.by_id.contains_key(&id) {
            return;
        }
        if let Some(entry) = self.entry(handle) {
            entry.further.push(id);
            self.by_id.insert(id, handle);
        }
    }

    /// Removes the id of a further path.
    pub(super) fn retire(&mut self, handle: ConnectionHandle, id: &ConnectionId) {
        let Some(entry) = self.entry(handle) else { return };
        if let Some(position) = entry.further.iter().position(|further| further == id) {
            entry.further.swap_remove(position);
            self.by_id.remove(id);
        }
    }

    pub(super) fn set_initial(&mut self, handle: ConnectionHandle, id: ConnectionId, remote: SocketAddr) {
        if let Some(entry) = self.entry(handle) {
            entry.initial = Some((id, remote));
            self.by_initial.insert((id, remote), handle);
        }
    }

    pub(super) fn forget_initial(&mut self, handle: ConnectionHandle) {
        if let Some(initial) = self.entry(handle).and_then(|entry| entry.initial.take()) {
            self.by_initial.remove(&initial);
        }
    }

    pub(super) fn set_reset_token(
        &mut self,
        handle: ConnectionHandle,
        remote: SocketAddr,
        token: ResetToken,
    ) {
        if let Some(entry) = self.entry(handle) {
            if let Some(former) = entry.reset.replace(remote) {
                self.by_reset.remove(&(former, handle));
            }
            self.by_reset.insert((remote, handle), token);
        }
    }

    /// The reset tokens of the connections to one address.
    pub(super) fn reset_tokens(&self, remote: SocketAddr) -> Vec<(ConnectionHandle, ResetToken)> {
        let range = (remote, ConnectionHandle(0))..=(remote, ConnectionHandle(usize::MAX));
        self.by_reset.range(range).map(|(&(_, handle), token)| (handle, *token)).collect()
    }

    pub(super) fn remove(&mut self, handle: ConnectionHandle) {
        let Some(entry) = self.entries.get_mut(handle.0).and_then(Option::take) else { return };
        self.by_id.remove(&entry.local);
        for id in &entry.further {
            self.by_id.remove(id);
        }
        if let Some(initial) = entry.initial {
            self.by_initial.remove(&initial);
        }
        if let Some(remote) = entry.reset {
            self.by_reset.remove(&(remote, handle));
        }
        self.free.push(handle.0);
    }

    fn entry(&mut self, handle: ConnectionHandle) -> Option<&mut Entry> {
        self.entries.get_mut(handle.0)?.as_mut()
    }
}

/// Maximum number of answers of one kind per second. A restarted server reaches all its clients within seconds, and a flood of garbage does
/// not make it a source of traffic.
const ANSWERS_PER_SECOND: u64 = 500;

/// Allows [`ANSWERS_PER_SECOND`] in each second of the clock.
#[derive(Debug, Default)]
pub(super) struct AnswerLimit {
    second: u64,
    used: u64,
}

impl AnswerLimit {
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let second = now.as_nanos() / 1_000_000_000;
        if second != self.second {
            *self = Self { second, used: 0 };
        }
        self.used += 1;
        self.used <= ANSWERS_PER_SECOND
    }
}

/// Rate limits of stateless answers, one for each kind, so that garbage of one kind does not prevent answers of another.
#[derive(Debug, Default)]
pub(super) struct AnswerLimits {
    /// Resets for packets of unknown connections.
    pub(super) resets: AnswerLimit,
    /// Rejects and version lists for first packets that anyone can send.
    pub(super) strangers: AnswerLimit,
    /// Rejects and refusals for first packets that were admitted.
    pub(super) admitted: AnswerLimit,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(byte: u8) -> ConnectionId {
        ConnectionId::new(&[byte; 8]).expect("8 bytes")
    }

    #[test]
    fn a_removed_connection_leaves_no_state_and_its_handle_is_reused() {
        let mut routes = Routes::default();
        let remote = SocketAddr::from(([192, 0, 2, 1], 4));
        let handle = routes.insert(id(1));
        routes.set_initial(handle, id(2), remote);
        routes.set_reset_token(handle, remote, ResetToken([3; 16]));
        assert_eq!(routes.find(&id(2), remote), Some(handle));
        assert_eq!(routes.find(&id(2), SocketAddr::from(([192, 0, 2, 2], 4))), None);
        routes.remove(handle);
        routes.remove(handle);
        assert_eq!((routes.len(), routes.find(&id(1), remote), routes.find(&id(2), remote)), (0, None, None));
        assert!(routes.reset_tokens(remote).is_empty() && routes.by_initial.is_empty());
        assert_eq!(routes.insert(id(4)), handle);
    }

    #[test]
    fn ids_of_further_paths_lead_to_their_connection_until_they_are_retired() {
        let mut routes = Routes::default();
        let remote = SocketAddr::from(([192, 0, 2, 1], 4));
        let (one, other) = (routes.insert(id(1)), routes.insert(id(2)));
        routes.add(one, id(3));
        routes.add(one, id(4));
        routes.add(other, id(3));
        assert_eq!(routes.find(&id(3), remote), Some(one));
        routes.retire(other, &id(3));
        routes.retire(one, &id(4));
        assert_eq!((routes.find(&id(3), remote), routes.find(&id(4), remote)), (Some(one), None));
        routes.remove(one);
        assert_eq!((routes.find(&id(3), remote), routes.by_id.len()), (None, 1));
    }

    #[test]
    fn answers_are_limited_per_second() {
        let mut limit = AnswerLimit::default();
        let taken = (0..1_000).filter(|_| limit.take(Instant::from_secs(1))).count();
        assert_eq!(taken, 500);
        assert!(limit.take(Instant::from_secs(2)));
    }
}
