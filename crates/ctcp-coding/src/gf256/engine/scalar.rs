//! Portable kernel: one 256-byte table of products a coefficient.

use super::{Kernel, Mode};
use crate::gf256::tables::PRODUCTS;

/// Bytes of output kept hot in the first-level cache while the sources pass.
const TILE: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scalar;

impl Kernel for Scalar {
    const OUTPUTS: usize = 1;

    fn sweep<const R: usize>(
        self,
        outs: &mut [&mut [u8]; R],
        rows: &[&[u8]; R],
        sources: &[&[u8]],
        mode: Mode,
    ) {
        for (out, row) in outs.iter_mut().zip(rows) {
            combine_slice(out, row, sources, mode);
        }
    }
}

/// One output; also what the vector engines do with outputs shorter than a register.
pub(super) fn combine_slice(out: &mut [u8], row: &[u8], sources: &[&[u8]], mode: Mode) {
    let mut at = 0;
    while at < out.len() {
        let end = out.len().min(at + TILE);
        let tile = &mut out[at..end];
        if mode == Mode::Assign {
            tile.fill(0);
        }
        for (&coefficient, source) in row.iter().zip(sources) {
            mul_add(tile, coefficient, &source[at..end]);
        }
        at = end;
    }
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
