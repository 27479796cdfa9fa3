//! The decoder.

#![allow(unsafe_code, reason = "exported to another language")]

use crate::memory::{answer, bytes, code, copy_out, give, object, take_back};
use crate::status;
use crate::{SYMBOL_SIZE_MAX, WINDOW_MAX};
use ctcp_coding::{Decoder, DecoderConfig, SymbolRange};

/// A receiver's window of symbols and combinations.
#[derive(Debug)]
pub struct CtcpDecoder {
    decoder: Decoder,
}

/// A decoder for a sender with such a window of symbols of up to `symbol_size_max` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn ctcp_decoder_new(symbol_size_max: usize, window: usize) -> *mut CtcpDecoder {
    if symbol_size_max > SYMBOL_SIZE_MAX || window > WINDOW_MAX {
        return core::ptr::null_mut();
    }
    let decoder = Decoder::new(DecoderConfig::new(symbol_size_max, window));
    give(CtcpDecoder { decoder })
}

/// Frees a decoder; null is nothing.
///
/// # Safety
///
/// The pointer is null or from [`ctcp_decoder_new`], and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_decoder_free(decoder: *mut CtcpDecoder) {
    // SAFETY: the caller's condition.
    unsafe { take_back(decoder) }
}

/// Takes the source symbol `index`.
///
/// # Safety
///
/// See the crate: a living object, `length` bytes behind `contents`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_decoder_handle_source(
    decoder: *mut CtcpDecoder,
    index: u64,
    contents: *const u8,
    length: usize,
) -> i32 {
    // SAFETY: the caller's condition.
    let parts = unsafe { (object(decoder), bytes(contents, length)) };
    let (Some(decoder), Some(contents)) = parts else { return status::NULL };
    status::of_arrival(decoder.decoder.handle_source(index, contents))
}

/// Takes a combination of `length` symbols from `first` on, with as many coefficients.
///
/// # Safety
///
/// See the crate: a living object, `length` coefficients, `payload_length` bytes behind `payload`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_decoder_handle_combination(
    decoder: *mut CtcpDecoder,
    first: u64,
    length: u16,
    coefficients: *const u8,
    payload: *const u8,
    payload_length: usize,
) -> i32 {
    // SAFETY: the caller's condition.
    let parts = unsafe {
        (object(decoder), bytes(coefficients, usize::from(length)), bytes(payload, payload_length))
    };
    let (Some(decoder), Some(coefficients), Some(payload)) = parts else { return status::NULL };
    let Some(range) = SymbolRange::new(first, length) else { return status::OUTSIDE_WINDOW };
    status::of_arrival(decoder.decoder.handle_combination(range, coefficients, payload))
}

/// Hands out the next symbol that has become known: its index, and `symbol_size_max` bytes. Returns 1, 0 when there is none,
/// or what was wrong, in which case the symbol waits for the next call.
///
/// # Safety
///
/// See the crate: a living object, a place for the index, `capacity` bytes behind `contents`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_decoder_poll(
    decoder: *mut CtcpDecoder,
    index: *mut u64,
    contents: *mut u8,
    capacity: usize,
) -> i32 {
    // SAFETY: the caller's condition.
    let Some(CtcpDecoder { decoder }) = (unsafe { object(decoder) }) else { return status::NULL };
    // Checked before the symbol counts as handed out.
    let size = decoder.config().symbol_size_max;
    if index.is_null() || (contents.is_null() && size > 0) {
        return status::NULL;
    }
    if capacity < size {
        return status::BUFFER;
    }
    let Some((known, symbol)) = decoder.poll_decoded() else { return status::OK };
    // SAFETY: the caller's condition; the symbol is the decoder's own.
    let written = unsafe { copy_out(symbol, contents, capacity).and_then(|()| answer(known, index)) };
    code(written.map(|()| status::INNOVATIVE))
}

/// Tells that the sender no longer combines symbols below `index`.
///
/// # Safety
///
/// See the crate: a living object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_decoder_release_before(decoder: *mut CtcpDecoder, index: u64) {
    // SAFETY: the caller's condition.
    if let Some(decoder) = unsafe { object(decoder) } {
        decoder.decoder.release_before(index);
    }
}

/// Smallest index that is neither known nor leads an equation; 0 for null.
///
/// # Safety
///
/// See the crate: a living object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_decoder_oldest_unseen(decoder: *mut CtcpDecoder) -> u64 {
    // SAFETY: the caller's condition.
    unsafe { object(decoder) }.map_or(0, |decoder| decoder.decoder.oldest_unseen())
}

/// Smallest index that is not known; 0 for null.
///
/// # Safety
///
/// See the crate: a living object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_decoder_oldest_undecoded(decoder: *mut CtcpDecoder) -> u64 {
    // SAFETY: the caller's condition.
    unsafe { object(decoder) }.map_or(0, |decoder| decoder.decoder.oldest_undecoded())
}
