//! A rate limit: a number of events per second, and a burst after a quiet time.

use core::time::Duration;

use ctcp_base::Instant;

/// Credit is stored as time: each event costs a fixed fraction of a second, and elapsed time adds up to a full burst.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenBucket {
    saved: Duration,
    last: Instant,
    cost: Duration,
    full: Duration,
}

impl TokenBucket {
    /// Creates a full bucket, so that a server that has just started is not limited.
    pub(super) const fn new(per_second: u32, burst: u32) -> Self {
        let cost = 1_000_000_000 / per_second as u64;
        let full = Duration::from_nanos(cost * burst as u64);
        Self { saved: full, last: Instant::ZERO, cost: Duration::from_nanos(cost), full }
    }

    /// Takes a token, if there is one.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        self.refill(now);
        let rest = self.saved.checked_sub(self.cost);
        self.saved = rest.unwrap_or(self.saved);
        rest.is_some()
    }

    /// How full the bucket is, from 0 to 1.
    pub(super) fn fill(&mut self, now: Instant) -> f64 {
        self.refill(now);
        self.saved.as_nanos() as f64 / self.full.as_nanos() as f64
    }

    fn refill(&mut self, now: Instant) {
        self.saved = self.full.min(self.saved + (now - self.last));
        self.last = self.last.max(now);
    }
}
