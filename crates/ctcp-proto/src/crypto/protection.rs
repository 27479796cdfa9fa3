//! Sealing and opening packets (PROTOCOL.md section 2.2; RFC 9001 sections 5 and 6, RFC 10069 for the nonce).
//!
//! ```text
//!   secret_0 --"ctcp ku"--> secret_1 --"ctcp ku"--> secret_2 ...      one chain per direction
//!      | "ctcp key", "ctcp iv"   |                     |
//!      v                         v                     v
//!   key_0, iv_0 (K = 0)     key_1, iv_1 (K = 1)   key_2, iv_2 (K = 0)
//! ```
//!
//! Invariants: a packet number is sealed at most once on each path. The sending phase equals the receiving phase or is the one after it. No
//! part of a packet is used before it was authenticated.
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

/// Number of packets under one key after which the next key is used. Half of [`SEALED_MAX`], because an update must wait for the
/// acknowledgement of a packet of the current phase, and that wait must not exceed the limit.
pub const UPDATE_AFTER: u64 = SEALED_MAX / 2;
/// Maximum number of packets under one key: the confidentiality limit of AES-GCM (RFC 9001 section 6.6), used for both suites.
pub const SEALED_MAX: u64 = 1 << 23;

/// Limits on the use of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyLimits {
    /// Number of packets under one key after which it is replaced, see [`UPDATE_AFTER`].
    pub update_after: u64,
    /// Maximum number of packets under one key, see [`SEALED_MAX`].
    pub sealed_max: u64,
    /// Number of packets over the life of the connection that may fail to open (RFC 9001 section 6.6).
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

/// What [`PacketProtection::seal`] must know about the header in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealHeader {
    /// Where the datagram begins in the buffer. Other datagrams of the same batch may precede it.
    pub start: usize,
    /// The length of the destination connection id in bytes.
    pub destination_length: usize,
    /// The path in the header.
    pub path: PathId,
    /// The full packet number, larger than any sealed before on the path.
    pub packet_number: PacketNumber,
    /// The length of the truncated number in the header, 1 to 3 bytes.
    pub packet_number_length: usize,
}

/// An authenticated packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The path in its header.
    pub path: PathId,
    /// The full packet number. It may still be a replay.
    pub packet_number: PacketNumber,
    /// Whether it is the first packet of a new key phase.
    pub key_phase_changed: bool,
    /// The range of its frames in the datagram.
    pub payload: Range<usize>,
}

/// Why a packet was not opened. Only [`Self::ReservedBits`] is a violation by the peer; anyone can cause the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// Too short, not a short header, or an invalid length of the packet number.
    Malformed,
    /// It was not sealed by the peer, was modified, or belongs to an older phase.
    NotAuthentic,
    /// An authentic packet with reserved bits set.
    ReservedBits,
    /// Too many packets failed to open, so the keys must not be used any more: close with `AEAD_LIMIT_REACHED`.
    LimitReached,
}

impl fmt::Display for OpenError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Malformed => "not a sealed packet",
            Self::NotAuthentic => "the packet is not authentic",
            Self::ReservedBits => "reserved bits of the header are set",
            Self::LimitReached => "too many packets failed authentication",
        })
    }
}

impl core::error::Error for OpenError {}

/// Why a packet could not be sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealError {
    /// The key has reached its limit, and the peer has acknowledged none of its packets, so there is no next key: close with
    /// `AEAD_LIMIT_REACHED`.
    LimitReached,
}

impl fmt::Display for SealError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the key has reached its limit and no update is possible")
    }
}

impl core::error::Error for SealError {}

/// The keys of a connection for both directions.
pub struct PacketProtection {
    suite: Suite,
    limits: KeyLimits,
    send_header: HeaderProtection,
    receive_header: HeaderProtection,
    send: SendPhases,
    receive: ReceivePhases,
    /// Updates must wait for a secret that is being negotiated.
    is_held: bool,
    failures: u64,
}

impl PacketProtection {
    /// Derives the keys of phase 0 from the secrets of the handshake.
    #[must_use]
    pub fn new(suite: Suite, send_secret: [u8; 32], receive_secret: [u8; 32]) -> Self {
        Self::with_limits(suite, send_secret, receive_secret, KeyLimits::of(suite))
    }

    /// Uses other limits, for tests that cannot send 2^23 packets.
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

