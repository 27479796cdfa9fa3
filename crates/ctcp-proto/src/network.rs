//! Where datagrams come from and go to.

use core::net::{IpAddr, SocketAddr};

/// Address and port in the one form that MACs cover: of fixed length, and a client of a dual-stack socket is one client.
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

/// Explicit congestion notification: the two bits of the IP header (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// The sender does not take part.
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
    /// Our address it came to, where the socket tells.
    pub local: Option<IpAddr>,
    /// The peer's address and port.
    pub remote: SocketAddr,
}

/// A datagram to send; its bytes are in the buffer of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Where to.
    pub destination: SocketAddr,
    /// Which of our addresses to send from, if it matters.
    pub source: Option<IpAddr>,
    /// The ECN codepoint; `None` is [`Ecn::NotCapable`].
    pub ecn: Option<Ecn>,
    /// Bytes of the datagram.
    pub size: usize,
}
