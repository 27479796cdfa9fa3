use super::*;
use ctcp_proto::Ratio;
use ctcp_proto::scheme::CodeLimits;
use ctcp_proto::wire::MissingInterval;

const LIMITS: CodeLimits = CodeLimits { block_size: 256, blocks: 64 };
const TENTH_MORE: Redundancy = Redundancy::fixed(Ratio::TENTH_MORE);
const BULK: Situation = Situation { loss: 0.05, ..Situation::BULK };
const IDLE: Situation = Situation { has_data: false, ..BULK };

/// A code and the symbols that it has sent.
struct Sender {
    code: SparseBlockCode,
    next: SymbolIndex,
}

impl Sender {
    fn new(redundancy: Redundancy, limits: CodeLimits) -> Self {
        Self { code: SparseBlockCode::new(&Setup { redundancy, limits, window_max: 64 }), next: 0 }
    }

    fn send(&mut self, situation: &Situation) -> Option<(Choice, Sent)> {
        // A choice that is not sent must not change the state.
        self.code.choose(situation);
        let choice = self.code.choose(situation)?;
        let index = match choice {
            Choice::NewSymbol => {
                self.next += 1;
                self.next - 1
            }
            Choice::Again(first) | Choice::Combination { first, .. } => first,
        };
        Some((choice, self.code.on_sent(choice, index, situation)))
    }

    fn send_all(&mut self, situation: &Situation) -> Vec<(Choice, Sent)> {
        core::iter::from_fn(|| self.send(situation)).take(1_000).collect()
    }

    /// Reports that the receiver lacks the symbols `missing` of everything sent.
    fn report(&mut self, missing: &[SymbolIndex]) {
        let interval = |&first: &SymbolIndex| MissingInterval { first, end: first + 1, missing: 1 };
        let intervals: Vec<MissingInterval> = missing.iter().map(interval).collect();
        let oldest = missing.first().copied().unwrap_or(self.next);
        self.code.on_feedback(
            Instant::ZERO,
            &Feedback {
                oldest_undecoded: oldest,
                oldest_unseen: oldest,
                intervals: &intervals,
                known_end: self.next,
                reported_end: self.next,
            },
        );
    }
}

fn lengths(sent: &[(Choice, Sent)]) -> Vec<u16> {
    sent.iter().map(|(_, sent)| sent.length).collect()
}

// Requirement: U2, U4
#[test]
fn a_block_gets_its_symbols_then_a_tenth_more_repairs_and_then_the_next_block_begins() {
    let mut sender = Sender::new(TENTH_MORE, LIMITS);
    let sent = sender.send_all(&BULK);
    let (first, rest) = sent.split_at(128);
    assert!(first.iter().all(|(choice, _)| *choice == Choice::NewSymbol));
    let (ahead, rest) = rest.split_at(12);
    assert!(
        ahead.iter().all(|(choice, sent)| matches!(choice, Choice::Combination { .. }) && sent.first < 128)
    );
    // Two blocks, but not a third one.
    assert!(rest[..128].iter().all(|(choice, _)| *choice == Choice::NewSymbol));
    assert_eq!((rest.len(), sender.next), (128 + 12, 256));
}

// Requirement: U1, U2
#[test]
fn repairs_span_the_coding_window_which_doubles_with_each_packet_at_the_end() {
    let mut sender = Sender::new(TENTH_MORE, LIMITS);
    let lossy = Situation { loss: 0.2, ..BULK };
    let sent = sender.send_all(&lossy);
    // 2 sqrt(128 / 0.2) = 50 symbols, and two doublings to the whole block.
    let repairs = &sent[128..140];
    assert_eq!(lengths(repairs), [[50; 10].as_slice(), &[100, 128]].concat());
    let keys: Vec<u16> = repairs
        .iter()
        .filter_map(
            |(choice, _)| if let Choice::Combination { key, .. } = choice { Some(*key) } else { None },
        )
        .collect();
    assert_eq!(keys, (0..12).collect::<Vec<u16>>());
    assert!(repairs.iter().all(|(_, sent)| sent.first + u64::from(sent.length) <= 128));
}

