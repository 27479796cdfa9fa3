//! What the engines with vector registers have in common: the algorithms, written once over [`InstructionSet`].
//!
//! An engine's own file has its instructions, and how many registers go to what. From both, [`vector_engine`] makes the
//! entry points, which are the only functions compiled for the engine's features. All that stands between them and the
//! intrinsics is `inline(always)`, and so is compiled for the features as part of them. Anything else in between, closures
//! included, can turn single instructions into calls.

#![allow(unsafe_code, reason = "vector loads and stores")]
#![allow(clippy::needless_range_loop, reason = "one index runs over the registers of several arrays")]

mod entry_points;
pub(super) mod measured;
pub(super) mod spread;
pub(super) mod sum;
pub(super) mod sweep;

pub(super) use entry_points::{has_features, vector_engine};

use super::task::Task;

/// The instructions of an engine.
///
/// A value is the proof that the processor has them: only functions compiled for the features make one. That is why
/// arithmetic in registers is safe.
///
/// # Safety
///
/// Every bit pattern must be a [`Self::Register`], which has at most [`Spread::UNIT`](super::task::Spread::UNIT) bytes.
pub(super) unsafe trait InstructionSet: Copy {
    /// Bytes in a vector register.
    type Register: Copy;
    /// Bytes of a source as the multiplication takes them.
    type Operand: Copy;
    /// A coefficient as the multiplication takes it.
    type Factor: Copy;

    /// Bytes in a register.
    const WIDTH: usize = size_of::<Self::Register>();
    /// Whether a sweep takes two sources a step, by [`Self::add_two_products`].
    const TAKES_PAIRS: bool = false;

    fn xor(self, a: Self::Register, b: Self::Register) -> Self::Register;

    fn and(self, a: Self::Register, b: Self::Register) -> Self::Register;

    fn operand(self, source: Self::Register) -> Self::Operand;

    fn factor(self, coefficient: u8) -> Self::Factor;

    /// `sum + source * factor`.
    fn add_product(self, sum: Self::Register, source: Self::Operand, factor: Self::Factor) -> Self::Register;

    /// `sum + sources[0] * factors[0] + sources[1] * factors[1]`.
    #[inline(always)]
    fn add_two_products(
        self,
        sum: Self::Register,
        sources: [Self::Operand; 2],
        factors: [Self::Factor; 2],
    ) -> Self::Register {
        let sum = self.add_product(sum, sources[0], factors[0]);
        self.add_product(sum, sources[1], factors[1])
    }

    /// The last bytes of a sweep from `done` on, fewer than a register holds.
    #[inline(always)]
    fn sweep_tail<const R: usize>(self, task: Task<'_, '_, R>, done: usize) {
        sweep::tail(self, task, done);
    }

    // What follows is the same for all.

    #[inline(always)]
    fn zero(self) -> Self::Register {
        // SAFETY: every bit pattern is a register.
        unsafe { core::mem::zeroed() }
    }

    /// # Safety
    ///
    /// A register must be readable at `bytes`.
    #[inline(always)]
    unsafe fn load(self, bytes: *const u8) -> Self::Register {
        // SAFETY: the caller's condition, and every bit pattern is a register.
        unsafe { bytes.cast::<Self::Register>().read_unaligned() }
    }

    /// # Safety
    ///
    /// A register must be writable at `bytes`.
    #[inline(always)]
    unsafe fn store(self, bytes: *mut u8, register: Self::Register) {
        // SAFETY: the caller's condition.
        unsafe { bytes.cast::<Self::Register>().write_unaligned(register) }
    }

    /// # Safety
    ///
    /// `V` registers must be readable at `bytes`.
    #[inline(always)]
    unsafe fn load_all<const V: usize>(self, bytes: *const u8) -> [Self::Register; V] {
        let mut registers = [self.zero(); V];
        for v in 0..V {
            // SAFETY: v is below V, and the caller's condition.
            registers[v] = unsafe { self.load(bytes.add(v * Self::WIDTH)) };
        }
        registers
    }

    /// # Safety
    ///
    /// `V` registers must be writable at `bytes`.
    #[inline(always)]
    unsafe fn store_all<const V: usize>(self, bytes: *mut u8, registers: &[Self::Register; V]) {
        for v in 0..V {
            // SAFETY: v is below V, and the caller's condition.
            unsafe { self.store(bytes.add(v * Self::WIDTH), registers[v]) };
        }
    }

    /// # Safety
    ///
    /// `V` registers must be readable at `bytes`.
    #[inline(always)]
    unsafe fn load_operands<const V: usize>(self, bytes: *const u8) -> [Self::Operand; V] {
        // SAFETY: the caller's condition.
        self.operands(unsafe { self.load_all(bytes) })
    }

    #[inline(always)]
    fn operands<const V: usize>(self, registers: [Self::Register; V]) -> [Self::Operand; V] {
        let mut operands = [self.operand(self.zero()); V];
        for v in 0..V {
            operands[v] = self.operand(registers[v]);
        }
        operands
    }
}

/// The low and the high halves of bytes, or what a coefficient makes of all sixteen of each.
#[derive(Clone, Copy)]
pub(super) struct Halves<T> {
    pub(super) low: T,
    pub(super) high: T,
}
