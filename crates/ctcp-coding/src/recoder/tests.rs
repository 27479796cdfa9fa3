//! Behaviour of the recoder in small examples. `tests/recoder_operations.rs` compares it with full elimination.

use super::*;
use crate::coefficients::generate_uniform;
use crate::decoder::{Decoder, DecoderConfig};
use crate::encoder::Encoder;
use crate::test_random::TestRandom;
use std::vec;

const SIZE: usize = 200;

fn range(first: u64, length: u16) -> SymbolRange {
    SymbolRange::new(first, length).unwrap()
}

fn recoder(window: u16) -> Recoder {
    Recoder::new(RecoderConfig { symbol_size_max: SIZE, window })
}

/// Returns a combination of all rows with the given weights, in the recoder's order.
fn combined(recoder: &Recoder, weights: &[u8]) -> (SymbolRange, Vec<u8>, Vec<u8>) {
    let (mut row, mut payload) = (Vec::new(), Vec::new());
    let span = recoder.combine(recoder.span().unwrap(), weights, &mut row, &mut payload).unwrap();
    (span, row, payload)
}

#[test]
fn only_innovative_arrivals_are_kept() {
    let mut recoder = recoder(8);
    assert_eq!(recoder.handle_combination(range(0, 2), &[1, 1], &[5]), Ok(Arrival::Innovative));
    assert_eq!(recoder.handle_combination(range(0, 2), &[7, 7], &[35]), Ok(Arrival::Redundant));
    assert_eq!(recoder.handle_combination(range(3, 2), &[0, 0], &[35]), Ok(Arrival::Redundant));
    assert_eq!(recoder.handle_source(1, &[4]), Ok(Arrival::Innovative));
    assert_eq!(recoder.handle_source(0, &[1]), Ok(Arrival::Redundant));
    assert_eq!((recoder.rank(), recoder.span()), (2, Some(range(0, 2))));
    assert_eq!(combined(&recoder, &[1, 1]), (range(0, 1), vec![1], vec![1]));
}

#[test]
fn a_combination_involves_only_the_requested_range() {
    let mut recoder = recoder(16);
    recoder.handle_source(0, &[1]).unwrap();
    recoder.handle_combination(range(1, 3), &[1, 0, 2], &[2]).unwrap();
    recoder.handle_combination(range(2, 6), &[1, 0, 0, 0, 0, 9], &[3]).unwrap();
    recoder.handle_source(6, &[4]).unwrap();
    assert_eq!(recoder.rank_in(range(0, 4)), 2);
    assert_eq!(recoder.rank_in(range(1, 2)), 0);
    let (mut row, mut payload) = (Vec::new(), Vec::new());
    let mut combine = |span, weights: &[u8]| {
        let spanned = recoder.combine(span, weights, &mut row, &mut payload);
        spanned.map(|spanned| (spanned, row.clone(), payload.clone()))
    };
    assert_eq!(combine(range(0, 4), &[0, 1]), Ok((range(1, 3), vec![1, 0, 2], vec![2])));
    assert_eq!(combine(range(0, 8), &[1, 0, 0, 1]), Ok((range(0, 7), vec![1, 0, 0, 0, 0, 0, 1], vec![5])));
    assert_eq!(combine(range(0, 4), &[0, 0]), Err(RecodeError::Nothing));
    assert_eq!(combine(range(0, 4), &[1]), Err(RecodeError::WeightCount));
    assert_eq!(combine(range(1, 2), &[]), Err(RecodeError::Nothing));
}

// Requirement: N5
#[test]
fn raising_the_floor_by_one_symbol_drops_one_row() {
    let mut random = TestRandom::new(3);
    let mut recoder = recoder(8);
    let mut encoder = Encoder::new(SIZE, 8);
    (0..8).for_each(|_| assert!(encoder.push(&random.bytes(SIZE)).is_ok()));
    let mut payload = Vec::new();
    for _ in 0..8 {
        let row = random.bytes(8);
        encoder.combine(range(0, 8), &row, &mut payload).unwrap();
        recoder.handle_combination(range(0, 8), &row, &payload).unwrap();
    }
    for floor in 0..8 {
        recoder.release_before(floor);
        assert_eq!((recoder.rank(), recoder.floor()), (8 - floor as usize, floor));
        let weights = vec![1; recoder.rank()];
        let (span, row, payload) = combined(&recoder, &weights);
        assert!(span.first() >= floor);
        let mut expected = Vec::new();
        encoder.combine(span, &row, &mut expected).unwrap();
        assert_eq!(payload, expected);
    }
    assert_eq!(recoder.handle_source(6, &[1]), Ok(Arrival::TooOld));
    recoder.release_before(3);
    assert_eq!(recoder.floor(), 7);
}

