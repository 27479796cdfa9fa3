//! AVX2: multiplies a byte as two 4-bit halves, each by a table look-up with a byte shuffle.

#![allow(unsafe_code, reason = "instructions that `self` is proof of")]

use super::vector::{Halves, InstructionSet, vector_engine};
use crate::gf256::tables::{NIBBLES, Nibbles};
use core::arch::x86_64::{
    __m256i, _mm_loadu_si128, _mm256_and_si256, _mm256_broadcastsi128_si256, _mm256_set1_epi8,
    _mm256_shuffle_epi8, _mm256_srli_epi64, _mm256_xor_si256,
};

vector_engine! {
    Avx2, "avx2", features: "avx2";
    sweep: 1 => [6, 2, 1], 2 => [3, 2, 1], 3 => [2, 1], 4 => [2, 1];
    sum: [14, 1];
    spread: [4, 2];
    multiply: 1 => 6, 4 => 2;
}

// SAFETY: a register is 32 plain bytes.
unsafe impl InstructionSet for Avx2 {
    type Register = __m256i;
    type Operand = Halves<__m256i>;
    type Factor = Halves<__m256i>;

    #[inline(always)]
    fn xor(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves that the processor has the feature.
        unsafe { _mm256_xor_si256(a, b) }
    }

    #[inline(always)]
    fn and(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves that the processor has the feature.
        unsafe { _mm256_and_si256(a, b) }
    }

    #[inline(always)]
    fn operand(self, source: __m256i) -> Halves<__m256i> {
        // SAFETY: `self` proves that the processor has the feature.
        unsafe {
            let mask = _mm256_set1_epi8(0x0F);
            let high = _mm256_and_si256(_mm256_srli_epi64::<4>(source), mask);
            Halves { low: _mm256_and_si256(source, mask), high }
        }
    }

    #[inline(always)]
    fn factor(self, coefficient: u8) -> Halves<__m256i> {
        let Nibbles { low, high } = &NIBBLES[usize::from(coefficient)];
        // SAFETY: `self` proves that the processor has the feature, and both halves have 16 bytes.
        unsafe {
            let (low, high) = (_mm_loadu_si128(low.as_ptr().cast()), _mm_loadu_si128(high.as_ptr().cast()));
            Halves { low: _mm256_broadcastsi128_si256(low), high: _mm256_broadcastsi128_si256(high) }
        }
    }

    #[inline(always)]
    fn add_product(self, sum: __m256i, source: Halves<__m256i>, factor: Halves<__m256i>) -> __m256i {
        // SAFETY: `self` proves that the processor has the feature.
        unsafe {
            let low = _mm256_shuffle_epi8(factor.low, source.low);
            let high = _mm256_shuffle_epi8(factor.high, source.high);
            _mm256_xor_si256(_mm256_xor_si256(sum, low), high)
        }
    }
}
