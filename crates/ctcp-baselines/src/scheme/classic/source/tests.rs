use super::*;
use core::time::Duration;

fn at(millis: u64) -> Instant {
    Instant::from_secs(10) + Duration::from_millis(millis)
}

/// Returns a source that has sent `count` symbols, one per millisecond, starting at 0.
fn sent(count: u64) -> Sequence {
    sent_as(Reading::TcpNc, count)
}

fn sent_as(reading: Reading, count: u64) -> Sequence {
    let mut source = Sequence::new(100, reading);
    for index in 0..count {
        assert_eq!(source.wants(100.0), Some(Wanted::New));
        source.on_sent(at(index), Wanted::New);
    }
    drop(signals(&mut source));
    source
}

fn signals(source: &mut Sequence) -> Vec<&'static str> {
    core::iter::from_fn(|| source.poll_signal())
        .map(|signal| match signal {
            Signal::Sent(_) => "sent",
            Signal::Acked(Acked { sample: Some(_), .. }) => "acked",
            Signal::Acked(_) => "acked, no sample",
            Signal::Lost(_) => "lost",
            Signal::TimedOut(_) => "timed out",
        })
        .collect()
}

#[test]
fn the_smaller_of_both_windows_is_the_limit_and_acknowledgements_open_it() {
    let mut source = sent(4);
    assert_eq!(source.wants(4.9), None);
    assert_eq!(source.wants(5.0), Some(Wanted::New));
    source.on_ack(at(100), 2);
    assert_eq!(signals(&mut source), ["acked", "acked"]);
    assert_eq!((source.unacked(), source.next()), (2, 4));
    assert_eq!(source.wants(3.0), Some(Wanted::New));
    let mut narrow = Sequence { window_max: 1.0, ..sent(1) };
    assert_eq!(narrow.wants(50.0), None);
    narrow.on_ack(at(100), 1);
    assert_eq!(narrow.wants(50.0), Some(Wanted::New));
}

#[test]
fn the_third_duplicate_retransmits_the_oldest_symbol_and_releases_new_ones() {
    let mut source = sent(5);
    for _ in 0..2 {
        source.on_ack(at(50), 0);
        assert_eq!(source.wants(5.0), None);
    }
    source.on_ack(at(50), 0);
    assert_eq!(signals(&mut source), ["lost"]);
    assert_eq!(source.wants(5.0), Some(Wanted::Again(0)));
    source.on_sent(at(51), Wanted::Again(0));
    assert_eq!(source.wants(3.75), Some(Wanted::New), "three have left the network");
    assert_eq!(source.wants(2.0), None);
    source.on_ack(at(80), 5);
    assert!(
        signals(&mut source).iter().all(|signal| *signal != "acked"),
        "no samples from before the repair"
    );
    assert_eq!(source.deadline(), None);
}

#[test]
fn a_duplicate_is_enough_when_the_oldest_is_overdue() {
    let mut source = sent(1);
    source.on_ack(at(100), 1);
    for _ in 0..3 {
        source.on_sent(at(200), Wanted::New);
    }
    // The round trip was 100 ms, and the first sample sets its deviation to 50 ms.
    source.on_ack(at(499), 1);
    assert_eq!(source.wants(3.0), None);
    source.on_ack(at(501), 1);
    assert_eq!(source.wants(3.0), Some(Wanted::Again(1)));
    source.on_sent(at(501), Wanted::Again(1));
    drop(signals(&mut source));
    // The next symbol was sent at the same time and is overdue as well.
    source.on_ack(at(600), 2);
    assert_eq!(source.wants(3.0), Some(Wanted::Again(2)));
}

#[test]
fn a_time_out_retransmits_everything_from_the_oldest_symbol_on() {
    let mut source = sent(3);
    assert_eq!(source.deadline(), Some(at(1_000)));
    source.on_timeout(at(1_000));
    assert_eq!(signals(&mut source), ["timed out"]);
    for index in 0..2 {
        assert_eq!(source.wants(2.0), Some(Wanted::Again(index)));
        source.on_sent(at(1_001), Wanted::Again(index));
    }
    assert_eq!(source.wants(2.0), None);
    assert_eq!(source.deadline(), Some(at(3_000)), "twice as long");
    source.on_ack(at(1_100), 1);
    assert_eq!(signals(&mut source)[2..], ["acked, no sample"]);
    assert_eq!(source.wants(2.0), Some(Wanted::Again(2)));
    // The receiver had kept the symbols that arrived earlier.
    source.on_ack(at(1_200), 3);
    assert_eq!(source.wants(2.0), Some(Wanted::New));
}

#[test]
fn a_time_out_of_eot_and_pb_retransmits_only_the_oldest_symbol() {
    let mut source = sent_as(Reading::EotPb, 3);
    for _ in 0..5 {
        source.on_ack(at(500), 0);
    }
    assert_eq!(source.wants(3.0), None, "duplicates mean nothing");
    source.on_timeout(at(1_000));
    assert_eq!(source.wants(2.0), Some(Wanted::Again(0)));
    source.on_sent(at(1_001), Wanted::Again(0));
    assert_eq!(source.wants(2.0), None);
    source.on_ack(at(1_100), 1);
    assert_eq!((source.wants(2.0), source.wants(3.0)), (None, Some(Wanted::New)));
}

#[test]
fn new_reno_repairs_losses_one_by_one_and_needs_fewer_duplicates_for_few_symbols() {
    let mut source = sent_as(Reading::NewReno, 6);
    source.on_ack(at(50), 0);
    assert_eq!(source.wants(6.0), Some(Wanted::New), "limited transmit");
    for _ in 0..2 {
        source.on_ack(at(50), 0);
    }
    assert_eq!(source.wants(6.0), Some(Wanted::Again(0)));
    source.on_sent(at(51), Wanted::Again(0));
    source.on_ack(at(80), 3);
    assert_eq!(source.wants(3.0), Some(Wanted::Again(3)), "lost with the first");
    source.on_sent(at(81), Wanted::Again(3));
    source.on_ack(at(110), 6);
    assert_eq!(source.wants(1.0), Some(Wanted::New));
    let mut few = sent_as(Reading::NewReno, 2);
    few.on_ack(at(50), 0);
    assert_eq!(few.wants(2.0), Some(Wanted::Again(0)));
    let mut lone = sent_as(Reading::NewReno, 1);
    lone.on_ack(at(50), 0);
    assert_eq!(lone.wants(1.0), None, "it may be for a packet without symbols");
}

#[test]
fn new_reno_slow_starts_after_a_time_out() {
    let mut source = sent_as(Reading::NewReno, 20);
    source.on_ack(at(100), 1);
    let mut reno = ctcp_proto::congestion::Algorithm::RENO.controller(1_200);
    source.on_timeout(at(2_000));
    let (mut millis, mut sizes) = (2_000, Vec::new());
    for _ in 0..3 {
        while let Some(signal) = source.poll_signal() {
            signal.tell(reno.as_mut());
        }
        while let Some(Wanted::Again(index)) = source.wants(reno.window()) {
            source.on_sent(at(millis), Wanted::Again(index));
        }
        sizes.push(source.resume - source.unacked());
        millis += 100;
        for unseen in source.unacked() + 1..=source.resume {
            source.on_ack(at(millis), unseen);
        }
    }
    assert_eq!(sizes, [1, 2, 4]);
}
