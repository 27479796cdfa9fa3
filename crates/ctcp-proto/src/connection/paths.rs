//! Paths that are opened and closed while the connection lasts (PROTOCOL.md section 6).
//!
//! ```text
//!   client                                        server
//!     add_path: PATH_CHALLENGE on the path  --->    a new path, not validated
//!     usable                                <---  PATH_RESPONSE, PATH_CHALLENGE
//!     PATH_RESPONSE                         --->    usable
//! ```

use core::fmt;
use core::net::{IpAddr, SocketAddr};
use std::collections::VecDeque;

use ctcp_base::Instant;

use super::path_ids::PathIds;
use super::{Connection, Established, RttStats, State, TransportError};
use crate::id::{PathId, Role};
use crate::network::NetworkPath;
use crate::path::validation::PathValidation;
use crate::path::{Path, PathUse, scheduler};
use crate::wire::{DatagramBuilder, Frame, frames};

/// Why a path was not opened or closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathError {
    /// Only a client opens paths, after the handshake.
    NotNow,
    /// The server allows no further path.
    TooMany,
    /// The connection has used all path ids.
    IdsUsedUp,
    /// There is no such path.
    Unknown,
    /// There is no other validated path.
    OnlyOne,
}

impl fmt::Display for PathError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotNow => "only a client with an established connection opens paths",
            Self::TooMany => "the server allows no further path",
            Self::IdsUsedUp => "the connection has used all path ids",
            Self::Unknown => "no such path",
            Self::OnlyOne => "there is no other path",
        })
    }
}

impl core::error::Error for PathError {}

/// A change of the paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathEvent {
    Opened(PathId),
    Closed(PathId),
}

/// Changes of the paths that the peer and the application are to be told of.
#[derive(Debug)]
pub(crate) struct PathChanges {
    /// Closed paths of which a PATH_ABANDON is to be sent.
    abandoned: Vec<PathId>,
    /// Closed paths of which no PATH_ABANDON has been acknowledged.
    unconfirmed: Vec<PathId>,
    pub(super) ids: PathIds,
    events: VecDeque<PathEvent>,
}

impl PathChanges {
    pub(super) fn new(ids: PathIds) -> Self {
        Self { abandoned: Vec::new(), unconfirmed: Vec::new(), ids, events: VecDeque::new() }
    }

    /// The peer must learn that the path is closed.
    pub(super) fn tell(&mut self, id: PathId) {
        // Every packet in flight that says so may ask for it again.
        for list in [&mut self.abandoned, &mut self.unconfirmed] {
            if !list.contains(&id) {
                list.push(id);
            }
        }
    }

    /// The peer has learnt that the path is closed.
    pub(super) fn on_told(&mut self, id: PathId) {
        for list in [&mut self.abandoned, &mut self.unconfirmed] {
            list.retain(|&other| other != id);
        }
    }

    /// The closed paths that the peer may still hold open, of which a packet that opens a path has to tell: it may be the only one that
    /// gets through.
    pub(super) fn unconfirmed(&self) -> impl Iterator<Item = PathId> {
        self.unconfirmed.iter().copied()
    }

    pub(super) fn is_due(&self) -> bool {
        !self.abandoned.is_empty()
    }

    pub(super) fn poll_event(&mut self) -> Option<PathEvent> {
        self.events.pop_front()
    }

    /// Writes a PATH_ABANDON and returns its path, if there is one and it fits.
    pub(super) fn write(&mut self, builder: &mut DatagramBuilder) -> Option<PathId> {
        let &id = self.abandoned.last()?;
        builder.write_if_it_fits(&Frame::PathAbandon(id)).then(|| self.abandoned.pop()).flatten()
    }
}

/// Statistics of a path.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PathStats {
    /// The path.
    pub id: PathId,
    /// The local address, if it is known.
    pub local: Option<IpAddr>,
    /// The peer's address.
    pub remote: SocketAddr,
    /// Whether the peer has answered on it. Data is sent only on such paths.
    pub is_validated: bool,
    /// Whether it is avoided, because nothing answers or one side is about to close it.
    pub is_avoided: bool,
    /// Whether it waits for another path to fail, in [`crate::PathMode::Backup`].
    pub is_spare: bool,
    /// Round-trip times.
    pub rtt: RttStats,
    /// The loss average.
    pub loss: f64,
    /// Congestion window in packets, now.
    pub window: f64,
    /// Bytes of UDP payload sent.
    pub bytes_sent: u64,
    /// Bytes of UDP payload in datagrams that were authentic and new.
    pub bytes_received: u64,
    /// Symbols and combinations of symbols that arrived.
    pub combinations_received: u64,
    /// Those of them that carried no new information, because of what had arrived before.
    pub redundant_received: u64,
}

impl PathStats {
    /// Whether it may carry data, and no other path must be used instead.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.is_validated && !self.is_avoided
    }
}

