//! The generator of everything that a peer or an attacker must not guess: ephemeral keys, connection ids, challenges, and the packet
//! numbers that are skipped.
//!
//! ```text
//!          key --expand "ctcp random"--> | next key (32) | output (32) |
//!           ^                                  |
//!           +----------------------------------+      the old key is overwritten
//! ```
//!
//! Fast key erasure (D. J. Bernstein, 2017): each draw replaces the key, so an attacker who reads the memory later learns nothing about
//! earlier output. It does not gather entropy: that is an argument, at the start and whenever [`SecretRng::mix`] is called. The same
//! arguments give the same bytes.

use core::fmt;

use zeroize::{Zeroize, Zeroizing};

use super::derive::expand;

/// The generator described in the module documentation.
pub(crate) struct SecretRng {
    key: Zeroizing<[u8; 32]>,
}

impl SecretRng {
    /// Creates a generator whose output follows from `seed`, which must be secret and never reused.
    pub(crate) fn new(seed: [u8; 32]) -> Self {
        Self { key: Zeroizing::new(seed) }
    }

    /// Mixes in `entropy`. Later output can be guessed only with knowledge of both the state before and `entropy`.
    pub(crate) fn mix(&mut self, entropy: &[u8; 32]) {
        *self.key = expand(&self.key, &[b"ctcp mix", entropy]);
    }

    /// Returns 32 bytes.
    pub(crate) fn bytes(&mut self) -> [u8; 32] {
        let mut drawn: [u8; 64] = expand(&self.key, &[b"ctcp random"]);
        let mut output = [0; 32];
        self.key.copy_from_slice(&drawn[..32]);
        output.copy_from_slice(&drawn[32..]);
        drawn.zeroize();
        output
    }

    /// Returns an independent generator.
    pub(crate) fn fork(&mut self) -> Self {
        Self::new(self.bytes())
    }

    /// Returns 64 uniform bits.
    pub(crate) fn next_u64(&mut self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.bytes();
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }

    /// Returns a uniform number in `[0, bound)`, or 0 if `bound` is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // Multiply-shift: its bias is below bound / 2^64.
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

impl fmt::Debug for SecretRng {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretRng(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_and_entropy_give_the_same_bytes() {
        let draws = |entropy: Option<[u8; 32]>| {
            let mut rng = SecretRng::new([1; 32]);
            let first = rng.bytes();
            entropy.inspect(|entropy| rng.mix(entropy));
            (first, rng.bytes(), rng.next_u64(), rng.below(1000))
        };
        assert_eq!(draws(None), draws(None));
        assert_eq!(draws(Some([2; 32])), draws(Some([2; 32])));
        assert_eq!(draws(Some([2; 32])).0, draws(None).0);
        assert_ne!(draws(Some([2; 32])).1, draws(None).1);
        assert_ne!(draws(Some([2; 32])).1, draws(Some([3; 32])).1);
    }

    #[test]
    fn a_draw_replaces_the_key_and_does_not_reveal_it() {
        let mut rng = SecretRng::new([1; 32]);
        let before = *rng.key;
        let output = rng.bytes();
        assert_ne!(*rng.key, before);
        assert_ne!(*rng.key, output);
        // The output used as a seed does not give the following output.
        assert_ne!(SecretRng::new(output).bytes(), rng.bytes());
    }

    #[test]
    fn a_fork_is_independent() {
        let mut rng = SecretRng::new([1; 32]);
        let (mut one, mut other) = (rng.fork(), rng.fork());
        let drawn = [one.bytes(), other.bytes(), rng.bytes()];
        assert!(drawn[0] != drawn[1] && drawn[1] != drawn[2] && drawn[0] != drawn[2]);
    }

    #[test]
    fn bounded_numbers_stay_below_their_bound_and_reach_it() {
        let mut rng = SecretRng::new([5; 32]);
        let drawn: Vec<u64> = (0..200).map(|_| rng.below(8)).collect();
        assert!((0..8).all(|number| drawn.contains(&number)) && drawn.iter().all(|&number| number < 8));
        assert_eq!(rng.below(0), 0);
    }
}
