use core::time::Duration;

use ctcp_base::Instant;

use super::*;
use crate::code::{Arrived, SymbolSink, SymbolSource};

const NOW: Instant = Instant::from_secs(1);
const DEADLINE: Duration = Duration::from_millis(100);
const SYMBOL: usize = 1_000;

/// Fills the next symbol.
fn symbol(outgoing: &mut Outgoing, index: u64) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    outgoing.fill_symbol(index, SYMBOL, &mut out).then_some(out)
}

fn all_symbols(outgoing: &mut Outgoing) -> Vec<Vec<u8>> {
    (0..).map_while(|index| symbol(outgoing, index)).collect()
}

fn deliver(incoming: &mut Incoming, index: usize, symbol: &[u8], is_repaired: bool) {
    let arrived = Arrived { index: index as u64, is_repaired };
    incoming.on_symbol_decoded(symbol, arrived).expect("well-formed");
}

fn message(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 7 + index / 256) as u8).collect()
}

#[test]
fn messages_of_all_sizes_arrive_whole_in_any_order_of_symbols() {
    let mut outgoing = Outgoing::default();
    let sizes = [0, 1, 500, 499, 2_000, 3, crate::wire::MESSAGE_SIZE_MAX, 10];
    for size in sizes {
        outgoing.push(NOW, &message(size), NOW + DEADLINE).expect("there is room");
    }
    let symbols = all_symbols(&mut outgoing);
    assert!(!outgoing.has_data() && outgoing.memory() == 0);
    let mut incoming = Incoming::new();
    for (index, symbol) in symbols.iter().enumerate().rev() {
        deliver(&mut incoming, index, symbol, index == 0);
    }
    assert!(incoming.poll_news() && !incoming.poll_news());
    let mut received: Vec<Vec<u8>> = core::iter::from_fn(|| incoming.pop()).collect();
    received.sort_by_key(Vec::len);
    let mut sent: Vec<Vec<u8>> = sizes.into_iter().map(message).collect();
    sent.sort_by_key(Vec::len);
    assert_eq!(received, sent);
    let counts = incoming.counts();
    assert_eq!((counts.received, counts.numbers), (8, 8));
    // Those of the first symbol.
    assert_eq!(counts.repaired, 3);
    assert_eq!(incoming.memory(), 0);
}

#[test]
fn a_message_is_cut_to_fill_a_symbol_only_if_it_does_not_touch_more_symbols() {
    let parts_of = |size: usize| {
        let mut outgoing = Outgoing::default();
        for _ in 0..100 {
            outgoing.push(NOW, &message(size), NOW + DEADLINE).expect("there is room");
        }
        let symbols = all_symbols(&mut outgoing);
        let mut parts = [0; 100];
        for symbol in &symbols {
            for fragment in crate::wire::fragments_in_symbol(symbol).expect("well-formed") {
                parts[fragment.expect("well-formed").message as usize] += 1;
            }
        }
        (symbols.len(), parts.into_iter().max())
    };
    assert_eq!(parts_of(300), (34, Some(1)));
    assert_eq!(parts_of(600), (100, Some(1)));
    assert_eq!(parts_of(960), (100, Some(1)));
    // The end of one and the begin of the next share a symbol.
    assert_eq!(parts_of(1_300), (134, Some(2)));
    assert_eq!(parts_of(1_900), (200, Some(2)));
    assert_eq!(parts_of(5_500), (600, Some(6)));
}

#[test]
fn a_message_longer_than_allowed_and_one_too_many_are_refused() {
    let mut outgoing = Outgoing::default();
    let refused = outgoing.push(NOW, &message(crate::wire::MESSAGE_SIZE_MAX + 1), NOW + DEADLINE);
    assert_eq!(refused, Err(MessageError::TooLong));
    let long = message(60_000);
    let count = (0..).take_while(|_| outgoing.push(NOW, &long, NOW + DEADLINE).is_ok()).count();
    assert_eq!(count, QUEUE_MAX / (60_000 + MESSAGE_COST));
    assert_eq!(outgoing.push(NOW, &long, NOW + DEADLINE), Err(MessageError::QueueFull));
    // Those that have expired make room.
    let later = NOW + DEADLINE;
    assert_eq!(outgoing.push(later, &long, later + DEADLINE), Ok(()));
    assert_eq!(outgoing.counts().expired, count as u64);
}

