use core::time::Duration;
use std::collections::VecDeque;

use super::repair_state::TAIL_PART;
use super::*;
use crate::code::CodeLimits;
use crate::code::plug::{RealDecoder, SymbolDecoder};
use crate::code::redundancy::Redundancy;
use crate::wire::MissingInterval;
use ctcp_base::{Prng, Probability};
use ctcp_coding::{DecoderConfig, SymbolRange};
use proptest::prelude::*;

const SETUP: Setup = Setup {
    redundancy: Redundancy::FROM_LOSS,
    limits: CodeLimits { block_size: 32, blocks: 4 },
    window_max: 64,
};

/// One symbol, and what the code sends after it.
fn one_symbol(code: &mut SlidingCode, next: &mut SymbolIndex, now: Instant) -> Vec<Sent> {
    let (busy, idle) =
        (Situation { now, ..Situation::BULK }, Situation { now, has_data: false, ..Situation::BULK });
    while let Some(choice) = code.choose(&busy).filter(|&choice| choice != Choice::NewSymbol) {
        code.on_sent(choice, first_of(choice), &busy);
    }
    let mut all = vec![code.on_sent(Choice::NewSymbol, *next, &busy)];
    *next += 1;
    while let Some(choice) = code.choose(&idle) {
        all.push(code.on_sent(choice, first_of(choice), &idle));
    }
    all
}

fn first_of(choice: Choice) -> SymbolIndex {
    match choice {
        Choice::Again(first) | Choice::Combination { first, .. } => first,
        Choice::NewSymbol => unreachable!("the caller has no data"),
    }
}

#[test]
fn repairs_lie_between_the_symbols_and_span_what_may_be_missing() {
    let (mut code, mut next) = (SlidingCode::new(&SETUP), 0);
    let sent: Vec<Vec<Sent>> =
        (0..30).map(|index| one_symbol(&mut code, &mut next, Instant::from_millis(3 * index))).collect();
    assert!(sent.iter().all(|packets| packets.len() <= 2), "never two repairs in a row");
    for (index, packets) in sent.iter().enumerate() {
        for repair in &packets[1..] {
            assert_eq!((repair.first, u64::from(repair.length)), (0, index as u64 + 1));
        }
    }
    let repairs = sent.iter().filter(|packets| packets.len() == 2).count();
    assert!((9..=12).contains(&repairs), "{repairs}");
}

#[test]
fn a_repair_starts_at_what_the_receiver_lacks() {
    let (mut code, mut next) = (SlidingCode::new(&SETUP), 0);
    (0..10).for_each(|_| drop(one_symbol(&mut code, &mut next, Instant::ZERO)));
    let gap = [MissingInterval { first: 7, end: 8, missing: 1 }];
    let feedback =
        Feedback { oldest_undecoded: 7, oldest_unseen: 7, intervals: &gap, known_end: 10, reported_end: 10 };
    code.on_feedback(Instant::ZERO, &feedback);
    assert!(matches!(code.choose_probe(), Some(Choice::Combination { first: 7, length: 3, .. })));
}

#[test]
fn the_last_symbols_get_a_repair_when_none_follows() {
    let (mut code, mut next) = (SlidingCode::new(&SETUP), 0);
    assert_eq!(one_symbol(&mut code, &mut next, Instant::ZERO).len(), 1);
    let due = code.next_repair().expect("symbol 0 has no repair");
    assert_eq!(due, Instant::ZERO + Situation::BULK.rtt / TAIL_PART);
    let at = |now| Situation { now, has_data: false, ..Situation::BULK };
    assert_eq!(code.choose(&at(due.saturating_back(Duration::from_nanos(1)))), None);
    assert_eq!(code.choose(&at(due)), Some(Choice::Again(0)));
    code.on_sent(Choice::Again(0), 0, &at(due));
    assert_eq!((code.next_repair(), code.choose(&at(due))), (None, None));
}

/// Sends a packet through a path that loses and reorders, and reports.
struct Path {
    prng: Prng,
    loss: Probability,
    late: Probability,
    packets: VecDeque<(Sent, u16)>,
    decoder: RealDecoder,
}

