//! SSSE3: multiplies a byte as two 4-bit halves, each by a table look-up with a byte shuffle.

#![allow(unsafe_code, reason = "instructions that `self` is proof of")]

use super::vector::{Halves, InstructionSet, vector_engine};
use crate::gf256::tables::{NIBBLES, Nibbles};
use core::arch::x86_64::{
    __m128i, _mm_and_si128, _mm_loadu_si128, _mm_set1_epi8, _mm_shuffle_epi8, _mm_srli_epi64, _mm_xor_si128,
};

vector_engine! {
    Ssse3, "ssse3", features: "ssse3";
    sweep: 1 => [4, 2, 1], 2 => [3, 2, 1], 3 => [2, 1], 4 => [2, 1];
    sum: [12, 1];
    spread: [4];
    multiply: 1 => 6, 4 => 2;
}

// SAFETY: a register is 16 plain bytes.
unsafe impl InstructionSet for Ssse3 {
    type Register = __m128i;
    type Operand = Halves<__m128i>;
    type Factor = Halves<__m128i>;

    #[inline(always)]
    fn xor(self, a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: `self` proves that the processor has the feature.
        unsafe { _mm_xor_si128(a, b) }
    }

    #[inline(always)]
    fn and(self, a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: `self` proves that the processor has the feature.
        unsafe { _mm_and_si128(a, b) }
    }

    #[inline(always)]
    fn operand(self, source: __m128i) -> Halves<__m128i> {
        // SAFETY: `self` proves that the processor has the feature.
        unsafe {
            let mask = _mm_set1_epi8(0x0F);
            let high = _mm_and_si128(_mm_srli_epi64::<4>(source), mask);
            Halves { low: _mm_and_si128(source, mask), high }
        }
    }

    #[inline(always)]
    fn factor(self, coefficient: u8) -> Halves<__m128i> {
        let Nibbles { low, high } = &NIBBLES[usize::from(coefficient)];
        // SAFETY: `self` proves that the processor has the feature, and both halves have 16 bytes.
        unsafe {
            Halves { low: _mm_loadu_si128(low.as_ptr().cast()), high: _mm_loadu_si128(high.as_ptr().cast()) }
        }
    }

    #[inline(always)]
    fn add_product(self, sum: __m128i, source: Halves<__m128i>, factor: Halves<__m128i>) -> __m128i {
        // SAFETY: `self` proves that the processor has the feature.
        unsafe {
            let low = _mm_shuffle_epi8(factor.low, source.low);
            let high = _mm_shuffle_epi8(factor.high, source.high);
            _mm_xor_si128(_mm_xor_si128(sum, low), high)
        }
    }
}
