use core::time::Duration;

use ctcp_base::Instant;

use super::*;
use crate::code::{Prospect, Prospects};
use crate::id::PathId;
use crate::wire::MissingInterval;

const LIMITS: CodeLimits = CodeLimits { block_size: 32, blocks: 4 };
const BULK: Situation = Situation::BULK;
const IDLE: Situation = Situation { has_data: false, ..BULK };

fn code_of(redundancy: Redundancy) -> BlockCode {
    BlockCode::new(&Setup { redundancy, limits: LIMITS, window_max: 64 })
}

fn send(code: &mut BlockCode, next: &mut SymbolIndex, situation: &Situation) -> Option<(Choice, Sent)> {
    let choice = code.choose(situation)?;
    let index = match choice {
        Choice::NewSymbol => {
            *next += 1;
            *next - 1
        }
        Choice::Again(first) | Choice::Combination { first, .. } => first,
    };
    Some((choice, code.on_sent(choice, index, situation)))
}

fn all_missing_from(oldest: SymbolIndex, known_end: SymbolIndex) -> Vec<MissingInterval> {
    vec![MissingInterval { first: oldest, end: known_end, missing: known_end - oldest }]
}

// Requirement: C2, C5
#[test]
fn symbols_are_sent_uncoded_first_and_then_the_repair_for_the_loss() {
    let mut code = code_of(Redundancy::ALGORITHM_3);
    let mut next = 0;
    let lossy = Situation { loss: 0.2, ..BULK };
    let sent: Vec<Choice> =
        (0..48).filter_map(|_| send(&mut code, &mut next, &lossy)).map(|(c, _)| c).collect();
    assert!(sent[..32].iter().all(|&choice| choice == Choice::NewSymbol));
    for (key, choice) in sent[32..40].iter().enumerate() {
        assert_eq!(*choice, Choice::Combination { first: 0, length: 32, key: key as u16 });
    }
    assert_eq!(sent[40], Choice::NewSymbol, "the next block begins when the first has enough in flight");
}

// Requirement: C1, C5
#[test]
fn a_link_without_loss_gets_no_repair() {
    let mut code = code_of(Redundancy::FROM_LOSS);
    let mut next = 0;
    while send(&mut code, &mut next, &BULK).is_some() {}
    assert_eq!(next, 4 * 32, "numblks blocks and nothing else");
    assert_eq!(code.choose(&IDLE), None);
}

// Requirement: C5, U4
#[test]
fn a_loss_is_repaired_once_and_before_new_symbols() {
    let mut code = code_of(Redundancy::FEEDBACK);
    let mut next = 0;
    let sent: Vec<Sent> = (0..40).filter_map(|_| send(&mut code, &mut next, &BULK)).map(|(_, s)| s).collect();
    for packet in &sent[..34] {
        code.on_acked(packet);
    }
    // Symbol 5 was lost, and symbol 33 in the block that is being filled.
    let intervals = [
        MissingInterval { first: 5, end: 6, missing: 1 },
        MissingInterval { first: 33, end: 34, missing: 1 },
    ];
    code.on_feedback(
        Instant::ZERO,
        &Feedback {
            oldest_undecoded: 5,
            oldest_unseen: 5,
            intervals: &intervals,
            known_end: 34,
            reported_end: 34,
        },
    );
    let (first, _) = send(&mut code, &mut next, &BULK).expect("something to send");
    let (second, _) = send(&mut code, &mut next, &BULK).expect("something to send");
    let (third, _) = send(&mut code, &mut next, &BULK).expect("something to send");
    assert_eq!(
        first,
        Choice::Combination { first: 5, length: 27, key: 0 },
        "only what may be missing is combined"
    );
    assert_eq!(second, Choice::Combination { first: 32, length: 8, key: 0 });
    assert_eq!(third, Choice::NewSymbol);
}

// Requirement: C5
#[test]
fn a_run_of_losses_across_two_blocks_counts_for_both() {
    let mut code = code_of(Redundancy::FEEDBACK);
    let mut next = 0;
    let sent: Vec<Sent> = (0..64).filter_map(|_| send(&mut code, &mut next, &BULK)).map(|(_, s)| s).collect();
    sent.iter().for_each(|packet| code.on_acked(packet));
    let intervals = [MissingInterval { first: 30, end: 33, missing: 3 }];
    code.on_feedback(
        Instant::ZERO,
        &Feedback {
            oldest_undecoded: 30,
            oldest_unseen: 30,
            intervals: &intervals,
            known_end: 64,
            reported_end: 64,
        },
    );
    let repairs: Vec<Choice> =
        (0..3).filter_map(|_| send(&mut code, &mut next, &IDLE)).map(|(choice, _)| choice).collect();
    assert_eq!(
        repairs,
        [
            Choice::Combination { first: 30, length: 2, key: 0 },
            Choice::Combination { first: 30, length: 2, key: 1 },
            Choice::Combination { first: 32, length: 32, key: 0 }
        ]
    );
}

