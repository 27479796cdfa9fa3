//! What a kernel works on, with all lengths checked once, so that its loops need no checks.
//!
//! Invariant: all outputs have one length, every source has at least that length, and every row has one
//! coefficient a source. The fields are private to this file: nothing else can break it.

#![allow(unsafe_code, reason = "loads whose bounds were checked when the value was made")]

/// Whether a sweep replaces its outputs or adds to them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Assign,
    Add,
}

/// Slices that have at least `length` bytes each.
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
        // Without a branch for each of them.
        let shortest = slices.iter().fold(usize::MAX, |shortest, slice| shortest.min(slice.len()));
        assert!(shortest >= length, "a source is shorter than the output");
        Self { slices, length }
    }

    #[inline]
    pub(super) fn count(&self) -> usize {
        self.slices.len()
    }

    /// What every slice has at least.
    #[inline]
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// The slices, cut to the common length.
    pub(super) fn iter(&self) -> impl Iterator<Item = &'s [u8]> {
        self.slices.iter().map(|slice| &slice[..self.length])
    }

    /// The beginning of slice `j`, from which [`Sources::length`] bytes may be read.
    ///
    /// # Safety
    ///
    /// `j` must be below [`Sources::count`].
    #[inline]
    pub(super) unsafe fn start(&self, j: usize) -> *const u8 {
        debug_assert!(j < self.slices.len(), "no such source");
        // SAFETY: the caller's condition.
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
    /// If an output is not as long as [`Sources::length`], or a row has not one coefficient a source.
    #[inline]
    pub(super) fn new(
        outs: [&'t mut [u8]; R],
        rows: [&'t [u8]; R],
        sources: Sources<'s>,
        mode: Mode,
    ) -> Self {
        assert!(outs.iter().all(|out| out.len() == sources.length), "outputs differ in length");
        assert!(rows.iter().all(|row| row.len() == sources.count()), "one coefficient a source");
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

    /// Bytes of each output.
    #[inline]
    pub(super) fn length(&self) -> usize {
        self.sources.length
    }

    /// Each output with its row of coefficients.
    pub(super) fn outputs(&mut self) -> impl Iterator<Item = (&mut [u8], &'t [u8])> {
        self.outs.iter_mut().map(|out| &mut **out).zip(self.rows)
    }

    /// How often source `j` enters output `r`.
    ///
    /// # Safety
    ///
    /// `r` must be below `R` and `j` below the count of sources.
    #[inline]
    pub(super) unsafe fn coefficient(&self, r: usize, j: usize) -> u8 {
        debug_assert!(r < R && j < self.rows[r].len(), "no such coefficient");
        // SAFETY: the caller's condition, and every row has one coefficient a source.
        unsafe { *self.rows.get_unchecked(r).get_unchecked(j) }
    }

    /// The beginning of output `r`, where [`Task::length`] bytes may be read and written.
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
    /// Unit of the length of a row: no kernel has a wider register.
    pub(super) const UNIT: usize = 64;

    /// # Panics
    ///
    /// If the source, which is as long as a row, is not some [`Spread::UNIT`]s long, or the matrix is not as
    /// many rows as there are factors.
    #[inline]
    pub(super) fn new(matrix: &'t mut [u8], factors: &'t [u8], source: &'t [u8]) -> Self {
        assert!(source.len().is_multiple_of(Self::UNIT), "a row is not of whole units");
        // A product that wraps could be the length of a matrix that is far too short.
        let length = factors.len().checked_mul(source.len());
        assert!(length == Some(matrix.len()), "one factor a row");
        Self { matrix, factors, source }
    }

    /// Bytes of a row.
    #[inline]
    pub(super) fn width(&self) -> usize {
        self.source.len()
    }

    /// Each row with its factor.
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

    /// The beginning of row `r`, where [`Spread::width`] bytes may be read and written.
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
