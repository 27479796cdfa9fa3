//! Algorithm 2 and RFC 5681, step by step.

use super::*;

fn ack(controller: &mut dyn Controller, number: u64, largest_sent: u64, queue_millis: u64) {
    controller.on_ack(&acked(number, largest_sent, queue_millis));
}

fn lose(controller: &mut dyn Controller, number: u64, largest_sent: u64, queue_millis: u64) {
    lose_behind(controller, number, largest_sent, rtt(queue_millis));
}

fn lose_behind(controller: &mut dyn Controller, number: u64, largest_sent: u64, rtt: RttView) {
    controller.on_loss(&lost(number, largest_sent, rtt));
}

fn time_out(controller: &mut dyn Controller, largest_sent: u64) {
    controller.on_timeout(&TimedOut {
        now: Instant::from_secs(1),
        in_flight: 10,
        largest_sent: PacketNumber(largest_sent),
        rtt: rtt(0),
    });
}

/// A controller in congestion avoidance; the back-off that brought it there ends behind packet 100.
fn avoiding(algorithm: Algorithm) -> Box<dyn Controller> {
    let mut controller = algorithm.controller(DATAGRAM);
    for number in 0..90 {
        ack(controller.as_mut(), number, 100, 0);
    }
    if algorithm == Algorithm::RENO {
        lose(controller.as_mut(), 90, 100, 20);
    } else {
        ack(controller.as_mut(), 90, 100, 10);
    }
    controller
}

fn is_close(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 1e-9
}

// Requirement: C4
#[test]
fn slow_start_adds_a_token_for_each_ack_and_ignores_loss() {
    let mut ctcp = Algorithm::CTCP.controller(DATAGRAM);
    let before = ctcp.window();
    for number in 0..20 {
        ack(ctcp.as_mut(), number, 30, 0);
    }
    lose(ctcp.as_mut(), 21, 30, 0);
    assert!(is_close(ctcp.window(), before + 20.0));
    assert_eq!(ctcp.phase(), Phase::SlowStart);
}

#[test]
fn a_full_link_ends_slow_start_with_the_papers_back_off() {
    let mut ctcp = Algorithm::CTCP.controller(DATAGRAM);
    let before = ctcp.window();
    ack(ctcp.as_mut(), 0, 30, 20);
    assert!(is_close(ctcp.window(), (before + 1.0) / 2.0), "{}", ctcp.window());
    assert_ne!(ctcp.phase(), Phase::SlowStart);
}

#[test]
fn a_round_trip_longer_by_less_than_the_clock_tells_is_no_reason_to_back_off() {
    let mut ctcp = avoiding(Algorithm::CTCP);
    let before = ctcp.window();
    let of = |micros| RttView { standing: rtt(0).minimum_ever + Duration::from_micros(micros), ..rtt(0) };
    lose_behind(ctcp.as_mut(), 101, 150, of(999));
    assert!(is_close(ctcp.window(), before));
    lose_behind(ctcp.as_mut(), 151, 200, of(1_000));
    assert!(is_close(ctcp.window(), before * 20.0 / 21.0));
}

// Requirement: C4
#[test]
fn a_loss_multiplies_the_tokens_by_the_ratio_of_round_trips_once_a_round_trip() {
    let mut ctcp = avoiding(Algorithm::CTCP);
    let before = ctcp.window();
    lose(ctcp.as_mut(), 101, 150, 5);
    assert!(is_close(ctcp.window(), before * 20.0 / 25.0));
    let after = ctcp.window();
    for number in 102..=150 {
        lose(ctcp.as_mut(), number, 160, 5);
    }
    let after = (after..after + 49.0 / after).contains(&ctcp.window()).then(|| ctcp.window());
    let after = after.expect("in the same round trip a loss counts as an acknowledgement");
    lose(ctcp.as_mut(), 151, 200, 5);
    assert!(is_close(ctcp.window(), after * 20.0 / 25.0), "the next one");
}

// Requirement: C4
#[test]
fn a_back_off_takes_the_shortest_of_the_last_round_trip_so_that_noise_is_no_queue() {
    let mut ctcp = avoiding(Algorithm::CTCP);
    let before = ctcp.window();
    lose_behind(ctcp.as_mut(), 101, 150, RttView { standing: rtt(5).standing, ..rtt(8) });
    assert!(is_close(ctcp.window(), before * 20.0 / 25.0));
    let before = ctcp.window();
    lose_behind(ctcp.as_mut(), 151, 200, RttView { standing: rtt(0).standing, ..rtt(8) });
    assert!(is_close(ctcp.window(), before));
}

