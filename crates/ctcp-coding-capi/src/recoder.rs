//! The recoder.

#![allow(unsafe_code, reason = "exported to another language")]

use crate::SYMBOL_SIZE_MAX;
use crate::memory::{answer, bytes, code, copy_out, fits, give, object, take_back};
use crate::status;
use ctcp_coding::{Recoder, RecoderConfig, SymbolRange};

/// A relay's window of received combinations.
#[derive(Debug)]
pub struct CtcpRecoder {
    recoder: Recoder,
    coefficients: Vec<u8>,
    payload: Vec<u8>,
}

/// A combination made by a relay. The buffers belong to the caller.
#[derive(Debug)]
#[repr(C)]
pub struct CtcpRecoded {
    /// Output: index of the first symbol.
    pub first: u64,
    /// Output: number of symbols and coefficients.
    pub length: u16,
    /// Buffer for `length` coefficients. The size of the window is always enough.
    pub coefficients: *mut u8,
    /// Capacity of `coefficients` in bytes.
    pub coefficient_capacity: usize,
    /// Buffer for the payload. The size of a symbol is always enough.
    pub payload: *mut u8,
    /// Capacity of `payload` in bytes.
    pub payload_capacity: usize,
    /// Output: length of the payload in bytes.
    pub payload_length: usize,
}

/// Creates a relay that keeps the last `window` symbols (at most 4095) of up to `symbol_size_max` bytes. Returns null
/// beyond [`SYMBOL_SIZE_MAX`].
#[unsafe(no_mangle)]
pub extern "C" fn ctcp_recoder_new(symbol_size_max: usize, window: u16) -> *mut CtcpRecoder {
    if symbol_size_max > SYMBOL_SIZE_MAX {
        return core::ptr::null_mut();
    }
    let recoder = Recoder::new(RecoderConfig { symbol_size_max, window });
    give(CtcpRecoder { recoder, coefficients: Vec::new(), payload: Vec::new() })
}

/// Frees a recoder. Does nothing if the pointer is null.
///
/// # Safety
///
/// The pointer is null or was returned by [`ctcp_recoder_new`], and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_recoder_free(recoder: *mut CtcpRecoder) {
    // SAFETY: guaranteed by the caller.
    unsafe { take_back(recoder) }
}

/// Handles a combination of the `length` symbols starting at `first`, with `length` coefficients. A source symbol is a
/// combination of length 1.
///
/// # Safety
///
/// See the crate documentation: a live object, `length` coefficients, `payload_length` readable bytes at `payload`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_recoder_handle_combination(
    recoder: *mut CtcpRecoder,
    first: u64,
    length: u16,
    coefficients: *const u8,
    payload: *const u8,
    payload_length: usize,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let parts = unsafe {
        (object(recoder), bytes(coefficients, usize::from(length)), bytes(payload, payload_length))
    };
    let (Some(recoder), Some(coefficients), Some(payload)) = parts else { return status::NULL };
    let Some(range) = SymbolRange::new(first, length) else { return status::OUTSIDE_WINDOW };
    status::of_arrival(recoder.recoder.handle_combination(range, coefficients, payload))
}

/// Reports that the sender no longer combines symbols below `index`.
///
/// # Safety
///
/// See the crate documentation: a live object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_recoder_release_before(recoder: *mut CtcpRecoder, index: u64) {
    // SAFETY: guaranteed by the caller.
    if let Some(recoder) = unsafe { object(recoder) } {
        recoder.recoder.release_before(index);
    }
}

/// Returns the number of degrees of freedom held, which is the number of weights of a combination, or 0 for null.
///
/// # Safety
///
/// See the crate documentation: a live object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_recoder_rank(recoder: *mut CtcpRecoder) -> usize {
    // SAFETY: guaranteed by the caller.
    unsafe { object(recoder) }.map_or(0, |recoder| recoder.recoder.rank())
}

/// Writes a combination of everything held, with `count` random weights, not all zero.
///
/// # Safety
///
/// See the crate documentation: a live object, `count` weights, and a `recoded` whose pointers have the stated
/// capacities.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_recoder_combine(
    recoder: *mut CtcpRecoder,
    weights: *const u8,
    count: usize,
    recoded: *mut CtcpRecoded,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let parts = unsafe { (object(recoder), bytes(weights, count), object(recoded)) };
    let (Some(recoder), Some(weights), Some(recoded)) = parts else { return status::NULL };
    let CtcpRecoder { recoder, coefficients, payload } = recoder;
    let Some(span) = recoder.span() else { return status::NOTHING };
    let range = match recoder.combine(span, weights, coefficients, payload) {
        Ok(range) => range,
        Err(error) => return status::of_recode(error),
    };
    let have_room = fits(coefficients, recoded.coefficients, recoded.coefficient_capacity)
        .and_then(|()| fits(payload, recoded.payload, recoded.payload_capacity));
    if let Err(error) = have_room {
        return error;
    }
    // SAFETY: guaranteed by the caller. The sources belong to the recoder and do not overlap the caller's buffers.
    let written = unsafe {
        copy_out(coefficients, recoded.coefficients, recoded.coefficient_capacity)
            .and_then(|()| copy_out(payload, recoded.payload, recoded.payload_capacity))
            .and_then(|()| answer(payload.len(), &raw mut recoded.payload_length))
    };
    recoded.first = range.first();
    recoded.length = range.length();
    code(written.map(|()| status::OK))
}
