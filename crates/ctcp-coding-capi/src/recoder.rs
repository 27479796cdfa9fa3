//! The recoder.

#![allow(unsafe_code, reason = "exported to another language")]

use crate::SYMBOL_SIZE_MAX;
use crate::memory::{answer, bytes, code, copy_out, fits, give, object, take_back};
use crate::status;
use ctcp_coding::{Recoder, RecoderConfig, SymbolRange};

/// A relay's window of what it heard.
#[derive(Debug)]
pub struct CtcpRecoder {
    recoder: Recoder,
    coefficients: Vec<u8>,
    payload: Vec<u8>,
}

/// A combination that a relay made. The buffers are the caller's.
#[derive(Debug)]
#[repr(C)]
pub struct CtcpRecoded {
    /// Index of the first symbol. Written.
    pub first: u64,
    /// Number of symbols and coefficients. Written.
    pub length: u16,
    /// Where `length` coefficients go; as many as the window always suffice.
    pub coefficients: *mut u8,
    /// How many have room there.
    pub coefficient_capacity: usize,
    /// Where the payload goes; as many bytes as a symbol has always suffice.
    pub payload: *mut u8,
    /// How many bytes have room there.
    pub payload_capacity: usize,
    /// Bytes of the payload. Written.
    pub payload_length: usize,
}

/// A relay that keeps the last `window` symbols (at most 4095) of up to `symbol_size_max` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn ctcp_recoder_new(symbol_size_max: usize, window: u16) -> *mut CtcpRecoder {
    if symbol_size_max > SYMBOL_SIZE_MAX {
        return core::ptr::null_mut();
    }
    let recoder = Recoder::new(RecoderConfig { symbol_size_max, window });
    give(CtcpRecoder { recoder, coefficients: Vec::new(), payload: Vec::new() })
}

/// Frees a recoder; null is nothing.
///
/// # Safety
///
/// The pointer is null or from [`ctcp_recoder_new`], and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_recoder_free(recoder: *mut CtcpRecoder) {
    // SAFETY: the caller's condition.
    unsafe { take_back(recoder) }
}

/// Takes a combination of `length` symbols from `first` on, with as many coefficients; a source symbol is one of length 1.
///
/// # Safety
///
/// See the crate: a living object, `length` coefficients, `payload_length` bytes behind `payload`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_recoder_handle_combination(
    recoder: *mut CtcpRecoder,
    first: u64,
    length: u16,
    coefficients: *const u8,
    payload: *const u8,
    payload_length: usize,
) -> i32 {
    // SAFETY: the caller's condition.
    let parts = unsafe {
        (object(recoder), bytes(coefficients, usize::from(length)), bytes(payload, payload_length))
    };
    let (Some(recoder), Some(coefficients), Some(payload)) = parts else { return status::NULL };
    let Some(range) = SymbolRange::new(first, length) else { return status::OUTSIDE_WINDOW };
    status::of_arrival(recoder.recoder.handle_combination(range, coefficients, payload))
}

/// Tells that the sender no longer combines symbols below `index`.
///
/// # Safety
///
/// See the crate: a living object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_recoder_release_before(recoder: *mut CtcpRecoder, index: u64) {
    // SAFETY: the caller's condition.
    if let Some(recoder) = unsafe { object(recoder) } {
        recoder.recoder.release_before(index);
    }
}

/// Degrees of freedom held: so many weights make a combination; 0 for null.
///
/// # Safety
///
/// See the crate: a living object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_recoder_rank(recoder: *mut CtcpRecoder) -> usize {
    // SAFETY: the caller's condition.
    unsafe { object(recoder) }.map_or(0, |recoder| recoder.recoder.rank())
}

/// Writes a combination of all that is held, with `count` random weights, of which not all may be zero.
///
/// # Safety
///
/// See the crate: a living object, `count` weights, and `recoded` with as much room behind its pointers as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctcp_recoder_combine(
    recoder: *mut CtcpRecoder,
    weights: *const u8,
    count: usize,
    recoded: *mut CtcpRecoded,
) -> i32 {
    // SAFETY: the caller's condition.
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
    // SAFETY: the caller's condition; coefficients and payload are the recoder's own.
    let written = unsafe {
        copy_out(coefficients, recoded.coefficients, recoded.coefficient_capacity)
            .and_then(|()| copy_out(payload, recoded.payload, recoded.payload_capacity))
            .and_then(|()| answer(payload.len(), &raw mut recoded.payload_length))
    };
    recoded.first = range.first();
    recoded.length = range.length();
    code(written.map(|()| status::OK))
}
