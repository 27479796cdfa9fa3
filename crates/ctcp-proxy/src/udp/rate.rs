//! The rate of each client: how many datagrams and bytes per second it may send and receive.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use super::UdpLimits;

/// How much of the rate may be used at once, in time: a program's burst passes, and a client that was idle cannot flood.
const BURST: Duration = Duration::from_millis(250);

/// A token bucket, stored as the time at which it is full again.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket(Option<Instant>);

impl Bucket {
    /// The state after taking what takes `cost` to refill; `None` if there is too little.
    fn after(self, cost: Duration, now: Instant) -> Option<Self> {
        let full = self.0.map_or(now, |full| full.max(now));
        (full - now <= BURST).then_some(Self(Some(full + cost)))
    }

    fn is_full(self, now: Instant) -> bool {
        self.0.is_none_or(|full| full <= now)
    }
}

/// One direction of a client.
#[derive(Debug)]
pub(super) struct Rate {
    datagrams_per_second: u32,
    bytes_per_second: u32,
    buckets: Mutex<(Bucket, Bucket)>,
}

impl Rate {
    fn new(limits: &UdpLimits) -> Self {
        let UdpLimits { datagrams_per_second, bytes_per_second, .. } = *limits;
        Self { datagrams_per_second, bytes_per_second, buckets: Mutex::default() }
    }

    /// Takes a datagram from the rate. Returns false if it exceeds the rate.
    pub(super) fn take(&self, bytes: usize) -> bool {
        let now = Instant::now();
        let cost = |count: u64, per_second: u32| {
            Duration::from_nanos(count.saturating_mul(1_000_000_000) / u64::from(per_second.max(1)))
        };
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let datagrams = buckets.0.after(cost(1, self.datagrams_per_second), now);
        let bytes = buckets.1.after(cost(bytes as u64, self.bytes_per_second), now);
        let Some(taken) = datagrams.zip(bytes) else { return false };
        *buckets = taken;
        true
    }

    fn is_unused(&self) -> bool {
        let now = Instant::now();
        let (datagrams, bytes) = *self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        datagrams.is_full(now) && bytes.is_full(now)
    }
}

/// Both directions of a client.
#[derive(Debug)]
pub(super) struct ClientRate {
    pub(super) upstream: Rate,
    pub(super) downstream: Rate,
}

/// The rates of all clients.
#[derive(Debug)]
pub(super) struct Rates {
    limits: UdpLimits,
    clients: Mutex<BTreeMap<String, Arc<ClientRate>>>,
}

impl Rates {
    pub(super) fn new(limits: UdpLimits) -> Self {
        Self { limits, clients: Mutex::default() }
    }

    /// The rate of a client, the same for all its associations. A client without associations keeps it until its buckets
    /// are full, so a new association does not fill them.
    pub(super) fn of(&self, client: &str) -> Arc<ClientRate> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rate) = clients.get(client) {
            return rate.clone();
        }
        clients.retain(|_, rate| {
            Arc::strong_count(rate) > 1 || !(rate.upstream.is_unused() && rate.downstream.is_unused())
        });
        let rate = ClientRate { upstream: Rate::new(&self.limits), downstream: Rate::new(&self.limits) };
        clients.entry(client.to_owned()).or_insert(Arc::new(rate)).clone()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn limits() -> UdpLimits {
        UdpLimits { datagrams_per_second: 100, bytes_per_second: 1_000_000, ..UdpLimits::default() }
    }

    fn taken(rate: &Rate, bytes: usize) -> usize {
        (0..1000).take_while(|_| rate.take(bytes)).count()
    }

    #[tokio::test(start_paused = true)]
    async fn datagrams_and_bytes_are_limited_and_return_with_time() {
        let rates = Rates::new(limits());
        let rate = &rates.of("a").upstream;
        assert_eq!(taken(rate, 100), 26, "a quarter of a second of datagrams, and the one that exceeds it");
        advance(Duration::from_secs(1)).await;
        assert_eq!(taken(rate, 50_000), 6, "a quarter of a second of bytes");
        advance(Duration::from_millis(100)).await;
        assert_eq!(taken(rate, 50_000), 2);
        assert!(rates.of("b").upstream.take(1), "another client has its own rate");
        assert!(rates.of("a").downstream.take(1), "and so has the other direction");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_returns_at_once_has_no_new_rate_and_idle_clients_are_forgotten() {
        let rates = Rates::new(limits());
        assert_eq!(taken(&rates.of("a").upstream, 1), 26);
        for number in 0..100 {
            rates.of(&number.to_string());
        }
        assert!(!rates.of("a").upstream.take(1));
        assert!(rates.clients.lock().unwrap().len() <= 3);
        advance(Duration::from_secs(1)).await;
        rates.of("b");
        assert!(!rates.clients.lock().unwrap().contains_key("a"));
    }
}
