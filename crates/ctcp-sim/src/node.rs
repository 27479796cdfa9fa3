//! The nodes at the ends of links.
//!
//! There are two kinds. A [`Host`] has an endpoint and applications, acts on its own and is woken for its deadlines. A
//! [`Router`] forwards datagrams, and re-encodes the flows for which a recoder was set.

pub mod host;
pub mod router;
mod uplinks;

use core::net::{IpAddr, SocketAddr};

use ctcp_netem::Packet;
use ctcp_proto::Ecn;

pub use host::Host;
pub use router::Router;
pub(crate) use uplinks::Uplinks;

use crate::link::{Direction, LinkId};

/// Identifies a node of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(pub(crate) usize);

/// A node in a simulation.
#[derive(Debug)]
pub(crate) enum Node {
    Host(Box<Host>),
    Router(Router),
}

/// The way by which a datagram leaves a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Port {
    /// A link.
    Link(LinkId, Direction),
    /// A direct connection to a node, without queue, delay or loss.
    Wire(NodeId),
}

/// A UDP datagram in transit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The sender's address.
    pub source: SocketAddr,
    /// The receiver's address.
    pub destination: SocketAddr,
    /// The codepoint in the IP header; `None` for a sender without ECN.
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
