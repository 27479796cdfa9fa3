use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn set(numbers: &[u64]) -> ReceivedNumbers {
    let mut set = ReceivedNumbers::new();
    for &number in numbers {
        set.insert(number);
    }
    set
}

fn ranges(set: &ReceivedNumbers) -> Vec<(u64, u64)> {
    set.descending().collect()
}

#[test]
fn neighbours_join_and_gaps_stay() {
    assert_eq!(ranges(&set(&[0, 1, 2, 5, 7, 6, 10])), [(10, 10), (5, 7), (0, 2)]);
    assert_eq!(ranges(&set(&[0, 2, 1])), [(0, 2)]);
}

#[test]
fn insertions_are_classified() {
    let mut set = ReceivedNumbers::new();
    let kinds: Vec<Inserted> = [0, 1, 4, 3, 4, 5, 9].into_iter().map(|number| set.insert(number)).collect();
    use Inserted::{Duplicate, Filled, Gap, InOrder};
    assert_eq!(kinds, [InOrder, InOrder, Gap, Filled, Duplicate, InOrder, Gap]);
    assert_eq!(ReceivedNumbers::new().insert(3), Gap, "the numbers before the first are missing");
}

#[test]
fn beyond_its_capacity_the_oldest_range_is_dropped_permanently() {
    let mut set = ReceivedNumbers::new();
    for index in 0..RANGES_MAX as u64 + 10 {
        set.insert(2 * index);
    }
    assert_eq!(set.range_count(), RANGES_MAX);
    assert_eq!(set.descending().last(), Some((20, 20)));
    assert_eq!(set.insert(4), Inserted::Forgotten);
    assert!(!set.contains(4) && set.contains(20));
}

#[test]
fn a_full_set_rejects_a_number_older_than_all_others() {
    let mut set = ReceivedNumbers::new();
    for index in 0..RANGES_MAX as u64 {
        set.insert(100 + 2 * index);
    }
    assert_eq!(set.insert(7), Inserted::Forgotten);
    assert_eq!(set.range_count(), RANGES_MAX);
}

#[test]
fn the_floor_can_cut_a_range() {
    let mut set = set(&[0, 1, 2, 5, 6, 7]);
    set.forget_below(6);
    assert_eq!(ranges(&set), [(6, 7)]);
    assert_eq!(set.insert(5), Inserted::Forgotten);
}

proptest! {
    #[test]
    fn the_set_equals_a_plain_set(
        steps in prop::collection::vec((0u64..200, prop::bool::weighted(0.05)), 1..300),
    ) {
        let mut set = ReceivedNumbers::new();
        let mut model = BTreeSet::new();
        let mut floor = 0;
        for (number, forgets) in steps {
            if forgets {
                floor = floor.max(number);
                set.forget_below(number);
                model = model.split_off(&floor);
                continue;
            }
            let is_new = number >= floor && model.insert(number);
            let inserted = set.insert(number);
            prop_assert_eq!(is_new, !matches!(inserted, Inserted::Duplicate | Inserted::Forgotten));
            prop_assert_eq!(inserted == Inserted::Filled, is_new && model.last() != Some(&number));
        }
        let held: Vec<u64> = set.descending().flat_map(|(first, last)| (first..=last).rev()).collect();
        let expected: Vec<u64> = model.iter().rev().copied().collect();
        prop_assert_eq!(held, expected);
        let list = ranges(&set);
        prop_assert!(list.windows(2).all(|pair| pair[1].1 + 1 < pair[0].0), "ranges touch: {:?}", list);
        prop_assert!((0..200).all(|number| set.contains(number) == model.contains(&number)));
        prop_assert_eq!(set.largest(), model.last().copied());
    }
}
