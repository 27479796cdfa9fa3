//! The tag by which a first packet shows that its sender knows the server's public key (PROTOCOL.md section 3), like `mac1` of WireGuard.
//! With it, garbage costs a server one hash.
//!
//! ```text
//!  INITIATE, at least 1200 bytes                                              | tag (16)
//!  <------------------------- HMAC-SHA-256(key, all of this)[0..16] ---------->
//!  key = Expand(server's public key, "ctcp first packet", 32)
//! ```
//!
//! Anyone who knows the public key can compute the key, so the tag proves no more than that.

use core::fmt;

use ring::hmac;

use super::derive::{expand, is_equal};
use super::keys::PublicKey;
use crate::wire::FIRST_PACKET_TAG_LENGTH;

/// Tags and checks first packets for one server.
#[derive(Clone)]
pub struct FirstPacketKey(hmac::Key);

impl FirstPacketKey {
    /// The key for first packets to the server with this public key.
    #[must_use]
    pub fn new(server: &PublicKey) -> Self {
        let key: [u8; 32] = expand(&server.0, &[b"ctcp first packet"]);
        Self(hmac::Key::new(hmac::HMAC_SHA256, &key))
    }

    /// Overwrites the last 16 bytes of a datagram with its tag.
    pub fn write_tag(&self, datagram: &mut [u8]) {
        if let Some((covered, tag)) = datagram.split_last_chunk_mut() {
            *tag = self.tag(covered);
        }
    }

    /// Whether a datagram ends with its tag.
    #[must_use]
    pub fn is_tagged(&self, datagram: &[u8]) -> bool {
        datagram
            .split_last_chunk::<FIRST_PACKET_TAG_LENGTH>()
            .is_some_and(|(covered, tag)| is_equal(tag, &self.tag(covered)))
    }

    fn tag(&self, covered: &[u8]) -> [u8; FIRST_PACKET_TAG_LENGTH] {
        let full = hmac::sign(&self.0, covered);
        let mut tag = [0; FIRST_PACKET_TAG_LENGTH];
        tag.copy_from_slice(&full.as_ref()[..FIRST_PACKET_TAG_LENGTH]);
        tag
    }
}

impl fmt::Debug for FirstPacketKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("FirstPacketKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_valid_only_for_its_server_and_its_bytes() {
        let (key, other) =
            (FirstPacketKey::new(&PublicKey([1; 32])), FirstPacketKey::new(&PublicKey([2; 32])));
        let mut datagram = vec![7; 40];
        assert!(!key.is_tagged(&datagram));
        key.write_tag(&mut datagram);
        assert!(key.is_tagged(&datagram) && !other.is_tagged(&datagram));
        for bit in 0..8 * datagram.len() {
            let mut changed = datagram.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(!key.is_tagged(&changed), "bit {bit}");
        }
        for length in 0..datagram.len() {
            assert!(!key.is_tagged(&datagram[..length]));
        }
    }
}
