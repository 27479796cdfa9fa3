//! GFNI with 64-byte registers: one instruction multiplies 64 bytes by a constant, whatever the polynomial.
//!
//! Two sources a step are merged by a three-input XOR: the products and a plain XOR compete for the
//! same ports. Masked loads and stores treat every length alike.

#![allow(clippy::needless_range_loop, reason = "one index runs over the registers of several arrays")]
#![allow(unsafe_code, reason = "vector loads and stores, and calls into code for detected features")]

use super::task::{Mode, Sources, Spread, Task};
use super::{Kernel, has_features, scalar};
use crate::gf256::tables::MATRICES;
use core::arch::x86_64::{
    __m512i, __mmask64, _mm512_gf2p8affine_epi64_epi8, _mm512_loadu_si512, _mm512_mask_storeu_epi8,
    _mm512_maskz_loadu_epi8, _mm512_set1_epi8, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_storeu_si512,
    _mm512_ternarylogic_epi64, _mm512_xor_si512,
};
use core::hint::black_box;

/// Bytes in a register.
const WIDTH: usize = 64;
/// Truth table of a three-input XOR.
const XOR3: i32 = 0x96;
/// Truth table of the first AND the second XOR the third.
const AND_XOR: i32 = 0x6A;

/// Exists only where the processor has the features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Avx512(());

impl Avx512 {
    pub(super) fn detect() -> Option<Self> {
        has_features!("gfni", "avx512f", "avx512bw").then_some(Self(()))
    }

    /// # Safety
    ///
    /// [`Self::detect`] must have found the features in this process.
    pub(super) unsafe fn assume_detected() -> Self {
        Self(())
    }
}

impl Kernel for Avx512 {
    const OUTPUTS: usize = 4;

    #[inline]
    fn sweep<const R: usize>(self, task: Task<'_, '_, R>) {
        // SAFETY: `self` exists only if `detect` found the features.
        unsafe { sweep(task) }
    }

    fn sum(self, out: &mut [u8], sources: Sources<'_>) {
        // SAFETY: `self` exists only if `detect` found the features.
        unsafe { sum(out, sources) }
    }

    #[inline]
    fn spread(self, task: Spread<'_>) {
        // SAFETY: `self` exists only if `detect` found the features.
        unsafe { spread(task) }
    }

    fn multiply_in_registers(self, outputs: usize, rounds: u64) -> u64 {
        // SAFETY: `self` exists only if `detect` found the features.
        unsafe {
            match outputs {
                1 => multiply_in_registers::<1, 12>(rounds),
                _ => multiply_in_registers::<4, 3>(rounds),
            }
        }
    }
}

#[target_feature(enable = "gfni,avx512f,avx512bw")]
fn sweep<const R: usize>(mut task: Task<'_, '_, R>) {
    // As many registers an output as the sums, a source and a coefficient leave room for. One output of a
    // usual symbol fits as a whole (1344 bytes are 21 registers): so each source is read from end to end.
    let at = match R {
        1 => tiles::<R, 21>(&mut task, 0),
        2 | 3 => tiles::<R, 7>(&mut task, 0),
        _ => 0,
    };
    let at = tiles::<R, 3>(&mut task, at);
    let at = tiles::<R, 1>(&mut task, at);
    if at < task.length() {
        tail(&mut task, at);
    }
}

/// Tiles of V registers an output from byte `at` on, as many as there are; returns where they end.
#[inline]
#[target_feature(enable = "gfni,avx512f,avx512bw")]
fn tiles<const R: usize, const V: usize>(task: &mut Task<'_, '_, R>, mut at: usize) -> usize {
    while at + V * WIDTH <= task.length() {
        // SAFETY: the tile ends inside the outputs.
        unsafe { tile::<R, V>(task, at) };
        at += V * WIDTH;
    }
    at
}

