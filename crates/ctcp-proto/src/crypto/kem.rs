//! ML-KEM-768 (FIPS 203) in the handshake, and the secret that combines it with the Noise handshake (PROTOCOL.md section 3.2).
//!
//! ```text
//!  client   KemSecret::new -> key (1184) ----------------->  encapsulate -> ciphertext (1088), K
//!           KemSecret::open(ciphertext) -> K  <------------
//!
//!  secret_0 = Expand(Extract(handshake hash, K | the direction's key of the Noise split), "ctcp hybrid", 32)
//! ```
//!
//! The secret is safe while either X25519 or ML-KEM is. Nothing here gathers entropy: it is an argument, which must be secret and used once.

use core::fmt;

use ml_kem::kem::{Decapsulate, KeyExport};
use ml_kem::{DecapsulationKey768, EncapsulationKey768};
use ring::{digest, hkdf};
use zeroize::{Zeroize, Zeroizing};

use super::derive::expand_prk;

/// The length of a client's encapsulation key in bytes.
pub const KEM_KEY_LENGTH: usize = 1184;
/// The length of a server's ciphertext in bytes.
pub const KEM_CIPHERTEXT_LENGTH: usize = 1088;

/// The client's private half, wiped when dropped.
pub struct KemSecret(Box<DecapsulationKey768>);

impl KemSecret {
    /// Creates a key pair from the two seeds of FIPS 203 (`d` and `z`).
    #[must_use]
    pub fn new([d, z]: [[u8; 32]; 2]) -> Self {
        let (d, z) = (Zeroizing::new(d), Zeroizing::new(z));
        let mut seed = ml_kem::Seed::default();
        seed[..32].copy_from_slice(&*d);
        seed[32..].copy_from_slice(&*z);
        let key = Box::new(DecapsulationKey768::from_seed(seed));
        seed.zeroize();
        Self(key)
    }

    /// The public half, the encapsulation key.
    #[must_use]
    pub fn public(&self) -> [u8; KEM_KEY_LENGTH] {
        self.0.encapsulation_key().to_bytes().into()
    }

    /// The shared secret of a ciphertext. A wrong ciphertext yields a wrong secret (implicit rejection).
    #[must_use]
    pub fn open(&self, ciphertext: &[u8; KEM_CIPHERTEXT_LENGTH]) -> Zeroizing<[u8; 32]> {
        let mut shared = self.0.decapsulate(&(*ciphertext).into());
        let secret = Zeroizing::new(shared.into());
        shared.zeroize();
        secret
    }
}

impl fmt::Debug for KemSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("KemSecret(..)")
    }
}

/// The server's side: the ciphertext for a client's key and the shared secret. `None` if the bytes are no key (FIPS 203 section 7.2).
#[must_use]
pub fn encapsulate(
    key: &[u8; KEM_KEY_LENGTH],
    entropy: [u8; 32],
) -> Option<([u8; KEM_CIPHERTEXT_LENGTH], Zeroizing<[u8; 32]>)> {
    let entropy = Zeroizing::new(entropy);
    let key = EncapsulationKey768::new(&(*key).into()).ok()?;
    let mut message = ml_kem::B32::from(*entropy);
    let (ciphertext, mut shared) = key.encapsulate_deterministic(&message);
    let secret = Zeroizing::new(shared.into());
    message.zeroize();
    shared.zeroize();
    Some((ciphertext.into(), secret))
}

/// SHA-256, by which a handshake message commits to the part in the datagram that follows it.
#[must_use]
pub fn digest_of(part: &[u8]) -> [u8; 32] {
    digest::digest(&digest::SHA256, part).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// The first secret of a direction, from its key of the Noise split, the ML-KEM secret and the hash of the whole Noise handshake.
#[must_use]
pub fn combine(split: &[u8; 32], kem: &[u8; 32], handshake_hash: &[u8; 32]) -> [u8; 32] {
    let mut both = Zeroizing::new([0; 64]);
    both[..32].copy_from_slice(kem);
    both[32..].copy_from_slice(split);
    let extracted = hkdf::Salt::new(hkdf::HKDF_SHA256, handshake_hash).extract(&*both);
    expand_prk(&extracted, &[b"ctcp hybrid"])
}
