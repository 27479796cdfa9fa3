//! The networks that contain an address. An attacker with one address of a network often has all of it: a provider assigns a customer 64,
//! 56 or 48 bits of IPv6, and a machine in a data centre gets a small block of IPv4.

use core::net::IpAddr;

/// Number of networks counted for each address.
pub(super) const LEVELS: usize = 4;

/// Prefix lengths of IPv4, and the share of each network as a multiple of that of a host.
const V4: [(u8, u32); LEVELS] = [(32, 1), (24, 2), (20, 4), (16, 16)];
/// The same for IPv6. A host is the smallest network of one customer.
const V6: [(u8, u32); LEVELS] = [(64, 1), (56, 2), (48, 4), (32, 16)];

/// A prefix of IPv6, or of IPv4 mapped into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Network {
    bits: u128,
    length: u8,
    /// The share as a multiple of that of one host.
    pub(super) share: u32,
}

impl Network {
    /// The networks that contain an address, smallest first.
    pub(super) fn all_of(address: IpAddr) -> [Self; LEVELS] {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                V4.map(|(length, share)| Self::new(address.to_ipv6_mapped().to_bits(), 96 + length, share))
            }
            IpAddr::V6(address) => V6.map(|(length, share)| Self::new(address.to_bits(), length, share)),
        }
    }

    /// The smallest network that contains an address.
    pub(super) fn host_of(address: IpAddr) -> Self {
        let [host, ..] = Self::all_of(address);
        host
    }

    /// The bytes that identify the network.
    pub(super) fn to_bytes(self) -> [u8; 17] {
        let mut bytes = [self.length; 17];
        bytes[..16].copy_from_slice(&self.bits.to_be_bytes());
        bytes
    }

    fn new(address: u128, length: u8, share: u32) -> Self {
        let host_bits = 128 - u32::from(length);
        Self { bits: address >> host_bits << host_bits, length, share }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of networks that two addresses have in common.
    fn common(one: &str, other: &str) -> usize {
        let [one, other] = [one, other].map(|text| Network::all_of(text.parse().unwrap()));
        one.iter().filter(|network| other.contains(network)).count()
    }

    #[test]
    fn addresses_share_the_networks_of_their_common_prefixes() {
        assert_eq!(common("192.0.2.1", "192.0.2.1"), 4);
        assert_eq!(common("192.0.2.1", "::ffff:192.0.2.1"), 4);
        assert_eq!(common("192.0.2.1", "192.0.2.2"), 3);
        assert_eq!(common("192.0.2.1", "192.0.3.1"), 2);
        assert_eq!(common("192.0.2.1", "192.0.77.1"), 1);
        assert_eq!(common("192.0.2.1", "192.1.2.1"), 0);
        assert_eq!(common("2001:db8:1:2::1", "2001:db8:1:2:3:4:5:6"), 4);
        assert_eq!(common("2001:db8:1:2::1", "2001:db8:1:3::1"), 3);
        assert_eq!(common("2001:db8:1:2::1", "2001:db8:1:302::1"), 2);
        assert_eq!(common("2001:db8:1:2::1", "2001:db8:2::1"), 1);
        assert_eq!(common("2001:db8:1:2::1", "2001:db9::1"), 0);
    }
}
