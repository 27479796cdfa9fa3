//! Generates an engine's functions that are compiled for its features.

/// Returns whether this processor has all the features: detected at run time with `std`, at build time without.
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
pub(in super::super) use has_features;

/// Generates an engine from an [`InstructionSet`](super::InstructionSet): the type for which the file implements the
/// trait, and the table of kernels.
///
/// The numbers are tile sizes, in registers per output or row. As many tiles as fit have the first size, the following
/// ones have the second, and so on.
///
/// - `sweep`, for one to four outputs: the sums, one or two sources and their coefficients have to fit into the
///   registers.
/// - `sum`: the sums and two sources. Whole cache lines are best.
/// - `spread`: a row, the source and a coefficient. The last tile is no longer than
///   [`Spread::UNIT`](super::super::task::Spread::UNIT).
/// - `multiply`, for one and for four outputs: the size that is fastest in registers alone.
macro_rules! vector_engine {
    (
        $set:ident, $name:literal, features: $($feature:tt),+;
        sweep: $($outputs:literal => [$($sweep:literal),+]),+;
        sum: [$($sum:literal),+];
        spread: [$($spread:literal),+];
        multiply: 1 => $one:literal, 4 => $four:literal;
    ) => {
        /// Proves that the processor has the features.
        #[derive(Clone, Copy)]
        pub(super) struct $set(());

        impl $set {
            #[inline]
            #[target_feature($(enable = $feature),+)]
            fn new() -> Self {
                Self(())
            }
        }

        pub(super) static KERNELS: super::kernels::Kernels = {
            use super::kernels::Kernels;
            use super::scalar;
            use super::task::{Sources, Spread, Task};
            use super::vector::{InstructionSet, has_features, measured, spread, sum, sweep};

            #[target_feature($(enable = $feature),+)]
            fn sweep<const R: usize>(mut task: Task<'_, '_, R>) {
                let (set, done) = ($set::new(), 0);
                let done = match R {
                    $($outputs => {
                        $(let done = sweep::tiles::<_, R, $sweep>(set, &mut task, done);)+
                        done
                    })+
                    _ => done,
                };
                if done < task.length() {
                    set.sweep_tail(task, done);
                }
            }

            #[target_feature($(enable = $feature),+)]
            fn sum(out: &mut [u8], sources: Sources<'_>) {
                let (set, done) = ($set::new(), 0);
                $(let done = sum::tiles::<_, $sum>(set, out, sources, done);)+
                scalar::sum_from(out, sources, done);
            }

            #[target_feature($(enable = $feature),+)]
            fn spread(mut task: Spread<'_>) {
                let (set, done) = ($set::new(), 0);
                $(let done = spread::tiles::<_, $spread>(set, &mut task, done);)+
                debug_assert!(done == task.width(), "the length of a row is a multiple of the unit");
            }

            #[target_feature($(enable = $feature),+)]
            fn read(sources: &[&[u8]]) -> u64 {
                measured::read($set::new(), sources)
            }

            #[target_feature($(enable = $feature),+)]
            fn multiply_in_registers(outputs: usize, rounds: u64) -> u64 {
                match outputs {
                    1 => measured::multiply::<_, 1, $one>($set::new(), rounds),
                    _ => measured::multiply::<_, 4, $four>($set::new(), rounds),
                }
            }

            Kernels {
                name: $name,
                detect: || has_features!($($feature),+),
                sweeps: (sweep, sweep, sweep, sweep),
                sum,
                spread,
                read,
                multiply_in_registers,
            }
        };
    };
}
pub(in super::super) use vector_engine;
