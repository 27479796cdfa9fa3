//! A flow of profile `default` on a link that changes under it.

use core::time::Duration;

use ctcp_netem::{Change, Schedule};
use ctcp_proto::Profile;
use ctcp_sim::link::Direction;

use crate::bottleneck::{Bottleneck, Conditions, at, millis, secs};

/// The share of the link that is used in the second second after the change.
fn after(before: Conditions, changed: Conditions) -> f64 {
    let mut bottleneck = Bottleneck::with_flow(before, Profile::DEFAULT);
    bottleneck.run(secs(6));
    bottleneck.change(changed);
    bottleneck.run(secs(1));
    bottleneck.run(secs(1)).utilisation()
}

/// The paper's path, and one twice as long.
fn short_and_long(loss: f64, seed: u64) -> (Conditions, Conditions) {
    let short = Conditions { seed, ..Conditions::papers(loss) };
    (short, Conditions { rtt: 2 * short.rtt, ..short })
}

#[test]
fn a_path_that_becomes_longer_or_shorter_is_full_again_within_a_second() {
    for loss in [0.0, 0.01] {
        let (short, long) = short_and_long(loss, 1);
        let (longer, shorter) = (after(short, long), after(long, short));
        assert!(longer > 0.95 && shorter > 0.97, "loss {loss}, longer: {longer:.3}, shorter: {shorter:.3}");
    }
}

#[test]
fn a_path_with_much_loss_that_becomes_longer_or_shorter_is_full_again_within_a_second() {
    // Runs on a longer path differ much: the middle one of nine.
    let paths = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(|seed| short_and_long(0.05, seed));
    let mut longer = paths.map(|(short, long)| after(short, long));
    longer.sort_unstable_by(f64::total_cmp);
    let (short, long) = paths[0];
    let shorter = after(long, short);
    assert!(longer[4] > 0.9 && shorter > 0.97, "longer: {longer:.3?}, shorter: {shorter:.3}");
}

#[test]
fn a_route_five_times_as_long_is_full_again_after_ten_round_trips() {
    for loss in [0.0, 0.05] {
        let short = Conditions::new(25, 20, 1.0, loss);
        let mut bottleneck = Bottleneck::with_flow(short, Profile::DEFAULT);
        bottleneck.run(secs(6));
        bottleneck.change(Conditions { rtt: 5 * short.rtt, ..short });
        bottleneck.run(10 * 5 * short.rtt);
        let utilisation = bottleneck.run(secs(1)).utilisation();
        assert!(utilisation > 0.85, "loss {loss}: {utilisation:.3}");
    }
}

#[test]
fn no_run_on_a_path_with_much_loss_that_becomes_longer_starves() {
    for seed in 1..=40 {
        let (short, long) = short_and_long(0.05, seed);
        let utilisation = after(short, long);
        assert!(utilisation > 0.5, "seed {seed}: {utilisation:.3}");
    }
}

#[test]
fn a_link_that_becomes_faster_or_slower_is_full_again_within_a_second() {
    let link = Conditions::papers(0.05);
    for megabits in [5, 100] {
        let other = Conditions { megabits, ..link };
        let (there, back) = (after(link, other), after(other, link));
        assert!(there > 0.95 && back > 0.95, "to {megabits} Mbit/s {there:.3}, from it {back:.3}");
    }
}

#[test]
fn loss_that_comes_or_goes_is_made_up_for_within_a_second() {
    for loss in [0.05, 0.2] {
        let (clean, lossy) = (Conditions::papers(0.0), Conditions::papers(loss));
        let (comes, goes) = (after(clean, lossy), after(lossy, clean));
        assert!(comes > 0.95 && goes > 0.95, "loss {loss} comes: {comes:.3}, goes: {goes:.3}");
    }
}

#[test]
fn after_ten_seconds_without_any_packet_a_flow_fills_the_link_within_a_second_and_a_half() {
    let mut bottleneck = Bottleneck::with_flow(Conditions::papers(0.05), Profile::DEFAULT);
    for direction in [Direction::Forward, Direction::Backward] {
        bottleneck.set_schedule(direction, Schedule::default().with_blackout(at(secs(5)), secs(10)));
    }
    bottleneck.run(secs(5));
    let (at_first, later) = (bottleneck.run(secs(1)).sent(), bottleneck.run(secs(9)).sent());
    assert!(at_first < 120 && later < 60, "a dead path is only probed: {at_first} and {later} packets");
    // The next probe leaves after a second at the latest.
    bottleneck.run(millis(1_500));
    let utilisation = bottleneck.run(millis(500)).utilisation();
    assert!(utilisation > 0.95, "{utilisation:.3}");
}

#[test]
fn acknowledgements_that_are_late_by_more_than_a_time_out_cost_no_window() {
    const STEP: Duration = millis(2);
    let mut bottleneck = Bottleneck::with_flow(Conditions::new(100, 20, 4.0, 0.01), Profile::DEFAULT);
    // ACKs of 20 ms take ten round trips longer, and later ones wait behind them.
    let late = Schedule::new([
        (at(secs(5)), Change::Delay(millis(210))),
        (at(secs(5) + millis(20)), Change::Delay(millis(10))),
    ]);
    bottleneck.set_schedule(Direction::Backward, late);
    bottleneck.run(secs(5));
    let before = bottleneck.window();
    bottleneck.run(millis(180));
    let timed_out = bottleneck.window();
    assert!(timed_out < 0.3 * before, "the time-out passed: {timed_out:.1} of {before:.1}");
    // A flow that does not notice its mistake needs more round trips than these two.
    bottleneck.run(millis(20));
    let windows = (0..20).map(|_| {
        bottleneck.run(STEP);
        bottleneck.window()
    });
    let largest = windows.fold(0.0, f64::max);
    assert!(largest > 0.9 * before, "{largest:.1} of {before:.1}");
}
