//! The minimum (or maximum) over a sliding window, in bounded memory.
//!
//! A monotone queue: a new value removes every older one that is not smaller, so values and times both rise from front to back and the
//! front is the minimum. A value that is not smaller than the last one is skipped within a sixteenth of the window after it. This bounds
//! the queue, and the result lags by at most that sixteenth.

use std::collections::VecDeque;

/// How finely a window is divided. The queue holds at most about this many values.
const SLOTS: u64 = 16;

/// The minimum over a sliding window. Positions are numbers that never decrease, such as nanoseconds or rounds.
#[derive(Clone, Debug)]
pub(crate) struct SlidingMinimum {
    window: u64,
    entries: VecDeque<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    position: u64,
    value: u64,
}

impl SlidingMinimum {
    /// Creates a minimum over the last `window` positions.
    pub(crate) fn new(window: u64) -> Self {
        Self { window, entries: VecDeque::new() }
    }

    /// Changes the length of the window.
    pub(crate) fn resize(&mut self, window: u64) {
        self.window = window;
    }

    /// Adds a value at `position`.
    pub(crate) fn insert(&mut self, position: u64, value: u64) {
        while self.entries.back().is_some_and(|entry| entry.value >= value) {
            self.entries.pop_back();
        }
        let oldest = position.saturating_sub(self.window);
        // The last value stays whatever its age, so that there always is a minimum.
        while self.entries.len() > 1 && self.entries.front().is_some_and(|entry| entry.position < oldest) {
            self.entries.pop_front();
        }
        match self.entries.back() {
            Some(last)
                if last.position >= oldest
                    && position - last.position.min(position) < self.window / SLOTS => {}
            Some(last) if last.position < oldest => {
                self.entries.clear();
                self.entries.push_back(Entry { position, value });
            }
            _ => self.entries.push_back(Entry { position, value }),
        }
    }

    /// The minimum of the window that ends at `position`. After a pause longer than the window it is the newest value; `None` before the
    /// first.
    pub(crate) fn minimum(&self, position: u64) -> Option<u64> {
        let oldest = position.saturating_sub(self.window);
        let fresh = self.entries.iter().find(|entry| entry.position >= oldest);
        fresh.or(self.entries.back()).map(|entry| entry.value)
    }
}

/// The maximum over a sliding window: a [`SlidingMinimum`] of inverted values.
#[derive(Clone, Debug)]
pub(crate) struct SlidingMaximum(SlidingMinimum);

impl SlidingMaximum {
    /// Creates a maximum over the last `window` positions.
    pub(crate) fn new(window: u64) -> Self {
        Self(SlidingMinimum::new(window))
    }

    /// Adds a value at `position`.
    pub(crate) fn insert(&mut self, position: u64, value: u64) {
        self.0.insert(position, u64::MAX - value);
    }

    /// The maximum of the window that ends at `position`; `None` before the first value.
    pub(crate) fn maximum(&self, position: u64) -> Option<u64> {
        self.0.minimum(position).map(|value| u64::MAX - value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_minimum_is_forgotten_when_it_leaves_the_window() {
        let mut filter = SlidingMinimum::new(100);
        filter.insert(0, 5);
        filter.insert(50, 9);
        assert_eq!(filter.minimum(100), Some(5));
        assert_eq!(filter.minimum(101), Some(9));
    }

    #[test]
    fn after_a_pause_the_newest_value_is_returned() {
        let mut filter = SlidingMinimum::new(100);
        assert_eq!(filter.minimum(0), None);
        filter.insert(0, 5);
        assert_eq!(filter.minimum(1_000), Some(5));
        filter.insert(1_000, 9);
        assert_eq!(filter.minimum(1_000), Some(9), "the old minimum is no floor for the new window");
    }

    #[test]
    fn the_maximum_mirrors_the_minimum() {
        let mut filter = SlidingMaximum::new(10);
        filter.insert(0, 7);
        filter.insert(5, 3);
        assert_eq!(filter.maximum(10), Some(7));
        assert_eq!(filter.maximum(11), Some(3));
    }

    proptest! {
        #[test]
        fn the_minimum_lies_between_the_exact_ones_of_the_window_and_of_a_sixteenth_less(
            steps in prop::collection::vec((0u64..40, 0u64..1_000), 1..300),
        ) {
            let window = 320;
            let mut filter = SlidingMinimum::new(window);
            let mut all = Vec::new();
            let mut position = 0;
            for (step, value) in steps {
                position += step;
                filter.insert(position, value);
                all.push((position, value));
                let exact = |length: u64| {
                    all.iter().filter(|(at, _)| *at + length >= position).map(|(_, value)| *value).min()
                };
                let answer = filter.minimum(position).expect("a value was inserted");
                prop_assert!(answer >= exact(window).expect("the newest is inside"));
                let shorter = exact(window - window / SLOTS).expect("the newest is inside");
                prop_assert!(answer <= shorter, "{} above {}", answer, shorter);
                prop_assert!(filter.entries.len() as u64 <= SLOTS + 2);
            }
        }
    }
}
