//! The further addresses of a server: for each a kind (4 or 6), the bytes of the address and the port.

use core::net::{IpAddr, SocketAddr};

use super::ADDRESSES_MAX;
use crate::wire::varint::Reader;

const IPV4: u8 = 4;
const IPV6: u8 = 6;

/// Whether a server can receive at this address.
pub(crate) fn is_reachable(address: &SocketAddr) -> bool {
    address.port() != 0 && !address.ip().is_unspecified() && !address.ip().is_multicast()
}

/// The addresses of a value. `None` if it is malformed, empty or too long, or if an address is one that no server can have.
pub(super) fn parse(value: &[u8]) -> Option<Vec<SocketAddr>> {
    let mut reader = Reader::new(value);
    let mut addresses = Vec::new();
    while !reader.is_empty() {
        let [kind] = reader.array().ok()?;
        let ip = match kind {
            IPV4 => IpAddr::from(reader.array::<4>().ok()?),
            IPV6 => IpAddr::from(reader.array::<16>().ok()?),
            _ => return None,
        };
        let address = SocketAddr::new(ip, u16::from_be_bytes(reader.array().ok()?));
        if !is_reachable(&address) {
            return None;
        }
        addresses.push(address);
    }
    (1..=ADDRESSES_MAX).contains(&addresses.len()).then_some(addresses)
}

pub(super) fn written(addresses: &[SocketAddr]) -> Vec<u8> {
    let mut out = Vec::new();
    for address in addresses {
        match address.ip() {
            IpAddr::V4(ip) => {
                out.push(IPV4);
                out.extend_from_slice(&ip.octets());
            }
            IpAddr::V6(ip) => {
                out.push(IPV6);
                out.extend_from_slice(&ip.octets());
            }
        }
        out.extend_from_slice(&address.port().to_be_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_round_trip_and_impossible_ones_are_refused() {
        let addresses: Vec<SocketAddr> =
            ["192.0.2.1:4433", "[2001:db8::1]:53"].iter().map(|text| text.parse().expect("valid")).collect();
        let bytes = written(&addresses);
        assert_eq!(parse(&bytes), Some(addresses.clone()));
        assert_eq!((parse(&[]), parse(&bytes[..bytes.len() - 1])), (None, None));
        for bad in ["192.0.2.1:0", "0.0.0.0:1", "224.0.0.1:1", "[::]:1", "[ff02::1]:1"] {
            assert_eq!(parse(&written(&[bad.parse().expect("valid")])), None, "{bad}");
        }
        assert_eq!(parse(&[5, 1, 2, 3, 4, 0, 1]), None);
        assert_eq!(parse(&written(&[addresses[0]; ADDRESSES_MAX + 1])), None);
    }
}
