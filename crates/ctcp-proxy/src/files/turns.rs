//! Turns of transfers: how many run at once, and which one gives way.
//!
//! ```text
//!  request --> share of the client --> slots of all --> Turn
//!                 |                       |
//!                 +--- a rival without progress for `silence` gives way
//!                 +--- `wait` is over: busy
//! ```
//!
//! A client that stops reading, or never writes, would keep its slot until the long time-out of a stall. While a
//! request waits for a slot, the transfer that has stalled the longest gives way once its stall exceeds
//! [`TransferLimits::silence`]; its client may resume later. A request that gets no slot in time gets a busy reply and
//! can be retried.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::FileError;
use crate::shares::{Place, Shares};

/// Simultaneous transfers. Each uses a thread of the blocking pool and a megabyte of queue.
pub const TRANSFERS_MAX: usize = 64;

/// Simultaneous transfers of one client (one public key), over all its connections: enough to fetch a folder in
/// parallel, and a quarter of the total, so that one stalling client leaves most slots to others.
pub const TRANSFERS_PER_CLIENT_MAX: usize = 16;

/// How many transfers run at once, and how long they wait for each other.
#[derive(Clone, Copy, Debug)]
pub struct TransferLimits {
    /// Transfers of all clients together.
    pub total: usize,
    /// Transfers of one client.
    pub per_client: usize,
    /// How long a request waits for a slot before the server replies that it is busy.
    pub wait: Duration,
    /// A transfer without progress for this long gives way to a waiting one.
    pub silence: Duration,
}

impl Default for TransferLimits {
    /// The wait is short compared to the time a client waits for a reply. The silence is longer than a short outage of
    /// a path.
    fn default() -> Self {
        Self {
            total: TRANSFERS_MAX,
            per_client: TRANSFERS_PER_CLIENT_MAX,
            wait: Duration::from_secs(2),
            silence: Duration::from_secs(5),
        }
    }
}

/// The turns of one service.
#[derive(Debug)]
pub(super) struct Turns {
    limits: TransferLimits,
    shares: Shares,
    running: Mutex<Running>,
}

/// Running transfers, by number.
#[derive(Debug, Default)]
struct Running {
    next: u64,
    transfers: BTreeMap<u64, Transfer>,
}

/// What waiting requests know about a running transfer.
#[derive(Debug)]
struct Transfer {
    client: String,
    /// When the last byte of the file was transferred.
    moved: Instant,
    give_way: Arc<Notify>,
    is_asked: bool,
}

/// The right to transfer, released on drop.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    number: u64,
    give_way: Arc<Notify>,
    _place: Place,
}

impl Turns {
    pub(super) fn new(limits: TransferLimits) -> Self {
        let shares = Shares::new(limits.total, limits.per_client);
        Self { limits, shares, running: Mutex::default() }
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a client's turn; [`FileError::TooManyTransfers`] if there is none in time.
    pub(super) async fn take(&self, client: &str) -> Result<Turn<'_>, FileError> {
        let end = Instant::now() + self.limits.wait;
        let own = self.shares.own(client);
        let own = self.wait_for(own, end, |transfer| transfer.client == client).await?;
        let place = self.wait_for(self.shares.among_all(own), end, |_| true).await?;
        let give_way = Arc::new(Notify::new());
        let mut running = self.running();
        let number = running.next;
        running.next += 1;
        let transfer = Transfer {
            client: client.to_owned(),
            moved: Instant::now(),
            give_way: give_way.clone(),
            is_asked: false,
        };
        running.transfers.insert(number, transfer);
        drop(running);
        Ok(Turn { turns: self, number, give_way, _place: place })
    }

    /// Waits for a slot until `end`; meanwhile one stalled rival is stopped.
    async fn wait_for<T>(
        &self,
        place: impl Future<Output = T>,
        end: Instant,
        is_rival: impl Fn(&Transfer) -> bool,
    ) -> Result<T, FileError> {
        let mut place = core::pin::pin!(place);
        // If a slot is free, no rival is stopped.
        if let Ok(place) = timeout_at(Instant::now(), place.as_mut()).await {
            return Ok(place);
        }
        let mut has_asked = false;
        loop {
            let again = if has_asked { None } else { self.ask_for_room(&is_rival, &mut has_asked) };
            let until = again.map_or(end, |again| again.min(end));
            match timeout_at(until, place.as_mut()).await {
                Ok(place) => return Ok(place),
                Err(_) if Instant::now() >= end => return Err(FileError::TooManyTransfers),
                Err(_) => {}
            }
        }
    }

    /// Stops the rival that has stalled the longest, or returns when the next one will have stalled long enough.
    fn ask_for_room(&self, is_rival: impl Fn(&Transfer) -> bool, has_asked: &mut bool) -> Option<Instant> {
        let mut running = self.running();
        let rivals =
            running.transfers.values_mut().filter(|transfer| !transfer.is_asked && is_rival(transfer));
        let longest = rivals.min_by_key(|transfer| transfer.moved)?;
        let due = longest.moved + self.limits.silence;
        if due > Instant::now() {
            return Some(due);
        }
        longest.is_asked = true;
        longest.give_way.notify_one();
        *has_asked = true;
        None
    }
}

impl Turn<'_> {
    /// Records that a byte of the file was transferred. Hashing existing data is not progress and does not protect a
    /// transfer.
    pub(super) fn on_moved(&self) {
        if let Some(transfer) = self.turns.running().transfers.get_mut(&self.number) {
            transfer.moved = Instant::now();
        }
    }

    /// Waits until the slot must be given up for another request.
    pub(super) async fn must_give_way(&self) {
        self.give_way.notified().await;
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.running().transfers.remove(&self.number);
    }
}