impl Connection {
    /// Opens a further path of a client, with these addresses. [`crate::Event::PathOpened`] says that it is usable, or
    /// [`crate::Event::PathClosed`] that nothing answers.
    ///
    /// In [`crate::PathMode::Backup`] the path with the lowest `preference` is used, where the first path has [`crate::PREFERENCE_OF_FIRST`]. Otherwise
    /// the preference means nothing.
    ///
    /// # Errors
    /// See [`PathError`].
    pub fn add_path(
        &mut self,
        now: Instant,
        network: NetworkPath,
        preference: u8,
    ) -> Result<PathId, PathError> {
        let now = self.advance(now);
        let established = match &mut self.state {
            State::Established(established) if self.role == Role::Client => established,
            _ => return Err(PathError::NotNow),
        };
        if !established.has_room() {
            return Err(PathError::TooMany);
        }
        let id = established.paths.unused_id().ok_or(PathError::IdsUsedUp)?;
        let path = established
            .new_path(now, network)
            .opening(id, PathValidation::chosen())
            .with_preference(preference);
        established.insert_path(path);
        self.drain_established();
        Ok(id)
    }

    /// Closes a path. What is in flight on it is repaired on the others.
    ///
    /// # Errors
    /// See [`PathError`].
    pub fn abandon_path(&mut self, id: PathId) -> Result<(), PathError> {
        let State::Established(established) = &mut self.state else { return Err(PathError::NotNow) };
        if established.paths.state_of(id) != PathUse::Open {
            return Err(PathError::Unknown);
        }
        if !established.has_other_path(id) {
            return Err(PathError::OnlyOne);
        }
        established.path_changes.tell(id);
        established.close_path(id);
        self.drain_established();
        Ok(())
    }

    /// The addresses or routes of this machine changed. A client sends a PING on each path, so that the server learns its new address at once
    /// rather than when a flow stops. If data arrives on the path, two full datagrams let the server send some before it has validated the
    /// address.
    pub fn on_network_change(&mut self) {
        let State::Established(established) = &mut self.state else { return };
        if self.role == Role::Client {
            for path in established.paths.iter_mut().filter(|path| path.is_validated()) {
                path.owed.probes = path.owed.probes.max(1);
                path.migration.announce();
            }
        }
    }

    /// Statistics of all open paths.
    #[must_use]
    pub fn paths(&self) -> Vec<PathStats> {
        let State::Established(established) = &self.state else { return Vec::new() };
        let paths = &established.paths;
        let used: Vec<PathId> = scheduler::used(self.now, paths).map(|path| path.id).collect();
        let is_spare = |path: &Path| path.is_usable() && !used.contains(&path.id);
        paths.iter().map(|path| path.stats(self.now, is_spare(path))).collect()
    }
}

impl Established {
    /// A path with the negotiated profile.
    pub(super) fn new_path(&self, now: Instant, network: NetworkPath) -> Path {
        Path::new(now, network, self.negotiated.profile, self.negotiated.datagram_size_max)
            .with_window_max(self.config.congestion_window_max)
            .with_unpaced(self.contexts.streams().sender.scheme().is_unpaced())
            .with_controller(self.config.controller.clone())
    }

    fn insert_path(&mut self, path: Path) {
        let ids = &mut self.path_changes.ids;
        ids.on_used(path.id, &mut self.rng);
        let destination = ids.of_peer(path.id);
        self.paths.insert(path.with_destination(destination));
    }

    /// Whether a packet of the path `id` is to be processed. A packet with an unused id opens a path of a server, in place of those that it
    /// says are closed.
    pub(super) fn takes_packets_of(
        &mut self,
        now: Instant,
        id: PathId,
        network: NetworkPath,
        payload: &[u8],
    ) -> Result<bool, TransportError> {
        match self.paths.state_of(id) {
            PathUse::Open => Ok(true),
            PathUse::Closed => Ok(false),
            PathUse::Never if self.role == Role::Client || self.negotiated.paths <= 1 => {
                Err(TransportError::violation("packet of a path that was never opened"))
            }
            PathUse::Never => {
                if !self.has_room() {
                    self.close_abandoned(payload)?;
                }
                // A packet that closes its own path opens none.
                let is_taken = self.has_room() && self.paths.state_of(id) == PathUse::Never;
                if is_taken {
                    let path = self.new_path(now, network).opening(id, PathValidation::new());
                    self.insert_path(path);
                }
                Ok(is_taken)
            }
        }
    }

    /// Whether another path may be opened. One that is about to be closed, but that a server keeps until another one works, does not
    /// count.
    fn has_room(&self) -> bool {
        let retiring = self.paths.iter().filter(|path| self.role == Role::Server && path.is_retiring).count();
        self.paths.len() - retiring < self.negotiated.paths
    }

    /// Closes the paths of which the payload has a PATH_ABANDON. Every other way to say so may be dead.
    fn close_abandoned(&mut self, payload: &[u8]) -> Result<(), TransportError> {
        for frame in frames(payload) {
            if let Frame::PathAbandon(id) = frame? {
                self.on_path_abandoned(id)?;
            }
        }
        Ok(())
    }

