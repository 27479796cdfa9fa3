//! Requests that failed: logged, and remembered for the status page.
//!
//! Repeated attempts fill neither: the same failure of the same target is one entry with a count, and one log line per
//! minute. A program that tries many different targets is limited to [`LINES_MAX`] lines per minute.

use core::num::NonZeroU64;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use ctcp_base::Escaped;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::http_proxy::Failed;

/// How many failures are remembered.
pub(crate) const FAILURES_MAX: usize = 50;

/// The maximum number of log lines within a [`PAUSE`].
const LINES_MAX: u32 = 20;

/// The same failure is logged once in this time.
const PAUSE: Duration = Duration::from_secs(60);

/// The current time of day.
#[expect(clippy::disallowed_methods, reason = "shown to people, and not used for measurements")]
pub(crate) fn time_of_day() -> SystemTime {
    SystemTime::now()
}

/// The last failures.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The latest entry comes first.
    entries: VecDeque<Entry>,
    /// The start of the period that `lines` counts.
    since: Option<Instant>,
    lines: u32,
}

#[derive(Debug)]
struct Entry {
    failed: Failed,
    /// When it happened last.
    at: Instant,
    /// When it was last logged, if ever.
    logged: Option<Instant>,
    suppressed: u64,
}

/// What happens to a line of the log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// It is logged, and this many lines were suppressed before it.
    Logged(Option<NonZeroU64>),
    /// It is not logged.
    Suppressed,
    /// It is not logged, and neither are further lines for a while; this is logged once.
    TooMany,
}

impl Failures {
    /// Remembers a failure, and logs it if a line is due.
    pub(crate) fn note(&self, target: &str, reason: &str) {
        match self.remember(target, reason, time_of_day()) {
            Line::Logged(suppressed) => {
                warn!(target = %Escaped(target), suppressed, "{}", Escaped(reason));
            }
            Line::TooMany => warn!("many targets fail: the rest of this minute is not logged"),
            Line::Suppressed => {}
        }
    }

    /// Logs a target that the rules refuse, once per minute for the same target and client.
    pub(crate) fn note_refused(&self, client: &str, target: &str, reason: &str) {
        match self.remember(&format!("{client} {target}"), reason, time_of_day()) {
            Line::Logged(suppressed) => info!(%target, suppressed, "a target is refused: {reason}"),
            Line::TooMany => info!("many targets are refused: the rest of this minute is not logged"),
            Line::Suppressed => {}
        }
    }

    /// Returns true if a request to the target failed within the last minute.
    pub(crate) fn has_failed_lately(&self, target: &str) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.entries.iter().any(|entry| entry.failed.target == target && entry.at.elapsed() < PAUSE)
    }

    /// Remembers a failure of the connection to the server, which the link logs.
    pub(crate) fn note_server(&self, reason: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.entry("the server", reason, time_of_day());
    }

    /// The last failures, the latest first.
    pub(crate) fn last(&self) -> Vec<Failed> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.entries.iter().map(|entry| entry.failed.clone()).collect()
    }

    /// Remembers a failure and returns whether it is to be logged.
    pub(crate) fn remember(&self, target: &str, reason: &str, now: SystemTime) -> Line {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.since.is_none_or(|since| since.elapsed() >= PAUSE) {
            state.since = Some(Instant::now());
            state.lines = 0;
        }
        let lines = state.lines;
        let entry = state.entry(target, reason, now);
        if entry.logged.is_some_and(|logged| logged.elapsed() < PAUSE) || lines > LINES_MAX {
            entry.suppressed += 1;
            return Line::Suppressed;
        }
        if lines == LINES_MAX {
            entry.suppressed += 1;
            state.lines += 1;
            return Line::TooMany;
        }
        entry.logged = Some(Instant::now());
        let suppressed = NonZeroU64::new(core::mem::take(&mut entry.suppressed));
        state.lines += 1;
        Line::Logged(suppressed)
    }
}

impl State {
    /// Finds or creates the entry of a failure, increments its count and moves it to the front.
    fn entry(&mut self, target: &str, reason: &str, now: SystemTime) -> &mut Entry {
        let is_same = |entry: &Entry| entry.failed.target == target && entry.failed.reason == reason;
        let known = self.entries.iter().position(is_same).and_then(|index| self.entries.remove(index));
        let mut entry = known.unwrap_or_else(|| Entry {
            failed: Failed { target: target.to_owned(), reason: reason.to_owned(), last: now, times: 0 },
            at: Instant::now(),
            logged: None,
            suppressed: 0,
        });
        entry.at = Instant::now();
        entry.failed.last = now;
        entry.failed.times += 1;
        self.entries.truncate(FAILURES_MAX - 1);
        self.entries.push_front(entry);
        &mut self.entries[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_same_failure_is_one_entry_and_one_line_a_minute() {
        let failures = Failures::default();
        let now = SystemTime::UNIX_EPOCH;
        assert_eq!(failures.remember("10.1.2.3:80", "no", now), Line::Logged(None));
        for _ in 0..99 {
            assert_eq!(failures.remember("10.1.2.3:80", "no", now), Line::Suppressed);
        }
        assert_eq!(failures.remember("10.1.2.3:80", "another reason", now), Line::Logged(None));
        tokio::time::advance(PAUSE).await;
        assert_eq!(failures.remember("10.1.2.3:80", "no", now), Line::Logged(NonZeroU64::new(99)));
        let last: Vec<_> = failures.last().into_iter().map(|failed| (failed.reason, failed.times)).collect();
        assert_eq!(last, [("no".to_owned(), 101), ("another reason".to_owned(), 1)]);
        assert!(failures.has_failed_lately("10.1.2.3:80") && !failures.has_failed_lately("10.1.2.3:81"));
        tokio::time::advance(PAUSE).await;
        assert!(!failures.has_failed_lately("10.1.2.3:80"));
    }

    #[tokio::test(start_paused = true)]
    async fn failures_of_many_targets_fill_neither_the_log_nor_the_memory() {
        let failures = Failures::default();
        let now = SystemTime::UNIX_EPOCH;
        let mut said = 0;
        let mut too_many = 0;
        for number in 0..10_000 {
            match failures.remember(&format!("target-{number}:80"), "no", now) {
                Line::Logged(_) => said += 1,
                Line::TooMany => too_many += 1,
                Line::Suppressed => {}
            }
        }
        assert_eq!((said, too_many, failures.last().len()), (LINES_MAX, 1, FAILURES_MAX));
        assert_eq!(failures.last()[0].target, "target-9999:80");
        tokio::time::advance(PAUSE).await;
        assert_eq!(failures.remember("x:1", "no", now), Line::Logged(None));
    }
}
