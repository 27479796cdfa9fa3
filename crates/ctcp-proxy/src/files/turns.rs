//! Whose turn it is: how many transfers go on at once, and which one gives way.
//!
//! ```text
//!  request --> share of the client --> places of all --> Turn
//!                 |                       |
//!                 +--- nothing moved for `silence` in one of the rivals: it gives way
//!                 +--- `wait` is over: busy
//! ```
//!
//! A client that stops reading, or never writes, would keep its place until the long time-out of a stall. While
//! somebody waits for a place, the transfer that stood still the longest gives way as soon as that is
//! [`TransferLimits::silence`]; its client may resume later. Who gets no place in time is told so, and asks again.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::FileError;
use crate::shares::{Place, Shares};

/// Transfers at once: each holds a thread of the blocking pool and a megabyte of queue.
pub const TRANSFERS_MAX: usize = 64;

/// Transfers at once of one client (one public key), over all its connections: enough for anyone who fetches a folder in
/// parallel, and a quarter of all, so that one client that stalls leaves most places to others.
pub const TRANSFERS_PER_CLIENT_MAX: usize = 16;

/// How many transfers go on at once, and how long they bear with each other.
#[derive(Clone, Copy, Debug)]
pub struct TransferLimits {
    /// Of all clients together.
    pub total: usize,
    /// Of one client.
    pub per_client: usize,
    /// A request waits so long for a place before it is told that the server is busy.
    pub wait: Duration,
    /// A transfer in which nothing moved for so long gives way to one that waits.
    pub silence: Duration,
}

impl Default for TransferLimits {
    /// The wait is short beside the patience of a client for a reply; the silence is longer than a path that is dead
    /// for a moment.
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

/// Transfers that go on, by number.
#[derive(Debug, Default)]
struct Running {
    next: u64,
    transfers: BTreeMap<u64, Transfer>,
}

/// What waiting requests know of a transfer that goes on.
#[derive(Debug)]
struct Transfer {
    client: String,
    /// When a byte of the file moved last.
    moved: Instant,
    give_way: Arc<Notify>,
    is_asked: bool,
}

/// The right to transfer, given back when dropped.
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

    /// A turn for a client; [`FileError::TooManyTransfers`] when there is none in time.
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

    /// Waits for a place until `end`; meanwhile one rival that stands still is asked to give way.
    async fn wait_for<T>(
        &self,
        place: impl Future<Output = T>,
        end: Instant,
        is_rival: impl Fn(&Transfer) -> bool,
    ) -> Result<T, FileError> {
        let mut place = core::pin::pin!(place);
        // A place that is free costs nobody his.
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

    /// Asks the rival that stood still the longest to give way, or answers when there will be one to ask.
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
    /// A byte of the file moved. Hashing what was there before moves none, and shields nobody.
    pub(super) fn on_moved(&self) {
        if let Some(transfer) = self.turns.running().transfers.get_mut(&self.number) {
            transfer.moved = Instant::now();
        }
    }

    /// Waits until another request needs the place more.
    pub(super) async fn must_give_way(&self) {
        self.give_way.notified().await;
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.running().transfers.remove(&self.number);
    }
}
