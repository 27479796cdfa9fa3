//! The connections of a host, found by their handles. An endpoint numbers handles from zero and reuses them, so they
//! are used as indexes of a list.

use core::net::SocketAddr;

use ctcp_base::Instant;
use ctcp_proto::{Connection, ConnectionHandle};

use super::keeper::PathKeeper;
use crate::application::Application;

/// A connection and its application.
#[derive(Debug)]
pub struct Peer {
    /// The connection.
    pub connection: Connection,
    /// The application on the connection.
    pub application: Application,
    /// The address of the host that the connection uses.
    pub local: SocketAddr,
    /// Bytes received for the connection.
    pub received: u64,
    /// Bytes sent by the connection.
    pub sent: u64,
    /// Keeps the paths of a client with several interfaces.
    pub(super) keeper: PathKeeper,
    /// It has a path on each way through relays.
    pub(super) is_spread: bool,
}

impl Peer {
    pub(super) fn new(connection: Connection, application: Application, local: SocketAddr) -> Self {
        let keeper = PathKeeper::default();
        Self { connection, application, local, received: 0, sent: 0, keeper, is_spread: false }
    }

    /// Returns the next deadline of the connection, its application or its paths.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let connection = self.connection.poll_timeout().map(|(time, _)| time);
        connection.into_iter().chain(self.next_act()).min()
    }

    /// Returns when the application or the keeper of its paths must act.
    pub(super) fn next_act(&self) -> Option<Instant> {
        self.application.next_timeout().into_iter().chain(self.keeper.next_timeout()).min()
    }
}

/// All connections of a host.
#[derive(Debug, Default)]
pub(super) struct Peers {
    places: Vec<Option<Box<Peer>>>,
    count: usize,
}

impl Peers {
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn get(&self, handle: ConnectionHandle) -> Option<&Peer> {
        self.places.get(handle.0)?.as_deref()
    }

    pub(super) fn get_mut(&mut self, handle: ConnectionHandle) -> Option<&mut Peer> {
        self.places.get_mut(handle.0)?.as_deref_mut()
    }

    /// Inserts a connection, and returns the one that had the handle before.
    pub(super) fn insert(&mut self, handle: ConnectionHandle, peer: Peer) -> Option<Box<Peer>> {
        if handle.0 >= self.places.len() {
            self.places.resize_with(handle.0 + 1, || None);
        }
        let before = self.places[handle.0].replace(Box::new(peer));
        self.count += usize::from(before.is_none());
        before
    }

    pub(super) fn remove(&mut self, handle: ConnectionHandle) -> Option<Box<Peer>> {
        let peer = self.places.get_mut(handle.0)?.take();
        self.count -= usize::from(peer.is_some());
        peer
    }

    /// Returns the connections in the order of their handles.
    pub(super) fn values(&self) -> impl Iterator<Item = &Peer> {
        self.places.iter().filter_map(Option::as_deref)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Peer> {
        self.places.iter_mut().filter_map(Option::as_deref_mut)
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = ConnectionHandle> {
        let taken = self.places.iter().enumerate().filter(|(_, place)| place.is_some());
        taken.map(|(index, _)| ConnectionHandle(index))
    }

    /// Removes and returns all connections.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Box<Peer>> + use<> {
        self.count = 0;
        core::mem::take(&mut self.places).into_iter().flatten()
    }
}