#[test]
fn what_expires_before_it_is_sent_is_never_sent() {
    let mut outgoing = Outgoing::default();
    outgoing.push(NOW, b"late", NOW).expect("there is room");
    outgoing.push(NOW, b"long", NOW + 2 * DEADLINE).expect("there is room");
    outgoing.push(NOW, b"short", NOW + DEADLINE).expect("there is room");
    assert_eq!(outgoing.expire(NOW), None);
    assert_eq!(outgoing.expire(NOW + DEADLINE), None);
    assert_eq!(outgoing.counts().expired, 1, "and the short one when its turn comes");
    let mut incoming = Incoming::new();
    deliver(&mut incoming, 0, &symbol(&mut outgoing, 0).expect("one message is left"), false);
    assert_eq!(incoming.pop(), Some(b"long".to_vec()));
    assert_eq!(symbol(&mut outgoing, 1), None);
    assert_eq!((outgoing.counts().expired, outgoing.memory()), (2, 0));
}

#[test]
fn a_full_queue_makes_room_for_what_has_not_expired() {
    let mut outgoing = Outgoing::default();
    let (data, long) = ([0; 1_000], NOW + 4 * DEADLINE);
    outgoing.push(NOW, b"long", long).expect("there is room");
    while outgoing.push(NOW, &data, NOW + DEADLINE).is_ok() {}
    assert_eq!(outgoing.push(NOW + DEADLINE, &data, long), Ok(()), "all but the first have expired");
    assert_eq!(outgoing.waiting(), 2);
}

#[test]
fn a_symbol_is_given_up_when_all_messages_in_it_have_expired() {
    let mut outgoing = Outgoing::default();
    outgoing.push(NOW, b"first", NOW + 2 * DEADLINE).expect("there is room");
    outgoing.push(NOW, b"second", NOW + DEADLINE).expect("there is room");
    symbol(&mut outgoing, 0).expect("both");
    outgoing.push(NOW, b"third", NOW + DEADLINE).expect("there is room");
    symbol(&mut outgoing, 1).expect("the third");
    // The third has expired, but is not given up before the symbol below it.
    assert_eq!(outgoing.expire(NOW + DEADLINE), None);
    assert_eq!(outgoing.expire(NOW + 2 * DEADLINE), Some(2));
    assert_eq!(outgoing.expire(NOW + 2 * DEADLINE), None);
    assert_eq!((outgoing.counts().unconfirmed, outgoing.counts().expired), (3, 0));
}

#[test]
fn symbols_that_the_peer_has_are_not_given_up() {
    let mut outgoing = Outgoing::default();
    for index in 0..3 {
        outgoing.push(NOW, b"x", NOW + DEADLINE).expect("there is room");
        symbol(&mut outgoing, index).expect("a message");
    }
    outgoing.on_peer_decoded_below(3);
    assert_eq!(outgoing.expire(NOW + DEADLINE), None);
    assert_eq!(outgoing.counts().unconfirmed, 0);
}

#[test]
fn fragments_of_a_message_that_was_given_up_are_dropped() {
    let mut outgoing = Outgoing::default();
    outgoing.push(NOW, &message(3_000), NOW + DEADLINE).expect("there is room");
    outgoing.push(NOW, b"next", NOW + DEADLINE).expect("there is room");
    let symbols = all_symbols(&mut outgoing);
    let mut incoming = Incoming::new();
    for (index, symbol) in symbols.iter().enumerate().filter(|(index, _)| *index != 1) {
        deliver(&mut incoming, index, symbol, false);
    }
    assert_eq!(incoming.pop(), Some(b"next".to_vec()));
    assert!(incoming.memory() >= 3_000);
    // The part in symbol 2 may be followed by another one, until symbol 3 is settled.
    incoming.settle_before(4);
    assert!(incoming.memory() >= 3_000);
    incoming.settle_before(5);
    assert_eq!((incoming.memory(), incoming.pop()), (0, None));
    assert_eq!((incoming.counts().numbers, incoming.counts().received), (2, 1));
}

