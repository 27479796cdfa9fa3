//! CTCP's block code: a block's symbols are sent uncoded first, then random combinations of all of them
//! (systematic code), and the next packet goes to the first block that is short of degrees of freedom.
//!
//! ```text
//!   symbols   0 ............ 31 | 32 ............ 63 | 64 ..
//!             current block       next block           filling
//!             missing 2           missing 30           missing 3
//!             in flight 2         in flight 30         in flight 3
//! ```
//!
//! Where the paper's receiver tells the degrees of freedom of the current block only, ours reports every undecodable
//! interval ("it is not difficult to piggy-back more information on the ACKs", section 4.5), so every block is judged
//! by what it really misses.
//!
//! Requirement: C1, C2, C5, U4

use std::collections::VecDeque;

use super::{Choice, CodeLimits, Feedback, Sent, Situation};
use crate::id::SymbolIndex;
use crate::profile::Redundancy;
use crate::redundancy;

/// Fewest symbols a block is opened for: below it, whole packets of redundancy are too coarse.
const BLOCK_SIZE_MIN: u16 = 16;

/// Chance with which the end of what the application wrote should arrive without another round trip.
const TAIL_SUCCESS: f64 = 0.95;

/// The sender half of the block code. It holds a few numbers a block, at most `numblks` blocks.
#[derive(Debug)]
pub(crate) struct BlockCode {
    redundancy: Redundancy,
    limits: CodeLimits,
    /// Algorithm 3 as it is printed, instead of what measures better.
    is_to_the_letter: bool,
    /// Blocks the receiver cannot decode yet or that are still being filled, ascending and adjacent.
    blocks: VecDeque<Block>,
    /// Below it the receiver has everything: repair spans only what is behind.
    oldest_undecoded: SymbolIndex,
}

#[derive(Debug)]
struct Block {
    first: SymbolIndex,
    /// Symbols it holds.
    length: u16,
    /// Symbols it is opened for.
    capacity: u16,
    /// Packets of this block whose fate is unknown (the paper's `onfly`).
    in_flight: u32,
    /// Degrees of freedom the receiver lacks, packets in flight not counted (`blksize - currdof`).
    missing: u32,
    /// Key of the next combination.
    next_key: u16,
}

impl BlockCode {
    pub(super) fn new(redundancy: Redundancy, limits: CodeLimits, is_to_the_letter: bool) -> Self {
        Self { redundancy, limits, is_to_the_letter, blocks: VecDeque::new(), oldest_undecoded: 0 }
    }

    pub(super) fn choose(&mut self, situation: &Situation) -> Option<Choice> {
        let can_add = situation.has_data && situation.has_room && self.can_take_symbol();
        let last = self.blocks.len().saturating_sub(1);
        let short = self.blocks.iter().enumerate().find(|(position, block)| {
            let is_filling = *position == last && block.length < block.capacity;
            self.is_short(block, is_filling, can_add, situation.loss)
        });
        match short {
            Some((_, block)) => Some(self.repair(block)),
            None => can_add.then_some(Choice::NewSymbol),
        }
    }

    pub(super) fn choose_probe(&mut self) -> Option<Choice> {
        self.blocks.iter().find(|block| block.missing > 0).map(|block| self.repair(block))
    }

    pub(super) fn on_sent(&mut self, choice: Choice, index: SymbolIndex, situation: &Situation) -> Sent {
        let sent = match choice {
            Choice::NewSymbol => {
                self.add_symbol(index, situation.window);
                Sent { first: index, length: 1 }
            }
            Choice::Again(first) => Sent { first, length: 1 },
            Choice::Combination { first, length, .. } => {
                if let Some(block) = self.block_of(first) {
                    block.next_key = block.next_key.wrapping_add(1);
                }
                Sent { first, length }
            }
        };
        if let Some(block) = self.block_of(sent.first) {
            block.in_flight += 1;
        }
        sent
    }

