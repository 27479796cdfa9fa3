//! Coding without coefficients and payload, for simulations. Every combination that can be innovative is innovative, as
//! the papers on the sliding window assume.
//!
//! ```text
//!   sender  -- symbol contents --> SymbolicChannel --> receiver      outside the simulated network
//!           == combination of [first, end), empty payload ==>        over the network: lost, late, reordered
//! ```
//!
//! The receiver counts. A combination that reaches beyond the oldest unseen symbol makes that symbol seen. When all
//! symbols heard of are seen, all are decoded. This equals elimination over an infinite field if every combination
//! begins at or before the oldest unseen symbol, which holds for a source of TCP/NC.
//!
//! A node inside the network that re-encodes ([`SymbolicRecoder`]) counts in the same way. It sends combinations of
//! everything it holds. They extend to the newest symbol it has heard of, but are innovative only for nodes that have
//! seen less.

mod recoder;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ctcp_coding::{Arrival, DecodeError, MissingInterval, SymbolRange};
use ctcp_proto::scheme::{Coding, Sent, SymbolDecoder, SymbolEncoder};
use ctcp_proto::{Role, SymbolIndex};

use recoder::Passing;
pub use recoder::SymbolicRecoder;

/// The number of symbols a simulated sender may be ahead of what is decoded. It exceeds the longest file, because a
/// stall of the sliding window can last for most of a file. On real links memory is the limit, but here the contents
/// are not stored in the endpoints.
const WINDOW: u32 = 1 << 26;

/// Carries the contents of symbols between the ends of a simulated connection. Both ends are configured with clones of
/// one channel.
#[derive(Clone, Debug, Default)]
pub struct SymbolicChannel {
    from_client: Arc<Mutex<Held>>,
    from_server: Arc<Mutex<Held>>,
}

/// What the channel holds of the symbols that one side sends.
#[derive(Debug, Default)]
struct Held {
    first: SymbolIndex,
    /// Contents that were sent and not yet taken.
    contents: VecDeque<Vec<u8>>,
    /// The combinations in datagrams, if a node inside the network needs them.
    passing: Option<Passing>,
    /// Combinations made by nodes that have arrived and that the receiver has not yet taken.
    arrived: VecDeque<SymbolicCombination>,
}

impl SymbolicChannel {
    fn side(&self, sender: Role) -> MutexGuard<'_, Held> {
        let side = if sender == Role::Client { &self.from_client } else { &self.from_server };
        side.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the next symbol of a side.
    pub(crate) fn push(&self, sender: Role, contents: &[u8]) {
        self.side(sender).contents.push_back(contents.to_vec());
    }

    /// Takes the contents of the next symbol of a side if it is before `end`. Each symbol is returned once.
    pub(crate) fn take_before(&self, sender: Role, end: SymbolIndex) -> Option<(SymbolIndex, Vec<u8>)> {
        let held = &mut *self.side(sender);
        let contents = if held.first < end { held.contents.pop_front() } else { None }?;
        held.first += 1;
        Some((held.first - 1, contents))
    }

    /// Handles a datagram that reaches the receiver of what `sender` sends. Returns whether a node inside the network
    /// made it.
    ///
    /// Such a datagram cannot be decrypted, but the decoder can now take its combination. The caller must call
    /// [`ctcp_proto::Connection::on_decoder_news`] instead of delivering the datagram.
    #[must_use]
    pub fn takes(&self, sender: Role, datagram: &[u8]) -> bool {
        let combination = self.made_by_node(sender, datagram);
        self.side(sender).arrived.extend(combination);
        combination.is_some()
    }
}

/// The information in a combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SymbolicCombination {
    /// The degrees of freedom of its sender. It is innovative for any receiver that has fewer.
    pub(crate) rank: u64,
    /// One past the newest symbol in it.
    pub(crate) end: SymbolIndex,
}

impl SymbolicCombination {
    /// Returns a source's combination of all symbols before `end`.
    pub(crate) fn of_source(end: SymbolIndex) -> Self {
        Self { rank: end, end }
    }
}

/// A decoder that counts degrees of freedom.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SymbolicDecoder {
    pub(crate) oldest_unseen: SymbolIndex,
    pub(crate) oldest_undecoded: SymbolIndex,
    /// One past the newest symbol heard of.
    pub(crate) known_end: SymbolIndex,
}

impl SymbolicDecoder {
    /// Handles a combination that begins at or before the oldest unseen symbol. Returns whether it is innovative.
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

    /// Returns a combination of everything received.
    pub(crate) fn combine(&self) -> SymbolicCombination {
        SymbolicCombination { rank: self.oldest_unseen, end: self.known_end }
    }
}

/// The sending side: symbols go into the channel, and combinations have no payload.
#[derive(Debug)]
struct Encoder {
    channel: SymbolicChannel,
    sender: Role,
    first: SymbolIndex,
    next: SymbolIndex,
}

