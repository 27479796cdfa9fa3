//! `out = sum_j sources[j]`, tile by tile.

use super::super::task::Sources;
use super::InstructionSet;

/// Tiles of V registers from byte `at` on, as many as fit; returns where they end.
#[inline(always)]
pub(in super::super) fn tiles<I: InstructionSet, const V: usize>(
    set: I,
    out: &mut [u8],
    sources: Sources<'_>,
    mut at: usize,
) -> usize {
    while at + V * I::WIDTH <= out.len().min(sources.length()) {
        let mut sums = [set.zero(); V];
        // SAFETY: the tile ends inside the output and inside every source; j is below their count.
        unsafe {
            for j in 0..sources.count() {
                let source = set.load_all::<V>(sources.start(j).add(at));
                for v in 0..V {
                    sums[v] = set.xor(sums[v], source[v]);
                }
            }
            set.store_all(out.as_mut_ptr().add(at), &sums);
        }
        at += V * I::WIDTH;
    }
    at
}
