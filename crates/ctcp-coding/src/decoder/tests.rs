//! Behaviour of the decoder in small examples, and encoder to decoder at packet size.

use super::*;
use crate::coefficients::{DENSITY_MAX, generate};
use crate::encoder::Encoder;
use crate::test_random::TestRandom;
use std::vec;

/// Symbol size in bytes. Under Miri, packets of real size and long blocks would take minutes.
const SIZE: usize = if cfg!(miri) { 100 } else { 1344 };

fn range(first: u64, length: u16) -> SymbolRange {
    SymbolRange::new(first, length).unwrap()
}

fn decoder(window: usize) -> Decoder {
    Decoder::new(DecoderConfig::new(SIZE, window))
}

fn polled(decoder: &mut Decoder) -> Vec<u64> {
    core::iter::from_fn(|| decoder.poll_decoded().map(|(index, _)| index)).collect()
}

/// Returns the combination of `range` under `key` at `density`.
fn repair(encoder: &Encoder, range: SymbolRange, key: u16, density: u8) -> (Vec<u8>, Vec<u8>) {
    let mut row = vec![0; usize::from(range.length())];
    generate(key, density, &mut row);
    let mut payload = Vec::new();
    encoder.combine(range, &row, &mut payload).unwrap();
    (row, payload)
}

// Requirement: C6, U4
#[test]
fn an_uncoded_symbol_is_returned_at_once_even_when_older_ones_are_missing() {
    let mut decoder = decoder(8);
    decoder.handle_source(3, b"three").unwrap();
    let (index, contents) = decoder.poll_decoded().unwrap();
    assert_eq!((index, &contents[..6], contents.len()), (3, &b"three\0"[..], SIZE));
    assert_eq!((decoder.oldest_undecoded(), decoder.oldest_unseen(), decoder.known_end()), (0, 0, 4));
    assert_eq!(decoder.poll_decoded(), None);
}

#[test]
fn a_combination_makes_its_oldest_symbol_seen_and_one_more_decodes_both() {
    let mut decoder = decoder(8);
    assert_eq!(decoder.handle_combination(range(0, 2), &[1, 1], &[5]), Ok(Arrival::Innovative));
    assert_eq!((decoder.oldest_unseen(), decoder.oldest_undecoded()), (1, 0));
    assert!(decoder.is_seen(0) && !decoder.is_seen(1) && !decoder.is_decoded(0));
    assert_eq!(decoder.rank_in(range(0, 2)), 1);
    assert_eq!(decoder.rank_in(range(0, 1)), 0);
    assert_eq!(decoder.handle_combination(range(0, 2), &[2, 2], &[10]), Ok(Arrival::Redundant));
    assert_eq!(decoder.handle_combination(range(0, 2), &[1, 2], &[4]), Ok(Arrival::Innovative));
    assert_eq!(polled(&mut decoder), [0, 1]);
    let values = [0, 1].map(|index| decoder.symbol(index).unwrap()[0]);
    assert_eq!(values[0] ^ values[1], 5);
}

#[test]
fn intervals_distinguish_untouched_runs_from_equations_and_count_missing_symbols() {
    let mut decoder = decoder(32);
    decoder.handle_source(3, &[]).unwrap();
    decoder.handle_combination(range(4, 4), &[1, 2, 3, 4], &[1]).unwrap();
    decoder.handle_source(9, &[]).unwrap();
    decoder.handle_source(12, &[]).unwrap();
    let mut intervals = Vec::new();
    assert_eq!(decoder.undecodable_intervals(9, &mut intervals), 13);
    let expected = [(0, 3, 3), (4, 8, 3), (8, 9, 1), (10, 12, 2)];
    let expected = expected.map(|(first, end, missing)| MissingInterval { first, end, missing });
    assert_eq!(intervals, expected);
    assert_eq!(decoder.undecodable_intervals(2, &mut intervals), 8);
    assert_eq!(intervals, expected[..2]);
    assert_eq!(decoder.undecodable_intervals(0, &mut intervals), 0);
    assert_eq!(intervals, []);
}

