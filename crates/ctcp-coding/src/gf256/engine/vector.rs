//! The algorithms shared by the engines with vector registers, written once over [`InstructionSet`].
//!
//! An engine's own file has its instructions and the allocation of its registers. From both, [`vector_engine`]
//! generates the entry points, the only functions compiled for the engine's features. Everything between them and the
//! intrinsics is `inline(always)` and is thus compiled for the features as part of them. Anything else in between,
//! including closures, can turn single instructions into calls.

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
/// A value proves that the processor has them, because only functions compiled for the features create one. This makes
/// arithmetic in registers safe.
///
/// # Safety
///
/// Every bit pattern must be a valid [`Self::Register`], which has at most [`Spread::UNIT`](super::task::Spread::UNIT)
/// bytes.
pub(super) unsafe trait InstructionSet: Copy {
    /// A vector register of bytes.
    type Register: Copy;
    /// Bytes of a source in the form that the multiplication takes.
    type Operand: Copy;
    /// A coefficient in the form that the multiplication takes.
    type Factor: Copy;

    /// Bytes per register.
    const WIDTH: usize = size_of::<Self::Register>();
    /// Whether a sweep takes two sources per step with [`Self::add_two_products`].
    const TAKES_PAIRS: bool = false;

    fn xor(self, a: Self::Register, b: Self::Register) -> Self::Register;

    fn and(self, a: Self::Register, b: Self::Register) -> Self::Register;

    fn operand(self, source: Self::Register) -> Self::Operand;

    fn factor(self, coefficient: u8) -> Self::Factor;

    /// Returns `sum + source * factor`.
    fn add_product(self, sum: Self::Register, source: Self::Operand, factor: Self::Factor) -> Self::Register;

    /// Returns `sum + sources[0] * factors[0] + sources[1] * factors[1]`.
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

    /// Handles the last bytes of a sweep from `done` on, fewer than a register holds.
    #[inline(always)]
    fn sweep_tail<const R: usize>(self, task: Task<'_, '_, R>, done: usize) {
        sweep::tail(self, task, done);
    }

    // The rest is the same for all engines.

    #[inline(always)]
    fn zero(self) -> Self::Register {
        // SAFETY: every bit pattern is a valid register.
        unsafe { core::mem::zeroed() }
    }

    /// # Safety
    ///
    /// A register must be readable at `bytes`.
    #[inline(always)]
    unsafe fn load(self, bytes: *const u8) -> Self::Register {
        // SAFETY: guaranteed by the caller, and every bit pattern is a valid register.
        unsafe { bytes.cast::<Self::Register>().read_unaligned() }
    }

    /// # Safety
    ///
    /// A register must be writable at `bytes`.
    #[inline(always)]
    unsafe fn store(self, bytes: *mut u8, register: Self::Register) {
        // SAFETY: guaranteed by the caller.
        unsafe { bytes.cast::<Self::Register>().write_unaligned(register) }
    }

    /// # Safety
    ///
    /// `V` registers must be readable at `bytes`.
    #[inline(always)]
    unsafe fn load_all<const V: usize>(self, bytes: *const u8) -> [Self::Register; V] {
        let mut registers = [self.zero(); V];
        for v in 0..V {
            // SAFETY: v is below V; the rest is guaranteed by the caller.
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
            // SAFETY: v is below V; the rest is guaranteed by the caller.
            unsafe { self.store(bytes.add(v * Self::WIDTH), registers[v]) };
        }
    }

    /// # Safety
    ///
    /// `V` registers must be readable at `bytes`.
    #[inline(always)]
    unsafe fn load_operands<const V: usize>(self, bytes: *const u8) -> [Self::Operand; V] {
        // SAFETY: guaranteed by the caller.
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

/// The low and the high halves of bytes, or a coefficient's products with all sixteen values of each.
#[derive(Clone, Copy)]
pub(super) struct Halves<T> {
    pub(super) low: T,
    pub(super) high: T,
}
