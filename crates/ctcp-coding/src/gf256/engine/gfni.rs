//! GFNI with 32-byte registers: one instruction multiplies 32 bytes by a constant, for any polynomial.

#![allow(unsafe_code, reason = "instructions that `self` is proof of")]

use super::vector::{InstructionSet, vector_engine};
use crate::gf256::tables::MATRICES;
use core::arch::x86_64::{
    __m256i, _mm256_and_si256, _mm256_gf2p8affine_epi64_epi8, _mm256_set1_epi64x, _mm256_xor_si256,
};

vector_engine! {
    Gfni, "gfni", features: "gfni", "avx2";
    sweep: 1 => [14, 2, 1], 2 => [5, 2, 1], 3 => [3, 2, 1], 4 => [2, 1];
    sum: [14, 1];
    spread: [4, 2];
    multiply: 1 => 12, 4 => 2;
}

// SAFETY: a register is 32 plain bytes.
unsafe impl InstructionSet for Gfni {
    type Register = __m256i;
    type Operand = __m256i;
    /// The bit matrix of the multiplication.
    type Factor = __m256i;

    #[inline(always)]
    fn xor(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves that the processor has the features.
        unsafe { _mm256_xor_si256(a, b) }
    }

    #[inline(always)]
    fn and(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves that the processor has the features.
        unsafe { _mm256_and_si256(a, b) }
    }

    #[inline(always)]
    fn operand(self, source: __m256i) -> __m256i {
        source
    }

    #[inline(always)]
    fn factor(self, coefficient: u8) -> __m256i {
        // SAFETY: `self` proves that the processor has the features.
        unsafe { _mm256_set1_epi64x(MATRICES[usize::from(coefficient)].cast_signed()) }
    }

    #[inline(always)]
    fn add_product(self, sum: __m256i, source: __m256i, factor: __m256i) -> __m256i {
        // SAFETY: `self` proves that the processor has the features.
        unsafe { _mm256_xor_si256(sum, _mm256_gf2p8affine_epi64_epi8::<0>(source, factor)) }
    }
}
