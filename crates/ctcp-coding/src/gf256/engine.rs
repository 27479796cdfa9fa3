//! The kernels, one file an instruction set, and the choice between them.
//!
//! An [`Engine`] value exists only for an instruction set this processor has: that is what makes its
//! safe methods sound. [`Engine::current`] is the fastest one unless [`Engine::force`] chose another.

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

/// The kernels of this build, slowest first; whether the processor can run them is found at run time.
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
    /// The engines of this processor, slowest first. `naive` and `scalar` run everywhere.
    pub fn available() -> impl DoubleEndedIterator<Item = Self> {
        ALL.iter().filter_map(|kernels| Detected::new(kernels)).map(Self)
    }

    /// The engine called `name`, if there is one and this processor can run it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::available().find(|engine| engine.name() == name)
    }

    /// The fastest engine of this processor.
    #[must_use]
    pub fn fastest() -> Self {
        Self::available().next_back().expect("some run everywhere")
    }

    /// The engine that the functions of [`gf256`](crate::gf256), the encoder and the decoder use.
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

    /// Makes this the engine of the whole process. For measurements and tests: all engines give equal bytes.
    pub fn force(self) {
        self.0.select();
    }

    /// Its name, as taken by [`Engine::named`].
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

    /// `rows[r] ^= factors[r] * source` for the rows of a matrix, each as long as the source: a step of elimination,
    /// on all rows at once.
    ///
    /// # Panics
    ///
    /// If the source is not a multiple of 64 bytes long, or the matrix is not as many rows as there are factors.
    #[inline]
    pub fn spread(self, matrix: &mut [u8], factors: &[u8], source: &[u8]) {
        self.0.spread(Spread::new(matrix, factors, source));
    }

    /// Reads the sources and does nothing else but an XOR for each load: returns the XOR of all their words of 8 bytes in the
    /// little-endian order, a source's last one filled up with zeros.
    ///
    /// For measurements: what a [`sum`](Engine::sum) of the same sources could come to.
    #[must_use]
    pub fn read(self, sources: &[&[u8]]) -> u64 {
        self.0.read(sources)
    }

    /// The arithmetic of a sweep into `outputs` outputs and nothing else: no source is read. Returns the number of
    /// products (bytes times coefficients) in all `rounds`, or 0 if this engine's products come from memory.
    ///
    /// For measurements: what a sweep could come to if reading its sources cost nothing. It is compiled by itself, so that a sweep
    /// can be faster by a few percent.
    #[must_use]
    pub fn multiply_in_registers(self, outputs: usize, rounds: u64) -> u64 {
        self.0.multiply_in_registers(outputs, rounds)
    }

    /// One output: coefficient rows are short, so that the way here counts.
    #[inline]
    fn run_single(self, out: &mut [u8], row: &[u8], sources: &[&[u8]], mode: Mode) {
        let sources = Sources::new(sources, out.len());
        self.0.sweep_one(Task::new([out], [row], sources, mode));
    }

    /// Any number of outputs, in as few sweeps as possible.
    fn run(self, outs: &mut [&mut [u8]], rows: &[&[u8]], sources: &[&[u8]], mode: Mode) {
        let Some(first) = outs.first() else { return };
        assert!(outs.len() == rows.len(), "one row of coefficients an output");
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
