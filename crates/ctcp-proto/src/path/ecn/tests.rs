use super::*;

fn counts(ect0: u64, ce: u64) -> Option<EcnCounts> {
    Some(EcnCounts { ect0, ect1: 0, ce })
}

/// Returns how many of the next packets are sent as ECT(0).
fn send(ecn: &mut EcnState, packets: u64) -> u64 {
    (0..packets).map(|_| u64::from(ecn.marks_next(0))).sum()
}

/// A path whose ten test packets were reported correctly.
fn capable() -> EcnState {
    let mut ecn = EcnState::new(true);
    assert_eq!(send(&mut ecn, 10), 10);
    assert!(!ecn.reports_marks(true, 10, counts(10, 0)));
    assert!(ecn.is_capable());
    ecn
}

#[test]
fn ten_packets_test_a_path_and_the_first_valid_ack_makes_it_capable() {
    let mut ecn = EcnState::new(true);
    assert_eq!(send(&mut ecn, 25), 10);
    assert!(!ecn.is_capable());
    ecn.reports_marks(true, 2, counts(2, 0));
    assert!(ecn.is_capable());
    assert_eq!(send(&mut ecn, 1_000), 1_000);
}

#[test]
fn without_a_response_to_marks_no_packet_is_capable() {
    let mut ecn = EcnState::new(false);
    assert_eq!(send(&mut ecn, 100), 0);
    assert!(!ecn.reports_marks(true, 0, counts(0, 3)));
    ecn.on_new_route(false);
    assert_eq!(send(&mut ecn, 100), 0);
}

#[test]
fn new_marks_are_reported_once() {
    let mut ecn = capable();
    assert_eq!(send(&mut ecn, 10), 10);
    assert!(ecn.reports_marks(true, 2, counts(11, 1)));
    assert!(!ecn.reports_marks(true, 2, counts(13, 1)));
    // A reordered old ACK reports nothing new.
    assert!(!ecn.reports_marks(false, 0, counts(10, 0)));
    assert!(ecn.reports_marks(true, 4, counts(13, 5)));
    assert_eq!(ecn.congestion_marks(), 5);
    assert!(ecn.is_capable());
}

#[test]
fn counts_that_do_not_match_the_packets_disable_ecn() {
    for (newly, answer) in [
        // One of three is not counted, none is counted, there are no counts, the counts shrink.
        (3, counts(12, 0)),
        (3, counts(10, 0)),
        (3, None),
        (0, None),
        (0, counts(9, 0)),
        // More than were sent, and a codepoint that was never sent.
        (3, counts(16, 0)),
        (3, Some(EcnCounts { ect0: 13, ect1: 1, ce: 0 })),
        (3, Some(EcnCounts { ect0: 10, ect1: 3, ce: 1 << 61 })),
    ] {
        let mut ecn = capable();
        send(&mut ecn, 5);
        assert!(!ecn.reports_marks(true, newly, answer), "{answer:?}");
        assert!(!ecn.is_capable() && send(&mut ecn, 10) == 0, "{newly} {answer:?}");
        // Nothing enables it again, and its marks are ignored.
        assert!(!ecn.reports_marks(true, 1, counts(15, 7)));
        assert_eq!(send(&mut ecn, 10), 0);
    }
}

#[test]
fn an_old_ack_proves_nothing() {
    let mut ecn = capable();
    send(&mut ecn, 5);
    assert!(!ecn.reports_marks(false, 1, None));
    assert!(!ecn.reports_marks(false, 1, counts(3, 0)));
    assert!(ecn.is_capable());
    // The next one counts both.
    assert!(!ecn.reports_marks(true, 1, counts(13, 0)));
    assert!(ecn.is_capable());
}

#[test]
fn packets_omitted_from_an_ack_may_be_acknowledged_after_they_were_counted() {
    let mut ecn = capable();
    send(&mut ecn, 6);
    ecn.reports_marks(true, 1, counts(14, 0));
    ecn.reports_marks(true, 4, counts(15, 0));
    assert!(ecn.is_capable());
}

#[test]
fn a_path_that_drops_all_capable_packets_gets_none() {
    let mut ecn = EcnState::new(true);
    assert_eq!(send(&mut ecn, 20), 10);
    (0..9).for_each(|_| ecn.on_lost());
    assert_ne!(ecn.state, State::Off);
    ecn.on_lost();
    assert_eq!(ecn.state, State::Off);
    // If one arrives, the path is capable.
    let mut lucky = EcnState::new(true);
    assert_eq!(send(&mut lucky, 20), 10);
    (0..9).for_each(|_| lucky.on_lost());
    lucky.reports_marks(true, 1, counts(1, 0));
    assert!(lucky.is_capable());
}

#[test]
fn three_timeouts_end_the_test() {
    let mut ecn = EcnState::new(true);
    assert!([0, 1, 2].into_iter().all(|timeouts| ecn.marks_next(timeouts)));
    assert!(!ecn.marks_next(3) && !ecn.marks_next(0));
    (0..3).for_each(|_| ecn.on_lost());
    assert_eq!(ecn.state, State::Off);
    // A path that was capable may no longer be.
    let mut ecn = capable();
    assert!(!ecn.marks_next(3));
    assert!(ecn.marks_next(0));
}

#[test]
fn a_new_path_is_tested_again() {
    let mut ecn = capable();
    ecn.reports_marks(true, 0, None);
    assert_eq!(send(&mut ecn, 10), 0);
    ecn.on_new_route(true);
    assert_eq!(send(&mut ecn, 20), 10);
    // Two packets of the old path arrive after all. They are counted but not among the acknowledged ones.
    ecn.reports_marks(true, 4, counts(16, 0));
    assert!(ecn.is_capable());
    assert_eq!(send(&mut ecn, 10), 10);
}