    /// The path has been validated.
    pub(super) fn on_path_opened(&mut self, id: PathId) {
        self.path_changes.events.push_back(PathEvent::Opened(id));
        // A PING tells the peer, too, that the path works, and measures it.
        self.paths[id].owed.probes = 1;
        let mut position = 0;
        while let Some(id) = self.paths.id_at(position) {
            if self.paths[id].is_retiring && self.has_other_path(id) {
                self.close_path(id);
            } else {
                position += 1;
            }
        }
    }

    /// Coded data arrived on a path, from `remote`. A server sends it only after the client has answered on this path, so that both directions
    /// work, even if the answer to the client's own challenge was lost. Data from elsewhere says nothing about the address that the client
    /// sends to.
    pub(super) fn on_data_of_server(&mut self, id: PathId, remote: SocketAddr) {
        let path = &mut self.paths[id];
        let is_from_there = self.role == Role::Client && path.network.remote == remote;
        if is_from_there && path.opening.take().is_some() {
            self.on_path_opened(id);
        }
    }

    /// The client tells how much it prefers a path.
    pub(super) fn on_path_preference(&mut self, id: PathId, preference: u8) -> Result<(), TransportError> {
        if self.role == Role::Client {
            return Err(TransportError::violation("PATH_PREFERENCE by a server"));
        }
        self.paths[id].preference = preference;
        Ok(())
    }

    /// The peer has closed a path.
    pub(super) fn on_path_abandoned(&mut self, id: PathId) -> Result<(), TransportError> {
        match self.paths.state_of(id) {
            PathUse::Closed => {}
            // The client gave it up before any of its packets arrived here.
            PathUse::Never if self.role == Role::Server => {
                self.path_changes.ids.on_used(id, &mut self.rng);
                self.path_changes.ids.on_closed(id);
                self.paths.refuse(id);
            }
            PathUse::Never => {
                return Err(TransportError::violation("PATH_ABANDON of a path that was never opened"));
            }
            PathUse::Open if self.has_other_path(id) => self.close_path(id),
            // The one that replaces it is being validated.
            PathUse::Open => self.paths[id].is_retiring = true,
        }
        Ok(())
    }

    /// Closes a path: what is in flight on it counts as lost, and what it should have told is told on another.
    pub(super) fn close_path(&mut self, id: PathId) {
        let main = self.paths.main().id;
        let Some(mut path) = self.paths.remove(id) else { return };
        self.path_changes.ids.on_closed(id);
        if id == main {
            // The client knows the reset token of the address that is no longer used.
            self.resets.tell();
        }
        for lost in path.sent.abandon() {
            let contents = &lost.packet.contents;
            contents.tell_again(
                &mut self.streams,
                &mut self.resets,
                &mut self.keys,
                &mut self.early,
                &mut self.path_changes,
            );
            if let Some(carried) = contents.combination {
                self.contexts.open(carried.context).sender.on_lost(carried, lost.was_expired);
            }
        }
        if self.paths.len() == 1 {
            // It shares no bottleneck any more.
            self.paths.main_mut().admission.set_share(None);
        }
        self.path_changes.events.push_back(PathEvent::Closed(id));
    }

    /// A path has failed, and what its packets should have told is queued: the others repair what is in flight on it, and tell that.
    pub(super) fn on_path_failed(&mut self, id: PathId) {
        // While no path works, more packets would only be lost, too.
        if !self.paths.iter().any(|path| path.id != id && path.is_usable()) {
            return;
        }
        self.give_up_flight(id);
        for (_, packet) in self.paths[id].sent.outstanding_mut() {
            packet.contents.forget_told();
        }
        // A reset of the server that was restarted arrives on a path that works.
        if !core::mem::replace(&mut self.paths[id].has_given_up_flight, true) {
            self.resets.tell();
        }
    }

    /// Counts the coded data in flight on a path as lost, so that it is repaired at once. Nothing may be acknowledged for a long time.
    pub(super) fn give_up_flight(&mut self, id: PathId) {
        let sent = &mut self.paths[id].sent;
        for (was_expired, packet) in sent.outstanding_mut() {
            if let Some(carried) = packet.contents.combination.take() {
                self.contexts.open(carried.context).sender.on_flight_lost(carried, was_expired);
            }
        }
        sent.give_up_flight(sent.next_number());
    }

    /// Closes a path, or avoids it until another one works.
    pub(super) fn retire_path(&mut self, id: PathId) {
        if self.has_other_path(id) {
            self.path_changes.tell(id);
            self.close_path(id);
        } else {
            self.paths[id].is_retiring = true;
        }
    }

    fn has_other_path(&self, id: PathId) -> bool {
        self.paths.iter().any(|path| path.id != id && path.is_validated())
    }
}
