//! One memory budget for all connections of an endpoint, with a limit for each client.
//!
//! ```text
//!   budget  |##### client a #####|## b ##|# c #|. . . . . . . . free . . . . . . . .|
//!                                                <- a client grows to what is free ->
//! ```
//!
//! A client may grow while it uses at most an eighth of what is free: the dynamic threshold of shared switch buffers (Choudhury and Hahne,
//! IEEE/ACM ToN 1998). The first client that takes all it can gets a ninth of the budget. The twentieth gets a ninth of what the others
//! left, and a tenth of the budget is still free then. Memory is never taken back: a client that exceeds its limit keeps what it has until
//! it is used up. Servers that this endpoint connects to may take everything that is free.
//!
//! A connection accounts for memory that it uses and that it has promised to its peer, with counters rather than through the allocator.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// The cost of an idle connection: its state, keys and tables, and the tasks of the program that drives it.
pub(crate) const CONNECTION_COST: u64 = 48 * 1024;

/// The cost of an open stream in addition to its bytes: its state, and the buffers of the program that uses it.
pub(crate) const STREAM_COST: u64 = 24 * 1024;

/// Minimum of free memory for a new connection, which promises its client something.
pub(crate) const CONNECTION_MIN: u64 = 384 << 10;

/// Symbols that may be in flight in each direction even without free memory, so that a connection makes slow progress.
pub(crate) const SYMBOLS_MIN: u64 = 64;

/// A client may use one part in this many of the free memory.
const PARTS: u64 = 8;

/// A new connection promises one part in this many of what its client may still use.
const FIRST_PARTS: u64 = 64;

/// The same for a connection to a server, if this endpoint accepts no clients: it then has few connections, whose servers it has chosen.
const FIRST_PARTS_OF_SERVER: u64 = 8;

/// Smaller changes are not recorded, so that not every packet writes to the shared counters.
const STEP: u64 = 16 * 1024;

#[derive(Debug)]
struct Budget {
    total: u64,
    used: AtomicU64,
}

/// The memory account of one client.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    budget: Arc<Budget>,
    used: Arc<AtomicU64>,
    /// The number of connections with a lease of this account.
    leases: Arc<AtomicU64>,
    /// The client may use one part in this many of the free memory; zero for all of it.
    parts: u64,
}

/// The memory of an endpoint.
#[derive(Debug)]
pub(crate) struct Memory(Arc<Budget>);

impl Memory {
    /// Creates a budget of `total` bytes.
    pub(crate) fn new(total: u64) -> Self {
        Self(Arc::new(Budget { total, used: AtomicU64::new(0) }))
    }

    /// Opens an account for a client.
    pub(crate) fn for_client(&self) -> Account {
        Account { budget: self.0.clone(), used: Arc::default(), leases: Arc::default(), parts: PARTS }
    }

    /// Opens an account for a relay, which stands for many clients: it may use half of what is free.
    pub(crate) fn for_relay(&self) -> Account {
        Account { parts: 1, ..self.for_client() }
    }

    /// Opens an account for a server that this endpoint connects to.
    pub(crate) fn for_server(&self) -> Account {
        Account { parts: 0, ..self.for_client() }
    }

    /// The number of bytes in use.
    pub(crate) fn used(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed)
    }
}

impl Account {
    /// How many more bytes the client may use now.
    pub(crate) fn room(&self) -> u64 {
        let free = self.budget.total.saturating_sub(self.budget.used.load(Ordering::Relaxed));
        // Memory that the client takes is no longer free.
        free.saturating_sub(self.used.load(Ordering::Relaxed).saturating_mul(self.parts)) / (self.parts + 1)
    }

    /// How many bytes another connection may promise its peer initially, for credit and for streams each. It is a small part, which grows
    /// with use. It is smaller if the client has more connections, so that thousands of idle ones leave room.
    pub(crate) fn first_promise(&self) -> u64 {
        self.part_of_room(FIRST_PARTS)
    }

    /// The same for a connection to a server of an endpoint that accepts no clients.
    pub(crate) fn first_promise_to_server(&self) -> u64 {
        self.part_of_room(FIRST_PARTS_OF_SERVER)
    }

    fn part_of_room(&self, parts: u64) -> u64 {
        self.room() / parts / (1 + self.leases.load(Ordering::Relaxed))
    }

    /// Whether no connection has a lease of this account.
    pub(crate) fn is_unused(&self) -> bool {
        self.leases.load(Ordering::Relaxed) == 0
    }

    /// Leases `bytes` to a connection.
    pub(crate) fn lease(&self, bytes: u64) -> Lease {
        self.leases.fetch_add(1, Ordering::Relaxed);
        let mut lease = Lease { account: self.clone(), bytes: 0 };
        lease.set(bytes);
        lease
    }
}

/// The memory of one connection, returned when it is dropped.
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
    /// Sets the memory of the connection to `bytes`. This never fails, since the memory was promised before; only [`Self::room`] limits it.
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

    /// How many more bytes the connection may use now.
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
    fn a_mere_client_promises_its_servers_more_and_each_further_connection_less() {
        let account = Memory::new(64 * MIB).for_server();
        assert_eq!((account.first_promise(), account.first_promise_to_server()), (MIB, 8 * MIB));
        let _lease = account.lease(0);
        assert_eq!((account.first_promise(), account.first_promise_to_server()), (MIB / 2, 4 * MIB));
    }

    #[test]
    fn one_client_gets_a_ninth_and_returned_memory_is_free() {
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
    fn twenty_greedy_clients_leave_a_tenth_of_the_budget() {
        let memory = Memory::new(1_000 * MIB);
        let accounts: Vec<Account> = (0..20).map(|_| memory.for_client()).collect();
        let leases: Vec<Lease> = accounts.iter().map(|account| account.lease(account.room())).collect();
        let free = 1_000 * MIB - memory.used();
        assert!(free > 90 * MIB && leases[19].bytes > 10 * MIB, "{free} free, {leases:?}");
    }

    #[test]
    fn small_changes_are_not_recorded_at_once() {
        let memory = Memory::new(MIB);
        let mut lease = memory.for_client().lease(1_000);
        lease.update(1_000 + STEP - 1);
        assert_eq!(memory.used(), 1_000);
        lease.update(1_000 + STEP);
        assert_eq!(memory.used(), 1_000 + STEP);
    }
}