#[test]
fn a_loss_on_an_empty_path_costs_nothing() {
    let mut ctcp = avoiding(Algorithm::CTCP);
    let before = ctcp.window();
    lose(ctcp.as_mut(), 101, 150, 0);
    assert!(is_close(ctcp.window(), before));
}

// Requirement: C4
#[test]
fn avoidance_adds_one_over_tokens_for_each_ack() {
    let mut ctcp = avoiding(Algorithm::CTCP);
    let before = ctcp.window();
    ack(ctcp.as_mut(), 101, 150, 0);
    assert!(is_close(ctcp.window(), before + 1.0 / before));
}

// Requirement: C4
#[test]
fn avoidance_is_slower_while_a_queue_stands_that_is_no_longer_than_the_path() {
    for (algorithm, queue_millis, alpha) in [
        (Algorithm::CTCP, 1, 1.0 / 3.0),
        (Algorithm::CTCP, 20, 1.0 / 3.0),
        (Algorithm::CTCP, 21, 1.0),
        (CTCP_CONSTANT_ALPHA, 1, 1.0),
    ] {
        let mut ctcp = avoiding(algorithm);
        let before = ctcp.window();
        ack(ctcp.as_mut(), 101, 150, queue_millis);
        assert!(is_close(ctcp.window(), before + alpha / before), "{algorithm} {queue_millis}");
    }
}

#[test]
fn avoidance_is_as_fast_as_ever_on_a_route_that_became_longer() {
    let mut ctcp = avoiding(Algorithm::CTCP);
    let before = ctcp.window();
    let longer = RttView { minimum_ever: rtt(0).minimum, minimum: rtt(5).standing, ..rtt(5) };
    ctcp.on_ack(&Acked { rtt: longer, ..acked(101, 150, 0) });
    assert!(is_close(ctcp.window(), before + 1.0 / before));
}

#[test]
fn a_queue_too_short_to_be_seen_is_backed_off_from_when_twice_as_much_is_under_way_as_is_delivered() {
    for (window_share, is_too_much) in [(0.6, false), (0.4, true)] {
        let mut ctcp = avoiding(Algorithm::CTCP);
        let before = ctcp.window();
        let delivery_rate = Some(window_share * before * DATAGRAM as f64 / rtt(0).minimum.as_secs_f64());
        ctcp.on_ack(&Acked { delivery_rate, ..acked(101, 150, 0) });
        lose(ctcp.as_mut(), 102, 150, 0);
        assert_eq!(ctcp.window() < before, is_too_much, "{window_share}");
    }
}

// Requirement: C4
#[test]
fn a_time_out_goes_back_to_the_initial_tokens_and_slow_start() {
    let mut ctcp = avoiding(Algorithm::CTCP);
    time_out(ctcp.as_mut(), 150);
    assert!(is_close(ctcp.window(), Algorithm::CTCP.controller(DATAGRAM).window()));
    assert_eq!(ctcp.phase(), Phase::SlowStart);
}

#[test]
fn reno_halves_once_a_round_trip_and_falls_to_one_at_a_time_out() {
    let mut reno = Algorithm::RENO.controller(DATAGRAM);
    for number in 0..90 {
        ack(reno.as_mut(), number, 100, 0);
    }
    assert!(is_close(reno.window(), 100.0));
    lose(reno.as_mut(), 90, 150, 0);
    lose(reno.as_mut(), 91, 150, 0);
    assert!(is_close(reno.window(), 50.0));
    assert_eq!(reno.phase(), Phase::Recovery);
    ack(reno.as_mut(), 92, 150, 0);
    assert!(is_close(reno.window(), 50.0), "no growth before the back-off's round trip is over");
    ack(reno.as_mut(), 151, 200, 0);
    assert!(is_close(reno.window(), 50.02));
    time_out(reno.as_mut(), 200);
    assert!(is_close(reno.window(), 1.0));
    ack(reno.as_mut(), 201, 250, 0);
    assert!(is_close(reno.window(), 2.0), "slow start up to half of what it was");
}
