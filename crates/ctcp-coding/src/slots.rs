//! Buffers for symbol contents: 64-byte aligned, zero padded, and reused.
//!
//! Invariant: every byte of a slot beyond its `used` length is zero. A kernel may therefore read any slot up to the
//! stride, and symbols of different lengths combine as if they were zero padded.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

/// Alignment and length unit of slots: a cache line, and the widest vector register.
const LINE: usize = 64;

/// The buffer of one symbol. The default value holds none.
///
/// It is a single word, because slots move at every arrival. If a value has several words that are written one by one
/// and read together, the processor waits for all earlier stores, including those of the symbol's contents.
#[derive(Debug, Default)]
pub(crate) struct Slot(Option<Box<Buffer>>);

#[derive(Debug)]
struct Buffer {
    storage: Vec<u8>,
    /// Offset of the aligned part of `storage`.
    start: usize,
    used: usize,
}

impl Slot {
    fn with_stride(stride: usize) -> Self {
        let storage = vec![0; stride + LINE - 1];
        // `align_offset` returns usize::MAX if the alignment is unknown (Miri); unaligned slots work as well.
        let start = Some(storage.as_ptr().align_offset(LINE)).filter(|&start| start < LINE).unwrap_or(0);
        Self(Some(Box::new(Buffer { storage, start, used: 0 })))
    }

    /// Returns all `stride` bytes, which are zero beyond [`Slot::used`].
    pub(crate) fn padded(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |buffer| &buffer.storage[buffer.start..][..buffer.stride()])
    }

    /// Returns the number of leading bytes that may be non-zero.
    pub(crate) fn used(&self) -> usize {
        self.0.as_ref().map_or(0, |buffer| buffer.used)
    }

    /// Returns whether it holds no buffer, as the default value.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Replaces the contents.
    pub(crate) fn write(&mut self, contents: &[u8]) {
        self.buffer(contents.len()).copy_from_slice(contents);
    }

    /// Returns the first `length` bytes, all of which the caller must overwrite. The others become zero.
    pub(crate) fn buffer(&mut self, length: usize) -> &mut [u8] {
        let Some(buffer) = &mut self.0 else { return &mut [] };
        let bytes = &mut buffer.storage[buffer.start..];
        if length < buffer.used {
            bytes[length..buffer.used].fill(0);
        }
        buffer.used = length;
        &mut bytes[..length]
    }
}

impl Buffer {
    fn stride(&self) -> usize {
        self.storage.len() - (LINE - 1)
    }
}

/// The slots not in use. It allocates only if more slots are taken at a time than ever before.
#[derive(Debug)]
pub(crate) struct SlotPool {
    free: Vec<Slot>,
    stride: usize,
    /// Number of slots that exist, in use or not.
    slots: usize,
}

impl SlotPool {
    pub(crate) fn new(symbol_size_max: usize) -> Self {
        Self { free: Vec::new(), stride: round_up_to_line(symbol_size_max), slots: 0 }
    }

    pub(crate) fn take(&mut self) -> Slot {
        self.free.pop().unwrap_or_else(|| {
            self.slots += 1;
            Slot::with_stride(self.stride)
        })
    }

    pub(crate) fn give_back(&mut self, slot: Slot) {
        if !slot.is_empty() {
            self.free.push(slot);
        }
    }

    /// Frees all slots not in use.
    pub(crate) fn shrink(&mut self) {
        self.trim(0);
        self.free = Vec::new();
    }

    /// Frees slots not in use until `keep` of them are left.
    pub(crate) fn trim(&mut self, keep: usize) {
        self.slots -= self.free.len().saturating_sub(keep);
        self.free.truncate(keep);
    }

    /// Returns the bytes used by all slots, in use or not.
    pub(crate) fn memory(&self) -> usize {
        self.slots.saturating_mul(self.stride.saturating_add(LINE))
    }
}

/// Returns the length a kernel works on for `length` bytes. Whole lines leave no tail to handle separately.
pub(crate) fn round_up_to_line(length: usize) -> usize {
    // An overflow leads to a failed allocation, not to a short slot.
    length.checked_next_multiple_of(LINE).unwrap_or(usize::MAX - LINE)
}

/// Returns the length without trailing zeros.
pub(crate) fn trimmed_length(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shorter_contents_leave_no_trace_of_longer_ones() {
        let mut pool = SlotPool::new(100);
        let mut slot = pool.take();
        slot.write(&[7; 100]);
        pool.give_back(slot);
        let mut slot = pool.take();
        slot.write(&[9; 3]);
        assert_eq!(slot.padded().len(), 128);
        assert_eq!(&slot.padded()[..3], [9; 3]);
        assert!(slot.padded()[3..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn slots_are_aligned_to_cache_lines() {
        let mut pool = SlotPool::new(1344);
        for _ in 0..10 {
            let slot = pool.take();
            assert!(cfg!(miri) || slot.padded().as_ptr().align_offset(LINE) == 0);
        }
    }
}
