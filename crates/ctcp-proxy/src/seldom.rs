//! A warning that would come many times a second is said once in a while, with how often it was left out.

use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

/// The pause of warnings: whoever looks at a log sees it, and a day of it fills no disk.
pub(crate) const WARNING_PAUSE: Duration = Duration::from_secs(60);

/// Lets one through, and then none for a pause.
#[derive(Debug)]
pub(crate) struct Seldom {
    pause: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    said: Option<Instant>,
    left_out: u64,
}

impl Seldom {
    pub(crate) fn new(pause: Duration) -> Self {
        Self { pause, state: Mutex::default() }
    }

    /// Whether to say it now, and how often it was left out since it was said last.
    pub(crate) fn is_due(&self) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.said.is_some_and(|said| said.elapsed() < self.pause) {
            state.left_out = state.left_out.saturating_add(1);
            return None;
        }
        state.said = Some(Instant::now());
        Some(core::mem::take(&mut state.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_is_said_and_those_of_the_pause_are_counted() {
        let seldom = Seldom::new(WARNING_PAUSE);
        assert_eq!(seldom.is_due(), Some(0));
        for _ in 0..1000 {
            assert_eq!(seldom.is_due(), None);
        }
        tokio::time::advance(WARNING_PAUSE).await;
        assert_eq!(seldom.is_due(), Some(1000));
        assert_eq!(seldom.is_due(), None);
    }
}
