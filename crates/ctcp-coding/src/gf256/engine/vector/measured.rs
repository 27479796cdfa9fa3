//! Kernels for measurements: a sweep's arithmetic without its loads, and loads without arithmetic.

use super::super::scalar;
use super::super::task::Spread;
use super::InstructionSet;
use super::sweep::{add_products, add_products_of_two};
use core::hint::black_box;

/// Performs the arithmetic of tiles with R outputs of V registers, and returns the number of products.
#[inline(always)]
pub(in super::super) fn multiply<I: InstructionSet, const R: usize, const V: usize>(
    set: I,
    rounds: u64,
) -> u64 {
    let factors = black_box([[set.factor(3), set.factor(5)]; R]);
    let mut sums = black_box([[set.zero(); V]; R]);
    for _ in 0..rounds {
        let (first, second) = (set.operands(sums[0]), set.operands(sums[R - 1]));
        if I::TAKES_PAIRS {
            add_products_of_two(set, &mut sums, [&first, &second], &factors);
        } else {
            for r in 0..R {
                add_products(set, &mut sums[r], &first, factors[r][0]);
            }
        }
    }
    black_box(sums);
    let sources = if I::TAKES_PAIRS { 2 } else { 1 };
    rounds * (sources * R * V * I::WIDTH) as u64
}

/// Returns the XOR of all 8-byte words, with the last word of a source zero padded. It performs loads, and one XOR for
/// each so that none is optimized away.
#[inline(always)]
pub(in super::super) fn read<I: InstructionSet>(set: I, sources: &[&[u8]]) -> u64 {
    /// Registers loaded per step. A symbol of 1344 bytes is a multiple of them at every register width.
    const LOADS: usize = 21;
    /// Accumulators used in turn. The loop was slower with more.
    const SUMS: usize = 4;
    let mut sums = [set.zero(); SUMS];
    let mut rest = 0;
    for source in sources {
        let mut at = 0;
        while at + LOADS * I::WIDTH <= source.len() {
            // SAFETY: the loads end inside the source.
            let loaded = unsafe { set.load_all::<LOADS>(source.as_ptr().add(at)) };
            for v in 0..LOADS {
                sums[v % SUMS] = set.xor(sums[v % SUMS], loaded[v]);
            }
            at += LOADS * I::WIDTH;
        }
        if at < source.len() {
            rest ^= scalar::read(&[&source[at..]]);
        }
    }
    let mut bytes = [[0; Spread::UNIT]; SUMS];
    for v in 0..SUMS {
        // SAFETY: a unit is at least as long as a register.
        unsafe { set.store(bytes[v].as_mut_ptr(), sums[v]) };
    }
    rest ^ scalar::read(&[bytes.as_flattened()])
}