// Requirement: C1
#[test]
fn a_decoded_block_is_freed_and_makes_room() {
    let mut code = code_of(Redundancy::FROM_LOSS);
    let mut next = 0;
    while send(&mut code, &mut next, &BULK).is_some() {}
    code.on_feedback(
        Instant::ZERO,
        &Feedback {
            oldest_undecoded: 32,
            oldest_unseen: 32,
            intervals: &all_missing_from(32, 128),
            known_end: 128,
            reported_end: 128,
        },
    );
    assert_eq!(code.choose(&BULK), Some(Choice::NewSymbol));
}

#[test]
fn the_end_of_a_short_transfer_gets_a_few_packets_ahead() {
    let mut code = code_of(Redundancy::FROM_LOSS);
    let mut next = 0;
    for _ in 0..8 {
        send(&mut code, &mut next, &Situation { loss: 0.05, ..BULK });
    }
    let tail = Situation { loss: 0.05, ..IDLE };
    let mut ahead = 0;
    while send(&mut code, &mut next, &tail).is_some() {
        ahead += 1;
    }
    assert_eq!(ahead, 3);
}

#[test]
fn a_probe_repairs_the_oldest_block_even_if_enough_is_in_flight() {
    let mut code = code_of(Redundancy::FEEDBACK);
    let mut next = 0;
    assert_eq!(code.choose_probe(), None);
    send(&mut code, &mut next, &BULK);
    assert_eq!(code.choose_probe(), Some(Choice::Again(0)));
}

/// What each block lacks after a report of 64 symbols, of which one is missing in the first block and `second` in the next. It is complete
/// below `reported_end`.
fn missing_after(code: &mut BlockCode, reported_end: u64, second: MissingInterval) -> Vec<u32> {
    let feedback = Feedback {
        oldest_undecoded: 3,
        oldest_unseen: 3,
        intervals: &[MissingInterval { first: 3, end: 4, missing: 1 }, second],
        known_end: 64,
        reported_end,
    };
    code.on_feedback(Instant::ZERO, &feedback);
    code.blocks.iter().map(|block| block.missing).collect()
}

#[test]
fn in_blocks_beyond_a_truncated_report_each_acknowledged_packet_counts() {
    let mut code = code_of(Redundancy::FEEDBACK);
    let mut next = 0;
    let sent: Vec<Sent> = (0..64).filter_map(|_| send(&mut code, &mut next, &BULK)).map(|(_, s)| s).collect();
    let report = |code: &mut BlockCode, reported_end, second| {
        missing_after(code, reported_end, MissingInterval { first: 40, end: 50, missing: second })
    };
    sent[..50].iter().for_each(|packet| code.on_acked(packet));
    assert_eq!(report(&mut code, 32, 0), [1, 14]);
    // What the report says of a part of a block is a lower bound.
    sent[50..60].iter().for_each(|packet| code.on_acked(packet));
    assert_eq!(report(&mut code, 50, 7), [1, 7]);
    // A complete one is all that counts.
    assert_eq!(report(&mut code, 64, 2), [1, 2]);
    sent[60..].iter().for_each(|packet| code.on_acked(packet));
    assert_eq!(report(&mut code, 64, 2), [1, 2]);
}

#[test]
fn what_arrived_since_a_complete_report_counts_when_the_next_is_truncated() {
    let mut code = code_of(Redundancy::FEEDBACK);
    let mut next = 0;
    let sent: Vec<Sent> = (0..64).filter_map(|_| send(&mut code, &mut next, &BULK)).map(|(_, s)| s).collect();
    let report = |code: &mut BlockCode, reported_end, second| {
        missing_after(code, reported_end, MissingInterval { first: 32, end: 64, missing: second })
    };
    sent[..40].iter().for_each(|packet| code.on_acked(packet));
    assert_eq!(report(&mut code, 64, 24), [1, 24]);
    sent[40..50].iter().for_each(|packet| code.on_acked(packet));
    assert_eq!(report(&mut code, 32, 0), [1, 14]);
    assert_eq!(report(&mut code, 32, 0), [1, 14]);
}

