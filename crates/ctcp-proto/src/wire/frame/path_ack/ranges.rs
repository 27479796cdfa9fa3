//! The received packet numbers of an ACK: ranges or a bitmap on the wire, ranges in memory.
//!
//! ```text
//!  received 20 19 18    15 14       9
//!  ranges   2 further, length 3, gap 2 length 2, gap 4 length 1       (each but the count minus 1)
//!  bitmap   from 19 down: 1100 1100 001(0 0000), 2 bytes
//! ```
//!
//! Invariant: there is at least one range, and each range lies at least one missing number below the previous one.

use crate::id::PacketNumber;
use crate::wire::Malformed;
use crate::wire::varint::{Reader, varint_length, write_varint};

/// Maximum number of ranges after the first one in a frame. Scattered losses are sent as a bitmap, which holds more.
pub const ACK_RANGES_MAX: usize = 256;

/// The longest bitmap: 4096 packets, the size of a receiver's replay window.
pub const ACK_BITMAP_BYTES_MAX: usize = 512;

/// Received packet numbers as ranges in descending order. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AckRanges {
    /// First and last number of each range.
    ranges: Vec<(u64, u64)>,
}

/// The encoding of received numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Ranges,
    Bitmap,
}

/// How many ranges fit, from the top, in which form and how many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fit {
    pub(super) count: usize,
    pub(super) form: Form,
    pub(super) length: usize,
}

impl AckRanges {
    /// Creates it from ranges (first, last) in descending order. Returns `None` if there are none.
    ///
    /// # Panics
    /// Panics if a range is empty, or overlaps or touches the previous one.
    pub fn from_descending(ranges: impl IntoIterator<Item = (u64, u64)>) -> Option<Self> {
        let ranges: Vec<_> = ranges.into_iter().collect();
        let mut above = None;
        for &(start, end) in &ranges {
            assert!(start <= end, "empty packet range");
            assert!(above.is_none_or(|above| end + 1 < above), "packet ranges without a gap between them");
            above = Some(start);
        }
        (!ranges.is_empty()).then_some(Self { ranges })
    }

    /// The largest number received.
    #[must_use]
    pub fn largest(&self) -> PacketNumber {
        PacketNumber(self.ranges.first().map_or(0, |range| range.1))
    }

