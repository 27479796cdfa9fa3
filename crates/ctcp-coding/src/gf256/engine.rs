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
mod naive;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
mod selected;
#[cfg(target_arch = "x86_64")]
mod ssse3;
mod task;

use task::{Mode, Sources, Spread, Task};

/// Whether this processor has all the features: asked at run time with `std`, at build time without.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! has_features {
    ($($feature:tt),+) => {{
        #[cfg(all(feature = "std", target_arch = "x86_64"))]
        let has = true $(&& std::arch::is_x86_feature_detected!($feature))+;
        #[cfg(all(feature = "std", target_arch = "aarch64"))]
        let has = true $(&& std::arch::is_aarch64_feature_detected!($feature))+;
        #[cfg(not(feature = "std"))]
        let has = true $(&& cfg!(target_feature = $feature))+;
        has
    }};
}
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use has_features;

/// Most outputs of one walk over the sources, over all engines.
const SWEEP_OUTPUTS_MAX: usize = 4;

/// One instruction set's way to compute `outs[r] (^)= sum_j rows[r][j] * sources[j]`.
trait Kernel: Copy {
    /// How many outputs a walk over the sources computes best, 1 to [`SWEEP_OUTPUTS_MAX`].
    const OUTPUTS: usize;

    fn sweep<const R: usize>(self, task: Task<'_, '_, R>);

    /// `out = sum_j sources[j]`. The lengths agree.
    fn sum(self, out: &mut [u8], sources: Sources<'_>);

    /// `rows[r] ^= factors[r] * source`, after one column was cleared.
    fn spread(self, task: Spread<'_>);

    /// Multiplies and adds as a sweep into `outputs` outputs does, on registers alone, and returns the number
    /// of products. None where products come from memory anyway.
    fn multiply_in_registers(self, _outputs: usize, _rounds: u64) -> u64 {
        0
    }
}

/// A set of kernels that this processor can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Engine(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Naive(naive::Naive),
    Scalar(scalar::Scalar),
    #[cfg(target_arch = "aarch64")]
    Neon(neon::Neon),
    #[cfg(target_arch = "x86_64")]
    Ssse3(ssse3::Ssse3),
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2),
    #[cfg(target_arch = "x86_64")]
    Gfni(gfni::Gfni),
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Avx512),
}

/// Does the same with the kernel of an engine, whichever it is.
macro_rules! on_kernel {
    ($engine:expr, $kernel:ident => $action:expr) => {
        match $engine.0 {
            Kind::Naive($kernel) => $action,
            Kind::Scalar($kernel) => $action,
            #[cfg(target_arch = "aarch64")]
            Kind::Neon($kernel) => $action,
            #[cfg(target_arch = "x86_64")]
            Kind::Ssse3($kernel) => $action,
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2($kernel) => $action,
            #[cfg(target_arch = "x86_64")]
            Kind::Gfni($kernel) => $action,
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512($kernel) => $action,
        }
    };
}

/// An engine of this build; whether the processor can run it is found at run time.
struct Candidate {
    name: &'static str,
    detect: fn() -> Option<Kind>,
}

/// All engines, slowest first.
const CANDIDATES: &[Candidate] = &[
    Candidate { name: "naive", detect: || Some(Kind::Naive(naive::Naive)) },
    Candidate { name: "scalar", detect: || Some(Kind::Scalar(scalar::Scalar)) },
    #[cfg(target_arch = "aarch64")]
    Candidate { name: "neon", detect: || neon::Neon::detect().map(Kind::Neon) },
    #[cfg(target_arch = "x86_64")]
    Candidate { name: "ssse3", detect: || ssse3::Ssse3::detect().map(Kind::Ssse3) },
    #[cfg(target_arch = "x86_64")]
    Candidate { name: "avx2", detect: || avx2::Avx2::detect().map(Kind::Avx2) },
    #[cfg(target_arch = "x86_64")]
    Candidate { name: "gfni", detect: || gfni::Gfni::detect().map(Kind::Gfni) },
    #[cfg(target_arch = "x86_64")]
    Candidate { name: "avx512", detect: || avx512::Avx512::detect().map(Kind::Avx512) },
];

impl Engine {
    /// The engines of this processor, slowest first. `naive` and `scalar` run everywhere.
    pub fn available() -> impl DoubleEndedIterator<Item = Self> {
        CANDIDATES.iter().filter_map(|candidate| (candidate.detect)().map(Self))
    }

