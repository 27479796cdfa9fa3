//! An X25519 exchange (RFC 7748) within a connection. It gives a fresh secret that an attacker with the old keys does not have.

use core::fmt;

use snow::params::DHChoice;
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::Dh;
use zeroize::Zeroizing;

/// The length of a public share, a private share and the shared secret in bytes.
pub const SHARE_LENGTH: usize = 32;

/// The private half of one exchange.
pub struct KeyShare(Zeroizing<[u8; SHARE_LENGTH]>);

impl KeyShare {
    /// Creates a share from entropy that is not used for anything else.
    #[must_use]
    pub fn new(entropy: [u8; SHARE_LENGTH]) -> Self {
        Self(Zeroizing::new(entropy))
    }

    /// The public share, which is sent to the peer.
    #[must_use]
    pub fn public(&self) -> [u8; SHARE_LENGTH] {
        self.pair().pubkey().try_into().expect("a public key of Curve25519 has 32 bytes")
    }

    /// The shared secret, or `None` if the peer's share leads to no secret (RFC 7748 section 6.1).
    #[must_use]
    pub fn agree(&self, peer: &[u8; SHARE_LENGTH]) -> Option<Zeroizing<[u8; SHARE_LENGTH]>> {
        let mut shared = Zeroizing::new([0; SHARE_LENGTH]);
        self.pair().dh(peer, &mut *shared).ok()?;
        shared.iter().any(|&byte| byte != 0).then_some(shared)
    }

    fn pair(&self) -> Box<dyn Dh> {
        let mut pair =
            DefaultResolver.resolve_dh(&DHChoice::Curve25519).expect("snow is built with Curve25519");
        pair.set(&*self.0);
        pair
    }
}

impl fmt::Debug for KeyShare {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("KeyShare(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_mixed_in_as_the_protocol_page_says() {
        use crate::crypto::derive::expand;

        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let (client, server) = (KeyShare::new([5; 32]), KeyShare::new([6; 32]));
        let shared = client.agree(&server.public()).unwrap();
        let secret_0: [u8; 32] = core::array::from_fn(|index| index as u8);
        let secret_1: [u8; 32] = expand(&secret_0, &[b"ctcp ku"]);
        let mixed: [u8; 32] = expand(&secret_1, &[b"ctcp share", &*shared]);
        let key: [u8; 32] = expand(&mixed, &[b"ctcp key"]);
        let answers = [&client.public()[..], &server.public(), &*shared, &mixed, &key].map(hex);
        // Computed by an independent implementation.
        assert_eq!(answers[4], "ae5b3d384d9879f71deac21751f44aec53c889edf5d8baf2ba5d0d443073251b");
        let page = include_str!("../../../../docs/test-vectors.txt");
        for answer in answers {
            assert!(page.contains(&answer), "{answer}");
        }
    }

    #[test]
    fn both_sides_agree_and_a_share_of_zeros_is_refused() {
        let (one, other) = (KeyShare::new([1; 32]), KeyShare::new([2; 32]));
        let shared = one.agree(&other.public()).unwrap();
        assert_eq!(*shared, *other.agree(&one.public()).unwrap());
        assert_ne!(*shared, *one.agree(&KeyShare::new([3; 32]).public()).unwrap());
        assert!(one.agree(&[0; 32]).is_none());
    }
}
