use proptest::prelude::*;

use super::*;

fn identity(first: SymbolIndex) -> Identity {
    Identity { first, length: 4, density: 15, key: 7 }
}

fn content(total: usize) -> Vec<u8> {
    (0..total).map(|index| (index * 7 + index / 256) as u8).collect()
}

proptest! {
    #[test]
    fn segments_in_any_order_and_repetition_make_the_combination(
        total in 1usize..2_000,
        pieces in prop::collection::vec((any::<prop::sample::Index>(), 0usize..900), 0..40),
    ) {
        let whole = content(total);
        let mut incomplete = Incomplete::default();
        let mut arrived = vec![false; total];
        for (offset, length) in pieces {
            let offset = offset.index(total);
            let end = (offset + length).min(total);
            arrived[offset..end].fill(true);
            let outcome = incomplete.insert(identity(3), offset, total, &whole[offset..end]);
            if arrived.iter().all(|&has_arrived| has_arrived) {
                prop_assert_eq!(outcome, Ok(Some(whole)));
                prop_assert!(incomplete.combinations.is_empty());
                return Ok(());
            }
            prop_assert_eq!(outcome, Ok(None));
        }
    }
}

#[test]
fn segments_of_different_combinations_do_not_mix() {
    let mut incomplete = Incomplete::default();
    for (first, length, density, key) in [(3, 4, 15, 7), (4, 4, 15, 7), (3, 5, 15, 7), (3, 4, 14, 7)] {
        let identity = Identity { first, length, density, key };
        assert_eq!(incomplete.insert(identity, 0, 10, &[1; 5]), Ok(None));
    }
    let other = Identity { key: 8, ..identity(3) };
    assert_eq!(incomplete.insert(other, 5, 10, &[2; 5]), Ok(None));
    let whole = [[1; 5], [2; 5]].concat();
    assert_eq!(incomplete.insert(identity(3), 5, 10, &[2; 5]), Ok(Some(whole)));
    assert_eq!(incomplete.combinations.len(), 4);
}

#[test]
fn the_oldest_of_too_many_incomplete_combinations_are_dropped() {
    let mut incomplete = Incomplete::default();
    for first in 0..1_000 {
        assert_eq!(incomplete.insert(identity(first), 0, 100, &[1]), Ok(None));
        assert!(incomplete.combinations.len() <= INCOMPLETE_MAX);
    }
    assert_eq!(incomplete.insert(identity(999), 1, 100, &[2; 99]).map(|whole| whole.is_some()), Ok(true));
    assert_eq!(incomplete.insert(identity(0), 1, 100, &[2; 99]), Ok(None));
}

#[test]
fn combinations_of_known_symbols_are_dropped() {
    let mut incomplete = Incomplete::default();
    for first in 0..10 {
        assert_eq!(incomplete.insert(identity(first), 0, 100, &[1]), Ok(None));
    }
    incomplete.release_before(10);
    let left: Vec<_> = incomplete.combinations.iter().map(|partial| partial.identity.first).collect();
    assert_eq!(left, [7, 8, 9]);
}

#[test]
fn segments_that_disagree_about_the_length_are_an_error() {
    let mut incomplete = Incomplete::default();
    assert_eq!(incomplete.insert(identity(0), 0, 100, &[1]), Ok(None));
    assert_eq!(incomplete.insert(identity(0), 0, 101, &[1]), Err(Contradiction));
}
