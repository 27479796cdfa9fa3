//! What stands at the ends of links.
//!
//! Two kinds: a [`Host`] has an endpoint and applications, acts by itself and is woken for its deadlines; a [`Router`] sends on what
//! comes, and re-encodes the flows that it was told to.

pub mod host;
pub mod router;

use core::net::{IpAddr, SocketAddr};

use ctcp_netem::Packet;
use ctcp_proto::Ecn;

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
    /// The codepoint in the IP header; `None` is that of a sender that takes no part.
    pub ecn: Option<Ecn>,
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

impl Packet for Datagram {
    fn flow(&self) -> u64 {
        // FNV-1a over addresses and ports, word by word.
        let words = [self.source, self.destination].into_iter().flat_map(|address| {
            let ip = match address.ip() {
                IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
                IpAddr::V6(ip) => ip.to_bits(),
            };
            [(ip >> 64) as u64, ip as u64, u64::from(address.port())]
        });
        words.fold(0xcbf2_9ce4_8422_2325, |hash, word| (hash ^ word).wrapping_mul(0x0100_0000_01b3))
    }

    fn is_ecn_capable(&self) -> bool {
        matches!(self.ecn, Some(Ecn::Ect0 | Ecn::Ect1 | Ecn::Ce))
    }

    fn set_congestion_experienced(&mut self) {
        self.ecn = Some(Ecn::Ce);
    }
}
