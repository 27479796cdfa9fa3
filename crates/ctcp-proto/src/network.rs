//! Addresses of datagrams, and their ECN codepoints.

use core::net::{IpAddr, SocketAddr};

/// Address and port in the form that MACs cover: of fixed length, and the same for a client of a dual-stack socket.
pub(crate) fn address_bytes(address: SocketAddr) -> [u8; 18] {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let mut bytes = [0; 18];
    bytes[..16].copy_from_slice(&ip.octets());
    bytes[16..].copy_from_slice(&address.port().to_be_bytes());
    bytes
}

/// Explicit congestion notification: the two ECN bits of the IP header (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECN-capable.
    NotCapable,
    /// ECT(0).
    Ect0,
    /// ECT(1).
    Ect1,
    /// Congestion experienced.
    Ce,
}

/// The addresses of a datagram. A path keeps its identity when they change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkPath {
    /// The local address of the datagram, if the socket reports it.
    pub local: Option<IpAddr>,
    /// The peer's address and port.
    pub remote: SocketAddr,
}

/// The addresses that stand for hops: the dummy prefix of RFC 9780, which no network carries. The last 64 bits are the number of the hop.
const RELAYED_PREFIX: u64 = 0x0100_0000_0000_0001;

/// The port of these addresses.
const RELAYED_PORT: u16 = 1;

/// The address that stands for a hop: what is sent there is given to the connection with this number, which carries it to a relay or comes
/// from one ([`crate::Connection::send_relayed`]).
#[must_use]
pub fn relayed_address(hop: u64) -> SocketAddr {
    let bits = u128::from(RELAYED_PREFIX) << 64 | u128::from(hop);
    SocketAddr::new(IpAddr::V6(bits.into()), RELAYED_PORT)
}

/// The number of the hop for which an address stands, if it stands for one.
#[must_use]
pub fn hop_of(address: SocketAddr) -> Option<u64> {
    let IpAddr::V6(ip) = address.ip() else { return None };
    let bits = u128::from(ip);
    (bits >> 64 == u128::from(RELAYED_PREFIX)).then_some(bits as u64)
}

/// Whether an address stands for a hop.
pub(crate) fn is_relayed(address: SocketAddr) -> bool {
    hop_of(address).is_some()
}

/// A datagram to send. Its bytes are in the buffer of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Where to send it.
    pub destination: SocketAddr,
    /// The local address to send from, if it matters.
    pub source: Option<IpAddr>,
    /// The ECN codepoint; `None` is [`Ecn::NotCapable`].
    pub ecn: Option<Ecn>,
    /// The size of the datagram in bytes.
    pub size: usize,
}