// Requirement: U4
#[test]
fn all_symbols_of_a_block_are_sent_before_its_repairs() {
    let mut sender = Sender::new(TENTH_MORE, LIMITS);
    let sent: Vec<Sent> = (0..64).filter_map(|_| sender.send(&BULK)).map(|(_, sent)| sent).collect();
    sent.iter().for_each(|packet| sender.code.on_acked(packet));
    sender.report(&[5, 20]);
    assert!((0..64).all(|_| sender.send(&BULK).is_some_and(|(choice, _)| choice == Choice::NewSymbol)));
    assert!(sender.send(&BULK).is_some_and(|(choice, _)| choice != Choice::NewSymbol));
}

// Requirement: U1, U4
#[test]
fn losses_are_repaired_by_combinations_that_start_after_the_decoded_symbols() {
    let mut sender = Sender::new(Redundancy::FEEDBACK, LIMITS);
    let sent = sender.send_all(&IDLE);
    assert!(sent.is_empty(), "without data there is nothing to repair");
    let sent = sender.send_all(&BULK);
    assert_eq!(sent.len(), 256);
    sent.iter().for_each(|(_, packet)| sender.code.on_acked(packet));
    sender.report(&[100, 110, 255]);
    let repairs = sender.send_all(&IDLE);
    assert_eq!(repairs.len(), 3);
    assert!(
        repairs[..2].iter().all(|(_, sent)| sent.first >= 100 && sent.first + u64::from(sent.length) <= 128)
    );
    assert!(repairs[2].1.first >= 128);
    // One of the first two was redundant, so the next one spans everything that may be missing.
    repairs.iter().for_each(|(_, packet)| sender.code.on_acked(packet));
    sender.report(&[110]);
    assert_eq!(
        sender.send(&IDLE).map(|(choice, _)| choice),
        Some(Choice::Combination { first: 110, length: 18, key: 2 })
    );
}

// Requirement: U4
#[test]
fn a_third_block_waits_until_the_first_is_decoded() {
    let mut sender = Sender::new(Redundancy::FEEDBACK, LIMITS);
    assert_eq!(sender.send_all(&BULK).len(), 256);
    sender.report(&[130]);
    assert!(sender.send_all(&BULK).iter().filter(|(choice, _)| *choice == Choice::NewSymbol).count() == 128);
}

#[test]
fn the_last_missing_symbol_of_a_block_is_sent_uncoded_and_a_probe_spans_the_whole_block() {
    let mut sender = Sender::new(TENTH_MORE, LIMITS);
    assert_eq!(sender.code.choose_probe(), None);
    for _ in 0..8 {
        sender.send(&BULK);
    }
    assert_eq!(sender.send(&IDLE), None, "a tenth of eight is less than a packet");
    let probe = sender.code.choose_probe();
    assert_eq!(probe, Some(Choice::Combination { first: 0, length: 8, key: 0 }));
    sender.report(&[7]);
    assert_eq!(sender.code.choose_probe(), Some(Choice::Again(7)));
}

#[test]
fn blocks_are_not_larger_than_the_handshake_allows() {
    let mut sender = Sender::new(Redundancy::FEEDBACK, CodeLimits { block_size: 1, blocks: 1 });
    assert_eq!(sender.send_all(&BULK), [(Choice::NewSymbol, Sent::new(0, 1))]);
}

#[test]
fn without_a_ratio_the_measured_loss_decides_how_many_repairs_are_sent_ahead() {
    for (redundancy, packets) in [
        (Redundancy::FEEDBACK, 128),
        (Redundancy::FROM_LOSS, 160),
        (Redundancy::fixed(Ratio::FROM_LOSS), 160),
        (TENTH_MORE, 140),
    ] {
        let mut sender = Sender::new(redundancy, CodeLimits { blocks: 1, ..LIMITS });
        assert_eq!(sender.send_all(&Situation { loss: 0.2, ..BULK }).len(), packets, "{redundancy}");
    }
}
