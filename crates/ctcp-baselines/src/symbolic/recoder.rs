//! A node inside the network that re-encodes, in symbolic coding (TCP/NC sections VI-A and VI-B).
//!
//! ```text
//!   source -- sealed datagram --> recoder -- the same datagram --------------> sink
//!      |                            |  \---- R_int - 1 more per datagram ------> |
//!      +-- tag: combination ------->+--------- tag: combination --------------->+      SymbolicChannel
//! ```
//!
//! Such a node can neither decrypt nor encrypt a datagram. The channel tells it the combination in a datagram, which it
//! identifies by its last bytes. A datagram made by the node is a copy of one that passed, with other last bytes, and
//! the channel tells the sink its combination. On the links it counts like any other datagram, but it cannot be
//! decrypted and is useless without the channel.
//!
//! The datagram that passes counts as the first of the R_int combinations.

use std::collections::{BTreeMap, VecDeque};

use crate::coding::CombinationCredit;

use super::{SymbolicChannel, SymbolicCombination, SymbolicDecoder};
use ctcp_proto::{Ratio, Role};

/// Bytes at the end of a datagram that identify it: the tag of the packet protection.
const TAG_SIZE: usize = 16;
/// The maximum number of datagrams remembered, far more than are in flight at once.
const PASSING_MAX: usize = 1 << 14;

/// The combinations in datagrams.
#[derive(Debug, Default)]
pub(super) struct Passing {
    by_tag: BTreeMap<u128, Carried>,
    /// Tags, oldest first.
    order: VecDeque<u128>,
    /// Number of datagrams that nodes have made.
    made: u128,
}

#[derive(Clone, Copy, Debug)]
struct Carried {
    combination: SymbolicCombination,
    /// Whether a node made it, so that the source's packet protection does not know it.
    is_made: bool,
}

impl Passing {
    fn insert(&mut self, tag: u128, carried: Carried) {
        self.by_tag.insert(tag, carried);
        self.order.push_back(tag);
        if self.order.len() > PASSING_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_tag.remove(&oldest);
        }
    }
}

impl SymbolicChannel {
    /// Records that a side has sealed a datagram with a combination.
    pub(crate) fn on_sealed(&self, sender: Role, datagram: &[u8], combination: SymbolicCombination) {
        if let (Some(passing), Some(tag)) = (&mut self.side(sender).passing, tag(datagram)) {
            passing.insert(tag, Carried { combination, is_made: false });
        }
    }

    /// Returns the combination in a datagram that a node made from what this side sent.
    pub(crate) fn made_by_node(&self, sender: Role, datagram: &[u8]) -> Option<SymbolicCombination> {
        let side = self.side(sender);
        let carried = side.passing.as_ref()?.by_tag.get(&tag(datagram)?)?;
        carried.is_made.then_some(carried.combination)
    }
}

/// A node that re-encodes what one side of a connection sends.
#[derive(Debug)]
pub struct SymbolicRecoder {
    channel: SymbolicChannel,
    decoder: SymbolicDecoder,
    credit: CombinationCredit,
}

impl SymbolicRecoder {
    /// Creates a node that sends `ratio` (R_int) combinations for each one from the client of this channel's
    /// connection. It must be created before anything is sent.
    #[must_use]
    pub fn new(channel: &SymbolicChannel, ratio: Ratio) -> Self {
        channel.side(Role::Client).passing.get_or_insert_default();
        let credit = CombinationCredit::new(ratio.value().unwrap_or(1.0));
        Self { channel: channel.clone(), decoder: SymbolicDecoder::default(), credit }
    }

    /// Handles a passing datagram. Returns the datagrams to send after it.
    pub fn on_datagram(&mut self, datagram: &[u8]) -> Vec<Vec<u8>> {
        let mut side = self.channel.side(Role::Client);
        let Some(passing) = &mut side.passing else { return Vec::new() };
        let Some(carried) = tag(datagram).and_then(|tag| passing.by_tag.get(&tag).copied()) else {
            return Vec::new();
        };
        self.decoder.handle(carried.combination);
        self.credit.on_packet();
        // The datagram itself counts as one.
        self.credit.take();
        let mut made = Vec::new();
        while self.credit.take() {
            let carried = Carried { combination: self.decoder.combine(), is_made: true };
            passing.made += 1;
            // The tag of a sealed packet is as small as this only with a probability of 2^-64.
            let (tag, mut copy) = (passing.made, datagram.to_vec());
            let place = copy.len() - TAG_SIZE;
            copy[place..].copy_from_slice(&tag.to_be_bytes());
            passing.insert(tag, carried);
            made.push(copy);
        }
        made
    }
}

/// Returns the last bytes of a datagram.
fn tag(datagram: &[u8]) -> Option<u128> {
    datagram.last_chunk().map(|bytes: &[u8; TAG_SIZE]| u128::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Requirement: N5
    #[test]
    fn a_node_sends_r_int_datagrams_per_known_datagram_and_none_for_others() {
        let channel = SymbolicChannel::default();
        let mut node = SymbolicRecoder::new(&channel, Ratio::new(1.5).expect("at least 1"));
        let mut made = Vec::new();
        for number in 1..=4_u64 {
            let datagram = [number as u8 + 100; 40];
            channel.on_sealed(Role::Client, &datagram, SymbolicCombination::of_source(number));
            made.extend(node.on_datagram(&datagram));
            assert_eq!(channel.made_by_node(Role::Client, &datagram), None, "the source made it");
        }
        assert_eq!(made.len(), 2);
        for (datagram, rank) in made.iter().zip([2, 4]) {
            assert_eq!(datagram.len(), 40);
            let combination = channel.made_by_node(Role::Client, datagram);
            assert_eq!(combination, Some(SymbolicCombination { rank, end: rank }));
        }
        assert!(node.on_datagram(&[7; 40]).is_empty() && node.on_datagram(&[]).is_empty());
    }

    #[test]
    fn old_datagrams_are_forgotten() {
        let channel = SymbolicChannel::default();
        let mut node = SymbolicRecoder::new(&channel, Ratio::new(2.0).expect("at least 1"));
        let datagram = |number: usize| [&[1; 8][..], &number.to_be_bytes(), &[1; 8]].concat();
        for number in 0..=PASSING_MAX {
            channel.on_sealed(Role::Client, &datagram(number), SymbolicCombination::of_source(1));
        }
        assert!(node.on_datagram(&datagram(0)).is_empty());
        assert_eq!(node.on_datagram(&datagram(1)).len(), 1);
    }
}
