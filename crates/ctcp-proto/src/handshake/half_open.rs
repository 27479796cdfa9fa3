//! Limits on half-open handshakes (PROTOCOL.md section 3, "Under load").
//!
//! A handshake is half-open while its INITIATE waits for its part, and then until the client's first sealed packet. Until then the client's
//! address may be forged, or its INITIATE a replay, so the memory and work for it are bounded:
//!
//! ```text
//!  half-open   0 .................. COOKIE_THRESHOLD .................. HALF_OPEN_MAX
//!  no cookie   proceed, at most UNPROVEN_PER_SECOND | demand a cookie | busy
//!  cookie      proceed, at most PROVEN_PER_SECOND, hosts with the fewest recent handshakes first | busy
//! ```
//!
//! A cookie proves an address. So per-host counts apply only to clients with a cookie: an attacker who forges another host's address cannot
//! use up its share.

use core::net::IpAddr;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use ctcp_base::Instant;

use super::census::Census;
use super::gate::Gate;
use super::networks::Network;
use super::token_bucket::TokenBucket;
use crate::crypto::random::SecretRng;

/// Maximum number of half-open handshakes. Each holds its keys and a RESPONSE of at most 1200 bytes, some megabytes in total. The rates
/// below do not fill it within [`HALF_OPEN_LIFETIME`], so an attacker cannot occupy the last place.
pub const HALF_OPEN_MAX: usize = 4608;
/// Number of half-open handshakes above which a client must show a cookie. A server under normal load does not reach it: that would take
/// 1000 new clients per second at a round trip of 250 ms.
pub const COOKIE_THRESHOLD: usize = 256;
/// How long a handshake may stay half-open: several repetitions by the client (each at most half a second after the last), so that a lossy
/// path does not lose a handshake whose keys the client already has.
pub const HALF_OPEN_LIFETIME: Duration = Duration::from_secs(5);
/// Handshakes per second for clients without a cookie. One takes a server about 0.4 ms of processor time, or 0.1 ms if its message does
/// not open. So forged INITIATEs cost at most a fifth of a core. Honest clients beyond the rate need one more round trip.
pub const UNPROVEN_PER_SECOND: u32 = 500;
/// Maximum burst after a quiet time, as when all clients of a restarted server return.
pub const UNPROVEN_BURST: u32 = 250;
/// The same for all clients with a cookie: 0.3 of a core.
pub const PROVEN_PER_SECOND: u32 = 700;
/// Maximum burst of clients with a cookie.
pub const PROVEN_BURST: u32 = 700;
/// Maximum half-open handshakes of one host: enough for an office behind one address whose clients all return at once.
const HALF_OPEN_PER_HOST: usize = 64;

const _: () = {
    let proven = PROVEN_BURST as u64 + PROVEN_PER_SECOND as u64 * HALF_OPEN_LIFETIME.as_secs();
    assert!(COOKIE_THRESHOLD as u64 + proven <= HALF_OPEN_MAX as u64, "the rates must not fill all places");
};

/// What to do with the INITIATE of a new client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Open its message.
    Proceed,
    /// Answer with COOKIE; store and compute nothing.
    DemandCookie,
    /// Answer with REJECT (busy), or not at all.
    Busy,
}

/// The half-open handshakes of an endpoint, identified by the endpoint's key `K`.
#[derive(Debug)]
pub struct HalfOpen<K> {
    deadlines: BTreeMap<K, Instant>,
    by_deadline: BTreeSet<(Instant, K)>,
    unproven_rate: TokenBucket,
    gate: Gate,
    /// Hosts of handshakes with a cookie.
    hosts: Census<K, Network>,
}

impl<K: Ord + Clone> HalfOpen<K> {
    /// Creates an empty set. Unpredictable choices are derived from `secret`.
    #[must_use]
    pub fn new(secret: [u8; 32]) -> Self {
        Self {
            deadlines: BTreeMap::new(),
            by_deadline: BTreeSet::new(),
            unproven_rate: TokenBucket::new(UNPROVEN_PER_SECOND, UNPROVEN_BURST),
            gate: Gate::new(PROVEN_PER_SECOND, PROVEN_BURST, SecretRng::new(secret)),
            hosts: Census::default(),
        }
    }

