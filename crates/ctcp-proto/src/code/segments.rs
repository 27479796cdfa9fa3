//! Segmentation of combinations: symbols made for larger datagrams than the path carries now remain repairable (PROTOCOL.md section 4.4).
//!
//! ```text
//!   combination    [ 0 ........................ 1427 ]      too long for a datagram of 1200 bytes
//!   SEGMENTs       [ 0 ........ 1146 ][ 1147 .. 1427 ]      one per packet, each with the identity of the whole
//! ```
//!
//! A segment is cut when its packet is built, so the datagram size may shrink further in between. A lost segment is not repaired as such:
//! the combination is then incomplete, and the code sends another one, as for any lost packet. Only a repeated symbol has the same identity
//! each time, so segments of it that arrived before count.

use std::collections::VecDeque;

use super::{Choice, Sent};
use crate::id::{ContextId, SymbolIndex};
use crate::pieces::Pieces;
use crate::wire::{Combination, DatagramBuilder, Frame};

/// Maximum number of incomplete combinations. The sender finishes one before it begins the next, so older ones have lost a segment.
/// Repeated symbols among them may still be completed. With the largest symbols this takes half a megabyte for the bytes and as much for
/// their flags.
const INCOMPLETE_MAX: usize = 32;

/// Minimum number of bytes of a combination in a segment, unless it is the last one.
const PIECE_MIN: usize = 64;

/// Identifies a combination: two with the same identity have the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) first: SymbolIndex,
    pub(super) length: u16,
    pub(super) density: u8,
    pub(super) key: u16,
}

/// How much of a combination a packet holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of it.
    Whole,
    /// A segment that others follow.
    Piece,
    /// The last segment.
    LastPiece,
    /// A copy of a symbol that was sent on another path. The scheme does not count it, since both copies may be lost together with what
    /// follows them.
    Copy,
}

/// The combination that is being sent in segments.
#[derive(Debug)]
pub(super) struct Outgoing {
    choice: Choice,
    identity: Identity,
    /// The floor when the combination was made. The floor only rises, so it stays valid.
    floor: SymbolIndex,
    /// What the code recorded as sent.
    sent: Sent,
    bytes: Vec<u8>,
    /// Number of bytes sent.
    offset: usize,
}

/// Combinations of which some segments are missing, oldest first.
#[derive(Debug, Default)]
pub(super) struct Incomplete {
    combinations: VecDeque<Partial>,
}

#[derive(Debug)]
struct Partial {
    identity: Identity,
    pieces: Pieces,
}

/// Segments of one combination disagree about its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contradiction;

impl Identity {
    /// One past the last symbol.
    pub(super) fn end(&self) -> SymbolIndex {
        self.first + u64::from(self.length)
    }
}

impl Outgoing {
    /// `bytes` is the whole combination for `choice`, at most as long as the largest symbol.
    pub(super) fn new(
        choice: Choice,
        identity: Identity,
        floor: SymbolIndex,
        sent: Sent,
        bytes: Vec<u8>,
    ) -> Self {
        Self { choice, identity, floor, sent, bytes, offset: 0 }
    }

    pub(super) fn choice(&self) -> Choice {
        self.choice
    }

    pub(super) fn first(&self) -> SymbolIndex {
        self.identity.first
    }

    pub(super) fn sent(&self) -> Sent {
        self.sent
    }

    /// Writes the next segment. Returns `None` if too little of it would fit.
    pub(super) fn write_piece(&mut self, context: ContextId, builder: &mut DatagramBuilder) -> Option<Part> {
        let rest = self.bytes.len() - self.offset;
        let room =
            builder.remaining().saturating_sub(Frame::Combination(context, self.segment(0)).encoded_length());
        let length = rest.min(room);
        if length < rest.min(PIECE_MIN) {
            return None;
        }
        builder.write(&Frame::Combination(context, self.segment(length)));
        self.offset += length;
        Some(if length == rest { Part::LastPiece } else { Part::Piece })
    }

    /// Returns the buffer for reuse.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn segment(&self, length: usize) -> Combination<'_> {
        let Identity { first, length: symbols, density, key } = self.identity;
        let narrow = |bytes| u16::try_from(bytes).expect("a symbol has at most 16384 bytes");
        Combination::Segment {
            first,
            length: symbols,
            density,
            key,
            floor: self.floor,
            offset: narrow(self.offset),
            total: narrow(self.bytes.len()),
            piece: &self.bytes[self.offset..self.offset + length],
        }
    }
}

impl Incomplete {
    /// Inserts a segment that lies within `total` bytes. Returns the combination once it is complete.
    pub(super) fn insert(
        &mut self,
        identity: Identity,
        offset: usize,
        total: usize,
        piece: &[u8],
    ) -> Result<Option<Vec<u8>>, Contradiction> {
        let known = self.combinations.iter().position(|partial| partial.identity == identity);
        let position = known.unwrap_or_else(|| self.begin(identity, total));
        let Some(partial) = self.combinations.get_mut(position) else { return Ok(None) };
        if partial.pieces.total() != total {
            return Err(Contradiction);
        }
        partial.pieces.insert(offset, piece);
        if !partial.pieces.is_complete() {
            return Ok(None);
        }
        Ok(self.combinations.remove(position).map(|partial| partial.pieces.into_bytes()))
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        self.combinations.iter().map(|partial| Pieces::memory_of(partial.pieces.total())).sum()
    }

    /// Removes combinations that contain only symbols below `index`, which are decoded.
    pub(super) fn release_before(&mut self, index: SymbolIndex) {
        self.combinations.retain(|partial| partial.identity.end() > index);
    }

    /// Adds a new combination, removing the oldest if necessary, and returns its position.
    fn begin(&mut self, identity: Identity, total: usize) -> usize {
        if self.combinations.len() >= INCOMPLETE_MAX {
            self.combinations.pop_front();
        }
        self.combinations.push_back(Partial { identity, pieces: Pieces::new(total) });
        self.combinations.len() - 1
    }
}

#[cfg(test)]
mod tests;
