//! DECODER_REPORT: the symbols that are still unknown to the receiver (PROTOCOL.md section 4.2).
//!
//! ```text
//!  symbols   ... decoded | undecoded, some seen | unseen | unknown to the receiver
//!                        ^oldest undecoded      ^oldest unseen (somewhere)     ^known end
//!                        |-- interval --| |interval|      reported end: intervals are complete below it
//! ```
//!
//! Invariants of every parsed frame: `oldest_undecoded <= oldest_unseen <= known_end <= VARINT_MAX`. Intervals ascend without overlap
//! within `[oldest_undecoded, reported_end]`, and `reported_end <= known_end`. No interval misses more than its length.

use ctcp_coding::MissingInterval;

use crate::id::{ContextId, SymbolIndex};
use crate::wire::Malformed;
use crate::wire::frame::{kind, kind_length, write_kind};
use crate::wire::varint::{Reader, VARINT_MAX, varint_length, write_varint};

/// Maximum number of intervals in a report. A sender repairs the oldest ones first and learns of the others from later reports.
pub const REPORT_INTERVALS_MAX: usize = 32;

/// The state of the receiver's decoder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecoderReport {
    /// How many frames with combinations had arrived. A report with a larger number is newer.
    pub number: u64,
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
}

impl DecoderReport {
    /// Parses the fields after the type.
    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let number = reader.varint()?;
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
        Ok(Self { number, oldest_undecoded, oldest_unseen, known_end, intervals, reported_end })
    }

    /// Appends the frame and returns true. Intervals that do not fit or exceed the limit are left out from the end, and the reported end is
    /// lowered to the first one left out. If not even a report without intervals fits into `max_length` bytes, nothing is written and false
    /// is returned.
    ///
    /// # Panics
    /// Panics if the symbols violate the invariants of the fields. This side has built the report, so that would be a bug.
    pub fn write_within(&self, context: ContextId, out: &mut Vec<u8>, max_length: usize) -> bool {
        let most = self.intervals.len().min(REPORT_INTERVALS_MAX);
        let Some(count) = (0..=most).rev().find(|&count| self.length(context, count) <= max_length) else {
            return false;
        };
        write_kind(kind::DECODER_REPORT, context, out);
        for field in self.fields(count) {
            write_varint(out, field);
        }
        true
    }

    /// The length in bytes if there is no space limit.
    #[must_use]
    pub fn encoded_length(&self, context: ContextId) -> usize {
        self.length(context, self.intervals.len().min(REPORT_INTERVALS_MAX))
    }

    /// The length with the first `count` intervals.
    fn length(&self, context: ContextId, count: usize) -> usize {
        kind_length(context) + self.fields(count).map(varint_length).sum::<usize>()
    }

    /// All fields with the first `count` intervals: the head, the count, (gap, length, missing) for each, the reported end.
    fn fields(&self, count: usize) -> impl Iterator<Item = u64> {
        let from_undecoded = |symbol: SymbolIndex| {
            symbol.checked_sub(self.oldest_undecoded).expect("nothing is below the oldest undecoded symbol")
        };
        assert!(self.oldest_unseen <= self.known_end, "a symbol was seen that no packet mentioned");
        let head = [
            self.number,
            self.oldest_undecoded,
            from_undecoded(self.oldest_unseen),
            from_undecoded(self.known_end),
        ];
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
        head.into_iter().chain([count as u64]).chain(triples).chain([from_undecoded(reported_end)])
    }

    /// The reported end if only the first `count` intervals are written.
    fn reported_end_of(&self, count: usize) -> SymbolIndex {
        self.intervals.get(count).map_or(self.reported_end, |dropped| dropped.first.min(self.reported_end))
    }
}

/// Parses a symbol index that is given as the distance from `base`.
fn advance(base: u64, reader: &mut Reader<'_>) -> Result<u64, Malformed> {
    let sum = base.checked_add(reader.varint()?).filter(|&sum| sum <= VARINT_MAX);
    sum.ok_or(Malformed::new("reported symbol beyond the last one"))
}

fn parse_intervals(base: SymbolIndex, reader: &mut Reader<'_>) -> Result<Vec<MissingInterval>, Malformed> {
    let count = reader.varint()?;
    if count > REPORT_INTERVALS_MAX as u64 {
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

#[cfg(test)]
mod tests;
