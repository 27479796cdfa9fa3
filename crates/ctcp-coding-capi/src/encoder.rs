//! The encoder, and the generator of coefficients.

#![allow(unsafe_code, reason = "exported to another language")]

use crate::memory::{answer, bytes, code, copy_out, give, object, take_back};
use crate::status;
use crate::{SYMBOL_SIZE_MAX, WINDOW_MAX};
use ctcp_coding::{Encoder, SymbolRange, coefficients};

/// A sender's window of symbols.
#[derive(Debug)]
pub struct CtcpEncoder {
    encoder: Encoder,
    payload: Vec<u8>,
}

/// Creates an empty window for `window` symbols of up to `symbol_size_max` bytes. Returns null beyond [`WINDOW_MAX`] or
/// [`SYMBOL_SIZE_MAX`].
#[unsafe(no_mangle)]
pub extern "C" fn ctcp_encoder_new(symbol_size_max: usize, window: usize) -> *mut CtcpEncoder {
    if symbol_size_max > SYMBOL_SIZE_MAX || window > WINDOW_MAX {
        return core::ptr::null_mut();
    }
    give(CtcpEncoder { encoder: Encoder::new(symbol_size_max, window), payload: Vec::new() })
}

/// Frees an encoder. Does nothing if the pointer is null.
///
/// # Safety
///
/// The pointer is null or was returned by [`ctcp_encoder_new`], and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_encoder_free(encoder: *mut CtcpEncoder) {
    // SAFETY: guaranteed by the caller.
    unsafe { take_back(encoder) }
}

/// Appends a symbol and writes its index.
///
/// # Safety
///
/// See the crate documentation: a live object, `length` readable bytes at `contents`, a writable index.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_encoder_push(
    encoder: *mut CtcpEncoder,
    contents: *const u8,
    length: usize,
    index: *mut u64,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let parts = unsafe { (object(encoder), bytes(contents, length)) };
    let (Some(encoder), Some(contents)) = parts else { return status::NULL };
    if index.is_null() {
        return status::NULL;
    }
    match encoder.encoder.push(contents) {
        // SAFETY: guaranteed by the caller.
        Ok(pushed) => code(unsafe { answer(pushed, index) }.map(|()| status::OK)),
        Err(error) => status::of_push(error),
    }
}

/// Writes the combination of the `length` symbols starting at `first`, with `length` coefficients, and its length in
/// bytes.
///
/// # Safety
///
/// See the crate documentation: a live object, `length` coefficients, `capacity` writable bytes at `payload`, a
/// writable length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_encoder_combine(
    encoder: *mut CtcpEncoder,
    first: u64,
    length: u16,
    coefficients: *const u8,
    payload: *mut u8,
    capacity: usize,
    payload_length: *mut usize,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let parts = unsafe { (object(encoder), bytes(coefficients, usize::from(length))) };
    let (Some(encoder), Some(coefficients)) = parts else { return status::NULL };
    if payload_length.is_null() {
        return status::NULL;
    }
    let Some(range) = SymbolRange::new(first, length) else { return status::OUTSIDE_WINDOW };
    if let Err(error) = encoder.encoder.combine(range, coefficients, &mut encoder.payload) {
        return status::of_combine(error);
    }
    // SAFETY: guaranteed by the caller. The source belongs to the encoder and does not overlap the caller's buffer.
    let written = unsafe {
        copy_out(&encoder.payload, payload, capacity)
            .and_then(|()| answer(encoder.payload.len(), payload_length))
    };
    code(written.map(|()| status::OK))
}

/// Drops the symbols below `index`.
///
/// # Safety
///
/// See the crate documentation: a live object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_encoder_release_before(encoder: *mut CtcpEncoder, index: u64) {
    // SAFETY: guaranteed by the caller.
    if let Some(encoder) = unsafe { object(encoder) } {
        encoder.encoder.release_before(index);
    }
}

/// Writes `count` coefficients for `key` at `density` (at 15, none is zero), generated as in RFC 8681.
///
/// # Safety
///
/// `out` is null or points to `count` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_coefficients(key: u16, density: u8, out: *mut u8, count: u16) -> i32 {
    let mut row = [0; u16::MAX as usize];
    let row = &mut row[..usize::from(count)];
    coefficients::generate(key, density, row);
    // SAFETY: guaranteed by the caller. The source is a local array.
    code(unsafe { copy_out(row, out, usize::from(count)) }.map(|()| status::OK))
}
