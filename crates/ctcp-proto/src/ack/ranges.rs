//! Received packet numbers as a small number of inclusive ranges.
//!
//! Invariant: ranges ascend, none touches its neighbour, all are at or above `floor`, and there are at most [`RANGES_MAX`]; beyond that the
//! oldest is dropped.

use std::collections::VecDeque;

/// Maximum number of ranges. At 30 % loss a range is about five numbers long, so this covers some 5,000 packets. These are the 4096 in an
/// ACK's bitmap, or 1.5 round trips of 400 Mbit/s at 100 ms. It takes 16 KB.
pub(crate) const RANGES_MAX: usize = 1024;

/// The relation of an inserted number to the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inserted {
    /// The successor of the largest number, or the first one.
    InOrder,
    /// Beyond the successor: the numbers between are missing.
    Gap,
    /// Below the largest number and not seen before.
    Filled,
    /// Seen before.
    Duplicate,
    /// Below the floor.
    Forgotten,
}

/// A bounded set of packet numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReceivedNumbers {
    ranges: VecDeque<(u64, u64)>,
    /// Numbers below this are no longer stored.
    floor: u64,
}

impl ReceivedNumbers {
    /// An empty set.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a number.
    pub(crate) fn insert(&mut self, number: u64) -> Inserted {
        if number < self.floor {
            return Inserted::Forgotten;
        }
        // Searches from the newest range down, for the first one that begins at or below the number.
        let above = self.ranges.iter().rev().take_while(|range| range.0 > number).count();
        let index = self.ranges.len() - above;
        let kind = if above > 0 {
            Inserted::Filled
        } else {
            match self.ranges.back() {
                Some(range) if range.1 + 1 < number => Inserted::Gap,
                None if number > self.floor => Inserted::Gap,
                _ => Inserted::InOrder,
            }
        };
        let below = index.checked_sub(1).and_then(|index| self.ranges.get(index)).copied();
        if below.is_some_and(|range| range.1 >= number) {
            return Inserted::Duplicate;
        }
        let joins_below = below.is_some_and(|range| range.1 + 1 == number);
        let joins_above = self.ranges.get(index).is_some_and(|range| number + 1 == range.0);
        match (joins_below, joins_above) {
            (true, true) => {
                let last = self.ranges.remove(index).map_or(number, |range| range.1);
                self.ranges[index - 1].1 = last;
            }
            (true, false) => self.ranges[index - 1].1 = number,
            (false, true) => self.ranges[index].0 = number,
            (false, false) => return self.insert_alone(index, number, kind),
        }
        kind
    }

    fn insert_alone(&mut self, index: usize, number: u64, kind: Inserted) -> Inserted {
        if self.ranges.len() < RANGES_MAX {
            self.ranges.insert(index, (number, number));
            return kind;
        }
        if index == 0 {
            return Inserted::Forgotten;
        }
        if let Some((_, last)) = self.ranges.pop_front() {
            self.floor = self.floor.max(last + 1);
        }
        self.ranges.insert(index - 1, (number, number));
        kind
    }

    /// Permanently drops the numbers below `floor`.
    pub(crate) fn forget_below(&mut self, floor: u64) {
        self.floor = self.floor.max(floor);
        while self.ranges.front().is_some_and(|range| range.1 < self.floor) {
            self.ranges.pop_front();
        }
        if let Some(range) = self.ranges.front_mut() {
            range.0 = range.0.max(self.floor);
        }
    }

    /// Whether `number` is stored as received.
    #[cfg(test)]
    pub(crate) fn contains(&self, number: u64) -> bool {
        let above = self.ranges.partition_point(|range| range.1 < number);
        self.ranges.get(above).is_some_and(|range| range.0 <= number)
    }

    /// The largest number.
    pub(crate) fn largest(&self) -> Option<u64> {
        self.ranges.back().map(|range| range.1)
    }

    /// The number of ranges.
    pub(crate) fn range_count(&self) -> usize {
        self.ranges.len()
    }

    /// Whether the set is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The ranges as inclusive `(first, last)` pairs in descending order.
    pub(crate) fn descending(&self) -> impl ExactSizeIterator<Item = (u64, u64)> + Clone + '_ {
        self.ranges.iter().rev().copied()
    }
}

#[cfg(test)]
mod tests;
