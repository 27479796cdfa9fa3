//! Combinations in pieces: symbols made for larger datagrams than the path carries now stay repairable
//! (PROTOCOL.md section 4.3).
//!
//! ```text
//!   combination    [ 0 ........................ 1427 ]      too long for a datagram of 1200 bytes
//!   SEGMENTs       [ 0 ........ 1146 ][ 1147 .. 1427 ]      one a packet, each with what identifies the whole
//! ```
//!
//! A piece is cut when its packet is built, so the datagram may shrink again on the way. A lost piece is not
//! repaired as such: the combination then never arrives and the code makes another, as for any lost packet. Only a
//! repeated symbol is cut into pieces of the same combination each time, and what arrived of it before counts.

use std::collections::VecDeque;

use super::{Choice, Sent};
use crate::id::SymbolIndex;
use crate::wire::{DatagramBuilder, Frame};

/// Combinations put together at a time. The sender finishes one before it begins the next, so what is older has
/// lost a piece; that many repeated symbols may wait for theirs. With the largest symbols it is a megabyte.
const INCOMPLETE_MAX: usize = 32;

/// Fewest bytes of a combination worth a packet, unless it is the end.
const PIECE_MIN: usize = 64;

/// What a combination is: two with the same identity have the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) first: SymbolIndex,
    pub(super) length: u16,
    pub(super) density: u8,
    pub(super) key: u16,
}

/// What a packet holds of a combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of it.
    Whole,
    /// A piece that others follow.
    Piece,
    /// The last piece.
    LastPiece,
}

/// The combination that leaves in pieces now.
#[derive(Debug)]
pub(super) struct Outgoing {
    choice: Choice,
    identity: Identity,
    /// The promise of the time when it was made; a later one would only say more.
    floor: SymbolIndex,
    /// For the code's own count.
    sent: Sent,
    bytes: Vec<u8>,
    /// So many of them have left.
    offset: usize,
}

/// Combinations of which not every piece has arrived yet, oldest first.
#[derive(Debug, Default)]
pub(super) struct Incomplete {
    combinations: VecDeque<Partial>,
}

#[derive(Debug)]
struct Partial {
    identity: Identity,
    bytes: Vec<u8>,
    has_arrived: Vec<bool>,
    missing: usize,
}

/// Pieces of one combination disagree about its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contradiction;

impl Identity {
    /// One past the last symbol.
    pub(super) fn end(&self) -> SymbolIndex {
        self.first + u64::from(self.length)
    }
}

impl Outgoing {
    /// All `bytes` of what `choice` asked for, at most as many as the largest symbol has.
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

    /// Writes what fits of the rest; `None` when that is too little to be worth it.
    pub(super) fn write_piece(&mut self, builder: &mut DatagramBuilder) -> Option<Part> {
        let rest = self.bytes.len() - self.offset;
        let room = builder.remaining().saturating_sub(self.segment(0).encoded_length());
        let length = rest.min(room);
        if length < rest.min(PIECE_MIN) {
            return None;
        }
        builder.write(&self.segment(length));
        self.offset += length;
        Some(if length == rest { Part::LastPiece } else { Part::Piece })
    }

    /// The memory, to be used again.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn segment(&self, length: usize) -> Frame<'_> {
        let Identity { first, length: symbols, density, key } = self.identity;
        let narrow = |bytes| u16::try_from(bytes).expect("a symbol has at most 16384 bytes");
        Frame::Segment {
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
    /// Takes a piece that lies within `total` bytes. The combination when nothing of it is missing any more.
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
        if partial.bytes.len() != total {
            return Err(Contradiction);
        }
        partial.insert(offset, piece);
        if partial.missing > 0 {
            return Ok(None);
        }
        Ok(self.combinations.remove(position).map(|partial| partial.bytes))
    }

    /// Forgets combinations of symbols below `index` only: they are known.
    pub(super) fn release_before(&mut self, index: SymbolIndex) {
        self.combinations.retain(|partial| partial.identity.end() > index);
    }

    /// Makes room and returns the position of the new combination.
    fn begin(&mut self, identity: Identity, total: usize) -> usize {
        if self.combinations.len() >= INCOMPLETE_MAX {
            self.combinations.pop_front();
        }
        let (bytes, has_arrived) = (vec![0; total], vec![false; total]);
        self.combinations.push_back(Partial { identity, bytes, has_arrived, missing: total });
        self.combinations.len() - 1
    }
}

impl Partial {
    fn insert(&mut self, offset: usize, piece: &[u8]) {
        let places = self.bytes.iter_mut().zip(&mut self.has_arrived).skip(offset);
        for ((place, has_arrived), &byte) in places.zip(piece) {
            *place = byte;
            self.missing -= usize::from(!*has_arrived);
            *has_arrived = true;
        }
    }
}

#[cfg(test)]
mod tests;
