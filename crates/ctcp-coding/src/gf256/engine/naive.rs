//! The test oracle: computes every product bit by bit from the definition of the field. Deliberately slow.

use super::kernels::Kernels;
use super::task::{Mode, Sources, Spread, Task};
use crate::gf256::element::mul_by_definition;

pub(super) static KERNELS: Kernels = Kernels {
    name: "naive",
    detect: || true,
    sweeps: (sweep, sweep, sweep, sweep),
    sum,
    spread,
    read,
    multiply_in_registers: |_, _| 0,
};

fn sweep<const R: usize>(mut task: Task<'_, '_, R>) {
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

fn sum(out: &mut [u8], sources: Sources<'_>) {
    for (position, byte) in out.iter_mut().enumerate() {
        *byte = sources.iter().fold(0, |sum, source| sum ^ source[position]);
    }
}

fn spread(mut task: Spread<'_>) {
    let source = task.source();
    for (row, factor) in task.rows() {
        for (byte, &addend) in row.iter_mut().zip(source) {
            *byte ^= mul_by_definition(factor, addend);
        }
    }
}

fn read(sources: &[&[u8]]) -> u64 {
    let bytes = sources.iter().flat_map(|source| source.iter().enumerate());
    bytes.fold(0, |sum, (position, &byte)| sum ^ (u64::from(byte) << (8 * (position % 8))))
}
