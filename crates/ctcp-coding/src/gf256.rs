//! Arithmetic in GF(2^8) with the polynomial 0x11D, on single elements and on whole slices.
//!
//! A slice of bytes is a vector of field elements. The one primitive is the *fused linear
//! combination* `out (^)= sum_j coefficients[j] * sources[j]`: its accumulators stay in registers
//! A slice of bytes is a vector of field elements. The one primitive is the *fused linear combination* `out (^)= sum_j
//! coefficients[j] * sources[j]`. Its accumulators stay in registers while it walks over all sources, so each output
//! byte is written once instead of once per source. Encoding, recoding, syndromes, back-substitution and coefficient
//! rows all use this primitive.
//!
//! The functions here run on [`Engine::current`]; the methods of [`Engine`] run on a given engine. Any length and
//! alignment is allowed. Slices that start at a multiple of 64 bytes are fastest.
//!
//! The polynomial x^8 + x^4 + x^3 + x^2 + 1 is that of RFC 8681 section 3.6 (and RFC 5510).

pub mod element;
mod engine;
mod tables;

pub use engine::Engine;

/// Computes `out = sum_j coefficients[j] * sources[j]`, which is all zero if there are no sources.
///
/// # Panics
///
/// If the numbers of coefficients and sources differ, or a source is shorter than `out`. A source may be longer: the
/// bytes beyond `out.len()` are ignored.
pub fn combine(out: &mut [u8], coefficients: &[u8], sources: &[&[u8]]) {
    Engine::current().combine(out, coefficients, sources);
}

/// Computes `out ^= sum_j coefficients[j] * sources[j]`.
///
/// # Panics
///
/// As [`combine`].
pub fn combine_add(out: &mut [u8], coefficients: &[u8], sources: &[&[u8]]) {
    Engine::current().combine_add(out, coefficients, sources);
}

/// Computes `outs[r] = sum_j rows[r][j] * sources[j]`: several outputs in one walk over the sources.
///
/// # Panics
///
/// If the outputs differ in length, or their number differs from that of `rows`, and as [`combine`].
pub fn combine_rows(outs: &mut [&mut [u8]], rows: &[&[u8]], sources: &[&[u8]]) {
    Engine::current().combine_rows(outs, rows, sources);
}

/// Computes `outs[r] ^= sum_j rows[r][j] * sources[j]`.
///
/// # Panics
///
/// As [`combine_rows`].
pub fn combine_rows_add(outs: &mut [&mut [u8]], rows: &[&[u8]], sources: &[&[u8]]) {
    Engine::current().combine_rows_add(outs, rows, sources);
}

/// Computes `out = sum_j sources[j]`, the parity of the sources, which is all zero if there are none.
///
/// # Panics
///
/// If a source is shorter than `out`.
pub fn sum(out: &mut [u8], sources: &[&[u8]]) {
    Engine::current().sum(out, sources);
}

/// Computes `out = coefficient * source`.
///
/// # Panics
///
/// If `source` is shorter than `out`.
pub fn mul(out: &mut [u8], coefficient: u8, source: &[u8]) {
    Engine::current().combine(out, &[coefficient], &[source]);
}

/// Computes `out ^= coefficient * source`.
///
/// # Panics
///
/// If `source` is shorter than `out`.
pub fn mul_add(out: &mut [u8], coefficient: u8, source: &[u8]) {
    Engine::current().combine_add(out, &[coefficient], &[source]);
}

/// Computes `out ^= source`: addition, which in this field is also subtraction.
///
/// # Panics
///
/// If `source` is shorter than `out`.
pub fn xor(out: &mut [u8], source: &[u8]) {
    assert!(source.len() >= out.len(), "a source is shorter than the output");
    for (byte, addend) in out.iter_mut().zip(source) {
        *byte ^= addend;
    }
}

/// Computes `bytes *= coefficient` in place. It is meant for short rows and does not use the vector engines.
pub fn scale(bytes: &mut [u8], coefficient: u8) {
    let row = &tables::PRODUCTS[usize::from(coefficient)];
    for byte in bytes {
        *byte = row[usize::from(*byte)];
    }
}

#[cfg(test)]
mod tests;
