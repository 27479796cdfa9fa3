//! Tells whether an address belongs to this machine, without a list that could be stale.
//!
//! A socket can be bound to an address exactly when the machine has it. That holds on every system, covers addresses
//! that came or went since the start, and needs no enumeration of interfaces. Where a setting lets sockets bind to
//! foreign addresses (`ip_nonlocal_bind`), the test says nothing; then the kernel is asked which source address it
//! would use towards the address: towards itself it is the address itself.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

/// An address no machine has (RFC 5737): binding to it works only where binding proves nothing.
const NOBODY: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 254));

/// Whether this machine has the address. Two system calls, no packet.
#[must_use]
pub fn is_own_address(address: IpAddr) -> bool {
    let can_bind = UdpSocket::bind((address, 0)).is_ok();
    can_bind && (UdpSocket::bind((NOBODY, 0)).is_err() || is_its_own_source(address))
}

fn is_its_own_source(address: IpAddr) -> bool {
    let any: SocketAddr = if address.is_ipv4() { ([0; 4], 0).into() } else { ([0u16; 8], 0).into() };
    let source = UdpSocket::bind(any).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    source.is_ok_and(|source| source.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_ours_and_documentation_addresses_are_not() {
        assert!(is_own_address(Ipv4Addr::LOCALHOST.into()));
        assert!(is_its_own_source(Ipv4Addr::LOCALHOST.into()));
        assert!(!is_own_address(Ipv4Addr::new(198, 51, 100, 7).into()));
        assert!(!is_its_own_source(Ipv4Addr::new(198, 51, 100, 7).into()));
    }
}
