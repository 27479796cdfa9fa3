//! NEON: multiplies a byte as two 4-bit halves, each by a look-up in a 16-byte table.

#![allow(unsafe_code, reason = "instructions that `self` is proof of")]

use super::vector::{Halves, InstructionSet, vector_engine};
use crate::gf256::tables::{NIBBLES, Nibbles};
use core::arch::aarch64::{uint8x16_t, vandq_u8, vdupq_n_u8, veorq_u8, vld1q_u8, vqtbl1q_u8, vshrq_n_u8};

vector_engine! {
    Neon, "neon", features: "neon";
    sweep: 1 => [8, 1], 2 => [6, 1], 3 => [4, 1], 4 => [4, 1];
    sum: [12, 1];
    spread: [8, 4];
    multiply: 1 => 8, 4 => 3;
}

// SAFETY: a register is 16 plain bytes.
unsafe impl InstructionSet for Neon {
    type Register = uint8x16_t;
    type Operand = Halves<uint8x16_t>;
    type Factor = Halves<uint8x16_t>;

    #[inline(always)]
    fn xor(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        // SAFETY: `self` proves that the processor has the feature.
        unsafe { veorq_u8(a, b) }
    }

    #[inline(always)]
    fn and(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        // SAFETY: `self` proves that the processor has the feature.
        unsafe { vandq_u8(a, b) }
    }

    #[inline(always)]
    fn operand(self, source: uint8x16_t) -> Halves<uint8x16_t> {
        // SAFETY: `self` proves that the processor has the feature.
        unsafe { Halves { low: vandq_u8(source, vdupq_n_u8(0x0F)), high: vshrq_n_u8::<4>(source) } }
    }

    #[inline(always)]
    fn factor(self, coefficient: u8) -> Halves<uint8x16_t> {
        let Nibbles { low, high } = &NIBBLES[usize::from(coefficient)];
        // SAFETY: `self` proves that the processor has the feature, and both halves have 16 bytes.
        unsafe { Halves { low: vld1q_u8(low.as_ptr()), high: vld1q_u8(high.as_ptr()) } }
    }

    #[inline(always)]
    fn add_product(
        self,
        sum: uint8x16_t,
        source: Halves<uint8x16_t>,
        factor: Halves<uint8x16_t>,
    ) -> uint8x16_t {
        // SAFETY: `self` proves that the processor has the feature.
        unsafe {
            let low = vqtbl1q_u8(factor.low, source.low);
            let high = vqtbl1q_u8(factor.high, source.high);
            veorq_u8(veorq_u8(sum, low), high)
        }
    }
}
