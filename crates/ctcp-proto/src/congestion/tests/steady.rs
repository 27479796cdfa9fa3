//! The default controller, packet by packet.

use super::*;

/// A controller whose window has been full.
fn busy() -> Box<dyn Controller> {
    let mut controller = Algorithm::DEFAULT.controller(DATAGRAM);
    let in_flight = controller.window() as u64;
    let (now, number) = (Instant::ZERO, PacketNumber(in_flight));
    controller.on_sent(&Sent { now, number, size: DATAGRAM, in_flight, rtt: rtt(0) });
    controller
}

/// A controller in slow start with a window of `window` packets, and the next number.
fn in_slow_start(window: f64) -> (Box<dyn Controller>, u64) {
    let mut controller = busy();
    let mut number = 0;
    while controller.window() < window {
        controller.on_ack(&acked(number, LAST_OF_ROUND, 0));
        number += 1;
    }
    (controller, number)
}

/// The first round trip has this many packets.
const LAST_OF_ROUND: u64 = 1_000;

/// Loses packets from `from` on until the window is cut, and returns how many.
fn losses_until_cut(controller: &mut dyn Controller, from: u64, largest_sent: u64) -> u64 {
    let mut before = controller.window();
    for number in from..from + 500 {
        lose(controller, number, largest_sent);
        if controller.window() < 0.8 * before {
            return number + 1 - from;
        }
        before = controller.window();
    }
    panic!("the breaker does not trip");
}

fn lose(controller: &mut dyn Controller, number: u64, largest_sent: u64) {
    controller.on_loss(&Lost { loss_average: 0.5, ..lost(number, largest_sent, rtt(0)) });
}

#[test]
fn what_is_in_flight_when_the_breaker_ends_slow_start_counts_no_further_if_it_is_much() {
    // The losses that trip it again, if so many more were in flight and are lost.
    let losses = |window: f64, in_flight: u64| {
        let (mut controller, first) = in_slow_start(window);
        let next = first + losses_until_cut(controller.as_mut(), first, LAST_OF_ROUND);
        assert_ne!(controller.phase(), Phase::SlowStart);
        let cut = controller.window();
        let last = next + in_flight;
        (next..last).for_each(|number| lose(controller.as_mut(), number, LAST_OF_ROUND));
        assert!((controller.window() - cut).abs() < 1e-9, "one cut in a round trip");
        losses_until_cut(controller.as_mut(), LAST_OF_ROUND + 1, LAST_OF_ROUND + 500)
    };
    let counts = |window| (0..8).map(|in_flight| losses(window, in_flight)).collect::<Vec<u64>>();
    let (small, large) = (counts(40.0), counts(128.0));
    assert!(small.windows(2).all(|pair| pair[1] < pair[0]), "they count on: {small:?}");
    assert!(large.iter().all(|&count| count == large[0]), "they do not: {large:?}");
}

#[test]
fn a_timeout_with_little_in_flight_says_nothing_about_the_path() {
    // The losses that trip the breaker in slow start after a timeout with so many packets in flight, if that was not spurious.
    let losses = |in_flight: u64, is_spurious: bool| {
        let mut controller = busy();
        controller.on_ack(&acked(0, LAST_OF_ROUND, 0));
        let last = PacketNumber(40);
        controller.on_timeout(&TimedOut { now: Instant::ZERO, in_flight, largest_sent: last, rtt: rtt(0) });
        let first = if is_spurious { 1 } else { 41 };
        controller.on_ack(&acked(first, LAST_OF_ROUND, 0));
        losses_until_cut(controller.as_mut(), 42, LAST_OF_ROUND)
    };
    let unknown = losses(1, false);
    assert!(losses(32, false) < unknown, "a flight is lost: {unknown}");
    assert_eq!([losses(1, true), losses(32, true)], [unknown; 2], "nothing is lost");
}

#[test]
fn losses_before_the_window_is_full_do_not_trip_the_breaker_unless_there_are_many() {
    let losses = |mut controller: Box<dyn Controller>| {
        controller.on_ack(&acked(0, LAST_OF_ROUND, 0));
        losses_until_cut(controller.as_mut(), 1, LAST_OF_ROUND)
    };
    let (full, unused) = (losses(busy()), losses(Algorithm::DEFAULT.controller(DATAGRAM)));
    assert!(full < 64 && unused > 127, "{full} and {unused} losses");
}