#[test]
fn symbols_beyond_the_window_are_refused_and_polling_moves_the_window() {
    let mut decoder = decoder(4);
    assert_eq!(decoder.handle_source(4, &[1]), Err(DecodeError::OutsideWindow));
    assert_eq!(decoder.handle_combination(range(1, 4), &[1; 4], &[1]), Err(DecodeError::OutsideWindow));
    for index in 0..4 {
        decoder.handle_source(index, &[1]).unwrap();
    }
    assert_eq!((decoder.oldest_undecoded(), decoder.limit()), (4, 4));
    assert_eq!(polled(&mut decoder), [0, 1, 2, 3]);
    assert_eq!(decoder.limit(), 8);
    assert_eq!(decoder.handle_source(7, &[1]), Ok(Arrival::Innovative));
}

#[test]
fn a_combination_may_reach_back_to_delivered_symbols_until_they_are_released() {
    let mut decoder = decoder(8);
    for index in 0..4 {
        decoder.handle_source(index, &[1 << index]).unwrap();
    }
    assert_eq!(polled(&mut decoder), [0, 1, 2, 3]);
    assert_eq!(decoder.handle_combination(range(0, 5), &[1; 5], &[0b1_1111]), Ok(Arrival::Innovative));
    assert_eq!(decoder.poll_decoded().map(|(index, contents)| (index, contents[0])), Some((4, 0b1_0000)));
    decoder.release_before(100);
    assert_eq!((decoder.floor(), decoder.symbol(4)), (5, None));
    assert_eq!(decoder.handle_combination(range(2, 4), &[1; 4], &[1]), Ok(Arrival::TooOld));
    assert_eq!(decoder.handle_combination(range(2, 3), &[1; 3], &[1]), Ok(Arrival::Redundant));
    assert_eq!(decoder.handle_source(2, &[1]), Ok(Arrival::Redundant));
}

#[test]
fn an_equation_keeps_the_released_symbols_it_needs() {
    let mut decoder = decoder(8);
    decoder.handle_source(0, &[7]).unwrap();
    polled(&mut decoder);
    decoder.handle_combination(range(0, 3), &[1, 1, 1], &[7 ^ 20 ^ 30]).unwrap();
    decoder.release_before(1);
    assert_eq!(decoder.floor(), 1);
    decoder.handle_source(1, &[20]).unwrap();
    assert_eq!(polled(&mut decoder), [1, 2]);
    assert_eq!(decoder.symbol(2).unwrap()[0], 30);
}

#[test]
fn zero_coefficients_are_redundant_and_a_single_non_zero_one_is_a_symbol() {
    let mut decoder = decoder(8);
    assert_eq!(decoder.handle_combination(range(0, 3), &[0; 3], &[9]), Ok(Arrival::Redundant));
    assert_eq!(decoder.handle_combination(range(0, 3), &[0, 2, 0], &[6]), Ok(Arrival::Innovative));
    assert_eq!(decoder.poll_decoded().map(|(index, contents)| (index, contents[0])), Some((1, 3)));
    assert_eq!(decoder.equations(), 0);
}

// Requirement: C2, C6
#[test]
fn a_systematic_block_with_any_losses_decodes_from_as_many_combinations() {
    let mut random = TestRandom::new(11);
    let counts: &[u16] = if cfg!(miri) { &[1, 2, 9] } else { &[1, 2, 31, 33, 70] };
    for &count in counts {
        let mut encoder = Encoder::new(SIZE, usize::from(count));
        for _ in 0..count {
            let length = random.below(SIZE as u64 + 1) as usize;
            encoder.push(&random.bytes(length)).unwrap();
        }
        for lost_percent in [0, 10, 50, 100] {
            let mut decoder = decoder(usize::from(count));
            for index in (0..u64::from(count)).filter(|_| random.below(100) >= lost_percent) {
                decoder.handle_source(index, encoder.symbol(index).unwrap()).unwrap();
            }
            let whole = range(0, count);
            let mut key = 0;
            while decoder.rank_in(whole) < usize::from(count) {
                let (row, payload) = repair(&encoder, whole, key, DENSITY_MAX);
                decoder.handle_combination(whole, &row, &payload).unwrap();
                key += 1;
            }
            check_contents(&mut decoder, &encoder);
        }
    }
}

