//! Stateless reset (PROTOCOL.md section 2.3, RFC 9000 section 10.3), by which a server reports that it has lost a connection.
//!
//! ```text
//!  +-+-+-+-+-+-+-+-+
//!  |0|1| random (6)|
//!  +-+-+-+-+-+-+-+-+-----------------+
//!  | random (32 or more)             |
//!  +---------------------------------+
//!  | token of the connection id (128)|
//!  +---------------------------------+
//! ```

use core::fmt;
use core::net::SocketAddr;

use ring::hmac;
use zeroize::Zeroizing;

use super::derive::{expand, is_equal};
use super::keys::SecretKey;
use crate::id::ConnectionId;
use crate::network::address_bytes;

/// The length of the shortest reset, which equals that of the shortest sealed packet.
pub const RESET_MIN: usize = 21;
/// A reset is at most this plus [`RESET_SPREAD`] long. That is long enough to look like a packet, and a longer one would carry no more
/// information.
const RESET_USUAL: usize = 42;
/// The range of lengths, so that resets cannot be recognised by their length.
const RESET_SPREAD: usize = 16;

/// The secret by which a connection recognises that its peer has lost it. Comparison takes constant time.
#[derive(Clone, Copy)]
pub struct ResetToken(pub [u8; Self::LENGTH]);

impl ResetToken {
    /// The length of a token in bytes.
    pub const LENGTH: usize = 16;
}

impl PartialEq for ResetToken {
    fn eq(&self, other: &Self) -> bool {
        is_equal(&self.0, &other.0)
    }
}

impl Eq for ResetToken {}

impl fmt::Debug for ResetToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ResetToken(..)")
    }
}

/// Derives the tokens of a server. It depends only on the static key, so a restarted server derives the same tokens. So does a second
/// server with the same key. Therefore a token is valid only for one address of the client, to which the server sends it.
#[derive(Clone)]
pub struct ResetKey(hmac::Key);

impl ResetKey {
    /// The reset key of a server with this static key.
    #[must_use]
    pub fn new(own: &SecretKey) -> Self {
        let key: Zeroizing<[u8; 32]> = Zeroizing::new(expand(own.as_bytes(), &[b"ctcp reset"]));
        Self(hmac::Key::new(hmac::HMAC_SHA256, &*key))
    }

    /// The token of a connection id that this server chose, for a client at this address.
    #[must_use]
    pub fn token(&self, client: SocketAddr, id: &ConnectionId) -> ResetToken {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(&address_bytes(client));
        context.update(id.as_bytes());
        let tag = context.sign();
        let mut token = ResetToken([0; ResetToken::LENGTH]);
        token.0.copy_from_slice(&tag.as_ref()[..ResetToken::LENGTH]);
        token
    }
}

impl fmt::Debug for ResetKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ResetKey(..)")
    }
}

/// Builds the reset that answers a datagram of `triggering_length` bytes. It is shorter than that datagram, so that two sides that have
/// both lost their state do not send resets to each other for ever. Returns `None` if that leaves too little room.
#[must_use]
pub fn write_reset(token: &ResetToken, triggering_length: usize, entropy: &[u8; 32]) -> Option<Vec<u8>> {
    // The last byte determines the length and is not sent.
    let random: [u8; RESET_USUAL + 1] = expand(entropy, &[b"ctcp reset random"]);
    let spread = usize::from(random[RESET_USUAL]) % RESET_SPREAD;
    let length = (RESET_USUAL + spread).min(triggering_length.checked_sub(1)?);
    if length < RESET_MIN {
        return None;
    }
    let mut datagram = random.get(..length - ResetToken::LENGTH)?.to_vec();
    datagram[0] = 0x40 | random[0] & 0x3f;
    datagram.extend_from_slice(&token.0);
    Some(datagram)
}

/// Whether a datagram that could not be opened is a reset with this token.
#[must_use]
pub fn is_reset(datagram: &[u8], token: &ResetToken) -> bool {
    match (datagram.first(), datagram.last_chunk()) {
        (Some(first), Some(last)) if datagram.len() >= RESET_MIN => {
            first & 0xc0 == 0x40 && ResetToken(*last) == *token
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn token_of(key: u8, address: &str, id: u8) -> ResetToken {
        let id = ConnectionId::new(&[id; 8]).unwrap();
        ResetKey::new(&SecretKey::from_bytes([key; 32])).token(client(address), &id)
    }

    fn token() -> ResetToken {
        token_of(9, "192.0.2.1:4433", 1)
    }

    #[test]
    fn a_token_depends_only_on_the_server_key_the_id_and_the_address() {
        assert_eq!(token(), token_of(9, "192.0.2.1:4433", 1));
        assert_eq!(token(), token_of(9, "[::ffff:192.0.2.1]:4433", 1));
        assert_ne!(token(), token_of(8, "192.0.2.1:4433", 1));
        assert_ne!(token(), token_of(9, "192.0.2.1:4433", 2));
        assert_ne!(token(), token_of(9, "192.0.2.1:4434", 1), "another port");
        assert_ne!(token(), token_of(9, "192.0.2.2:4433", 1), "another address");
    }

    #[test]
    fn the_token_matches_the_protocol_page() {
        const TOKEN: &str = "cb7bedf6a304a9e8ca76bccad317ea2e";
        let id = ConnectionId::new(&[0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08]).unwrap();
        let token = ResetKey::new(&SecretKey::from_bytes([2; 32])).token(client("192.0.2.1:4433"), &id);
        assert_eq!(token.0.map(|byte| format!("{byte:02x}")).concat(), TOKEN);
        assert!(include_str!("../../../../docs/test-vectors.txt").contains(TOKEN));
    }

    #[test]
    fn a_reset_is_shorter_than_the_triggering_datagram_and_is_recognised() {
        for triggering in 0..200 {
            match write_reset(&token(), triggering, &[triggering as u8; 32]) {
                None => assert!(triggering <= RESET_MIN),
                Some(datagram) => {
                    assert!(datagram.len() < triggering && datagram.len() >= RESET_MIN);
                    assert_eq!(datagram[0] & 0xc0, 0x40);
                    assert!(is_reset(&datagram, &token()));
                }
            }
        }
    }

    #[test]
    fn the_lengths_of_resets_vary() {
        let lengths: std::collections::BTreeSet<_> =
            (0..64).map(|entropy| write_reset(&token(), 1200, &[entropy; 32]).unwrap().len()).collect();
        assert!(lengths.len() > 8, "{lengths:?}");
    }

    #[test]
    fn anything_else_is_no_reset() {
        let datagram = write_reset(&token(), 1200, &[3; 32]).unwrap();
        for index in (0..16).map(|back| datagram.len() - 1 - back) {
            let mut other = datagram.clone();
            other[index] ^= 0x10;
            assert!(!is_reset(&other, &token()));
        }
        let mut long_header = datagram.clone();
        long_header[0] |= 0x80;
        assert!(!is_reset(&long_header, &token()));
        assert!(!is_reset(&datagram[datagram.len() - 20..], &token()));
        assert!(!is_reset(&[], &token()));
    }
}
