//! PATH_ACK: received packets of a path (PROTOCOL.md section 4.1).
//!
//! Invariant of every parsed frame: packet ranges descend without touching.

mod ranges;

use core::time::Duration;

use crate::id::{PacketNumber, PathId};
use crate::wire::Malformed;
use crate::wire::frame::kind;
use crate::wire::varint::{Reader, VARINT_MAX, varint_length, write_varint};

pub use ranges::{ACK_BITMAP_BYTES_MAX, ACK_RANGES_MAX, AckRanges};
use ranges::{Fit, Form};

/// An acknowledgement of packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathAck {
    /// The path whose packets are acknowledged.
    pub path: PathId,
    /// The packets received on it.
    pub ranges: AckRanges,
    /// Time since the packet with the largest number arrived; in whole microseconds on the wire.
    pub delay: Duration,
    /// ECN counts of this path.
    pub ecn: Option<EcnCounts>,
}

/// Packets received with each ECN codepoint (RFC 3168), in total since the path began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnCounts {
    /// With ECT(0).
    pub ect0: u64,
    /// With ECT(1).
    pub ect1: u64,
    /// With CE: congestion experienced.
    pub ce: u64,
}

impl PathAck {
    /// The largest packet number received.
    #[must_use]
    pub fn largest(&self) -> PacketNumber {
        self.ranges.largest()
    }

    /// Parses the fields after the type.
    pub(super) fn parse(kind: u8, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let path =
            u8::try_from(reader.varint()?).map_err(|_| Malformed::new("acknowledged path above 255"))?;
        let largest = PacketNumber(reader.varint()?);
        let delay = Duration::from_micros(reader.varint()?);
        let has_bitmap = matches!(kind, kind::PATH_ACK_BITMAP | kind::PATH_ACK_BITMAP_ECN);
        let form = if has_bitmap { Form::Bitmap } else { Form::Ranges };
        let ranges = AckRanges::parse(form, largest, reader)?;
        let ecn = match kind {
            kind::PATH_ACK_RANGES_ECN | kind::PATH_ACK_BITMAP_ECN => Some(parse_ecn(reader)?),
            _ => None,
        };
        Ok(Self { path: PathId(path), ranges, delay, ecn })
    }

    /// Appends the frame and returns true. The oldest packet ranges are left out if they do not fit. If not even the newest one fits into
    /// `max_length` bytes, nothing is written and false is returned.
    pub fn write_within(&self, out: &mut Vec<u8>, max_length: usize) -> bool {
        let fixed = self.fixed_length();
        let Some(fit) = max_length.checked_sub(fixed).and_then(|space| self.ranges.fit(space)) else {
            return false;
        };
        let start = out.len();
        out.push(match (fit.form, self.ecn) {
            (Form::Ranges, None) => kind::PATH_ACK_RANGES,
            (Form::Bitmap, None) => kind::PATH_ACK_BITMAP,
            (Form::Ranges, Some(_)) => kind::PATH_ACK_RANGES_ECN,
            (Form::Bitmap, Some(_)) => kind::PATH_ACK_BITMAP_ECN,
        });
        for field in self.head() {
            write_varint(out, field);
        }
        let length = fixed + fit.length;
        self.ranges.write(out, fit);
        for count in self.ecn_fields() {
            write_varint(out, count);
        }
        debug_assert_eq!(out.len() - start, length, "the length was exact");
        true
    }

    /// The length in bytes if there is no space limit.
    #[must_use]
    pub fn encoded_length(&self) -> usize {
        self.fixed_length() + self.ranges.fit(usize::MAX).map_or(0, |fit: Fit| fit.length)
    }

    /// The length of everything but the ranges.
    fn fixed_length(&self) -> usize {
        1 + self.head().into_iter().chain(self.ecn_fields()).map(varint_length).sum::<usize>()
    }

    /// The fields before the ranges.
    fn head(&self) -> [u64; 3] {
        let delay = u64::try_from(self.delay.as_micros()).map_or(VARINT_MAX, |micros| micros.min(VARINT_MAX));
        [u64::from(self.path.0), self.largest().0, delay]
    }

    fn ecn_fields(&self) -> impl Iterator<Item = u64> {
        self.ecn.into_iter().flat_map(|ecn| [ecn.ect0, ecn.ect1, ecn.ce])
    }
}

fn parse_ecn(reader: &mut Reader<'_>) -> Result<EcnCounts, Malformed> {
    Ok(EcnCounts { ect0: reader.varint()?, ect1: reader.varint()?, ce: reader.varint()? })
}

#[cfg(test)]
mod tests;
