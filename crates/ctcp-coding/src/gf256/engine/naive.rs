//! The oracle: every product bit by bit from the definition of the field. Slow on purpose.

use super::{Kernel, Mode};
use crate::gf256::element::mul_by_definition;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Naive;

impl Kernel for Naive {
    const OUTPUTS: usize = 1;

    fn sweep<const R: usize>(
        self,
        outs: &mut [&mut [u8]; R],
        rows: &[&[u8]; R],
        sources: &[&[u8]],
        mode: Mode,
    ) {
        for (out, row) in outs.iter_mut().zip(rows) {
            for (position, byte) in out.iter_mut().enumerate() {
                let sum = row.iter().zip(sources).fold(0, |sum, (&coefficient, source)| {
                    sum ^ mul_by_definition(coefficient, source[position])
                });
                *byte = if mode == Mode::Add { *byte ^ sum } else { sum };
            }
        }
    }
}