/// The receiving side.
#[derive(Debug)]
struct Decoder {
    state: SymbolicDecoder,
    channel: SymbolicChannel,
    sender: Role,
    /// The contents returned last.
    contents: Vec<u8>,
}

impl Coding for SymbolicChannel {
    fn encoder(&self, role: Role) -> Box<dyn SymbolEncoder> {
        Box::new(Encoder { channel: self.clone(), sender: role, first: 0, next: 0 })
    }

    fn decoder(&self, role: Role) -> Box<dyn SymbolDecoder> {
        let state = SymbolicDecoder::default();
        Box::new(Decoder { state, channel: self.clone(), sender: role.peer(), contents: Vec::new() })
    }

    fn peer_window(&self) -> u64 {
        u64::from(WINDOW)
    }
}

impl SymbolEncoder for Encoder {
    fn push(&mut self, contents: &[u8]) -> SymbolIndex {
        self.channel.push(self.sender, contents);
        self.next += 1;
        self.next - 1
    }

    fn symbol(&self, _index: SymbolIndex) -> Option<&[u8]> {
        None
    }

    fn combine(&mut self, _range: SymbolRange, _density: u8, _key: u16, out: &mut Vec<u8>) -> bool {
        out.clear();
        true
    }

    fn release_before(&mut self, index: SymbolIndex) {
        self.first = self.first.max(index.min(self.next));
    }

    fn first(&self) -> SymbolIndex {
        self.first
    }

    fn next_index(&self) -> SymbolIndex {
        self.next
    }

    fn is_full(&self) -> bool {
        self.next - self.first >= u64::from(WINDOW)
    }

    fn window(&self) -> usize {
        WINDOW as usize
    }

    fn memory(&self) -> usize {
        0
    }

    fn on_sealed(&mut self, sent: &Sent, datagram: &[u8]) {
        let combination = SymbolicCombination::of_source(sent.first + u64::from(sent.length));
        self.channel.on_sealed(self.sender, datagram, combination);
    }
}

impl Decoder {
    fn take(&mut self, combination: SymbolicCombination) -> Arrival {
        if self.state.handle(combination) { Arrival::Innovative } else { Arrival::Redundant }
    }
}

impl SymbolDecoder for Decoder {
    fn handle_source(&mut self, _index: SymbolIndex, _contents: &[u8]) -> Result<Arrival, DecodeError> {
        Err(DecodeError::OutsideWindow)
    }

    fn handle_keyed(
        &mut self,
        range: SymbolRange,
        _density: u8,
        _key: u16,
        _payload: &[u8],
    ) -> Result<Arrival, DecodeError> {
        Ok(self.take(SymbolicCombination::of_source(range.end())))
    }

    fn handle_combination(
        &mut self,
        _range: SymbolRange,
        _coefficients: &[u8],
        _payload: &[u8],
    ) -> Result<Arrival, DecodeError> {
        Err(DecodeError::OutsideWindow)
    }

    fn take_news(&mut self) -> Option<Arrival> {
        let combination = self.channel.side(self.sender).arrived.pop_front()?;
        Some(self.take(combination))
    }

    fn poll_decoded(&mut self) -> Option<(SymbolIndex, &[u8])> {
        let (index, contents) = self.channel.take_before(self.sender, self.state.oldest_undecoded)?;
        self.contents = contents;
        Some((index, &self.contents))
    }

    fn release_before(&mut self, _index: SymbolIndex) {}

    fn oldest_undecoded(&self) -> SymbolIndex {
        self.state.oldest_undecoded
    }

    fn oldest_unseen(&self) -> SymbolIndex {
        self.state.oldest_unseen
    }

    fn known_end(&self) -> SymbolIndex {
        self.state.known_end
    }

    fn undecodable_intervals(&self, _limit: usize, _intervals: &mut Vec<MissingInterval>) -> SymbolIndex {
        self.state.oldest_undecoded
    }

    fn memory(&self) -> usize {
        0
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
    fn a_re_encoding_node_conveys_no_more_than_it_has_received() {
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
    fn contents_are_returned_once_in_order_and_separately_for_each_side() {
        let channel = SymbolicChannel::default();
        for byte in 0..3 {
            channel.push(Role::Client, &[byte]);
        }
        let take = |sender, end| channel.take_before(sender, end);
        assert_eq!(take(Role::Server, 3), None);
        assert_eq!([take(Role::Client, 2), take(Role::Client, 2)], [Some((0, vec![0])), Some((1, vec![1]))]);
        assert_eq!(take(Role::Client, 2), None);
        assert_eq!([take(Role::Client, 9), take(Role::Client, 9)], [Some((2, vec![2])), None]);
    }
}
