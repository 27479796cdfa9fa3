use super::*;

const RTT: Duration = Duration::from_millis(100);

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A flow that is past its slow start.
fn flow(window: f64) -> Flow {
    Flow { window, is_slow_start: false, round_trip: RTT }
}

/// A sender that has sent a packet a millisecond for `millis`, of which each asks for an ACK.
fn busy(millis: u64) -> AckRequests {
    let mut requests = AckRequests::new(at(0), MAX_ACK_DELAY);
    (0..=millis).for_each(|time| requests.on_sent(at(time), RTT));
    requests
}

#[test]
fn the_larger_the_window_the_rarer_the_acks() {
    let packets = |window| AckFrequency::of(&flow(window)).packets;
    let all = [1.0, 4.0, 17.0, 24.0, 48.0, 128.0, 512.0, 65_536.0].map(packets);
    assert_eq!(all, [2, 2, 2, 4, 8, 8, 32, 512]);
    let starting = |window| AckFrequency::of(&Flow { is_slow_start: true, ..flow(window) }).packets;
    assert_eq!([128.0, 640.0].map(starting), [2, 10]);
}

#[test]
fn an_ack_waits_for_a_quarter_of_the_round_trip_and_no_longer_than_25_ms() {
    for (round_trip, delay) in [(2_000, 1_000), (40_000, 10_000), (600_000, 25_000)] {
        let asked = AckFrequency::of(&Flow { round_trip: Duration::from_micros(round_trip), ..flow(100.0) });
        assert_eq!(asked.delay, Duration::from_micros(delay));
        assert!(asked.gap_delay <= asked.delay);
    }
}

#[test]
fn news_of_a_gap_waits_for_the_two_packets_that_make_it_a_loss_or_a_sixteenth_of_the_round_trip() {
    let gap_delay = |window| AckFrequency::of(&flow(window)).gap_delay;
    assert_eq!(gap_delay(20.0), RTT / 10);
    assert_eq!(gap_delay(1_000.0), RTT / 16);
    assert_eq!(gap_delay(2.0), Duration::ZERO);
}

#[test]
fn whatever_a_peer_asks_for_is_within_bounds() {
    let most = AckFrequency::granted(u64::MAX, Duration::MAX, Duration::MAX);
    assert_eq!((most.packets, most.delay, most.gap_delay), (512, GRANTED_DELAY_MAX, GRANTED_DELAY_MAX));
    let least = AckFrequency::granted(0, Duration::ZERO, Duration::MAX);
    assert_eq!((least.packets, least.delay, least.gap_delay), (1, MIN_ACK_DELAY, MIN_ACK_DELAY));
}

#[test]
fn a_flow_asks_for_fewer_acks_once_it_has_sent_for_a_round_trip() {
    assert_eq!(busy(99).poll(at(99), &flow(200.0)), None);
    let request = busy(100).poll(at(100), &flow(200.0)).expect("a window of 200");
    assert_eq!((request.sequence, request.frequency), (0, AckFrequency::of(&flow(200.0))));
    assert_eq!(busy(100).poll(at(100), &flow(3.0)), None, "the default suits a small window");
}

#[test]
fn it_asks_again_for_something_else_or_when_the_request_was_lost_but_once_a_round_trip() {
    let mut requests = busy(100);
    let first = requests.poll(at(100), &flow(200.0)).expect("a window of 200");
    requests.on_asked(at(100), first);
    (101..=200).for_each(|time| requests.on_sent(at(time), RTT));
    assert_eq!(requests.poll(at(199), &flow(800.0)), None);
    assert_eq!(requests.poll(at(200), &flow(250.0)), None);
    assert_eq!(requests.poll(at(200), &flow(800.0)).map(|request| request.sequence), Some(1));
    requests.on_lost(7);
    assert_eq!(requests.poll(at(200), &flow(200.0)), None);
    requests.on_lost(0);
    assert_eq!(requests.poll(at(200), &flow(200.0)).map(|request| request.sequence), Some(1));
}

#[test]
fn behind_a_pause_the_default_holds_again() {
    let mut requests = busy(100);
    let bulk = requests.poll(at(100), &flow(200.0)).expect("a window of 200");
    requests.on_asked(at(100), bulk);
    let request = requests.poll(at(1_000), &flow(200.0)).expect("a pause");
    assert_eq!(request.frequency, AckFrequency::default_of(RTT));
    requests.on_asked(at(1_000), request);
    requests.on_sent(at(1_000), RTT);
    requests.on_sent(at(1_050), RTT);
    assert_eq!(requests.poll(at(1_050), &flow(200.0)), None);
}

#[test]
fn time_outs_reckon_with_the_longest_delay_that_may_be_in_force() {
    let mut requests = busy(100);
    let bulk = requests.poll(at(100), &flow(200.0)).expect("a window of 200");
    requests.on_asked(at(100), bulk);
    assert_eq!(requests.delay_max(), ASKED_DELAY_MAX);
    let default = requests.poll(at(1_000), &flow(200.0)).expect("a pause");
    requests.on_asked(at(1_000), default);
    assert_eq!(requests.delay_max(), ASKED_DELAY_MAX);
    requests.on_acked(bulk.sequence);
    assert_eq!(requests.delay_max(), ASKED_DELAY_MAX);
    requests.on_acked(default.sequence);
    assert_eq!(requests.delay_max(), MAX_ACK_DELAY);
}

#[test]
fn the_last_packet_hurries_only_where_acks_are_rare_and_no_more_often_than_they_come() {
    let mut requests = busy(100);
    assert!(!requests.should_hurry(), "nothing was asked for");
    let bulk = requests.poll(at(100), &flow(200.0)).expect("a window of 200");
    requests.on_asked(at(100), bulk);
    assert!(requests.should_hurry());
    requests.on_hurried();
    assert!(!requests.should_hurry());
    (0..bulk.frequency.packets).for_each(|_| requests.on_sent(at(101), RTT));
    assert!(requests.should_hurry());
}
