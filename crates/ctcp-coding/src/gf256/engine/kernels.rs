//! The table of an engine's kernels, which may be called only after the engine was detected.

#![allow(unsafe_code, reason = "calls into code for detected features")]

use super::task::{Mode, Sources, Spread, Task};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// The maximum number of outputs in one walk over the sources, over all engines.
pub(super) const SWEEP_OUTPUTS_MAX: usize = 4;

/// `outs[r] (^)= sum_j rows[r][j] * sources[j]` for R outputs.
type Sweep<const R: usize> = unsafe fn(Task<'_, '_, R>);

/// The kernels of one instruction set. They may be called only if `detect` returns true.
pub(super) struct Kernels {
    pub(super) name: &'static str,
    /// Returns whether this processor can run the functions. The result never changes.
    pub(super) detect: fn() -> bool,
    /// `outs[r] (^)= sum_j rows[r][j] * sources[j]`, for one to four outputs.
    pub(super) sweeps: (Sweep<1>, Sweep<2>, Sweep<3>, Sweep<4>),
    /// `out = sum_j sources[j]`. The lengths are equal.
    pub(super) sum: unsafe fn(&mut [u8], Sources<'_>),
    /// `rows[r] ^= factors[r] * source`.
    pub(super) spread: unsafe fn(Spread<'_>),
    /// The XOR of all 8-byte words, with the last word of a source zero padded.
    pub(super) read: unsafe fn(&[&[u8]]) -> u64,
    /// Performs the arithmetic of a sweep on registers alone, given the number of outputs and of rounds. Returns the
    /// number of products, or 0 if the products come from memory anyway.
    pub(super) multiply_in_registers: unsafe fn(usize, u64) -> u64,
}

/// Kernels that this processor can run.
#[derive(Clone, Copy)]
pub(super) struct Detected(&'static Kernels);

/// The kernels used by the process; null before the first choice.
static SELECTED: AtomicPtr<Kernels> = AtomicPtr::new(ptr::null_mut());

impl Detected {
    pub(super) fn new(kernels: &'static Kernels) -> Option<Self> {
        (kernels.detect)().then_some(Self(kernels))
    }

    /// Returns the kernels that were selected last.
    #[inline]
    pub(super) fn selected() -> Option<Self> {
        // SAFETY: a non-null pointer was stored by `select`, from a `'static` reference to detected kernels.
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
        // SAFETY: the kernels were detected.
        unsafe { (self.0.sweeps.0)(task) }
    }

    /// Runs the sweep for the given number of outputs, 1 to [`SWEEP_OUTPUTS_MAX`].
    ///
    /// Inlined, so that a task is not copied right after it was written, which would stall the processor.
    #[inline(always)]
    pub(super) fn sweep(self, outs: &mut [&mut [u8]], rows: &[&[u8]], sources: Sources<'_>, mode: Mode) {
        // SAFETY: the kernels were detected.
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
        // SAFETY: the kernels were detected.
        unsafe { (self.0.sum)(out, sources) }
    }

    #[inline]
    pub(super) fn spread(self, task: Spread<'_>) {
        // SAFETY: the kernels were detected.
        unsafe { (self.0.spread)(task) }
    }

    pub(super) fn read(self, sources: &[&[u8]]) -> u64 {
        // SAFETY: the kernels were detected.
        unsafe { (self.0.read)(sources) }
    }

    pub(super) fn multiply_in_registers(self, outputs: usize, rounds: u64) -> u64 {
        // SAFETY: the kernels were detected.
        unsafe { (self.0.multiply_in_registers)(outputs, rounds) }
    }
}
