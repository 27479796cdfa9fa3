//! What one host may ask for, among those that have proved their address.

use core::net::IpAddr;
use std::collections::BTreeMap;

use ctcp_base::Instant;

use super::census::Census;
use super::token_bucket::TokenBucket;

/// Half-open handshakes of one host: enough for an office behind one address whose clients all return at once, and far
/// too few for a single host to take every place.
const HALF_OPEN_PER_HOST: usize = 64;

/// Handshakes of one host a second, and at once. Each costs the server 0.35 ms.
const PER_SECOND: u32 = 32;
const BURST: u32 = 64;

/// Hosts remembered. With more of them at once, new ones wait.
const HOSTS_MAX: usize = 4096;

/// A host: an IPv4 address, or the 64 bits of an IPv6 address that a provider gives to one customer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Host(u128);

impl Host {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self(address.to_ipv6_mapped().to_bits()),
            IpAddr::V6(address) => Self(address.to_bits() >> 64 << 64),
        }
    }
}

/// The rate and the number of half-open handshakes of each host.
#[derive(Clone, Debug)]
pub(super) struct Hosts<K> {
    rates: BTreeMap<Host, TokenBucket>,
    half_open: Census<K, Host>,
}

impl<K> Default for Hosts<K> {
    fn default() -> Self {
        Self { rates: BTreeMap::new(), half_open: Census::default() }
    }
}

impl<K: Ord + Clone> Hosts<K> {
    /// Half-open handshakes of all of them.
    pub(super) fn half_open(&self) -> usize {
        self.half_open.len()
    }

    /// Whether the host at `address` may have another handshake now; if so, it is charged.
    pub(super) fn take(&mut self, now: Instant, address: IpAddr) -> bool {
        let host = Host::of(address);
        if self.half_open.count(host) >= HALF_OPEN_PER_HOST {
            return false;
        }
        if self.rates.len() >= HOSTS_MAX && !self.rates.contains_key(&host) {
            self.rates.retain(|_, rate| !rate.is_full(now));
            if self.rates.len() >= HOSTS_MAX {
                return false;
            }
        }
        self.rates.entry(host).or_insert(TokenBucket::new(PER_SECOND, BURST)).take(now)
    }

    /// A handshake of the host at `address` is half-open.
    pub(super) fn insert(&mut self, key: K, address: IpAddr) {
        self.half_open.insert(key, Host::of(address));
    }

    /// It is so no more, if it was.
    pub(super) fn remove(&mut self, key: &K) {
        self.half_open.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_secs(100);

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_host_has_a_burst_and_a_rate_and_others_have_theirs() {
        let mut hosts = Hosts::<u32>::default();
        let mut taken = |from: &str, now| (0..1_000).filter(|_| hosts.take(now, address(from))).count();
        assert_eq!(taken("192.0.2.1", NOW), BURST as usize);
        assert_eq!(taken("192.0.2.2", NOW), BURST as usize);
        assert_eq!(taken("::ffff:192.0.2.2", NOW), 0);
        let later = NOW + core::time::Duration::from_secs(1);
        assert_eq!(taken("192.0.2.1", later), PER_SECOND as usize);
    }

    #[test]
    fn all_addresses_of_a_customer_are_one_host() {
        let mut hosts = Hosts::<u32>::default();
        let taken =
            (0..1_000).filter(|index| hosts.take(NOW, address(&format!("2001:db8:1:2::{index:x}")))).count();
        assert_eq!(taken, BURST as usize);
        assert!(hosts.take(NOW, address("2001:db8:1:3::1")));
    }

    #[test]
    fn a_host_has_only_so_many_half_open() {
        let mut hosts = Hosts::default();
        (0..HALF_OPEN_PER_HOST).for_each(|key| hosts.insert(key, address("192.0.2.1")));
        assert!(!hosts.take(NOW, address("192.0.2.1")) && hosts.take(NOW, address("192.0.2.2")));
        hosts.remove(&3);
        hosts.remove(&3);
        assert!(hosts.take(NOW, address("192.0.2.1")));
        (0..HALF_OPEN_PER_HOST).for_each(|key| hosts.remove(&key));
        assert_eq!(hosts.half_open(), 0);
    }

    #[test]
    fn the_memory_of_hosts_is_bounded_and_those_at_rest_are_forgotten() {
        let mut hosts = Hosts::<u32>::default();
        let taken =
            (0..10_000_u32).filter(|index| hosts.take(NOW, IpAddr::from(index.to_be_bytes()))).count();
        assert_eq!((taken, hosts.rates.len()), (HOSTS_MAX, HOSTS_MAX));
        assert!(hosts.take(NOW + core::time::Duration::from_secs(1), address("192.0.2.1")));
        assert_eq!(hosts.rates.len(), 1);
    }
}
