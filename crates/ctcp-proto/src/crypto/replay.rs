//! Detection of replayed packet numbers on a path (PROTOCOL.md section 2.2, "Replay").
//!
//! A ring of words with one bit per number slides with the largest number (as in RFC 6479): words that a new largest number enters are
//! cleared, everything else stays in place. Invariant: a number accepted by [`ReplayWindow::insert`] is never new again.

use crate::id::PacketNumber;

/// Minimum number of packet numbers that a receiver remembers, as PROTOCOL.md requires. A path that reorders by more loses the late
/// packets, which coding repairs.
pub const REPLAY_WINDOW: u64 = 4096;

const WORD_BITS: u64 = u64::BITS as u64;
/// One word more than the window, because the word of the largest number is only partly used. Rounded up to a power of two, so that finding
/// a word needs no division.
const WORDS: usize = (REPLAY_WINDOW / WORD_BITS + 1).next_power_of_two() as usize;

/// The packet numbers accepted on one path.
#[derive(Clone)]
pub struct ReplayWindow {
    largest: Option<PacketNumber>,
    words: Box<[u64; WORDS]>,
}

impl ReplayWindow {
    /// Creates an empty window.
    #[must_use]
    pub fn new() -> Self {
        Self { largest: None, words: Box::new([0; WORDS]) }
    }

    /// The largest number accepted so far.
    #[must_use]
    pub const fn largest(&self) -> Option<PacketNumber> {
        self.largest
    }

    /// Whether a packet with this number may be accepted: it was not seen before and is not too old.
    #[must_use]
    pub fn is_new(&self, number: PacketNumber) -> bool {
        match self.largest {
            None => true,
            Some(largest) if number > largest => true,
            Some(largest) => {
                let (word, bit) = position(number);
                largest.0 - number.0 < REPLAY_WINDOW && self.words[word] & bit == 0
            }
        }
    }

    /// Accepts a number. Returns false and changes nothing if it is not new.
    pub fn insert(&mut self, number: PacketNumber) -> bool {
        if !self.is_new(number) {
            return false;
        }
        if self.largest.is_none_or(|largest| number > largest) {
            self.slide(number);
        }
        let (word, bit) = position(number);
        self.words[word] |= bit;
        true
    }

    /// Clears the words between the old largest number and the new one.
    fn slide(&mut self, number: PacketNumber) {
        if let Some(largest) = self.largest {
            let (old, new) = (largest.0 / WORD_BITS, number.0 / WORD_BITS);
            for word in (old + 1..=new).take(WORDS) {
                self.words[word as usize % WORDS] = 0;
            }
        }
        self.largest = Some(number);
    }
}

impl Default for ReplayWindow {
    fn default() -> Self {
        Self::new()
    }
}

fn position(number: PacketNumber) -> (usize, u64) {
    let word = (number.0 / WORD_BITS) as usize % WORDS;
    (word, 1 << (number.0 % WORD_BITS))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_number_is_new_once() {
        let mut window = ReplayWindow::new();
        assert_eq!(window.largest(), None);
        for number in [0, 5, 3].map(PacketNumber) {
            assert!(window.insert(number));
            assert!(!window.is_new(number));
            assert!(!window.insert(number));
        }
        assert_eq!(window.largest(), Some(PacketNumber(5)));
        assert!(window.is_new(PacketNumber(4)));
    }

    #[test]
    fn the_last_4096_numbers_are_remembered_and_older_ones_rejected() {
        let mut window = ReplayWindow::new();
        window.insert(PacketNumber(10_000));
        assert!(window.is_new(PacketNumber(10_000 - 4095)));
        assert!(!window.is_new(PacketNumber(10_000 - 4096)));
    }

    #[test]
    fn a_jump_to_the_end_of_numbers_forgets_everything_before() {
        let mut window = ReplayWindow::new();
        assert!((0..5000).all(|number| window.insert(PacketNumber(number))));
        assert!(window.insert(PacketNumber(u64::MAX)));
        assert!((1..4096).all(|back| window.is_new(PacketNumber(u64::MAX - back))));
        assert!(!window.is_new(PacketNumber(4999)));
    }

    /// Steps from the last number: mostly small, sometimes beyond a word, the window or everything.
    fn steps() -> impl Strategy<Value = Vec<i64>> {
        prop::collection::vec(
            prop_oneof![4 => -8..8_i64, 2 => -200..200_i64, 2 => -5000..5000_i64, 1 => 0..1_000_000_i64],
            1..400,
        )
    }

    proptest! {
        #[test]
        fn the_window_equals_a_set_of_everything_seen(steps in steps()) {
            let mut window = ReplayWindow::new();
            let mut seen = BTreeSet::new();
            let mut number: u64 = 100;
            for step in steps {
                number = number.saturating_add_signed(step);
                let is_old = seen.last().is_some_and(|&largest: &u64| number + REPLAY_WINDOW <= largest);
                let expected = !is_old && !seen.contains(&number);
                prop_assert_eq!(window.is_new(PacketNumber(number)), expected);
                prop_assert_eq!(window.insert(PacketNumber(number)), expected);
                if expected {
                    seen.insert(number);
                }
                prop_assert_eq!(window.largest().map(|largest| largest.0), seen.last().copied());
            }
        }
    }
}
