//! Sealing and opening packets (PROTOCOL.md section 2.2; RFC 9001 sections 5 and 6, RFC 10069 for the nonce).
//!
//! ```text
//!   secret_0 --"ctcp ku"--> secret_1 --"ctcp ku"--> secret_2 ...      one chain per direction
//!      | "ctcp key", "ctcp iv"   |                     |
//!      v                         v                     v
//!   key_0, iv_0 (K = 0)     key_1, iv_1 (K = 1)   key_2, iv_2 (K = 0)
//! ```
//!
//! Invariants: a packet number of a path is never sealed twice; the sending phase is the receiving phase or the one
//! after it; nothing of a packet is believed before it opened.
//!
//! Requirement: U9

mod header;
mod phase;
#[cfg(test)]
mod tests;

use core::fmt;
use core::ops::Range;

use ring::aead::{self, Aad, LessSafeKey, Nonce};
use zeroize::{Zeroize, Zeroizing};

use self::header::HeaderProtection;
use self::phase::{ReceivePhases, SendPhases};
use super::derive::expand;
use super::suite::Suite;
use crate::id::{PacketNumber, PathId};
use crate::wire::{TAG_LENGTH, TruncatedNumber};

/// Packets under one key after which the next key is taken. Half of [`SEALED_MAX`]: an update must wait for the
/// acknowledgement of a packet of the current phase, and that wait must not pass the limit.
pub const UPDATE_AFTER: u64 = SEALED_MAX / 2;
/// Most packets under one key: the confidentiality limit of AES-GCM (RFC 9001 section 6.6), used for both suites.
pub const SEALED_MAX: u64 = 1 << 23;

/// How much a key may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyLimits {
    /// Packets under one key after which it is replaced, see [`UPDATE_AFTER`].
    pub update_after: u64,
    /// Most packets under one key, see [`SEALED_MAX`].
    pub sealed_max: u64,
    /// Packets in the life of the connection that may fail to open (RFC 9001 section 6.6).
    pub failures_max: u64,
}

impl KeyLimits {
    /// The limits of a suite.
    #[must_use]
    pub const fn of(suite: Suite) -> Self {
        let failures_max = match suite {
            Suite::Aes256Gcm => 1 << 52,
            Suite::ChaCha20Poly1305 => 1 << 36,
        };
        Self { update_after: UPDATE_AFTER, sealed_max: SEALED_MAX, failures_max }
    }
}

/// What [`PacketProtection::seal`] must know about the header that stands in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealHeader {
    /// Where the datagram begins in the buffer: others may precede it when they leave in one batch.
    pub start: usize,
    /// Bytes of the destination connection id.
    pub destination_length: usize,
    /// The path, as in the header.
    pub path: PathId,
    /// The full packet number; larger than any sealed before on the path.
    pub packet_number: PacketNumber,
    /// Bytes of the truncated number in the header, 1 to 3.
    pub packet_number_length: usize,
}

/// A packet that is authentic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The path its header names.
    pub path: PathId,
    /// Its full packet number. Whether it is a replay is not known here.
    pub packet_number: PacketNumber,
    /// It was the first of a new key phase.
    pub key_phase_changed: bool,
    /// Where its frames are in the datagram.
    pub payload: Range<usize>,
}

/// Why a packet was not opened. Only [`Self::ReservedBits`] is the peer's fault: the rest anybody can provoke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// Too short, no short header, or a packet number of no length.
    Malformed,
    /// It was not sealed by the peer, or was changed on its way, or is of a phase long gone.
    NotAuthentic,
    /// An authentic packet with reserved bits set.
    ReservedBits,
    /// So many packets failed to open that the keys must not be used any more: close with `AEAD_LIMIT_REACHED`.
    LimitReached,
}

impl fmt::Display for OpenError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Malformed => "not a sealed packet",
            Self::NotAuthentic => "the packet is not authentic",
            Self::ReservedBits => "reserved bits of the header are set",
            Self::LimitReached => "too many packets did not open",
        })
    }
}

impl core::error::Error for OpenError {}

/// Why a packet cannot be sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealError {
    /// The key was used as often as it may be, and the peer acknowledged none of its packets, so that there is no
    /// next one: close with `AEAD_LIMIT_REACHED`.
    LimitReached,
}

impl fmt::Display for SealError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the key is used up and the peer allows no other")
    }
}

impl core::error::Error for SealError {}

/// The keys of a connection, both directions.
pub struct PacketProtection {
    suite: Suite,
    limits: KeyLimits,
    send_header: HeaderProtection,
    receive_header: HeaderProtection,
    send: SendPhases,
    receive: ReceivePhases,
    /// The next key must wait for a secret that is being agreed on.
    is_held: bool,
    failures: u64,
}

