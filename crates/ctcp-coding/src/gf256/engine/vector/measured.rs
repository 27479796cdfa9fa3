//! For measurements: a sweep's arithmetic without its loads.

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
