//! Computes `outs[r] (^)= sum_j rows[r][j] * sources[j]`, tile by tile. The sums of a tile of all outputs stay in
//! registers while the sources are read.

use super::super::scalar;
use super::super::task::{Mode, Spread, Task};
use super::InstructionSet;

/// Processes tiles of V registers per output from byte `at` on, as many as fit. Returns where they end.
#[inline(always)]
pub(in super::super) fn tiles<I: InstructionSet, const R: usize, const V: usize>(
    set: I,
    task: &mut Task<'_, '_, R>,
    mut at: usize,
) -> usize {
    while at + V * I::WIDTH <= task.length() {
        // SAFETY: the tile ends inside the outputs.
        unsafe { tile::<I, R, V>(set, task, at) };
        at += V * I::WIDTH;
    }
    at
}

/// # Safety
///
/// `at` plus V registers must not exceed the task's length.
#[inline(always)]
unsafe fn tile<I: InstructionSet, const R: usize, const V: usize>(
    set: I,
    task: &mut Task<'_, '_, R>,
    at: usize,
) {
    let count = task.sources().count();
    let mut sums = [[set.zero(); V]; R];
    // SAFETY: the tile ends within the outputs, which have the task's length; j is below the number of sources.
    unsafe {
        if task.mode() == Mode::Add {
            for r in 0..R {
                sums[r] = set.load_all(task.out(r).add(at));
            }
        }
        let mut j = 0;
        if I::TAKES_PAIRS {
            while j + 2 <= count {
                add_two_sources(set, &mut sums, task, at, j);
                j += 2;
            }
            if j < count {
                add_source(set, &mut sums, task, at, j);
            }
        } else {
            while j < count {
                add_source(set, &mut sums, task, at, j);
                j += 1;
            }
        }
        for r in 0..R {
            set.store_all(task.out(r).add(at), &sums[r]);
        }
    }
}

/// # Safety
///
/// `at` plus V registers must not exceed the task's length, and `j` must be below the number of sources.
#[inline(always)]
unsafe fn add_source<I: InstructionSet, const R: usize, const V: usize>(
    set: I,
    sums: &mut [[I::Register; V]; R],
    task: &Task<'_, '_, R>,
    at: usize,
    j: usize,
) {
    // SAFETY: guaranteed by the caller; a source has at least the task's length; r is below R.
    unsafe {
        let source = set.load_operands::<V>(task.sources().start(j).add(at));
        for r in 0..R {
            add_products(set, &mut sums[r], &source, set.factor(task.coefficient(r, j)));
        }
    }
}

/// # Safety
///
/// As [`add_source`], and `j + 1` must be below the number of sources as well.
#[inline(always)]
unsafe fn add_two_sources<I: InstructionSet, const R: usize, const V: usize>(
    set: I,
    sums: &mut [[I::Register; V]; R],
    task: &Task<'_, '_, R>,
    at: usize,
    j: usize,
) {
    let mut factors = [[set.factor(0); 2]; R];
    // SAFETY: guaranteed by the caller; a source has at least the task's length; r is below R.
    unsafe {
        let first = set.load_operands::<V>(task.sources().start(j).add(at));
        let second = set.load_operands::<V>(task.sources().start(j + 1).add(at));
        for r in 0..R {
            factors[r] = [set.factor(task.coefficient(r, j)), set.factor(task.coefficient(r, j + 1))];
        }
        add_products_of_two(set, sums, [&first, &second], &factors);
    }
}

/// Computes `sum += source * factor` for one output.
#[inline(always)]
pub(super) fn add_products<I: InstructionSet, const V: usize>(
    set: I,
    sum: &mut [I::Register; V],
    source: &[I::Operand; V],
    factor: I::Factor,
) {
    for v in 0..V {
        sum[v] = set.add_product(sum[v], source[v], factor);
    }
}

/// Computes `sums[r] += sources[0] * factors[r][0] + sources[1] * factors[r][1]`.
///
/// The factors of all outputs stay in registers while the sources are read, since two sources take more registers.
#[inline(always)]
pub(super) fn add_products_of_two<I: InstructionSet, const R: usize, const V: usize>(
    set: I,
    sums: &mut [[I::Register; V]; R],
    [first, second]: [&[I::Operand; V]; 2],
    factors: &[[I::Factor; 2]; R],
) {
    for v in 0..V {
        for r in 0..R {
            sums[r][v] = set.add_two_products(sums[r][v], [first[v], second[v]], factors[r]);
        }
    }
}

/// Handles the last bytes, fewer than a register holds. It computes the last full register of the outputs again, with
/// the finished bytes masked out of the sources. Outputs shorter than a register are left to the scalar kernel.
#[inline(always)]
pub(super) fn tail<I: InstructionSet, const R: usize>(set: I, mut task: Task<'_, '_, R>, done: usize) {
    /// Zeros, ones, zeros, one unit each.
    static MASKS: [u8; 3 * Spread::UNIT] = {
        let mut masks = [0; 3 * Spread::UNIT];
        let mut position = Spread::UNIT;
        while position < 2 * Spread::UNIT {
            masks[position] = 0xFF;
            position += 1;
        }
        masks
    };
    let Some(at) = task.length().checked_sub(I::WIDTH) else { return scalar::sweep(task) };
    let ones_after = &MASKS[Spread::UNIT - (done - at)..];
    let ones_before = &MASKS[2 * Spread::UNIT - (done - at)..];
    let kept = if task.mode() == Mode::Add { &MASKS[Spread::UNIT..] } else { ones_before };
    let sources = task.sources();
    let mut sums = [set.zero(); R];
    // SAFETY: the task is at least a register long, so the last register lies inside sources and outputs. At least a
    // unit of each mask remains. The indexes are below the number of sources and R.
    unsafe {
        let (left, kept) = (set.load(ones_after.as_ptr()), set.load(kept.as_ptr()));
        for r in 0..R {
            sums[r] = set.and(set.load(task.out(r).add(at)), kept);
        }
        for j in 0..sources.count() {
            let source = set.operand(set.and(set.load(sources.start(j).add(at)), left));
            for r in 0..R {
                sums[r] = set.add_product(sums[r], source, set.factor(task.coefficient(r, j)));
            }
        }
        for r in 0..R {
            set.store(task.out(r).add(at), sums[r]);
        }
    }
}
