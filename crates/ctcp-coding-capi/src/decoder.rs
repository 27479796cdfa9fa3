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

/// Creates a decoder for a sender whose window holds `window` symbols of up to `symbol_size_max` bytes. Returns null
/// beyond [`WINDOW_MAX`] or [`SYMBOL_SIZE_MAX`].
#[unsafe(no_mangle)]
pub extern "C" fn ctcp_decoder_new(symbol_size_max: usize, window: usize) -> *mut CtcpDecoder {
    if symbol_size_max > SYMBOL_SIZE_MAX || window > WINDOW_MAX {
        return core::ptr::null_mut();
    }
    let decoder = Decoder::new(DecoderConfig::new(symbol_size_max, window));
    give(CtcpDecoder { decoder })
}

/// Frees a decoder. Does nothing if the pointer is null.
///
/// # Safety
///
/// The pointer is null or was returned by [`ctcp_decoder_new`], and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_decoder_free(decoder: *mut CtcpDecoder) {
    // SAFETY: guaranteed by the caller.
    unsafe { take_back(decoder) }
}

/// Handles the source symbol `index`.
///
/// # Safety
///
/// See the crate documentation: a live object, `length` readable bytes at `contents`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_decoder_handle_source(
    decoder: *mut CtcpDecoder,
    index: u64,
    contents: *const u8,
    length: usize,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let parts = unsafe { (object(decoder), bytes(contents, length)) };
    let (Some(decoder), Some(contents)) = parts else { return status::NULL };
    status::of_arrival(decoder.decoder.handle_source(index, contents))
}

/// Handles a combination of the `length` symbols starting at `first`, with `length` coefficients.
///
/// # Safety
///
/// See the crate documentation: a live object, `length` coefficients, `payload_length` readable bytes at `payload`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_decoder_handle_combination(
    decoder: *mut CtcpDecoder,
    first: u64,
    length: u16,
    coefficients: *const u8,
    payload: *const u8,
    payload_length: usize,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let parts = unsafe {
        (object(decoder), bytes(coefficients, usize::from(length)), bytes(payload, payload_length))
    };
    let (Some(decoder), Some(coefficients), Some(payload)) = parts else { return status::NULL };
    let Some(range) = SymbolRange::new(first, length) else { return status::OUTSIDE_WINDOW };
    status::of_arrival(decoder.decoder.handle_combination(range, coefficients, payload))
}

/// Returns the next symbol that has become known: writes its index and `symbol_size_max` bytes.
///
/// The result is 1 for a symbol, 0 if there is none, and negative for an error. After an error the symbol stays
/// available.
///
/// # Safety
///
/// See the crate documentation: a live object, a writable index, `capacity` writable bytes at `contents`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_decoder_poll(
    decoder: *mut CtcpDecoder,
    index: *mut u64,
    contents: *mut u8,
    capacity: usize,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let Some(CtcpDecoder { decoder }) = (unsafe { object(decoder) }) else { return status::NULL };
    // Check this first: `poll_decoded` removes the symbol from the queue.
    let size = decoder.config().symbol_size_max;
    if index.is_null() || (contents.is_null() && size > 0) {
        return status::NULL;
    }
    if capacity < size {
        return status::BUFFER;
    }
    let Some((known, symbol)) = decoder.poll_decoded() else { return status::OK };
    // SAFETY: guaranteed by the caller. The symbol belongs to the decoder and does not overlap the caller's buffer.
    let written = unsafe { copy_out(symbol, contents, capacity).and_then(|()| answer(known, index)) };
    code(written.map(|()| status::INNOVATIVE))
}

/// Reports that the sender no longer combines symbols below `index`.
///
/// # Safety
///
/// See the crate documentation: a live object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_decoder_release_before(decoder: *mut CtcpDecoder, index: u64) {
    // SAFETY: guaranteed by the caller.
    if let Some(decoder) = unsafe { object(decoder) } {
        decoder.decoder.release_before(index);
    }
}

/// Returns the smallest index that is neither known nor the leading symbol of an equation, or 0 for null.
///
/// # Safety
///
/// See the crate documentation: a live object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_decoder_oldest_unseen(decoder: *mut CtcpDecoder) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe { object(decoder) }.map_or(0, |decoder| decoder.decoder.oldest_unseen())
}

/// Returns the smallest index that is not known, or 0 for null.
///
/// # Safety
///
/// See the crate documentation: a live object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_decoder_oldest_undecoded(decoder: *mut CtcpDecoder) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe { object(decoder) }.map_or(0, |decoder| decoder.decoder.oldest_undecoded())
}
