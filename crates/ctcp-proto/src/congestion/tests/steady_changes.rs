//! The default on links that change under it.

use super::*;

fn flow(conditions: Conditions) -> Model {
    Model::new(conditions, 1).flow(Algorithm::DEFAULT.controller(DATAGRAM), Instant::ZERO)
}

/// The share of the link that is used in the second second behind the change.
fn after(before: Conditions, changed: Conditions) -> f64 {
    let mut model = flow(before);
    model.run(secs(6));
    model.conditions = changed;
    model.run(secs(7));
    model.run(secs(8))[0].arrived as f64 / changed.packets_in(Duration::from_secs(1))
}

#[test]
fn a_path_that_becomes_longer_or_shorter_is_full_again_within_a_second() {
    let longer = Duration::from_millis(40);
    for loss in [0.0, 0.01, 0.05] {
        let short = papers_link(loss);
        let long = Conditions { rtt: longer, ..short };
        assert!(after(short, long) > 0.9, "loss {loss}: {}", after(short, long));
        assert!(after(long, short) > 0.95, "loss {loss}: {}", after(long, short));
    }
}

#[test]
fn a_link_that_becomes_faster_or_slower_is_full_again_within_a_second() {
    let link = papers_link(0.05);
    for megabits in [5, 100] {
        let other = Conditions { megabits, ..link };
        assert!(after(link, other) > 0.9, "{megabits}: {}", after(link, other));
        assert!(after(other, link) > 0.9, "{megabits}: {}", after(other, link));
    }
}

#[test]
fn loss_that_comes_or_goes_is_made_up_for_within_a_second() {
    for loss in [0.05, 0.2] {
        assert!(after(papers_link(0.0), papers_link(loss)) > 0.95);
        assert!(after(papers_link(loss), papers_link(0.0)) > 0.95);
    }
}

#[test]
fn ten_seconds_without_any_packet_are_made_up_for_within_half_a_second() {
    let mut model = flow(papers_link(0.05));
    model.run(secs(5));
    model.is_down = true;
    assert!(model.run(secs(15))[0].sent < 60, "a dead path is only probed");
    model.is_down = false;
    // The next probe leaves within a second.
    model.run(secs(16) + Duration::from_millis(500));
    let measured = model.run(secs(17))[0];
    assert!(measured.arrived as f64 > 0.95 * model.conditions.packets_in(Duration::from_millis(500)));
}

#[test]
fn acknowledgements_that_are_late_by_more_than_a_time_out_cost_no_window() {
    let mut model = flow(Conditions::new(100, 20, 4.0, 0.01));
    model.run(secs(5));
    let before = model.controller(0).window();
    // Longer than four round trips.
    model.conditions.rtt = Duration::from_millis(420);
    model.run(secs(5) + Duration::from_millis(20));
    model.conditions.rtt = Duration::from_millis(20);
    model.run(secs(5) + Duration::from_millis(180));
    assert!(model.controller(0).window() < 0.6 * before, "the time-out passed");
    // Without knowing better, it would need more round trips.
    let windows = (0..20).map(|step| {
        model.run(secs(5) + Duration::from_millis(200 + 2 * step));
        model.controller(0).window()
    });
    let largest = windows.fold(0.0, f64::max);
    assert!(largest > 0.8 * before, "{largest} of {before}");
}

#[test]
fn a_time_out_never_makes_a_window_larger() {
    let mut controller = Algorithm::DEFAULT.controller(DATAGRAM);
    let rtt = rtt(0);
    for number in 0..10 {
        let before = controller.window();
        let (now, largest_sent) = (Instant::from_millis(number), PacketNumber(number));
        controller.on_timeout(&TimedOut { now, in_flight: 1, largest_sent, rtt });
        assert!(controller.window() <= before, "{} after {before}", controller.window());
    }
}

#[test]
fn a_new_flow_fills_the_link_soon() {
    for (megabits, rtt, within) in [(25, 20, 300), (100, 20, 400), (100, 100, 1_300), (5, 50, 750)] {
        for loss in [0.0, 0.05] {
            let conditions = Conditions::new(megabits, rtt, 1.0, loss);
            let mut model = flow(conditions);
            model.run(Instant::from_millis(within));
            let span = Duration::from_millis(500);
            let share = model.run(Instant::from_millis(within) + span)[0].arrived as f64
                / conditions.packets_in(span);
            assert!(share > 0.85, "{megabits} Mbit/s, {rtt} ms, loss {loss}: {share}");
        }
    }
}

#[test]
fn a_gigabit_and_a_megabit_are_filled_alike() {
    for conditions in [Conditions::new(400, 20, 1.0, 0.02), Conditions::new(1, 50, 4.0, 0.02)] {
        let outcome = default_alone(conditions, 4);
        assert!(outcome.utilisation > 0.96, "{conditions:?}: {outcome:?}");
    }
}
