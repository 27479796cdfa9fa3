//! The stateless cookie (PROTOCOL.md section 3), by which a client proves that it receives at its source address.
//!
//! ```text
//!  time (64) | HMAC-SHA-256(secret, time | address (128) | port (16) | client's connection id)[0..16]
//! ```

use core::fmt;
use core::net::SocketAddr;
use core::time::Duration;

use ctcp_base::Instant;
use ring::hmac;

use crate::crypto::derive::is_equal;
use crate::id::ConnectionId;
use crate::network::address_bytes;

/// How long a token is valid. It covers many repetitions of a client's INITIATE (at most 0.5 s apart), and a stolen token soon becomes
/// worthless.
pub const COOKIE_LIFETIME: Duration = Duration::from_secs(20);

const TIME_LENGTH: usize = 8;
const TAG_LENGTH: usize = 16;

/// Makes and checks tokens. It stores nothing about them.
#[derive(Clone)]
pub struct CookieJar(hmac::Key);

impl CookieJar {
    /// Creates a jar with a secret from a good source of entropy. Tokens of another jar are not valid in this one.
    #[must_use]
    pub fn new(secret: [u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, &secret))
    }

    /// Makes a token for a client with this address and connection id.
    #[must_use]
    pub fn make(&self, now: Instant, address: SocketAddr, client_id: &ConnectionId) -> Vec<u8> {
        let mut token = now.as_nanos().to_be_bytes().to_vec();
        token.extend_from_slice(&self.tag(now, address, client_id));
        token
    }

    /// Whether this jar made the token for this address and connection id, at most [`COOKIE_LIFETIME`] ago.
    #[must_use]
    pub fn is_valid(
        &self,
        now: Instant,
        address: SocketAddr,
        client_id: &ConnectionId,
        token: &[u8],
    ) -> bool {
        let Some((time, tag)) = token.split_first_chunk::<TIME_LENGTH>() else { return false };
        let made = Instant::from_nanos(u64::from_be_bytes(*time));
        is_equal(tag, &self.tag(made, address, client_id)) && made <= now && now - made <= COOKIE_LIFETIME
    }

    fn tag(&self, made: Instant, address: SocketAddr, client_id: &ConnectionId) -> [u8; TAG_LENGTH] {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(&made.as_nanos().to_be_bytes());
        context.update(&address_bytes(address));
        context.update(client_id.as_bytes());
        let full = context.sign();
        let mut tag = [0; TAG_LENGTH];
        tag.copy_from_slice(&full.as_ref()[..TAG_LENGTH]);
        tag
    }
}

impl fmt::Debug for CookieJar {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("CookieJar(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_secs(1000);

    fn id(byte: u8) -> ConnectionId {
        ConnectionId::new(&[byte; 8]).unwrap()
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_token_is_valid_only_for_its_client() {
        let jar = CookieJar::new([1; 32]);
        let here = address("192.0.2.1:4000");
        let token = jar.make(NOW, here, &id(1));
        assert_eq!(token.len(), TIME_LENGTH + TAG_LENGTH);
        assert!(jar.is_valid(NOW, here, &id(1), &token));
        assert!(jar.is_valid(NOW, address("[::ffff:192.0.2.1]:4000"), &id(1), &token));
        assert!(!jar.is_valid(NOW, address("192.0.2.2:4000"), &id(1), &token));
        assert!(!jar.is_valid(NOW, address("192.0.2.1:4001"), &id(1), &token));
        assert!(!jar.is_valid(NOW, address("[2001:db8::1]:4000"), &id(1), &token));
        assert!(!jar.is_valid(NOW, here, &id(2), &token));
        assert!(!jar.is_valid(NOW, here, &ConnectionId::new(&[1; 7]).unwrap(), &token));
        assert!(!CookieJar::new([2; 32]).is_valid(NOW, here, &id(1), &token));
    }

    #[test]
    fn a_token_is_valid_for_20_seconds_and_not_before_it_was_made() {
        let jar = CookieJar::new([1; 32]);
        let here = address("[2001:db8::1]:4000");
        let token = jar.make(NOW, here, &id(1));
        let nanosecond = Duration::from_nanos(1);
        assert!(jar.is_valid(NOW + COOKIE_LIFETIME, here, &id(1), &token));
        assert!(!jar.is_valid(NOW + COOKIE_LIFETIME + nanosecond, here, &id(1), &token));
        assert!(!jar.is_valid(NOW.saturating_back(nanosecond), here, &id(1), &token));
    }

    #[test]
    fn a_changed_or_truncated_token_is_rejected() {
        let jar = CookieJar::new([1; 32]);
        let here = address("192.0.2.1:4000");
        let token = jar.make(NOW, here, &id(1));
        for bit in 0..8 * token.len() {
            let mut other = token.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!jar.is_valid(NOW, here, &id(1), &other), "bit {bit}");
        }
        for length in 0..token.len() {
            assert!(!jar.is_valid(NOW, here, &id(1), &token[..length]));
        }
        assert!(!jar.is_valid(NOW, here, &id(1), &[token, vec![0]].concat()));
    }
}
