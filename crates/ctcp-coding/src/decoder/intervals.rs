//! Finds where degrees of freedom are missing, which acknowledgements report to the sender.

use super::rows::Rows;
use super::window::{State, Window};
use alloc::vec::Vec;

/// Consecutive symbols `[first, end)` that become known with `missing` more innovative combinations of them.
///
/// Some of them may be known, but the first is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingInterval {
    /// Index of the first symbol, which is unknown.
    pub first: u64,
    /// One past the index of the last symbol.
    pub end: u64,
    /// Number of unknown symbols less the number of equations about them; at least 1.
    pub missing: u64,
}

/// An interval under construction.
struct Open {
    interval: MissingInterval,
    /// Whether equations span it. Otherwise it is a run of symbols that no equation involves.
    has_equations: bool,
}

pub(super) fn collect(
    window: &Window,
    rows: &Rows,
    limit: usize,
    intervals: &mut Vec<MissingInterval>,
) -> u64 {
    intervals.clear();
    let mut open: Option<Open> = None;
    for (index, state) in window.states(window.oldest_undecoded(), window.end()) {
        if let Some(closed) = open.take_if(|open| !open.reaches(index, state)) {
            intervals.push(closed.interval);
        }
        let (row_end, missing) = match state {
            State::Known { .. } | State::Skipped => continue,
            State::Seen(row) => (rows.end_of(*row), 0),
            State::Unknown => (index + 1, 1),
        };
        match &mut open {
            Some(open) => {
                open.interval.end = open.interval.end.max(row_end);
                open.interval.missing += missing;
            }
            None if intervals.len() >= limit => return index,
            None => {
                let interval = MissingInterval { first: index, end: row_end, missing };
                open = Some(Open { interval, has_equations: matches!(state, State::Seen(_)) });
            }
        }
    }
    intervals.extend(open.map(|open| open.interval));
    window.end()
}

/// Collects runs of symbols that are not seen.
pub(super) fn collect_unseen(window: &Window, limit: usize, intervals: &mut Vec<MissingInterval>) -> u64 {
    intervals.clear();
    for (index, state) in window.states(window.oldest_undecoded(), window.end()) {
        if !matches!(state, State::Unknown) {
            continue;
        }
        if let Some(last) = intervals.last_mut().filter(|last| last.end == index) {
            last.end += 1;
            last.missing += 1;
        } else if intervals.len() >= limit {
            return index;
        } else {
            intervals.push(MissingInterval { first: index, end: index + 1, missing: 1 });
        }
    }
    window.end()
}

impl Open {
    /// Returns whether the symbol `index` belongs to this interval.
    fn reaches(&self, index: u64, state: &State) -> bool {
        if self.has_equations { index < self.interval.end } else { matches!(state, State::Unknown) }
    }
}
