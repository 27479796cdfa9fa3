//! The sender's view of the blocks of a transfer: their symbols, packets in flight, and the degrees of freedom that the receiver lacks.
//!
//! The choice of the next packet is up to the code, which can store state `R` for the repairs of each block.

use std::collections::VecDeque;

use ctcp_base::Instant;

use super::{Feedback, Sent};
use crate::id::{PathId, SymbolIndex};

/// Blocks that the receiver cannot decode yet or that are still being filled, ascending and adjacent.
#[derive(Debug)]
pub struct Blocks<R> {
    blocks: VecDeque<Block<R>>,
    /// `numblks`.
    most: usize,
    /// The receiver has decoded all symbols below this one. Repairs do not span them.
    oldest_undecoded: SymbolIndex,
    /// One past the last symbol that the receiver has heard of.
    heard_end: SymbolIndex,
    /// Symbols beyond it that were in flight on a path whose flight is lost, ascending.
    absent: VecDeque<SymbolIndex>,
}

/// The packets of a block in flight on a path.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) path: PathId,
    /// When they were sent, or their first segments were, ascending.
    times: VecDeque<Instant>,
}

/// A block of source symbols.
#[derive(Debug)]
pub struct Block<R> {
    /// The first symbol.
    pub first: SymbolIndex,
    /// Number of symbols in the block so far.
    pub length: u16,
    /// Number of symbols that fill the block.
    capacity: u16,
    /// Packets of this block that are neither acknowledged nor lost (the paper's `onfly`), from when its oldest undecoded symbol was first
    /// sent. Earlier ones add nothing: in a block of many short responses, the repairs of one do not help the next.
    pub in_flight: u32,
    /// Send times of all packets in flight, by path.
    flights: Vec<Flight>,
    /// When its symbols were first sent, from the oldest undecoded one.
    symbols_sent: VecDeque<Instant>,
    /// Degrees of freedom that the receiver lacks, not counting packets in flight (`blksize - currdof`).
    pub missing: u32,
    /// Whether the last report had room for all of it.
    is_reported: bool,
    /// Packets acknowledged since that report, of those that may add something.
    acked: u32,
    /// State of the code for its repairs.
    pub repairs: R,
}

impl<R> Blocks<R> {
    /// Creates an empty list of at most `most` blocks (`numblks`).
    #[must_use]
    pub fn new(most: u16) -> Self {
        Self {
            blocks: VecDeque::new(),
            most: usize::from(most),
            oldest_undecoded: 0,
            heard_end: 0,
            absent: VecDeque::new(),
        }
    }

