//! Conversion of pointers from C. This is the only module that relies on the caller's promises.
//!
//! Each unsafe function documents what the caller must guarantee. The exported functions pass these conditions on to C.

#![allow(unsafe_code, reason = "pointers come from another language")]

use crate::status;

/// Returns the object at a pointer, or `None` for null.
///
/// # Safety
///
/// The pointer is null, or it was returned by the matching `_new` function and has not been freed. Nothing else uses
/// the object while the reference is alive.
pub(crate) unsafe fn object<'a, T>(pointer: *mut T) -> Option<&'a mut T> {
    // SAFETY: guaranteed by the caller.
    unsafe { pointer.as_mut() }
}

/// Returns `count` readable bytes. Returns `None` if the pointer is null and `count` is not 0.
///
/// # Safety
///
/// The pointer is null, or `count` bytes can be read from it and are not written while the slice is alive.
pub(crate) unsafe fn bytes<'a>(pointer: *const u8, count: usize) -> Option<&'a [u8]> {
    if pointer.is_null() {
        return (count == 0).then_some(&[]);
    }
    // SAFETY: the pointer is not null; the rest is guaranteed by the caller.
    Some(unsafe { core::slice::from_raw_parts(pointer, count) })
}

/// Returns the error that [`copy_out`] would return, so that all buffers can be checked before the first is written.
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
/// The pointer is null, or `capacity` bytes can be written to it, and they do not overlap `from`.
pub(crate) unsafe fn copy_out(from: &[u8], to: *mut u8, capacity: usize) -> Result<(), i32> {
    fits(from, to, capacity)?;
    if to.is_null() {
        return Ok(());
    }
    // SAFETY: `from` has at most `capacity` bytes and `to` is not null; the rest is guaranteed by the caller.
    unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
    Ok(())
}

/// Writes a result to an output pointer.
///
/// # Safety
///
/// The pointer is null, or a value of type `T` can be written to it.
pub(crate) unsafe fn answer<T>(value: T, to: *mut T) -> Result<(), i32> {
    if to.is_null() {
        return Err(status::NULL);
    }
    // SAFETY: the pointer is not null; the rest is guaranteed by the caller.
    unsafe { to.write(value) };
    Ok(())
}

/// Moves an object to the heap and passes its ownership to the caller.
pub(crate) fn give<T>(object: T) -> *mut T {
    Box::into_raw(Box::new(object))
}

/// Takes back an object and drops it. Does nothing if the pointer is null.
///
/// # Safety
///
/// The pointer is null or was returned by [`give`], and is not used again.
pub(crate) unsafe fn take_back<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: `give` created the pointer from a box, and the caller passes its ownership back.
        drop(unsafe { Box::from_raw(pointer) });
    }
}

/// Returns the status code of a result.
pub(crate) fn code(result: Result<i32, i32>) -> i32 {
    result.unwrap_or_else(|error| error)
}
