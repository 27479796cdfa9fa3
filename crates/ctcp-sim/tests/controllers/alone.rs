//! One flow on a link that does not change.

use ctcp_proto::Profile;

use crate::bottleneck::{Bottleneck, Conditions, Measured, millis, secs};

/// What a flow does in so many seconds, after two for its start.
pub(crate) fn alone(profile: Profile, conditions: Conditions, seconds: u64) -> Measured {
    let mut bottleneck = Bottleneck::with_flow(conditions, profile);
    bottleneck.run(secs(2));
    bottleneck.run(secs(seconds))
}

/// A late clock is jitter of up to 2 ms each way before the bottleneck, see [`Conditions`].
#[test]
fn the_default_fills_the_papers_link_at_any_loss_and_with_late_clocks() {
    for loss in [0.0, 0.01, 0.05, 0.1, 0.2, 0.3] {
        for late in [0, 2] {
            let conditions = Conditions::papers(loss).with_late_acks_and_packets(late);
            let measured = alone(Profile::DEFAULT, conditions, 8);
            let (utilisation, queueing, cost) =
                (measured.utilisation(), measured.queueing(), measured.cost());
            let least = if late == 0 { 0.97 } else { 0.95 };
            assert!(utilisation > least, "loss {loss}, up to {late} ms late: {utilisation:.3}");
            assert!(queueing < millis(8), "loss {loss}, up to {late} ms late: {queueing:?}");
            assert!(cost < 1.01, "loss {loss}, up to {late} ms late: {cost:.3}");
        }
    }
}

#[test]
fn algorithm_2_fills_the_papers_link_at_one_percent_of_loss_and_reno_does_not() {
    let ctcp = alone(Profile::CTCP, Conditions::papers(0.01), 20).utilisation();
    assert!(ctcp > 0.98, "{ctcp:.3}");
    let reno = alone(Profile::TCP, Conditions::papers(0.01), 20).utilisation();
    assert!((0.15..0.35).contains(&reno), "{reno:.3}");
}

#[test]
fn late_clocks_starve_neither_algorithm_2_nor_the_default() {
    let link = Conditions::new(100, 20, 1.0, 0.05);
    // Profile `ctcp` asks for timers that are punctual: only its ACKs are late.
    let ctcp = alone(Profile::CTCP, link.with_late_acks(2), 5).utilisation();
    let default = alone(Profile::DEFAULT, link.with_late_acks_and_packets(2), 5).utilisation();
    assert!(ctcp > 0.85 && default > 0.92, "{ctcp:.3} {default:.3}");
}

#[test]
fn loss_that_is_our_own_overflow_is_not_compensated() {
    // The last queue holds four packets.
    for (conditions, cost_most, least) in [
        (Conditions::new(100, 10, 0.25, 0.0), 1.01, 0.98),
        (Conditions::new(25, 20, 0.25, 0.05), 1.05, 0.98),
        (Conditions::new(25, 20, 0.08, 0.0), 1.15, 0.94),
    ] {
        let runs = [1, 2, 3, 4, 5, 6, 7, 8]
            .map(|seed| alone(Profile::DEFAULT, Conditions { seed, ..conditions }, 8));
        let utilisation = runs.iter().map(Measured::utilisation).sum::<f64>() / 8.0;
        let cost = runs.iter().map(Measured::cost).sum::<f64>() / 8.0;
        assert!(cost < cost_most && utilisation > least, "{conditions:?}: {utilisation:.3}, cost {cost:.3}");
    }
}

#[test]
fn the_queue_stays_small_for_minutes_and_is_not_taken_for_the_path() {
    let mut bottleneck = Bottleneck::with_flow(Conditions::papers(0.0), Profile::DEFAULT);
    bottleneck.run(secs(50));
    let measured = bottleneck.run(secs(60));
    assert!(measured.queueing() < millis(3), "{:?}", measured.queueing());
    assert!(bottleneck.rtt_minimum() < millis(21), "{:?}", bottleneck.rtt_minimum());
    assert!(measured.utilisation() > 0.99, "{:.3}", measured.utilisation());
}

#[test]
fn a_new_flow_fills_the_link_soon() {
    for (megabits, rtt, within) in [(25, 20, 300), (100, 20, 400), (100, 100, 1_300), (5, 50, 750)] {
        for loss in [0.0, 0.05] {
            let mut bottleneck =
                Bottleneck::with_flow(Conditions::new(megabits, rtt, 1.0, loss), Profile::DEFAULT);
            bottleneck.run(millis(within));
            let utilisation = bottleneck.run(millis(500)).utilisation();
            assert!(utilisation > 0.95, "{megabits} Mbit/s, {rtt} ms, loss {loss}: {utilisation:.3}");
        }
    }
}

#[test]
fn fast_and_slow_links_are_filled_alike() {
    for conditions in [Conditions::new(400, 20, 1.0, 0.02), Conditions::new(1, 50, 4.0, 0.02)] {
        let utilisation = alone(Profile::DEFAULT, conditions, 1).utilisation();
        assert!(utilisation > 0.97, "{conditions:?}: {utilisation:.3}");
    }
}
