//! Matrices over GF(2^8), and their inverses by vector operations on whole rows.

use core::fmt;
use core::ops::Range;
use ctcp_coding::gf256::{Engine, element};

/// Rows start on multiples of it, and are padded with zeros to a multiple of it.
const LINE: usize = 64;

/// Pivots that are eliminated together.
const BLOCK: usize = 64;
/// Smaller matrices fit the fastest cache, and their pivots are eliminated one by one.
const BLOCKED_FROM: usize = 192;
/// Rows of one kernel call: the widest pass.
const GROUP: usize = 4;

/// A matrix with consecutive rows, each on its own cache lines. Its memory is reused when it is reshaped.
#[derive(Debug, Default)]
pub struct Matrix {
    storage: Vec<u8>,
    /// The start of the aligned part of `storage`.
    start: usize,
    rows: usize,
    columns: usize,
    stride: usize,
    /// Scratch of [`Matrix::invert`]: the pivot's row before and after scaling, and its column.
    pivot: [Vec<u8>; 2],
    factors: Vec<u8>,
    swaps: Vec<(usize, usize)>,
    /// More scratch: the block on the diagonal, the rows of its pivots, and their columns.
    blocks: Option<Box<[Self; 3]>>,
}

/// The matrix has no inverse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Singular;

impl Matrix {
    /// Changes its shape, with all elements zero.
    pub fn reshape(&mut self, rows: usize, columns: usize) {
        let stride = columns.next_multiple_of(LINE);
        let needed = rows * stride + LINE - 1;
        if self.storage.len() < needed {
            self.storage.resize(needed, 0);
            // Returns usize::MAX if the alignment is unknown (Miri); unaligned rows work as well.
            let start = self.storage.as_ptr().align_offset(LINE);
            self.start = if start < LINE { start } else { 0 };
        }
        (self.rows, self.columns, self.stride) = (rows, columns, stride);
        self.elements_mut().fill(0);
    }

    /// Returns a row.
    ///
    /// # Panics
    ///
    /// Panics if there is no such row.
    #[must_use]
    pub fn row(&self, row: usize) -> &[u8] {
        assert!(row < self.rows, "no such row");
        &self.storage[self.start + row * self.stride..][..self.columns]
    }

    /// Returns a mutable row.
    ///
    /// # Panics
    ///
    /// Panics if there is no such row.
    pub fn row_mut(&mut self, row: usize) -> &mut [u8] {
        assert!(row < self.rows, "no such row");
        &mut self.storage[self.start + row * self.stride..][..self.columns]
    }

