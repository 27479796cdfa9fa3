//! The packet numbers that arrived, as few inclusive ranges.
//!
//! Invariant: ranges ascend, none touches its neighbour, all lie at or above `floor`, and there are at most
//! [`RANGES_MAX`]; beyond that the oldest is forgotten.

use std::collections::VecDeque;

/// How many ranges are remembered. At 30 % loss a range is about five numbers long, so this covers some 5,000
/// packets: the 4096 an ACK's bitmap can name, 1.5 round trips of 400 Mbit/s at 100 ms. It is 16 KB.
pub(crate) const RANGES_MAX: usize = 1024;

/// What a number was when it was inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inserted {
    /// The successor of the largest (or the very first).
    InOrder,
    /// Beyond the successor: the numbers between are missing.
    Gap,
    /// Below the largest and not seen before.
    Filled,
    /// Seen before.
    Duplicate,
    /// Below what is remembered.
    Forgotten,
}

/// A bounded set of packet numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReceivedNumbers {
    ranges: VecDeque<(u64, u64)>,
    /// Numbers below it are of no interest any more.
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
        // The first range, from the newest down, that begins at or below the number's successor.
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

    /// Forgets the numbers below `floor`, for good.
    pub(crate) fn forget_below(&mut self, floor: u64) {
        self.floor = self.floor.max(floor);
        while self.ranges.front().is_some_and(|range| range.1 < self.floor) {
            self.ranges.pop_front();
        }
        if let Some(range) = self.ranges.front_mut() {
            range.0 = range.0.max(self.floor);
        }
    }

    /// Whether `number` is remembered as received.
    #[cfg(test)]
    pub(crate) fn contains(&self, number: u64) -> bool {
        let above = self.ranges.partition_point(|range| range.1 < number);
        self.ranges.get(above).is_some_and(|range| range.0 <= number)
    }

    /// The largest number.
    pub(crate) fn largest(&self) -> Option<u64> {
        self.ranges.back().map(|range| range.1)
    }

    /// How many ranges there are.
    pub(crate) fn range_count(&self) -> usize {
        self.ranges.len()
    }

    /// Whether it holds nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The ranges as inclusive `(first, last)`, from the largest downwards.
    pub(crate) fn descending(&self) -> impl ExactSizeIterator<Item = (u64, u64)> + Clone + '_ {
        self.ranges.iter().rev().copied()
    }
}

#[cfg(test)]
mod tests;