#[test]
fn algorithm_3_sends_no_more_ahead_at_the_end() {
    let mut code = code_of(Redundancy::ALGORITHM_3);
    let mut next = 0;
    for _ in 0..8 {
        send(&mut code, &mut next, &Situation { loss: 0.05, ..BULK });
    }
    assert_eq!(code.choose(&Situation { loss: 0.05, ..IDLE }), None);
}

#[test]
fn the_default_rule_sends_less_ahead_in_the_middle() {
    let mut code = code_of(Redundancy::FROM_LOSS);
    let mut next = 0;
    let lossy = Situation { loss: 0.2, ..BULK };
    let sent: Vec<Choice> =
        (0..40).filter_map(|_| send(&mut code, &mut next, &lossy)).map(|(c, _)| c).collect();
    let ahead = sent.iter().filter(|&&choice| choice != Choice::NewSymbol).count();
    assert_eq!(ahead, 4);
}

const NOTHING_HEARD: Feedback<'_> =
    Feedback { oldest_undecoded: 0, oldest_unseen: 0, intervals: &[], known_end: 0, reported_end: 0 };

#[test]
fn at_the_end_a_faster_path_replaces_what_a_slow_one_delivers_too_late() {
    // Eight symbols, one each millisecond; those of path 1 at 5 to 8 ms.
    let at = |millis| Instant::ZERO + Duration::from_millis(millis);
    let repairs = |(counted, overtaken, is_reported)| {
        let mut prospects = Prospects::NONE;
        let (first, last) = (Instant::ZERO, at(100));
        prospects.push(Prospect { path: PathId(0), loss: 0.0, counted: first, overtaken: last });
        prospects.push(Prospect {
            path: PathId(1),
            loss: 0.0,
            counted: at(counted),
            overtaken: at(overtaken),
        });
        let mut code = code_of(Redundancy::FROM_LOSS);
        let mut next = 0;
        for (path, millis) in [0, 0, 0, 0, 1, 1, 1, 1].into_iter().zip(1..) {
            send(&mut code, &mut next, &Situation { now: at(millis), path: PathId(path), prospects, ..BULK });
        }
        let tail = Situation { now: at(100), prospects, ..IDLE };
        if is_reported {
            code.on_feedback(at(100), &NOTHING_HEARD);
        }
        core::iter::from_fn(|| send(&mut code, &mut next, &tail)).count()
    };
    let overtaken = [(0, 8, true), (0, 6, true), (0, 4, false)].map(repairs);
    assert_eq!(overtaken, [0, 2, 4], "those sent later are overtaken");
    assert_eq!(
        [(6, 8, true), (9, 8, true), (8, 6, true)].map(repairs),
        [1, 4, 4],
        "those sent earlier have arrived or are lost"
    );
    assert_eq!(repairs((9, 8, false)), 0, "unless no report covers the block");
}

#[test]
fn a_block_knows_which_path_carries_its_packets() {
    let mut code = code_of(Redundancy::FEEDBACK);
    let mut next = 0;
    let on = |path| Situation { path: PathId(path), ..BULK };
    let sent: Vec<Sent> = [0, 3, 3, 5]
        .into_iter()
        .filter_map(|path| send(&mut code, &mut next, &on(path)))
        .map(|(_, s)| s)
        .collect();
    let flight = |code: &BlockCode| {
        let flights = code.blocks.iter().flat_map(Block::flights);
        flights.map(|flight| (flight.path, flight.sent_since(Instant::ZERO))).collect::<Vec<_>>()
    };
    assert_eq!(flight(&code), [(PathId(0), 1), (PathId(3), 2), (PathId(5), 1)]);
    code.on_lost(&sent[1], false);
    code.on_expired(&sent[3]);
    assert_eq!(flight(&code), [(PathId(0), 1), (PathId(3), 1)]);
    code.on_acked(&sent[0]);
    assert_eq!(flight(&code), [(PathId(3), 1)]);
}

#[test]
fn a_block_that_no_report_covers_is_repaired_until_one_says_that_it_is_decoded() {
    let mut code = code_of(Redundancy::FROM_LOSS);
    let mut next = 0;
    let sent: Vec<Sent> = (0..4).filter_map(|_| send(&mut code, &mut next, &BULK)).map(|(_, s)| s).collect();
    // The report had no room for its intervals, and what arrived may have added nothing.
    code.on_feedback(BULK.now, &Feedback { known_end: 4, ..NOTHING_HEARD });
    sent.iter().for_each(|sent| code.on_acked(sent));
    assert!(code.choose(&IDLE).is_some());
    let decoded =
        Feedback { oldest_undecoded: 4, oldest_unseen: 4, known_end: 4, reported_end: 4, intervals: &[] };
    code.on_feedback(BULK.now, &decoded);
    assert_eq!(code.choose(&IDLE), None);
}

