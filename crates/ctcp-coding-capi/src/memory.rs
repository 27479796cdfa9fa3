//! Pointers from C, turned into what Rust can use: the one place that trusts the caller.
//!
//! Every function says what the caller must promise; the exported functions pass the promise on to C.

#![allow(unsafe_code, reason = "pointers come from another language")]

use crate::status;

/// The object behind a pointer.
///
/// # Safety
///
/// The pointer is null, or came from the function that makes such objects and was not freed, and nobody else uses the object
/// until the reference is gone.
pub(crate) unsafe fn object<'a, T>(pointer: *mut T) -> Option<&'a mut T> {
    // SAFETY: the caller's condition.
    unsafe { pointer.as_mut() }
}

/// `count` bytes to read; null only if there are none.
///
/// # Safety
///
/// The pointer is null, or so many bytes may be read behind it, which nobody writes until the slice is gone.
pub(crate) unsafe fn bytes<'a>(pointer: *const u8, count: usize) -> Option<&'a [u8]> {
    if pointer.is_null() {
        return (count == 0).then_some(&[]);
    }
    // SAFETY: it is not null, and the rest is the caller's condition.
    Some(unsafe { core::slice::from_raw_parts(pointer, count) })
}

/// Whether [`copy_out`] will do: to be asked for all buffers before the first is written.
pub(crate) fn fits(from: &[u8], to: *mut u8, capacity: usize) -> Result<(), i32> {
    if from.len() > capacity {
        return Err(status::BUFFER);
    }
    if to.is_null() && !from.is_empty() { Err(status::NULL) } else { Ok(()) }
}

/// Copies `from` to a buffer of `capacity` bytes.
///
/// # Safety
///
/// The pointer is null, or so many bytes may be written behind it, which are not those of `from`.
pub(crate) unsafe fn copy_out(from: &[u8], to: *mut u8, capacity: usize) -> Result<(), i32> {
    fits(from, to, capacity)?;
    if to.is_null() {
        return Ok(());
    }
    // SAFETY: the source is a slice of at most `capacity` bytes, the rest is the caller's condition.
    unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
    Ok(())
}

/// Writes an answer.
///
/// # Safety
///
/// The pointer is null, or a value of its type may be written there.
pub(crate) unsafe fn answer<T>(value: T, to: *mut T) -> Result<(), i32> {
    if to.is_null() {
        return Err(status::NULL);
    }
    // SAFETY: it is not null, and the rest is the caller's condition.
    unsafe { to.write(value) };
    Ok(())
}

/// Gives an object to the caller.
pub(crate) fn give<T>(object: T) -> *mut T {
    Box::into_raw(Box::new(object))
}

/// Takes an object back and drops it; null is nothing.
///
/// # Safety
///
/// The pointer is null or came from [`give`], and is not used again.
pub(crate) unsafe fn take_back<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: `give` made it of a box, and the caller gives it away.
        drop(unsafe { Box::from_raw(pointer) });
    }
}

/// The number that a function returns.
pub(crate) fn code(result: Result<i32, i32>) -> i32 {
    result.unwrap_or_else(|error| error)
}