#[test]
fn newer_symbols_move_the_window_and_old_rows_fall_out_of_it() {
    let mut recoder = recoder(4);
    (0..4).for_each(|index| assert_eq!(recoder.handle_source(index, &[1]), Ok(Arrival::Innovative)));
    assert_eq!(recoder.handle_combination(range(2, 4), &[1; 4], &[1]), Ok(Arrival::Innovative));
    assert_eq!((recoder.rank(), recoder.oldest_kept(), recoder.floor()), (3, 2, 0));
    assert!(recoder.is_seen(2) && recoder.is_seen(4) && !recoder.is_seen(1) && !recoder.is_seen(5));
    assert_eq!(recoder.handle_source(1, &[1]), Ok(Arrival::TooOld));
    assert_eq!(recoder.handle_combination(range(1, 3), &[0, 1, 1], &[0]), Ok(Arrival::Redundant));
    assert_eq!(recoder.handle_source(u64::MAX - 1, &[1]), Ok(Arrival::Innovative));
    assert_eq!(recoder.rank(), 1);
}

#[test]
fn invalid_arrivals_are_refused_and_change_nothing() {
    let mut recoder = recoder(4);
    let whole = range(0, 5);
    assert_eq!(recoder.handle_combination(whole, &[1; 5], &[1]), Err(DecodeError::OutsideWindow));
    assert_eq!(recoder.handle_combination(whole, &[1; 4], &[1]), Err(DecodeError::CoefficientCount));
    assert_eq!(recoder.handle_source(0, &[1; SIZE + 1]), Err(DecodeError::TooLong));
    assert_eq!(recoder.handle_source(u64::MAX, &[1]), Err(DecodeError::OutsideWindow));
    assert_eq!((recoder.rank(), recoder.span()), (0, None));
    let huge = Recoder::new(RecoderConfig { symbol_size_max: SIZE, window: u16::MAX });
    assert_eq!(huge.config().window, MAX_SPAN);
}

// Requirement: N5
#[test]
fn combinations_of_combinations_decode_to_what_was_sent() {
    let mut random = TestRandom::new(5);
    // Under Miri the large ones would take minutes and cover nothing new.
    let counts: &[u16] = if cfg!(miri) { &[1, 5] } else { &[1, 5, 40, 100] };
    for &count in counts {
        let mut encoder = Encoder::new(SIZE, usize::from(count));
        let mut relay = recoder(count);
        let mut decoder = Decoder::new(DecoderConfig::new(SIZE, usize::from(count)));
        for _ in 0..count {
            let length = random.below(SIZE as u64 + 1) as usize;
            let index = encoder.push(&random.bytes(length)).unwrap();
            if random.below(2) == 0 {
                relay.handle_source(index, encoder.symbol(index).unwrap()).unwrap();
            }
        }
        let mut payload = Vec::new();
        while relay.rank() < usize::from(count) {
            let first = random.below(u64::from(count));
            let length = 1 + random.below(u64::from(count) - first) as u16;
            let row = random.bytes(usize::from(length));
            encoder.combine(range(first, length), &row, &mut payload).unwrap();
            relay.handle_combination(range(first, length), &row, &payload).unwrap();
        }
        let mut weights = vec![0; usize::from(count)];
        while decoder.oldest_undecoded() < u64::from(count) {
            generate_uniform(random.next() as u32, &mut weights);
            if weights.iter().any(|&weight| weight != 0) {
                let (span, row, payload) = combined(&relay, &weights);
                decoder.handle_combination(span, &row, &payload).unwrap();
            }
        }
        while let Some((index, contents)) = decoder.poll_decoded() {
            let symbol = encoder.symbol(index).unwrap();
            assert!(contents[..symbol.len()] == *symbol && contents[symbol.len()..].iter().all(|&b| b == 0));
        }
    }
}
