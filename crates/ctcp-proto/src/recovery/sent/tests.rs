use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const THRESHOLDS: LossThresholds = LossThresholds { packets: 3, delay: Duration::from_millis(22) };

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn packet(number: u64, time: Instant) -> SentPacket<u64> {
    SentPacket {
        number: PacketNumber(number),
        time,
        size: 1_000,
        ack_eliciting: true,
        in_flight: true,
        is_mtu_probe: false,
        is_ecn_capable: false,
        delivery: DeliverySnapshot::empty(time),
        contents: number,
    }
}

/// The packets `0..count`, sent one per millisecond from 0 on.
fn ledger(count: u64) -> SentPackets<u64> {
    let mut ledger = SentPackets::new();
    for number in 0..count {
        ledger.on_sent(packet(number, at(number)));
    }
    ledger
}

fn ack(ledger: &mut SentPackets<u64>, millis: u64, ranges: &[(u64, u64)]) -> Vec<AckedPacket<u64>> {
    let mut acked = Vec::new();
    ledger.on_ack(at(millis), ranges.iter().copied(), &mut acked).expect("an honest ACK");
    acked
}

fn numbers(acked: &[AckedPacket<u64>]) -> Vec<u64> {
    acked.iter().map(|newly| newly.packet.number.0).collect()
}

fn lose(ledger: &mut SentPackets<u64>, millis: u64) -> (Vec<u64>, Option<Instant>) {
    let mut lost = Vec::new();
    let deadline = ledger.detect_losses(at(millis), THRESHOLDS, &mut lost);
    (lost.iter().map(|lost| lost.packet.number.0).collect(), deadline)
}

#[test]
fn newly_acknowledged_packets_come_in_ascending_order_and_once() {
    let mut ledger = ledger(10);
    assert_eq!(numbers(&ack(&mut ledger, 20, &[(6, 7), (1, 3)])), [1, 2, 3, 6, 7]);
    assert_eq!(numbers(&ack(&mut ledger, 21, &[(6, 8), (0, 3)])), [0, 8]);
    assert_eq!((ledger.packets_in_flight(), ledger.bytes_in_flight()), (3, 3_000));
    assert_eq!(ledger.largest_acked(), Some(PacketNumber(8)));
}

#[test]
fn a_round_trip_sample_comes_only_from_a_new_largest_number() {
    let mut ledger = ledger(10);
    let mut acked = Vec::new();
    let first = ledger.on_ack(at(20), [(4, 4)], &mut acked).expect("honest");
    assert_eq!(first.rtt_sample_from, Some(at(4)));
    let second = ledger.on_ack(at(21), [(4, 4), (1, 2)], &mut acked).expect("honest");
    assert_eq!((second.rtt_sample_from, second.newly_acked), (None, 2));
}

#[test]
fn acknowledging_an_unsent_packet_is_an_error_and_changes_nothing() {
    let mut ledger = ledger(3);
    ledger.on_sent(packet(5, at(5)));
    let mut acked = Vec::new();
    for (ranges, number) in
        [([(6, 6), (0, 0)], 6), ([(3, 5), (0, 0)], 3), ([(u64::MAX, u64::MAX), (0, 0)], u64::MAX)]
    {
        assert_eq!(ledger.on_ack(at(20), ranges, &mut acked), Err(OptimisticAck { number }));
    }
    assert!(acked.is_empty());
    assert_eq!(ledger.packets_in_flight(), 4);
    assert_eq!(numbers(&ack(&mut ledger, 20, &[(5, 5), (0, 2)])), [0, 1, 2, 5]);
}

#[test]
fn three_newer_packets_make_one_lost_and_two_do_not() {
    let mut ledger = ledger(10);
    ack(&mut ledger, 15, &[(1, 2)]);
    assert_eq!(lose(&mut ledger, 15), (vec![], Some(at(22))));
    ack(&mut ledger, 15, &[(1, 3)]);
    assert_eq!(lose(&mut ledger, 15), (vec![0], None));
    assert_eq!(ledger.packets_in_flight(), 6);
}

#[test]
fn a_packet_older_than_an_acknowledged_one_is_lost_when_its_time_is_over() {
    let mut ledger = ledger(3);
    ack(&mut ledger, 20, &[(2, 2)]);
    assert_eq!(lose(&mut ledger, 21), (vec![], Some(at(22))));
    assert_eq!(lose(&mut ledger, 22), (vec![0], Some(at(23))));
    assert_eq!(lose(&mut ledger, 23), (vec![1], None));
}

#[test]
fn the_newest_packets_are_never_lost_without_a_later_ack() {
    let mut ledger = ledger(3);
    ack(&mut ledger, 20, &[(0, 0)]);
    assert_eq!(lose(&mut ledger, 10_000), (vec![], None));
}

