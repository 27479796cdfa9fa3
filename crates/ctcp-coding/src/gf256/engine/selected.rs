//! The engine that the process uses, in one atomic byte, so that looking it up costs a load.

#![allow(unsafe_code, reason = "an engine read back from its code is known to be available")]

use super::Kind;
use core::sync::atomic::{AtomicU8, Ordering};

/// Code of the engine; 0 before the first choice.
static SELECTED: AtomicU8 = AtomicU8::new(0);

/// The engine last stored.
#[inline]
pub(super) fn load() -> Option<Kind> {
    let code = SELECTED.load(Ordering::Relaxed);
    // SAFETY: a code other than 0 was written by `store`, whose caller had that engine's value, and such a value exists
    // only after its features were detected. The features of a processor do not go away.
    unsafe { Kind::from_code(code) }
}

pub(super) fn store(kind: Kind) {
    SELECTED.store(kind.code(), Ordering::Relaxed);
}

impl Kind {
    fn code(self) -> u8 {
        match self {
            Self::Naive(_) => 1,
            Self::Scalar(_) => 2,
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => 7,
            #[cfg(target_arch = "x86_64")]
            Self::Ssse3(_) => 3,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => 4,
            #[cfg(target_arch = "x86_64")]
            Self::Gfni(_) => 5,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => 6,
        }
    }

    /// # Safety
    ///
    /// The code, if it is that of an engine, must come from a value of it.
    unsafe fn from_code(code: u8) -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        use super::{avx2::Avx2, avx512::Avx512, gfni::Gfni, ssse3::Ssse3};
        // SAFETY: by this function's own condition the engine was detected.
        unsafe {
            Some(match code {
                1 => Self::Naive(super::naive::Naive),
                2 => Self::Scalar(super::scalar::Scalar),
                #[cfg(target_arch = "aarch64")]
                7 => Self::Neon(super::neon::Neon::assume_detected()),
                #[cfg(target_arch = "x86_64")]
                3 => Self::Ssse3(Ssse3::assume_detected()),
                #[cfg(target_arch = "x86_64")]
                4 => Self::Avx2(Avx2::assume_detected()),
                #[cfg(target_arch = "x86_64")]
                5 => Self::Gfni(Gfni::assume_detected()),
                #[cfg(target_arch = "x86_64")]
                6 => Self::Avx512(Avx512::assume_detected()),
                _ => return None,
            })
        }
    }
}
