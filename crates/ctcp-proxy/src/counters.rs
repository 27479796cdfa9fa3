//! What the proxies count, for `/metrics`, the live page and tests.
//!
//! Every number is kept twice: as a plain atomic that this crate reads back, and through the `metrics` facade under a
//! name that begins with `ctcp_`. The facade's recorder must be installed before a proxy is made; without one its half
//! costs nothing.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use metrics::{Counter, Gauge, counter, gauge};

/// A number that only grows.
#[derive(Debug)]
pub struct Count {
    value: AtomicU64,
    metric: Counter,
}

impl Count {
    fn new(metric: Counter) -> Self {
        Self { value: AtomicU64::new(0), metric }
    }

    /// Adds.
    pub fn add(&self, amount: u64) {
        self.value.fetch_add(amount, Relaxed);
        self.metric.increment(amount);
    }

    /// The number now.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.value.load(Relaxed)
    }
}

/// How many there are now.
#[derive(Debug)]
pub struct Level {
    value: AtomicU64,
    metric: Gauge,
}

impl Level {
    fn new(metric: Gauge) -> Self {
        Self { value: AtomicU64::new(0), metric }
    }

    /// One more, until the guard is dropped.
    #[must_use]
    pub fn enter(&self) -> Present<'_> {
        self.value.fetch_add(1, Relaxed);
        self.metric.increment(1.0);
        Present(self)
    }

    /// How many now.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.value.load(Relaxed)
    }
}

/// One of those a [`Level`] counts.
#[derive(Debug)]
pub struct Present<'a>(&'a Level);

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.0.value.fetch_sub(1, Relaxed);
        self.0.metric.decrement(1.0);
    }
}

/// The numbers of one proxy.
#[derive(Debug)]
pub struct Counters {
    /// `ctcp_proxy_connections`: coded connections that are up.
    pub connections: Level,
    /// `ctcp_proxy_connections_total`: coded connections so far; at a client, all but the first are reconnects.
    pub connections_total: Count,
    /// `ctcp_proxy_streams_open`: requests being served.
    pub streams_open: Level,
    /// `ctcp_proxy_streams_total`: requests so far.
    pub streams_total: Count,
    /// `ctcp_proxy_streams_failed_total`: requests that were refused or cut.
    pub streams_failed: Count,
    /// `ctcp_proxy_targets_refused_total`: targets the policy refused.
    pub targets_refused: Count,
    /// `ctcp_proxy_bytes_total{direction="upstream"}`: bytes towards targets.
    pub upstream: Count,
    /// `ctcp_proxy_bytes_total{direction="downstream"}`: bytes from targets.
    pub downstream: Count,
    /// `ctcp_files_bytes_total{direction="sent"}`.
    pub files_sent: Count,
    /// `ctcp_files_bytes_total{direction="received"}`.
    pub files_received: Count,
}

impl Counters {
    /// All at zero; `side` (`client` or `server`) is a label of each.
    #[must_use]
    pub fn new(side: &'static str) -> Self {
        let count = |name: &'static str| Count::new(counter!(name, "side" => side));
        let level = |name: &'static str| Level::new(gauge!(name, "side" => side));
        let bytes = |name: &'static str, direction: &'static str| {
            Count::new(counter!(name, "side" => side, "direction" => direction))
        };
        Self {
            connections: level("ctcp_proxy_connections"),
            connections_total: count("ctcp_proxy_connections_total"),
            streams_open: level("ctcp_proxy_streams_open"),
            streams_total: count("ctcp_proxy_streams_total"),
            streams_failed: count("ctcp_proxy_streams_failed_total"),
            targets_refused: count("ctcp_proxy_targets_refused_total"),
            upstream: bytes("ctcp_proxy_bytes_total", "upstream"),
            downstream: bytes("ctcp_proxy_bytes_total", "downstream"),
            files_sent: bytes("ctcp_files_bytes_total", "sent"),
            files_received: bytes("ctcp_files_bytes_total", "received"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_falls_when_the_guard_is_dropped_and_a_count_stays() {
        let counters = Counters::new("client");
        let present = counters.streams_open.enter();
        counters.upstream.add(3);
        assert_eq!(counters.streams_open.value(), 1);
        drop(present);
        assert_eq!(counters.streams_open.value(), 0);
        assert_eq!(counters.upstream.value(), 3);
    }
}
