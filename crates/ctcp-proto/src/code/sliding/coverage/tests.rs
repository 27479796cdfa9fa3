use super::super::protection::Protection;
use super::*;
use crate::code::redundancy::Redundancy;

/// A margin of nothing: a repair for each missing degree of freedom.
fn bare() -> Margin {
    Protection::new(Redundancy::FEEDBACK).margin(1.0)
}

fn symbols(count: u64) -> Coverage {
    let mut coverage = Coverage::default();
    (0..count).for_each(|index| coverage.on_symbol(index));
    coverage
}

fn source(index: SymbolIndex) -> Sent {
    Sent::new(index, 1)
}

fn report(coverage: &mut Coverage, oldest: SymbolIndex, known_end: SymbolIndex, gaps: &[(u64, u64, u64)]) {
    let intervals: Vec<MissingInterval> =
        gaps.iter().map(|&(first, end, missing)| MissingInterval { first, end, missing }).collect();
    coverage.on_feedback(&Feedback {
        oldest_undecoded: oldest,
        oldest_unseen: oldest,
        intervals: &intervals,
        known_end,
        reported_end: known_end,
    });
}

#[test]
fn only_repairs_that_span_a_gap_count_for_it() {
    let mut coverage = symbols(6);
    coverage.on_repair(&Sent::new(0, 4));
    (6..10).for_each(|index| coverage.on_symbol(index));
    report(&mut coverage, 2, 10, &[(2, 3, 1)]);
    assert!(coverage.short(bare()).is_none(), "the repair spans symbol 2");
    report(&mut coverage, 5, 10, &[(5, 6, 1)]);
    assert!(coverage.short(bare()).is_some(), "the repair ends before symbol 5");
    coverage.on_repair(&Sent::new(5, 5));
    assert!(coverage.short(bare()).is_none());
}

#[test]
fn a_repair_serves_one_gap_only() {
    let mut coverage = symbols(10);
    coverage.on_repair(&Sent::new(0, 10));
    report(&mut coverage, 2, 10, &[(2, 3, 1), (7, 8, 1)]);
    assert!(coverage.short(bare()).is_some());
    coverage.on_repair(&Sent::new(0, 4));
    assert!(coverage.short(bare()).is_none(), "the shorter one serves the older gap");
}

#[test]
fn repairs_of_the_older_gap_do_not_help_the_newer_one() {
    let mut coverage = symbols(10);
    (0..2).for_each(|_| coverage.on_repair(&Sent::new(0, 4)));
    report(&mut coverage, 2, 10, &[(2, 3, 1), (7, 8, 1)]);
    assert!(coverage.short(bare()).is_some());
}

#[test]
fn a_deficit_is_not_repaired_twice_while_its_repair_is_in_flight() {
    let mut coverage = symbols(10);
    report(&mut coverage, 2, 10, &[(2, 3, 1)]);
    assert!(coverage.short(bare()).is_some());
    let repair = Sent::new(2, 8);
    coverage.on_repair(&repair);
    report(&mut coverage, 2, 10, &[(2, 3, 1)]);
    assert!(coverage.short(bare()).is_none());
    coverage.on_gone(&repair);
    assert!(coverage.short(bare()).is_some(), "the repair was lost");
}

#[test]
fn lost_symbols_count_before_the_receiver_knows_of_them() {
    let mut coverage = symbols(10);
    report(&mut coverage, 8, 8, &[]);
    coverage.on_gone(&source(9));
    assert!(coverage.short(bare()).is_some());
}

#[test]
fn a_gap_waits_for_the_loss_of_its_packet_on_a_path_that_reorders() {
    let mut coverage = symbols(10);
    report(&mut coverage, 2, 4, &[(2, 3, 1)]);
    assert!(coverage.short(bare()).is_some());
    coverage.on_acked(&source(2));
    report(&mut coverage, 5, 7, &[(5, 6, 1)]);
    assert!(coverage.short(bare()).is_none(), "it may be late, too");
    coverage.on_gone(&source(5));
    assert!(coverage.short(bare()).is_some());
}

#[test]
fn the_second_fate_of_a_symbol_is_that_of_its_repetition() {
    let mut coverage = symbols(3);
    coverage.on_gone(&source(1));
    coverage.on_repair(&source(1));
    report(&mut coverage, 1, 3, &[(1, 2, 1)]);
    assert!(coverage.short(bare()).is_none());
    coverage.on_gone(&source(1));
    assert!(coverage.short(bare()).is_some());
}

#[test]
fn a_repair_of_one_symbol_is_forgotten_whichever_path_is_acknowledged_first() {
    let mut coverage = symbols(1);
    let repair = Sent { path: crate::id::PathId(1), ..source(0) };
    coverage.on_repair(&repair);
    coverage.on_acked(&repair);
    coverage.on_acked(&source(0));
    assert!(coverage.repairs.is_empty(), "{:?}", coverage.repairs);
}
