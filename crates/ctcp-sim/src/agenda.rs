//! The wake-up times by number. A number has at most one time. The earliest time comes first, and the lower number for
//! equal times.
//!
//! This is a binary heap that tracks the position of each number, so that a time can be changed in place. It holds no
//! outdated entries, and nothing is allocated after the first round.

use ctcp_base::Instant;

/// The position of a number that has no time.
const NOWHERE: usize = usize::MAX;

/// Wake-up times by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Agenda {
    /// Each entry is no later than the two entries at twice its position plus one and plus two.
    heap: Vec<(Instant, usize)>,
    /// The position of each number in the heap.
    places: Vec<usize>,
}

impl Agenda {
    /// Returns the earliest time and its number.
    pub(crate) fn first(&self) -> Option<(Instant, usize)> {
        self.heap.first().copied()
    }

    /// Sets, changes or removes the time of `who`.
    pub(crate) fn set(&mut self, who: usize, time: Option<Instant>) {
        if who >= self.places.len() {
            if time.is_none() {
                return;
            }
            self.places.resize(who + 1, NOWHERE);
        }
        match (self.places[who], time) {
            (NOWHERE, None) => {}
            (NOWHERE, Some(time)) => {
                self.heap.push((time, who));
                self.rise(self.heap.len() - 1);
            }
            (place, Some(time)) => {
                let before = core::mem::replace(&mut self.heap[place], (time, who)).0;
                if time < before {
                    self.rise(place);
                } else if time > before {
                    self.sink(place);
                }
            }
            (place, None) => {
                self.heap.swap_remove(place);
                self.places[who] = NOWHERE;
                if place < self.heap.len() {
                    // The entry that came from the end may have to move up or down.
                    let settled = self.rise(place);
                    self.sink(settled);
                }
            }
        }
    }

    /// Removes all times.
    pub(crate) fn clear(&mut self) {
        self.heap.clear();
        self.places.clear();
    }

    /// Moves an entry up to its position, and returns the position.
    fn rise(&mut self, mut place: usize) -> usize {
        let entry = self.heap[place];
        while place > 0 {
            let above = (place - 1) / 2;
            if self.heap[above] <= entry {
                break;
            }
            self.put(place, self.heap[above]);
            place = above;
        }
        self.put(place, entry);
        place
    }

    /// Moves an entry down to its position.
    fn sink(&mut self, mut place: usize) {
        let entry = self.heap[place];
        loop {
            let mut below = 2 * place + 1;
            if below + 1 < self.heap.len() && self.heap[below + 1] < self.heap[below] {
                below += 1;
            }
            if below >= self.heap.len() || entry <= self.heap[below] {
                break;
            }
            self.put(place, self.heap[below]);
            place = below;
        }
        self.put(place, entry);
    }

    fn put(&mut self, place: usize, entry: (Instant, usize)) {
        self.heap[place] = entry;
        self.places[entry.1] = place;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctcp_base::Prng;
    use std::collections::BTreeMap;

    #[test]
    fn the_earliest_comes_first_and_the_lower_number_at_the_same_time() {
        let mut agenda = Agenda::default();
        for (who, millis) in [(3, 5), (1, 5), (2, 4)] {
            agenda.set(who, Some(Instant::from_millis(millis)));
        }
        let mut order = Vec::new();
        while let Some((_, who)) = agenda.first() {
            order.push(who);
            agenda.set(who, None);
        }
        assert_eq!(order, [2, 1, 3]);
    }

    #[test]
    fn the_first_entry_is_that_of_a_sorted_list_after_any_changes() {
        let mut prng = Prng::new(1);
        let mut agenda = Agenda::default();
        let mut model = BTreeMap::new();
        for _ in 0..20_000 {
            let who = prng.below(40) as usize;
            if prng.below(4) == 0 {
                agenda.set(who, None);
                model.remove(&who);
            } else {
                let time = Instant::from_nanos(prng.below(100));
                agenda.set(who, Some(time));
                model.insert(who, time);
            }
            let first = model.iter().map(|(&who, &time)| (time, who)).min();
            assert_eq!(agenda.first(), first);
        }
        agenda.clear();
        assert_eq!(agenda.first(), None);
    }
}
