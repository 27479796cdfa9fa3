//! For measurements: a sweep's arithmetic without its loads, and loads without arithmetic.

use super::super::scalar;
use super::super::task::Spread;
use super::InstructionSet;
use super::sweep::{add_products, add_products_of_two};
use core::hint::black_box;

/// The arithmetic of tiles with R outputs of V registers; returns the number of products.
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

/// The XOR of all words of 8 bytes, a source's last one filled up with zeros: loads, and an XOR each so that none is
/// left out.
#[inline(always)]
pub(in super::super) fn read<I: InstructionSet>(set: I, sources: &[&[u8]]) -> u64 {
    /// Registers that are loaded in a step. A symbol of 1344 bytes is a multiple of them, however wide they are.
    const LOADS: usize = 21;
    /// Registers that they are added to in turn; with more of them the loop was slower.
    const SUMS: usize = 4;
    let mut sums = [set.zero(); SUMS];
    let mut rest = 0;
    for source in sources {
        let mut at = 0;
        while at + LOADS * I::WIDTH <= source.len() {
            // SAFETY: the registers end inside the source.
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
        // SAFETY: a unit is at least a register long.
        unsafe { set.store(bytes[v].as_mut_ptr(), sums[v]) };
    }
    rest ^ scalar::read(&[bytes.as_flattened()])
}
