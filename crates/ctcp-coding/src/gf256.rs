//! Arithmetic in GF(2^8) with the polynomial 0x11D, on single elements and on whole slices.
//!
//! A slice of bytes is a vector of field elements. The one primitive is the *fused linear
//! combination* `out (^)= sum_j coefficients[j] * sources[j]`: its accumulators stay in registers
//! while it walks over all sources, so each output byte is written once instead of once a source.
//! Encoding, recoding, syndromes, back-substitution and coefficient rows are all this primitive.
//!
//! The functions here run on [`Engine::current`]; the methods of [`Engine`] run on a given one.
//! Lengths and alignments are free. Slices that start on a multiple of 64 bytes are fastest.
//!
//! The polynomial x^8 + x^4 + x^3 + x^2 + 1 is that of RFC 8681 section 3.6 (and RFC 5510).

pub mod element;
mod engine;
mod tables;

pub use engine::Engine;

/// `out = sum_j coefficients[j] * sources[j]`, all zero without sources.
///
/// # Panics
///
/// If the counts of coefficients and sources differ, or a source is shorter than `out`.
/// A source may be longer: the bytes beyond `out.len()` are ignored.
pub fn combine(out: &mut [u8], coefficients: &[u8], sources: &[&[u8]]) {
    Engine::current().combine(out, coefficients, sources);
}

/// `out ^= sum_j coefficients[j] * sources[j]`.
///
/// # Panics
///
/// As [`combine`].
pub fn combine_add(out: &mut [u8], coefficients: &[u8], sources: &[&[u8]]) {
    Engine::current().combine_add(out, coefficients, sources);
}

/// `outs[r] = sum_j rows[r][j] * sources[j]`: several outputs in one walk over the sources.
///
/// # Panics
///
/// If the outputs differ in length or in number from `rows`, otherwise as [`combine`].
pub fn combine_rows(outs: &mut [&mut [u8]], rows: &[&[u8]], sources: &[&[u8]]) {
    Engine::current().combine_rows(outs, rows, sources);
}

/// `outs[r] ^= sum_j rows[r][j] * sources[j]`.
///
/// # Panics
///
/// As [`combine_rows`].
pub fn combine_rows_add(outs: &mut [&mut [u8]], rows: &[&[u8]], sources: &[&[u8]]) {
    Engine::current().combine_rows_add(outs, rows, sources);
}

/// `out = sum_j sources[j]`: the parity of the sources, all zero without any.
///
/// # Panics
///
/// If a source is shorter than `out`.
pub fn sum(out: &mut [u8], sources: &[&[u8]]) {
    Engine::current().sum(out, sources);
}

/// `out = coefficient * source`.
///
/// # Panics
///
/// If `source` is shorter than `out`.
pub fn mul(out: &mut [u8], coefficient: u8, source: &[u8]) {
    Engine::current().combine(out, &[coefficient], &[source]);
}

/// `out ^= coefficient * source`.
///
/// # Panics
///
/// If `source` is shorter than `out`.
pub fn mul_add(out: &mut [u8], coefficient: u8, source: &[u8]) {
    Engine::current().combine_add(out, &[coefficient], &[source]);
}

/// `out ^= source`: addition, which in this field is also subtraction.
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

/// `bytes *= coefficient` in place. For short rows: it does not use the vector engines.
pub fn scale(bytes: &mut [u8], coefficient: u8) {
    let row = &tables::PRODUCTS[usize::from(coefficient)];
    for byte in bytes {
        *byte = row[usize::from(*byte)];
    }
}

#[cfg(test)]
mod tests;
