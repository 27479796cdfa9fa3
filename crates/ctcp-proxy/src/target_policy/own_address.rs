//! Determines whether an address belongs to this machine, without a list that could be stale.
//!
//! A socket can be bound to an address exactly if the machine has it. That holds on every system, covers addresses that
//! came or went since the start, and needs no enumeration of interfaces. If a setting lets sockets bind to foreign
//! addresses (`ip_nonlocal_bind`), the test is inconclusive. Then the kernel's source address towards the address
//! decides: towards an own address it is the address itself.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

/// An address that no machine has (RFC 5737). If binding to it works, binding proves nothing.
const NOBODY: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 254));

/// Returns true if this machine has the address. Takes two system calls and sends no packet.
///
/// # Errors
/// Returns an error if the system gave no answer, for example because no descriptor is left. Then the address may be an
/// own one.
pub fn is_own_address(address: IpAddr) -> io::Result<bool> {
    Ok(can_bind(address)? && (!can_bind(NOBODY)? || is_its_own_source(address)?))
}

fn can_bind(address: IpAddr) -> io::Result<bool> {
    match UdpSocket::bind((address, 0)) {
        Ok(_) => Ok(true),
        Err(error) if says_no(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns true if the error means that the address is not this machine's. Other errors, such as a lack of descriptors
/// or memory, are inconclusive.
fn says_no(error: &io::Error) -> bool {
    // An IPv6 link-local address without its interface cannot be bound (EINVAL). Without IPv6 in the system there are
    // no IPv6 addresses (EAFNOSUPPORT and WSAEAFNOSUPPORT, which have no kind).
    matches!(error.kind(), io::ErrorKind::AddrNotAvailable | io::ErrorKind::InvalidInput)
        || error.raw_os_error().is_some_and(|code| NO_SUCH_FAMILY.contains(&code))
}

/// `EAFNOSUPPORT` of Linux, of macOS and the BSDs, and of Windows.
const NO_SUCH_FAMILY: [i32; 3] = [97, 47, 10047];

fn is_its_own_source(address: IpAddr) -> io::Result<bool> {
    let any: SocketAddr = if address.is_ipv4() { ([0; 4], 0).into() } else { ([0u16; 8], 0).into() };
    let socket = UdpSocket::bind(any)?;
    // Without a route to it, it is not this machine's.
    Ok(socket.connect((address, 9)).is_ok() && socket.local_addr()?.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_ours_and_documentation_addresses_are_not() {
        for (address, is_own) in [(Ipv4Addr::LOCALHOST, true), (Ipv4Addr::new(198, 51, 100, 7), false)] {
            assert_eq!(is_own_address(address.into()).unwrap(), is_own);
            assert_eq!(is_its_own_source(address.into()).unwrap(), is_own);
        }
    }

    #[test]
    fn addresses_of_all_kinds_have_an_answer() {
        for address in
            ["fe80::1", "2606:2800::1", "::1", "224.0.0.1", "255.255.255.255", "0.0.0.0", "ff02::1"]
        {
            is_own_address(address.parse().unwrap()).unwrap_or_else(|error| panic!("{address}: {error}"));
        }
    }
}
