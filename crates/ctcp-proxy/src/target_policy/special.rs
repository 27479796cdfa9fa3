//! Addresses other than ordinary hosts of the internet, and IPv4 addresses inside IPv6 addresses.
//!
//! The table works like a routing table: the longest prefix that contains an address decides. It follows the
//! special-purpose registries (RFC 6890 and its updates). Addresses outside IPv6's global unicast block are special
//! without being listed, so blocks that are assigned to internal purposes in the future are closed already.

use core::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;

use ipnet::IpNet;

/// Why an address needs an explicit rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Special {
    /// `0.0.0.0/8` and `::`: this host, this network (RFC 1122).
    Unspecified,
    /// `127.0.0.0/8`, `::1`.
    Loopback,
    /// `169.254.0.0/16`, `fe80::/10`.
    LinkLocal,
    /// Metadata services, which give cloud machines their secrets and settings: `169.254.169.254`, `168.63.129.16`
    /// (Azure) and others.
    Metadata,
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
    /// Benchmarks, protocol assignments, discard, future use: no host has such an address.
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
            Self::Metadata => "a cloud's metadata address",
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

/// Ranges and the kinds of their addresses; `None` excludes a range from a wider one.
const RANGES: &[(&str, Option<Special>)] = &[
    ("0.0.0.0/8", Some(Special::Unspecified)),
    ("127.0.0.0/8", Some(Special::Loopback)),
    ("169.254.0.0/16", Some(Special::LinkLocal)),
    ("169.254.169.254/32", Some(Special::Metadata)), // AWS, Azure, Google, OpenStack, Oracle and others
    ("169.254.170.2/32", Some(Special::Metadata)),   // credentials of AWS containers
    ("169.254.170.23/32", Some(Special::Metadata)),  // credentials of AWS EKS pods
    ("168.63.129.16/32", Some(Special::Metadata)),   // Azure's wire server, among public addresses
    ("100.100.100.200/32", Some(Special::Metadata)), // Alibaba
    ("10.0.0.0/8", Some(Special::Private)),
    ("172.16.0.0/12", Some(Special::Private)),
    ("192.168.0.0/16", Some(Special::Private)),
    ("100.64.0.0/10", Some(Special::CarrierNat)),
    ("192.0.2.0/24", Some(Special::Documentation)),
    ("198.51.100.0/24", Some(Special::Documentation)),
    ("203.0.113.0/24", Some(Special::Documentation)),
    ("192.0.0.0/24", Some(Special::Reserved)),
    ("192.88.99.0/24", Some(Special::Reserved)),
    ("198.18.0.0/15", Some(Special::Reserved)),
    ("224.0.0.0/4", Some(Special::Multicast)),
    ("240.0.0.0/4", Some(Special::Reserved)),
    ("255.255.255.255/32", Some(Special::Broadcast)),
    // All of IPv6 but 2000::/3.
    ("::/3", Some(Special::Reserved)),
    ("4000::/2", Some(Special::Reserved)),
    ("8000::/1", Some(Special::Reserved)),
    ("::/128", Some(Special::Unspecified)),
    ("::1/128", Some(Special::Loopback)),
    ("64:ff9b:1::/48", Some(Special::Reserved)), // a network's own NAT64 (RFC 8215)
    ("2001::/23", Some(Special::Reserved)),      // protocol assignments (RFC 2928)
    ("2001::/32", None),                         // Teredo is checked by the embedded addresses
    ("2001:db8::/32", Some(Special::Documentation)),
    ("3fff::/20", Some(Special::Documentation)),
    ("fc00::/7", Some(Special::Private)),
    ("fd00:ec2::254/128", Some(Special::Metadata)), // AWS
    ("fd00:ec2::23/128", Some(Special::Metadata)),  // credentials of AWS EKS pods
    ("fd20:ce::254/128", Some(Special::Metadata)),  // Google
    ("fe80::/10", Some(Special::LinkLocal)),
    ("fe80::a9fe:a9fe/128", Some(Special::Metadata)), // OpenStack
    ("fec0::/10", Some(Special::Private)),
    ("ff00::/8", Some(Special::Multicast)),
];

/// [`RANGES`], longest prefix first, so that the first match decides.
static TABLE: LazyLock<Vec<(IpNet, Option<Special>)>> = LazyLock::new(|| {
    let parse = |(range, special): &(&str, _)| (range.parse::<IpNet>().expect("a constant"), *special);
    let mut table: Vec<_> = RANGES.iter().map(parse).collect();
    table.sort_by_key(|(range, _)| core::cmp::Reverse(range.prefix_len()));
    table
});

/// The kind of a special address, and the range that makes it special.
pub(super) fn special(address: IpAddr) -> Option<(IpNet, Special)> {
    let (range, special) = TABLE.iter().find(|(range, _)| range.contains(&address))?;
    special.map(|special| (*range, special))
}

/// The kind of an address, or else of one through which packets to it are routed. `None` for ordinary hosts of the internet.
pub(crate) fn kind(address: IpAddr) -> Option<Special> {
    let host = canonical(address);
    let ways = core::iter::once(host).chain(embedded(host).into_iter().flatten());
    ways.filter_map(special).map(|(_, special)| special).next()
}

/// The plain form of an address of the same host: IPv4-mapped (RFC 4291), IPv4-compatible, and the well-known NAT64
/// prefix (RFC 6052) become IPv4.
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

/// The IPv4 addresses through which packets to this IPv6 address are routed: 6to4 (RFC 3056), Teredo's server and
/// client (RFC 4380), ISATAP (RFC 5214), and a network's own NAT64 with a prefix of 96 bits (RFC 8215).
pub(super) fn embedded(address: IpAddr) -> [Option<IpAddr>; 2] {
    let IpAddr::V6(ip) = address else { return [None, None] };
    match ip.segments() {
        [0x2002, high, low, ..] => [Some(v4(high, low).into()), None],
        [0x2001, 0, server_high, server_low, _, _, client_high, client_low] => {
            [Some(v4(server_high, server_low).into()), Some(v4(!client_high, !client_low).into())]
        }
        [0x64, 0xff9b, 1, _, _, _, high, low] => [Some(v4(high, low).into()), None],
        [_, _, _, _, 0 | 0x0200, 0x5efe, high, low] => [Some(v4(high, low).into()), None],
        _ => [None, None],
    }
}

fn v4(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}
