//! Portable kernel: one 256-byte table of products per coefficient.

use super::kernels::Kernels;
use super::task::{Mode, Sources, Spread, Task};
use crate::gf256::tables::PRODUCTS;

/// Bytes of output that stay in the first-level cache while all sources are added.
const TILE: usize = 512;

pub(super) static KERNELS: Kernels = Kernels {
    name: "scalar",
    detect: || true,
    sweeps: (sweep, sweep, sweep, sweep),
    sum: |out, sources| sum_from(out, sources, 0),
    spread,
    read,
    multiply_in_registers: |_, _| 0,
};

/// Also used by the vector engines for outputs shorter than a register.
pub(super) fn sweep<const R: usize>(mut task: Task<'_, '_, R>) {
    let (sources, mode) = (task.sources(), task.mode());
    for (out, row) in task.outputs() {
        for (number, tile) in out.chunks_mut(TILE).enumerate() {
            if mode == Mode::Assign {
                tile.fill(0);
            }
            for (&coefficient, source) in row.iter().zip(sources.iter()) {
                mul_add(tile, coefficient, &source[number * TILE..]);
            }
        }
    }
}

/// Sums the sources from byte `at` on. Also used by the vector engines for the last bytes.
pub(super) fn sum_from(out: &mut [u8], sources: Sources<'_>, at: usize) {
    for (number, tile) in out[at..].chunks_mut(TILE).enumerate() {
        tile.fill(0);
        for source in sources.iter() {
            mul_add(tile, 1, &source[at + number * TILE..]);
        }
    }
}

fn spread(mut task: Spread<'_>) {
    let source = task.source();
    for (row, factor) in task.rows() {
        mul_add(row, factor, source);
    }
}

/// Also used by the vector engines for the last bytes of a source.
pub(super) fn read(sources: &[&[u8]]) -> u64 {
    let mut sum = 0;
    for source in sources {
        let (words, rest) = source.as_chunks();
        sum = words.iter().fold(sum, |sum, &word| sum ^ u64::from_le_bytes(word));
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        sum ^= u64::from_le_bytes(word);
    }
    sum
}

fn mul_add(out: &mut [u8], coefficient: u8, source: &[u8]) {
    match coefficient {
        0 => {}
        1 => out.iter_mut().zip(source).for_each(|(byte, addend)| *byte ^= addend),
        _ => {
            let table = &PRODUCTS[usize::from(coefficient)];
            out.iter_mut().zip(source).for_each(|(byte, &factor)| *byte ^= table[usize::from(factor)]);
        }
    }
}
