//! The table of an engine's kernels, and what makes calling them safe: that they were detected.

#![allow(unsafe_code, reason = "calls into code for detected features")]

use super::task::{Mode, Sources, Spread, Task};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Most outputs of one walk over the sources, over all engines.
pub(super) const SWEEP_OUTPUTS_MAX: usize = 4;

/// `outs[r] (^)= sum_j rows[r][j] * sources[j]` for R outputs.
type Sweep<const R: usize> = unsafe fn(Task<'_, '_, R>);

/// One instruction set's way to compute. Its functions may be called where `detect` says so.
pub(super) struct Kernels {
    pub(super) name: &'static str,
    /// Whether this processor can run the functions. It never changes its mind.
    pub(super) detect: fn() -> bool,
    /// `outs[r] (^)= sum_j rows[r][j] * sources[j]`, for one output, for two, and so on.
    pub(super) sweeps: (Sweep<1>, Sweep<2>, Sweep<3>, Sweep<4>),
    /// `out = sum_j sources[j]`. The lengths agree.
    pub(super) sum: unsafe fn(&mut [u8], Sources<'_>),
    /// `rows[r] ^= factors[r] * source`.
    pub(super) spread: unsafe fn(Spread<'_>),
    /// The XOR of all words of 8 bytes, a source's last one filled up with zeros.
    pub(super) read: unsafe fn(&[&[u8]]) -> u64,
    /// Multiplies and adds as a sweep into so many outputs does, on registers alone, so many rounds, and returns the
    /// number of products. None where products come from memory anyway.
    pub(super) multiply_in_registers: unsafe fn(usize, u64) -> u64,
}

/// Kernels that this processor can run.
#[derive(Clone, Copy)]
pub(super) struct Detected(&'static Kernels);

/// Those of the process; null before the first choice.
static SELECTED: AtomicPtr<Kernels> = AtomicPtr::new(ptr::null_mut());

impl Detected {
    pub(super) fn new(kernels: &'static Kernels) -> Option<Self> {
        (kernels.detect)().then_some(Self(kernels))
    }

    /// Those that were selected last.
    #[inline]
    pub(super) fn selected() -> Option<Self> {
        // SAFETY: what is not null was stored by `select`, from a reference without end to kernels that were detected.
        unsafe { SELECTED.load(Ordering::Relaxed).as_ref() }.map(Self)
    }

    pub(super) fn select(self) {
        SELECTED.store(ptr::from_ref(self.0).cast_mut(), Ordering::Relaxed);
    }

    pub(super) fn name(self) -> &'static str {
        self.0.name
    }

    #[inline]
    pub(super) fn sweep_one(self, task: Task<'_, '_, 1>) {
        // SAFETY: they were detected.
        unsafe { (self.0.sweeps.0)(task) }
    }

    /// The sweep for as many outputs as there are, 1 to [`SWEEP_OUTPUTS_MAX`].
    ///
    /// Inlined, so that a task is not copied right after it was written, which the processor would have to wait for.
    #[inline(always)]
    pub(super) fn sweep(self, outs: &mut [&mut [u8]], rows: &[&[u8]], sources: Sources<'_>, mode: Mode) {
        // SAFETY: they were detected.
        unsafe {
            match (outs, rows) {
                ([a], &[p]) => (self.0.sweeps.0)(Task::new([a], [p], sources, mode)),
                ([a, b], &[p, q]) => (self.0.sweeps.1)(Task::new([a, b], [p, q], sources, mode)),
                ([a, b, c], &[p, q, r]) => (self.0.sweeps.2)(Task::new([a, b, c], [p, q, r], sources, mode)),
                ([a, b, c, d], &[p, q, r, s]) => {
                    (self.0.sweeps.3)(Task::new([a, b, c, d], [p, q, r, s], sources, mode));
                }
                _ => unreachable!("chunks of equal size up to SWEEP_OUTPUTS_MAX"),
            }
        }
    }

    #[inline]
    pub(super) fn sum(self, out: &mut [u8], sources: Sources<'_>) {
        // SAFETY: they were detected.
        unsafe { (self.0.sum)(out, sources) }
    }

    #[inline]
    pub(super) fn spread(self, task: Spread<'_>) {
        // SAFETY: they were detected.
        unsafe { (self.0.spread)(task) }
    }

    pub(super) fn read(self, sources: &[&[u8]]) -> u64 {
        // SAFETY: they were detected.
        unsafe { (self.0.read)(sources) }
    }

    pub(super) fn multiply_in_registers(self, outputs: usize, rounds: u64) -> u64 {
        // SAFETY: they were detected.
        unsafe { (self.0.multiply_in_registers)(outputs, rounds) }
    }
}
