//! Addresses that are not simply hosts of the internet, and IPv4 addresses hidden in IPv6.
//!
//! After the special-purpose registries (RFC 6890 and its updates). What is outside IPv6's global unicast block is
//! special without being named, so a block that is handed out tomorrow for some inner purpose is closed today.

use core::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address needs an explicit rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Special {
    /// `0.0.0.0/8` and `::`: this host, this network (RFC 1122).
    Unspecified,
    /// `127.0.0.0/8`, `::1`.
    Loopback,
    /// `169.254.0.0/16`, `fe80::/10`; cloud metadata services live here.
    LinkLocal,
    /// RFC 1918, `fc00::/7`, `fec0::/10`.
    Private,
    /// `100.64.0.0/10`: between a carrier and its customers (RFC 6598).
    CarrierNat,
    /// Multicast.
    Multicast,
    /// `255.255.255.255`.
    Broadcast,
    /// Documentation (RFC 5737, RFC 3849, RFC 9637).
    Documentation,
    /// Benchmarks, protocol assignments, discard, future use: no host has it.
    Reserved,
    /// An address of the server itself.
    Own,
}

impl fmt::Display for Special {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Unspecified => "an unspecified address",
            Self::Loopback => "a loopback address",
            Self::LinkLocal => "a link-local address",
            Self::Private => "a private address",
            Self::CarrierNat => "a shared carrier address",
            Self::Multicast => "a multicast address",
            Self::Broadcast => "the broadcast address",
            Self::Documentation => "a documentation address",
            Self::Reserved => "a reserved address",
            Self::Own => "an address of the server itself",
        })
    }
}

pub(super) fn special(address: IpAddr) -> Option<Special> {
    match address {
        IpAddr::V4(ip) => special_v4(ip),
        IpAddr::V6(ip) => special_v6(ip),
    }
}

fn special_v4(ip: Ipv4Addr) -> Option<Special> {
    match ip.octets() {
        [0, ..] => Some(Special::Unspecified),
        [127, ..] => Some(Special::Loopback),
        [169, 254, ..] => Some(Special::LinkLocal),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Some(Special::Private),
        [100, 64..=127, ..] => Some(Special::CarrierNat),
        [224..=239, ..] => Some(Special::Multicast),
        [255, 255, 255, 255] => Some(Special::Broadcast),
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Some(Special::Documentation),
        [192, 0, 0, _] | [192, 88, 99, _] | [198, 18..=19, ..] | [240..=255, ..] => Some(Special::Reserved),
        _ => None,
    }
}

fn special_v6(ip: Ipv6Addr) -> Option<Special> {
    let segments = ip.segments();
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some(Special::Unspecified),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some(Special::Loopback),
        [0xfe80..=0xfebf, ..] => Some(Special::LinkLocal),
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Some(Special::Private),
        [0xff00..=0xffff, ..] => Some(Special::Multicast),
        [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => Some(Special::Documentation),
        // Teredo is looked at by what it embeds; the rest of 2001::/23 is no host (RFC 2928).
        [0x2001, 1..=0x01ff, ..] => Some(Special::Reserved),
        [0x2000..=0x3fff, ..] => None,
        _ => Some(Special::Reserved),
    }
}

/// The address of the same host in its plain form: IPv4-mapped (RFC 4291), IPv4-compatible, and the well-known NAT64
/// prefix (RFC 6052) are IPv4.
pub(super) fn canonical(address: IpAddr) -> IpAddr {
    let IpAddr::V6(ip) = address else { return address };
    match ip.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => address,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            v4(high, low).into()
        }
        _ => address,
    }
}

/// IPv4 addresses through which a packet to this IPv6 address would travel: 6to4 (RFC 3056), Teredo's server and
/// client (RFC 4380), ISATAP (RFC 5214).
pub(super) fn embedded(address: IpAddr) -> [Option<IpAddr>; 2] {
    let IpAddr::V6(ip) = address else { return [None, None] };
    match ip.segments() {
        [0x2002, high, low, ..] => [Some(v4(high, low).into()), None],
        [0x2001, 0, server_high, server_low, _, _, client_high, client_low] => {
            [Some(v4(server_high, server_low).into()), Some(v4(!client_high, !client_low).into())]
        }
        [_, _, _, _, 0 | 0x0200, 0x5efe, high, low] => [Some(v4(high, low).into()), None],
        _ => [None, None],
    }
}

fn v4(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}