#[test]
fn what_was_sent_before_the_oldest_undecoded_symbol_does_not_count() {
    let mut code = code_of(Redundancy::FROM_LOSS);
    let mut next = 0;
    let at = |millis, situation: Situation| Situation {
        now: BULK.now + Duration::from_millis(millis),
        loss: 0.05,
        ..situation
    };
    let respond = |code: &mut BlockCode, next: &mut SymbolIndex, millis| {
        for _ in 0..4 {
            send(code, next, &at(millis, BULK));
        }
        core::iter::from_fn(|| send(code, next, &at(millis + 1, IDLE)))
            .map(|(_, sent)| sent)
            .collect::<Vec<_>>()
    };
    let first = respond(&mut code, &mut next, 0);
    assert_eq!(first.len(), 2);
    // All of the first response has arrived, but its repairs are not acknowledged yet.
    let decoded =
        Feedback { oldest_undecoded: 4, oldest_unseen: 4, known_end: 4, reported_end: 4, intervals: &[] };
    code.on_feedback(at(20, BULK).now, &decoded);
    let second = respond(&mut code, &mut next, 30);
    assert_eq!(second.len(), 2);
    first.iter().for_each(|sent| code.on_acked(sent));
    assert_eq!(code.blocks.iter().map(|block| block.in_flight).collect::<Vec<_>>(), [6]);
}

#[test]
fn what_was_given_up_with_all_that_followed_is_sent_once_more_symbol_by_symbol() {
    let mut code = code_of(Redundancy::FEEDBACK);
    let mut next = 0;
    let sent: Vec<Sent> = (0..40).filter_map(|_| send(&mut code, &mut next, &BULK)).map(|(_, s)| s).collect();
    // The receiver has 10 symbols, and moves away from the rest.
    sent[..10].iter().for_each(|packet| code.on_acked(packet));
    code.on_feedback(Instant::ZERO, &heard_until(10, 10, &[]));
    sent[10..].iter().for_each(|packet| code.on_flight_lost(packet, false));
    let again: Vec<Choice> =
        (0..30).filter_map(|_| send(&mut code, &mut next, &BULK)).map(|(c, _)| c).collect();
    assert!(again.iter().copied().eq((10..40).map(Choice::Again)), "{again:?}");
    assert_eq!(code.choose(&BULK), Some(Choice::NewSymbol));
}

#[test]
fn what_is_given_up_again_before_all_of_it_was_sent_once_more_comes_first() {
    let mut code = code_of(Redundancy::FEEDBACK);
    let mut next = 0;
    let mut send_some = |code: &mut BlockCode, count| -> Vec<(Choice, Sent)> {
        (0..count).filter_map(|_| send(code, &mut next, &BULK)).collect()
    };
    let give_up = |code: &mut BlockCode, sent: &[(Choice, Sent)]| {
        sent.iter().for_each(|(_, packet)| code.on_flight_lost(packet, false));
    };
    let first = send_some(&mut code, 32);
    give_up(&mut code, &first);
    let second = send_some(&mut code, 10);
    give_up(&mut code, &second);
    let third = send_some(&mut code, 32).into_iter().map(|(choice, _)| choice);
    assert!(third.eq((0..32).map(Choice::Again)));
}

#[test]
fn a_symbol_that_the_receiver_may_have_is_repaired_by_combinations() {
    let mut code = code_of(Redundancy::FEEDBACK);
    let mut next = 0;
    let sent: Vec<Sent> = (0..32).filter_map(|_| send(&mut code, &mut next, &BULK)).map(|(_, s)| s).collect();
    code.on_feedback(Instant::ZERO, &heard_until(10, 10, &[]));
    sent.iter().for_each(|packet| code.on_flight_lost(packet, false));
    assert_eq!(code.choose(&IDLE), Some(Choice::Again(10)));
    // Some had arrived all the same: which ones of the interval, the report does not say.
    let intervals = [MissingInterval { first: 10, end: 20, missing: 4 }];
    code.on_feedback(Instant::ZERO, &heard_until(10, 32, &intervals));
    assert_eq!(code.choose(&IDLE), Some(Choice::Combination { first: 10, length: 22, key: 0 }));
}

fn heard_until(decoded: SymbolIndex, known_end: SymbolIndex, intervals: &[MissingInterval]) -> Feedback<'_> {
    Feedback {
        oldest_undecoded: decoded,
        oldest_unseen: decoded,
        intervals,
        known_end,
        reported_end: known_end,
    }
}
