//! The parameter that offers and accepts ML-KEM-768 (PROTOCOL.md section 3.2).
//!
//! ```text
//!  client   number (8) | SHA-256 of the part (32 bytes) | last 96 bytes of the key       part: the first 1088 bytes of the key
//!  server   number (8) | SHA-256 of the part (32 bytes)                                  part: the ciphertext
//! ```
//!
//! The parameter is inside a Noise message, so a part that matches is authentic as well.

use super::{ParameterError, id, write_bytes};
use crate::crypto::kem::{KEM_CIPHERTEXT_LENGTH, KEM_KEY_LENGTH, digest_of};
use crate::id::Role;
use crate::wire::PART_LENGTH;

/// The number of ML-KEM-768 in the hybrid parameter.
const ML_KEM_768: u8 = 1;
/// The bytes of an encapsulation key that do not fit into the part.
const TAIL_LENGTH: usize = KEM_KEY_LENGTH - PART_LENGTH;
const _: () = assert!(KEM_CIPHERTEXT_LENGTH == PART_LENGTH, "a ciphertext is one part");

/// Commits to the part of a message, the first [`PART_LENGTH`] bytes of an encapsulation key or all of a ciphertext of ML-KEM-768.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HybridParameter {
    /// SHA-256 of the part.
    pub digest: [u8; 32],
    /// From a client, the last 96 bytes of its key.
    pub tail: Option<[u8; TAIL_LENGTH]>,
}

impl HybridParameter {
    /// Splits a client's key into the parameter and the part.
    #[must_use]
    pub fn of_key(key: &[u8; KEM_KEY_LENGTH]) -> (Self, [u8; PART_LENGTH]) {
        let (part, tail) = key.split_at(PART_LENGTH);
        let part = part.try_into().expect("the key is longer");
        (Self { tail: tail.try_into().ok(), ..Self::of_ciphertext(part) }, *part)
    }

    /// The parameter for a server's ciphertext, which is the part.
    #[must_use]
    pub fn of_ciphertext(ciphertext: &[u8; PART_LENGTH]) -> Self {
        Self { digest: digest_of(ciphertext), tail: None }
    }

    /// Whether this is the part to which the message commits.
    #[must_use]
    pub fn matches(&self, part: &[u8; PART_LENGTH]) -> bool {
        self.digest == digest_of(part)
    }

    /// The client's key, or `None` if this is not the part to which the message commits.
    #[must_use]
    pub fn key(&self, part: &[u8; PART_LENGTH]) -> Option<[u8; KEM_KEY_LENGTH]> {
        let tail = self.tail.filter(|_| self.matches(part))?;
        let mut key = [0; KEM_KEY_LENGTH];
        key[..PART_LENGTH].copy_from_slice(part);
        key[PART_LENGTH..].copy_from_slice(&tail);
        Some(key)
    }

    /// Parses the parameter. A client may offer what this version does not know; a server must choose what was offered.
    pub(super) fn parse(value: &[u8], sender: Role) -> Result<Option<Self>, ParameterError> {
        let out_of_range = ParameterError::OutOfRange(id::HYBRID);
        let (&number, value) = value.split_first().ok_or(out_of_range)?;
        if number != ML_KEM_768 {
            return if sender == Role::Client { Ok(None) } else { Err(out_of_range) };
        }
        let (&digest, tail) = value.split_first_chunk().ok_or(out_of_range)?;
        let tail = match sender {
            Role::Client => Some(tail.try_into().map_err(|_| out_of_range)?),
            Role::Server if tail.is_empty() => None,
            Role::Server => return Err(out_of_range),
        };
        Ok(Some(Self { digest, tail }))
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let tail = self.tail.as_ref().map_or(&[][..], |tail| &tail[..]);
        write_bytes(out, id::HYBRID, &[&[ML_KEM_768], &self.digest[..], tail].concat());
    }
}