impl PacketProtection {
    /// The keys of phase 0 from the secrets of the handshake.
    #[must_use]
    pub fn new(suite: Suite, send_secret: [u8; 32], receive_secret: [u8; 32]) -> Self {
        Self::with_limits(suite, send_secret, receive_secret, KeyLimits::of(suite))
    }

    /// The same with other limits, for tests that cannot send 2^23 packets.
    #[must_use]
    pub fn with_limits(
        suite: Suite,
        send_secret: [u8; 32],
        receive_secret: [u8; 32],
        limits: KeyLimits,
    ) -> Self {
        Self {
            suite,
            limits,
            send_header: HeaderProtection::new(suite, &send_secret),
            receive_header: HeaderProtection::new(suite, &receive_secret),
            send: SendPhases::new(suite, send_secret),
            receive: ReceivePhases::new(suite, receive_secret),
            is_held: false,
            failures: 0,
        }
    }

    /// The suite that was agreed on.
    #[must_use]
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// Seals the datagram that begins at `header.start` and runs to the end of `buffer`: unprotected header and frames.
    ///
    /// Sets the key phase bit, appends PADDING if the header protection sample needs it (at most 2 bytes), encrypts in
    /// place, appends the tag, protects the header. Takes the next key when it is time and the peer allows it.
    ///
    /// # Errors
    /// The key is used up, see [`Self::needs_acknowledgement`]; the buffer is unchanged then.
    ///
    /// # Panics
    /// If the buffer holds no such header or the packet number does not exceed every earlier one of the path: sealing
    /// a number twice would give away the plaintext, so that is never a matter of luck.
    pub fn seal(&mut self, buffer: &mut Vec<u8>, header: SealHeader) -> Result<(), SealError> {
        if self.needs_key_update() {
            self.initiate_key_update();
        }
        if self.send.sealed() >= self.limits.sealed_max {
            return Err(SealError::LimitReached);
        }
        let header_length = header::length(header.destination_length, header.packet_number_length);
        assert!(
            (1..=TruncatedNumber::LENGTH_MAX).contains(&header.packet_number_length),
            "a packet number has 1 to 3 bytes"
        );
        assert!(header.start + header_length <= buffer.len(), "the buffer holds the header");
        let shortest = header::length(header.destination_length, TruncatedNumber::LENGTH_MAX);
        if buffer.len() - header.start < shortest {
            buffer.resize(header.start + shortest, 0);
        }

        let datagram = &mut buffer[header.start..];
        header::write_key_phase(datagram, self.send.bit());
        let (associated, payload) = datagram.split_at_mut(header_length);
        let tag = self.send.seal(header.path, header.packet_number, associated, payload);
        buffer.extend_from_slice(tag.as_ref());
        self.send_header.protect(&mut buffer[header.start..], &header);
        Ok(())
    }

    /// Opens a datagram with a short header in place. `destination_length` is the length of our connection ids,
    /// `largest_received` tells the largest packet number accepted on a path (`None`: nothing yet, or no such path).
    ///
    /// The packet of a new key phase makes us use that phase for receiving and sending. When opening fails, the bytes are
    /// garbage, except for the last 16 and the top bits of the first, which a stateless reset is known by.
    ///
    /// # Errors
    /// See [`OpenError`]. The caller drops the datagram on the first two.
    pub fn open(
        &mut self,
        datagram: &mut [u8],
        destination_length: usize,
        largest_received: impl Fn(PathId) -> Option<PacketNumber>,
    ) -> Result<Opened, OpenError> {
        let header =
            self.receive_header.unprotect(datagram, destination_length).ok_or(OpenError::Malformed)?;
        let packet_number = header.truncated.restore(largest_received(header.path));
        let Some(opened) = self.receive.open(datagram, &header, packet_number) else {
            self.failures += 1;
            let is_limit_reached = self.failures >= self.limits.failures_max;
            return Err(if is_limit_reached { OpenError::LimitReached } else { OpenError::NotAuthentic });
        };
        // Only now: before, the answer would tell an attacker what the protected bits are (RFC 9001 section 9.5).
        if header.has_reserved_bits {
            return Err(OpenError::ReservedBits);
        }
        while self.send.number() < self.receive.number() {
            self.send.advance();
        }
        Ok(Opened {
            path: header.path,
            packet_number,
            key_phase_changed: opened.key_phase_changed,
            payload: header.length..datagram.len() - TAG_LENGTH,
        })
    }

