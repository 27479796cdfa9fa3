//! Coding without coefficients and payload, for simulations: every combination that can tell something new does, as the papers on
//! the sliding window assume.
//!
//! ```text
//!   sender  -- symbol contents --> SymbolicChannel --> receiver      beside the simulated network
//!           == combination of [first, end), empty payload ==>        over it: lost, late, in whatever order
//! ```
//!
//! The receiver counts: a combination that reaches beyond the oldest symbol not seen makes that one seen, and when all symbols
//! heard of are seen, all are decoded. This is what elimination comes to over an infinite field when every combination begins
//! at or before the oldest symbol not seen, which is so for a source of TCP/NC.
//!
//! A node on the way that re-encodes ([`recoder`]) counts in the same way. What it sends is a combination of all that it holds, which
//! reaches as far as what it has heard of, but tells something new only to those who have seen less than it has.

mod recoder;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::id::{Role, SymbolIndex};
use recoder::Passing;
pub use recoder::SymbolicRecoder;

/// Carries contents of symbols from one end of a simulated connection to the other. Both ends are configured with clones of one.
#[derive(Clone, Debug, Default)]
pub struct SymbolicChannel {
    from_client: Arc<Mutex<Held>>,
    from_server: Arc<Mutex<Held>>,
}

/// What is known beside the network of what one side sends.
#[derive(Debug, Default)]
struct Held {
    first: SymbolIndex,
    /// Contents that were sent and not taken.
    contents: VecDeque<Vec<u8>>,
    /// What datagrams carry, if a node on the way asks.
    passing: Option<Passing>,
}

impl SymbolicChannel {
    fn side(&self, sender: Role) -> MutexGuard<'_, Held> {
        let side = if sender == Role::Client { &self.from_client } else { &self.from_server };
        side.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next symbol of a side.
    pub(crate) fn push(&self, sender: Role, contents: &[u8]) {
        self.side(sender).contents.push_back(contents.to_vec());
    }

    /// The contents of the next symbols of a side, up to `end`, each once.
    pub(crate) fn take_before(&self, sender: Role, end: SymbolIndex) -> Vec<Vec<u8>> {
        let held = &mut *self.side(sender);
        let count = usize::try_from(end.saturating_sub(held.first)).unwrap_or(usize::MAX);
        let count = count.min(held.contents.len());
        held.first += count as u64;
        held.contents.drain(..count).collect()
    }
}

/// What a combination can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SymbolicCombination {
    /// How many degrees of freedom its sender had: it is innovative for whoever has fewer.
    pub(crate) rank: u64,
    /// One past the newest symbol in it.
    pub(crate) end: SymbolIndex,
}

impl SymbolicCombination {
    /// A source's, of the symbols before `end`, all of which it has.
    pub(crate) fn of_source(end: SymbolIndex) -> Self {
        Self { rank: end, end }
    }
}

/// Counts degrees of freedom.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SymbolicDecoder {
    pub(crate) oldest_unseen: SymbolIndex,
    pub(crate) oldest_undecoded: SymbolIndex,
    /// One past the newest symbol heard of.
    pub(crate) known_end: SymbolIndex,
}

impl SymbolicDecoder {
    /// Takes a combination that begins at the oldest symbol not seen or before. True when it is innovative.
    pub(crate) fn handle(&mut self, combination: SymbolicCombination) -> bool {
        self.known_end = self.known_end.max(combination.end);
        if combination.rank <= self.oldest_unseen {
            return false;
        }
        self.oldest_unseen += 1;
        if self.oldest_unseen == self.known_end {
            self.oldest_undecoded = self.known_end;
        }
        true
    }

    /// A combination of everything that was received.
    pub(crate) fn combine(&self) -> SymbolicCombination {
        SymbolicCombination { rank: self.oldest_unseen, end: self.known_end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_is_seen_for_each_combination_and_all_are_decoded_when_all_are_seen() {
        let mut decoder = SymbolicDecoder::default();
        let mut after = |end| {
            let is_innovative = decoder.handle(SymbolicCombination::of_source(end));
            (is_innovative, decoder.oldest_unseen, decoder.oldest_undecoded)
        };
        assert_eq!(after(1), (true, 1, 1));
        assert_eq!(after(1), (false, 1, 1));
        assert_eq!(after(4), (true, 2, 1));
        assert_eq!(after(3), (true, 3, 1));
        assert_eq!(after(3), (false, 3, 1));
        assert_eq!(after(4), (true, 4, 4));
    }

    // Requirement: N5
    #[test]
    fn whoever_re_encodes_tells_as_much_as_it_has_received_and_no_more() {
        let (mut node, mut sink) = (SymbolicDecoder::default(), SymbolicDecoder::default());
        for end in [2, 5] {
            assert!(node.handle(SymbolicCombination::of_source(end)));
        }
        assert_eq!(node.combine(), SymbolicCombination { rank: 2, end: 5 });
        assert!(sink.handle(node.combine()) && sink.handle(node.combine()));
        assert!(!sink.handle(node.combine()), "the node has two degrees of freedom");
        assert_eq!((sink.oldest_unseen, sink.oldest_undecoded, sink.known_end), (2, 0, 5));
    }

    #[test]
    fn contents_come_once_in_order_and_each_side_has_its_own() {
        let channel = SymbolicChannel::default();
        for byte in 0..3 {
            channel.push(Role::Client, &[byte]);
        }
        assert_eq!(channel.take_before(Role::Server, 3), Vec::<Vec<u8>>::new());
        assert_eq!(channel.take_before(Role::Client, 2), [[0], [1]]);
        assert_eq!(channel.take_before(Role::Client, 2), Vec::<Vec<u8>>::new());
        assert_eq!(channel.take_before(Role::Client, 9), [[2]]);
    }
}
