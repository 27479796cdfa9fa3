//! The input of a kernel. All lengths are checked once, so that the kernel's loops need no checks.
//!
//! Invariant: all outputs have the same length, every source has at least that length, and every row has one
//! coefficient per source. The fields are private to this file, so no other code can break it.

#![allow(unsafe_code, reason = "loads whose bounds were checked when the value was made")]

/// Whether a sweep replaces its outputs or adds to them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Assign,
    Add,
}

/// Slices of at least `length` bytes each.
#[derive(Clone, Copy)]
pub(super) struct Sources<'s> {
    slices: &'s [&'s [u8]],
    length: usize,
}

impl<'s> Sources<'s> {
    /// # Panics
    ///
    /// If a slice is shorter than `length`.
    #[inline]
    pub(super) fn new(slices: &'s [&'s [u8]], length: usize) -> Self {
        // Branch-free over the slices.
        let shortest = slices.iter().fold(usize::MAX, |shortest, slice| shortest.min(slice.len()));
        assert!(shortest >= length, "a source is shorter than the output");
        Self { slices, length }
    }

    #[inline]
    pub(super) fn count(&self) -> usize {
        self.slices.len()
    }

    /// Returns the minimum length of the slices.
    #[inline]
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Returns the slices, cut to the common length.
    pub(super) fn iter(&self) -> impl Iterator<Item = &'s [u8]> {
        self.slices.iter().map(|slice| &slice[..self.length])
    }

    /// Returns the start of slice `j`, from which [`Sources::length`] bytes may be read.
    ///
    /// # Safety
    ///
    /// `j` must be below [`Sources::count`].
    #[inline]
    pub(super) unsafe fn start(&self, j: usize) -> *const u8 {
        debug_assert!(j < self.slices.len(), "no such source");
        // SAFETY: guaranteed by the caller.
        unsafe { self.slices.get_unchecked(j).as_ptr() }
    }
}

/// `outs[r] (^)= sum_j rows[r][j] * sources[j]`.
pub(super) struct Task<'t, 's, const R: usize> {
    outs: [&'t mut [u8]; R],
    rows: [&'t [u8]; R],
    sources: Sources<'s>,
    mode: Mode,
}

impl<'t, 's, const R: usize> Task<'t, 's, R> {
    /// # Panics
    ///
    /// If the length of an output is not [`Sources::length`], or a row does not have one coefficient per source.
    #[inline]
    pub(super) fn new(
        outs: [&'t mut [u8]; R],
        rows: [&'t [u8]; R],
        sources: Sources<'s>,
        mode: Mode,
    ) -> Self {
        assert!(outs.iter().all(|out| out.len() == sources.length), "outputs differ in length");
        assert!(rows.iter().all(|row| row.len() == sources.count()), "one coefficient per source");
        Self { outs, rows, sources, mode }
    }

    #[inline]
    pub(super) fn mode(&self) -> Mode {
        self.mode
    }

    #[inline]
    pub(super) fn sources(&self) -> Sources<'s> {
        self.sources
    }

    /// Returns the bytes per output.
    #[inline]
    pub(super) fn length(&self) -> usize {
        self.sources.length
    }

    /// Returns each output with its row of coefficients.
    pub(super) fn outputs(&mut self) -> impl Iterator<Item = (&mut [u8], &'t [u8])> {
        self.outs.iter_mut().map(|out| &mut **out).zip(self.rows)
    }

    /// Returns the coefficient of source `j` in output `r`.
    ///
    /// # Safety
    ///
    /// `r` must be below `R` and `j` below the number of sources.
    #[inline]
    pub(super) unsafe fn coefficient(&self, r: usize, j: usize) -> u8 {
        debug_assert!(r < R && j < self.rows[r].len(), "no such coefficient");
        // SAFETY: guaranteed by the caller, and every row has one coefficient per source.
        unsafe { *self.rows.get_unchecked(r).get_unchecked(j) }
    }

    /// Returns the start of output `r`, where [`Task::length`] bytes may be read and written.
    #[inline]
    pub(super) fn out(&mut self, r: usize) -> *mut u8 {
        self.outs[r].as_mut_ptr()
    }
}

/// `rows[r] ^= factors[r] * source` for the rows of a matrix.
pub(super) struct Spread<'t> {
    matrix: &'t mut [u8],
    factors: &'t [u8],
    source: &'t [u8],
}

impl<'t> Spread<'t> {
    /// Unit of the length of a row, at least as wide as any kernel's register.
    pub(super) const UNIT: usize = 64;

    /// # Panics
    ///
    /// If the length of the source, which is the length of a row, is not a multiple of [`Spread::UNIT`], or the matrix
    /// does not have one row per factor.
    #[inline]
    pub(super) fn new(matrix: &'t mut [u8], factors: &'t [u8], source: &'t [u8]) -> Self {
        assert!(source.len().is_multiple_of(Self::UNIT), "the length of a row is not a multiple of the unit");
        // A product that wraps around could equal the length of a matrix that is far too short.
        let length = factors.len().checked_mul(source.len());
        assert!(length == Some(matrix.len()), "one factor per row");
        Self { matrix, factors, source }
    }

    /// Returns the bytes per row.
    #[inline]
    pub(super) fn width(&self) -> usize {
        self.source.len()
    }

    /// Returns each row with its factor.
    pub(super) fn rows(&mut self) -> impl Iterator<Item = (&mut [u8], u8)> {
        let width = self.source.len().max(1);
        self.matrix.chunks_exact_mut(width).zip(self.factors.iter().copied())
    }

    #[inline]
    pub(super) fn source(&self) -> &'t [u8] {
        self.source
    }

    #[inline]
    pub(super) fn factors(&self) -> &'t [u8] {
        self.factors
    }

    /// Returns the start of row `r`, where [`Spread::width`] bytes may be read and written.
    ///
    /// # Safety
    ///
    /// `r` must be below the number of factors.
    #[inline]
    pub(super) unsafe fn row(&mut self, r: usize) -> *mut u8 {
        debug_assert!(r < self.factors.len(), "no such row");
        // SAFETY: the matrix has as many rows as there are factors.
        unsafe { self.matrix.as_mut_ptr().add(r * self.source.len()) }
    }
}
