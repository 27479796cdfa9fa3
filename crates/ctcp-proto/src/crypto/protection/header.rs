//! Header protection (RFC 9001 section 5.4, PROTOCOL.md section 2.2).
//!
//! ```text
//!  | 01KrrrLL | destination id | path (8) | number, 1..3 | sealed frames ... | tag |
//!    ^^^^^^^^                    ^^^^^^^^   ^^^^^^^^^^^^
//!    mask 0 (low six bits)       mask 1     mask 2, 3, 4
//!                              |<------- 4 ----------->|<-- sample (16) -->|
//! ```

use ring::aead::quic::HeaderProtectionKey;
use zeroize::Zeroizing;

use super::SealHeader;
use crate::crypto::derive::expand;
use crate::crypto::suite::Suite;
use crate::id::PathId;
use crate::wire::TruncatedNumber;

const SAMPLE_LENGTH: usize = 16;
const FORM_MASK: u8 = 0xc0;
const SHORT_FORM: u8 = 0x40;
const PROTECTED_BITS: u8 = 0x3f;
const KEY_PHASE: u8 = 0x20;
const RESERVED_BITS: u8 = 0x1c;
const NUMBER_LENGTH_BITS: u8 = 0x03;

/// The length of a short header in bytes.
pub(super) const fn length(destination_length: usize, number_length: usize) -> usize {
    destination_length.saturating_add(1 + 1 + number_length)
}

/// Sets the key phase bit K of an unprotected header.
pub(super) fn write_key_phase(datagram: &mut [u8], phase: bool) {
    if let Some(first) = datagram.first_mut() {
        *first = *first & !KEY_PHASE | if phase { KEY_PHASE } else { 0 };
    }
}

/// The fields of a short header after its protection was removed. Not authenticated yet.
pub(super) struct Unprotected {
    pub(super) path: PathId,
    pub(super) phase: bool,
    pub(super) has_reserved_bits: bool,
    pub(super) truncated: TruncatedNumber,
    /// The length of the whole header in bytes.
    pub(super) length: usize,
}

/// The key for header protection in one direction. It does not change with key updates.
pub(super) struct HeaderProtection(HeaderProtectionKey);

impl HeaderProtection {
    pub(super) fn new(suite: Suite, secret: &[u8; 32]) -> Self {
        let bytes: Zeroizing<[u8; 32]> = Zeroizing::new(expand(secret, &[b"ctcp hp"]));
        let key = HeaderProtectionKey::new(suite.header_protection(), &*bytes)
            .expect("both suites have header keys of 32 bytes");
        Self(key)
    }

    /// Protects the header of a sealed datagram that is long enough for the sample.
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

    /// Removes the protection of a received datagram's header. Returns `None` if it cannot be a short header; the last 16 bytes and the
    /// form bits are then unchanged.
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
        let (path, number) = fields.split_first()?;
        Some(Unprotected {
            path: PathId(*path),
            phase: uncovered & KEY_PHASE != 0,
            has_reserved_bits: uncovered & RESERVED_BITS != 0,
            truncated: TruncatedNumber::from_bytes(number).ok()?,
            length: length(destination_length, number_length),
        })
    }

    fn mask(&self, datagram: &[u8], destination_length: usize) -> Option<[u8; 5]> {
        let start = length(destination_length, TruncatedNumber::LENGTH_MAX);
        let sample = datagram.get(start..start.checked_add(SAMPLE_LENGTH)?)?;
        self.0.new_mask(sample).ok()
    }
}
