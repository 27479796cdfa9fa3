//! The kernels, one file per instruction set, and the choice between them.
//!
//! An [`Engine`] value exists only for an instruction set that this processor supports, which makes its safe methods
//! sound. [`Engine::current`] is the fastest engine unless [`Engine::force`] chose another.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod gfni;
mod kernels;
mod naive;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod ssse3;
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(dead_code, reason = "only vector kernels take pointers")
)]
mod task;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod vector;

use core::fmt;
use kernels::{Detected, Kernels, SWEEP_OUTPUTS_MAX};
use task::{Mode, Sources, Spread, Task};

/// A set of kernels that this processor can run.
#[derive(Clone, Copy)]
pub struct Engine(Detected);

/// The kernels of this build, slowest first. Whether the processor can run them is detected at run time.
static ALL: &[&Kernels] = &[
    &naive::KERNELS,
    &scalar::KERNELS,
    #[cfg(target_arch = "aarch64")]
    &neon::KERNELS,
    #[cfg(target_arch = "x86_64")]
    &ssse3::KERNELS,
    #[cfg(target_arch = "x86_64")]
    &avx2::KERNELS,
    #[cfg(target_arch = "x86_64")]
    &gfni::KERNELS,
    #[cfg(target_arch = "x86_64")]
    &avx512::KERNELS,
];

impl Engine {
    /// Returns the engines of this processor, slowest first. `naive` and `scalar` run everywhere.
    pub fn available() -> impl DoubleEndedIterator<Item = Self> {
        ALL.iter().filter_map(|kernels| Detected::new(kernels)).map(Self)
    }

    /// Returns the engine called `name`, if it exists and this processor can run it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::available().find(|engine| engine.name() == name)
    }

    /// Returns the fastest engine of this processor.
    #[must_use]
    pub fn fastest() -> Self {
        Self::available().next_back().expect("naive and scalar run everywhere")
    }

    /// Returns the engine used by the functions of [`gf256`](crate::gf256), the encoder and the decoder.
    #[must_use]
    #[inline]
    pub fn current() -> Self {
        Detected::selected().map_or_else(Self::select_fastest, Self)
    }

    #[cold]
    fn select_fastest() -> Self {
        let fastest = Self::fastest();
        fastest.force();
        fastest
    }

    /// Makes this the engine of the whole process, for measurements and tests. All engines give equal results.
    pub fn force(self) {
        self.0.select();
    }

    /// Returns its name, as accepted by [`Engine::named`].
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// [`gf256::combine`](crate::gf256::combine) on this engine.
    #[inline]
    pub fn combine(self, out: &mut [u8], coefficients: &[u8], sources: &[&[u8]]) {
        self.run_single(out, coefficients, sources, Mode::Assign);
    }

    /// [`gf256::combine_add`](crate::gf256::combine_add) on this engine.
    #[inline]
    pub fn combine_add(self, out: &mut [u8], coefficients: &[u8], sources: &[&[u8]]) {
        self.run_single(out, coefficients, sources, Mode::Add);
    }

    /// [`gf256::combine_rows`](crate::gf256::combine_rows) on this engine.
    pub fn combine_rows(self, outs: &mut [&mut [u8]], rows: &[&[u8]], sources: &[&[u8]]) {
        self.run(outs, rows, sources, Mode::Assign);
    }

    /// [`gf256::combine_rows_add`](crate::gf256::combine_rows_add) on this engine.
    pub fn combine_rows_add(self, outs: &mut [&mut [u8]], rows: &[&[u8]], sources: &[&[u8]]) {
        self.run(outs, rows, sources, Mode::Add);
    }

    /// [`gf256::sum`](crate::gf256::sum) on this engine.
    pub fn sum(self, out: &mut [u8], sources: &[&[u8]]) {
        let sources = Sources::new(sources, out.len());
        self.0.sum(out, sources);
    }

    /// Computes `rows[r] ^= factors[r] * source` for the rows of a matrix, each as long as the source. This is a step
    /// of elimination on all rows at once.
    ///
    /// # Panics
    ///
    /// If the length of the source is not a multiple of 64 bytes, or the matrix does not have one row per factor.
    #[inline]
    pub fn spread(self, matrix: &mut [u8], factors: &[u8], source: &[u8]) {
        self.0.spread(Spread::new(matrix, factors, source));
    }

    /// Reads the sources and does nothing but one XOR per load. Returns the XOR of all their 8-byte words in
    /// little-endian order, with the last word of a source zero padded.
    ///
    /// For measurements: an upper bound for the speed of a [`sum`](Engine::sum) of the same sources.
    #[must_use]
    pub fn read(self, sources: &[&[u8]]) -> u64 {
        self.0.read(sources)
    }

    /// Performs the arithmetic of a sweep into `outputs` outputs without reading any source. Returns the number of
    /// products (bytes times coefficients) in all `rounds`, or 0 if this engine looks up its products in memory.
    ///
    /// For measurements: the speed of a sweep if reading its sources were free. It is compiled separately, so an actual
    /// sweep can be a few percent faster.
    #[must_use]
    pub fn multiply_in_registers(self, outputs: usize, rounds: u64) -> u64 {
        self.0.multiply_in_registers(outputs, rounds)
    }

    /// Runs one output. Coefficient rows are short, so the overhead of this path matters.
    #[inline]
    fn run_single(self, out: &mut [u8], row: &[u8], sources: &[&[u8]], mode: Mode) {
        let sources = Sources::new(sources, out.len());
        self.0.sweep_one(Task::new([out], [row], sources, mode));
    }

    /// Runs any number of outputs in as few sweeps as possible.
    fn run(self, outs: &mut [&mut [u8]], rows: &[&[u8]], sources: &[&[u8]], mode: Mode) {
        let Some(first) = outs.first() else { return };
        assert!(outs.len() == rows.len(), "one row of coefficients per output");
        let sources = Sources::new(sources, first.len());
        for (outs, rows) in outs.chunks_mut(SWEEP_OUTPUTS_MAX).zip(rows.chunks(SWEEP_OUTPUTS_MAX)) {
            self.0.sweep(outs, rows, sources, mode);
        }
    }
}

impl PartialEq for Engine {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Engine {}

impl fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Engine").field(&self.name()).finish()
    }
}
