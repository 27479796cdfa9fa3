//! One budget of memory for all connections of an endpoint, of which no client may take more than its share.
//!
//! ```text
//!   budget  |##### client a #####|## b ##|# c #|. . . . . . . . free . . . . . . . .|
//!                                                <- a client grows to what is free ->
//! ```
//!
//! A client may grow while what it has is at most an eighth of what is free: the dynamic threshold of shared switch buffers (Choudhury and
//! Hahne, IEEE/ACM ToN 1998). The first client that wants everything gets a ninth of the budget, the twentieth a ninth of what the others left,
//! which is a tenth of the budget still. Nothing is ever taken back: what a client may not have any more it keeps until it is used up.
//! Servers that we chose to connect to may take all that is free.
//!
//! A connection accounts for what it holds and for what it has promised its peer to hold ([`Usage`]), by counters and not by asking the allocator.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// What a connection costs that does nothing: its state, keys and tables, and the tasks of the program that drives it.
pub(crate) const CONNECTION_COST: u64 = 48 * 1024;

/// What an open stream costs beside its bytes: its state, and the buffers of the program that carries it on.
pub(crate) const STREAM_COST: u64 = 24 * 1024;

/// The least that must be free for a new one: it promises its client something.
pub(crate) const CONNECTION_MIN: u64 = 384 << 10;

/// Symbols that may be in flight in each direction even without memory: a connection goes on, slowly.
pub(crate) const SYMBOLS_MIN: u64 = 64;

/// A client may have one part in so many of what is free.
const PARTS: u64 = 8;

/// A connection promises one part in so many of what its client may still have, from the beginning.
const FIRST_PARTS: u64 = 64;

/// The books are put right when they are off by this, so that not every packet writes to what all share.
const STEP: u64 = 16 * 1024;

#[derive(Debug)]
struct Budget {
    total: u64,
    used: AtomicU64,
}

/// What one client has of an endpoint's memory.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    budget: Arc<Budget>,
    used: Arc<AtomicU64>,
    /// Connections that have a lease of it.
    leases: Arc<AtomicU64>,
    /// It may have one part in so many of what is free; zero: all.
    parts: u64,
}

/// The memory of an endpoint.
#[derive(Debug)]
pub(crate) struct Memory(Arc<Budget>);

impl Memory {
    /// A budget of `total` bytes.
    pub(crate) fn new(total: u64) -> Self {
        Self(Arc::new(Budget { total, used: AtomicU64::new(0) }))
    }

    /// An account for another client.
    pub(crate) fn for_client(&self) -> Account {
        Account { budget: self.0.clone(), used: Arc::default(), leases: Arc::default(), parts: PARTS }
    }

    /// An account for a server that we connect to.
    pub(crate) fn for_server(&self) -> Account {
        Account { parts: 0, ..self.for_client() }
    }

    /// Bytes in use.
    pub(crate) fn used(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed)
    }
}

impl Account {
    /// How much more its client may have now, in bytes.
    pub(crate) fn room(&self) -> u64 {
        let free = self.budget.total.saturating_sub(self.budget.used.load(Ordering::Relaxed));
        // What it takes is free no longer.
        free.saturating_sub(self.used.load(Ordering::Relaxed).saturating_mul(self.parts)) / (self.parts + 1)
    }

    /// What another connection may promise its peer from the beginning, of credit and of streams each: a small part, which grows with use, and
    /// less for each connection that its client has, so that thousands of idle ones leave room.
    pub(crate) fn first_promise(&self) -> u64 {
        self.room() / FIRST_PARTS / (1 + self.leases.load(Ordering::Relaxed))
    }

    /// No connection has a lease of it.
    pub(crate) fn is_unused(&self) -> bool {
        self.leases.load(Ordering::Relaxed) == 0
    }

    /// A lease of `bytes` for a connection.
    pub(crate) fn lease(&self, bytes: u64) -> Lease {
        self.leases.fetch_add(1, Ordering::Relaxed);
        let mut lease = Lease { account: self.clone(), bytes: 0 };
        lease.set(bytes);
        lease
    }
}

/// What one connection has, given back when it is dropped.
pub(crate) struct Lease {
    account: Account,
    bytes: u64,
}

impl fmt::Debug for Lease {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Lease").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Lease {
    /// The connection has `bytes` now. What it has was promised before: only [`Self::room`] says no.
    pub(crate) fn update(&mut self, bytes: u64) {
        if bytes.abs_diff(self.bytes) >= STEP {
            self.set(bytes);
        }
    }

    fn set(&mut self, bytes: u64) {
        for used in [&self.account.budget.used, &*self.account.used] {
            if bytes >= self.bytes {
                used.fetch_add(bytes - self.bytes, Ordering::Relaxed);
            } else {
                used.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
            }
        }
        self.bytes = bytes;
    }

    /// How much more the connection may have now, in bytes.
    pub(crate) fn room(&self) -> u64 {
        self.account.room()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.set(0);
        self.account.leases.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn one_client_gets_a_ninth_and_what_it_gives_back_is_free() {
        let memory = Memory::new(90 * MIB);
        let account = memory.for_client();
        let lease = account.lease(account.room());
        assert_eq!(memory.used(), 10 * MIB);
        assert_eq!(lease.room(), 0);
        assert_eq!(memory.for_server().room(), 80 * MIB);
        drop(lease);
        assert_eq!((memory.used(), account.room()), (0, 10 * MIB));
    }

    #[test]
    fn twenty_that_want_everything_one_after_the_other_leave_a_tenth() {
        let memory = Memory::new(1_000 * MIB);
        let accounts: Vec<Account> = (0..20).map(|_| memory.for_client()).collect();
        let leases: Vec<Lease> = accounts.iter().map(|account| account.lease(account.room())).collect();
        let free = 1_000 * MIB - memory.used();
        assert!(free > 90 * MIB && leases[19].bytes > 10 * MIB, "{free} free, {leases:?}");
    }

    #[test]
    fn small_changes_are_not_written_down_at_once() {
        let memory = Memory::new(MIB);
        let mut lease = memory.for_client().lease(1_000);
        lease.update(1_000 + STEP - 1);
        assert_eq!(memory.used(), 1_000);
        lease.update(1_000 + STEP);
        assert_eq!(memory.used(), 1_000 + STEP);
    }
}
