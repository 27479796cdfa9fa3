//! The wish to stop, which everything that waits looks at.

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::error::TestbedError;

/// How long anything may wait without looking whether it should stop.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Set once, by a signal's handler for example; copies share it.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks everything to stop.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Goes on, or not.
    ///
    /// # Errors
    /// When somebody asked to stop.
    pub fn check(&self) -> Result<(), TestbedError> {
        if self.is_set() { Err(TestbedError::Interrupted) } else { Ok(()) }
    }

    /// Waits for `time`.
    ///
    /// # Errors
    /// When somebody asked to stop meanwhile.
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
