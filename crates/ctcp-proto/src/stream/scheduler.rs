//! Which stream fills the next bytes of a symbol: byte-fair among bulk streams, small ones first.
//!
//! ```text
//!  bare FIN ---> free   (needs no credit, costs a few bytes: before all others)
//!  new data ---> small  (round robin by frames, as long as the stream's share lasts)
//!                  |  share spent
//!                  v
//!                bulk   (deficit round robin: each turn adds one symbol to the share)
//! ```
//!
//! The idea is that of FQ-CoDel (RFC 8290 section 4.2) with one number instead of two lists of rules: the
//! *share* of a stream is how many bytes it may send ahead of the others. A stream begins with
//! [`SMALL_SHARE`]; what it sends is taken off; each round of the bulk streams gives a stream that did not wait
//! in line one symbol back, at most up to [`SMALL_SHARE`]. So a stream that sends little is always first, and
//! over time none gets more than the bulk streams do, however it times its writes. While bulk streams wait,
//! small ones get at most [`SMALL_RUN_SYMBOLS`] symbols in a row: no stream starves.

use std::collections::VecDeque;

use crate::id::StreamId;

/// Bytes a stream may send ahead of bulk streams: what a fresh TCP connection may (RFC 6928).
pub(crate) const SMALL_SHARE: i64 = 14_600;

/// Symbols of small streams between two turns of bulk streams. Seven leave an eighth of the link to bulk
/// streams in the worst case, in which small streams come without end.
pub(crate) const SMALL_RUN_SYMBOLS: i64 = 7;

/// The part of the scheduler that lives in each stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    /// Bytes the stream may send ahead of the others; negative when it sent too many.
    bytes: i64,
    /// The round in which `bytes` was last right.
    round: u64,
    queue: Queue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queue {
    None,
    Free,
    Small,
    Bulk,
}

impl Default for Share {
    fn default() -> Self {
        Self { bytes: SMALL_SHARE, round: 0, queue: Queue::None }
    }
}

impl Share {
    /// The stream waits for its turn.
    #[must_use]
    pub(crate) fn is_queued(&self) -> bool {
        self.queue != Queue::None
    }
}

/// The streams that have something to send now.
#[derive(Debug)]
pub(crate) struct Scheduler {
    free: VecDeque<StreamId>,
    small: VecDeque<StreamId>,
    bulk: VecDeque<StreamId>,
    /// Bytes a turn gives: one symbol.
    quantum: i64,
    /// Rounds of the bulk queue so far, and turns left in this one.
    round: u64,
    turns_left: usize,
    /// Bytes of small streams since the last bulk turn ended.
    small_run: i64,
}

impl Default for Scheduler {
    fn default() -> Self {
        Self {
            free: VecDeque::new(),
            small: VecDeque::new(),
            bulk: VecDeque::new(),
            quantum: 1200,
            round: 0,
            turns_left: 0,
            small_run: 0,
        }
    }
}

impl Scheduler {
    /// Symbols hold `capacity` bytes from now on.
    pub(crate) fn set_symbol_capacity(&mut self, capacity: usize) {
        self.quantum = i64::try_from(capacity).unwrap_or(i64::MAX).clamp(1, 1 << 20);
    }

    /// The stream has bytes under its credit now. Nothing changes if it waits already.
    pub(crate) fn add(&mut self, id: StreamId, share: &mut Share) {
        if share.is_queued() {
            return;
        }
        self.refill(share);
        if share.bytes > 0 {
            share.queue = Queue::Small;
            self.small.push_back(id);
        } else {
            self.push_bulk(id, share);
        }
    }

    /// The stream has a FIN to send and nothing else. Nothing changes if it waits already.
    pub(crate) fn add_bare_fin(&mut self, id: StreamId, share: &mut Share) {
        if share.is_queued() {
            return;
        }
        self.refill(share);
        share.queue = Queue::Free;
        self.free.push_back(id);
    }

    /// Gives a stream that was not in line what it missed.
    fn refill(&self, share: &mut Share) {
        let rounds = i64::try_from(self.round - share.round).unwrap_or(i64::MAX);
        let missed = rounds.saturating_mul(self.quantum);
        share.bytes = if self.bulk.is_empty() {
            SMALL_SHARE
        } else {
            share.bytes.saturating_add(missed).min(SMALL_SHARE)
        };
        share.round = self.round;
    }

    /// The turn is paid in advance: a stream at the front of the bulk queue always has a share to send.
    fn push_bulk(&mut self, id: StreamId, share: &mut Share) {
        share.bytes = (share.bytes + self.quantum).max(1);
        share.queue = Queue::Bulk;
        self.bulk.push_back(id);
    }

    /// The stream to pack from; with `is_blocked`, the credit of the connection is used up.
    #[must_use]
    pub(crate) fn next(&self, is_blocked: bool) -> Option<StreamId> {
        if let Some(id) = self.free.front() {
            return Some(*id);
        }
        if is_blocked {
            return None;
        }
        let bulk_is_due = self.small_run >= SMALL_RUN_SYMBOLS.saturating_mul(self.quantum);
        let (first, second) = if bulk_is_due { (&self.bulk, &self.small) } else { (&self.small, &self.bulk) };
        first.front().or(second.front()).copied()
    }

    /// The stream that [`Self::next`] named has packed `bytes`, headers included; `has_more` it could pack now.
    pub(crate) fn on_packed(&mut self, id: StreamId, share: &mut Share, bytes: usize, has_more: bool) {
        share.bytes = share.bytes.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
        match share.queue {
            Queue::None => debug_assert!(false, "{id} was packed out of turn"),
            Queue::Free => {
                self.free.pop_front();
                share.queue = Queue::None;
            }
            Queue::Small => {
                self.small.pop_front();
                share.queue = Queue::None;
                self.small_run = if self.bulk.is_empty() { 0 } else { self.small_run + bytes as i64 };
                if has_more && share.bytes > 0 {
                    share.queue = Queue::Small;
                    self.small.push_back(id);
                } else if has_more {
                    self.push_bulk(id, share);
                }
            }
            Queue::Bulk if has_more && share.bytes > 0 => {}
            Queue::Bulk => {
                self.bulk.pop_front();
                share.queue = Queue::None;
                if has_more {
                    self.push_bulk(id, share);
                }
                self.end_turn();
            }
        }
        share.round = self.round;
    }

    fn end_turn(&mut self) {
        self.small_run = 0;
        self.turns_left = self.turns_left.saturating_sub(1);
        if self.turns_left == 0 {
            self.round += 1;
            self.turns_left = self.bulk.len();
        }
    }

    /// The stream has nothing to send any more. Takes time in proportion to the streams in line: only a reset
    /// comes here.
    pub(crate) fn remove(&mut self, id: StreamId, share: &mut Share) {
        match share.queue {
            Queue::None => return,
            Queue::Free => self.free.retain(|&other| other != id),
            Queue::Small => self.small.retain(|&other| other != id),
            Queue::Bulk => self.bulk.retain(|&other| other != id),
        }
        share.queue = Queue::None;
    }
}

#[cfg(test)]
mod tests;