    /// A packet arrived, was lost, or is too old to be counted. What the receiver gained by it comes with the
    /// acknowledgement's feedback.
    pub(super) fn on_resolved(&mut self, sent: &Sent) {
        if let Some(block) = self.block_of(sent.first) {
            block.in_flight = block.in_flight.saturating_sub(1);
        }
    }

    pub(super) fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        let decoded = feedback.oldest_undecoded;
        self.oldest_undecoded = self.oldest_undecoded.max(decoded);
        // A block that is not full stays: block i is full before block i + 1 is opened.
        while self.blocks.front().is_some_and(|block| block.is_full() && block.end() <= decoded) {
            self.blocks.pop_front();
        }
        for block in &mut self.blocks {
            if block.end() <= feedback.reported_end || feedback.reported_end >= feedback.known_end {
                block.missing = block.missing_by(feedback);
            }
        }
    }

    /// A combination of what the receiver may still lack of `block`.
    fn repair(&self, block: &Block) -> Choice {
        let first = block.first.max(self.oldest_undecoded);
        match u16::try_from(block.end().saturating_sub(first)) {
            Ok(length) if length > 1 => Choice::Combination { first, length, key: block.next_key },
            _ => Choice::Again(first),
        }
    }

    fn is_short(&self, block: &Block, is_filling: bool, can_add: bool, loss: f64) -> bool {
        let known = block.in_flight < block.missing;
        if known || self.redundancy == Redundancy::Feedback || (is_filling && can_add) {
            // A block that is still being filled gets what was lost, but nothing ahead: its own symbols come first.
            return known;
        }
        match (self.is_to_the_letter, can_add) {
            (true, _) => redundancy::is_short_on_average(block.in_flight, block.missing, loss),
            (false, true) => redundancy::is_short_for_sure(block.in_flight, block.missing, loss),
            // Nothing else is left to send: a loss here would cost a round trip, and a packet more costs nobody anything.
            (false, false) => {
                redundancy::is_short_of_success(block.in_flight, block.missing, loss, TAIL_SUCCESS)
            }
        }
    }

    fn can_take_symbol(&self) -> bool {
        self.blocks.back().is_some_and(|block| !block.is_full())
            || self.blocks.len() < usize::from(self.limits.blocks)
    }

    /// Opens a block of about one bandwidth-delay product when the last one is full.
    fn add_symbol(&mut self, index: SymbolIndex, window: f64) {
        if self.blocks.back().is_none_or(Block::is_full) {
            let most = self.limits.block_size.max(1);
            let capacity = (window as u16).clamp(BLOCK_SIZE_MIN.min(most), most);
            self.blocks.push_back(Block {
                first: index,
                length: 0,
                capacity,
                in_flight: 0,
                missing: 0,
                next_key: 0,
            });
        }
        if let Some(block) = self.blocks.back_mut() {
            block.length += 1;
            block.missing += 1;
        }
    }

    fn block_of(&mut self, symbol: SymbolIndex) -> Option<&mut Block> {
        let position = self.blocks.partition_point(|block| block.end() <= symbol);
        self.blocks.get_mut(position).filter(|block| block.first <= symbol)
    }
}

impl Block {
    fn end(&self) -> SymbolIndex {
        self.first + u64::from(self.length)
    }

    fn is_full(&self) -> bool {
        self.length >= self.capacity
    }

    /// The degrees of freedom the receiver lacked when it sent `feedback`.
    fn missing_by(&self, feedback: &Feedback<'_>) -> u32 {
        let unheard = self.end().saturating_sub(feedback.known_end.max(self.first));
        let reported = feedback.intervals.iter().map(|interval| {
            let overlap = interval.end.min(self.end()).saturating_sub(interval.first.max(self.first));
            overlap.min(interval.missing)
        });
        u32::try_from(unheard + reported.sum::<u64>()).unwrap_or(u32::MAX).min(u32::from(self.length))
    }
}

#[cfg(test)]
mod tests;
