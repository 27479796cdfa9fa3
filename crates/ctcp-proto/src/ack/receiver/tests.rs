use super::*;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn scheduler() -> AckScheduler {
    AckScheduler::new(MAX_ACK_DELAY, false)
}

#[test]
fn the_second_packet_makes_an_ack_due_and_the_first_waits() {
    let mut acks = scheduler();
    acks.on_packet(at(0), 0, true, None);
    assert!(!acks.is_due(at(4)) && acks.has_news());
    assert_eq!(acks.next_timeout(), Some(at(5)));
    acks.on_packet(at(1), 1, true, None);
    assert!(acks.is_due(at(1)));
    acks.on_ack_sent(at(1), false);
    assert_eq!((acks.next_timeout(), acks.has_news()), (None, false));
}

#[test]
fn a_gap_and_its_filling_are_acknowledged_at_once() {
    let mut acks = scheduler();
    acks.on_packet(at(0), 0, true, None);
    acks.on_ack_sent(at(0), false);
    acks.on_packet(at(1), 2, true, None);
    assert!(acks.is_due(at(1)));
    acks.on_ack_sent(at(1), false);
    acks.on_packet(at(2), 1, true, None);
    assert!(acks.is_due(at(2)));
    assert_eq!(acks.ranges().collect::<Vec<_>>(), [(0, 2)]);
}

#[test]
fn packets_that_are_not_ack_eliciting_make_no_ack_due() {
    let mut acks = scheduler();
    for number in 0..100 {
        acks.on_packet(at(number), number * 2, false, None);
    }
    assert_eq!(acks.next_timeout(), None);
    assert_eq!(acks.ranges().len(), 100);
}

// Requirement: C6
#[test]
fn profile_ctcp_acknowledges_each_packet() {
    let mut acks = AckScheduler::new(MAX_ACK_DELAY, true);
    acks.on_packet(at(0), 0, true, None);
    assert!(acks.is_due(at(0)));
}

#[test]
fn a_congestion_mark_is_acknowledged_at_once() {
    let mut acks = scheduler();
    acks.on_packet(at(0), 0, true, Some(Ecn::Ce));
    assert!(acks.is_due(at(0)));
    assert_eq!(acks.ecn_counts(), Some(EcnCounts { ce: 1, ..EcnCounts::default() }));
}

#[test]
fn a_duplicate_is_not_counted() {
    let mut acks = scheduler();
    assert!(acks.on_packet(at(0), 0, true, Some(Ecn::Ect0)));
    assert!(!acks.on_packet(at(1), 0, true, Some(Ecn::Ect0)));
    assert_eq!(acks.ecn_counts().map(|counts| counts.ect0), Some(1));
    assert!(!acks.is_due(at(1)));
}

#[test]
fn the_delay_is_at_most_a_quarter_of_the_round_trip_and_at_least_a_millisecond() {
    for (round_trip, delay) in [(8_000, 2_000), (1_000, 1_000), (100_000, 5_000)] {
        let mut acks = scheduler();
        acks.set_round_trip(Duration::from_micros(round_trip));
        acks.on_packet(Instant::ZERO, 0, true, None);
        assert_eq!(acks.next_timeout(), Some(Instant::from_micros(delay)));
    }
}

#[test]
fn the_reported_delay_counts_from_the_largest_number() {
    let mut acks = scheduler();
    acks.on_packet(at(10), 5, true, None);
    acks.on_packet(at(12), 3, true, None);
    assert_eq!(acks.delay(at(13)), Duration::from_millis(3));
}

#[test]
fn numbers_are_repeated_until_an_ack_with_them_is_acknowledged() {
    let mut acks = scheduler();
    for number in [0, 1, 4, 5] {
        acks.on_packet(at(0), number, true, None);
    }
    acks.on_ack_sent(at(0), false);
    acks.on_packet(at(1), 8, true, None);
    assert_eq!(acks.ranges().collect::<Vec<_>>(), [(8, 8), (4, 5), (0, 1)]);
    acks.on_ack_of_ack(5);
    assert_eq!(acks.ranges().collect::<Vec<_>>(), [(8, 8)]);
}

#[test]
fn the_largest_number_is_never_forgotten() {
    let mut acks = scheduler();
    acks.on_packet(at(0), 7, true, None);
    acks.on_ack_of_ack(7);
    assert_eq!(acks.ranges().collect::<Vec<_>>(), [(7, 7)]);
    acks.on_ack_of_ack(u64::MAX);
    assert_eq!(acks.largest(), Some(7));
}

#[test]
fn a_long_ack_requests_confirmation_once_per_round_trip() {
    let mut acks = scheduler();
    acks.set_round_trip(Duration::from_millis(20));
    for number in 0..40 {
        acks.on_packet(at(0), number * 2, true, None);
    }
    assert!(acks.wants_confirmation(at(0)));
    acks.on_ack_sent(at(0), true);
    assert!(!acks.wants_confirmation(at(19)));
    assert!(acks.wants_confirmation(at(20)));
    acks.on_ack_of_ack(78);
    assert!(!acks.wants_confirmation(at(40)));
}

#[test]
fn a_decoded_symbol_makes_an_ack_due_only_if_a_packet_was_received() {
    let mut acks = scheduler();
    acks.on_news(at(0));
    assert_eq!(acks.next_timeout(), None);
    acks.on_packet(at(1), 0, true, None);
    acks.on_news(at(2));
    assert!(acks.is_due(at(2)));
}

#[test]
fn through_relays_the_eighth_packet_makes_an_ack_due_whatever_is_missing() {
    let mut acks = scheduler().patient();
    for number in 0..7 {
        acks.on_packet(at(1), 2 * number, true, None);
    }
    assert!(!acks.is_due(at(5)) && acks.next_timeout() == Some(at(6)));
    acks.on_packet(at(2), 3, true, None);
    assert!(acks.is_due(at(2)));
}

#[test]
fn a_sender_may_ask_for_fewer_acknowledgements_and_the_newest_request_counts() {
    let mut acks = scheduler();
    acks.set_round_trip(Duration::from_millis(80));
    let fewer = AckFrequency { packets: 4, delay: Duration::from_millis(10), hurries_at_gaps: false };
    acks.on_request(7, &fewer);
    acks.on_request(3, &AckFrequency { packets: 2, delay: MAX_ACK_DELAY, hurries_at_gaps: true });
    for number in [0, 2, 3] {
        acks.on_packet(at(0), number, true, None);
    }
    acks.on_repaired(at(0));
    assert_eq!(acks.next_timeout(), Some(at(10)), "neither a gap nor a repair hurries");
    acks.on_packet(at(1), 4, true, Some(Ecn::Ect0));
    assert!(acks.is_due(at(1)));
    acks.on_ack_sent(at(1), false);
    acks.on_packet(at(2), 5, true, Some(Ecn::Ce));
    assert!(acks.is_due(at(2)), "a congestion mark hurries");
}

#[test]
fn the_return_to_the_usual_frequency_acknowledges_what_has_waited() {
    let mut acks = scheduler();
    acks.on_request(
        0,
        &AckFrequency { packets: 30, delay: Duration::from_secs(100), hurries_at_gaps: false },
    );
    acks.on_packet(at(0), 0, true, None);
    acks.on_packet(at(0), 1, true, None);
    assert!(acks.next_timeout().is_some_and(|due| due <= at(1_000)), "whatever the sender asks for");
    acks.on_request(2, &AckFrequency { packets: 2, delay: MAX_ACK_DELAY, hurries_at_gaps: true });
    acks.on_packet(at(1), 2, true, None);
    assert!(acks.is_due(at(1)));
}
