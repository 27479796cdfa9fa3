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

use super::blocks::{Block, Blocks};
use super::{Choice, CodeLimits, Feedback, Sent, Situation};
use crate::id::SymbolIndex;
use crate::profile::Redundancy;
use crate::redundancy;

/// Fewest symbols a block is opened for: below it, whole packets of redundancy are too coarse.
const BLOCK_SIZE_MIN: u16 = 16;

/// Windows that a block spans under Algorithm 3 as it is printed, which sends what is needed on average: luck wastes
/// `0.4 sqrt(N p / (1-p))` packets a block, so that larger blocks waste less (all that is sent in vain at 20 % loss: 2.0 %
/// instead of 3.6, simulated). Otherwise it is one window, about a bandwidth-delay product.
const WINDOWS_OF_THE_PRINTED_RULE: f64 = 2.0;

/// Chance with which the end of what the application wrote should arrive without another round trip.
const TAIL_SUCCESS: f64 = 0.99;

/// The sender half of the block code. It holds a few numbers a block, at most `numblks` blocks.
#[derive(Debug)]
pub(crate) struct BlockCode {
    redundancy: Redundancy,
    /// `blksize`.
    block_size: u16,
    /// Algorithm 3 as it is printed, instead of what measures better.
    is_to_the_letter: bool,
    blocks: Blocks<NextKey>,
}

/// Key of a block's next combination.
type NextKey = u16;

impl BlockCode {
    pub(super) fn new(redundancy: Redundancy, limits: CodeLimits, is_to_the_letter: bool) -> Self {
        let CodeLimits { block_size, blocks } = limits;
        Self { redundancy, block_size, is_to_the_letter, blocks: Blocks::new(blocks) }
    }

    pub(super) fn choose(&mut self, situation: &Situation) -> Option<Choice> {
        let can_add = situation.has_data && situation.has_room && self.blocks.can_take_symbol();
        let short = self.blocks.iter().find(|block| self.is_short(block, can_add, situation));
        match short {
            Some(block) => Some(self.repair(block)),
            None => can_add.then_some(Choice::NewSymbol),
        }
    }

    pub(super) fn choose_probe(&mut self) -> Option<Choice> {
        self.blocks.iter().find(|block| block.missing > 0).map(|block| self.repair(block))
    }

    pub(super) fn on_sent(&mut self, choice: Choice, index: SymbolIndex, situation: &Situation) -> Sent {
        let sent = match choice {
            Choice::NewSymbol => {
                let most = self.block_size.max(1);
                let windows = if self.is_to_the_letter { WINDOWS_OF_THE_PRINTED_RULE } else { 1.0 };
                let capacity = ((windows * situation.window) as u16).clamp(BLOCK_SIZE_MIN.min(most), most);
                self.blocks.add_symbol(index, capacity, 0);
                Sent { first: index, length: 1 }
            }
            Choice::Again(first) => Sent { first, length: 1 },
            Choice::Combination { first, length, .. } => {
                if let Some(block) = self.blocks.block_of(first) {
                    block.repairs = block.repairs.wrapping_add(1);
                }
                Sent { first, length }
            }
        };
        self.blocks.on_sent(&sent);
        sent
    }

    /// A packet arrived, was lost, or is too old to be counted.
    pub(super) fn on_resolved(&mut self, sent: &Sent) {
        self.blocks.on_resolved(sent);
    }

    pub(super) fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.blocks.on_feedback(feedback);
    }

    /// A combination of what the receiver may still lack of `block`.
    fn repair(&self, block: &Block<NextKey>) -> Choice {
        match self.blocks.undecoded(block) {
            (first, length) if length > 1 => Choice::Combination { first, length, key: block.repairs },
            (first, _) => Choice::Again(first),
        }
    }

    fn is_short(&self, block: &Block<NextKey>, can_add: bool, situation: &Situation) -> bool {
        let &Situation { loss, dispersion, .. } = situation;
        let known = block.in_flight < block.missing;
        if known || self.redundancy == Redundancy::Feedback || (!block.is_full() && can_add) {
            // A block that is still being filled gets what was lost, but nothing ahead: its own symbols come first.
            return known;
        }
        match (self.is_to_the_letter, can_add) {
            (true, _) => redundancy::is_short_on_average(block.in_flight, block.missing, loss),
            (false, true) => redundancy::is_short_for_sure(block.in_flight, block.missing, loss, dispersion),
            // Nothing else is left to send: a loss here would cost a round trip, and a packet more costs nobody anything.
            (false, false) => {
                redundancy::is_short_of_success(block.in_flight, block.missing, loss, TAIL_SUCCESS)
            }
        }
    }
}

#[cfg(test)]
mod tests;
