use super::*;

const INTERVAL: Duration = Duration::from_millis(100);

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

#[test]
fn before_validation_at_most_three_times_the_received_bytes_are_sent() {
    let mut path = PathValidation::new();
    assert!(!path.can_send(1));
    path.on_received(1_000);
    assert!(path.can_send(3_000) && !path.can_send(3_001));
    path.on_sent(2_000);
    assert!(path.can_send(1_000) && !path.can_send(1_001));
}

#[test]
fn the_right_response_lifts_the_limit_and_a_wrong_one_does_not() {
    let mut path = PathValidation::new();
    path.on_received(100);
    path.on_challenge_sent(at(0), 42);
    assert!(path.on_response(41).is_none() && !path.is_validated());
    assert!(path.on_response(42).is_some() && path.is_validated());
    assert!(path.can_send(1 << 40));
    assert!(path.on_response(42).is_none(), "it is news only once");
}

#[test]
fn a_response_without_a_challenge_validates_nothing() {
    let mut path = PathValidation::new();
    assert!(path.on_response(0).is_none());
    assert!(!path.is_validated());
}

#[test]
fn challenges_repeat_with_growing_intervals_until_the_address_is_abandoned() {
    let mut path = PathValidation::new();
    let mut now = at(0);
    let mut intervals = Vec::new();
    for challenge in 0..u64::from(CHALLENGES_MAX) {
        assert!(path.wants_challenge());
        path.on_challenge_sent(now, challenge);
        assert!(!path.wants_challenge());
        let deadline = path.next_timeout(INTERVAL).expect("an answer is due");
        intervals.push((deadline - now).as_millis());
        now = deadline;
        assert_eq!(path.on_timeout(now, INTERVAL), challenge + 1 == u64::from(CHALLENGES_MAX));
    }
    assert_eq!(intervals, [[100; 5].as_slice(), &[200, 400, 800], &[1_000; 6]].concat());
    assert!(path.has_failed() && !path.wants_challenge());
    assert_eq!(path.next_timeout(INTERVAL), None);
}

#[test]
fn the_answer_to_an_earlier_challenge_is_accepted() {
    let mut path = PathValidation::new();
    path.on_challenge_sent(at(0), 1);
    path.on_timeout(at(100), INTERVAL);
    path.on_challenge_sent(at(100), 2);
    assert!(path.on_response(1).is_some());
}

#[test]
fn no_timer_runs_while_a_challenge_may_not_be_sent() {
    let mut path = PathValidation::new();
    path.on_challenge_sent(at(0), 1);
    assert!(!path.on_timeout(at(100), INTERVAL));
    assert!(path.wants_challenge() && !path.can_send(100));
    assert_eq!(path.next_timeout(INTERVAL), None);
}

#[test]
fn an_early_timeout_changes_nothing() {
    let mut path = PathValidation::new();
    path.on_challenge_sent(at(0), 1);
    assert!(!path.on_timeout(at(99), INTERVAL) && !path.wants_challenge());
}

#[test]
fn an_answer_is_due_earlier_once_the_round_trip_is_known() {
    let mut path = PathValidation::chosen();
    path.on_challenge_sent(at(0), 1);
    assert_eq!(path.next_timeout(INTERVAL), Some(at(0) + INTERVAL));
    assert_eq!(path.next_timeout(INTERVAL / 10), Some(at(0) + INTERVAL / 10));
    assert!(!path.on_timeout(at(0) + INTERVAL / 10, INTERVAL) && !path.wants_challenge());
    assert!(!path.on_timeout(at(0) + INTERVAL / 10, INTERVAL / 10) && path.wants_challenge());
}
