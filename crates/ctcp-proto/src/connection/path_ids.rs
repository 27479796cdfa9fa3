//! The connection ids of further paths (PROTOCOL.md section 6). Each path has its own, so that an observer of two networks cannot tell that
//! they carry the same connection.
//!
//! Both sides give ids for [`SPARE`] paths in the handshake, and one more whenever a path is opened, so that a new path needs no round trip:
//! the old one may be dead by then. A path for which the peer has given no id uses the id of an earlier path.

use std::collections::VecDeque;

use super::{Established, TransportError};
use crate::crypto::random::SecretRng;
use crate::event::EndpointEvent;
use crate::id::{ConnectionId, PathId};
use crate::path::PathUse;
use crate::wire::{DatagramBuilder, Frame};

/// How many ids for paths that are not open yet a side gives its peer, and for how many closed ones it keeps listening.
pub(crate) const SPARE: usize = 4;

/// How many ids a side keeps from its peer.
const PEER_IDS_MAX: usize = 32;

/// An id of one side by which packets of a path reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PathConnectionId {
    path: PathId,
    id: ConnectionId,
}

/// The connection ids of the paths.
#[derive(Debug)]
pub(super) struct PathIds {
    /// This side's id for path 0 and the ones that it has given for further paths, in the order of the paths.
    own: Vec<PathConnectionId>,
    /// The same of the peer.
    peer: Vec<PathConnectionId>,
    /// Both sides gave ids for further paths in the handshake.
    are_exchanged: bool,
    /// Closed paths whose ids still reach this side, oldest first.
    closed: VecDeque<PathId>,
    /// Paths whose ids the peer must be told.
    due: Vec<PathId>,
    events: VecDeque<EndpointEvent>,
}

impl PathIds {
    /// Ids as exchanged in the handshake: of path 0, and of the paths from 1 on.
    pub(super) fn new(own: (ConnectionId, &[ConnectionId]), peer: (ConnectionId, &[ConnectionId])) -> Self {
        let are_exchanged = !own.1.is_empty() && !peer.1.is_empty();
        Self {
            own: numbered(own),
            peer: numbered(peer),
            are_exchanged,
            closed: VecDeque::new(),
            due: Vec::new(),
            events: VecDeque::new(),
        }
    }

    /// The peer's id for packets of this path. The one of the path closest before it, if it has given none.
    pub(super) fn of_peer(&self, path: PathId) -> ConnectionId {
        closest(&self.peer, path)
    }

    /// This side's id for packets of this path.
    pub(super) fn own(&self, path: PathId) -> ConnectionId {
        closest(&self.own, path)
    }

    /// A path is in use: gives ids for more paths.
    pub(super) fn on_used(&mut self, path: PathId, rng: &mut SecretRng) {
        if !self.are_exchanged {
            return;
        }
        let last = usize::from(path.0) + SPARE;
        let next = self.own.last().map_or(1, |entry| usize::from(entry.path.0) + 1);
        for number in (next..=last).map_while(|number| u8::try_from(number).ok()) {
            let entry = PathConnectionId { path: PathId(number), id: ConnectionId::random(rng) };
            self.own.push(entry);
            self.due.push(entry.path);
            self.events.push_back(EndpointEvent::NewConnectionId(entry.id));
        }
    }

    /// A path was closed. Its id counts for late packets until more paths are closed. That of path 0 stays: handshake messages have it.
    pub(super) fn on_closed(&mut self, path: PathId) {
        self.peer.retain(|entry| entry.path != path || path == PathId(0));
        self.due.retain(|&due| due != path);
        if path == PathId(0) {
            return;
        }
        self.closed.push_back(path);
        if self.closed.len() > SPARE
            && let Some(oldest) = self.closed.pop_front()
            && let Some(position) = self.own.iter().position(|entry| entry.path == oldest)
        {
            let retired = self.own.remove(position).id;
            self.events.push_back(EndpointEvent::RetiredConnectionId(retired));
        }
    }

    /// The packet with the id for this path was lost.
    pub(super) fn tell(&mut self, path: PathId) {
        let is_known = self.own.iter().any(|entry| entry.path == path) && !self.closed.contains(&path);
        if is_known && !self.due.contains(&path) {
            self.due.push(path);
        }
    }

    pub(super) fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    pub(super) fn poll_event(&mut self) -> Option<EndpointEvent> {
        self.events.pop_front()
    }

    /// Writes a NEW_CONNECTION_ID and returns its path, if one is due and it fits.
    pub(super) fn write(&mut self, builder: &mut DatagramBuilder) -> Option<PathId> {
        let &path = self.due.first()?;
        let frame = Frame::NewConnectionId { path, id: self.own(path) };
        builder.write_if_it_fits(&frame).then(|| self.due.remove(0))
    }

    /// The peer gave the id for a path.
    fn on_given(&mut self, path: PathId, id: ConnectionId) -> Result<(), &'static str> {
        if !self.are_exchanged {
            return Err("NEW_CONNECTION_ID although the handshake exchanged no ids of further paths");
        }
        if self.peer.first().is_some_and(|first| first.id.as_bytes().len() != id.as_bytes().len()) {
            return Err("NEW_CONNECTION_ID with an id of another length");
        }
        match self.peer.binary_search_by_key(&path, |entry| entry.path) {
            Ok(position) if self.peer[position].id == id => Ok(()),
            Ok(_) => Err("NEW_CONNECTION_ID with a second id for a path"),
            Err(_) if self.peer.len() >= PEER_IDS_MAX => {
                Err("NEW_CONNECTION_ID for more paths than are needed")
            }
            Err(position) => {
                self.peer.insert(position, PathConnectionId { path, id });
                Ok(())
            }
        }
    }
}

fn numbered((first, further): (ConnectionId, &[ConnectionId])) -> Vec<PathConnectionId> {
    let ids = core::iter::once(first).chain(further.iter().copied());
    (0..).zip(ids).map(|(number, id)| PathConnectionId { path: PathId(number), id }).collect()
}

/// The id of `path`, or else that of the closest path before it. `entries` begin with path 0.
fn closest(entries: &[PathConnectionId], path: PathId) -> ConnectionId {
    let end = entries.partition_point(|entry| entry.path <= path);
    entries[..end].last().map_or_else(ConnectionId::default, |entry| entry.id)
}

impl Established {
    /// The peer gave its connection id for a path.
    pub(super) fn on_new_connection_id(
        &mut self,
        path: PathId,
        id: ConnectionId,
    ) -> Result<(), TransportError> {
        let state = self.paths.state_of(path);
        if state == PathUse::Closed {
            return Ok(());
        }
        self.path_changes.ids.on_given(path, id).map_err(TransportError::violation)?;
        if state == PathUse::Open {
            self.paths[path].destination = id;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
