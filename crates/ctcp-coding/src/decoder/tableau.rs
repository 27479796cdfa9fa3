//! The basis's matrix: a row of bytes for each equation, whose columns are symbols, taken in a circle.
//!
//! ```text
//!   width 64:   column   0   1   2  ...  9   10  ... 63
//!               symbol  64  65  66      73 | 10      63      while the oldest undecoded symbol is 10
//! ```
//!
//! A symbol keeps its column while the window slides on, so no row ever moves. Rows are whole cache lines, one after another,
//! so that one kernel call works on all of them.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// Unit of a row's length, and its alignment: the widest register.
const LINE: usize = 64;
/// Rows beyond those in use, where a new one is worked out.
pub(super) const SCRATCH_ROWS: usize = 2;

/// Rows in use, then [`SCRATCH_ROWS`] others. Which rows are in use, the caller knows.
#[derive(Debug, Default)]
pub(super) struct Tableau {
    storage: Vec<u8>,
    /// Where the aligned part begins in `storage`.
    start: usize,
    /// Bytes of a row: a power of two.
    width: usize,
}

impl Tableau {
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// The column of a symbol.
    #[inline]
    pub(super) fn column(&self, index: u64) -> usize {
        index as usize & self.width.wrapping_sub(1)
    }

    /// The columns of the symbols `[first, end)`, of which there are not more than columns, in order: one or two runs.
    pub(super) fn columns(&self, first: u64, end: u64) -> [Range<usize>; 2] {
        let start = self.column(first);
        let length = end.saturating_sub(first) as usize;
        let unwrapped = length.min(self.width - start);
        [start..start + unwrapped, 0..length - unwrapped]
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        self.storage.capacity()
    }

    /// The same in whole cache lines. Two runs never overlap; where they would, the first is all columns.
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

    /// The first `count` rows together, and the two scratch rows after them.
    #[inline]
    pub(super) fn split(&mut self, count: usize) -> (&mut [u8], &mut [u8], &mut [u8]) {
        let width = self.width;
        let (rows, scratch) = self.storage[self.start..].split_at_mut(count * width);
        let (first, second) = scratch[..SCRATCH_ROWS * width].split_at_mut(width);
        (rows, first, second)
    }

    /// Writes zeros into a column of some rows.
    pub(super) fn clear_column(&mut self, column: usize, rows: &[u32]) {
        for &row in rows {
            self.row_mut(row as usize)[column] = 0;
        }
    }

    /// Column `from` of some rows takes the place of column `to` and leaves zeros.
    pub(super) fn move_column(&mut self, from: usize, to: usize, rows: &[u32]) {
        for &row in rows {
            let row = self.row_mut(row as usize);
            row[to] = core::mem::take(&mut row[from]);
        }
    }

    /// Chooses the width for symbols that span `span`, while no row is in use.
    pub(super) fn set_width(&mut self, span: usize) {
        self.width = span.next_power_of_two().max(LINE);
    }

    /// Makes room for one row more than the first `count`, and for `span` symbols in each; the symbols that `live` says of a row keep
    /// what they hold there.
    pub(super) fn reserve(&mut self, count: usize, span: usize, live: impl Fn(usize) -> Range<u64>) {
        let width = self.width.max(span.next_power_of_two()).max(LINE);
        let needed = (count + 1 + SCRATCH_ROWS) * width;
        if width == self.width && self.storage.len() >= needed + LINE - 1 {
            return;
        }
        let storage = vec![0; needed + needed / 2 + LINE - 1];
        // The answer is usize::MAX where alignment cannot be known (Miri); unaligned rows work as well.
        let start = Some(storage.as_ptr().align_offset(LINE)).filter(|&start| start < LINE).unwrap_or(0);
        let mut grown = Self { storage, start, width };
        for row in 0..count {
            let Range { start: mut first, end } = live(row);
            for old in self.columns(first, end) {
                // The new width is a multiple of the old one, so that what is together stays so.
                let new = grown.column(first);
                grown.row_mut(row)[new..][..old.len()].copy_from_slice(&self.row(row)[old.clone()]);
                first += old.len() as u64;
            }
        }
        *self = grown;
    }
}