/// # Safety
///
/// `at + V * WIDTH` must not be beyond the task's length.
#[inline]
#[target_feature(enable = "gfni,avx512f,avx512bw")]
unsafe fn tile<const R: usize, const V: usize>(task: &mut Task<'_, '_, R>, at: usize) {
    let count = task.sources().count();
    let mut sums = [[_mm512_setzero_si512(); V]; R];
    // SAFETY: sources and outputs have at least the task's length, which the tile does not pass; the indexes
    // are below the count of sources and R.
    unsafe {
        if task.mode() == Mode::Add {
            for (r, sum) in sums.iter_mut().enumerate() {
                *sum = load(task.out(r).add(at));
            }
        }
        let mut j = 0;
        while j + 2 <= count {
            let first = load::<V>(task.sources().start(j).add(at));
            let second = load::<V>(task.sources().start(j + 1).add(at));
            for (r, sum) in sums.iter_mut().enumerate() {
                let factors = [matrix(task.coefficient(r, j)), matrix(task.coefficient(r, j + 1))];
                add_two_products(sum, [&first, &second], factors);
            }
            j += 2;
        }
        if j < count {
            let last = load::<V>(task.sources().start(j).add(at));
            for (r, sum) in sums.iter_mut().enumerate() {
                let factor = matrix(task.coefficient(r, j));
                for v in 0..V {
                    sum[v] = _mm512_xor_si512(sum[v], times(last[v], factor));
                }
            }
        }
        for (r, sum) in sums.iter().enumerate() {
            store(task.out(r).add(at), sum);
        }
    }
}

/// The last bytes, fewer than a register holds.
#[inline]
#[target_feature(enable = "gfni,avx512f,avx512bw")]
fn tail<const R: usize>(task: &mut Task<'_, '_, R>, at: usize) {
    let mask: __mmask64 = (1 << (task.length() - at)) - 1;
    let mut sums = [_mm512_setzero_si512(); R];
    // SAFETY: the mask selects what is left of sources and outputs; the indexes are below the count of sources and R.
    unsafe {
        if task.mode() == Mode::Add {
            for (r, sum) in sums.iter_mut().enumerate() {
                *sum = _mm512_maskz_loadu_epi8(mask, task.out(r).add(at).cast());
            }
        }
        for j in 0..task.sources().count() {
            let vector = _mm512_maskz_loadu_epi8(mask, task.sources().start(j).add(at).cast());
            for (r, sum) in sums.iter_mut().enumerate() {
                *sum = _mm512_xor_si512(*sum, times(vector, matrix(task.coefficient(r, j))));
            }
        }
        for (r, &sum) in sums.iter().enumerate() {
            _mm512_mask_storeu_epi8(task.out(r).add(at).cast(), mask, sum);
        }
    }
}

#[target_feature(enable = "gfni,avx512f,avx512bw")]
fn sum(out: &mut [u8], sources: Sources<'_>) {
    let at = sum_tiles::<21>(out, sources, 0);
    let at = sum_tiles::<7>(out, sources, at);
    let at = sum_tiles::<1>(out, sources, at);
    scalar::sum_from(out, sources, at);
}

#[inline]
#[target_feature(enable = "gfni,avx512f,avx512bw")]
fn sum_tiles<const V: usize>(out: &mut [u8], sources: Sources<'_>, mut at: usize) -> usize {
    while at + V * WIDTH <= out.len().min(sources.length()) {
        let mut sum = [_mm512_setzero_si512(); V];
        // SAFETY: the tile ends inside the output and inside every source.
        unsafe {
            for j in 0..sources.count() {
                let vectors = load::<V>(sources.start(j).add(at));
                for v in 0..V {
                    sum[v] = _mm512_xor_si512(sum[v], vectors[v]);
                }
            }
            store(out.as_mut_ptr().add(at), &sum);
        }
        at += V * WIDTH;
    }
    at
}

#[target_feature(enable = "gfni,avx512f,avx512bw")]
fn spread(mut task: Spread<'_>) {
    let at = spread_tiles::<4>(&mut task, 0);
    let at = spread_tiles::<2>(&mut task, at);
    spread_tiles::<1>(&mut task, at);
}

