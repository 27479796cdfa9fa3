use super::*;

const WINDOW: f64 = 50.0;

/// Processes packets from number `from` on, with every `every`-th lost (0: none). Returns the verdicts and the next number.
fn feed(origin: &mut LossOrigin, from: u64, count: u64, every: u64, is_calm: bool) -> (Vec<Verdict>, u64) {
    feed_with(0.0, origin, from, count, every, is_calm)
}

/// The same with an average over so many packets.
fn feed_with(
    memory: f64,
    origin: &mut LossOrigin,
    from: u64,
    count: u64,
    every: u64,
    is_calm: bool,
) -> (Vec<Verdict>, u64) {
    let verdicts = (from..from + count)
        .filter_map(|number| {
            let is_lost = every > 0 && number.is_multiple_of(every);
            origin.on_fate(
                Fate { now: Instant::from_millis(number), number: PacketNumber(number), is_lost, is_calm },
                Doubt { at_once: 2, do_singles_count: true },
                memory,
            )
        })
        .collect();
    (verdicts, from + count)
}

/// Runs an experiment in which every `every`-th packet is lost.
fn experiment(origin: &mut LossOrigin, from: u64, every: u64) -> (Vec<Verdict>, u64) {
    origin.begin(PacketNumber(from - 1), WINDOW);
    let mut count = 1;
    while !origin.has_enough(PacketNumber(from + count)) {
        count += 1;
    }
    origin.stop_sending(PacketNumber(from + count));
    feed(origin, from, count + 2, every, true)
}

#[test]
fn loss_with_a_long_queue_is_never_innocent() {
    let mut origin = LossOrigin::default();
    feed(&mut origin, 0, 10_000, 2, false);
    assert!(origin.innocent(WINDOW) < 1e-9);
    assert!(!origin.is_suspicious(Instant::from_secs(100), WINDOW));
}

#[test]
fn calm_loss_counts_up_to_the_margin_until_an_experiment_proves_it() {
    let mut origin = LossOrigin::default();
    let (_, next) = feed(&mut origin, 1, 1_000, 5, true);
    assert!(origin.innocent(WINDOW) <= MARGIN);
    let is_suspicious = |window| origin.is_suspicious(Instant::from_millis(next), window);
    assert!(is_suspicious(WINDOW) && is_suspicious(8.0));
    assert!(!is_suspicious(7.9), "an experiment would take more than four round trips");
    let (verdicts, _) = experiment(&mut origin, next, 5);
    assert_eq!(verdicts, [Verdict::Innocent]);
    assert!((0.17..0.25).contains(&origin.innocent(WINDOW)), "{}", origin.innocent(WINDOW));
}

#[test]
fn loss_that_disappears_while_yielding_is_congestion_and_not_tested_again_soon() {
    let mut origin = LossOrigin::default();
    let (_, next) = feed(&mut origin, 1, 1_000, 5, true);
    let (verdicts, next) = experiment(&mut origin, next, 0);
    assert_eq!(verdicts, [Verdict::Ours]);
    assert!(origin.innocent(WINDOW) < 0.01);
    let (_, next) = feed(&mut origin, next, 1_000, 5, true);
    assert!(!origin.is_suspicious(Instant::from_millis(next), WINDOW));
    assert!(origin.is_suspicious(Instant::from_millis(next) + REST, WINDOW));
    assert!(origin.innocent(WINDOW) <= 0.01 + MARGIN);
}

#[test]
fn a_lower_loss_counts_at_once() {
    let mut origin = LossOrigin::default();
    let (_, next) = feed(&mut origin, 1, 1_000, 5, true);
    let (_, next) = experiment(&mut origin, next, 5);
    feed(&mut origin, next, 1_000, 0, true);
    assert!(origin.innocent(WINDOW) < 0.01);
}

#[test]
fn calm_loss_counts_up_to_the_maximum_in_a_window_too_small_for_experiments() {
    let mut origin = LossOrigin::default();
    feed(&mut origin, 1, 1_000, 5, true);
    assert!(!origin.is_suspicious(Instant::from_secs(100), 2.0));
    assert!(origin.innocent(2.0) > 0.15);
    feed(&mut origin, 1_001, 1_000, 1, true);
    assert!(origin.innocent(2.0) <= INNOCENT_MAX);
}

#[test]
fn packets_that_overshot_an_invisible_queue_do_not_count() {
    let mut origin = LossOrigin::default();
    origin.on_overshoot(PacketNumber(1_000), 0.02);
    feed(&mut origin, 1, 1_000, 2, true);
    assert!((origin.innocent(WINDOW) - 0.02).abs() < 1e-12);
}

#[test]
fn a_round_trip_of_losses_hardly_counts_with_a_long_memory() {
    let seen = |memory| {
        let mut origin = LossOrigin::default();
        let (_, next) = feed_with(memory, &mut origin, 1, 1_800, 10, true);
        feed_with(memory, &mut origin, next, 200, 2, true);
        origin.seen()
    };
    assert!(seen(0.0) > 0.3, "{}", seen(0.0));
    assert!(seen(2_000.0) < 0.2, "{}", seen(2_000.0));
}

#[test]
fn the_loss_of_slow_start_is_innocent_and_never_lowers_what_is_known() {
    let mut origin = LossOrigin::default();
    origin.on_slow_start(0.2);
    assert_eq!(origin.innocent(100.0), 0.2);
    origin.on_slow_start(0.1);
    assert_eq!(origin.innocent(100.0), 0.2);
}

#[test]
fn loss_that_mostly_disappears_in_a_long_experiment_is_congestion() {
    let mut origin = LossOrigin::default();
    let (_, next) = feed(&mut origin, 1, 1_000, 5, true);
    origin.begin(PacketNumber(next - 1), 400.0);
    origin.stop_sending(PacketNumber(next + 800));
    let (verdicts, _) = feed(&mut origin, next, 803, 20, true);
    assert_eq!(verdicts, [Verdict::Ours], "20 % before, 5 % while little was sent");
}
