//! Packet numbers in short headers: truncated to 1 to 3 bytes and restored (RFC 9000 A.2 and A.3).
//!
//! With 3 bytes the receiver restores any number within 2^23 of the one it expects, so a sender keeps fewer than 2^23 packets of a path
//! unacknowledged. The symbol window (at most 65536) keeps the number far below that.

use crate::id::PacketNumber;
use crate::wire::{Malformed, VARINT_MAX};

/// The low 1 to 3 bytes of a packet number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TruncatedNumber {
    value: u32,
    length: u8,
}

impl TruncatedNumber {
    /// The length of the longest truncated number in bytes.
    pub const LENGTH_MAX: usize = 3;

    /// Truncates `number` to the fewest bytes from which the peer, which has acknowledged `largest_acked`, can restore it (RFC 9000 A.2);
    /// at most 3.
    #[must_use]
    pub fn new(number: PacketNumber, largest_acked: Option<PacketNumber>) -> Self {
        let unacked = match largest_acked {
            Some(largest) => number.0.saturating_sub(largest.0),
            None => number.0.saturating_add(1),
        };
        // The range must be more than twice the distance.
        let length = match unacked {
            0..0x80 => 1,
            0x80..0x8000 => 2,
            _ => 3,
        };
        Self { value: (number.0 & mask(length)) as u32, length }
    }

    /// The same for a path on which packets may arrive after thousands of later ones: at least 2 bytes.
    #[must_use]
    pub fn for_reordering(number: PacketNumber, largest_acked: Option<PacketNumber>) -> Self {
        let length = Self::new(number, largest_acked).length.max(2);
        Self { value: (number.0 & mask(length)) as u32, length }
    }

    /// Reads a number of 1 to 3 bytes.
    ///
    /// # Errors
    /// Returns an error if there are no bytes or more than 3.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        if bytes.is_empty() || bytes.len() > Self::LENGTH_MAX {
            return Err(Malformed::new("packet number of an invalid length"));
        }
        let value = bytes.iter().fold(0, |value, &byte| value << 8 | u32::from(byte));
        Ok(Self { value, length: bytes.len() as u8 })
    }

    /// The full number that is closest to the successor of `largest_received` (RFC 9000 A.3).
    #[must_use]
    pub fn restore(self, largest_received: Option<PacketNumber>) -> PacketNumber {
        let expected = largest_received.map_or(0, |largest| largest.0.min(VARINT_MAX) + 1);
        let window = mask(self.length) + 1;
        let half = window / 2;
        let candidate = (expected & !mask(self.length)) | u64::from(self.value);
        if candidate + half <= expected && candidate + window <= VARINT_MAX {
            PacketNumber(candidate + window)
        } else if candidate > expected + half && candidate >= window {
            PacketNumber(candidate - window)
        } else {
            PacketNumber(candidate)
        }
    }

    /// The length in bytes, 1 to 3.
    #[must_use]
    pub const fn length(self) -> usize {
        self.length as usize
    }

    /// Appends the bytes.
    pub fn write(self, out: &mut Vec<u8>) {
        let bytes = self.value.to_be_bytes();
        out.extend_from_slice(&bytes[bytes.len() - self.length()..]);
    }
}

fn mask(length: u8) -> u64 {
    (1 << (8 * u32::from(length))) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_examples_of_rfc_9000_a_come_out() {
        // A.2: 0xabe8b3 is acknowledged. Sending 0xac5c02 needs 16 bits; 0xace8fe needs 18 bits, which are 24 in this protocol.
        let acked = Some(PacketNumber(0xabe8b3));
        assert_eq!(TruncatedNumber::new(PacketNumber(0xac5c02), acked).length(), 2);
        assert_eq!(TruncatedNumber::new(PacketNumber(0xace8fe), acked).length(), 3);
        // A.3: 0xa82f30ea received, 0x9b32 in 16 bits is 0xa82f9b32.
        let truncated = TruncatedNumber::from_bytes(&[0x9b, 0x32]).expect("two bytes");
        assert_eq!(truncated.restore(Some(PacketNumber(0xa82f_30ea))), PacketNumber(0xa82f_9b32));
    }

    #[test]
    fn a_number_half_a_window_away_is_taken_for_the_later_one() {
        let truncated = TruncatedNumber::from_bytes(&[0]).expect("one byte");
        assert_eq!(truncated.restore(Some(PacketNumber(126))), PacketNumber(0));
        assert_eq!(truncated.restore(Some(PacketNumber(127))), PacketNumber(256));
        assert_eq!(truncated.restore(Some(PacketNumber(383))), PacketNumber(512));
    }

    #[test]
    fn the_first_packet_takes_one_byte_and_zero_is_restored_without_history() {
        let truncated = TruncatedNumber::new(PacketNumber(0), None);
        assert_eq!((truncated.length(), truncated.restore(None)), (1, PacketNumber(0)));
    }

    proptest! {
        #[test]
        fn a_receiver_anywhere_between_acked_and_sent_restores_the_number(
            acked in 0..VARINT_MAX - (1 << 24), bits in 1u32..=23, noise: u64, progress in 0.0..1.0f64,
        ) {
            let distance = 1 + (noise & ((1 << bits) - 2));
            let number = PacketNumber(acked + distance);
            let truncated = TruncatedNumber::new(number, Some(PacketNumber(acked)));
            // The receiver has seen at least what it acknowledged, at most the packet before this one.
            let received = acked + ((distance - 1) as f64 * progress) as u64;
            prop_assert_eq!(truncated.restore(Some(PacketNumber(received))), number);
            let mut out = Vec::new();
            truncated.write(&mut out);
            prop_assert_eq!(TruncatedNumber::from_bytes(&out), Ok(truncated));
        }

        #[test]
        fn nothing_overflows_at_the_ends(value in prop::collection::vec(any::<u8>(), 1..=3), received: u64) {
            let truncated = TruncatedNumber::from_bytes(&value).expect("one to three bytes");
            let _ = truncated.restore(Some(PacketNumber(received)));
            let _ = TruncatedNumber::new(PacketNumber(received), None);
        }
    }
}