impl Path {
    fn new(seed: u64, loss: f64, late: f64) -> Self {
        let [loss, late] = [loss, late].map(|share| Probability::new(share).expect("a share"));
        let decoder = RealDecoder::new(DecoderConfig::new(16, WINDOW as usize));
        Self { prng: Prng::new(seed), loss, late, packets: VecDeque::new(), decoder }
    }

    /// One packet arrives or is lost. Symbols are empty: only what can be decoded counts.
    fn step(&mut self, code: &mut SlidingCode, now: Instant) {
        if self.packets.len() > 1 && self.prng.chance(self.late) {
            self.packets.swap(0, 1);
        }
        let Some((sent, key)) = self.packets.pop_front() else { return };
        if self.prng.chance(self.loss) {
            return code.on_lost(&sent, false);
        }
        let arrival = match SymbolRange::new(sent.first, sent.length) {
            Some(range) if sent.length > 1 => self.decoder.handle_keyed(range, 15, key, &[]),
            _ => self.decoder.handle_source(sent.first, &[]),
        };
        arrival.expect("in the window");
        while self.decoder.poll_decoded().is_some() {}
        let mut intervals = Vec::new();
        let reported_end = self.decoder.undecodable_intervals(8, &mut intervals);
        code.on_acked(&sent);
        let feedback = Feedback {
            oldest_undecoded: self.decoder.oldest_undecoded(),
            oldest_unseen: self.decoder.oldest_unseen(),
            intervals: &intervals,
            known_end: self.decoder.known_end(),
            reported_end,
        };
        code.on_feedback(now, &feedback);
    }
}

const WINDOW: u64 = 32;

proptest! {
    #[test]
    fn every_symbol_is_decoded_whatever_is_lost_or_late(
        seed in any::<u64>(),
        loss in 0.0..0.6f64,
        late in 0.0..0.3f64,
        symbols in 1..100u64,
    ) {
        let (mut code, mut next) = (SlidingCode::new(&SETUP), 0);
        let mut path = Path::new(seed, loss, late);
        for step in 0..4_000 {
            let oldest = path.decoder.oldest_undecoded();
            if oldest == symbols {
                break;
            }
            let now = Instant::from_millis(step);
            let situation =
                Situation { now, has_data: next < symbols, has_room: next < oldest + WINDOW, ..Situation::BULK };
            let choice = code.choose(&situation);
            let choice = choice.or_else(|| path.packets.is_empty().then(|| code.choose_probe()).flatten());
            if let Some(choice) = choice {
                let index = if choice == Choice::NewSymbol { next } else { first_of(choice) };
                let key = if let Choice::Combination { key, .. } = choice { key } else { 0 };
                next += u64::from(choice == Choice::NewSymbol);
                path.packets.push_back((code.on_sent(choice, index, &situation), key));
            }
            if choice.is_none() || path.packets.len() >= 8 {
                path.step(&mut code, now);
            }
        }
        prop_assert_eq!(path.decoder.oldest_undecoded(), symbols);
    }
}

#[test]
fn a_gap_far_behind_the_oldest_one_is_reached_by_its_repair() {
    let setup =
        Setup { redundancy: Redundancy::FEEDBACK, limits: CodeLimits { block_size: 8, blocks: 4 }, ..SETUP };
    let (mut code, mut next) = (SlidingCode::new(&setup), 0);
    (0..40).for_each(|_| drop(one_symbol(&mut code, &mut next, Instant::ZERO)));
    let gaps = [(0, 1), (30, 31)].map(|(first, end)| MissingInterval { first, end, missing: 1 });
    let feedback =
        Feedback { oldest_undecoded: 0, oldest_unseen: 0, intervals: &gaps, known_end: 40, reported_end: 40 };
    code.on_feedback(Instant::ZERO, &feedback);
    let idle = Situation { has_data: false, ..Situation::BULK };
    let mut repairs = Vec::new();
    while let Some(choice) = code.choose(&idle) {
        repairs.push(code.on_sent(choice, first_of(choice), &idle));
        assert!(repairs.len() < 10, "{repairs:?}");
    }
    for (first, end) in [(0, 1), (30, 31)] {
        let spans = |sent: &&Sent| sent.first <= first && end <= sent.first + u64::from(sent.length);
        assert!(repairs.iter().any(|sent| spans(&sent)), "{repairs:?}");
    }
}
