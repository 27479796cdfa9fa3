//! Messages on their way out: those that wait for a packet, and when the symbols of the others expire.

use core::time::Duration;
use std::collections::VecDeque;

use ctcp_base::Instant;

use super::{MESSAGE_COST, MessageError, QUEUE_MAX};
use crate::code::SymbolSource;
use crate::id::SymbolIndex;
use crate::wire::{Fragment, FragmentBuilder, MESSAGE_SIZE_MAX};

/// Bytes of a symbol in addition to a part of a message, at most: the content's length, the fragment's first byte and four varints.
const PART_OVERHEAD: usize = 2 + 1 + 8 + 3 * 4;

/// A full queue is searched for expired messages at most this often. Those at its front are dropped at once.
const SEARCH_PAUSE: Duration = Duration::from_millis(10);

/// Statistics of sent messages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OutgoingCounts {
    /// Messages of which at least a part was sent.
    pub(crate) sent: u64,
    /// Messages whose deadline passed before all of them was sent.
    pub(crate) expired: u64,
    /// Messages sent whose deadline passed before their arrival was confirmed.
    pub(crate) unconfirmed: u64,
}

/// The sending half.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    queue: VecDeque<Waiting>,
    /// Bytes in the queue, with [`MESSAGE_COST`] for each message.
    queued: usize,
    /// The latest time that the queue was told.
    now: Option<Instant>,
    /// When the whole queue was last searched for expired messages.
    searched: Option<Instant>,
    /// The symbols that may still be repaired.
    symbols: VecDeque<InFlight>,
    counts: OutgoingCounts,
}

/// A symbol that was sent.
#[derive(Debug)]
struct InFlight {
    index: SymbolIndex,
    /// When the last message in it expires.
    expiry: Instant,
    /// Messages that end in it.
    ends: u64,
}

#[derive(Debug)]
struct Waiting {
    data: Vec<u8>,
    deadline: Instant,
    /// Bytes that have been sent, and the number that the message got with the first of them.
    sent: usize,
    number: Option<u64>,
}

impl Outgoing {
    pub(crate) fn counts(&self) -> OutgoingCounts {
        self.counts
    }

    /// Messages of which not all has been sent.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Whether the next message fits a symbol of `whole` bytes, but would be cut in one of `room` bytes. Its rest would take a symbol of its
    /// own.
    pub(crate) fn is_cut(&self, whole: usize, room: usize) -> bool {
        let holds = |waiting: &Waiting, capacity| {
            let number = waiting.number.unwrap_or(self.counts.sent);
            FragmentBuilder::holds_whole(capacity, number, waiting.data.len())
        };
        let next = self.queue.front().filter(|waiting| waiting.sent == 0);
        next.is_some_and(|waiting| holds(waiting, whole) && !holds(waiting, room))
    }

    /// Bytes of memory for waiting messages.
    pub(crate) fn memory(&self) -> u64 {
        self.queued as u64
    }

    /// Queues a message.
    pub(crate) fn push(&mut self, now: Instant, data: &[u8], deadline: Instant) -> Result<(), MessageError> {
        if data.len() > MESSAGE_SIZE_MAX {
            return Err(MessageError::TooLong);
        }
        let cost = data.len() + MESSAGE_COST;
        self.now = Some(now);
        if self.queued + cost > QUEUE_MAX {
            self.make_room(now);
        }
        if self.queued + cost > QUEUE_MAX {
            return Err(MessageError::QueueFull);
        }
        self.queued += cost;
        self.queue.push_back(Waiting { data: data.to_vec(), deadline, sent: 0, number: None });
        Ok(())
    }

    /// Drops what has expired. Returns the first symbol that may still be of use, if any symbol below it was given up.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<SymbolIndex> {
        self.now = Some(now);
        self.drop_expired_front();
        let mut floor = None;
        while let Some(symbol) = self.symbols.front().filter(|symbol| symbol.expiry <= now) {
            self.counts.unconfirmed += symbol.ends;
            floor = Some(symbol.index + 1);
            self.symbols.pop_front();
        }
        floor
    }

    /// The peer has decoded or given up all symbols below `index`.
    pub(crate) fn on_peer_decoded_below(&mut self, index: SymbolIndex) {
        while self.symbols.front().is_some_and(|symbol| symbol.index < index) {
            self.symbols.pop_front();
        }
    }

    /// Drops the messages at the front whose deadline has passed. Behind one that may wait longer, they are dropped when their turn comes.
    fn drop_expired_front(&mut self) {
        while let Some(waiting) = self.queue.front().filter(|waiting| Some(waiting.deadline) <= self.now) {
            self.queued -= waiting.data.len() + MESSAGE_COST;
            self.counts.expired += 1;
            self.queue.pop_front();
        }
    }

    /// Drops what has expired in a full queue, wherever it is.
    fn make_room(&mut self, now: Instant) {
        self.drop_expired_front();
        if self.searched.is_some_and(|searched| now < searched + SEARCH_PAUSE) {
            return;
        }
        self.searched = Some(now);
        let (queued, counts) = (&mut self.queued, &mut self.counts);
        self.queue.retain(|waiting| {
            let is_alive = waiting.deadline > now;
            if !is_alive {
                *queued -= waiting.data.len() + MESSAGE_COST;
                counts.expired += 1;
            }
            is_alive
        });
    }
}

impl SymbolSource for Outgoing {
    fn has_data(&self) -> bool {
        !self.queue.is_empty()
    }

    fn fill_symbol(&mut self, index: SymbolIndex, capacity: usize, out: &mut Vec<u8>) -> bool {
        let mut symbol = FragmentBuilder::reusing(core::mem::take(out), capacity);
        let (mut expiry, mut ends) = (None, 0);
        while let Some(waiting) = self.queue.front_mut() {
            let (total, offset) = (waiting.data.len(), waiting.sent);
            let number = waiting.number.unwrap_or(self.counts.sent);
            let room = symbol.room_for(number, total, offset);
            // A message is lost with any of its symbols, so it is cut only if it does not touch more of them for that.
            let symbols_of = |bytes: usize| bytes.div_ceil(capacity.saturating_sub(PART_OVERHEAD).max(1));
            let fits_alone = offset == 0 && FragmentBuilder::holds_whole(capacity, number, total);
            let is_worth_it = |count: usize| {
                let rest = total - offset;
                let saves_one = || !fits_alone && symbols_of(rest - count) < symbols_of(rest);
                count == rest || count > 0 && (symbol.is_empty() || saves_one())
            };
            let Some(count) = room.filter(|&count| is_worth_it(count)) else { break };
            let data = &waiting.data[offset..offset + count];
            symbol.push(Fragment { message: number, total, offset, data });
            if waiting.number.is_none() {
                waiting.number = Some(number);
                self.counts.sent += 1;
            }
            expiry = expiry.max(Some(waiting.deadline));
            waiting.sent += count;
            if waiting.sent < total {
                break;
            }
            self.queued -= total + MESSAGE_COST;
            self.queue.pop_front();
            ends += 1;
            self.drop_expired_front();
        }
        let Some(expiry) = expiry else {
            *out = symbol.finish();
            out.clear();
            return false;
        };
        *out = symbol.finish();
        self.symbols.push_back(InFlight { index, expiry, ends });
        true
    }
}
