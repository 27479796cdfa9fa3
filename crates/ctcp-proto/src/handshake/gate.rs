//! Decides which hosts with a proven address get a handshake when there are more than a server can serve.
//!
//! All of them share a budget, a token bucket. While it is at least half full, every host passes. Below that, a host passes by tossing
//! coins, all of which must show heads: one coin, plus [`COINS`] more for each of its recent handshakes. The emptier the bucket, the rarer
//! heads are. So no order of arrival always wins, and hosts with the fewest handshakes are preferred:
//!
//! ```text
//!  chance of heads = min(1, 2 * fill of the bucket)
//!  chance to pass  = chance of heads ^ (1 + COINS * handshakes within the last ten seconds)
//! ```
//!
//! A host without recent handshakes is hardly affected by hosts that had some, however many they are. Networks are counted like hosts, with
//! larger shares ([`super::networks`]). The network with the highest count relative to its share determines the result.

use core::net::IpAddr;

use ctcp_base::Instant;

use super::networks::Network;
use super::sketch::Sketch;
use super::token_bucket::TokenBucket;
use crate::crypto::random::SecretRng;

/// Coins for each handshake of the last ten seconds.
const COINS: u32 = 2;

/// Maximum number of handshakes of one host within ten seconds, even on an idle server. An office behind one address whose clients all
/// return at once needs fewer, and a single host costs at most a hundredth of a core.
const RECENT_MAX: u32 = 320;

/// Maximum number of coins. With more, the chance to pass is zero anyway.
const TOSSES_MAX: u32 = 256;

/// The budget for clients with a proven address, and the recent handshakes of each.
#[derive(Debug)]
pub(super) struct Gate {
    budget: TokenBucket,
    /// Created when first needed, so that an endpoint that is never flooded has none.
    sketch: Option<Sketch>,
    rng: SecretRng,
}

impl Gate {
    pub(super) fn new(per_second: u32, burst: u32, rng: SecretRng) -> Self {
        Self { budget: TokenBucket::new(per_second, burst), sketch: None, rng }
    }

    /// Whether the host at `address` may have a handshake now. If so, the host and the budget are charged.
    pub(super) fn take(&mut self, now: Instant, address: IpAddr) -> bool {
        let rng = &mut self.rng;
        let sketch = self.sketch.get_or_insert_with(|| Sketch::new(rng.bytes(), now));
        let counted = Network::all_of(address).map(|network| (sketch.cells(network), network.share));
        let recent = counted.iter().map(|(cells, share)| sketch.count(now, cells) / share).max().unwrap_or(0);
        if recent >= RECENT_MAX || !self.is_lucky(now, recent) || !self.budget.take(now) {
            return false;
        }
        if let Some(sketch) = &mut self.sketch {
            counted.iter().for_each(|(cells, _)| sketch.add(now, cells));
        }
        true
    }

    /// Tosses the coins of a host with this many recent handshakes.
    fn is_lucky(&mut self, now: Instant, recent: u32) -> bool {
        let heads = (2.0 * self.budget.fill(now)).min(1.0);
        if heads >= 1.0 {
            return true;
        }
        let tosses = (1 + COINS * recent).min(TOSSES_MAX);
        let chance = (0..tosses).fold(1.0, |chance, _| chance * heads);
        // 53 random bits: a uniform number in [0, 1).
        ((self.rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64) < chance
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    const NOW: Instant = Instant::from_secs(100);
    const PER_SECOND: u32 = 700;
    const BURST: u32 = 700;

    fn gate() -> Gate {
        Gate::new(PER_SECOND, BURST, SecretRng::new([1; 32]))
    }

    /// A host in a network of its own.
    fn host(index: u32) -> IpAddr {
        IpAddr::from((index << 16 | 0x0101).to_be_bytes())
    }

    /// Simulates requests of `hosts` in turn, 10,000 per second in total. Returns how often each host passed.
    fn flood(gate: &mut Gate, from: Instant, seconds: u32, hosts: &[IpAddr]) -> Vec<u32> {
        let mut passed = vec![0; hosts.len()];
        for ask in 0..seconds * 10_000 {
            let index = ask as usize % hosts.len();
            passed[index] += u32::from(gate.take(from + Duration::from_micros(100) * ask, hosts[index]));
        }
        passed
    }

    #[test]
    fn every_host_passes_on_an_idle_server() {
        let mut gate = gate();
        assert!((0..BURST / 2 - 1).all(|index| gate.take(NOW, host(index))));
        let mut office = Gate::new(PER_SECOND, BURST, SecretRng::new([2; 32]));
        assert!((0..200).all(|_| office.take(NOW, host(1))), "an office behind one address");
    }

    #[test]
    fn the_budget_holds_for_any_number_of_hosts() {
        let hosts: Vec<IpAddr> = (0..1_000).map(host).collect();
        let passed: u32 = flood(&mut gate(), NOW, 5, &hosts).iter().sum();
        assert!((5 * PER_SECOND..=5 * PER_SECOND + BURST).contains(&passed), "{passed}");
    }

    #[test]
    fn hosts_share_equally_and_new_hosts_pass() {
        let (mut gate, hosts) = (gate(), (0..1_000).map(host).collect::<Vec<_>>());
        let passed = flood(&mut gate, NOW, 10, &hosts);
        let (least, most) = (passed.iter().min().unwrap(), passed.iter().max().unwrap());
        assert!(*least >= 4 && *most <= 12, "{least} to {most}");
        let later = NOW + Duration::from_secs(10);
        let newcomers = (5_000..5_100).filter(|&index| gate.take(later, host(index))).count();
        assert!(newcomers >= 70, "{newcomers} of 100 at the first try");
    }

    #[test]
    fn many_addresses_of_one_network_get_little_more_than_one() {
        let mut gate = gate();
        // 500 customers of one IPv6 /48, and as many hosts in networks of their own.
        let one: Vec<IpAddr> =
            (0..500).map(|index| format!("2001:db8:7:{index:x}::1").parse().unwrap()).collect();
        let hosts: Vec<IpAddr> = one.iter().copied().chain((0..500).map(host)).collect();
        let passed = flood(&mut gate, NOW, 10, &hosts);
        let (one, others): (u32, u32) = (passed[..500].iter().sum(), passed[500..].iter().sum());
        assert!(one * 10 < others, "{one} and {others}");
    }

    #[test]
    fn a_host_has_a_limit_of_its_own() {
        let mut gate = gate();
        let [passed] = flood(&mut gate, NOW, 10, &[host(1)])[..] else { panic!("one host") };
        assert!((250..=RECENT_MAX).contains(&passed), "{passed}");
    }
}
