//! The stop flag, which all waiting code checks.

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::error::TestbedError;

/// How long code may wait without checking the flag.
pub const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A flag that is set once, for example by a signal handler; copies share it.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Sets the flag.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns true if the flag is set.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Checks the flag.
    ///
    /// # Errors
    /// Returns an error if the flag is set.
    pub fn check(&self) -> Result<(), TestbedError> {
        if self.is_set() { Err(TestbedError::Interrupted) } else { Ok(()) }
    }

    /// Waits for `time`.
    ///
    /// # Errors
    /// Returns an error if the flag is set in the meantime.
    pub fn sleep(&self, time: Duration) -> Result<(), TestbedError> {
        let mut rest = time;
        while !rest.is_zero() {
            self.check()?;
            let part = rest.min(LOOK_EVERY);
            thread::sleep(part);
            rest -= part;
        }
        self.check()
    }
}
