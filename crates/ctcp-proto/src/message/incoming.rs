//! Messages on their way in: fragments are joined, and whole messages wait for the application.

use std::collections::{BTreeMap, VecDeque};

use super::{MESSAGE_COST, QUEUE_MAX};
use crate::code::{Arrived, SymbolSink};
use crate::error::{TransportError, TransportErrorCode};
use crate::id::SymbolIndex;
use crate::pieces::Pieces;
use crate::wire::{Fragment, fragments_in_symbol};

/// Parts of messages in a symbol: the end of one and the begin of another. Each may need memory for the longest message, so without a limit
/// the parts in one symbol could make a receiver clear many megabytes.
const PARTS_MAX: usize = 2;

/// Statistics of received messages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IncomingCounts {
    /// Messages that arrived whole.
    pub(crate) received: u64,
    /// Those of them that needed a repair.
    pub(crate) repaired: u64,
    /// Messages that the application did not read in time.
    pub(crate) unread: u64,
    /// One past the largest number of a message.
    pub(crate) numbers: u64,
}

/// The receiving half.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    /// Messages of which parts are missing, by number.
    partial: BTreeMap<u64, Partial>,
    /// Bytes of memory for partial messages.
    held: usize,
    /// Whole messages that were not read yet.
    ready: VecDeque<Vec<u8>>,
    /// Bytes of these.
    waiting: usize,
    /// The application is notified of the next message.
    reader_waits: bool,
    is_news: bool,
    counts: IncomingCounts,
    /// Memory that may still be used.
    room: u64,
    /// Memory that both queues together may use, except for a last message in each.
    most: usize,
}

#[derive(Debug)]
struct Partial {
    pieces: Pieces,
    /// The last symbol with a part of it that was decoded.
    symbol: SymbolIndex,
    is_repaired: bool,
}

impl Incoming {
    pub(crate) fn new() -> Self {
        Self { reader_waits: true, room: u64::MAX, most: usize::MAX, ..Self::default() }
    }

    pub(crate) fn counts(&self) -> IncomingCounts {
        self.counts
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> u64 {
        (self.held + self.waiting) as u64
    }

    /// Sets the memory that may still be used, in bytes.
    pub(crate) fn set_room(&mut self, room: u64) {
        self.room = room;
        self.most = usize::try_from(room.saturating_add(self.memory())).unwrap_or(usize::MAX);
    }

    /// Returns the next message. If there is none, the next one is announced.
    pub(crate) fn pop(&mut self) -> Option<Vec<u8>> {
        let message = self.ready.pop_front();
        match &message {
            Some(message) => self.waiting -= message.len() + MESSAGE_COST,
            None => self.reader_waits = true,
        }
        message
    }

    /// Whether to tell the application that messages wait.
    pub(crate) fn poll_news(&mut self) -> bool {
        core::mem::take(&mut self.is_news)
    }

    /// Each symbol below `floor` is decoded or was given up. The parts of a message are in consecutive symbols: if the one after its last
    /// known part is among them, a part was given up, and the message has expired.
    pub(crate) fn settle_before(&mut self, floor: SymbolIndex) {
        while let Some(oldest) = self.partial.first_entry()
            && oldest.get().symbol + 1 < floor
        {
            self.held -= cost_of(oldest.remove().pieces.total());
        }
    }

    fn on_fragment(&mut self, fragment: Fragment<'_>, arrived: Arrived) -> Result<(), TransportError> {
        let Fragment { message, total, offset, data } = fragment;
        self.counts.numbers = self.counts.numbers.max(message + 1);
        if fragment.is_whole() {
            self.on_message(data.to_vec(), arrived.is_repaired);
            return Ok(());
        }
        if !self.partial.contains_key(&message) {
            self.make_room(cost_of(total));
            self.held += cost_of(total);
        }
        let partial = self.partial.entry(message).or_insert_with(|| Partial {
            pieces: Pieces::new(total),
            symbol: arrived.index,
            is_repaired: false,
        });
        if partial.pieces.total() != total {
            return Err(TransportError::new(
                TransportErrorCode::SymbolEncoding,
                "fragments disagree about the length of their message",
            ));
        }
        partial.symbol = partial.symbol.max(arrived.index);
        partial.is_repaired |= arrived.is_repaired;
        partial.pieces.insert(offset, data);
        if partial.pieces.is_complete()
            && let Some(whole) = self.partial.remove(&message)
        {
            self.held -= cost_of(total);
            self.on_message(whole.pieces.into_bytes(), whole.is_repaired);
        }
        Ok(())
    }

    /// Forgets the oldest partial messages until there is room for `cost` bytes.
    fn make_room(&mut self, cost: usize) {
        while (self.held + cost > QUEUE_MAX || self.held + self.waiting + cost > self.most)
            && let Some((_, oldest)) = self.partial.pop_first()
        {
            self.held -= cost_of(oldest.pieces.total());
        }
    }

    /// Queues a whole message. If the application does not read, or memory is short, the oldest ones are dropped.
    fn on_message(&mut self, message: Vec<u8>, is_repaired: bool) {
        self.counts.received += 1;
        self.counts.repaired += u64::from(is_repaired);
        self.waiting += message.len() + MESSAGE_COST;
        self.ready.push_back(message);
        while (self.waiting > QUEUE_MAX || self.held + self.waiting > self.most)
            && self.ready.len() > 1
            && let Some(oldest) = self.ready.pop_front()
        {
            self.waiting -= oldest.len() + MESSAGE_COST;
            self.counts.unread += 1;
        }
        self.is_news |= core::mem::take(&mut self.reader_waits);
    }
}

/// Bytes of memory for a partial message of `total` bytes.
const fn cost_of(total: usize) -> usize {
    Pieces::memory_of(total) + MESSAGE_COST
}

impl SymbolSink for Incoming {
    fn room(&self) -> u64 {
        self.room
    }

    fn on_symbol_decoded(&mut self, symbol: &[u8], arrived: Arrived) -> Result<(), TransportError> {
        let fault =
            |malformed: crate::wire::Malformed| malformed.into_error(TransportErrorCode::SymbolEncoding);
        let mut parts = 0;
        for fragment in fragments_in_symbol(symbol).map_err(fault)? {
            let fragment = fragment.map_err(fault)?;
            parts += usize::from(!fragment.is_whole());
            if parts > PARTS_MAX {
                return Err(TransportError::new(
                    TransportErrorCode::SymbolEncoding,
                    "too many parts of messages",
                ));
            }
            self.on_fragment(fragment, arrived)?;
        }
        Ok(())
    }
}
