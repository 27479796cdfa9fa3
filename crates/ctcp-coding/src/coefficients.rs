//! Generates the coefficients of a combination from a 16-bit key. **This is wire format.**
//!
//! A combination over `n` symbols carries a key and a density instead of `n` coefficients. Sender and receiver generate
//! the same coefficients, as RFC 8681 section 3.6 prescribes for GF(2^8) (m = 8):
//!
//! ```text
//! seed TinyMT32 (RFC 8682) with the key, zero-extended to 32 bits; each draw is its next 32-bit output
//! for each of the n coefficients, lowest symbol index first:
//!     if density < 15:   draw; if (draw AND 15) > density, the coefficient is 0: next coefficient
//!     draw until (draw AND 255) is not 0: that is the coefficient
//! ```
//!
//! So a coefficient is zero with probability (15 - density) / 16 and otherwise uniform over 1..=255. With density 15
//! none is zero. Under the same key and density, the sequence for a longer range begins with the sequence for a shorter
//! one.
//!
//! Requirement: C2

mod tinymt32;

use tinymt32::TinyMt32;

/// The maximum density, at which no coefficient is zero.
pub const DENSITY_MAX: u8 = 15;

/// Fills `out` with the coefficients of `key` at `density`. Values above [`DENSITY_MAX`] are treated as
/// [`DENSITY_MAX`].
pub fn generate(key: u16, density: u8, out: &mut [u8]) {
    let mut random = TinyMt32::new(u32::from(key));
    for coefficient in out {
        let is_zero = density < DENSITY_MAX && (random.next_u32() & 0xF) as u8 > density;
        *coefficient = if is_zero { 0 } else { draw_nonzero(&mut random) };
    }
}

/// Fills `out` with coefficients that are uniform over all 256 elements, including zero.
///
/// This is for experiments on rank and on Lemma 1 of TCP/NC, which assumes uniform coefficients. It is not wire format.
pub fn generate_uniform(seed: u32, out: &mut [u8]) {
    let mut random = TinyMt32::new(seed);
    out.fill_with(|| random.next_u32() as u8);
}

fn draw_nonzero(random: &mut TinyMt32) -> u8 {
    loop {
        let byte = random.next_u32() as u8;
        if byte != 0 {
            return byte;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::tinymt32::FIRST_OUTPUTS_OF_SEED_1;
    use super::*;
    use crate::{Encoder, SymbolRange};
    use std::vec;
    use std::vec::Vec;

    // Requirement: C2
    #[test]
    fn density_15_gives_the_bytes_of_rfc_8681_appendix_a() {
        // None of the first 50 values of rand256 for seed 1 is zero, so these are the coefficients.
        let mut out = [0; 50];
        generate(1, 15, &mut out);
        assert_eq!(out[..10], [37, 225, 177, 176, 21, 246, 54, 139, 168, 237]);
        assert!(out.iter().zip(FIRST_OUTPUTS_OF_SEED_1).all(|(&byte, word)| byte == word as u8));
    }

    /// Output of an independent implementation, the crate cu-fec. `benchmarks/rfc8681-interop` prints these values.
    const OF_ANOTHER_IMPLEMENTATION: [(u16, u8, [u8; 12]); 5] = [
        (0, 15, [39, 42, 153, 208, 176, 219, 77, 72, 133, 163, 38, 172]),
        (1, 15, [37, 225, 177, 176, 21, 246, 54, 139, 168, 237, 211, 187]),
        (7, 9, [0, 252, 99, 4, 98, 2, 0, 0, 0, 137, 0, 0]),
        (500, 0, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        (65_535, 14, [199, 244, 206, 248, 73, 100, 42, 145, 114, 0, 114, 118]),
    ];

    // Requirement: C2
    #[test]
    fn another_implementation_of_rfc_8681_has_the_same_coefficients_and_repairs() {
        for (key, density, expected) in OF_ANOTHER_IMPLEMENTATION {
            let mut out = [0; 12];
            generate(key, density, &mut out);
            assert_eq!(out, expected, "key {key}, density {density}");
        }
        let mut encoder = Encoder::new(8, 12);
        for value in 0..12_u8 {
            encoder.push(&core::array::from_fn::<u8, 8, _>(|byte| value * 16 + byte as u8)).unwrap();
        }
        let (mut row, mut payload) = ([0; 12], Vec::new());
        generate(7, DENSITY_MAX, &mut row);
        encoder.combine(SymbolRange::new(0, 12).unwrap(), &row, &mut payload).unwrap();
        assert_eq!(payload, [68, 32, 140, 232, 201, 173, 1, 101]);
    }

    #[test]
    fn lower_density_uses_an_extra_draw_per_coefficient() {
        for density in 0..15 {
            let mut draws = FIRST_OUTPUTS_OF_SEED_1.iter();
            let expected: Vec<u8> = (0..25)
                .map(|_| {
                    let is_nonzero = (draws.next().unwrap() % 16) as u8 <= density;
                    if is_nonzero { *draws.next().unwrap() as u8 } else { 0 }
                })
                .collect();
            let mut out = [0; 25];
            generate(1, density, &mut out);
            assert_eq!(out.to_vec(), expected);
        }
    }

    #[test]
    fn zeros_appear_as_often_as_the_density_says() {
        for density in 0..=15u8 {
            let mut zeros = 0;
            for key in 0..200 {
                let mut out = vec![0; 100];
                generate(key, density, &mut out);
                zeros += out.iter().filter(|&&c| c == 0).count();
            }
            let expected = 20_000 * usize::from(15 - density) / 16;
            assert!(zeros.abs_diff(expected) < 350, "density {density}: {zeros} zeros, {expected} expected");
        }
    }

    #[test]
    fn a_longer_range_continues_a_shorter_one() {
        let (mut long, mut short) = ([0; 300], [0; 100]);
        generate(77, 9, &mut long);
        generate(77, 9, &mut short);
        assert_eq!(long[..100], short);
    }

    #[test]
    fn the_uniform_generator_reaches_all_256_values() {
        let mut out = vec![0; 10_000];
        generate_uniform(5, &mut out);
        assert!((0..=255u8).all(|value| out.contains(&value)));
    }
}