    /// All rows in order, mutable.
    pub fn rows_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let (stride, columns) = (self.stride.max(1), self.columns);
        self.elements_mut().chunks_exact_mut(stride).map(move |row| &mut row[..columns])
    }

    fn elements_mut(&mut self) -> &mut [u8] {
        &mut self.storage[self.start..][..self.rows * self.stride]
    }

    /// Replaces it by its inverse: Gauss-Jordan elimination in place, where columns cleared by pivots are reused for
    /// columns of the inverse. If there is no inverse, its content is undefined afterwards.
    ///
    /// Large matrices are processed in blocks of 64 pivots. The block on the diagonal is inverted first. Then one fused
    /// pass updates every other row, where single pivots would need as many passes over the whole matrix.
    ///
    /// # Panics
    ///
    /// Panics if it is not square.
    pub fn invert(&mut self) -> Result<(), Singular> {
        assert!(self.rows == self.columns, "only a square matrix has an inverse");
        let engine = Engine::current();
        self.swaps.clear();
        for buffer in &mut self.pivot {
            buffer.clear();
            buffer.resize(self.stride, 0);
        }
        let mut done = 0;
        while done < self.columns {
            let size = BLOCK.min(self.columns - done);
            if self.columns < BLOCKED_FROM || !self.eliminate_block(engine, done, size) {
                for column in done..done + size {
                    self.swap_pivot_up(column)?;
                    self.eliminate(engine, column)?;
                }
            }
            done += size;
        }
        // The inverse of a matrix with two rows swapped has those two columns swapped.
        for index in (0..self.swaps.len()).rev() {
            let (a, b) = self.swaps[index];
            self.rows_mut().for_each(|row| row.swap(a, b));
        }
        Ok(())
    }

    /// Eliminates `size` pivots from `first` on at once. Does nothing and returns false if their block on the diagonal
    /// has no inverse.
    fn eliminate_block(&mut self, engine: Engine, first: usize, size: usize) -> bool {
        let columns = first..first + size;
        let mut blocks = core::mem::take(&mut self.blocks);
        let [diagonal, pivots, factors] = blocks.get_or_insert_default().as_mut();
        diagonal.reshape(size, size);
        for (r, row) in diagonal.rows_mut().enumerate() {
            row.copy_from_slice(&self.row(first + r)[columns.clone()]);
        }
        let is_regular = diagonal.invert().is_ok();
        if is_regular {
            pivots.reshape(size, self.columns);
            let sources: Vec<&[u8]> = (0..size).map(|r| self.row(first + r)).collect();
            multiply_rows(engine, pivots, 0..size, diagonal, &sources, Mode::Assign);
            factors.reshape(self.rows, size);
            for (r, factors) in factors.rows_mut().enumerate() {
                let row = &mut self.row_mut(r)[columns.clone()];
                factors.copy_from_slice(row);
                row.fill(0);
            }
            for r in 0..size {
                pivots.row_mut(r)[columns.clone()].copy_from_slice(diagonal.row(r));
            }
            let sources: Vec<&[u8]> = (0..size).map(|r| pivots.row(r)).collect();
            // The pivots' own rows are replaced below.
            multiply_rows(engine, self, 0..first, factors, &sources, Mode::Add);
            multiply_rows(engine, self, first + size..self.rows, factors, &sources, Mode::Add);
            for r in 0..size {
                self.row_mut(first + r).copy_from_slice(pivots.row(r));
            }
        }
        self.blocks = blocks;
        is_regular
    }

    /// Swaps rows so that the element on the diagonal is not zero.
    fn swap_pivot_up(&mut self, column: usize) -> Result<(), Singular> {
        if self.row(column)[column] != 0 {
            return Ok(());
        }
        let other = (column + 1..self.rows).find(|&row| self.row(row)[column] != 0).ok_or(Singular)?;
        let stride = self.stride;
        let (above, below) = self.elements_mut().split_at_mut(other * stride);
        above[column * stride..][..stride].swap_with_slice(&mut below[..stride]);
        self.swaps.push((column, other));
        Ok(())
    }

    /// One step of the elimination: the pivot's column becomes one of the inverse, and the other rows are reduced by
    /// the pivot.
    ///
    /// With the pivot p, its column c, its row r and the unit vector e in its place, that is A - (c - e) (r + e) / p.
    /// No row is a special case, and no column needs clearing before. In this field both signs are the same.
    fn eliminate(&mut self, engine: Engine, pivot: usize) -> Result<(), Singular> {
        let (start, stride) = (self.start, self.stride);
        let elements = &mut self.storage[start..][..self.rows * stride];
        let [row, scaled] = &mut self.pivot;
        row.copy_from_slice(&elements[pivot * stride..][..stride]);
        let inverse = element::inverse(row[pivot]).ok_or(Singular)?;
        row[pivot] ^= 1;
        engine.combine(scaled, &[inverse], &[row]);
        self.factors.clear();
        self.factors.extend(elements[pivot..].iter().step_by(stride));
        self.factors[pivot] ^= 1;
        engine.spread(elements, &self.factors, scaled);
        Ok(())
    }
}

/// Whether products replace a matrix or are added to it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Assign,
    Add,
}

/// Computes the rows `range` of `outs (^)= factors * sources`, a group of them at a time.
fn multiply_rows(
    engine: Engine,
    outs: &mut Matrix,
    range: Range<usize>,
    factors: &Matrix,
    sources: &[&[u8]],
    mode: Mode,
) {
    let mut rows = outs.rows_mut().skip(range.start);
    for start in range.clone().step_by(GROUP) {
        let count = GROUP.min(range.end - start);
        let mut group: [&mut [u8]; GROUP] = core::array::from_fn(|_| rows.next().unwrap_or_default());
        let mut coefficients: [&[u8]; GROUP] = [&[]; GROUP];
        for (r, coefficients) in coefficients[..count].iter_mut().enumerate() {
            *coefficients = factors.row(start + r);
        }
        match mode {
            Mode::Assign => engine.combine_rows(&mut group[..count], &coefficients[..count], sources),
            Mode::Add => engine.combine_rows_add(&mut group[..count], &coefficients[..count], sources),
        }
    }
}

impl fmt::Display for Singular {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the matrix has no inverse")
    }
}

impl core::error::Error for Singular {}
