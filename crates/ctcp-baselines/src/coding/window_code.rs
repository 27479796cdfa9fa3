//! The source of TCP/NC, which combines all packets that are not yet acknowledged as seen.
//!
//! ```text
//!              oldest unseen                 next index
//!                    |                            |
//!   released ... ) [ s  s  s  s  s  s  s  s  s  s )      every combination spans the whole coding window
//! ```
//!
//! With each new symbol NUM grows by R, and floor(NUM) combinations are sent (section III-C). The receiver acknowledges
//! the oldest symbol that it has not *seen* ([`Decoder::oldest_unseen`](ctcp_coding::Decoder::oldest_unseen)), decoded
//! or not. The source releases all symbols below it
//! ([`Encoder::release_before`](ctcp_coding::Encoder::release_before)), because by Theorem 1 everything is decodable
//! once everything is seen.
//!
//! This is a pure policy: it holds a credit and the next key, but no symbols. A relay is a
//! [`Recoder`](ctcp_coding::Recoder) with its own [`CombinationCredit`].
//!
//! Requirement: N2

use ctcp_coding::{MAX_SPAN, SymbolRange};

use super::CombinationCredit;

/// Decides which combination a source of TCP/NC sends next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowCode {
    credit: CombinationCredit,
    next_key: u16,
}

/// A combination to send. `coefficients::generate` with the key gives its coefficients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyedRange {
    /// The symbols to combine.
    pub range: SymbolRange,
    /// A counter, so that 65536 combinations of one range have different keys.
    pub key: u16,
}

impl WindowCode {
    /// Creates a source that earns `redundancy` combinations per new symbol, the paper's R.
    #[must_use]
    pub fn new(redundancy: f64) -> Self {
        Self { credit: CombinationCredit::new(redundancy), next_key: 0 }
    }

    /// Changes R, for example after a new measurement of the loss ([`CombinationCredit::ratio_for`]).
    pub fn set_redundancy(&mut self, redundancy: f64) {
        self.credit.set_ratio(redundancy);
    }

    /// Counts a pushed or retransmitted symbol. Retransmissions earn as much, since otherwise a stalled flow would stay
    /// stalled.
    pub fn on_symbol(&mut self) {
        self.credit.on_packet();
    }

    /// Adds combinations that are due in addition, for example for symbols that a receiver is known to lack.
    pub fn add(&mut self, combinations: u64) {
        self.credit.add(combinations);
    }

    /// Returns the next combination of the symbols `[oldest_unseen, next_index)`, if one is due and the range is not
    /// empty.
    pub fn next(&mut self, oldest_unseen: u64, next_index: u64) -> Option<KeyedRange> {
        let due = self.due(oldest_unseen, next_index, MAX_SPAN)?;
        self.on_sent();
        Some(due)
    }

    /// Returns the next combination as [`Self::next`], with at most `span_max` symbols. It stays due until
    /// [`Self::on_sent`].
    ///
    /// If the window is longer than a combination may span, the combination covers its oldest part, which the receiver
    /// needs first.
    pub fn due(&mut self, oldest_unseen: u64, next_index: u64, span_max: u16) -> Option<KeyedRange> {
        let end = next_index.min(oldest_unseen.saturating_add(u64::from(span_max.min(MAX_SPAN))));
        let Some(range) = SymbolRange::from_bounds(oldest_unseen, end) else {
            // Everything is seen, so the credit earned for losses is not needed. Drop it, or it would cause a burst
            // later.
            while self.credit.take() {}
            return None;
        };
        self.credit.is_due().then_some(KeyedRange { range, key: self.next_key })
    }

    /// Records that the combination returned by [`Self::due`] was sent.
    pub fn on_sent(&mut self) {
        self.credit.take();
        self.next_key = self.next_key.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    // Requirement: N2
    #[test]
    fn each_symbol_earns_combinations_of_all_that_is_unseen() {
        let mut code = WindowCode::new(1.5);
        let mut sent = Vec::new();
        for index in 0..4 {
            code.on_symbol();
            let unseen = u64::from(index == 3);
            sent.extend(core::iter::from_fn(|| code.next(unseen, index + 1)));
        }
        let bounds: Vec<_> = sent.iter().map(|sent| (sent.range.first(), sent.range.end())).collect();
        assert_eq!(bounds, [(0, 1), (0, 2), (0, 2), (0, 3), (1, 4), (1, 4)]);
        assert!(sent.iter().map(|sent| sent.key).eq(0..6));
    }

    #[test]
    fn nothing_is_combined_when_all_is_seen_and_a_long_window_is_cut_at_its_newest_end() {
        let mut code = WindowCode::new(1.0);
        code.on_symbol();
        assert_eq!(code.next(7, 7), None);
        assert_eq!(code.next(7, 8), None, "credit that was not needed is dropped");
        code.on_symbol();
        let sent = code.next(7, 100_000).expect("one is due");
        assert_eq!(sent.range, SymbolRange::new(7, MAX_SPAN).expect("the longest"));
        assert_eq!(code.next(7, 100_000), None);
    }
}