    /// The negotiated suite.
    #[must_use]
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// Seals the datagram from `header.start` to the end of `buffer`, which consists of an unprotected header and frames.
    ///
    /// Sets the key phase bit, appends PADDING if required for the header protection sample (at most 2 bytes), encrypts in place, appends
    /// the tag, and protects the header. Updates the key when it is due and the peer allows it.
    ///
    /// # Errors
    /// Returns an error if the key has reached its limit, see [`Self::needs_acknowledgement`]. The buffer is then unchanged.
    ///
    /// # Panics
    /// Panics if the buffer does not hold such a header, or if the packet number does not exceed all earlier ones of the path. Sealing a
    /// number twice would reveal the plaintext.
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

    /// Opens a datagram with a short header in place. `destination_length` is the length of this side's connection ids. `largest_received`
    /// returns the largest packet number accepted on a path (`None` if there is none, or no such path).
    ///
    /// A packet of a new key phase switches receiving and sending to that phase. If opening fails, the bytes are garbage, except for the
    /// last 16 and the top bits of the first, by which a stateless reset is recognised.
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
        // Only after authentication: an earlier answer would reveal the protected bits to an attacker (RFC 9001 section 9.5).
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

    /// The peer acknowledged a packet. An acknowledgement in the current phase permits the next key update.
    pub fn on_acked(&mut self, path: PathId, packet_number: PacketNumber) {
        self.send.on_acked(path, packet_number);
    }

    /// Switches to the next sending key. Returns false and changes nothing while the peer may not be able to follow: it has not
    /// acknowledged a packet of the current phase, or still seals with the previous key. Updates that are held are not started, either.
    pub fn initiate_key_update(&mut self) -> bool {
        let is_allowed = !self.is_held && self.send.is_acked() && self.send.number() == self.receive.number();
        if is_allowed {
            self.send.advance();
        }
        is_allowed
    }

    /// Whether the current key has reached its update threshold. [`Self::seal`] checks this itself.
    #[must_use]
    pub fn needs_key_update(&self) -> bool {
        self.send.sealed() >= self.limits.update_after
    }

    /// Whether a key update is due and only waits for an acknowledgement. A side that sends nothing but ACKs should then send a PING.
    #[must_use]
    pub fn needs_acknowledgement(&self) -> bool {
        self.needs_key_update() && !self.send.is_acked()
    }

    /// The key phase bit K of packets sealed now.
    #[must_use]
    pub fn key_phase(&self) -> bool {
        self.send.bit()
    }

    /// The phases of sending and receiving, from 0.
    #[must_use]
    pub const fn phases(&self) -> (u64, u64) {
        (self.send.number(), self.receive.number())
    }

    /// Sets whether to start no updates for now. Updates of the peer are followed all the same.
    pub fn hold_updates(&mut self, is_held: bool) {
        self.is_held = is_held;
    }

    /// Mixes a shared secret into the keys of the next phase in both directions. The peer must do the same before that phase.
    pub fn mix_into_next(&mut self, shared: &[u8; 32]) {
        self.send.mix_into_next(shared);
        self.receive.mix_into_next(shared);
    }

    /// Wipes the key of the previous phase. Packets under it that are still in flight are lost.
    pub fn forget_previous_key(&mut self) {
        self.receive.forget_previous();
    }

    /// Number of packets sealed under the current key.
    #[must_use]
    pub const fn packets_sealed(&self) -> u64 {
        self.send.sealed()
    }

    /// Number of packets that failed to open so far.
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

/// Key and IV of one phase in one direction. When dropped, both are overwritten as far as safe code allows, since `ring` does not wipe its
/// keys.
struct PacketKey {
    key: LessSafeKey,
    iv: [u8; aead::NONCE_LEN],
}

impl PacketKey {
    fn new(suite: Suite, secret: &[u8; 32]) -> Self {
        let bytes = Zeroizing::new(expand(secret, &[b"ctcp key"]));
        Self { key: aead_key(suite.aead(), &bytes), iv: expand(secret, &[b"ctcp iv"]) }
    }

    /// The path id (32 bits) and packet number (64 bits), XORed with the IV.
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

    /// Opens `payload` (ciphertext and tag) in place. After a failure it is garbage except for the tag.
    fn open(&self, nonce: Nonce, associated: &[u8], payload: &mut [u8]) -> bool {
        self.key.open_in_place(nonce, Aad::from(associated), payload).is_ok()
    }
}

impl Drop for PacketKey {
    fn drop(&mut self) {
        self.key = aead_key(self.key.algorithm(), &[0; 32]);
        // Prevents the compiler from removing the write.
        core::hint::black_box(&mut self.key);
        self.iv.zeroize();
    }
}

fn aead_key(algorithm: &'static aead::Algorithm, bytes: &[u8; 32]) -> LessSafeKey {
    LessSafeKey::new(aead::UnboundKey::new(algorithm, bytes).expect("both suites have keys of 32 bytes"))
}