/// V registers of all rows at a time from byte `at` on, as often as they fit; returns where they end.
#[inline]
#[target_feature(enable = "gfni,avx512f,avx512bw")]
fn spread_tiles<const V: usize>(task: &mut Spread<'_>, mut at: usize) -> usize {
    while at + V * WIDTH <= task.width() {
        let mut kept = [_mm512_setzero_si512(); V];
        for (v, kept) in kept.iter_mut().enumerate() {
            let bytes = task.kept::<WIDTH>(at + v * WIDTH);
            // SAFETY: it is a register long.
            [*kept] = unsafe { load(bytes.as_ptr()) };
        }
        // SAFETY: the tile ends inside the source and inside every row, and the rows are as many as the factors.
        unsafe {
            let source = load::<V>(task.source().as_ptr().add(at));
            for (r, &factor) in task.factors().iter().enumerate() {
                let factor = matrix(factor);
                let row = task.row(r).add(at);
                let mut vectors = load::<V>(row);
                for v in 0..V {
                    let product = times(source[v], factor);
                    vectors[v] = _mm512_ternarylogic_epi64::<AND_XOR>(vectors[v], kept[v], product);
                }
                store(row, &vectors);
            }
        }
        at += V * WIDTH;
    }
    at
}

/// The arithmetic of tiles with R outputs of V registers, without their loads of sources.
#[target_feature(enable = "gfni,avx512f,avx512bw")]
fn multiply_in_registers<const R: usize, const V: usize>(rounds: u64) -> u64 {
    let factors = black_box([[matrix(3), matrix(5)]; R]);
    let mut sums = black_box([[_mm512_set1_epi8(1); V]; R]);
    for _ in 0..rounds {
        let sources = [sums[0], sums[R - 1]];
        for r in 0..R {
            add_two_products(&mut sums[r], sources.each_ref(), factors[r]);
        }
    }
    black_box(sums);
    rounds * (2 * R * V * WIDTH) as u64
}

#[inline]
#[target_feature(enable = "gfni,avx512f,avx512bw")]
fn add_two_products<const V: usize>(
    sum: &mut [__m512i; V],
    sources: [&[__m512i; V]; 2],
    factors: [__m512i; 2],
) {
    for v in 0..V {
        let products = [times(sources[0][v], factors[0]), times(sources[1][v], factors[1])];
        sum[v] = _mm512_ternarylogic_epi64::<XOR3>(sum[v], products[0], products[1]);
    }
}

#[inline]
#[target_feature(enable = "gfni,avx512f,avx512bw")]
fn times(vector: __m512i, matrix: __m512i) -> __m512i {
    _mm512_gf2p8affine_epi64_epi8::<0>(vector, matrix)
}

#[inline]
#[target_feature(enable = "gfni,avx512f,avx512bw")]
fn matrix(coefficient: u8) -> __m512i {
    _mm512_set1_epi64(MATRICES[usize::from(coefficient)].cast_signed())
}

/// # Safety
///
/// `V * WIDTH` bytes must be readable at `bytes`.
#[inline]
#[target_feature(enable = "gfni,avx512f,avx512bw")]
unsafe fn load<const V: usize>(bytes: *const u8) -> [__m512i; V] {
    let mut vectors = [_mm512_setzero_si512(); V];
    for (v, vector) in vectors.iter_mut().enumerate() {
        // SAFETY: v is below V, and the caller's condition.
        *vector = unsafe { _mm512_loadu_si512(bytes.add(v * WIDTH).cast()) };
    }
    vectors
}

/// # Safety
///
/// `V * WIDTH` bytes must be writable at `bytes`.
#[inline]
#[target_feature(enable = "gfni,avx512f,avx512bw")]
unsafe fn store<const V: usize>(bytes: *mut u8, vectors: &[__m512i; V]) {
    for (v, &vector) in vectors.iter().enumerate() {
        // SAFETY: v is below V, and the caller's condition.
        unsafe { _mm512_storeu_si512(bytes.add(v * WIDTH).cast(), vector) };
    }
}
