//! The matrix of the basis: one row of bytes per equation. Columns are symbols, used as a ring.
//!
//! ```text
//!   width 64:   column   0   1   2  ...  9   10  ... 63
//!               symbol  64  65  66      73 | 10      63      while the oldest undecoded symbol is 10
//! ```
//!
//! A symbol keeps its column while the window slides, so rows never move. Rows are contiguous and made of whole cache
//! lines, so that one kernel call can work on all of them.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// Unit and alignment of a row: the widest register.
const LINE: usize = 64;
/// Additional rows in which a new row is computed.
pub(super) const SCRATCH_ROWS: usize = 2;

/// Rows in use, followed by [`SCRATCH_ROWS`] scratch rows. The caller keeps track of which rows are in use.
#[derive(Debug, Default)]
pub(super) struct Tableau {
    storage: Vec<u8>,
    /// Offset of the aligned part of `storage`.
    start: usize,
    /// Bytes per row, a power of two.
    width: usize,
}

impl Tableau {
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Returns the column of a symbol.
    #[inline]
    pub(super) fn column(&self, index: u64) -> usize {
        index as usize & self.width.wrapping_sub(1)
    }

    /// Returns the columns of the symbols `[first, end)`, in order, as one or two runs. There must be at most `width`
    /// symbols.
    pub(super) fn columns(&self, first: u64, end: u64) -> [Range<usize>; 2] {
        let start = self.column(first);
        let length = end.saturating_sub(first) as usize;
        let unwrapped = length.min(self.width - start);
        [start..start + unwrapped, 0..length - unwrapped]
    }

    /// Returns the bytes of memory in use.
    pub(super) fn memory(&self) -> usize {
        self.storage.capacity()
    }

    /// Returns the same columns rounded to whole cache lines. If the two runs would overlap, the first covers all
    /// columns.
    pub(super) fn lines(&self, first: u64, end: u64) -> [Range<usize>; 2] {
        let [near, far] = self.columns(first, end);
        let near = near.start / LINE * LINE..near.end.next_multiple_of(LINE);
        let far = far.start..far.end.next_multiple_of(LINE);
        if far.end > near.start { [0..self.width, 0..0] } else { [near, far] }
    }

    #[inline]
    pub(super) fn row(&self, row: usize) -> &[u8] {
        &self.storage[self.start + row * self.width..][..self.width]
    }

    #[inline]
    pub(super) fn row_mut(&mut self, row: usize) -> &mut [u8] {
        &mut self.storage[self.start + row * self.width..][..self.width]
    }

    /// Returns the first `count` rows together, and the two scratch rows after them.
    #[inline]
    pub(super) fn split(&mut self, count: usize) -> (&mut [u8], &mut [u8], &mut [u8]) {
        let width = self.width;
        let (rows, scratch) = self.storage[self.start..].split_at_mut(count * width);
        let (first, second) = scratch[..SCRATCH_ROWS * width].split_at_mut(width);
        (rows, first, second)
    }

    /// Clears a column of some rows.
    pub(super) fn clear_column(&mut self, column: usize, rows: &[u32]) {
        for &row in rows {
            self.row_mut(row as usize)[column] = 0;
        }
    }

    /// Moves column `from` of some rows to column `to`, and clears column `from`.
    pub(super) fn move_column(&mut self, from: usize, to: usize, rows: &[u32]) {
        for &row in rows {
            let row = self.row_mut(row as usize);
            row[to] = core::mem::take(&mut row[from]);
        }
    }

    /// Sets the width for symbols that span `span`. No row may be in use.
    pub(super) fn set_width(&mut self, span: usize) {
        self.width = span.next_power_of_two().max(LINE);
    }

    /// Makes room for one row more than the first `count`, and for `span` symbols in each row. Each row keeps its
    /// elements for the symbols that `live` returns.
    pub(super) fn reserve(&mut self, count: usize, span: usize, live: impl Fn(usize) -> Range<u64>) {
        let width = self.width.max(span.next_power_of_two()).max(LINE);
        let needed = (count + 1 + SCRATCH_ROWS) * width;
        if width == self.width && self.storage.len() >= needed + LINE - 1 {
            return;
        }
        let storage = vec![0; needed + needed / 2 + LINE - 1];
        // `align_offset` returns usize::MAX if the alignment is unknown (Miri); unaligned rows work as well.
        let start = Some(storage.as_ptr().align_offset(LINE)).filter(|&start| start < LINE).unwrap_or(0);
        let mut grown = Self { storage, start, width };
        for row in 0..count {
            let Range { start: mut first, end } = live(row);
            for old in self.columns(first, end) {
                // The new width is a multiple of the old one, so each run stays contiguous.
                let new = grown.column(first);
                grown.row_mut(row)[new..][..old.len()].copy_from_slice(&self.row(row)[old.clone()]);
                first += old.len() as u64;
            }
        }
        *self = grown;
    }
}
