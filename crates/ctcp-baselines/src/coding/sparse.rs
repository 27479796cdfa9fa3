//! The thesis's sparse code: after the symbols themselves, combinations of at most `coding_wnd` consecutive ones.
//!
//! ```text
//!   block     s s s s s s s s s s s s s s s s s s s s s s s s      first, once each
//!   then        [- - - -]         [- - - -]    [- - - -]           coding_wnd symbols each, spread evenly
//!   at the end    [- - - - - - - -]                                twice as many with each further one
//!             [- - - - - - - - - - - - - - - -]
//! ```
//!
//! Short combinations are cheap to eliminate ([`SparseDecoder`]) and cheap to make; what they risk is to
//! fall where nothing is missing. Two things keep that small: the starts are spread evenly (a sequence of low discrepancy; section 3.1.5 wants a
//! permutation for the same reason), and near the end the window doubles with each packet (ibid.). Any decoder takes the combinations.
//!
//! A pure policy: what is missing and the loss are arguments.
//!
//! Requirement: U1, U2

mod decoder;

pub use decoder::SparseDecoder;

use ctcp_coding::SymbolRange;

use super::KeyedRange;

/// 2^32 divided by the golden ratio: multiples of it, taken modulo 2^32, divide the circle most evenly at any count.
const GOLDEN_STEP: u32 = 0x9E37_79B9;

/// What the sparse code sends next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SparseChoice {
    /// The symbol of this index, uncoded.
    Source(u64),
    /// A combination.
    Combination(KeyedRange),
}

/// The sender of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SparseCode {
    block: SymbolRange,
    next_source: u64,
    repairs: SparseRepairs,
}

impl SparseCode {
    /// `coding_window`: symbols in a combination, the thesis's `coding_wnd` (1 to the block's length, what is beyond counts as
    /// the bound); [`coding_window`] chooses one by the loss.
    #[must_use]
    pub fn new(block: SymbolRange, coding_window: u16) -> Self {
        Self { block, next_source: block.first(), repairs: SparseRepairs::new(coding_window) }
    }

    /// What to send when the receiver lacks `missing` degrees of freedom of the block, as far as the sender knows. `None` when all
    /// symbols were sent and none is missing.
    pub fn next(&mut self, missing: u16) -> Option<SparseChoice> {
        if self.next_source < self.block.end() {
            self.next_source += 1;
            return Some(SparseChoice::Source(self.next_source - 1));
        }
        (missing > 0).then(|| SparseChoice::Combination(self.repairs.next(self.block, missing)))
    }

    /// Symbols in the last combination, or in the first one before it is sent.
    #[must_use]
    pub fn coding_window(&self) -> u16 {
        self.repairs.coding_window.min(self.block.length())
    }

    /// The block that it sends.
    #[must_use]
    pub fn block(&self) -> SymbolRange {
        self.block
    }
}

/// The combinations of one block behind its symbols, for a sender that sends those by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SparseRepairs {
    coding_window: u16,
    next_key: u16,
    /// Middle of the last combination, in units of 2^-32 of the block.
    position: u32,
    /// The window doubles with each packet.
    is_near_end: bool,
}

impl SparseRepairs {
    /// `coding_window`: symbols in a combination, at least one.
    #[must_use]
    pub fn new(coding_window: u16) -> Self {
        Self { coding_window: coding_window.max(1), next_key: 0, position: 0, is_near_end: false }
    }

    /// The next combination when `missing` of them are wanted: of the symbols of `block`, which may have lost its beginning since the
    /// last one, or have grown.
    pub fn next(&mut self, block: SymbolRange, missing: u16) -> KeyedRange {
        let length = block.length();
        // The thesis speaks of a threshold and names none: here the window reaches the whole block with the last packet that
        // is missing, if none is lost. Earlier would make many combinations of the whole block, each dear to eliminate.
        let blocks = length.div_ceil(self.coding_window.min(length));
        let doublings = u32::from(blocks).next_power_of_two().ilog2();
        self.is_near_end |= u32::from(missing) <= doublings.max(1);
        if self.is_near_end {
            self.coding_window = self.coding_window.min(length).saturating_mul(2);
        }
        let key = self.next_key;
        self.next_key = key.wrapping_add(1);
        KeyedRange { range: self.next_range(block), key }
    }

    /// Middles are spread evenly over the block, and combinations at its ends are moved inside, so that every symbol has the
    /// same share of them.
    fn next_range(&mut self, block: SymbolRange) -> SymbolRange {
        self.position = self.position.wrapping_add(GOLDEN_STEP);
        let length = u64::from(block.length());
        let middle = (u64::from(self.position) * length) >> 32;
        let window = self.coding_window.min(block.length());
        let start = middle.saturating_sub(u64::from(window / 2)).min(length - u64::from(window));
        SymbolRange::new(block.first() + start, window).expect("it lies in the block")
    }
}

/// The coding window for a block of `length` symbols when the share `loss` of the packets is lost: 2 sqrt(length / loss),
/// at most the block.
///
/// Of the combinations each covers `coding_wnd` symbols, and about one comes on every 1/p symbols. How many losses lie before a
/// place in the block wanders off from its mean by up to sqrt(p n), which is what combinations of the neighbourhood must
/// make good, from a distance of sqrt(p n) / p = sqrt(n / p) symbols. The factor 2 is measured: see the test
/// `the_coding_window_by_loss_wastes_less_than_a_packet_a_block`. The thesis found its values by experiments that it does
/// not print.
///
/// Requirement: U2
#[must_use]
pub fn coding_window(length: u16, loss: f64) -> u16 {
    // Without loss nothing is combined; if something is, it should hit. A cast from a float saturates.
    let square = if loss > 0.0 { (4.0 * f64::from(length) / loss) as u64 } else { u64::MAX };
    u16::try_from(square.isqrt()).unwrap_or(u16::MAX).clamp(1, length.max(1))
}

#[cfg(test)]
mod tests;
