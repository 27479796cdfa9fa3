//! ACK: received packets of a path and symbols that are still unknown (PROTOCOL.md section 4.1).
//!
//! ```text
//!  symbols   ... decoded | undecoded, some seen | unseen | unknown to the receiver
//!                        ^oldest undecoded      ^oldest unseen (somewhere)     ^known end
//!                        |-- interval --| |interval|      reported end: intervals are complete below it
//!  packets   ranges or a bitmap downwards from the largest, whichever is shorter
//! ```
//!
//! Invariants of every parsed frame: `oldest_undecoded <= oldest_unseen <= known_end <= VARINT_MAX`. Intervals ascend without overlap
//! within `[oldest_undecoded, reported_end]`, and `reported_end <= known_end`. No interval misses more than its length. Packet ranges
//! descend without touching.

mod ranges;

use core::time::Duration;

use ctcp_coding::MissingInterval;

use crate::id::{PacketNumber, PathId, SymbolIndex};
use crate::wire::Malformed;
use crate::wire::frame::kind;
use crate::wire::varint::{Reader, VARINT_MAX, varint_length, write_varint};

pub use ranges::{ACK_BITMAP_BYTES_MAX, ACK_RANGES_MAX, AckRanges};
use ranges::{Fit, Form};

/// Maximum number of intervals in a frame. A sender repairs the oldest ones first and learns of the others with later ACKs.
pub const ACK_INTERVALS_MAX: usize = 32;

/// An acknowledgement of packets and a report of the decoder's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AckFrame {
    /// The path whose packets are acknowledged.
    pub path: PathId,
    /// The packets received on it.
    pub ranges: AckRanges,
    /// Time since the packet with the largest number arrived; in whole microseconds on the wire.
    pub delay: Duration,
    /// All symbols below this one are decoded.
    pub oldest_undecoded: SymbolIndex,
    /// All symbols below this one are seen: decoded or expressed by later ones.
    pub oldest_unseen: SymbolIndex,
    /// One past the last symbol that any packet mentioned.
    pub known_end: SymbolIndex,
    /// Groups of unknown symbols, ascending.
    pub intervals: Vec<MissingInterval>,
    /// The intervals are complete below this symbol.
    pub reported_end: SymbolIndex,
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

impl AckFrame {
    /// The largest packet number received.
    #[must_use]
    pub fn largest(&self) -> PacketNumber {
        self.ranges.largest()
    }

    /// Parses the fields after the type.
    pub(super) fn parse(kind: u8, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let path =
            u8::try_from(reader.varint()?).map_err(|_| Malformed::new("acknowledged path above 255"))?;
        let largest = reader.varint()?;
        let delay = Duration::from_micros(reader.varint()?);
        let oldest_undecoded = reader.varint()?;
        let oldest_unseen = advance(oldest_undecoded, reader)?;
        let known_end = advance(oldest_undecoded, reader)?;
        if oldest_unseen > known_end {
            return Err(Malformed::new("oldest unseen symbol beyond the known end"));
        }
        let intervals = parse_intervals(oldest_undecoded, reader)?;
        let reported_end = advance(oldest_undecoded, reader)?;
        let last_end = intervals.last().map_or(oldest_undecoded, |interval| interval.end);
        if last_end > reported_end || reported_end > known_end {
            return Err(Malformed::new("interval beyond the reported or the known end"));
        }
        let has_bitmap = matches!(kind, kind::ACK_BITMAP | kind::ACK_BITMAP_ECN);
        let form = if has_bitmap { Form::Bitmap } else { Form::Ranges };
        let ranges = AckRanges::parse(form, PacketNumber(largest), reader)?;
        let ecn = match kind {
            kind::ACK_RANGES_ECN | kind::ACK_BITMAP_ECN => Some(parse_ecn(reader)?),
            _ => None,
        };
        let symbols = Self {
            path: PathId(path),
            ranges,
            delay,
            oldest_undecoded,
            oldest_unseen,
            known_end,
            intervals,
            reported_end,
            ecn,
        };
        Ok(symbols)
    }

    /// Appends the frame and returns true. If even its smallest form is longer than `max_length`, nothing is written and false is returned.
    /// Intervals that do not fit or exceed the limit are left out from the end, and the reported end is lowered to the first one left out.
    /// They are left out only as far as needed to leave half of the space to the packet ranges. Then the oldest packet ranges are left out.
    ///
    /// # Panics
    /// Panics if the symbols violate the invariants of the fields. This side has built the frame, so that would be a bug.
    pub fn write_within(&self, out: &mut Vec<u8>, max_length: usize) -> bool {
        let Some(plan) = self.plan(max_length) else { return false };
        let start = out.len();
        out.push(match (plan.ranges.form, self.ecn) {
            (Form::Ranges, None) => kind::ACK_RANGES,
            (Form::Bitmap, None) => kind::ACK_BITMAP,
            (Form::Ranges, Some(_)) => kind::ACK_RANGES_ECN,
            (Form::Bitmap, Some(_)) => kind::ACK_BITMAP_ECN,
        });
        for field in self.head() {
            write_varint(out, field);
        }
        self.write_intervals(out, plan.intervals);
        self.ranges.write(out, plan.ranges);
        for count in self.ecn.iter().flat_map(|ecn| [ecn.ect0, ecn.ect1, ecn.ce]) {
            write_varint(out, count);
        }
        debug_assert_eq!(out.len() - start, plan.length, "the plan was exact");
        true
    }

