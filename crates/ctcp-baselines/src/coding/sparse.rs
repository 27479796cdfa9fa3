//! The thesis's sparse code: the symbols themselves, then combinations of at most `coding_wnd` consecutive ones.
//!
//! ```text
//!   block     s s s s s s s s s s s s s s s s s s s s s s s s      first, once each
//!   then        [- - - -]         [- - - -]    [- - - -]           coding_wnd symbols each, spread evenly
//!   at the end    [- - - - - - - -]                                the window doubles with each further one
//!             [- - - - - - - - - - - - - - - -]
//! ```
//!
//! Short combinations are cheap to make and to eliminate ([`SparseDecoder`]), but may fall where nothing is missing.
//! Two measures keep this risk small. The starts are spread evenly by a low-discrepancy sequence; section 3.1.5 uses a
//! permutation for the same reason. Near the end the window doubles with each packet (ibid.). Any decoder can decode
//! the combinations.
//!
//! This is a pure policy: the number of missing packets and the loss are arguments.
//!
//! Requirement: U1, U2

mod decoder;

pub use decoder::SparseDecoder;

use ctcp_coding::SymbolRange;

use super::KeyedRange;

/// 2^32 divided by the golden ratio. Its multiples modulo 2^32 divide the circle most evenly for any count.
const GOLDEN_STEP: u32 = 0x9E37_79B9;

/// The next packet of the sparse code.
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
    /// Creates the sender of `block`. `coding_window` is the number of symbols in a combination, the thesis's
    /// `coding_wnd`, clamped to 1..=the length of the block. The function [`coding_window`] chooses it by the loss.
    #[must_use]
    pub fn new(block: SymbolRange, coding_window: u16) -> Self {
        Self { block, next_source: block.first(), repairs: SparseRepairs::new(coding_window) }
    }

    /// Returns the next packet if, as far as the sender knows, the receiver lacks `missing` degrees of freedom of the
    /// block. Returns `None` if all symbols were sent and none is missing.
    pub fn next(&mut self, missing: u16) -> Option<SparseChoice> {
        if self.next_source < self.block.end() {
            self.next_source += 1;
            return Some(SparseChoice::Source(self.next_source - 1));
        }
        (missing > 0).then(|| SparseChoice::Combination(self.repairs.next(self.block, missing)))
    }

    /// Returns the number of symbols in the last combination, or in the first one before it is sent.
    #[must_use]
    pub fn coding_window(&self) -> u16 {
        self.repairs.coding_window.min(self.block.length())
    }

    /// Returns the block being sent.
    #[must_use]
    pub fn block(&self) -> SymbolRange {
        self.block
    }
}

/// The combinations of one block, for a sender that sends the symbols itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SparseRepairs {
    coding_window: u16,
    next_key: u16,
    /// Middle of the last combination, in units of 2^-32 of the block.
    position: u32,
    /// Whether the window doubles with each packet.
    is_near_end: bool,
}

impl SparseRepairs {
    /// Creates the repairs of a block. `coding_window` is the number of symbols in a combination, at least one.
    #[must_use]
    pub fn new(coding_window: u16) -> Self {
        Self { coding_window: coding_window.max(1), next_key: 0, position: 0, is_near_end: false }
    }

    /// Returns the next combination of symbols of `block`, when `missing` combinations are wanted. Since the last call
    /// the block may have lost symbols at its beginning or gained some at its end.
    pub fn next(&mut self, block: SymbolRange, missing: u16) -> KeyedRange {
        let length = block.length();
        // The thesis mentions a threshold but does not state it. Here the window covers the whole block with the last
        // missing packet, if no packet is lost. Doing so earlier would produce many combinations of the whole block,
        // which are expensive to eliminate.
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

    /// Middles are spread evenly over the block. Combinations at its ends are moved inside, so that every symbol is in
    /// about the same number of combinations.
    fn next_range(&mut self, block: SymbolRange) -> SymbolRange {
        self.position = self.position.wrapping_add(GOLDEN_STEP);
        let length = u64::from(block.length());
        let middle = (u64::from(self.position) * length) >> 32;
        let window = self.coding_window.min(block.length());
        let start = middle.saturating_sub(u64::from(window / 2)).min(length - u64::from(window));
        SymbolRange::new(block.first() + start, window).expect("it lies in the block")
    }
}

/// Returns the coding window for a block of `length` symbols when a share `loss` of the packets is lost: 2 sqrt(length
/// / loss), at most the block.
///
/// Each combination covers `coding_wnd` symbols, and there is about one combination per 1/p symbols. The number of
/// losses before a position in the block deviates from its mean by up to sqrt(p n). Combinations from up to sqrt(p n) /
/// p = sqrt(n / p) symbols away must compensate for that. The factor 2 is measured: see the test
/// `the_coding_window_by_loss_wastes_less_than_a_packet_per_block`. The thesis found its values in experiments that it
/// does not print.
///
/// Requirement: U2
#[must_use]
pub fn coding_window(length: u16, loss: f64) -> u16 {
    // Without loss there are normally no combinations; if there is one, it should span everything. The cast saturates.
    let square = if loss > 0.0 { (4.0 * f64::from(length) / loss) as u64 } else { u64::MAX };
    u16::try_from(square.isqrt()).unwrap_or(u16::MAX).clamp(1, length.max(1))
}

#[cfg(test)]
mod tests;
