//! CTCP's block code. The symbols of a block are sent uncoded first, then random combinations of all of them (systematic code). The next
//! packet goes to the first block that lacks degrees of freedom.
//!
//! ```text
//!   symbols   0 ............ 31 | 32 ............ 63 | 64 ..
//!             current block       next block           filling
//!             missing 2           missing 30           missing 3
//!             in flight 2         in flight 30         in flight 3
//! ```
//!
//! The paper's receiver reports only the degrees of freedom of the current block. This receiver reports every undecodable interval ("it is
//! not difficult to piggy-back more information on the ACKs", section 4.5), so the deficit of every block is known.
//!
//! Requirement: C1, C2, C5, U4

use super::blocks::{Block, Blocks};
use super::{Choice, CodeLimits, CodeSpec, Feedback, Scheme, Sent, Setup, Situation, WindowOf};
use crate::code::redundancy::{Need, Redundancy};
use crate::id::SymbolIndex;
use ctcp_base::Instant;

/// Minimum capacity of a block. In smaller blocks, redundancy in whole packets is too coarse.
const BLOCK_SIZE_MIN: u16 = 16;

/// Minimum share of packets that is assumed to arrive.
const ARRIVES_MIN: f64 = 0.1;

pub(super) static SPEC: CodeSpec = CodeSpec {
    number: 0,
    name: "block",
    make: |setup| Box::new(BlockCode::new(setup)),
    redundancies: &["feedback", "from-loss", "algorithm-3", "fixed"],
    window: WindowOf::Packets,
    spans_window: false,
    expires: true,
};

/// The sender half of the block code. It stores a few numbers per block and at most `numblks` blocks.
#[derive(Debug)]
pub(crate) struct BlockCode {
    redundancy: Redundancy,
    /// `blksize`.
    block_size: u16,
    blocks: Blocks<NextKey>,
}

/// Key of a block's next combination.
type NextKey = u16;

impl BlockCode {
    pub(super) fn new(setup: &Setup) -> Self {
        let CodeLimits { block_size, blocks } = setup.limits;
        Self { redundancy: setup.redundancy, block_size, blocks: Blocks::new(blocks) }
    }
}

impl Scheme for BlockCode {
    fn choose(&mut self, situation: &Situation) -> Option<Choice> {
        let can_add = self.can_add(situation);
        if can_add && situation.prefers_new {
            return Some(Choice::NewSymbol);
        }
        let short = self.blocks.iter().find(|block| self.is_short(block, can_add, situation));
        match short {
            Some(block) => Some(self.repair(block)),
            None => can_add.then_some(Choice::NewSymbol),
        }
    }

    fn choose_probe(&mut self) -> Option<Choice> {
        self.blocks.iter().find(|block| block.missing > 0).map(|block| self.repair(block))
    }

    fn on_sent(&mut self, choice: Choice, index: SymbolIndex, situation: &Situation) -> Sent {
        let sent = match choice {
            Choice::NewSymbol => {
                let most = self.block_size.max(1);
                let windows = self.redundancy.rule().windows_in_block;
                let capacity = ((windows * situation.window) as u16).clamp(BLOCK_SIZE_MIN.min(most), most);
                self.blocks.add_symbol(situation.now, index, capacity, 0);
                situation.sent(index, 1)
            }
            Choice::Again(first) => {
                self.blocks.on_sent_again(first);
                situation.sent(first, 1)
            }
            Choice::Combination { first, length, .. } => {
                if let Some(block) = self.blocks.block_of(first) {
                    block.repairs = block.repairs.wrapping_add(1);
                }
                situation.sent(first, length)
            }
        };
        self.blocks.on_sent(&sent);
        sent
    }

    fn on_acked(&mut self, sent: &Sent) {
        self.blocks.on_acked(sent);
    }

    fn on_lost(&mut self, sent: &Sent, was_expired: bool) {
        if !was_expired {
            self.blocks.on_resolved(sent);
        }
    }

    fn on_flight_lost(&mut self, sent: &Sent, was_expired: bool) {
        self.blocks.on_flight_lost(sent);
        self.on_lost(sent, was_expired);
    }

    fn on_sent_ahead(&mut self, symbol: SymbolIndex) {
        self.blocks.on_sent_ahead(symbol);
    }

    fn on_expired(&mut self, sent: &Sent) {
        self.blocks.on_resolved(sent);
    }

    fn deficit(&self, situation: &Situation) -> u64 {
        let can_add = self.can_add(situation);
        let arrives = (1.0 - situation.loss).max(ARRIVES_MIN);
        let needed = |block: &Block<NextKey>| {
            let all = f64::from(block.missing);
            let needed = if block.is_full() || !can_add { (all / arrives).ceil() as u64 } else { all as u64 };
            needed.saturating_sub(u64::from(expected(block, !can_add, situation).0))
        };
        self.blocks.iter().map(needed).sum()
    }

    fn on_feedback(&mut self, _now: Instant, feedback: &Feedback<'_>) {
        self.blocks.on_feedback(feedback);
    }
}

impl BlockCode {
    /// A combination of the symbols of `block` that the receiver may still lack. Symbols of which it has none are sent once more instead: they
    /// are of use one by one, as each arrives, and a combination only with all the others.
    fn repair(&self, block: &Block<NextKey>) -> Choice {
        if let Some(symbol) = self.blocks.absent_in(block) {
            return Choice::Again(symbol);
        }
        match self.blocks.undecoded(block) {
            (first, length) if length > 1 => Choice::Combination { first, length, key: block.repairs },
            (first, _) => Choice::Again(first),
        }
    }

    fn can_add(&self, situation: &Situation) -> bool {
        situation.has_data && situation.has_room && self.blocks.can_take_symbol()
    }

    /// Whether a block needs a repair.
    fn is_short(&self, block: &Block<NextKey>, can_add: bool, situation: &Situation) -> bool {
        let known = block.in_flight < block.missing;
        if known || block.missing == 0 || (!block.is_full() && can_add) {
            // A block that is still being filled gets repairs for known losses only; its own symbols come before any repair ahead of
            // feedback.
            return known;
        }
        let is_tail = !can_add;
        let (in_flight, loss) = expected(block, is_tail, situation);
        (self.redundancy.rule().is_short)(&Need {
            in_flight,
            missing: block.missing,
            loss,
            dispersion: situation.dispersion,
            ratio: self.redundancy.ratio(),
            is_tail,
        })
    }
}

/// The packets of a block in flight that may be waited for, and their loss. Those sent before the oldest undecoded symbol never count. When
/// nothing else is left to send, neither do those that a new packet overtakes, and those that the newest report would count if they had
/// arrived.
fn expected(block: &Block<NextKey>, is_tail: bool, situation: &Situation) -> (u32, f64) {
    if situation.prospects.is_empty() {
        return (block.in_flight, situation.loss);
    }
    let (mut in_flight, mut lost) = (0, 0.0);
    let Some(since) = block.oldest_sent() else { return (0, situation.loss) };
    for flight in block.flights() {
        // A path that has gone delivers nothing any more.
        let Some(prospect) = situation.prospects.of(flight.path) else { continue };
        let waiting = if is_tail {
            let counted = if block.is_reported() { prospect.counted } else { Instant::ZERO };
            flight.sent_between(counted.max(since), prospect.overtaken)
        } else {
            flight.sent_since(since)
        };
        in_flight += waiting as u32;
        lost += waiting as f64 * prospect.loss;
    }
    let loss = if in_flight > 0 { lost / f64::from(in_flight) } else { situation.loss };
    (in_flight, loss)
}

#[cfg(test)]
mod tests;
