//! SOURCE, CODED, RECODED and SEGMENT: combinations of symbols. Each extends to the end of the packet.
//!
//! ```text
//!  SOURCE    0x08 | index  | floor distance | symbol ...
//!  CODED     0x0a | first  | density (4) length (12) | key (16) | floor distance | combination ...
//!  RECODED   0x0c | first  | length | coefficients | floor distance | combination ...
//!  SEGMENT   0x0e | first  | density (4) length (12) | key (16) | floor distance | offset | total | piece ...
//! ```
//!
//! Invariant of every parsed frame: `floor <= first`, `1 <= length <= 4095`, and the end of the range, `first + length`, is at most
//! [`VARINT_MAX`], so that sums of indices do not overflow. A segment ends within its combination, and the combination is no longer than a
//! symbol can be.

use crate::id::SymbolIndex;
use crate::wire::Malformed;
use crate::wire::frame::{Frame, kind};
use crate::wire::parameters::SYMBOL_SIZE_RANGE;
use crate::wire::varint::{Reader, VARINT_MAX, varint_length, write_u16, write_varint};

/// Maximum number of symbols in a combination: 12 bits on the wire.
pub const COMBINATION_LENGTH_MAX: u16 = 4095;

/// The largest density threshold (RFC 8681): no coefficient is zero.
const DENSITY_MAX: u8 = 15;

pub(super) fn parse<'a>(kind: u8, reader: &mut Reader<'a>) -> Result<Frame<'a>, Malformed> {
    let first = reader.varint()?;
    match kind {
        kind::SOURCE => {
            checked_range(first, 1)?;
            let floor = parse_floor(first, reader)?;
            Ok(Frame::Source { index: first, floor, symbol: reader.rest() })
        }
        kind::CODED | kind::SEGMENT => {
            let shape = reader.u16()?;
            let length = checked_range(first, u64::from(shape & COMBINATION_LENGTH_MAX))?;
            let key = reader.u16()?;
            let floor = parse_floor(first, reader)?;
            let density = (shape >> 12) as u8;
            if kind == kind::CODED {
                return Ok(Frame::Coded { first, length, density, key, floor, payload: reader.rest() });
            }
            let (offset, total, piece) = parse_piece(reader)?;
            Ok(Frame::Segment { first, length, density, key, floor, offset, total, piece })
        }
        _ => {
            let length = checked_range(first, reader.varint()?)?;
            let coefficients = reader.bytes(usize::from(length))?;
            let floor = parse_floor(first, reader)?;
            Ok(Frame::Recoded { first, coefficients, floor, payload: reader.rest() })
        }
    }
}

/// The length of a range, if the range is valid.
fn checked_range(first: SymbolIndex, length: u64) -> Result<u16, Malformed> {
    if length == 0 || length > u64::from(COMBINATION_LENGTH_MAX) {
        return Err(Malformed::new("combination of no symbol or of too many"));
    }
    if first > VARINT_MAX - length {
        return Err(Malformed::new("combination beyond the last symbol"));
    }
    Ok(length as u16)
}

fn parse_floor(first: SymbolIndex, reader: &mut Reader<'_>) -> Result<SymbolIndex, Malformed> {
    let distance = reader.varint()?;
    first.checked_sub(distance).ok_or(Malformed::new("window floor below the first symbol"))
}

/// Parses offset, total and bytes of a segment.
fn parse_piece<'a>(reader: &mut Reader<'a>) -> Result<(u16, u16, &'a [u8]), Malformed> {
    let (offset, total) = (reader.varint()?, reader.varint()?);
    let piece = reader.rest();
    match (u16::try_from(offset), u16::try_from(total)) {
        (Ok(offset), Ok(total)) if is_piece(offset, total, piece) => Ok((offset, total, piece)),
        _ => Err(Malformed::new("piece beyond its combination, or of one too long")),
    }
}

fn is_piece(offset: u16, total: u16, piece: &[u8]) -> bool {
    let total = usize::from(total);
    total <= *SYMBOL_SIZE_RANGE.end() && usize::from(offset) + piece.len() <= total
}

pub(super) fn write(frame: &Frame<'_>, out: &mut Vec<u8>) {
    match *frame {
        Frame::Source { index, floor, symbol } => {
            assert!(checked_range(index, 1).is_ok(), "symbol {index} does not exist");
            out.push(kind::SOURCE);
            write_varint(out, index);
            write_tail(out, index, floor, symbol);
        }
        Frame::Coded { first, length, density, key, floor, payload } => {
            assert!(checked_range(first, u64::from(length)).is_ok() && density <= DENSITY_MAX);
            out.push(kind::CODED);
            write_varint(out, first);
            write_u16(out, u16::from(density) << 12 | length);
            write_u16(out, key);
            write_tail(out, first, floor, payload);
        }
        Frame::Segment { first, length, density, key, floor, offset, total, piece } => {
            assert!(checked_range(first, u64::from(length)).is_ok() && density <= DENSITY_MAX);
            assert!(is_piece(offset, total, piece), "{} bytes from {offset} of {total}", piece.len());
            out.push(kind::SEGMENT);
            write_varint(out, first);
            write_u16(out, u16::from(density) << 12 | length);
            write_u16(out, key);
            write_tail(out, first, floor, &[]);
            write_varint(out, u64::from(offset));
            write_varint(out, u64::from(total));
            out.extend_from_slice(piece);
        }
        Frame::Recoded { first, coefficients, floor, payload } => {
            assert!(checked_range(first, coefficients.len() as u64).is_ok(), "range out of bounds");
            out.push(kind::RECODED);
            write_varint(out, first);
            write_varint(out, coefficients.len() as u64);
            out.extend_from_slice(coefficients);
            write_tail(out, first, floor, payload);
        }
        _ => unreachable!("only called for the frames of this file"),
    }
}

fn write_tail(out: &mut Vec<u8>, first: SymbolIndex, floor: SymbolIndex, payload: &[u8]) {
    assert!(floor <= first, "floor {floor} above {first}");
    write_varint(out, first - floor);
    out.extend_from_slice(payload);
}

pub(super) fn length(frame: &Frame<'_>) -> usize {
    let tail = |first: u64, floor: u64, payload: &[u8]| {
        varint_length(first) + varint_length(first.saturating_sub(floor)) + payload.len()
    };
    match *frame {
        Frame::Source { index, floor, symbol } => 1 + tail(index, floor, symbol),
        Frame::Coded { first, floor, payload, .. } => 1 + 2 + 2 + tail(first, floor, payload),
        Frame::Segment { first, floor, offset, total, piece, .. } => {
            let place = varint_length(u64::from(offset)) + varint_length(u64::from(total));
            1 + 2 + 2 + place + tail(first, floor, piece)
        }
        Frame::Recoded { first, coefficients, floor, payload } => {
            1 + varint_length(coefficients.len() as u64) + coefficients.len() + tail(first, floor, payload)
        }
        _ => unreachable!("only called for the frames of this file"),
    }
}