    /// Decides on an INITIATE that belongs to no handshake yet. `proven` is the address, if the client showed a valid cookie for it.
    /// Proceeding is charged to the limits, so call this once per INITIATE.
    pub fn admit(&mut self, now: Instant, proven: Option<IpAddr>) -> Admission {
        if self.len() >= HALF_OPEN_MAX {
            return Admission::Busy;
        }
        match proven {
            Some(address) if self.hosts.count(Network::host_of(address)) >= HALF_OPEN_PER_HOST => {
                Admission::Busy
            }
            Some(address) if self.gate.take(now, address) => Admission::Proceed,
            Some(_) => Admission::Busy,
            None if self.unproven() < COOKIE_THRESHOLD && self.unproven_rate.take(now) => Admission::Proceed,
            None => Admission::DemandCookie,
        }
    }

    /// Adds a handshake that was admitted. Returns false and changes nothing if there is no room or the key is already present.
    /// `proven` as for [`Self::admit`].
    pub fn insert(&mut self, now: Instant, key: K, proven: Option<IpAddr>) -> bool {
        if self.len() >= HALF_OPEN_MAX || self.contains(&key) {
            return false;
        }
        if let Some(address) = proven {
            self.hosts.insert(key.clone(), Network::host_of(address));
        }
        let deadline = now + HALF_OPEN_LIFETIME;
        self.by_deadline.insert((deadline, key.clone()));
        self.deadlines.insert(key, deadline);
        true
    }

    /// Removes a handshake whose client is confirmed or whose connection is gone. Returns false if it was not half-open.
    pub fn remove(&mut self, key: &K) -> bool {
        let Some((key, deadline)) = self.deadlines.remove_entry(key) else { return false };
        self.hosts.remove(&key);
        self.by_deadline.remove(&(deadline, key))
    }

    /// Whether this handshake is half-open.
    #[must_use]
    pub fn contains(&self, key: &K) -> bool {
        self.deadlines.contains_key(key)
    }

    /// When this handshake expires, if it is half-open.
    #[must_use]
    pub fn deadline(&self, key: &K) -> Option<Instant> {
        self.deadlines.get(key).copied()
    }

    /// The number of handshakes without a cookie.
    fn unproven(&self) -> usize {
        self.len() - self.hosts.len()
    }

