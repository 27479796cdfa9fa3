//! Integers on the wire: big endian, and the variable-length integers of RFC 9000 section 16.
//!
//! ```text
//!  00xxxxxx                       6 bits, up to 63
//!  01xxxxxx xxxxxxxx             14 bits, up to 16383
//!  10xxxxxx ... (4 bytes)        30 bits, up to 2^30 - 1
//!  11xxxxxx ... (8 bytes)        62 bits, up to 2^62 - 1
//! ```
//!
//! The shortest form is written; any form is read.

use crate::wire::Malformed;

/// The largest number a varint can hold.
pub const VARINT_MAX: u64 = (1 << 62) - 1;

/// The number of bytes that [`write_varint`] appends for `value`.
#[must_use]
pub const fn varint_length(value: u64) -> usize {
    match value {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

/// Appends `value` in its shortest form.
///
/// # Panics
/// Panics if `value` is larger than [`VARINT_MAX`]. Numbers from the network are checked when they are parsed.
pub fn write_varint(out: &mut Vec<u8>, value: u64) {
    assert!(value <= VARINT_MAX, "{value} does not fit a varint");
    match varint_length(value) {
        1 => out.push(value as u8),
        2 => write_u16(out, 0x4000 | value as u16),
        4 => write_u32(out, 0x8000_0000 | value as u32),
        _ => write_u64(out, 0xc000_0000_0000_0000 | value),
    }
}

/// A number that is reserved for frames and parameters without a meaning (PROTOCOL.md sections 3.1 and 4), as in QUIC (RFC 9000 section
/// 18.1). It is odd for odd choices.
#[must_use]
pub const fn reserved_number(choice: u64) -> u64 {
    27 + 31 * (1 + choice)
}

/// Appends two bytes.
pub fn write_u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends four bytes.
pub fn write_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends eight bytes.
pub fn write_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Reads integers and bytes from the front of a slice, never beyond its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Creates a reader at the start of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Whether all bytes were read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The number of bytes left.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.bytes.len()
    }

    /// The remaining bytes, without consuming them.
    #[must_use]
    pub const fn peek(&self) -> &'a [u8] {
        self.bytes
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// Returns an error if no byte is left.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Reads two bytes.
    ///
    /// # Errors
    /// Returns an error if fewer bytes are left.
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads four bytes.
    ///
    /// # Errors
    /// Returns an error if fewer bytes are left.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads eight bytes.
    ///
    /// # Errors
    /// Returns an error if fewer bytes are left.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    /// Reads a variable-length integer of any of the four lengths, shortest or not.
    ///
    /// # Errors
    /// Returns an error if the input ends within it.
    pub fn varint(&mut self) -> Result<u64, Malformed> {
        let first = *self.bytes.first().ok_or(Malformed::TRUNCATED)?;
        let value = match first >> 6 {
            0 => return self.u8().map(u64::from),
            1 => u64::from(self.u16()?) & 0x3fff,
            2 => u64::from(self.u32()?) & 0x3fff_ffff,
            _ => self.u64()? & VARINT_MAX,
        };
        Ok(value)
    }

    /// Reads a variable-length integer in its shortest form.
    ///
    /// # Errors
    /// Returns an error for a longer form and if the input ends within it.
    pub fn shortest_varint(&mut self) -> Result<u64, Malformed> {
        let before = self.remaining();
        let value = self.varint()?;
        if before - self.remaining() != varint_length(value) {
            return Err(Malformed::new("number longer than necessary"));
        }
        Ok(value)
    }

    /// Reads `count` bytes.
    ///
    /// # Errors
    /// Returns an error if fewer bytes are left.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(Malformed::TRUNCATED)?;
        self.bytes = rest;
        Ok(taken)
    }

    /// Reads `N` bytes as an array.
    ///
    /// # Errors
    /// Returns an error if fewer bytes are left.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.bytes.split_first_chunk::<N>().ok_or(Malformed::TRUNCATED)?;
        self.bytes = rest;
        Ok(*taken)
    }

    /// Reads a varint length and that many bytes.
    ///
    /// # Errors
    /// Returns an error if the input ends too early.
    pub fn prefixed(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.varint()?;
        self.bytes(usize::try_from(length).map_err(|_| Malformed::TRUNCATED)?)
    }

    /// Reads all remaining bytes.
    pub fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_examples_of_rfc_9000_a_1_read_as_stated() {
        let examples: [(&[u8], u64); 5] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ];
        for (bytes, value) in examples {
            let mut reader = Reader::new(bytes);
            assert_eq!((reader.varint(), reader.is_empty()), (Ok(value), true));
        }
    }

    #[test]
    fn a_failed_read_takes_nothing() {
        let mut reader = Reader::new(&[0xc0, 1, 2]);
        assert_eq!(reader.varint(), Err(Malformed::TRUNCATED));
        assert_eq!(reader.u32(), Err(Malformed::TRUNCATED));
        assert_eq!(reader.bytes(4), Err(Malformed::TRUNCATED));
        assert_eq!(reader.remaining(), 3);
        assert_eq!(reader.u16(), Ok(0xc001));
        assert_eq!(reader.rest(), &[2]);
    }

    #[test]
    fn lengths_change_at_the_stated_bounds() {
        for (value, length) in
            [(0, 1), (63, 1), (64, 2), (16_383, 2), (16_384, 4), (1 << 30, 8), (VARINT_MAX, 8)]
        {
            assert_eq!(varint_length(value), length, "{value}");
        }
        assert_eq!(varint_length((1 << 30) - 1), 4);
    }

    proptest! {
        #[test]
        fn every_number_survives_in_its_shortest_form(bits in 0u32..=62, noise: u64) {
            let value = noise & ((1u64 << bits) - 1);
            let mut out = Vec::new();
            write_varint(&mut out, value);
            prop_assert_eq!(out.len(), varint_length(value));
            prop_assert_eq!(Reader::new(&out).varint(), Ok(value));
            for length in 0..out.len() {
                prop_assert!(Reader::new(&out[..length]).varint().is_err());
            }
        }
    }
}
