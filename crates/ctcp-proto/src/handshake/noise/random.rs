//! The randomness for snow's ephemeral keys: HKDF-Expand of an entropy argument.

use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use zeroize::Zeroizing;

use crate::crypto::derive::expand;

/// Snow's own primitives with this source of randomness.
pub(super) struct SeededResolver {
    entropy: Zeroizing<[u8; 32]>,
}

impl SeededResolver {
    pub(super) fn new(entropy: [u8; 32]) -> Self {
        Self { entropy: Zeroizing::new(entropy) }
    }
}

impl CryptoResolver for SeededResolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(SeededRandom { entropy: self.entropy.clone(), block: 0 }))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        DefaultResolver.resolve_dh(choice)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

/// Block `i` of 32 bytes is `Expand(entropy, "ctcp ephemeral" | i (32))`.
struct SeededRandom {
    entropy: Zeroizing<[u8; 32]>,
    block: u32,
}

impl Random for SeededRandom {
    fn try_fill_bytes(&mut self, output: &mut [u8]) -> Result<(), snow::Error> {
        for chunk in output.chunks_mut(32) {
            let block: Zeroizing<[u8; 32]> =
                Zeroizing::new(expand(&self.entropy, &[b"ctcp ephemeral", &self.block.to_be_bytes()]));
            chunk.copy_from_slice(&block[..chunk.len()]);
            self.block = self.block.checked_add(1).ok_or(snow::Error::Rng)?;
        }
        Ok(())
    }
}
