//! The content of a symbol in the context of messages: fragments of messages (PROTOCOL.md section 5.1).
//!
//! ```text
//!  | content length (16) | fragment | fragment | ... | zeros to the symbol's size |
//!                        |<--- content length --->|
//!  fragment:  0 0 0 1 0 0 0 P | message | [total | offset] | length | bytes         all numbers are varints
//!             P: a part of a message of `total` bytes, else all of it
//! ```
//!
//! Invariant of every parsed fragment: `offset + length <= total <= MESSAGE_SIZE_MAX`.

use crate::wire::Malformed;
use crate::wire::symbol::{CONTENT_LENGTH_BYTES, content_of};
use crate::wire::varint::{Reader, varint_length, write_varint};

const FRAGMENT: u8 = 0x10;
const PART: u8 = 0x01;

/// The longest message in bytes. A datagram of UDP (65,507 bytes) with an address fits.
pub const MESSAGE_SIZE_MAX: usize = 65_535;

/// A part of a message, or all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// The number of the message, from 0 in the order in which they are first sent.
    pub message: u64,
    /// The length of the message in bytes.
    pub total: usize,
    /// Where the bytes begin in the message.
    pub offset: usize,
    /// The bytes.
    pub data: &'a [u8],
}

impl<'a> Fragment<'a> {
    fn parse(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let first = reader.u8()?;
        if first & !PART != FRAGMENT {
            return Err(Malformed::new("not a fragment of a message in a symbol"));
        }
        let message = reader.varint()?;
        let place = if first & PART != 0 { Some((reader.varint()?, reader.varint()?)) } else { None };
        let data = reader.prefixed()?;
        let length = data.len() as u64;
        let (total, offset) = place.unwrap_or((length, 0));
        if total > MESSAGE_SIZE_MAX as u64 || offset > total || length > total - offset {
            return Err(Malformed::new("fragment beyond its message, or of one too long"));
        }
        Ok(Self { message, total: total as usize, offset: offset as usize, data })
    }

    /// Whether this is all of the message.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.data.len() == self.total
    }
}

/// Iterates over the fragments in a decoded symbol, which must have its whole content. The iterator ends after an error.
///
/// # Errors
/// Returns an error if the symbol is shorter than its content, or if other bytes than zeros follow the content.
pub fn fragments_in_symbol(symbol: &[u8]) -> Result<Fragments<'_>, Malformed> {
    content_of(symbol).map(|content| Fragments { reader: Reader::new(content) })
}

/// Iterator returned by [`fragments_in_symbol`].
#[derive(Clone, Debug)]
pub struct Fragments<'a> {
    reader: Reader<'a>,
}

impl<'a> Iterator for Fragments<'a> {
    type Item = Result<Fragment<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let fragment = Fragment::parse(&mut self.reader);
        if fragment.is_err() {
            self.reader = Reader::new(&[]);
        }
        Some(fragment)
    }
}

/// Builds a symbol of fragments.
#[derive(Debug)]
pub struct FragmentBuilder {
    bytes: Vec<u8>,
    capacity: usize,
}

impl FragmentBuilder {
    /// An empty symbol that can grow to `capacity` bytes. It reuses the memory of `bytes`, which are cleared.
    #[must_use]
    pub fn reusing(mut bytes: Vec<u8>, capacity: usize) -> Self {
        bytes.clear();
        bytes.resize(CONTENT_LENGTH_BYTES, 0);
        Self { bytes, capacity: capacity.min(CONTENT_LENGTH_BYTES + usize::from(u16::MAX)) }
    }

    /// Whether nothing was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == CONTENT_LENGTH_BYTES
    }

    /// Whether a symbol of `capacity` bytes holds a whole message of `total` bytes.
    #[must_use]
    pub fn holds_whole(capacity: usize, message: u64, total: usize) -> bool {
        CONTENT_LENGTH_BYTES + whole_length(message, total) <= capacity
    }

    /// How many bytes of a message of `total` bytes fit from `offset` on. `None` if not even the header of the fragment fits.
    #[must_use]
    pub fn room_for(&self, message: u64, total: usize, offset: usize) -> Option<usize> {
        let room = self.capacity.checked_sub(self.bytes.len())?;
        if offset == 0 && whole_length(message, total) <= room {
            return Some(total);
        }
        let length = |bytes: usize| varint_length(bytes as u64);
        let head = 1 + varint_length(message) + length(total) + length(offset);
        let data = room.checked_sub(head + length(total))?;
        Some(data.min(total - offset))
    }

    /// Appends a fragment for which [`Self::room_for`] found room.
    ///
    /// # Panics
    /// Panics if the fragment does not fit.
    pub fn push(&mut self, fragment: Fragment<'_>) {
        let Fragment { message, total, offset, data } = fragment;
        let part = if fragment.is_whole() { 0 } else { PART };
        self.bytes.push(FRAGMENT | part);
        write_varint(&mut self.bytes, message);
        if part != 0 {
            write_varint(&mut self.bytes, total as u64);
            write_varint(&mut self.bytes, offset as u64);
        }
        write_varint(&mut self.bytes, data.len() as u64);
        self.bytes.extend_from_slice(data);
        assert!(self.bytes.len() <= self.capacity, "the fragment does not fit");
    }

    /// The symbol: length and content.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        let content = self.bytes.len() - CONTENT_LENGTH_BYTES;
        self.bytes[..CONTENT_LENGTH_BYTES].copy_from_slice(&(content as u16).to_be_bytes());
        self.bytes
    }
}

/// Bytes of the fragment that holds all of a message.
fn whole_length(message: u64, total: usize) -> usize {
    1 + varint_length(message) + varint_length(total as u64) + total
}

#[cfg(test)]
mod tests;