    /// The engine called `name`, if there is one and this processor can run it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let candidate = CANDIDATES.iter().find(|candidate| candidate.name == name)?;
        (candidate.detect)().map(Self)
    }

    /// The fastest engine of this processor.
    #[must_use]
    pub fn fastest() -> Self {
        Self::available().next_back().unwrap_or(Self(Kind::Scalar(scalar::Scalar)))
    }

    /// The engine that the functions of [`gf256`](crate::gf256), the encoder and the decoder use.
    #[must_use]
    #[inline]
    pub fn current() -> Self {
        selected::load().map_or_else(Self::select_fastest, Self)
    }

    #[cold]
    fn select_fastest() -> Self {
        let fastest = Self::fastest();
        fastest.force();
        fastest
    }

    /// Makes this the engine of the whole process. For measurements and tests: all engines give equal bytes.
    pub fn force(self) {
        selected::store(self.0);
    }

    /// Its name, as taken by [`Engine::named`].
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Naive(_) => "naive",
            Kind::Scalar(_) => "scalar",
            #[cfg(target_arch = "aarch64")]
            Kind::Neon(_) => "neon",
            #[cfg(target_arch = "x86_64")]
            Kind::Ssse3(_) => "ssse3",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Gfni(_) => "gfni",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512(_) => "avx512",
        }
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
        on_kernel!(self, kernel => kernel.sum(out, sources));
    }

    /// `rows[r] ^= factors[r] * source` for the rows of a matrix, each as long as the source, after the column
    /// `cleared` was set to zero, if one is given: a step of elimination, on all rows at once.
    ///
    /// # Panics
    ///
    /// If the source is not a multiple of 64 bytes long, or the matrix is not as many rows as there are factors.
    #[inline]
    pub fn spread(self, matrix: &mut [u8], factors: &[u8], source: &[u8], cleared: Option<usize>) {
        let task = Spread::new(matrix, factors, source, cleared);
        on_kernel!(self, kernel => kernel.spread(task));
    }

    /// The arithmetic of a sweep into `outputs` outputs and nothing else: no source is read. Returns the number of
    /// products (bytes times coefficients) in all `rounds`, or 0 if this engine's products come from memory.
    ///
    /// For measurements: what a sweep could come to if reading its sources cost nothing. It is compiled by itself, so that a sweep
    /// can be faster by a few percent.
    #[must_use]
    pub fn multiply_in_registers(self, outputs: usize, rounds: u64) -> u64 {
        on_kernel!(self, kernel => kernel.multiply_in_registers(outputs, rounds))
    }

    /// How many outputs this engine computes best in one walk over the sources.
    #[must_use]
    pub fn outputs(self) -> usize {
        on_kernel!(self, kernel => outputs_of(kernel))
    }

    /// One output: coefficient rows are short, so that the way here counts.
    #[inline]
    fn run_single(self, out: &mut [u8], row: &[u8], sources: &[&[u8]], mode: Mode) {
        let sources = Sources::new(sources, out.len());
        let task = Task::new([out], [row], sources, mode);
        on_kernel!(self, kernel => kernel.sweep(task));
    }

    fn run(self, outs: &mut [&mut [u8]], rows: &[&[u8]], sources: &[&[u8]], mode: Mode) {
        let Some(first) = outs.first() else { return };
        assert!(outs.len() == rows.len(), "one row of coefficients an output");
        let sources = Sources::new(sources, first.len());
        on_kernel!(self, kernel => run_sweeps(kernel, outs, rows, sources, mode));
    }
}

fn outputs_of<K: Kernel>(_: K) -> usize {
    K::OUTPUTS
}

/// Cuts any number of outputs into sweeps of the kernel's favourite width.
#[inline]
fn run_sweeps<K: Kernel>(
    kernel: K,
    outs: &mut [&mut [u8]],
    rows: &[&[u8]],
    sources: Sources<'_>,
    mode: Mode,
) {
    const { assert!(K::OUTPUTS >= 1 && K::OUTPUTS <= SWEEP_OUTPUTS_MAX) };
    for (outs, rows) in outs.chunks_mut(K::OUTPUTS).zip(rows.chunks(K::OUTPUTS)) {
        match (outs, rows) {
            ([a], &[p]) => kernel.sweep(Task::new([a], [p], sources, mode)),
            ([a, b], &[p, q]) => kernel.sweep(Task::new([a, b], [p, q], sources, mode)),
            ([a, b, c], &[p, q, r]) => kernel.sweep(Task::new([a, b, c], [p, q, r], sources, mode)),
            ([a, b, c, d], &[p, q, r, s]) => {
                kernel.sweep(Task::new([a, b, c, d], [p, q, r, s], sources, mode));
            }
            _ => unreachable!("chunks of equal size up to SWEEP_OUTPUTS_MAX"),
        }
    }
}