#[test]
fn overlapping_ranges_in_any_order_with_duplicates_decode() {
    let (seeds, count) = if cfg!(miri) { (2, 12) } else { (20, 100) };
    for seed in 0..seeds {
        let mut random = TestRandom::new(seed);
        let mut encoder = Encoder::new(SIZE, 100);
        (0..count).for_each(|_| assert!(encoder.push(&random.bytes(SIZE)).is_ok()));
        let whole = range(0, count as u16);
        let mut decoder = decoder(100);
        let mut key = 0;
        while decoder.oldest_undecoded() < count {
            let first = random.below(count);
            let length = 1 + random.below((count - first).min(40)) as u16;
            let span = range(first, length);
            let (row, payload) = repair(&encoder, span, key, random.below(16) as u8);
            let rank = decoder.rank_in(whole);
            let arrival = decoder.handle_combination(span, &row, &payload).unwrap();
            let gain = decoder.rank_in(whole) - rank;
            assert_eq!(gain, usize::from(arrival == Arrival::Innovative));
            assert_eq!(decoder.handle_combination(span, &row, &payload), Ok(Arrival::Redundant));
            key += 1;
            assert!(key < 5_000, "rank {rank} does not become {count}");
        }
        check_contents(&mut decoder, &encoder);
    }
}

#[test]
fn equations_over_later_symbols_leave_room_for_those_over_the_oldest() {
    // Four blocks of eight symbols, all lost, and room for eight equations.
    let config = DecoderConfig { equations_max: 8, ..DecoderConfig::new(SIZE, 64) };
    let (mut decoder, mut random, mut encoder) =
        (Decoder::new(config), TestRandom::new(3), Encoder::new(SIZE, 64));
    (0..32).for_each(|_| assert!(encoder.push(&random.bytes(SIZE)).is_ok()));
    for key in 0..8 {
        for block in [3, 2, 1] {
            let span = range(8 * block, 8);
            let (row, payload) = repair(&encoder, span, key, DENSITY_MAX);
            decoder.handle_combination(span, &row, &payload).unwrap();
        }
    }
    assert_eq!(decoder.equations(), 6, "the last quarter is reserved");
    // Two symbols of the oldest block are missing: their repairs are accepted, and the block is decoded.
    (0..6).for_each(|index| {
        decoder.handle_source(index, encoder.symbol(index).unwrap()).unwrap();
    });
    for key in 0..2 {
        let (row, payload) = repair(&encoder, range(0, 8), key, DENSITY_MAX);
        assert_eq!(decoder.handle_combination(range(0, 8), &row, &payload), Ok(Arrival::Innovative));
    }
    assert_eq!(decoder.oldest_undecoded(), 8);
}

/// Checks that all symbols are returned once, with the contents that were pushed.
fn check_contents(decoder: &mut Decoder, encoder: &Encoder) {
    let mut indexes = Vec::new();
    while let Some((index, contents)) = decoder.poll_decoded() {
        let mut expected = encoder.symbol(index).unwrap().to_vec();
        expected.resize(SIZE, 0);
        assert_eq!(contents, expected);
        indexes.push(index);
    }
    indexes.sort_unstable();
    assert!(indexes.iter().copied().eq(0..encoder.next_index()));
    assert_eq!(decoder.equations(), 0);
}
