//! Rate limit for warnings: a frequent warning is logged once per pause, with the number of suppressed ones.

use core::num::NonZeroU64;
use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

/// The pause between warnings: short enough to be noticed in a log, and long enough not to fill a disk.
pub(crate) const WARNING_PAUSE: Duration = Duration::from_secs(60);

/// Allows one line per pause.
#[derive(Debug)]
pub(crate) struct Seldom {
    pause: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    said: Option<Instant>,
    suppressed: u64,
}

impl Seldom {
    pub(crate) fn new(pause: Duration) -> Self {
        Self { pause, state: Mutex::default() }
    }

    /// Returns `None` if no line is due, and otherwise how many were suppressed since the last one.
    pub(crate) fn is_due(&self) -> Option<Option<NonZeroU64>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.said.is_some_and(|said| said.elapsed() < self.pause) {
            state.suppressed = state.suppressed.saturating_add(1);
            return None;
        }
        state.said = Some(Instant::now());
        Some(NonZeroU64::new(core::mem::take(&mut state.suppressed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_line_is_logged_and_those_of_the_pause_are_counted() {
        let seldom = Seldom::new(WARNING_PAUSE);
        assert_eq!(seldom.is_due(), Some(None));
        for _ in 0..1000 {
            assert_eq!(seldom.is_due(), None);
        }
        tokio::time::advance(WARNING_PAUSE).await;
        assert_eq!(seldom.is_due(), Some(NonZeroU64::new(1000)));
        assert_eq!(seldom.is_due(), None);
    }
}
