//! The targets that an association contacted: only they may answer, and they passed the policy.

use core::time::Duration;
use std::collections::BTreeMap;
use std::net::SocketAddr;

use tokio::time::Instant;

/// A bounded table. When it is full, the target that was idle longest makes room.
#[derive(Debug)]
pub(super) struct Targets {
    limit: usize,
    idle: Duration,
    used: BTreeMap<SocketAddr, Instant>,
}

impl Targets {
    pub(super) fn new(limit: usize, idle: Duration) -> Self {
        Self { limit: limit.max(1), idle, used: BTreeMap::new() }
    }

    /// Returns true if the target was contacted and is not idle for too long, and counts this as a use.
    pub(super) fn touch(&mut self, target: SocketAddr, now: Instant) -> bool {
        match self.used.get_mut(&target) {
            Some(used) if now.duration_since(*used) < self.idle => {
                *used = now;
                true
            }
            _ => false,
        }
    }

    /// Adds a target that passed the policy.
    pub(super) fn insert(&mut self, target: SocketAddr, now: Instant) {
        if self.used.len() >= self.limit && !self.used.contains_key(&target) {
            let oldest = self.used.iter().min_by_key(|(_, used)| **used).map(|(target, _)| *target);
            self.used.retain(|known, _| Some(*known) != oldest);
        }
        self.used.insert(target, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(300);

    fn target(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    #[test]
    fn only_contacted_targets_are_known_and_each_port_is_its_own() {
        let (mut targets, now) = (Targets::new(4, IDLE), Instant::now());
        targets.insert(target(1), now);
        assert!(targets.touch(target(1), now));
        assert!(!targets.touch(target(2), now));
        assert!(!targets.touch(SocketAddr::from(([192, 0, 2, 2], 1)), now));
    }

    #[test]
    fn the_target_that_was_idle_longest_makes_room() {
        let (mut targets, start) = (Targets::new(3, IDLE), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        for port in 1..=3 {
            targets.insert(target(port), at(u64::from(port)));
        }
        assert!(targets.touch(target(1), at(4)));
        targets.insert(target(4), at(5));
        let known: Vec<_> = (1..=4).filter(|&port| targets.touch(target(port), at(6))).collect();
        assert_eq!(known, [1, 3, 4]);
        targets.insert(target(4), at(7));
        assert_eq!(targets.used.len(), 3, "a known target replaces none");
    }

    #[test]
    fn an_idle_target_is_no_longer_known() {
        let (mut targets, start) = (Targets::new(3, IDLE), Instant::now());
        targets.insert(target(1), start);
        assert!(targets.touch(target(1), start + IDLE - Duration::from_secs(1)));
        assert!(targets.touch(target(1), start + IDLE), "a use extends it");
        assert!(!targets.touch(target(1), start + 2 * IDLE));
    }
}
