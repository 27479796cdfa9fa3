//! GFNI with 64-byte registers: one instruction multiplies 64 bytes by a constant, whatever the polynomial.
//!
//! Two sources a step are merged by a three-input XOR: the products and a plain XOR compete for the
//! same ports. Masked loads and stores treat every length alike.

#![allow(unsafe_code, reason = "vector loads and stores, and calls into code for detected features")]

use super::{Kernel, Mode, has_features};
use crate::gf256::tables::MATRICES;
use core::arch::x86_64::{
    __m512i, __mmask64, _mm512_gf2p8affine_epi64_epi8, _mm512_loadu_si512, _mm512_mask_storeu_epi8,
    _mm512_maskz_loadu_epi8, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_storeu_si512,
    _mm512_ternarylogic_epi64, _mm512_xor_si512,
};

/// Bytes in a register.
const WIDTH: usize = 64;
/// Truth table of a three-input XOR.
const XOR3: i32 = 0x96;

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

#[target_feature(enable = "gfni,avx512f,avx512bw")]
fn sweep<const R: usize>(outs: &mut [&mut [u8]; R], rows: &[&[u8]; R], sources: &[&[u8]], mode: Mode) {
    let length = outs[0].len();
    // As many registers an output as the sums, one source and a coefficient leave room for.
    let at = match R {
        1 => tiles::<R, 6>(outs, rows, sources, 0, mode),
        2 => tiles::<R, 4>(outs, rows, sources, 0, mode),
        _ => tiles::<R, 3>(outs, rows, sources, 0, mode),
    };
    let at = tiles::<R, 2>(outs, rows, sources, at, mode);
    let at = tiles::<R, 1>(outs, rows, sources, at, mode);
    if at < length {
        tail(outs, rows, sources, at, mode);
    }
}

/// Tiles of V registers an output from byte `at` on, as many as there are; returns where they end.
#[inline]
#[target_feature(enable = "gfni,avx512f,avx512bw")]
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
#[target_feature(enable = "gfni,avx512f,avx512bw")]
fn tile<const R: usize, const V: usize>(
    outs: &mut [&mut [u8]; R],
    rows: &[&[u8]; R],
    sources: &[&[u8]],
    at: usize,
    mode: Mode,
) {
    let mut sums = [[_mm512_setzero_si512(); V]; R];
    if mode == Mode::Add {
        for (sum, out) in sums.iter_mut().zip(outs.iter()) {
            *sum = load(out, at);
        }
    }
    let mut j = 0;
    while j + 2 <= sources.len() {
        let (first, second) = (load::<V>(sources[j], at), load::<V>(sources[j + 1], at));
        for (sum, row) in sums.iter_mut().zip(rows) {
            let (a, b) = (matrix(row[j]), matrix(row[j + 1]));
            for v in 0..V {
                let product = _mm512_gf2p8affine_epi64_epi8::<0>(first[v], a);
                let other = _mm512_gf2p8affine_epi64_epi8::<0>(second[v], b);
                sum[v] = _mm512_ternarylogic_epi64::<XOR3>(sum[v], product, other);
            }
        }
        j += 2;
    }
    if j < sources.len() {
        let last = load::<V>(sources[j], at);
        for (sum, row) in sums.iter_mut().zip(rows) {
            let a = matrix(row[j]);
            for v in 0..V {
                sum[v] = _mm512_xor_si512(sum[v], _mm512_gf2p8affine_epi64_epi8::<0>(last[v], a));
            }
        }
    }
    for (out, sum) in outs.iter_mut().zip(&sums) {
        let bytes = &mut out[at..at + V * WIDTH];
        for (v, &vector) in sum.iter().enumerate() {
            // SAFETY: `bytes` has V * WIDTH bytes and v is below V.
            unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().add(v * WIDTH).cast(), vector) };
        }
    }
}

/// The last bytes, fewer than a register holds.
#[inline]
#[target_feature(enable = "gfni,avx512f,avx512bw")]
fn tail<const R: usize>(
    outs: &mut [&mut [u8]; R],
    rows: &[&[u8]; R],
    sources: &[&[u8]],
    at: usize,
    mode: Mode,
) {
    let rest = outs[0].len() - at;
    let mask: __mmask64 = (1 << rest) - 1;
    let mut sums = [_mm512_setzero_si512(); R];
    if mode == Mode::Add {
        for (sum, out) in sums.iter_mut().zip(outs.iter()) {
            *sum = load_masked(&out[at..at + rest], mask);
        }
    }
    for (j, source) in sources.iter().enumerate() {
        let vector = load_masked(&source[at..at + rest], mask);
        for (sum, row) in sums.iter_mut().zip(rows) {
            *sum = _mm512_xor_si512(*sum, _mm512_gf2p8affine_epi64_epi8::<0>(vector, matrix(row[j])));
        }
    }
    for (out, &sum) in outs.iter_mut().zip(&sums) {
        let bytes = &mut out[at..at + rest];
        // SAFETY: the mask selects the first `rest` bytes, which `bytes` has.
        unsafe { _mm512_mask_storeu_epi8(bytes.as_mut_ptr().cast(), mask, sum) };
    }
}

#[inline]
#[target_feature(enable = "gfni,avx512f,avx512bw")]
fn matrix(coefficient: u8) -> __m512i {
    _mm512_set1_epi64(MATRICES[usize::from(coefficient)].cast_signed())
}

#[inline]
#[target_feature(enable = "gfni,avx512f,avx512bw")]
fn load<const V: usize>(bytes: &[u8], at: usize) -> [__m512i; V] {
    let bytes = &bytes[at..at + V * WIDTH];
    let mut vectors = [_mm512_setzero_si512(); V];
    for (v, vector) in vectors.iter_mut().enumerate() {
        // SAFETY: `bytes` has V * WIDTH bytes and v is below V.
        *vector = unsafe { _mm512_loadu_si512(bytes.as_ptr().add(v * WIDTH).cast()) };
    }
    vectors
}

/// Loads `bytes`, as many as the mask has ones.
#[inline]
#[target_feature(enable = "gfni,avx512f,avx512bw")]
fn load_masked(bytes: &[u8], mask: __mmask64) -> __m512i {
    debug_assert!(bytes.len() == mask.count_ones() as usize, "the mask covers the bytes");
    // SAFETY: bytes outside the mask are not read, and the caller's mask covers `bytes` alone.
    unsafe { _mm512_maskz_loadu_epi8(mask, bytes.as_ptr().cast()) }
}
