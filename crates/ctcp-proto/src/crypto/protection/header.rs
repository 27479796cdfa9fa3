//! Header protection (RFC 9001 section 5.4, PROTOCOL.md section 2.2).
//!
//! ```text
//!  | 01KrrrLL | destination id | path (8) | number, 1..3 | sealed frames ... | tag |
//!    ^^^^^^^^                    ^^^^^^^^   ^^^^^^^^^^^^
//!    mask 0 (low six bits)       mask 1     mask 2, 3, 4
//!                              |<------- 4 ----------->|<-- sample (16) -->|
//! ```

use ring::aead::quic::HeaderProtectionKey;

use super::{PACKET_NUMBER_MAX, SealHeader};
use crate::crypto::derive::{expand, wipe};
use crate::crypto::suite::Suite;
use crate::id::{PacketNumber, PathId};

/// Bytes of the longest truncated packet number.
pub(super) const NUMBER_LENGTH_MAX: usize = 3;

const SAMPLE_LENGTH: usize = 16;
const FORM_MASK: u8 = 0xc0;
const SHORT_FORM: u8 = 0x40;
const PROTECTED_BITS: u8 = 0x3f;
const KEY_PHASE: u8 = 0x20;
const RESERVED_BITS: u8 = 0x1c;
const NUMBER_LENGTH_BITS: u8 = 0x03;

/// Bytes of a short header.
pub(super) const fn length(destination_length: usize, number_length: usize) -> usize {
    destination_length.saturating_add(1 + 1 + number_length)
}

/// Sets the bit K of an unprotected header.
pub(super) fn write_key_phase(datagram: &mut [u8], phase: bool) {
    if let Some(first) = datagram.first_mut() {
        *first = *first & !KEY_PHASE | if phase { KEY_PHASE } else { 0 };
    }
}

/// The fields of a short header after its protection was removed. Not authentic yet.
pub(super) struct Unprotected {
    pub(super) path: PathId,
    pub(super) phase: bool,
    pub(super) has_reserved_bits: bool,
    /// Bytes of the whole header.
    pub(super) length: usize,
    truncated: u64,
    number_bits: u32,
}

impl Unprotected {
    /// The fields of a datagram that begins with an uncovered header of `length` bytes.
    pub(super) fn parse(datagram: &[u8], length: usize) -> Self {
        let first = datagram[0];
        let number_length = usize::from(first & NUMBER_LENGTH_BITS);
        let (fields, number) = datagram[..length].split_at(length - number_length);
        Self {
            path: PathId(fields[fields.len() - 1]),
            phase: first & KEY_PHASE != 0,
            has_reserved_bits: first & RESERVED_BITS != 0,
            length,
            truncated: number.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
            number_bits: 8 * number_length as u32,
        }
    }

    /// The full packet number: of those with these low bits the nearest to the next one expected (RFC 9000 section A.3).
    pub(super) fn restore_number(&self, largest: Option<PacketNumber>) -> PacketNumber {
        let expected = largest.map_or(0, |largest| largest.0 + 1);
        let window = 1_u64 << self.number_bits;
        let candidate = expected & !(window - 1) | self.truncated;
        PacketNumber(if candidate + window / 2 <= expected && candidate < PACKET_NUMBER_MAX - window {
            candidate + window
        } else if candidate > expected + window / 2 && candidate >= window {
            candidate - window
        } else {
            candidate
        })
    }
}

/// The key that hides the header in one direction. It does not change with key updates.
pub(super) struct HeaderProtection(HeaderProtectionKey);

impl HeaderProtection {
    pub(super) fn new(suite: Suite, secret: &[u8; 32]) -> Self {
        let mut bytes: [u8; 32] = expand(secret, &[b"ctcp hp"]);
        let key = HeaderProtectionKey::new(suite.header_protection(), &bytes)
            .expect("both suites have header keys of 32 bytes");
        wipe(&mut bytes);
        Self(key)
    }

    /// Hides the header of a sealed datagram that is long enough for the sample.
    pub(super) fn protect(&self, datagram: &mut [u8], header: &SealHeader) {
        let mask = self.mask(datagram, header.destination_length).expect("sealing padded for the sample");
        let fields = 1 + header.destination_length;
        debug_assert_eq!(usize::from(datagram[0] & NUMBER_LENGTH_BITS), header.packet_number_length);
        datagram[0] ^= mask[0] & PROTECTED_BITS;
        datagram[fields..]
            .iter_mut()
            .zip(&mask[1..2 + header.packet_number_length])
            .for_each(|(b, m)| *b ^= m);
    }

    /// Uncovers the header of a received datagram; `None`, with the last 16 bytes and the form bits intact, if
    /// it cannot be one.
    pub(super) fn unprotect(&self, datagram: &mut [u8], destination_length: usize) -> Option<Unprotected> {
        let mask = self.mask(datagram, destination_length)?;
        let (first, rest) = datagram.split_first_mut()?;
        if *first & FORM_MASK != SHORT_FORM {
            return None;
        }
        let uncovered = *first ^ mask[0] & PROTECTED_BITS;
        let number_length = usize::from(uncovered & NUMBER_LENGTH_BITS);
        if number_length == 0 {
            return None;
        }
        *first = uncovered;
        let fields = rest.get_mut(destination_length..=destination_length + number_length)?;
        fields.iter_mut().zip(&mask[1..]).for_each(|(byte, mask)| *byte ^= mask);
        Some(Unprotected::parse(datagram, length(destination_length, number_length)))
    }

    fn mask(&self, datagram: &[u8], destination_length: usize) -> Option<[u8; 5]> {
        let start = length(destination_length, NUMBER_LENGTH_MAX);
        let sample = datagram.get(start..start.checked_add(SAMPLE_LENGTH)?)?;
        self.0.new_mask(sample).ok()
    }
}
