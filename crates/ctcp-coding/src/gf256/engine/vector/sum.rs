//! Computes `out = sum_j sources[j]`, tile by tile.

use super::super::task::Sources;
use super::InstructionSet;

/// Processes tiles of V registers from byte `at` on, as many as fit. Returns where they end.
#[inline(always)]
pub(in super::super) fn tiles<I: InstructionSet, const V: usize>(
    set: I,
    out: &mut [u8],
    sources: Sources<'_>,
    mut at: usize,
) -> usize {
    while at + V * I::WIDTH <= out.len().min(sources.length()) {
        let mut sums = [set.zero(); V];
        let mut j = 0;
        // SAFETY: the tile ends inside the output and inside every source; j is below the number of sources.
        unsafe {
            // Two sources per step halve the dependency chain on each sum.
            while j + 2 <= sources.count() {
                let first = set.load_all::<V>(sources.start(j).add(at));
                let second = set.load_all::<V>(sources.start(j + 1).add(at));
                for v in 0..V {
                    sums[v] = set.xor(sums[v], set.xor(first[v], second[v]));
                }
                j += 2;
            }
            if j < sources.count() {
                let last = set.load_all::<V>(sources.start(j).add(at));
                for v in 0..V {
                    sums[v] = set.xor(sums[v], last[v]);
                }
            }
            set.store_all(out.as_mut_ptr().add(at), &sums);
        }
        at += V * I::WIDTH;
    }
    at
}
