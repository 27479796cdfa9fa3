//! The counters of the proxies, for `/metrics`, the live page and tests.

mod udp;

pub use udp::{DropReason, UdpCounters};

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A counter that only grows.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds an amount.
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Relaxed);
    }

    /// The current value.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A gauge of things that exist now.
#[derive(Debug, Default)]
pub struct Level(AtomicU64);

impl Level {
    /// Counts one more until the guard is dropped.
    #[must_use]
    pub fn enter(&self) -> Present<'_> {
        self.0.fetch_add(1, Relaxed);
        Present(self)
    }

    /// The current value.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Counts as one in a [`Level`] until it is dropped.
#[derive(Debug)]
pub struct Present<'a>(&'a Level);

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Relaxed);
    }
}

/// The counters of one proxy.
#[derive(Debug)]
pub struct Counters {
    /// `client` or `server`: a label of each metric.
    pub side: &'static str,
    /// `ctcp_proxy_connections`: coded connections that are open.
    pub connections: Level,
    /// `ctcp_proxy_connections_opened_total`: coded connections so far. At a client all but the first are reconnects.
    pub connections_total: Count,
    /// `ctcp_proxy_streams_open`: requests being served.
    pub streams_open: Level,
    /// `ctcp_proxy_streams_total`: requests so far.
    pub streams_total: Count,
    /// `ctcp_proxy_streams_failed_total`: requests that were refused or cut.
    pub streams_failed: Count,
    /// `ctcp_proxy_targets_refused_total`: targets that the server's policy refused.
    pub targets_refused: Count,
    /// `ctcp_proxy_bytes_total{direction="upstream"}`: bytes towards targets.
    pub upstream: Count,
    /// `ctcp_proxy_bytes_total{direction="downstream"}`: bytes from targets.
    pub downstream: Count,
    /// UDP datagrams.
    pub udp: UdpCounters,
    /// `ctcp_files_bytes_total{direction="sent"}`.
    pub files_sent: Count,
    /// `ctcp_files_bytes_total{direction="received"}`.
    pub files_received: Count,
}

impl Counters {
    /// Creates counters at zero. `side` (`client` or `server`) is a label of each.
    #[must_use]
    pub fn new(side: &'static str) -> Self {
        Self {
            side,
            connections: Level::default(),
            connections_total: Count::default(),
            streams_open: Level::default(),
            streams_total: Count::default(),
            streams_failed: Count::default(),
            targets_refused: Count::default(),
            upstream: Count::default(),
            downstream: Count::default(),
            udp: UdpCounters::default(),
            files_sent: Count::default(),
            files_received: Count::default(),
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
