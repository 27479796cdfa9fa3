//! GFNI with 64-byte registers: one instruction multiplies 64 bytes by a constant, for any polynomial.
//!
//! Two sources per step are merged by a three-input XOR, because products and plain XORs compete for the same ports.
//! Masked loads and stores handle every length.

#![allow(unsafe_code, reason = "instructions that `self` is proof of")]

use super::task::{Mode, Task};
use super::vector::{InstructionSet, vector_engine};
use crate::gf256::tables::MATRICES;
use core::arch::x86_64::{
    __m512i, __mmask64, _mm512_and_si512, _mm512_gf2p8affine_epi64_epi8, _mm512_mask_storeu_epi8,
    _mm512_maskz_loadu_epi8, _mm512_set1_epi64, _mm512_ternarylogic_epi64, _mm512_xor_si512,
};

// One output of a typical symbol fits into registers as a whole (1344 bytes are 21 registers), so each source is read
// from end to end.
vector_engine! {
    Avx512, "avx512", features: "gfni", "avx512f", "avx512bw";
    sweep: 1 => [21, 3, 1], 2 => [7, 3, 1], 3 => [7, 3, 1], 4 => [3, 1];
    sum: [21, 7, 1];
    spread: [4, 2, 1];
    multiply: 1 => 12, 4 => 3;
}

/// Truth table of a three-input XOR.
const XOR3: i32 = 0x96;

impl Avx512 {
    #[inline(always)]
    fn product(self, source: __m512i, factor: __m512i) -> __m512i {
        // SAFETY: `self` proves that the processor has the features.
        unsafe { _mm512_gf2p8affine_epi64_epi8::<0>(source, factor) }
    }
}

// SAFETY: a register is 64 plain bytes.
unsafe impl InstructionSet for Avx512 {
    type Register = __m512i;
    type Operand = __m512i;
    /// The bit matrix of the multiplication.
    type Factor = __m512i;

    const TAKES_PAIRS: bool = true;

    #[inline(always)]
    fn xor(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves that the processor has the features.
        unsafe { _mm512_xor_si512(a, b) }
    }

    #[inline(always)]
    fn and(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves that the processor has the features.
        unsafe { _mm512_and_si512(a, b) }
    }

    #[inline(always)]
    fn operand(self, source: __m512i) -> __m512i {
        source
    }

    #[inline(always)]
    fn factor(self, coefficient: u8) -> __m512i {
        // SAFETY: `self` proves that the processor has the features.
        unsafe { _mm512_set1_epi64(MATRICES[usize::from(coefficient)].cast_signed()) }
    }

    #[inline(always)]
    fn add_product(self, sum: __m512i, source: __m512i, factor: __m512i) -> __m512i {
        self.xor(sum, self.product(source, factor))
    }

    #[inline(always)]
    fn add_two_products(self, sum: __m512i, sources: [__m512i; 2], factors: [__m512i; 2]) -> __m512i {
        let products = [self.product(sources[0], factors[0]), self.product(sources[1], factors[1])];
        // SAFETY: `self` proves that the processor has the features.
        unsafe { _mm512_ternarylogic_epi64::<XOR3>(sum, products[0], products[1]) }
    }

    #[inline(always)]
    fn sweep_tail<const R: usize>(self, mut task: Task<'_, '_, R>, done: usize) {
        let mask: __mmask64 = (1 << (task.length() - done)) - 1;
        let mut sums = [self.zero(); R];
        // SAFETY: `self` proves that the processor has the features. The mask selects the remaining bytes of sources
        // and outputs. The indexes are below the number of sources and R.
        unsafe {
            if task.mode() == Mode::Add {
                for (r, sum) in sums.iter_mut().enumerate() {
                    *sum = _mm512_maskz_loadu_epi8(mask, task.out(r).add(done).cast());
                }
            }
            for j in 0..task.sources().count() {
                let source = _mm512_maskz_loadu_epi8(mask, task.sources().start(j).add(done).cast());
                for (r, sum) in sums.iter_mut().enumerate() {
                    *sum = self.add_product(*sum, source, self.factor(task.coefficient(r, j)));
                }
            }
            for (r, sum) in sums.into_iter().enumerate() {
                _mm512_mask_storeu_epi8(task.out(r).add(done).cast(), mask, sum);
            }
        }
    }
}
