//! TinyMT32 (RFC 8682): a small Mersenne Twister with a 127-bit state.
//!
//! Implemented from the recurrences of RFC 8682 section 2, with its only parameter set.

const MATRIX_1: u32 = 0x8f70_11ee;
const MATRIX_2: u32 = 0xfc78_ff1f;
const TEMPERING_MATRIX: u32 = 0x3793_fdff;
/// Rounds that spread the seed over the state, and steps discarded after them.
const SEED_ROUNDS: u32 = 8;
const WARM_UP_STEPS: u32 = 8;

/// The generator. The seed determines the whole sequence.
pub(super) struct TinyMt32 {
    state: [u32; 4],
}

impl TinyMt32 {
    pub(super) fn new(seed: u32) -> Self {
        let mut state = [seed, MATRIX_1, MATRIX_2, TEMPERING_MATRIX];
        for round in 1..SEED_ROUNDS {
            let previous = state[(round as usize - 1) % 4];
            let mixed = (previous ^ (previous >> 30)).wrapping_mul(1_812_433_253).wrapping_add(round);
            state[round as usize % 4] ^= mixed;
        }
        let mut generator = Self { state };
        for _ in 0..WARM_UP_STEPS {
            generator.step();
        }
        generator
    }

    #[inline]
    pub(super) fn next_u32(&mut self) -> u32 {
        self.step();
        let sum = self.state[0].wrapping_add(self.state[2] >> 8);
        self.state[3] ^ sum ^ select(TEMPERING_MATRIX, sum)
    }

    #[inline]
    fn step(&mut self) {
        let [s0, s1, s2, s3] = self.state;
        let x = (s0 & 0x7fff_ffff) ^ s1 ^ s2;
        let x = x ^ (x << 1);
        let y = s3 ^ (s3 >> 1) ^ x;
        self.state = [s1, s2 ^ select(MATRIX_1, y), x ^ (y << 10) ^ select(MATRIX_2, y), y];
    }
}

/// Returns `matrix` if the lowest bit of `chooser` is set, otherwise 0, without a branch.
#[inline]
fn select(matrix: u32, chooser: u32) -> u32 {
    matrix & (chooser & 1).wrapping_neg()
}

/// RFC 8682 figure 2: the first 50 outputs for seed 1.
#[cfg(test)]
#[rustfmt::skip]
pub(super) const FIRST_OUTPUTS_OF_SEED_1: [u32; 50] = [
    2_545_341_989, 981_918_433, 3_715_302_833, 2_387_538_352, 3_591_001_365,
    3_820_442_102, 2_114_400_566, 2_196_103_051, 2_783_359_912, 764_534_509,
    643_179_475, 1_822_416_315, 881_558_334, 4_207_026_366, 3_690_273_640,
    3_240_535_687, 2_921_447_122, 3_984_931_427, 4_092_394_160, 44_209_675,
    2_188_315_343, 2_908_663_843, 1_834_519_336, 3_774_670_961, 3_019_990_707,
    4_065_554_902, 1_239_765_502, 4_035_716_197, 3_412_127_188, 552_822_483,
    161_364_450, 353_727_785, 140_085_994, 149_132_008, 2_547_770_827,
    4_064_042_525, 4_078_297_538, 2_057_335_507, 622_384_752, 2_041_665_899,
    2_193_913_817, 1_080_849_512, 33_160_901, 662_956_935, 642_999_063,
    3_384_709_977, 1_723_175_122, 3_866_752_252, 521_822_317, 2_292_524_454,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_fifty_outputs_for_seed_1_are_those_of_rfc_8682() {
        let mut random = TinyMt32::new(1);
        for expected in FIRST_OUTPUTS_OF_SEED_1 {
            assert_eq!(random.next_u32(), expected);
        }
    }
}
