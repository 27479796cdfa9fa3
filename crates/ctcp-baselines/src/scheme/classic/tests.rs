use super::*;
use crate::rule::{end_of_transmission, pseudo_block};
use ctcp_proto::Ratio;
use ctcp_proto::scheme::CodeLimits;

const SITUATION: Situation = Situation { window: 100.0, ..Situation::BULK };

fn code(redundancy: Redundancy, block_size: u16, source: Source) -> Classic {
    Classic::new(
        &Setup { redundancy, limits: CodeLimits { block_size, blocks: 1 }, window_max: 1000 },
        source,
    )
}

fn coded(redundancy: Redundancy) -> Classic {
    code(redundancy, 256, Source::coded(Reading::TcpNc))
}

fn ratio(value: f64) -> Ratio {
    Ratio::new(value).expect("in range")
}

/// Sends what the code chooses until it wants another new symbol. Returns the combinations.
fn combinations(code: &mut Classic, situation: &Situation) -> Vec<(SymbolIndex, u16)> {
    let mut sent = Vec::new();
    while let Some(choice) = code.choose(situation) {
        let Choice::Combination { first, length, .. } = choice else { break };
        code.on_sent(choice, first, situation);
        sent.push((first, length));
    }
    sent
}

fn add_symbol(code: &mut Classic) -> Vec<(SymbolIndex, u16)> {
    assert_eq!(code.choose(&SITUATION), Some(Choice::NewSymbol));
    let index = code.sequence.next();
    code.on_sent(Choice::NewSymbol, index, &SITUATION);
    combinations(code, &SITUATION)
}

fn acknowledge(code: &mut Classic, oldest_unseen: SymbolIndex, known_end: SymbolIndex) {
    let feedback =
        Feedback { oldest_undecoded: 0, oldest_unseen, intervals: &[], known_end, reported_end: known_end };
    code.on_feedback(Instant::from_millis(1), &feedback);
}

// Requirement: N2
#[test]
fn each_symbol_earns_r_combinations_of_all_that_is_unseen() {
    let mut code = coded(Redundancy::fixed(ratio(1.5)));
    assert_eq!(add_symbol(&mut code), [(0, 1)]);
    assert_eq!(add_symbol(&mut code), [(0, 2), (0, 2)]);
    acknowledge(&mut code, 1, 2);
    assert_eq!(add_symbol(&mut code), [(1, 2)]);
    assert!(!code.sends_symbols());
}

#[test]
fn without_a_ratio_the_measured_loss_decides() {
    let mut code = coded(Redundancy::FROM_LOSS);
    let lossy = Situation { loss: 0.5, ..SITUATION };
    assert_eq!(code.choose(&lossy), Some(Choice::NewSymbol));
    code.on_sent(Choice::NewSymbol, 0, &lossy);
    assert_eq!(combinations(&mut code, &lossy), [(0, 1), (0, 1)]);
}

#[test]
fn retransmitted_symbols_earn_as_much_as_new_ones() {
    let mut code = coded(Redundancy::fixed(ratio(2.0)));
    assert_eq!(add_symbol(&mut code).len(), 2);
    assert_eq!(add_symbol(&mut code).len(), 2);
    code.handle_timeout(Instant::from_secs(1));
    let narrow = Situation { window: 1.0, ..SITUATION };
    assert_eq!(combinations(&mut code, &narrow), [(0, 2), (0, 2)]);
    assert_eq!(code.choose(&narrow), None);
}

// Requirement: K1, K2
#[test]
fn the_end_and_each_pseudo_block_add_the_combinations_that_the_receiver_lacks() {
    for (redundancy, at_hundred, at_end) in [
        (Redundancy::fixed(ratio(1.0)), 1, 1),
        (end_of_transmission(ratio(1.0)), 1, 8),
        (pseudo_block(ratio(1.0)), 8, 8),
    ] {
        let mut code = coded(redundancy);
        for _ in 0..98 {
            assert_eq!(add_symbol(&mut code).len(), 1);
        }
        // Of 98 symbols it has heard of, the receiver has seen 91.
        acknowledge(&mut code, 91, 98);
        assert_eq!(add_symbol(&mut code).len(), 1);
        assert_eq!(add_symbol(&mut code).len(), at_hundred, "{redundancy}");
        code.on_sent(Choice::NewSymbol, 100, &SITUATION);
        code.on_end();
        assert_eq!(combinations(&mut code, &SITUATION).len(), at_end, "{redundancy}");
    }
}

