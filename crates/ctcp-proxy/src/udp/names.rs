//! The names of an association: each is resolved once, and datagrams wait for it.

use core::time::Duration;
use std::collections::BTreeMap;
use std::net::IpAddr;

use tokio::time::Instant;

use super::PENDING_BYTES_MAX;
use crate::address::TargetAddress;

/// Names of one association. A further one replaces the one that was idle longest.
pub(super) const NAMES_MAX: usize = 64;

/// A name that failed is not resolved again for this time; a resolver needs that long to give up.
const FAILED: Duration = Duration::from_secs(5);

#[derive(Debug)]
enum Name {
    /// Datagrams that wait, and since when.
    Resolving(Vec<(Vec<u8>, Instant)>),
    /// The addresses that passed the policy.
    Known(Vec<IpAddr>),
    Failed,
}

/// What to do with a datagram to a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<'a> {
    /// Send it to the first of these that works.
    Send(&'a [IpAddr]),
    /// It waits. The name must be resolved.
    Resolve,
    /// It waits for the answer to an earlier one.
    Wait,
    /// The name failed lately: drop it.
    Failed,
    /// Too much is waiting: drop it.
    Full,
}

/// The names that an association used.
#[derive(Debug, Default)]
pub(super) struct Names {
    names: BTreeMap<TargetAddress, (Name, Instant)>,
    pending: usize,
}

impl Names {
    /// Decides about a datagram to a name, and keeps it if it must wait.
    pub(super) fn next(&mut self, target: &TargetAddress, datagram: &[u8], now: Instant) -> Next<'_> {
        let has_room = self.pending + datagram.len() <= PENDING_BYTES_MAX;
        let is_failed =
            |(name, at): &(Name, Instant)| matches!(name, Name::Failed) && now.duration_since(*at) >= FAILED;
        if self.names.get(target).is_some_and(is_failed) {
            self.names.remove(target);
        }
        if !self.names.contains_key(target) {
            if !has_room || !self.make_room() {
                return Next::Full;
            }
            self.pending += datagram.len();
            self.names.insert(target.clone(), (Name::Resolving(vec![(datagram.to_vec(), now)]), now));
            return Next::Resolve;
        }
        match self.names.get_mut(target) {
            Some((Name::Known(addresses), used)) => {
                *used = now;
                Next::Send(addresses)
            }
            Some((Name::Resolving(waiting), _)) if has_room && waiting.len() < NAMES_MAX => {
                self.pending += datagram.len();
                waiting.push((datagram.to_vec(), now));
                Next::Wait
            }
            Some((Name::Resolving(_), _)) => Next::Full,
            Some((Name::Failed, _)) | None => Next::Failed,
        }
    }

    /// Stores the addresses of a name, or that there are none, and returns the datagrams that waited, and since when.
    pub(super) fn on_resolved(
        &mut self,
        target: TargetAddress,
        addresses: Option<Vec<IpAddr>>,
        now: Instant,
    ) -> Vec<(Vec<u8>, Instant)> {
        let waiting = match self.names.remove(&target) {
            Some((Name::Resolving(waiting), _)) => waiting,
            _ => Vec::new(),
        };
        self.pending -= waiting.iter().map(|(datagram, _)| datagram.len()).sum::<usize>();
        self.names.insert(target, (addresses.map_or(Name::Failed, Name::Known), now));
        waiting
    }

    /// Removes the name that was idle longest if there are too many. Names that are being resolved stay.
    fn make_room(&mut self) -> bool {
        if self.names.len() < NAMES_MAX {
            return true;
        }
        let settled = self.names.iter().filter(|(_, (name, _))| !matches!(name, Name::Resolving(_)));
        let oldest = settled.min_by_key(|(_, (_, used))| *used).map(|(target, _)| target.clone());
        oldest.is_some_and(|oldest| self.names.remove(&oldest).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> TargetAddress {
        text.parse().unwrap()
    }

    #[test]
    fn a_name_is_resolved_once_and_datagrams_wait_for_it() {
        let (mut names, now, a) = (Names::default(), Instant::now(), target("a.example:53"));
        assert_eq!(names.next(&a, b"1", now), Next::Resolve);
        assert_eq!(names.next(&a, b"2", now), Next::Wait);
        let addresses = vec![IpAddr::from([192, 0, 2, 1])];
        let waiting = names.on_resolved(a.clone(), Some(addresses.clone()), now);
        assert_eq!((waiting, names.pending), (vec![(b"1".to_vec(), now), (b"2".to_vec(), now)], 0));
        assert_eq!(names.next(&a, b"3", now), Next::Send(&addresses));
        assert_eq!(names.next(&target("a.example:54"), b"1", now), Next::Resolve);
    }

    #[test]
    fn a_name_that_failed_is_resolved_again_only_after_a_while() {
        let (mut names, now, a) = (Names::default(), Instant::now(), target("a.example:53"));
        assert_eq!(names.next(&a, b"1", now), Next::Resolve);
        assert_eq!(names.on_resolved(a.clone(), None, now).len(), 1);
        assert_eq!(names.next(&a, b"2", now + FAILED / 2), Next::Failed);
        assert_eq!(names.next(&a, b"3", now + FAILED), Next::Resolve);
    }

    #[test]
    fn waiting_datagrams_and_names_are_bounded() {
        let (mut names, now) = (Names::default(), Instant::now());
        let large = vec![0; 65_507];
        assert_eq!(names.next(&target("a:1"), &large, now), Next::Resolve);
        assert_eq!(names.next(&target("a:1"), &large, now), Next::Full);
        assert_eq!(names.next(&target("b:1"), &large, now), Next::Full);
        for port in 1..NAMES_MAX {
            let other = target(&format!("c:{port}"));
            assert_eq!(names.next(&other, b"", now), Next::Resolve);
        }
        assert_eq!(names.next(&target("d:1"), b"", now), Next::Full, "none of them is settled");
        names.on_resolved(target("c:7"), Some(vec![]), now);
        assert_eq!(names.next(&target("d:1"), b"", now), Next::Resolve);
        assert_eq!(names.names.len(), NAMES_MAX);
        assert!(!names.names.contains_key(&target("c:7")));
    }
}
