//! The thesis's sparse code (2012): blocks of 128 symbols, two at a time. Repairs combine a few neighbours instead of
//! all.
//!
//! ```text
//!   current block   s s s s s s s s s s s s s s s s      its symbols first, once each (section 3.1.5)
//!                     [ - - - ]   [ - - - ]              then coding_wnd consecutive ones, spread evenly,
//!                   [ - - - - - - - - - - - - - ]        the window doubles with each packet near the end
//!   next block                         s s s s s         with the rest of the window (section 3.3.3)
//! ```
//!
//! [`SparseRepairs`] draws the ranges. In the frame, the range itself is the band: CODED `[first, length)`. The last
//! missing symbol of a block is sent uncoded.
//!
//! Block transition: the current block gets as many packets of the window as the receiver lacks degrees of freedom, and
//! x % more "to account for the coding loss rate". The rest of the window goes to the next block. So x is this
//! profile's redundancy, R = 1.1, in whole packets as in decision 0020. A third block waits until the first one is
//! decoded.
//!
//! Where the thesis is silent:
//! - `coding_wnd` by the loss: [`coding_window`], chosen with the first repair of a block and kept, as section 3.1.3
//!   assumes.
//! - When the window doubles ("a certain threshold"): counted in packets still to be sent for the block, so that the
//!   last packet of each batch and all later ones span the whole block. Listing D.1 also stretches it over a batch.
//! - Combinations start after the decoded symbols of the block, which the sender no longer holds.
//! - A short block, at the end of what the application wrote, is repaired at its actual length.
//!
//! Requirement: U1, U2, U4

use crate::coding::{CombinationCredit, SparseRepairs, coding_window};
use ctcp_base::Instant;
use ctcp_coding::SymbolRange;
use ctcp_proto::scheme::{
    Block, Blocks, Choice, Code, CodeSpec, Feedback, Scheme, Sent, Setup, Situation, WindowOf, whole_packets,
};
use ctcp_proto::{Redundancy, SymbolIndex};

pub(super) const PARTS: &[Code] = &[SPARSE];

/// Systematic block code whose combinations span a few neighbours (thesis).
pub const SPARSE: Code = Code::new(&CodeSpec {
    number: 2,
    name: "sparse",
    make: |setup| Box::new(SparseBlockCode::new(setup)),
    redundancies: &["fixed", "from-loss", "feedback"],
    window: WindowOf::Packets,
    spans_window: false,
    expires: false,
});

/// `BLOCK_SIZE` of section 3.2, unless the handshake allows less.
pub const BLOCK_SIZE: u16 = 128;

/// Number of blocks in flight (section 3.3.3).
pub const BLOCKS: u16 = 2;

/// The maximum loss estimate used. A higher value says more about the estimator than about the path.
const LOSS_MAX: f64 = 0.9;

/// The sending side of the sparse code.
#[derive(Debug)]
pub(super) struct SparseBlockCode {
    redundancy: Redundancy,
    block_size: u16,
    blocks: Blocks<Option<SparseRepairs>>,
    /// The state of a block's repairs once the packet chosen last is sent.
    chosen: Option<SparseRepairs>,
}

impl SparseBlockCode {
    pub(super) fn new(setup: &Setup) -> Self {
        let block_size = setup.limits.block_size.clamp(1, BLOCK_SIZE);
        let blocks = Blocks::new(setup.limits.blocks.min(BLOCKS));
        Self { redundancy: setup.redundancy, block_size, blocks, chosen: None }
    }
}

impl Scheme for SparseBlockCode {
    fn choose(&mut self, situation: &Situation) -> Option<Choice> {
        let can_add = situation.has_data && situation.has_room && self.blocks.can_take_symbol();
        let loss = situation.loss;
        let short = self.blocks.iter().find_map(|block| {
            // The first n packets of a block are its symbols, regardless of losses.
            let is_being_filled = !block.is_full() && can_add;
            let rest = if is_being_filled { 0 } else { self.rest(block, loss) };
            (rest > 0).then(|| self.repair(block, loss, rest))
        });
        match short {
            Some((choice, repairs)) => {
                self.chosen = Some(repairs);
                Some(choice)
            }
            None => can_add.then_some(Choice::NewSymbol),
        }
    }

    fn choose_probe(&mut self) -> Option<Choice> {
        // Nothing is in flight, so send a combination of the whole block, which is certainly innovative.
        let block = self.blocks.iter().find(|block| block.missing > 0)?;
        let (choice, repairs) = self.repair(block, 0.0, 1);
        self.chosen = Some(repairs);
        Some(choice)
    }

    fn on_sent(&mut self, choice: Choice, index: SymbolIndex, situation: &Situation) -> Sent {
        let sent = match choice {
            Choice::NewSymbol => {
                self.blocks.add_symbol(situation.now, index, self.block_size, None);
                situation.sent(index, 1)
            }
            Choice::Again(first) => situation.sent(first, 1),
            Choice::Combination { first, length, .. } => {
                if let Some(block) = self.blocks.block_of(first) {
                    block.repairs = self.chosen.take().or(block.repairs);
                }
                situation.sent(first, length)
            }
        };
        self.blocks.on_sent(&sent);
        sent
    }

    fn on_acked(&mut self, sent: &Sent) {
        self.blocks.on_resolved(sent);
    }

    fn on_lost(&mut self, sent: &Sent, was_expired: bool) {
        if !was_expired {
            self.blocks.on_resolved(sent);
        }
    }

    fn on_expired(&mut self, sent: &Sent) {
        self.blocks.on_resolved(sent);
    }

    fn on_feedback(&mut self, _now: Instant, feedback: &Feedback<'_>) {
        self.blocks.on_feedback(feedback);
    }
}

impl SparseBlockCode {
    /// Returns the number of packets still to be sent for `block` until its part of the window is in flight.
    fn rest(&self, block: &Block<Option<SparseRepairs>>, loss: f64) -> u32 {
        let ratio = self.redundancy.ratio_or(CombinationCredit::ratio_for(loss.clamp(0.0, LOSS_MAX)));
        whole_packets(block.missing, ratio).saturating_sub(block.in_flight)
    }

    /// Returns the next repair of `block` when `rest` are to be sent, and the state to keep if it is sent.
    fn repair(&self, block: &Block<Option<SparseRepairs>>, loss: f64, rest: u32) -> (Choice, SparseRepairs) {
        let (first, length) = self.blocks.undecoded(block);
        let mut repairs =
            block.repairs.unwrap_or_else(|| SparseRepairs::new(coding_window(block.length, loss)));
        let Some(range) = SymbolRange::new(first, length) else { return (Choice::Again(first), repairs) };
        let sent = repairs.next(range, u16::try_from(rest).unwrap_or(u16::MAX));
        let choice = match sent.range.length() {
            1 => Choice::Again(sent.range.first()),
            length => Choice::Combination { first: sent.range.first(), length, key: sent.key },
        };
        (choice, repairs)
    }
}

#[cfg(test)]
mod tests;
