//! Computes `rows[r] ^= factors[r] * source`, a few registers of all rows at a time.

use super::super::task::Spread;
use super::InstructionSet;

/// Processes V registers of all rows at a time from byte `at` on, as often as they fit. Returns where they end.
#[inline(always)]
pub(in super::super) fn tiles<I: InstructionSet, const V: usize>(
    set: I,
    task: &mut Spread<'_>,
    mut at: usize,
) -> usize {
    while at + V * I::WIDTH <= task.width() {
        // SAFETY: the tile ends inside the source and inside every row, and there are as many rows as factors.
        unsafe {
            let source = set.load_operands::<V>(task.source().as_ptr().add(at));
            for (r, &factor) in task.factors().iter().enumerate() {
                let factor = set.factor(factor);
                let row = task.row(r).add(at);
                let mut registers = set.load_all::<V>(row);
                for v in 0..V {
                    registers[v] = set.add_product(registers[v], source[v], factor);
                }
                set.store_all(row, &registers);
            }
        }
        at += V * I::WIDTH;
    }
    at
}
