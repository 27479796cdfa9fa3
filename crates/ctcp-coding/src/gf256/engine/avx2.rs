//! AVX2: a byte is multiplied as two halves of four bits, each by a table look-up with a byte shuffle.

#![allow(clippy::needless_range_loop, reason = "one index runs over the registers of several arrays")]
#![allow(unsafe_code, reason = "vector loads and stores, and calls into code for detected features")]

use super::task::{Mode, Sources, Spread, Task};
use super::{Kernel, has_features, scalar};
use crate::gf256::tables::NIBBLES;
use core::arch::x86_64::{
    __m256i, _mm_loadu_si128, _mm256_and_si256, _mm256_andnot_si256, _mm256_broadcastsi128_si256,
    _mm256_loadu_si256, _mm256_set1_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_srli_epi64,
    _mm256_storeu_si256, _mm256_xor_si256,
};
use core::hint::black_box;

/// Bytes in a register.
const WIDTH: usize = 32;

/// Exists only where the processor has the features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Avx2(());

impl Avx2 {
    pub(super) fn detect() -> Option<Self> {
        has_features!("avx2").then_some(Self(()))
    }

    /// # Safety
    ///
    /// [`Self::detect`] must have found the features in this process.
    pub(super) unsafe fn assume_detected() -> Self {
        Self(())
    }
}

impl Kernel for Avx2 {
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
                1 => multiply_in_registers::<1, 6>(rounds),
                _ => multiply_in_registers::<4, 2>(rounds),
            }
        }
    }
}

#[target_feature(enable = "avx2")]
fn sweep<const R: usize>(mut task: Task<'_, '_, R>) {
    if task.length() < WIDTH {
        scalar::sweep(task);
        return;
    }
    // As many registers an output as the sums, one source and a coefficient leave room for.
    let at = match R {
        1 => tiles::<R, 6>(&mut task, 0),
        2 => tiles::<R, 3>(&mut task, 0),
        _ => 0,
    };
    let at = tiles::<R, 2>(&mut task, at);
    let at = tiles::<R, 1>(&mut task, at);
    if at < task.length() {
        tail(&mut task, at);
    }
}

/// Tiles of V registers an output from byte `at` on, as many as there are; returns where they end.
#[inline]
#[target_feature(enable = "avx2")]
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
#[target_feature(enable = "avx2")]
unsafe fn tile<const R: usize, const V: usize>(task: &mut Task<'_, '_, R>, at: usize) {
    let mut sums = [[_mm256_setzero_si256(); V]; R];
    // SAFETY: sources and outputs have at least the task's length, which the tile does not pass; the indexes
    // are below the count of sources and R.
    unsafe {
        if task.mode() == Mode::Add {
            for (r, sum) in sums.iter_mut().enumerate() {
                *sum = load(task.out(r).add(at));
            }
        }
        for j in 0..task.sources().count() {
            let source = split(load::<V>(task.sources().start(j).add(at)));
            for (r, sum) in sums.iter_mut().enumerate() {
                add_product(sum, &source, Factor::new(task.coefficient(r, j)));
            }
        }
        for (r, sum) in sums.iter().enumerate() {
            store(task.out(r).add(at), sum);
        }
    }
}

/// The last bytes, fewer than a register holds: the last register of the outputs once more, with
/// what is already done masked out of the sources.
#[inline]
#[target_feature(enable = "avx2")]
fn tail<const R: usize>(task: &mut Task<'_, '_, R>, done: usize) {
    /// A register loaded from position p is zero in its first `WIDTH - p` bytes and ones after them.
    static MASKS: [u8; 2 * WIDTH] = {
        let mut masks = [0; 2 * WIDTH];
        let mut position = WIDTH;
        while position < 2 * WIDTH {
            masks[position] = 0xFF;
            position += 1;
        }
        masks
    };
    let at = task.length() - WIDTH;
    let mut sums = [[_mm256_setzero_si256()]; R];
    // SAFETY: the task is at least a register long, so the last one lies inside sources and outputs; less than a
    // register is left to do, so the mask lies inside the table; the indexes are below the count of sources and R.
    unsafe {
        let [mask] = load(MASKS.as_ptr().add(WIDTH - (done - at)));
        for (r, sum) in sums.iter_mut().enumerate() {
            let [old] = load(task.out(r).add(at));
            *sum = [if task.mode() == Mode::Add { old } else { _mm256_andnot_si256(mask, old) }];
        }
        for j in 0..task.sources().count() {
            let [source] = load(task.sources().start(j).add(at));
            let source = split([_mm256_and_si256(source, mask)]);
            for (r, sum) in sums.iter_mut().enumerate() {
                add_product(sum, &source, Factor::new(task.coefficient(r, j)));
            }
        }
        for (r, sum) in sums.iter().enumerate() {
            store(task.out(r).add(at), sum);
        }
    }
}

#[target_feature(enable = "avx2")]
fn sum(out: &mut [u8], sources: Sources<'_>) {
    let at = sum_tiles::<14>(out, sources, 0);
    let at = sum_tiles::<1>(out, sources, at);
    scalar::sum_from(out, sources, at);
}