    /// The ranges (first, last) in descending order. A peer can claim any number of packets with one range, so look up sent packets in a
    /// range instead of iterating over its numbers.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + ExactSizeIterator + Clone + '_ {
        self.ranges.iter().copied()
    }

    /// Whether the packet was received.
    #[must_use]
    pub fn contains(&self, number: PacketNumber) -> bool {
        let position = self.ranges.partition_point(|range| range.0 > number.0);
        self.ranges.get(position).is_some_and(|range| number.0 <= range.1)
    }

    /// Parses the fields after the reported end.
    pub(super) fn parse(
        form: Form,
        largest: PacketNumber,
        reader: &mut Reader<'_>,
    ) -> Result<Self, Malformed> {
        match form {
            Form::Ranges => Self::parse_ranges(largest.0, reader),
            Form::Bitmap => Self::parse_bitmap(largest.0, reader),
        }
    }

    fn parse_ranges(largest: u64, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        const BELOW_ZERO: Malformed = Malformed::new("acknowledged packet number below zero");
        let further = reader.varint()?;
        if further > ACK_RANGES_MAX as u64 {
            return Err(Malformed::new("more than 256 further packet ranges"));
        }
        let mut ranges = Vec::with_capacity(1 + further as usize);
        let mut start = largest.checked_sub(reader.varint()?).ok_or(BELOW_ZERO)?;
        ranges.push((start, largest));
        for _ in 0..further {
            // The gap has at least one number, and the range ends one below the gap.
            let below = reader.varint()?.checked_add(2).ok_or(BELOW_ZERO)?;
            let end = start.checked_sub(below).ok_or(BELOW_ZERO)?;
            start = end.checked_sub(reader.varint()?).ok_or(BELOW_ZERO)?;
            ranges.push((start, end));
        }
        Ok(Self { ranges })
    }

    fn parse_bitmap(largest: u64, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let length = reader.varint()?;
        if length > ACK_BITMAP_BYTES_MAX as u64 {
            return Err(Malformed::new("bitmap above 512 bytes"));
        }
        let bytes = reader.bytes(length as usize)?;
        let mut ranges = Vec::with_capacity(1);
        let (mut start, mut end) = (largest, largest);
        for (byte, index) in bytes.iter().zip((0u64..).step_by(8)) {
            let mut bits = *byte;
            while bits != 0 {
                let position = bits.leading_zeros();
                bits &= !(0x80 >> position);
                let below = 1 + index + u64::from(position);
                let number =
                    largest.checked_sub(below).ok_or(Malformed::new("bitmap reaches below packet 0"))?;
                if number + 1 == start {
                    start = number;
                } else {
                    ranges.push((start, end));
                    (start, end) = (number, number);
                }
            }
        }
        ranges.push((start, end));
        Ok(Self { ranges })
    }

    /// The largest number of ranges from the top that fit into `space` bytes and the limits, in the shorter form.
    pub(super) fn fit(&self, space: usize) -> Option<Fit> {
        let largest = self.largest().0;
        let mut best = None;
        let mut fields = 0;
        let mut previous_start = None;
        for (index, &(start, end)) in self.ranges.iter().enumerate() {
            let gap = previous_start.map_or(0, |previous| varint_length(gap_field(previous, end)));
            fields += gap + varint_length(end - start);
            previous_start = Some(start);
            let ranges = varint_length(index as u64) + fields;
            let ranges = Some(ranges).filter(|&length| index <= ACK_RANGES_MAX && length <= space);
            let bitmap = bitmap_length(largest, start);
            let bitmap =
                bitmap.map(|bytes| varint_length(bytes as u64) + bytes).filter(|&length| length <= space);
            let count = index + 1;
            best = match (ranges, bitmap) {
                (Some(length), Some(shorter)) if shorter < length => {
                    Some(Fit { count, form: Form::Bitmap, length: shorter })
                }
                (Some(length), _) => Some(Fit { count, form: Form::Ranges, length }),
                (None, Some(length)) => Some(Fit { count, form: Form::Bitmap, length }),
                (None, None) => return best,
            };
        }
        best
    }

    /// Appends what [`AckRanges::fit`] planned.
    pub(super) fn write(&self, out: &mut Vec<u8>, fit: Fit) {
        let kept = &self.ranges[..fit.count];
        match fit.form {
            Form::Ranges => write_ranges(kept, out),
            Form::Bitmap => write_bitmap(kept, out),
        }
    }
}

/// The encoded gap between a range that starts at `previous_start` and the next lower one.
fn gap_field(previous_start: u64, end: u64) -> u64 {
    previous_start - end - 2
}

/// The length in bytes of a bitmap that extends down to `start`, if it is within the limit.
fn bitmap_length(largest: u64, start: u64) -> Option<usize> {
    let bytes = (largest - start).div_ceil(8);
    usize::try_from(bytes).ok().filter(|&bytes| bytes <= ACK_BITMAP_BYTES_MAX)
}

fn write_ranges(ranges: &[(u64, u64)], out: &mut Vec<u8>) {
    write_varint(out, ranges.len() as u64 - 1);
    let mut previous_start = None;
    for &(start, end) in ranges {
        if let Some(previous) = previous_start {
            write_varint(out, gap_field(previous, end));
        }
        write_varint(out, end - start);
        previous_start = Some(start);
    }
}

fn write_bitmap(ranges: &[(u64, u64)], out: &mut Vec<u8>) {
    let (largest, lowest) = (ranges[0].1, ranges[ranges.len() - 1].0);
    let bytes = bitmap_length(largest, lowest).expect("the plan chose a bitmap within the limit");
    write_varint(out, bytes as u64);
    let base = out.len();
    out.resize(base + bytes, 0);
    for number in ranges.iter().flat_map(|&(start, end)| start..=end).filter(|&number| number < largest) {
        let bit = (largest - 1 - number) as usize;
        out[base + bit / 8] |= 0x80 >> (bit % 8);
    }
}