    /// The peer acknowledged a packet of ours. Acknowledgements of the current phase allow the next key update.
    pub fn on_acked(&mut self, path: PathId, packet_number: PacketNumber) {
        self.send.on_acked(path, packet_number);
    }

    /// Takes the next sending key; false, and nothing changes, as long as the peer might not follow: no packet
    /// of the current phase was acknowledged, or it still seals with the previous one.
    pub fn initiate_key_update(&mut self) -> bool {
        let is_allowed = !self.is_held && self.send.is_acked() && self.send.number() == self.receive.number();
        if is_allowed {
            self.send.advance();
        }
        is_allowed
    }

    /// Whether the current key was used enough. [`Self::seal`] asks for itself.
    #[must_use]
    pub fn needs_key_update(&self) -> bool {
        self.send.sealed() >= self.limits.update_after
    }

    /// Whether the next key is due and only waits for the acknowledgement of any packet: time for a PING from a
    /// side that sends nothing but acknowledgements.
    #[must_use]
    pub fn needs_acknowledgement(&self) -> bool {
        self.needs_key_update() && !self.send.is_acked()
    }

    /// The key phase bit K of the packets that are sealed now.
    #[must_use]
    pub fn key_phase(&self) -> bool {
        self.send.bit()
    }

    /// The phases of sending and receiving, from 0.
    #[must_use]
    pub const fn phases(&self) -> (u64, u64) {
        (self.send.number(), self.receive.number())
    }

    /// Whether we start no update now. The peer's are followed all the same.
    pub fn hold_updates(&mut self, is_held: bool) {
        self.is_held = is_held;
    }

    /// Mixes a secret that the peer has, too, into the keys of the next phase in both directions. The peer must do so
    /// before the same phase.
    pub fn mix_into_next(&mut self, shared: &[u8; 32]) {
        self.send.mix_into_next(shared);
        self.receive.mix_into_next(shared);
    }

    /// Wipes the key of the previous phase: packets under it that are still on their way are lost.
    pub fn forget_previous_key(&mut self) {
        self.receive.forget_previous();
    }

    /// Packets sealed under the current key.
    #[must_use]
    pub const fn packets_sealed(&self) -> u64 {
        self.send.sealed()
    }

    /// Packets that did not open so far.
    #[must_use]
    pub const fn open_failures(&self) -> u64 {
        self.failures
    }
}

impl fmt::Debug for PacketProtection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PacketProtection")
            .field("suite", &self.suite)
            .field("send_phase", &self.send.number())
            .field("receive_phase", &self.receive.number())
            .finish_non_exhaustive()
    }
}

/// Key and IV of one phase in one direction. Dropped, both are overwritten as far as safe code can: `ring` does not wipe
/// its keys.
struct PacketKey {
    key: LessSafeKey,
    iv: [u8; aead::NONCE_LEN],
}

impl PacketKey {
    fn new(suite: Suite, secret: &[u8; 32]) -> Self {
        let bytes = Zeroizing::new(expand(secret, &[b"ctcp key"]));
        Self { key: aead_key(suite.aead(), &bytes), iv: expand(secret, &[b"ctcp iv"]) }
    }

    /// Path id (32) and packet number (64), XOR the IV.
    fn nonce(&self, path: PathId, packet_number: PacketNumber) -> Nonce {
        let mut nonce = self.iv;
        let counter = u128::from(path.0) << 64 | u128::from(packet_number.0);
        for (byte, mask) in nonce.iter_mut().zip(&counter.to_be_bytes()[4..]) {
            *byte ^= mask;
        }
        Nonce::assume_unique_for_key(nonce)
    }

    fn seal(&self, nonce: Nonce, associated: &[u8], payload: &mut [u8]) -> aead::Tag {
        self.key
            .seal_in_place_separate_tag(nonce, Aad::from(associated), payload)
            .expect("a datagram is far below the limits of the AEAD")
    }

    /// Opens `payload` (ciphertext and tag) in place; on failure it is garbage but for the tag.
    fn open(&self, nonce: Nonce, associated: &[u8], payload: &mut [u8]) -> bool {
        self.key.open_in_place(nonce, Aad::from(associated), payload).is_ok()
    }
}

impl Drop for PacketKey {
    fn drop(&mut self) {
        self.key = aead_key(self.key.algorithm(), &[0; 32]);
        // The compiler must believe that somebody reads it, or it drops the write.
        core::hint::black_box(&mut self.key);
        self.iv.zeroize();
    }
}

fn aead_key(algorithm: &'static aead::Algorithm, bytes: &[u8; 32]) -> LessSafeKey {
    LessSafeKey::new(aead::UnboundKey::new(algorithm, bytes).expect("both suites have keys of 32 bytes"))
}