#[test]
fn nothing_is_due_once_all_is_seen() {
    let mut code = coded(end_of_transmission(ratio(1.0)));
    assert_eq!(add_symbol(&mut code).len(), 1);
    code.on_sent(Choice::NewSymbol, 1, &SITUATION);
    acknowledge(&mut code, 2, 2);
    assert_eq!(combinations(&mut code, &SITUATION), []);
    assert_eq!(code.choose(&Situation { has_data: false, ..SITUATION }), None);
}

#[test]
fn without_coding_symbols_are_sent_uncoded() {
    let mut code = code(Redundancy::FEEDBACK, 256, Source::plain(Reading::TcpNc));
    assert!(code.sends_symbols());
    assert_eq!(code.choose(&SITUATION), Some(Choice::NewSymbol));
    code.on_sent(Choice::NewSymbol, 0, &SITUATION);
    assert_eq!(code.choose(&SITUATION), Some(Choice::NewSymbol));
    code.handle_timeout(Instant::from_secs(1));
    assert_eq!(code.choose(&SITUATION), Some(Choice::Again(0)));
}

// Requirement: K1
#[test]
fn duplicates_are_ignored_as_in_the_later_paper() {
    for (reading, repairs) in [(Reading::TcpNc, 1), (Reading::EotPb, 0)] {
        let mut code = code(Redundancy::fixed(ratio(1.0)), 256, Source::coded(reading));
        for _ in 0..5 {
            add_symbol(&mut code);
        }
        for _ in 0..4 {
            acknowledge(&mut code, 1, 2);
        }
        assert_eq!(combinations(&mut code, &SITUATION).len(), repairs, "{reading:?}");
    }
}

// Requirement: N2
#[test]
fn no_more_symbols_are_in_flight_than_a_combination_spans() {
    let mut code = code(Redundancy::fixed(ratio(1.0)), 3, Source::coded(Reading::TcpNc));
    for length in 1..=3 {
        assert_eq!(add_symbol(&mut code), [(0, length)]);
    }
    assert_eq!(code.choose(&SITUATION), None);
    acknowledge(&mut code, 1, 3);
    assert_eq!(add_symbol(&mut code), [(1, 3)]);
}

// Requirement: K1
#[test]
fn an_estimating_source_counts_symbols_older_than_a_round_trip() {
    let source = Source::coded(Reading::EotPb).estimating();
    let mut code = code(end_of_transmission(ratio(1.0)), 256, source);
    let at = |millis| Situation { now: Instant::from_millis(millis), ..SITUATION };
    let send = |code: &mut Classic, millis| {
        assert_eq!(code.choose(&at(millis)), Some(Choice::NewSymbol));
        code.on_sent(Choice::NewSymbol, code.sequence.next(), &at(millis));
        combinations(code, &at(millis)).len()
    };
    // The first symbol gives the round-trip time. Of the next three, one is acknowledged.
    assert_eq!(send(&mut code, 1_000), 1);
    let seen = |oldest_unseen| Feedback {
        oldest_undecoded: 0,
        oldest_unseen,
        intervals: &[],
        known_end: 99,
        reported_end: 0,
    };
    code.on_feedback(Instant::from_millis(1_100), &seen(1));
    for millis in [1_200, 1_210, 1_220] {
        assert_eq!(send(&mut code, millis), 1);
    }
    code.on_feedback(Instant::from_millis(1_300), &seen(2));
    assert_eq!(send(&mut code, 1_315), 1);
    code.on_end();
    assert_eq!(
        combinations(&mut code, &at(1_315)).len(),
        1,
        "only the symbol of 1,210 ms is older than a round trip"
    );
}
