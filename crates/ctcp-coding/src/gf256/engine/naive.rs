//! The oracle: every product bit by bit from the definition of the field. Slow on purpose.

use super::Kernel;
use super::task::{Mode, Sources, Spread, Task};
use crate::gf256::element::mul_by_definition;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Naive;

impl Kernel for Naive {
    const OUTPUTS: usize = 1;

    fn sweep<const R: usize>(self, mut task: Task<'_, '_, R>) {
        let (sources, mode) = (task.sources(), task.mode());
        for (out, row) in task.outputs() {
            for (position, byte) in out.iter_mut().enumerate() {
                let sum = row.iter().zip(sources.iter()).fold(0, |sum, (&coefficient, source)| {
                    sum ^ mul_by_definition(coefficient, source[position])
                });
                *byte = if mode == Mode::Add { *byte ^ sum } else { sum };
            }
        }
    }

    fn sum(self, out: &mut [u8], sources: Sources<'_>) {
        for (position, byte) in out.iter_mut().enumerate() {
            *byte = sources.iter().fold(0, |sum, source| sum ^ source[position]);
        }
    }

    fn spread(self, mut task: Spread<'_>) {
        let (source, cleared) = (task.source(), task.cleared());
        for (row, factor) in task.rows() {
            for (column, byte) in row.iter_mut().enumerate() {
                let old = if cleared == Some(column) { 0 } else { *byte };
                *byte = old ^ mul_by_definition(factor, source[column]);
            }
        }
    }
}
