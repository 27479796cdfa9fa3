//! Static X25519 keys (RFC 7748), in the text format of WireGuard: 32 bytes in standard base64, 44 characters.

use core::fmt;
use core::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use snow::params::DHChoice;
use snow::resolvers::{CryptoResolver, DefaultResolver};
use zeroize::{Zeroize, Zeroizing};

/// A static private key. Its `Debug` output does not reveal it, and it is wiped when dropped.
#[derive(Clone)]
pub struct SecretKey([u8; 32]);

impl SecretKey {
    /// Creates a key from 32 bytes of a good source of entropy. Every value is a valid key (X25519 clamps it).
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The key's bytes, as given. They are the secret: do not log them.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The text for a key file, which [`FromStr`] parses. It is the secret: do not log it.
    #[must_use]
    pub fn to_base64(&self) -> String {
        STANDARD.encode(self.0)
    }

    /// The corresponding public key.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        let mut pair =
            DefaultResolver.resolve_dh(&DHChoice::Curve25519).expect("snow is built with Curve25519");
        pair.set(&self.0);
        let bytes = pair.pubkey().try_into().expect("a public key of Curve25519 has 32 bytes");
        PublicKey(bytes)
    }
}

impl Drop for SecretKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretKey(..)")
    }
}

impl FromStr for SecretKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        parse(text).map(Self)
    }
}

/// A static public key, which identifies a peer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey(pub [u8; 32]);

impl fmt::Display for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&STANDARD.encode(self.0))
    }
}

impl PublicKey {
    /// The first eight characters of the key in base64: enough to distinguish the clients of a server in logs and metrics, and to find the
    /// key in a list. It proves nothing, since other keys with the same prefix can be generated.
    #[must_use]
    pub fn short(&self) -> String {
        let mut text = self.to_string();
        text.truncate(SHORT_LENGTH);
        text
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PublicKey({self})")
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        parse(text).map(Self)
    }
}

/// The number of characters in [`PublicKey::short`]: 48 bits.
const SHORT_LENGTH: usize = 8;

/// The text is not a key: not exactly 32 bytes in canonical base64 with padding. The error does not include the text, which may be most of
/// a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyError;

impl fmt::Display for KeyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key is 32 bytes in base64: 44 characters, the last one '='")
    }
}

impl core::error::Error for KeyError {}

fn parse(text: &str) -> Result<[u8; 32], KeyError> {
    let decoded = Zeroizing::new(STANDARD.decode(text).map_err(|_| KeyError)?);
    decoded.as_slice().try_into().map_err(|_| KeyError)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> [u8; 32] {
        core::array::from_fn(|index| u8::from_str_radix(&hex[2 * index..2 * index + 2], 16).unwrap())
    }

    #[test]
    fn public_keys_meet_rfc_7748_section_6_1() {
        let bob = bytes("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb");
        let public = bytes("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f");
        assert_eq!(SecretKey::from_bytes(bob).public_key(), PublicKey(public));
    }

    #[test]
    fn a_key_is_parsed_as_it_is_written() {
        let secret = SecretKey::from_bytes([7; 32]);
        let public = secret.public_key();
        assert_eq!(public.to_string().parse(), Ok(public));
        assert_eq!(public.to_string().len(), 44);
        let again: SecretKey = secret.to_base64().parse().unwrap();
        assert_eq!(again.public_key(), public);
    }

    #[test]
    fn any_other_text_is_rejected() {
        let good = PublicKey([7; 32]).to_string();
        for bad in [
            String::new(),
            good[..43].to_string(),
            format!("{good}="),
            format!(" {good}"),
            format!("{good}\n"),
            good.replace('=', "A"),
            good.replace('B', "-"),
            // The last character carries two bits that must be zero.
            format!("{}9=", &good[..42]),
        ] {
            assert_eq!(bad.parse::<PublicKey>(), Err(KeyError), "{bad:?}");
        }
    }

    #[test]
    fn a_secret_key_does_not_print_itself() {
        let secret = SecretKey::from_bytes([7; 32]);
        assert_eq!(format!("{secret:?}"), "SecretKey(..)");
    }
}
