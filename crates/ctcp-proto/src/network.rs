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
