//! xoshiro256++ (Blackman and Vigna, 2019) seeded by SplitMix64: fast, portable, reproducible.
//!
//! Not for secrets. Coding coefficients come from a different generator, which is part of the wire format.

use crate::Probability;

/// A seeded generator. The same seed gives the same numbers on every platform and in every version.
#[derive(Clone, Debug)]
pub struct Prng {
    state: [u64; 4],
}

impl Prng {
    /// Creates a generator whose whole sequence is determined by `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut mix = seed;
        Self { state: core::array::from_fn(|_| split_mix(&mut mix)) }
    }

    /// Creates an independent generator for the component called `name`.
    ///
    /// This does not advance `self`, so adding a component does not change the numbers drawn by the others.
    #[must_use]
    pub fn fork(&self, name: &str) -> Self {
        // FNV-1a over the name, mixed with the parent's state.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Self::new(hash ^ self.state[0].rotate_left(17) ^ self.state[2])
    }

    /// Returns 64 uniform bits.
    pub fn next_u64(&mut self) -> u64 {
        let state = &mut self.state;
        let result = state[0].wrapping_add(state[3]).rotate_left(23).wrapping_add(state[0]);
        let shifted = state[1] << 17;
        state[2] ^= state[0];
        state[3] ^= state[1];
        state[1] ^= state[2];
        state[0] ^= state[3];
        state[2] ^= shifted;
        state[3] = state[3].rotate_left(45);
        result
    }

    /// Returns a uniform number in `[0, bound)`, or 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // Multiply-shift: its bias is below bound / 2^64.
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a uniform number in `[0, 1)` with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns true with the given probability.
    pub fn chance(&mut self, probability: Probability) -> bool {
        self.unit() < probability.as_f64()
    }

    /// Fills `bytes` with uniform bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mix(*state)
}

/// The finaliser of SplitMix64: every bit of the result depends on every bit of `z`.
#[must_use]
pub const fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_mix_gives_its_published_first_output() {
        assert_eq!(split_mix(&mut 0), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn forks_differ_from_each_other_and_leave_the_parent_alone() {
        let parent = Prng::new(7);
        let mut a = parent.fork("a");
        let mut b = parent.fork("b");
        assert_ne!(a.next_u64(), b.next_u64());
        assert_eq!(parent.clone().next_u64(), Prng::new(7).next_u64());
    }

    #[test]
    fn below_stays_below_and_reaches_every_value() {
        let mut prng = Prng::new(1);
        let mut seen = [false; 7];
        for _ in 0..1_000 {
            seen[prng.below(7) as usize] = true;
        }
        assert!(seen.iter().all(|&hit| hit));
        assert_eq!(prng.below(0), 0);
    }

    #[test]
    fn chance_follows_its_probability() {
        let mut prng = Prng::new(3);
        let five_percent = Probability::new(0.05).expect("a probability");
        let hits = (0..100_000).filter(|_| prng.chance(five_percent)).count();
        assert!((4_700..5_300).contains(&hits), "{hits}");
    }
}
