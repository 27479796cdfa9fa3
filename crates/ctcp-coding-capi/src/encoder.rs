//! The encoder, and the coefficients of a key.

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

/// An empty window for `window` symbols of up to `symbol_size_max` bytes; null beyond [`WINDOW_MAX`] and [`SYMBOL_SIZE_MAX`].
#[unsafe(no_mangle)]
pub extern "C" fn ctcp_encoder_new(symbol_size_max: usize, window: usize) -> *mut CtcpEncoder {
    if symbol_size_max > SYMBOL_SIZE_MAX || window > WINDOW_MAX {
        return core::ptr::null_mut();
    }
    give(CtcpEncoder { encoder: Encoder::new(symbol_size_max, window), payload: Vec::new() })
}

/// Frees an encoder; null is nothing.
///
/// # Safety
///
/// The pointer is null or from [`ctcp_encoder_new`], and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_encoder_free(encoder: *mut CtcpEncoder) {
    // SAFETY: the caller's condition.
    unsafe { take_back(encoder) }
}

/// Appends a symbol and writes its index.
///
/// # Safety
///
/// See the crate: a living object, `length` bytes behind `contents`, a place for the index.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_encoder_push(
    encoder: *mut CtcpEncoder,
    contents: *const u8,
    length: usize,
    index: *mut u64,
) -> i32 {
    // SAFETY: the caller's condition.
    let parts = unsafe { (object(encoder), bytes(contents, length)) };
    let (Some(encoder), Some(contents)) = parts else { return status::NULL };
    if index.is_null() {
        return status::NULL;
    }
    match encoder.encoder.push(contents) {
        // SAFETY: the caller's condition.
        Ok(pushed) => code(unsafe { answer(pushed, index) }.map(|()| status::OK)),
        Err(error) => status::of_push(error),
    }
}

/// Writes the combination of `length` symbols from `first` on, with as many coefficients, and how long it is.
///
/// # Safety
///
/// See the crate: a living object, `length` coefficients, `capacity` bytes behind `payload`, a place for the length.
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
    // SAFETY: the caller's condition.
    let parts = unsafe { (object(encoder), bytes(coefficients, usize::from(length))) };
    let (Some(encoder), Some(coefficients)) = parts else { return status::NULL };
    if payload_length.is_null() {
        return status::NULL;
    }
    let Some(range) = SymbolRange::new(first, length) else { return status::OUTSIDE_WINDOW };
    if let Err(error) = encoder.encoder.combine(range, coefficients, &mut encoder.payload) {
        return status::of_combine(error);
    }
    // SAFETY: the caller's condition; the payload is the encoder's own.
    let written = unsafe {
        copy_out(&encoder.payload, payload, capacity)
            .and_then(|()| answer(encoder.payload.len(), payload_length))
    };
    code(written.map(|()| status::OK))
}

/// Forgets the symbols below `index`.
///
/// # Safety
///
/// See the crate: a living object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_encoder_release_before(encoder: *mut CtcpEncoder, index: u64) {
    // SAFETY: the caller's condition.
    if let Some(encoder) = unsafe { object(encoder) } {
        encoder.encoder.release_before(index);
    }
}

/// Writes the `count` coefficients of `key` at `density` (15: none is zero), as RFC 8681 has them.
///
/// # Safety
///
/// So many bytes may be written behind `out`, or it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_coefficients(key: u16, density: u8, out: *mut u8, count: u16) -> i32 {
    let mut row = [0; u16::MAX as usize];
    let row = &mut row[..usize::from(count)];
    coefficients::generate(key, density, row);
    // SAFETY: the caller's condition; the row is our own.
    code(unsafe { copy_out(row, out, usize::from(count)) }.map(|()| status::OK))
}