#[test]
fn a_lost_packet_that_arrives_is_reported_as_reordering() {
    let mut ledger = ledger(10);
    ack(&mut ledger, 15, &[(1, 6)]);
    assert_eq!(lose(&mut ledger, 15).0, [0]);
    ack(&mut ledger, 16, &[(1, 8)]);
    let late = ack(&mut ledger, 17, &[(0, 8)]);
    let spurious = late[0].was_lost.expect("it had been lost");
    assert_eq!((spurious.distance, spurious.outcomes_since), (8, 2));
    assert_eq!(spurious.age, Duration::from_millis(17));
    assert_eq!(ledger.packets_in_flight(), 1, "it left the count once");
}

#[test]
fn a_lost_packet_is_removed_after_a_while_and_its_late_ack_ignored() {
    let mut ledger = ledger(10);
    ack(&mut ledger, 15, &[(1, 9)]);
    assert_eq!(lose(&mut ledger, 15).0, [0]);
    lose(&mut ledger, 1_000);
    assert!(ack(&mut ledger, 1_001, &[(0, 9)]).is_empty());
    assert_eq!(ledger.next_number(), PacketNumber(10));
}

// Requirement: C5
#[test]
fn each_packet_expires_once_which_is_reported_with_its_fate() {
    let mut ledger = ledger(4);
    ack(&mut ledger, 10, &[(1, 1)]);
    let expired: Vec<u64> =
        core::iter::from_fn(|| ledger.poll_expired(at(3)).map(|packet| packet.contents)).collect();
    assert_eq!(expired, [0, 2]);
    assert!(ledger.poll_expired(at(3)).is_none());
    assert_eq!(ledger.next_to_expire(), Some(at(3)));
    let acked = ack(&mut ledger, 12, &[(0, 3)]);
    let expired: Vec<_> = acked.iter().map(|newly| (newly.packet.contents, newly.was_expired)).collect();
    assert_eq!(expired, [(0, true), (2, true), (3, false)]);
}

#[test]
fn packets_of_a_side_that_only_acknowledges_are_removed() {
    let mut ledger = SentPackets::new();
    for number in 0..10_000 {
        ledger.on_sent(SentPacket { ack_eliciting: false, in_flight: false, ..packet(number, at(number)) });
    }
    assert!(ledger.slots.len() <= UNASKED_MAX + 1);
    assert!(ack(&mut ledger, 10_000, &[(0, 100)]).is_empty());
    assert_eq!(numbers(&ack(&mut ledger, 10_000, &[(9_999, 9_999)])), [9_999]);
}

#[test]
fn old_ack_eliciting_packets_are_given_up_if_the_peer_never_acknowledges() {
    let mut ledger = SentPackets::new();
    let mut lost = Vec::new();
    for number in 0..50_000 {
        // One in a thousand is ack-eliciting, including the first.
        let asks = number % 1_000 == 0;
        ledger.on_sent(SentPacket { ack_eliciting: asks, in_flight: asks, ..packet(number, at(number)) });
        assert!(ledger.slots.len() <= DEBT_MAX + 1);
        if ledger.has_given_up() {
            assert_eq!(ledger.detect_losses(at(number), THRESHOLDS, &mut lost), None);
        }
    }
    assert!(ledger.has_room());
    let given_up: Vec<u64> = lost.iter().map(|lost| lost.packet.contents).collect();
    assert_eq!(given_up[..3], [0, 1_000, 2_000]);
    assert_eq!(ledger.packets_in_flight() + lost.len() as u64, 50, "each is given up or still in flight");
}

#[test]
fn many_ack_eliciting_packets_are_all_kept() {
    let ledger = ledger(20_000);
    assert!(!ledger.has_given_up());
    assert_eq!(ledger.packets_in_flight(), 20_000);
}

#[test]
fn a_repeated_ack_over_thousands_of_packets_costs_a_few_steps() {
    let mut ledger = ledger(20_000);
    // Packet 0 stays outstanding, so that no slot can be removed at the front.
    ack(&mut ledger, 20_000, &[(1, 19_999)]);
    let before = match ledger.slot(1) {
        Some(Slot::Acked { next }) => *next,
        _ => 0,
    };
    assert_eq!(before, 20_000, "the run is one step long");
    for number in 20_000..20_100 {
        ledger.on_sent(packet(number, at(number)));
        assert_eq!(numbers(&ack(&mut ledger, number, &[(1, number)])), [number]);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Send(u64),
    Ack(Vec<u64>),
    Detect,
    Expire(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0u64..3).prop_map(Step::Send),
        4 => prop::collection::vec(0u64..60, 1..12).prop_map(Step::Ack),
        2 => Just(Step::Detect),
        1 => (0u64..40).prop_map(Step::Expire),
    ]
}

