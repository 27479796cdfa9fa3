//! What stands at the ends of links.
//!
//! Two kinds: a [`Host`] has an endpoint and applications, acts by itself and is woken for its deadlines; a [`Router`] sends on what
//! comes, and re-encodes the flows that it was told to.

pub mod host;
pub mod router;

use core::net::SocketAddr;

pub use host::Host;
pub use router::Router;

use crate::link::{Direction, LinkId};

/// Names a node of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(pub(crate) usize);

/// A node in a simulation.
#[derive(Debug)]
pub(crate) enum Node {
    Host(Box<Host>),
    Router(Router),
}

/// Where a datagram leaves a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Port {
    /// Over a link.
    Link(LinkId, Direction),
    /// To a node that is as good as at the same place: no queue, no delay, no loss.
    Wire(NodeId),
}

/// A UDP datagram on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Who sent it.
    pub source: SocketAddr,
    /// Whom it is for.
    pub destination: SocketAddr,
    /// The UDP payload.
    pub bytes: Vec<u8>,
}

impl AsRef<[u8]> for Datagram {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl AsMut<[u8]> for Datagram {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}
