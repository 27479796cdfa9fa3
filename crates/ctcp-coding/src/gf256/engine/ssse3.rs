//! SSSE3: a byte is multiplied as two halves of four bits, each by a table look-up with a byte shuffle.

#![allow(unsafe_code, reason = "vector loads and stores, and calls into code for detected features")]

use super::{Kernel, Mode, has_features, scalar};
use crate::gf256::tables::NIBBLES;
use core::arch::x86_64::{
    __m128i, _mm_and_si128, _mm_andnot_si128, _mm_loadu_si128, _mm_set1_epi8, _mm_setzero_si128,
    _mm_shuffle_epi8, _mm_srli_epi64, _mm_storeu_si128, _mm_xor_si128,
};

/// Bytes in a register.
const WIDTH: usize = 16;

/// Exists only where the processor has the features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ssse3(());

impl Ssse3 {
    pub(super) fn detect() -> Option<Self> {
        has_features!("ssse3").then_some(Self(()))
    }

    /// # Safety
    ///
    /// [`Self::detect`] must have found the features in this process.
    pub(super) unsafe fn assume_detected() -> Self {
        Self(())
    }
}

impl Kernel for Ssse3 {
    const OUTPUTS: usize = 4;

    #[inline]
    fn sweep<const R: usize>(
        self,
        outs: &mut [&mut [u8]; R],
        rows: &[&[u8]; R],
        sources: &[&[u8]],
        mode: Mode,
    ) {
        // SAFETY: `self` exists only if `detect` found the features.
        unsafe { sweep(outs, rows, sources, mode) }
    }
}

#[target_feature(enable = "ssse3")]
fn sweep<const R: usize>(outs: &mut [&mut [u8]; R], rows: &[&[u8]; R], sources: &[&[u8]], mode: Mode) {
    let length = outs[0].len();
    if length < WIDTH {
        for (out, row) in outs.iter_mut().zip(rows) {
            scalar::combine_slice(out, row, sources, mode);
        }
        return;
    }
    // As many registers an output as the sums, one source and a coefficient leave room for.
    let at = match R {
        1 => tiles::<R, 4>(outs, rows, sources, 0, mode),
        2 => tiles::<R, 3>(outs, rows, sources, 0, mode),
        _ => tiles::<R, 2>(outs, rows, sources, 0, mode),
    };
    let at = tiles::<R, 2>(outs, rows, sources, at, mode);
    let at = tiles::<R, 1>(outs, rows, sources, at, mode);
    if at < length {
        tail(outs, rows, sources, at, mode);
    }
}

/// Tiles of V registers an output from byte `at` on, as many as there are; returns where they end.
#[inline]
#[target_feature(enable = "ssse3")]
fn tiles<const R: usize, const V: usize>(
    outs: &mut [&mut [u8]; R],
    rows: &[&[u8]; R],
    sources: &[&[u8]],
    mut at: usize,
    mode: Mode,
) -> usize {
    while at + V * WIDTH <= outs[0].len() {
        tile::<R, V>(outs, rows, sources, at, mode);
        at += V * WIDTH;
    }
    at
}

#[inline]
#[target_feature(enable = "ssse3")]
fn tile<const R: usize, const V: usize>(
    outs: &mut [&mut [u8]; R],
    rows: &[&[u8]; R],
    sources: &[&[u8]],
    at: usize,
    mode: Mode,
) {
    let mut sums = [[_mm_setzero_si128(); V]; R];
    if mode == Mode::Add {
        for (sum, out) in sums.iter_mut().zip(outs.iter()) {
            *sum = load(out, at);
        }
    }
    for (j, source) in sources.iter().enumerate() {
        let vectors = load::<V>(source, at);
        for (sum, row) in sums.iter_mut().zip(rows) {
            let factor = Factor::new(row[j]);
            for v in 0..V {
                sum[v] = _mm_xor_si128(sum[v], factor.times(vectors[v]));
            }
        }
    }
    for (out, sum) in outs.iter_mut().zip(&sums) {
        store(out, at, sum);
    }
}

/// The last bytes, fewer than a register holds: the last register of the outputs once more, with
/// what is already done masked out of the sources.
#[inline]
#[target_feature(enable = "ssse3")]
fn tail<const R: usize>(
    outs: &mut [&mut [u8]; R],
    rows: &[&[u8]; R],
    sources: &[&[u8]],
    done: usize,
    mode: Mode,
) {
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
    let at = outs[0].len() - WIDTH;
    let [mask] = load(&MASKS, WIDTH - (done - at));
    let mut sums = [_mm_setzero_si128(); R];
    for (sum, out) in sums.iter_mut().zip(outs.iter()) {
        let [old] = load(out, at);
        *sum = if mode == Mode::Add { old } else { _mm_andnot_si128(mask, old) };
    }
    for (j, source) in sources.iter().enumerate() {
        let [vector] = load(source, at);
        let vector = _mm_and_si128(vector, mask);
        for (sum, row) in sums.iter_mut().zip(rows) {
            *sum = _mm_xor_si128(*sum, Factor::new(row[j]).times(vector));
        }
    }
    for (out, &sum) in outs.iter_mut().zip(&sums) {
        store(out, at, &[sum]);
    }
}

/// A coefficient as its products with all low and all high halves of a byte.
#[derive(Clone, Copy)]
struct Factor {
    low: __m128i,
    high: __m128i,
}

impl Factor {
    #[inline]
    #[target_feature(enable = "ssse3")]
    fn new(coefficient: u8) -> Self {
        let table = &NIBBLES[usize::from(coefficient)];
        // SAFETY: the table has 32 bytes, two registers of 16.
        let (low, high) = unsafe {
            (_mm_loadu_si128(table.as_ptr().cast()), _mm_loadu_si128(table.as_ptr().add(16).cast()))
        };
        Self { low, high }
    }

    #[inline]
    #[target_feature(enable = "ssse3")]
    fn times(self, vector: __m128i) -> __m128i {
        let half = _mm_set1_epi8(0x0F);
        let low = _mm_and_si128(vector, half);
        let high = _mm_and_si128(_mm_srli_epi64::<4>(vector), half);
        _mm_xor_si128(_mm_shuffle_epi8(self.low, low), _mm_shuffle_epi8(self.high, high))
    }
}

#[inline]
#[target_feature(enable = "ssse3")]
fn load<const V: usize>(bytes: &[u8], at: usize) -> [__m128i; V] {
    let bytes = &bytes[at..at + V * WIDTH];
    let mut vectors = [_mm_setzero_si128(); V];
    for (v, vector) in vectors.iter_mut().enumerate() {
        // SAFETY: `bytes` has V * WIDTH bytes and v is below V.
        *vector = unsafe { _mm_loadu_si128(bytes.as_ptr().add(v * WIDTH).cast()) };
    }
    vectors
}

#[inline]
#[target_feature(enable = "ssse3")]
fn store<const V: usize>(bytes: &mut [u8], at: usize, vectors: &[__m128i; V]) {
    let bytes = &mut bytes[at..at + V * WIDTH];
    for (v, &vector) in vectors.iter().enumerate() {
        // SAFETY: `bytes` has V * WIDTH bytes and v is below V.
        unsafe { _mm_storeu_si128(bytes.as_mut_ptr().add(v * WIDTH).cast(), vector) };
    }
}