/// A symbol with a part of a message of the greatest length.
fn part(number: u64) -> Vec<u8> {
    let mut builder = crate::wire::FragmentBuilder::reusing(Vec::new(), SYMBOL);
    let (total, data) = (crate::wire::MESSAGE_SIZE_MAX, &[1; 10][..]);
    builder.push(crate::wire::Fragment { message: number, total, offset: 5, data });
    builder.finish()
}

#[test]
fn fragments_that_never_complete_take_bounded_memory() {
    let mut incoming = Incoming::new();
    for number in 0..1_000 {
        deliver(&mut incoming, number as usize, &part(number), false);
        assert!(incoming.memory() <= QUEUE_MAX as u64);
    }
}

#[test]
fn messages_keep_within_the_memory_that_there_is() {
    let mut outgoing = Outgoing::default();
    let mut incoming = Incoming::new();
    incoming.set_room(200_000);
    for number in 0..1_000 {
        outgoing.push(NOW, &[number as u8; 900], NOW + DEADLINE).expect("there is room");
        deliver(&mut incoming, number, &symbol(&mut outgoing, number as u64).expect("a message"), false);
        deliver(&mut incoming, number, &part(2_000 + number as u64), false);
        // Each queue keeps its last message.
        assert!(incoming.memory() <= 270_000, "{}", incoming.memory());
    }
    let newest = core::iter::from_fn(|| incoming.pop()).last();
    assert_eq!(newest, Some(vec![999_u32 as u8; 900]));
}

#[test]
fn a_symbol_with_parts_of_many_messages_is_a_fault() {
    let parts = |count: u64| {
        let mut builder = crate::wire::FragmentBuilder::reusing(Vec::new(), SYMBOL);
        for message in 0..count {
            builder.push(crate::wire::Fragment { message, total: 60_000, offset: 0, data: b"a" });
        }
        let arrived = Arrived { index: 0, is_repaired: false };
        Incoming::new().on_symbol_decoded(&builder.finish(), arrived)
    };
    assert!(parts(2).is_ok());
    assert!(parts(3).is_err());
}

#[test]
fn messages_that_nobody_reads_take_bounded_memory_and_the_oldest_go() {
    let mut outgoing = Outgoing::default();
    let mut incoming = Incoming::new();
    for index in 0..3_000_u64 {
        outgoing.push(NOW, &[index as u8; 900], NOW + DEADLINE).expect("there is room");
        deliver(&mut incoming, index as usize, &symbol(&mut outgoing, index).expect("a message"), false);
        assert!(incoming.memory() <= QUEUE_MAX as u64);
    }
    let unread = incoming.counts().unread;
    assert!(unread > 1_000);
    assert_eq!(incoming.pop(), Some(vec![unread as u8; 900]));
}

#[test]
fn fragments_that_disagree_are_a_fault() {
    let mut incoming = Incoming::new();
    let mut fragment = |total| {
        let mut builder = crate::wire::FragmentBuilder::reusing(Vec::new(), SYMBOL);
        builder.push(crate::wire::Fragment { message: 0, total, offset: 0, data: b"abc" });
        let arrived = Arrived { index: 0, is_repaired: false };
        incoming.on_symbol_decoded(&builder.finish(), arrived)
    };
    assert!(fragment(10).is_ok());
    assert!(fragment(11).is_err());
}

/// A message that fits a symbol of its own is not divided to fill the one before.
#[test]
fn a_message_that_fits_one_symbol_is_not_divided() {
    for size in [SYMBOL - 20, SYMBOL - 12, SYMBOL - 7] {
        let mut outgoing = Outgoing::default();
        for size in [20, size, 20] {
            outgoing.push(NOW, &message(size), NOW + DEADLINE).expect("there is room");
        }
        let symbols = all_symbols(&mut outgoing);
        let mut incoming = Incoming::new();
        deliver(&mut incoming, 1, &symbols[1], false);
        assert_eq!(incoming.pop().map(|whole| whole.len()), Some(size), "of {} symbols", symbols.len());
    }
}