    /// The length in bytes if there is no space limit.
    #[must_use]
    pub fn encoded_length(&self) -> usize {
        self.plan(usize::MAX).map_or(0, |plan| plan.length)
    }

    /// The fields before the intervals.
    fn head(&self) -> [u64; 6] {
        let from_undecoded = |symbol: SymbolIndex| {
            symbol.checked_sub(self.oldest_undecoded).expect("nothing is below the oldest undecoded symbol")
        };
        assert!(self.oldest_unseen <= self.known_end, "a symbol was seen that no packet mentioned");
        [
            u64::from(self.path.0),
            self.largest().0,
            u64::try_from(self.delay.as_micros()).map_or(VARINT_MAX, |micros| micros.min(VARINT_MAX)),
            self.oldest_undecoded,
            from_undecoded(self.oldest_unseen),
            from_undecoded(self.known_end),
        ]
    }

    /// The reported end if only the first `count` intervals are written.
    fn reported_end_of(&self, count: usize) -> SymbolIndex {
        self.intervals.get(count).map_or(self.reported_end, |dropped| dropped.first.min(self.reported_end))
    }

    /// The first `count` intervals as wire fields: the count, (gap, length, missing) for each, the reported end.
    fn interval_fields(&self, count: usize) -> impl Iterator<Item = u64> {
        let kept = &self.intervals[..count];
        let ends = core::iter::once(self.oldest_undecoded).chain(kept.iter().map(|interval| interval.end));
        let triples = kept.iter().zip(ends).flat_map(|(interval, previous_end)| {
            let gap = interval.first.checked_sub(previous_end).expect("intervals ascend");
            let length = interval.end.checked_sub(interval.first).expect("intervals have a length");
            assert!(length > 0 && interval.missing <= length, "an interval misses at most its length");
            [gap, length, interval.missing]
        });
        let reported_end = self.reported_end_of(count);
        assert!(kept.last().is_none_or(|last| last.end <= reported_end) && reported_end <= self.known_end);
        let reported =
            reported_end.checked_sub(self.oldest_undecoded).expect("the report covers its intervals");
        core::iter::once(count as u64).chain(triples).chain([reported])
    }

    fn write_intervals(&self, out: &mut Vec<u8>, count: usize) {
        for field in self.interval_fields(count) {
            write_varint(out, field);
        }
    }

    fn intervals_length(&self, count: usize) -> usize {
        self.interval_fields(count).map(varint_length).sum()
    }

    /// How much of the frame fits into `max_length` bytes.
    fn plan(&self, max_length: usize) -> Option<Plan> {
        let ecn = self.ecn.iter().flat_map(|ecn| [ecn.ect0, ecn.ect1, ecn.ce]);
        let fixed = 1 + self.head().into_iter().chain(ecn).map(varint_length).sum::<usize>();
        let space = max_length.checked_sub(fixed)?;
        let wanted = self.ranges.fit(usize::MAX)?.length;
        let for_intervals = space.saturating_sub(wanted).max(space / 2);
        let most = self.intervals.len().min(ACK_INTERVALS_MAX);
        let intervals = (0..=most).rev().find(|&count| self.intervals_length(count) <= for_intervals);
        [intervals.unwrap_or(0), 0].into_iter().find_map(|intervals| {
            let used = self.intervals_length(intervals);
            let ranges = self.ranges.fit(space.checked_sub(used)?)?;
            Some(Plan { intervals, ranges, length: fixed + used + ranges.length })
        })
    }
}

/// The part of a frame that is written.
struct Plan {
    /// Number of intervals from the front.
    intervals: usize,
    ranges: Fit,
    /// Length of the whole frame in bytes.
    length: usize,
}

/// Parses a symbol index that is given as the distance from `base`.
fn advance(base: u64, reader: &mut Reader<'_>) -> Result<u64, Malformed> {
    let sum = base.checked_add(reader.varint()?).filter(|&sum| sum <= VARINT_MAX);
    sum.ok_or(Malformed::new("acknowledged symbol beyond the last one"))
}

fn parse_intervals(base: SymbolIndex, reader: &mut Reader<'_>) -> Result<Vec<MissingInterval>, Malformed> {
    let count = reader.varint()?;
    if count > ACK_INTERVALS_MAX as u64 {
        return Err(Malformed::new("more than 32 missing intervals"));
    }
    let mut previous_end = base;
    let mut intervals = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let first = advance(previous_end, reader)?;
        let end = advance(first, reader)?;
        let missing = reader.varint()?;
        if end == first || missing > end - first {
            return Err(Malformed::new("missing interval of no symbol or missing more than it holds"));
        }
        intervals.push(MissingInterval { first, end, missing });
        previous_end = end;
    }
    Ok(intervals)
}

fn parse_ecn(reader: &mut Reader<'_>) -> Result<EcnCounts, Malformed> {
    Ok(EcnCounts { ect0: reader.varint()?, ect1: reader.varint()?, ce: reader.varint()? })
}

#[cfg(test)]
mod tests;