    /// Iterates over the blocks in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = &Block<R>> {
        self.blocks.iter()
    }

    /// Whether there is room for another symbol, in a block that is not full or in a new one.
    #[must_use]
    pub fn can_take_symbol(&self) -> bool {
        self.blocks.back().is_some_and(|block| !block.is_full()) || self.blocks.len() < self.most
    }

    /// Adds a symbol that is sent `now`, as its [`Sent`] says. Times never decrease. If it opens a new block, that block has room for
    /// `capacity` symbols.
    pub fn add_symbol(&mut self, now: Instant, index: SymbolIndex, capacity: u16, repairs: R) {
        if self.blocks.back().is_none_or(Block::is_full) {
            self.blocks.push_back(Block {
                first: index,
                length: 0,
                capacity,
                in_flight: 0,
                flights: Vec::new(),
                symbols_sent: VecDeque::new(),
                missing: 0,
                is_reported: false,
                acked: 0,
                repairs,
            });
        }
        if let Some(block) = self.blocks.back_mut() {
            block.length += 1;
            block.missing += 1;
            block.symbols_sent.push_back(now);
            if block.symbols_sent.len() == 1 {
                block.count_in_flight();
            }
        }
    }

    /// A packet was sent.
    pub fn on_sent(&mut self, sent: &Sent) {
        if let Some(block) = self.block_of(sent.first) {
            block.in_flight += u32::from(block.may_help(sent.time));
            block.flight_on(sent.path).times.push_back(sent.time);
        }
    }

    /// A packet was acknowledged. Its effect at the receiver is part of the acknowledgement's feedback, unless that had no room for the
    /// block: then each packet counts as one degree of freedom.
    pub fn on_acked(&mut self, sent: &Sent) {
        if let Some(block) = self.block_of(sent.first) {
            block.acked += u32::from(block.may_help(sent.time));
            block.count_acked_if_unreported();
        }
        self.on_resolved(sent);
    }

    /// A packet was given up with all others in flight on its path. [`Self::on_resolved`] is called as well. A code that then sends
    /// [`Self::absent_in`] calls [`Self::on_sent_again`].
    pub fn on_flight_lost(&mut self, sent: &Sent) {
        let place = self.absent.partition_point(|&symbol| symbol < sent.first);
        if sent.length == 1 && sent.first >= self.heard_end && self.absent.get(place) != Some(&sent.first) {
            self.absent.insert(place, sent.first);
        }
    }

    /// The oldest symbol of `block` of which no report has heard, and that is not on its way again.
    #[must_use]
    pub fn absent_in(&self, block: &Block<R>) -> Option<SymbolIndex> {
        let place = self.absent.partition_point(|&symbol| symbol < block.first);
        self.absent.get(place).copied().filter(|&symbol| symbol < block.end())
    }

    /// A symbol is sent again.
    pub fn on_sent_again(&mut self, symbol: SymbolIndex) {
        self.forget_absent_before(symbol + 1);
    }

    /// A copy of a symbol is on its way.
    pub(crate) fn on_sent_ahead(&mut self, symbol: SymbolIndex) {
        if let Ok(place) = self.absent.binary_search(&symbol) {
            self.absent.remove(place);
        }
    }

    fn forget_absent_before(&mut self, symbol: SymbolIndex) {
        let end = self.absent.partition_point(|&absent| absent < symbol);
        self.absent.drain(..end);
    }

    /// A packet was lost or expired.
    pub fn on_resolved(&mut self, sent: &Sent) {
        if let Some(block) = self.block_of(sent.first) {
            let counts = block.remove_flight(sent) && block.may_help(sent.time);
            block.in_flight = block.in_flight.saturating_sub(u32::from(counts));
        }
    }

    /// The receiver reported which symbols it misses.
    pub fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        let decoded = feedback.oldest_undecoded;
        self.oldest_undecoded = self.oldest_undecoded.max(decoded);
        self.heard_end = self.heard_end.max(feedback.known_end).max(decoded);
        self.forget_absent_before(self.heard_end);
        // A block that is not full stays, because it must be filled before the next one is opened.
        while self.blocks.front().is_some_and(|block| block.is_full() && block.end() <= decoded) {
            self.blocks.pop_front();
        }
        for block in &mut self.blocks {
            let reported = block.missing_by(feedback);
            block.is_reported =
                block.end() <= feedback.reported_end || feedback.reported_end >= feedback.known_end;
            block.acked += block.forget_decoded(decoded);
            block.count_acked_if_unreported();
            block.missing = if block.is_reported { reported } else { block.missing.max(reported) };
            block.acked = 0;
        }
    }

    /// The symbols of `block` that the receiver may still lack: the first one and their number.
    #[must_use]
    pub fn undecoded(&self, block: &Block<R>) -> (SymbolIndex, u16) {
        let first = block.first.max(self.oldest_undecoded);
        (first, u16::try_from(block.end().saturating_sub(first)).unwrap_or(block.length))
    }

    /// The block that holds `symbol`.
    pub fn block_of(&mut self, symbol: SymbolIndex) -> Option<&mut Block<R>> {
        let position = self.blocks.partition_point(|block| block.end() <= symbol);
        self.blocks.get_mut(position).filter(|block| block.first <= symbol)
    }
}

impl Flight {
    /// The number of packets that were sent from `start` on.
    pub(super) fn sent_since(&self, start: Instant) -> usize {
        self.times.len() - self.times.partition_point(|&sent| sent < start)
    }

