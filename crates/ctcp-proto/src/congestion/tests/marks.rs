//! Congestion marks: one answer a round trip, as to a loss (RFC 3168 section 6.1.2).

use super::*;

/// An acknowledgement over a path without any queue.
fn ack(controller: &mut dyn Controller, number: u64, largest_sent: u64, ecn_ce: bool) {
    controller.on_ack(&Acked { ecn_ce, ..acked(number, largest_sent, 0) });
}

#[test]
fn the_first_mark_of_a_round_trip_is_answered_and_the_others_are_not() {
    for (algorithm, kept) in
        [(Algorithm::RENO, 0.5), (Algorithm::CUBIC, 0.7), (Algorithm::CTCP, 0.8), (CTCP_CONSTANT_ALPHA, 0.8)]
    {
        let mut controller = algorithm.controller(DATAGRAM);
        (0..40).for_each(|number| ack(controller.as_mut(), number, number + 40, false));
        let mut before = controller.window();
        assert!(before > 40.0, "{algorithm}: slow start");
        for (mark, largest_sent) in [(40, 80), (81, 120), (121, 160)] {
            ack(controller.as_mut(), mark, largest_sent, true);
            let after = controller.window();
            assert!((after / before - kept).abs() < 1e-9, "{algorithm}: {before} {after}");
            assert_ne!(controller.phase(), Phase::SlowStart, "{algorithm}");
            for number in mark + 1..=largest_sent {
                ack(controller.as_mut(), number, largest_sent, true);
            }
            // One packet a round trip may have been added.
            before = controller.window();
            assert!((after..after + 1.5).contains(&before), "{algorithm}: {after} {before}");
        }
    }
}

#[test]
fn no_number_of_marks_takes_the_window_below_its_least() {
    for algorithm in [Algorithm::RENO, Algorithm::CUBIC, Algorithm::CTCP] {
        let mut controller = algorithm.controller(DATAGRAM);
        (0..1_000).for_each(|number| ack(controller.as_mut(), 2 * number, 2 * number, true));
        assert!(controller.window() >= WINDOW_MIN, "{algorithm}");
    }
}
