//! The content of a source symbol: stream frames (PROTOCOL.md section 5).
//!
//! ```text
//!  | content length (16) | stream frame | stream frame | ... | zeros to the symbol's size |
//!                        |<------- content length --------->|
//!  stream frame:  0 0 0 0 1 O L F | stream | [offset] | [length] | bytes        all numbers are varints
//!                 O: an offset follows, else it is 0      L: a length follows, else to the end of the content
//!                 F: the stream ends after these bytes
//! ```
//!
//! Invariant of every parsed frame: `offset + data length <= VARINT_MAX`.

use crate::id::StreamId;
use crate::wire::Malformed;
use crate::wire::varint::{Reader, VARINT_MAX, varint_length, write_varint};

const STREAM: u8 = 0x08;
const OFFSET: u8 = 0x04;
const LENGTH: u8 = 0x02;
const FIN: u8 = 0x01;

/// Length of the content length field.
pub(super) const CONTENT_LENGTH_BYTES: usize = 2;

/// A range of bytes of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamFrame<'a> {
    /// The stream.
    pub id: StreamId,
    /// Where the data begins in the stream, in bytes.
    pub offset: u64,
    /// The data.
    pub data: &'a [u8],
    /// Whether the stream ends after the data.
    pub fin: bool,
}

impl<'a> StreamFrame<'a> {
    fn parse(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let first = reader.u8()?;
        if first & !(OFFSET | LENGTH | FIN) != STREAM {
            return Err(Malformed::new("not a stream frame in a symbol"));
        }
        let id = StreamId(reader.varint()?);
        let offset = if first & OFFSET != 0 { reader.varint()? } else { 0 };
        let data = if first & LENGTH != 0 { reader.prefixed()? } else { reader.rest() };
        if offset > VARINT_MAX - data.len() as u64 {
            return Err(Malformed::new("stream bytes beyond the last offset"));
        }
        Ok(Self { id, offset, data, fin: first & FIN != 0 })
    }
}

/// Iterates over the stream frames of a decoded symbol. The symbol must have its full size or at least its whole content; the decoder
/// restores the zeros that were not sent. The iterator ends after an error.
///
/// # Errors
/// Returns an error if the symbol is shorter than its content, or if other bytes than zeros follow the content.
pub fn frames_in_symbol(symbol: &[u8]) -> Result<StreamFrames<'_>, Malformed> {
    content_of(symbol).map(|content| StreamFrames { reader: Reader::new(content) })
}

/// The content of a symbol that has at least its whole content.
pub(super) fn content_of(symbol: &[u8]) -> Result<&[u8], Malformed> {
    let mut reader = Reader::new(symbol);
    let length = usize::from(reader.u16()?);
    let content = reader.bytes(length)?;
    if reader.rest().iter().any(|&byte| byte != 0) {
        return Err(Malformed::new("bytes after the content of a symbol"));
    }
    Ok(content)
}

/// Iterator returned by [`frames_in_symbol`].
#[derive(Clone, Debug)]
pub struct StreamFrames<'a> {
    reader: Reader<'a>,
}

impl<'a> Iterator for StreamFrames<'a> {
    type Item = Result<StreamFrame<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let frame = StreamFrame::parse(&mut self.reader);
        if frame.is_err() {
            self.reader = Reader::new(&[]);
        }
        Some(frame)
    }
}

/// Builds a symbol.
#[derive(Debug)]
pub struct SymbolBuilder {
    bytes: Vec<u8>,
    capacity: usize,
    /// The last frame extends to the end of the content.
    is_closed: bool,
}

impl SymbolBuilder {
    /// An empty symbol that can grow to `capacity` bytes, its length field included.
    ///
    /// # Panics
    /// Panics if `capacity` cannot hold the length field or exceeds what it can express.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self::reusing(Vec::with_capacity(capacity), capacity)
    }

    /// Like [`SymbolBuilder::new`], but reuses the memory of `bytes`, which are cleared.
    ///
    /// # Panics
    /// Panics as [`SymbolBuilder::new`] does.
    #[must_use]
    pub fn reusing(mut bytes: Vec<u8>, capacity: usize) -> Self {
        assert!((CONTENT_LENGTH_BYTES..=CONTENT_LENGTH_BYTES + usize::from(u16::MAX)).contains(&capacity));
        bytes.clear();
        bytes.resize(CONTENT_LENGTH_BYTES, 0);
        Self { bytes, capacity, is_closed: false }
    }

    /// Whether no frame was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == CONTENT_LENGTH_BYTES
    }

    /// The number of bytes left for further frames, headers included.
    #[must_use]
    pub fn remaining(&self) -> usize {
        if self.is_closed { 0 } else { self.capacity - self.bytes.len() }
    }

    /// How much data of stream `id` from `offset` on fits into one more frame. Returns `None` if not even the header fits.
    #[must_use]
    pub fn max_data_length(&self, id: StreamId, offset: u64) -> Option<usize> {
        self.remaining().checked_sub(header_length(id, offset))
    }

    /// Adds a frame. If it fits only without its length field, the field is omitted and no frame can follow.
    ///
    /// # Panics
    /// Panics if the data is longer than [`SymbolBuilder::max_data_length`] allows, or extends beyond [`VARINT_MAX`].
    pub fn push(&mut self, frame: StreamFrame<'_>) {
        let StreamFrame { id, offset, data, fin } = frame;
        let space = self.max_data_length(id, offset).and_then(|most| most.checked_sub(data.len()));
        let space = space.expect("the data exceeds max_data_length");
        assert!(offset <= VARINT_MAX - data.len() as u64, "stream bytes beyond the last offset");
        let has_length = space >= varint_length(data.len() as u64);
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        self.bytes.push(STREAM | flag(offset > 0, OFFSET) | flag(has_length, LENGTH) | flag(fin, FIN));
        write_varint(&mut self.bytes, id.0);
        if offset > 0 {
            write_varint(&mut self.bytes, offset);
        }
        if has_length {
            write_varint(&mut self.bytes, data.len() as u64);
        }
        self.bytes.extend_from_slice(data);
        self.is_closed = !has_length;
    }

    /// Returns the symbol: length and content without trailing zeros.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        let content = self.bytes.len() - CONTENT_LENGTH_BYTES;
        self.bytes[..CONTENT_LENGTH_BYTES].copy_from_slice(&(content as u16).to_be_bytes());
        self.bytes
    }
}

/// The length of type, stream id and offset of a frame without a length field.
fn header_length(id: StreamId, offset: u64) -> usize {
    1 + varint_length(id.0) + if offset > 0 { varint_length(offset) } else { 0 }
}

#[cfg(test)]
mod tests;