    /// The number of packets that were sent from `start` until `end`, both inclusive.
    pub(super) fn sent_between(&self, start: Instant, end: Instant) -> usize {
        let until = self.times.partition_point(|&sent| sent <= end);
        until.saturating_sub(self.times.partition_point(|&sent| sent < start))
    }

    fn remove(&mut self, time: Instant) -> bool {
        let place = self.times.partition_point(|&sent| sent < time);
        let is_known = self.times.get(place) == Some(&time);
        if is_known {
            self.times.remove(place);
        }
        is_known
    }
}

impl<R> Block<R> {
    /// One past its last symbol.
    #[must_use]
    pub fn end(&self) -> SymbolIndex {
        self.first + u64::from(self.length)
    }

    /// Whether the block has reached its capacity. Only the last block may not.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.length >= self.capacity
    }

    /// Whether the last report covers the block.
    pub(super) fn is_reported(&self) -> bool {
        self.is_reported
    }

    /// When the oldest undecoded symbol was first sent. Packets that were sent before add nothing.
    pub(super) fn oldest_sent(&self) -> Option<Instant> {
        self.symbols_sent.front().copied()
    }

    /// All packets in flight, by path.
    pub(super) fn flights(&self) -> impl Iterator<Item = &Flight> {
        self.flights.iter()
    }

    fn flight_on(&mut self, path: PathId) -> &mut Flight {
        let place = self.place_of(path).unwrap_or_else(|| {
            self.flights.push(Flight { path, times: VecDeque::new() });
            self.flights.len() - 1
        });
        &mut self.flights[place]
    }

    fn place_of(&self, path: PathId) -> Option<usize> {
        self.flights.iter().position(|flight| flight.path == path)
    }

    /// Returns whether it was in flight.
    fn remove_flight(&mut self, sent: &Sent) -> bool {
        let Some(place) = self.place_of(sent.path) else { return false };
        let is_known = self.flights[place].remove(sent.time);
        if self.flights[place].times.is_empty() {
            self.flights.remove(place);
        }
        is_known
    }

    fn may_help(&self, sent: Instant) -> bool {
        self.oldest_sent().is_some_and(|since| sent >= since)
    }

    fn count_in_flight(&mut self) {
        let since = self.oldest_sent();
        let helpful = |flight: &Flight| since.map_or(0, |since| flight.sent_since(since));
        self.in_flight = self.flights.iter().map(helpful).sum::<usize>() as u32;
    }

    /// The receiver has decoded the symbols below `decoded`. Returns the number of packets that thereby stop counting as in flight. They have
    /// arrived, though the acknowledgement of a slow path comes later than the report of a fast one.
    fn forget_decoded(&mut self, decoded: SymbolIndex) -> u32 {
        let before = self.in_flight;
        let undecoded = usize::try_from(self.end().saturating_sub(decoded)).unwrap_or(usize::MAX);
        if self.symbols_sent.len() > undecoded {
            self.symbols_sent.drain(..self.symbols_sent.len() - undecoded);
            self.count_in_flight();
        }
        before.saturating_sub(self.in_flight)
    }

    /// Each acknowledged packet counts as one degree of freedom, unless reports cover the block. Some may have added nothing, so the block lacks
    /// one until a report says that it is decoded.
    fn count_acked_if_unreported(&mut self) {
        if !self.is_reported {
            let left = self.missing.saturating_sub(core::mem::take(&mut self.acked));
            self.missing = left.max(self.missing.min(1));
        }
    }

    /// The degrees of freedom that the receiver lacked when it sent `feedback`.
    fn missing_by(&self, feedback: &Feedback<'_>) -> u32 {
        // What no packet has mentioned. Below it, what the report left out is unknown.
        let unheard = self.end().saturating_sub(feedback.known_end.max(self.first));
        let reported = feedback.intervals.iter().map(|interval| {
            let overlap = interval.end.min(self.end()).saturating_sub(interval.first.max(self.first));
            overlap.min(interval.missing)
        });
        u32::try_from(unheard + reported.sum::<u64>()).unwrap_or(u32::MAX).min(u32::from(self.length))
    }
}