/// The inclusive descending ranges of a set of numbers.
fn ranges(mut numbers: Vec<u64>) -> Vec<(u64, u64)> {
    numbers.sort_unstable();
    numbers.dedup();
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some(range) if range.1 + 1 == number => range.1 = number,
            _ => ranges.push((number, number)),
        }
    }
    ranges.reverse();
    ranges
}

proptest! {
    /// The model keeps every packet: `true` while outstanding.
    #[test]
    fn the_ledger_equals_a_map_of_every_packet(steps in prop::collection::vec(step(), 1..150)) {
        let mut ledger = SentPackets::new();
        let mut model: BTreeMap<u64, bool> = BTreeMap::new();
        let mut millis = 0;
        for step in steps {
            millis += 1;
            match step {
                Step::Send(skip) => {
                    let number = ledger.next_number().0 + skip;
                    ledger.on_sent(packet(number, at(millis)));
                    model.insert(number, true);
                }
                Step::Ack(back) => {
                    let next = ledger.next_number().0;
                    let sent: Vec<u64> = back.iter().filter_map(|back| next.checked_sub(back + 1))
                        .filter(|number| model.contains_key(number)).collect();
                    let named = ranges(sent);
                    for newly in ack(&mut ledger, millis, &named) {
                        let was_outstanding = model.insert(newly.packet.number.0, false) == Some(true);
                        prop_assert_eq!(was_outstanding, newly.was_lost.is_none());
                    }
                    for (first, last) in named {
                        prop_assert!((first..=last).all(|number| model.get(&number) != Some(&true)));
                    }
                }
                Step::Detect => {
                    for number in lose(&mut ledger, millis).0 {
                        prop_assert_eq!(model.insert(number, false), Some(true));
                    }
                }
                Step::Expire(age) => {
                    let before = at(millis.saturating_sub(age));
                    while let Some(packet) = ledger.poll_expired(before) {
                        prop_assert!(packet.time < before && model.get(&packet.contents) == Some(&true));
                    }
                }
            }
            let outstanding = model.values().filter(|is_outstanding| **is_outstanding).count() as u64;
            prop_assert_eq!(ledger.packets_in_flight(), outstanding);
            prop_assert_eq!(ledger.bytes_in_flight(), outstanding * 1_000);
        }
    }
}

#[test]
fn the_first_outstanding_packet_after_a_number_is_found_whatever_was_forgotten() {
    let mut ledger = ledger(10);
    ack(&mut ledger, 20, &[(4, 5)]);
    let after = |ledger: &SentPackets<u64>, number| ledger.first_outstanding_after(PacketNumber(number));
    assert_eq!([2, 3, 4, 8].map(|number| after(&ledger, number)), [at(3), at(6), at(6), at(9)].map(Some));
    assert_eq!(after(&ledger, 9), None);
    let mut silent = SentPackets::new();
    for number in 0..100_000 {
        silent.on_sent(SentPacket { ack_eliciting: false, in_flight: false, ..packet(number, at(number)) });
    }
    assert!(silent.slots.len() < 100_000, "the oldest are forgotten");
    assert_eq!(after(&silent, 0), Some(at(silent.base)));
    assert_eq!(after(&silent, 99_998), Some(at(99_999)));
}

#[test]
fn a_path_that_answers_no_probe_remembers_few_of_them() {
    let mut ledger = SentPackets::new();
    for number in 0..100_000 {
        ledger.on_sent(packet(number, at(number)));
        ledger.give_up_flight(ledger.next_number());
        if ledger.has_given_up() {
            ledger.detect_losses(at(number), THRESHOLDS, &mut Vec::new());
        }
        assert!(ledger.slots.len() <= DEBT_MAX + 1);
    }
    assert_eq!((ledger.packets_in_flight(), ledger.bytes_in_flight()), (0, 0));
}

#[test]
fn packets_given_up_leave_the_window_and_are_still_reported() {
    let mut ledger = ledger(10);
    ledger.give_up_flight(PacketNumber(4));
    assert_eq!((ledger.packets_in_flight(), ledger.bytes_in_flight()), (6, 6_000));
    ledger.give_up_flight(PacketNumber(2));
    ledger.give_up_flight(PacketNumber(10));
    assert_eq!((ledger.packets_in_flight(), ledger.bytes_in_flight()), (0, 0));
    ledger.on_sent(packet(10, at(50)));
    ledger.on_sent(packet(11, at(51)));
    assert_eq!((ledger.packets_in_flight(), ledger.bytes_in_flight()), (2, 2_000));
    assert_eq!(numbers(&ack(&mut ledger, 60, &[(10, 10), (3, 3)])), [3, 10]);
    assert_eq!(lose(&mut ledger, 60).0, [0, 1, 2, 4, 5, 6, 7, 8, 9]);
    assert_eq!((ledger.packets_in_flight(), ledger.bytes_in_flight()), (1, 1_000));
    assert!(ledger.has_ack_eliciting_outstanding());
}
