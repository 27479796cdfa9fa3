use super::*;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn scheduler() -> AckScheduler {
    AckScheduler::new(false)
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
fn packets_that_ask_for_nothing_make_no_ack_due() {
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
    let mut acks = AckScheduler::new(true);
    acks.on_packet(at(0), 0, true, None);
    assert!(acks.is_due(at(0)));
}

#[test]
fn a_congestion_mark_does_not_wait() {
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
fn the_delay_is_a_quarter_of_a_short_round_trip_but_no_finer_than_a_timer() {
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
fn numbers_are_repeated_until_an_ack_that_held_them_is_acknowledged() {
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
fn a_long_ack_asks_for_confirmation_once_a_round_trip() {
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
fn news_of_the_decoder_make_an_ack_due_only_if_there_is_something_to_acknowledge() {
    let mut acks = scheduler();
    acks.on_news(at(0));
    assert_eq!(acks.next_timeout(), None);
    acks.on_packet(at(1), 0, true, None);
    acks.on_news(at(2));
    assert!(acks.is_due(at(2)));
}

fn bulk() -> AckScheduler {
    let mut acks = scheduler();
    acks.on_request(1, AckFrequency::granted(8, Duration::from_millis(20), Duration::from_millis(6)));
    acks.on_packet(at(100), 0, true, None);
    acks.on_ack_sent(at(100), false);
    acks
}

#[test]
fn the_peer_says_how_many_packets_an_ack_covers_and_how_long_it_waits() {
    let mut acks = bulk();
    for number in 1..8 {
        acks.on_packet(at(100 + number), number, true, None);
        assert_eq!(acks.next_timeout(), Some(at(121)));
    }
    acks.on_packet(at(108), 8, true, None);
    assert!(acks.is_due(at(108)));
}

#[test]
fn news_of_a_gap_waits_no_longer_than_the_peer_says() {
    let mut acks = bulk();
    acks.on_packet(at(101), 2, true, None);
    assert_eq!(acks.next_timeout(), Some(at(107)));
    acks.on_ack_sent(at(107), false);
    acks.on_packet(at(108), 3, true, None);
    acks.on_news(at(109));
    assert_eq!(acks.next_timeout(), Some(at(115)));
    acks.on_immediate(at(110));
    assert!(acks.is_due(at(110)));
}

#[test]
fn behind_a_silence_a_packet_waits_no_longer_than_by_default() {
    let mut acks = bulk();
    acks.on_packet(at(121), 1, true, None);
    assert_eq!(acks.next_timeout(), Some(at(126)));
}

#[test]
fn an_older_request_that_comes_late_means_nothing() {
    let mut acks = bulk();
    acks.on_request(0, AckFrequency::granted(1, Duration::ZERO, Duration::ZERO));
    acks.set_round_trip(Duration::from_millis(4));
    acks.on_packet(at(101), 1, true, None);
    assert_eq!(acks.next_timeout(), Some(at(121)));
}

// Requirement: C6
#[test]
fn profile_ctcp_acknowledges_each_packet_whatever_is_asked() {
    let mut acks = AckScheduler::new(true);
    acks.on_request(0, AckFrequency::granted(100, Duration::from_secs(1), Duration::from_secs(1)));
    acks.on_packet(at(0), 0, true, None);
    assert!(acks.is_due(at(0)));
}

#[test]
fn in_bulk_a_packet_that_leaves_anyway_says_only_what_is_worth_it() {
    let mut acks = bulk();
    for number in 1..4 {
        acks.on_packet(at(101), number, true, None);
        assert!(!acks.has_news());
    }
    acks.on_packet(at(101), 4, true, None);
    assert!(acks.has_news());
}
