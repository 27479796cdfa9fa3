//! Opens and closes the paths of a client's connection as the interfaces of its host come and go, with the policy of the
//! product (`ctcp-proxy`, `link/paths.rs`): one path for each address, looked at once a second and when a path changed.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::collections::BTreeMap;

use ctcp_base::Instant;
use ctcp_proto::{Connection, ConnectionHandle, NetworkPath, PREFERENCE_OF_FIRST};

use super::{Host, World};

/// How often the addresses are compared with the paths.
const LOOK: Duration = Duration::from_secs(1);

/// The first and the longest pause before a path on which nothing answered is tried again.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(8);

/// Keeps the paths of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct PathKeeper {
    /// When to look next, once the connection is established.
    next: Option<Instant>,
    /// The number of path events seen.
    seen: u64,
    tries: BTreeMap<IpAddr, Try>,
}

/// A path that was tried.
#[derive(Clone, Copy, Debug)]
struct Try {
    next: Instant,
    pause: Duration,
}

impl PathKeeper {
    /// Returns when to call [`Self::keep`].
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.next
    }

    /// Opens and closes paths if it is time or `events` says that something happened to one. `present` are the addresses
    /// that the host has now.
    pub(super) fn keep(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        events: u64,
        present: &[SocketAddr],
    ) {
        if !connection.is_connected() {
            self.next = None;
            return;
        }
        let is_due = self.next.is_none_or(|next| next <= now);
        if !is_due && self.seen == events {
            return;
        }
        if is_due {
            self.next = Some(now + LOOK);
        }
        self.seen = events;
        self.adjust(now, connection, present);
    }

    fn adjust(&mut self, now: Instant, connection: &mut Connection, present: &[SocketAddr]) {
        let Some(remote) = connection.remote() else { return };
        let open = connection.paths();
        for local in present.iter().map(SocketAddr::ip) {
            match open.iter().find(|path| path.local == Some(local)) {
                Some(path) if path.is_validated => drop(self.tries.remove(&local)),
                Some(_) => {}
                None => self.open(now, connection, NetworkPath { local: Some(local), remote }),
            }
        }
        for path in &open {
            let is_gone = path.local.is_some_and(|local| present.iter().all(|here| here.ip() != local));
            if is_gone && !present.is_empty() {
                // Refused while no other path works; the next look tries again.
                let _ = connection.abandon_path(path.id);
            }
        }
    }

    fn open(&mut self, now: Instant, connection: &mut Connection, network: NetworkPath) {
        let Some(local) = network.local else { return };
        let earlier = self.tries.get(&local);
        if earlier.is_some_and(|earlier| now < earlier.next) {
            return;
        }
        let pause = earlier.map_or(RETRY_MIN, |earlier| (2 * earlier.pause).min(RETRY_MAX));
        self.tries.insert(local, Try { next: now + pause, pause });
        // Refused while the server allows no further path: one that is gone may still be open.
        let _ = connection.add_path(now, network, PREFERENCE_OF_FIRST);
    }
}

impl Host {
    /// Closes the path of the newest connection that begins at this interface.
    pub(crate) fn abandon_path(&mut self, number: usize, world: &mut World<'_>) {
        let local = self.interface(number).ip();
        let newest = |handle: &ConnectionHandle| {
            self.peers.get(*handle).and_then(|peer| peer.application.name()).map(|name| name.number)
        };
        let Some(handle) = self.handles().into_iter().max_by_key(newest) else { return };
        if let Some(peer) = self.peers.get_mut(handle) {
            let path = peer.connection.paths().into_iter().find(|path| path.local == Some(local));
            if let Some(path) = path {
                // Refused if it is the only one that works.
                let _ = peer.connection.abandon_path(path.id);
            }
        }
        self.drain(handle, world);
    }

    /// The system says that addresses or routes changed.
    pub(crate) fn on_network_change(&mut self, world: &mut World<'_>) {
        for handle in self.handles() {
            if let Some(peer) = self.peers.get_mut(handle) {
                peer.connection.on_network_change();
            }
            self.drain(handle, world);
        }
    }
}
