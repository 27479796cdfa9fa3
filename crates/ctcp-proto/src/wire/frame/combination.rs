//! SOURCE, CODED, RECODED and SEGMENT: combinations of symbols. Each extends to the end of the packet.
//!
//! A type plus one has the context after it; these are the ones of the streams.
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

use crate::id::{ContextId, SymbolIndex};
use crate::wire::Malformed;
use crate::wire::frame::{kind, kind_length, write_kind};
use crate::wire::parameters::SYMBOL_SIZE_RANGE;
use crate::wire::varint::{Reader, VARINT_MAX, varint_length, write_u16, write_varint};

/// Maximum number of symbols in a combination: 12 bits on the wire.
pub const COMBINATION_LENGTH_MAX: u16 = 4095;

/// The largest density threshold (RFC 8681): no coefficient is zero.
const DENSITY_MAX: u8 = 15;

/// A symbol or a combination of symbols. Payloads borrow from the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combination<'a> {
    /// An uncoded symbol, without trailing zeros.
    Source {
        /// The index of the symbol.
        index: SymbolIndex,
        /// Symbols below it are never combined again; at most `index`.
        floor: SymbolIndex,
        /// The bytes of the symbol.
        symbol: &'a [u8],
    },
    /// A combination of `[first, first + length)` whose coefficients are generated from a key.
    Coded {
        /// The first symbol.
        first: SymbolIndex,
        /// Number of symbols, 1..=[`COMBINATION_LENGTH_MAX`].
        length: u16,
        /// Density threshold of RFC 8681, 0..=15; with 15, no coefficient is zero.
        density: u8,
        /// Seed of the coefficients (the repair key of RFC 8681).
        key: u16,
        /// Symbols below it are never combined again; at most `first`.
        floor: SymbolIndex,
        /// The combination's bytes without trailing zeros.
        payload: &'a [u8],
    },
    /// A combination with explicit coefficients.
    Recoded {
        /// The first symbol.
        first: SymbolIndex,
        /// One for each symbol from `first` on, 1..=[`COMBINATION_LENGTH_MAX`].
        coefficients: &'a [u8],
        /// Symbols below it are never combined again; at most `first`.
        floor: SymbolIndex,
        /// The combination's bytes without trailing zeros.
        payload: &'a [u8],
    },
    /// A segment of the combination that a CODED frame of the same range, density and key would carry.
    Segment {
        /// The first symbol.
        first: SymbolIndex,
        /// Number of symbols, 1..=[`COMBINATION_LENGTH_MAX`].
        length: u16,
        /// Density threshold of RFC 8681, 0..=15.
        density: u8,
        /// Seed of the coefficients.
        key: u16,
        /// Symbols below it are never combined again; at most `first`.
        floor: SymbolIndex,
        /// Offset of the segment in the combination.
        offset: u16,
        /// Length of the combination without trailing zeros, at most that of the largest symbol.
        total: u16,
        /// Bytes `[offset, offset + piece.len())` of the combination, at most up to `total`.
        piece: &'a [u8],
    },
}

impl<'a> Combination<'a> {
    /// Parses the fields after the type, of which `kind` is the even form, and the context.
    pub(super) fn parse(kind: u8, reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let first = reader.varint()?;
        match kind {
            kind::SOURCE => {
                checked_range(first, 1)?;
                let floor = parse_floor(first, reader)?;
                Ok(Self::Source { index: first, floor, symbol: reader.rest() })
            }
            kind::CODED | kind::SEGMENT => {
                let shape = reader.u16()?;
                let length = checked_range(first, u64::from(shape & COMBINATION_LENGTH_MAX))?;
                let key = reader.u16()?;
                let floor = parse_floor(first, reader)?;
                let density = (shape >> 12) as u8;
                if kind == kind::CODED {
                    return Ok(Self::Coded { first, length, density, key, floor, payload: reader.rest() });
                }
                let (offset, total, piece) = parse_piece(reader)?;
                Ok(Self::Segment { first, length, density, key, floor, offset, total, piece })
            }
            _ => {
                let length = checked_range(first, reader.varint()?)?;
                let coefficients = reader.bytes(usize::from(length))?;
                let floor = parse_floor(first, reader)?;
                Ok(Self::Recoded { first, coefficients, floor, payload: reader.rest() })
            }
        }
    }

    pub(super) fn write(&self, context: ContextId, out: &mut Vec<u8>) {
        let (first, length) = (self.first(), self.length());
        assert!(checked_range(first, length).is_ok(), "symbols [{first}, +{length}) do not exist");
        write_kind(self.kind(), context, out);
        write_varint(out, first);
        match *self {
            Self::Source { .. } => {}
            Self::Coded { length, density, key, .. } | Self::Segment { length, density, key, .. } => {
                assert!(density <= DENSITY_MAX, "density threshold {density}");
                write_u16(out, u16::from(density) << 12 | length);
                write_u16(out, key);
            }
            Self::Recoded { coefficients, .. } => {
                write_varint(out, length);
                out.extend_from_slice(coefficients);
            }
        }
        let floor = self.floor();
        assert!(floor <= first, "floor {floor} above {first}");
        write_varint(out, first - floor);
        if let Self::Segment { offset, total, piece, .. } = *self {
            assert!(is_piece(offset, total, piece), "{} bytes from {offset} of {total}", piece.len());
            write_varint(out, u64::from(offset));
            write_varint(out, u64::from(total));
        }
        out.extend_from_slice(self.payload());
    }

    pub(super) fn encoded_length(&self, context: ContextId) -> usize {
        let shape = match *self {
            Self::Source { .. } => 0,
            Self::Coded { .. } => 2 + 2,
            Self::Segment { offset, total, .. } => {
                2 + 2 + varint_length(u64::from(offset)) + varint_length(u64::from(total))
            }
            Self::Recoded { coefficients, .. } => {
                varint_length(coefficients.len() as u64) + coefficients.len()
            }
        };
        let distance = self.first().saturating_sub(self.floor());
        kind_length(context)
            + varint_length(self.first())
            + shape
            + varint_length(distance)
            + self.payload().len()
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Source { .. } => kind::SOURCE,
            Self::Coded { .. } => kind::CODED,
            Self::Recoded { .. } => kind::RECODED,
            Self::Segment { .. } => kind::SEGMENT,
        }
    }

    fn first(&self) -> SymbolIndex {
        match *self {
            Self::Source { index: first, .. }
            | Self::Coded { first, .. }
            | Self::Recoded { first, .. }
            | Self::Segment { first, .. } => first,
        }
    }

    /// Number of symbols.
    fn length(&self) -> u64 {
        match *self {
            Self::Source { .. } => 1,
            Self::Coded { length, .. } | Self::Segment { length, .. } => u64::from(length),
            Self::Recoded { coefficients, .. } => coefficients.len() as u64,
        }
    }

    /// One past the last symbol.
    #[must_use]
    pub fn end(&self) -> SymbolIndex {
        self.first() + self.length()
    }

    /// Symbols below it are never combined again.
    #[must_use]
    pub fn floor(&self) -> SymbolIndex {
        match *self {
            Self::Source { floor, .. }
            | Self::Coded { floor, .. }
            | Self::Recoded { floor, .. }
            | Self::Segment { floor, .. } => floor,
        }
    }

    /// The bytes of the symbol, the combination or the segment.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        match *self {
            Self::Source { symbol: payload, .. }
            | Self::Coded { payload, .. }
            | Self::Recoded { payload, .. }
            | Self::Segment { piece: payload, .. } => payload,
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
