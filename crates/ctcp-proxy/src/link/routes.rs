//! Which interfaces lead to an address: the system's main table of routes.
//!
//! A socket that is bound to an interface is no test. For it, the system takes every destination without a route for a neighbour.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Flags of a route (route(8)): in use, and refused.
const UP: u32 = 0x1;
const REJECT: u32 = 0x200;

/// Bits of an IPv4 and of an IPv6 address.
const V4: u32 = 32;
const V6: u32 = 128;

/// The routes of this machine.
#[derive(Debug)]
pub(super) struct Routes(Vec<Route>);

/// All addresses with this prefix, over an interface.
#[derive(Debug, PartialEq, Eq)]
struct Route {
    prefix: IpAddr,
    length: u32,
    interface: String,
    metric: u32,
}

impl Routes {
    /// Empty where the system has no such table.
    pub(super) fn of_system() -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        Self::parse(&read("/proc/net/route"), &read("/proc/net/ipv6_route"))
    }

    fn parse(v4: &str, v6: &str) -> Self {
        Self(v4.lines().filter_map(route_v4).chain(v6.lines().filter_map(route_v6)).collect())
    }

    /// The lowest metric of a route over an interface to an address, if there is one. The system prefers a lower one.
    pub(super) fn metric(&self, interface: &str, to: IpAddr) -> Option<u32> {
        let leads = |route: &&Route| route.interface == interface && route.covers(to);
        self.0.iter().filter(leads).map(|route| route.metric).min()
    }
}

impl Route {
    fn covers(&self, address: IpAddr) -> bool {
        let differ = |one: u128, other: u128, bits: u32| {
            (one ^ other).checked_shr(bits - self.length.min(bits)).unwrap_or(0) != 0
        };
        match (self.prefix, address.to_canonical()) {
            (IpAddr::V4(prefix), IpAddr::V4(address)) => {
                !differ(prefix.to_bits().into(), address.to_bits().into(), V4)
            }
            (IpAddr::V6(prefix), IpAddr::V6(address)) => !differ(prefix.to_bits(), address.to_bits(), V6),
            _ => false,
        }
    }
}

fn hexadecimal(text: &str) -> Option<u32> {
    u32::from_str_radix(text, 16).ok()
}

fn is_usable(flags: &str) -> bool {
    hexadecimal(flags).is_some_and(|flags| flags & UP != 0 && flags & REJECT == 0)
}

/// Interface, destination, gateway, flags, two numbers, metric, mask. Addresses are in the byte order of the machine.
fn route_v4(line: &str) -> Option<Route> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [interface, destination, _, flags, _, _, metric, mask, ..] = fields[..] else { return None };
    let address = |text| Some(Ipv4Addr::from(hexadecimal(text)?.to_ne_bytes()));
    let route = Route {
        prefix: address(destination)?.into(),
        length: address(mask)?.to_bits().leading_ones(),
        interface: interface.to_owned(),
        metric: metric.parse().ok()?,
    };
    is_usable(flags).then_some(route)
}

/// Destination and its length, source and its length, next hop, metric, two numbers, flags, interface. Numbers are hexadecimal.
fn route_v6(line: &str) -> Option<Route> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [destination, length, _, _, _, metric, _, _, flags, interface] = fields[..] else { return None };
    let prefix = Ipv6Addr::from(u128::from_str_radix(destination, 16).ok()?);
    let route = Route {
        prefix: prefix.into(),
        length: hexadecimal(length)?,
        interface: interface.to_owned(),
        metric: hexadecimal(metric)?,
    };
    is_usable(flags).then_some(route)
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4_TABLE: &str = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
wlan0\t00000000\t010200C0\t0003\t0\t0\t600\t00000000\t0\t0\t0
wlan0\t000200C0\t00000000\t0001\t0\t0\t600\t00FFFFFF\t0\t0\t0
docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
eth1\t016433C6\t00000000\t0205\t0\t0\t0\tFFFFFFFF\t0\t0\t0
";

    const V6_TABLE: &str = "\
20010db8000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo
";

    #[cfg(target_endian = "little")]
    #[test]
    fn an_interface_leads_where_a_route_over_it_does() {
        let routes = Routes::parse(V4_TABLE, V6_TABLE);
        let metric = |interface, to: &str| routes.metric(interface, to.parse().unwrap());
        let leads = |interface, to| metric(interface, to).is_some();
        assert_eq!((metric("wlan0", "203.0.113.7"), metric("eth0", "2001:db8::7")), (Some(600), Some(256)));
        assert!(leads("wlan0", "203.0.113.7") && leads("wlan0", "192.0.2.9"));
        assert!(leads("docker0", "172.17.3.4") && !leads("docker0", "203.0.113.7"));
        assert!(!leads("eth1", "198.51.100.1"), "a refused destination");
        assert!(leads("eth0", "2001:db8::7") && !leads("eth0", "2001:db9::7"));
        assert!(!leads("lo", "2001:db9::7") && !leads("lo", "203.0.113.7"));
        assert!(leads("wlan0", "::ffff:203.0.113.7"));
    }

    #[test]
    fn lines_of_another_form_are_skipped() {
        let odd = "a b c\n\nwlan0 zz 0 0003 0 0 0 0\n";
        assert_eq!(Routes::parse(odd, odd).0, []);
    }
}