#[inline]
#[target_feature(enable = "avx2")]
fn sum_tiles<const V: usize>(out: &mut [u8], sources: Sources<'_>, mut at: usize) -> usize {
    while at + V * WIDTH <= out.len().min(sources.length()) {
        let mut sum = [_mm256_setzero_si256(); V];
        // SAFETY: the tile ends inside the output and inside every source.
        unsafe {
            for j in 0..sources.count() {
                let vectors = load::<V>(sources.start(j).add(at));
                for v in 0..V {
                    sum[v] = _mm256_xor_si256(sum[v], vectors[v]);
                }
            }
            store(out.as_mut_ptr().add(at), &sum);
        }
        at += V * WIDTH;
    }
    at
}

#[target_feature(enable = "avx2")]
fn spread(mut task: Spread<'_>) {
    let at = spread_tiles::<4>(&mut task, 0);
    spread_tiles::<2>(&mut task, at);
}

/// V registers of all rows at a time from byte `at` on, as often as they fit; returns where they end.
#[inline]
#[target_feature(enable = "avx2")]
fn spread_tiles<const V: usize>(task: &mut Spread<'_>, mut at: usize) -> usize {
    while at + V * WIDTH <= task.width() {
        let mut kept = [_mm256_setzero_si256(); V];
        for (v, kept) in kept.iter_mut().enumerate() {
            let bytes = task.kept::<WIDTH>(at + v * WIDTH);
            // SAFETY: it is a register long.
            [*kept] = unsafe { load(bytes.as_ptr()) };
        }
        // SAFETY: the tile ends inside the source and inside every row, and the rows are as many as the factors.
        unsafe {
            let source = split(load::<V>(task.source().as_ptr().add(at)));
            for (r, &factor) in task.factors().iter().enumerate() {
                let factor = Factor::new(factor);
                let row = task.row(r).add(at);
                let mut vectors = load::<V>(row);
                for v in 0..V {
                    vectors[v] = _mm256_and_si256(vectors[v], kept[v]);
                }
                add_product(&mut vectors, &source, factor);
                store(row, &vectors);
            }
        }
        at += V * WIDTH;
    }
    at
}

/// The arithmetic of tiles with R outputs of V registers, without their loads of sources.
#[target_feature(enable = "avx2")]
fn multiply_in_registers<const R: usize, const V: usize>(rounds: u64) -> u64 {
    let factors = black_box([Factor::new(3); R]);
    let mut sums = black_box([[_mm256_set1_epi8(1); V]; R]);
    for _ in 0..rounds {
        let source = split(sums[0]);
        for r in 0..R {
            add_product(&mut sums[r], &source, factors[r]);
        }
    }
    black_box(sums);
    rounds * (R * V * WIDTH) as u64
}

/// A coefficient as its products with all low and all high halves of a byte.
#[derive(Clone, Copy)]
struct Factor {
    low: __m256i,
    high: __m256i,
}

impl Factor {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(coefficient: u8) -> Self {
        let table = &NIBBLES[usize::from(coefficient)];
        // SAFETY: the table has 32 bytes, two registers of 16.
        let (low, high) = unsafe {
            (_mm_loadu_si128(table.as_ptr().cast()), _mm_loadu_si128(table.as_ptr().add(16).cast()))
        };
        Self { low: _mm256_broadcastsi128_si256(low), high: _mm256_broadcastsi128_si256(high) }
    }
}

/// The low and the high halves of the bytes of V registers.
struct Halves<const V: usize> {
    low: [__m256i; V],
    high: [__m256i; V],
}

#[inline]
#[target_feature(enable = "avx2")]
fn split<const V: usize>(vectors: [__m256i; V]) -> Halves<V> {
    let mask = _mm256_set1_epi8(0x0F);
    let mut halves = Halves { low: vectors, high: vectors };
    for v in 0..V {
        halves.low[v] = _mm256_and_si256(vectors[v], mask);
        halves.high[v] = _mm256_and_si256(_mm256_srli_epi64::<4>(vectors[v]), mask);
    }
    halves
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_product<const V: usize>(sum: &mut [__m256i; V], source: &Halves<V>, factor: Factor) {
    for v in 0..V {
        let low = _mm256_shuffle_epi8(factor.low, source.low[v]);
        let high = _mm256_shuffle_epi8(factor.high, source.high[v]);
        sum[v] = _mm256_xor_si256(_mm256_xor_si256(sum[v], low), high);
    }
}

/// # Safety
///
/// `V * WIDTH` bytes must be readable at `bytes`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load<const V: usize>(bytes: *const u8) -> [__m256i; V] {
    let mut vectors = [_mm256_setzero_si256(); V];
    for (v, vector) in vectors.iter_mut().enumerate() {
        // SAFETY: v is below V, and the caller's condition.
        *vector = unsafe { _mm256_loadu_si256(bytes.add(v * WIDTH).cast()) };
    }
    vectors
}

/// # Safety
///
/// `V * WIDTH` bytes must be writable at `bytes`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store<const V: usize>(bytes: *mut u8, vectors: &[__m256i; V]) {
    for (v, &vector) in vectors.iter().enumerate() {
        // SAFETY: v is below V, and the caller's condition.
        unsafe { _mm256_storeu_si256(bytes.add(v * WIDTH).cast(), vector) };
    }
}