    /// The number of half-open handshakes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.deadlines.len()
    }

    /// Whether there are no half-open handshakes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.deadlines.is_empty()
    }

    /// When the oldest handshake expires.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        self.by_deadline.first().map(|(deadline, _)| *deadline)
    }

    /// Removes and returns an expired handshake; call until `None`.
    pub fn poll_expired(&mut self, now: Instant) -> Option<K> {
        let (deadline, _) = self.by_deadline.first()?;
        if *deadline > now {
            return None;
        }
        let (_, key) = self.by_deadline.pop_first()?;
        self.deadlines.remove(&key);
        self.hosts.remove(&key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_secs(100);
    const COOKIE: Option<IpAddr> = Some(IpAddr::V4(core::net::Ipv4Addr::LOCALHOST));

    fn filled(count: usize) -> HalfOpen<usize> {
        let mut half_open = HalfOpen::new([1; 32]);
        assert!((0..count).all(|key| half_open.insert(NOW, key, None)));
        half_open
    }

    #[test]
    fn a_server_below_the_threshold_demands_no_cookie() {
        let mut half_open = filled(COOKIE_THRESHOLD - 1);
        assert_eq!(half_open.admit(NOW, None), Admission::Proceed);
    }

    #[test]
    fn above_the_threshold_only_clients_with_a_cookie_proceed() {
        let mut half_open = filled(COOKIE_THRESHOLD);
        assert_eq!(half_open.admit(NOW, None), Admission::DemandCookie);
        assert_eq!(half_open.admit(NOW, COOKIE), Admission::Proceed);
        assert!(half_open.remove(&0));
        assert_eq!(half_open.admit(NOW, None), Admission::Proceed);
    }

    #[test]
    fn handshakes_of_proven_clients_do_not_make_others_show_a_cookie() {
        let mut half_open = HalfOpen::new([1; 32]);
        let host = |index: u32| Some(IpAddr::from(index.to_be_bytes()));
        assert!((0..COOKIE_THRESHOLD).all(|key| half_open.insert(NOW, key, host(key as u32))));
        assert_eq!(half_open.admit(NOW, None), Admission::Proceed);
    }

    #[test]
    fn work_for_cookies_is_bounded_over_all_hosts() {
        let mut half_open = HalfOpen::<u32>::new([1; 32]);
        let admitted = (0..5_000_u32)
            .filter(|index| {
                half_open.admit(NOW, Some(IpAddr::from((index << 16).to_be_bytes()))) == Admission::Proceed
            })
            .count();
        assert!((PROVEN_BURST as usize / 2..=PROVEN_BURST as usize).contains(&admitted), "{admitted}");
        assert_eq!(half_open.admit(NOW, None), Admission::Proceed, "the others have a rate of their own");
    }

    #[test]
    fn half_open_handshakes_of_a_host_are_limited() {
        let mut half_open = HalfOpen::new([1; 32]);
        assert!((0..HALF_OPEN_PER_HOST).all(|key| half_open.insert(NOW, key, COOKIE)));
        assert_eq!(half_open.admit(NOW, COOKIE), Admission::Busy);
        assert_eq!(half_open.admit(NOW, Some(IpAddr::from([192, 0, 2, 1]))), Admission::Proceed);
        assert!(half_open.remove(&3) && !half_open.remove(&3));
        assert_eq!(half_open.admit(NOW, COOKIE), Admission::Proceed);
    }

    #[test]
    fn a_full_server_is_busy_even_for_a_cookie() {
        let mut half_open = filled(HALF_OPEN_MAX);
        assert_eq!(half_open.admit(NOW, COOKIE), Admission::Busy);
        assert_eq!(half_open.admit(NOW, None), Admission::Busy);
        assert!(!half_open.insert(NOW, HALF_OPEN_MAX, None));
        assert_eq!(half_open.len(), HALF_OPEN_MAX);
    }

    #[test]
    fn handshakes_expire_in_order_and_not_before_their_time() {
        let mut half_open = HalfOpen::new([1; 32]);
        let second = Duration::from_secs(1);
        assert!(half_open.insert(NOW, 'b', None) && half_open.insert(NOW + second, 'a', COOKIE));
        assert!(!half_open.insert(NOW + second, 'b', None), "repeating does not prolong it");
        assert_eq!(half_open.next_timeout(), Some(NOW + HALF_OPEN_LIFETIME));
        assert_eq!(half_open.poll_expired(NOW + HALF_OPEN_LIFETIME.saturating_sub(second)), None);
        assert_eq!(half_open.poll_expired(NOW + HALF_OPEN_LIFETIME), Some('b'));
        assert_eq!(half_open.poll_expired(NOW + HALF_OPEN_LIFETIME), None);
        assert!(half_open.remove(&'a') && !half_open.remove(&'a'));
        assert!(half_open.is_empty());
        assert_eq!(half_open.next_timeout(), None);
    }

    #[test]
    fn work_without_cookies_is_bounded_by_a_burst_and_a_rate() {
        let mut half_open = HalfOpen::<u32>::new([1; 32]);
        let mut admitted_within = |from_milliseconds: u64, milliseconds: u64| {
            (0..milliseconds * 10)
                .filter(|step| {
                    let now = NOW + Duration::from_micros(from_milliseconds * 1000 + step * 100);
                    half_open.admit(now, None) == Admission::Proceed
                })
                .count() as u32
        };
        assert_eq!(admitted_within(0, 2000), UNPROVEN_BURST + 2 * UNPROVEN_PER_SECOND - 1);
        // A long pause fills the bucket to one burst and no further.
        assert_eq!(admitted_within(60_000, 1000), UNPROVEN_BURST + UNPROVEN_PER_SECOND - 1);
        assert_eq!(half_open.admit(NOW + Duration::from_secs(61), COOKIE), Admission::Proceed);
    }

    #[test]
    fn a_server_that_starts_at_time_zero_has_a_full_burst() {
        let mut half_open = HalfOpen::<u32>::new([1; 32]);
        let admitted =
            (0..1000).filter(|_| half_open.admit(Instant::ZERO, None) == Admission::Proceed).count();
        assert_eq!(admitted, UNPROVEN_BURST as usize);
    }
}
