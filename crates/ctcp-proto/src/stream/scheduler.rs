//! Scheduling of streams into symbols: byte-fair among bulk streams, with priority for small ones.
//!
//! ```text
//!  bare FIN ---> free   (needs no credit and only a few bytes, so it goes first)
//!  small write -> urgent (round robin; a lane of symbols of its own, with the bare FINs)
//!  new data ---> small  (round robin by frames, until the stream's share is used up)
//!                  |  share used up
//!                  v
//!                bulk   (deficit round robin: each turn adds one symbol to the share)
//! ```
//!
//! The idea is that of FQ-CoDel (RFC 8290 section 4.2), with one number per stream. The *share* of a stream is the number of bytes that it
//! may send ahead of the others. It starts at [`SMALL_SHARE`] and is reduced by what the stream sends. Each round of the bulk streams
//! returns one symbol to a stream that was not queued, up to [`SMALL_SHARE`]. So a stream that sends little always goes first. Over time no
//! stream gets more than the bulk streams do, however it times its writes. While bulk streams wait, small ones get at most
//! [`SMALL_RUN_SYMBOLS`] symbols in a row, so no stream starves.

use std::collections::VecDeque;

use super::flight::Lane;
use crate::id::StreamId;

/// Bytes that a stream may send ahead of bulk streams, as many as a new TCP connection may send (RFC 6928).
pub(crate) const SMALL_SHARE: i32 = 14_600;

/// Symbols of small streams between two turns of bulk streams. With seven, bulk streams get an eighth of the link if small streams keep
/// coming.
pub(crate) const SMALL_RUN_SYMBOLS: i64 = 7;

/// The scheduler's state for one stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    /// Bytes that the stream may send ahead of the others; negative if it sent too many.
    bytes: i32,
    /// The round in which `bytes` was last updated.
    round: u64,
    queue: Queue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queue {
    None,
    Free,
    Urgent,
    Small,
    Bulk,
}

impl Default for Share {
    fn default() -> Self {
        Self { bytes: SMALL_SHARE, round: 0, queue: Queue::None }
    }
}

impl Share {
    /// Whether the stream is queued.
    #[must_use]
    pub(crate) fn is_queued(&self) -> bool {
        self.queue != Queue::None
    }
}

/// The streams that have something to send now.
#[derive(Debug)]
pub(crate) struct Scheduler {
    free: VecDeque<StreamId>,
    urgent: VecDeque<StreamId>,
    small: VecDeque<StreamId>,
    bulk: VecDeque<StreamId>,
    /// Bytes per turn: one symbol.
    quantum: i32,
    /// Number of rounds of the bulk queue so far, and turns left in this one.
    round: u64,
    turns_left: usize,
    /// Bytes of small streams since the last bulk turn.
    small_run: i64,
    /// Urgent writes and bare FINs go in a lane of their own.
    has_interactive_lane: bool,
}

impl Default for Scheduler {
    fn default() -> Self {
        Self {
            free: VecDeque::new(),
            urgent: VecDeque::new(),
            has_interactive_lane: false,
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
    /// Sets the size of symbols from now on.
    pub(crate) fn set_symbol_capacity(&mut self, capacity: usize) {
        self.quantum = i32::try_from(capacity).unwrap_or(i32::MAX).clamp(1, 1 << 20);
    }

    /// Uses the interactive lane from now on.
    pub(crate) fn open_interactive_lane(&mut self) {
        self.has_interactive_lane = true;
    }

    /// Queues a stream that has bytes to send under its credit. Does nothing if it is already queued.
    pub(crate) fn add(&mut self, id: StreamId, share: &mut Share, is_interactive: bool) {
        if share.is_queued() {
            return;
        }
        self.refill(share);
        self.push(id, share, is_interactive);
    }

    fn push(&mut self, id: StreamId, share: &mut Share, is_interactive: bool) {
        if is_interactive {
            share.queue = Queue::Urgent;
            self.urgent.push_back(id);
        } else if share.bytes > 0 {
            share.queue = Queue::Small;
            self.small.push_back(id);
        } else {
            self.push_bulk(id, share);
        }
    }

    /// Queues a stream that has only a FIN to send. Does nothing if it is already queued.
    pub(crate) fn add_bare_fin(&mut self, id: StreamId, share: &mut Share) {
        if share.is_queued() {
            return;
        }
        self.refill(share);
        share.queue = Queue::Free;
        self.free.push_back(id);
    }

    /// Adds the share for the rounds that a stream was not queued.
    fn refill(&self, share: &mut Share) {
        let rounds = i32::try_from(self.round - share.round).unwrap_or(i32::MAX);
        let missed = rounds.saturating_mul(self.quantum);
        share.bytes = if self.bulk.is_empty() {
            SMALL_SHARE
        } else {
            share.bytes.saturating_add(missed).min(SMALL_SHARE)
        };
        share.round = self.round;
    }

    /// Queues a bulk stream. The turn is added in advance, so a stream at the front of the queue always has a share left.
    fn push_bulk(&mut self, id: StreamId, share: &mut Share) {
        share.bytes = share.bytes.saturating_add(self.quantum).max(1);
        share.queue = Queue::Bulk;
        self.bulk.push_back(id);
    }

    /// The stream to pack from in this lane. `is_blocked` if the connection-level credit is used up.
    #[must_use]
    pub(crate) fn next(&self, lane: Lane, is_blocked: bool) -> Option<StreamId> {
        if let Some(id) = self.free.front()
            && (lane == Lane::Interactive) == self.has_interactive_lane
        {
            return Some(*id);
        }
        if is_blocked {
            return None;
        }
        if lane == Lane::Interactive {
            return self.urgent.front().copied();
        }
        let bulk_is_due = self.small_run >= SMALL_RUN_SYMBOLS * i64::from(self.quantum);
        let (first, second) = if bulk_is_due { (&self.bulk, &self.small) } else { (&self.small, &self.bulk) };
        first.front().or(second.front()).copied()
    }

    /// Updates the queue after the stream from [`Self::next`] packed `bytes`, headers included. `more` if it could pack more now, and
    /// whether in the interactive lane.
    pub(crate) fn on_packed(&mut self, id: StreamId, share: &mut Share, bytes: usize, more: Option<bool>) {
        let has_more = more.is_some();
        share.bytes = share.bytes.saturating_sub(i32::try_from(bytes).unwrap_or(i32::MAX));
        match share.queue {
            Queue::None => debug_assert!(false, "{id} was packed but is not queued"),
            Queue::Free => {
                self.free.pop_front();
                share.queue = Queue::None;
            }
            Queue::Urgent => {
                self.urgent.pop_front();
                share.queue = Queue::None;
                if let Some(is_interactive) = more {
                    self.push(id, share, is_interactive);
                }
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

    /// Removes a stream that was reset. Takes time linear in the number of queued streams.
    pub(crate) fn remove(&mut self, id: StreamId, share: &mut Share) {
        match share.queue {
            Queue::None => return,
            Queue::Free => self.free.retain(|&other| other != id),
            Queue::Urgent => self.urgent.retain(|&other| other != id),
            Queue::Small => self.small.retain(|&other| other != id),
            Queue::Bulk => self.bulk.retain(|&other| other != id),
        }
        share.queue = Queue::None;
    }
}

#[cfg(test)]
mod tests;
