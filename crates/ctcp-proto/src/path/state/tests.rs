use super::*;
use crate::recovery::loss::INITIAL_LOSS;
use crate::recovery::sent::SpuriousLoss;

const NOW: Instant = Instant::from_secs(10);

fn network(text: &str) -> NetworkPath {
    NetworkPath { local: None, remote: text.parse().unwrap() }
}

fn path() -> Path {
    Path::new(NOW, network("192.0.2.1:1000"), Profile::default(), 1_472)
}

fn packet(path: &mut Path, size: u64) -> SentPacket<Contents> {
    let delivery = path.delivery_snapshot(NOW);
    let number = path.sent.next_number();
    let packet = SentPacket {
        number,
        time: NOW,
        size,
        ack_eliciting: true,
        in_flight: true,
        is_mtu_probe: false,
        is_ecn_capable: false,
        delivery,
        contents: Contents::default(),
    };
    path.on_sent(NOW, packet.clone());
    packet
}

#[test]
fn packets_to_the_old_address_do_not_affect_the_new_one() {
    let mut path = path();
    let old = packet(&mut path, 1_472);
    path.migrate(NOW, network("198.51.100.1:1000"));
    let size = path.owed.mtu.current();
    path.on_mtu_probe_acked(NOW, old.number, 1_472);
    assert_eq!(path.owed.mtu.current(), size);
    path.on_lost(NOW, &old);
    let spurious = SpuriousLoss { distance: 50, age: Duration::from_secs(1), outcomes_since: 0 };
    path.on_spurious_loss(old.number, spurious);
    assert_eq!(path.measured.loss_average.value(), INITIAL_LOSS);

    let new = packet(&mut path, 1_472);
    path.on_lost(NOW, &new);
    assert!(path.measured.loss_average.value() > INITIAL_LOSS);
    path.on_mtu_probe_acked(NOW, new.number, 1_472);
    assert_eq!(path.owed.mtu.current(), 1_472);
}

#[test]
fn another_port_of_the_same_host_keeps_the_measurements() {
    let mut path = path();
    let old = packet(&mut path, 1_472);
    path.migrate(NOW, network("192.0.2.1:2000"));
    path.on_mtu_probe_acked(NOW, old.number, 1_472);
    assert_eq!(path.owed.mtu.current(), 1_472);
}

/// A packet sent with the path's next codepoint.
fn marked_packet(path: &mut Path) -> PacketNumber {
    let is_ecn_capable = path.next_codepoint() == Some(Ecn::Ect0);
    let number = path.sent.next_number();
    let delivery = path.delivery_snapshot(NOW);
    let packet = SentPacket {
        number,
        time: NOW,
        size: 1_200,
        ack_eliciting: true,
        in_flight: true,
        is_mtu_probe: false,
        is_ecn_capable,
        delivery,
        contents: Contents::default(),
    };
    path.on_sent(NOW, packet);
    number
}

/// Acknowledges these packets with these counts of ECT(0) and CE.
fn acknowledge(path: &mut Path, first: PacketNumber, last: PacketNumber, (ect0, ce): (u64, u64)) {
    let mut acked = Vec::new();
    let before = path.sent.largest_acked();
    path.sent.on_ack(NOW, [(first.0, last.0)], &mut acked).expect("an honest ACK");
    let is_newest = path.sent.largest_acked() > before;
    path.on_ecn_counts(is_newest, &acked, Some(EcnCounts { ect0, ect1: 0, ce }));
    acked.iter().for_each(|acked| path.on_acked(NOW, acked));
}

#[test]
fn the_marks_of_an_ack_are_reported_to_congestion_control_once() {
    let reno = crate::congestion::Algorithm::RENO;
    let profile = Profile { congestion: reno, ..Profile::default() };
    let mut path = Path::new(NOW, network("192.0.2.1:1000"), profile, 1_472);
    let numbers: Vec<PacketNumber> = (0..40).map(|_| marked_packet(&mut path)).collect();
    acknowledge(&mut path, numbers[0], numbers[9], (10, 0));
    let before = path.admission.controller.window();
    // Five marks cause one reduction: the other packets of the ACK come before it and grow the window.
    acknowledge(&mut path, numbers[10], numbers[19], (10, 5));
    assert_eq!(path.admission.controller.window(), (before + 9.0) / 2.0);
    // An ACK without newly acknowledged packets leaves its mark to the next one. This round trip already had its reduction.
    acknowledge(&mut path, numbers[10], numbers[19], (10, 6));
    assert!(path.ecn.has_unheard_marks());
    acknowledge(&mut path, numbers[20], numbers[39], (10, 6));
    assert!(!path.ecn.has_unheard_marks() && path.admission.controller.window() == (before + 9.0) / 2.0);
}

#[test]
fn another_host_is_a_new_path_and_is_tested_again() {
    let mut path = path();
    let old: Vec<PacketNumber> = (0..20).map(|_| marked_packet(&mut path)).collect();
    acknowledge(&mut path, old[0], old[1], (0, 0));
    assert_eq!(path.next_codepoint(), None, "the counts do not rise");
    path.migrate(NOW, network("192.0.2.1:2000"));
    assert_eq!(path.next_codepoint(), None, "the same way");
    path.migrate(NOW, network("198.51.100.1:1000"));
    let new: Vec<PacketNumber> = (0..20).map(|_| marked_packet(&mut path)).collect();
    acknowledge(&mut path, old[2], new[19], (10, 0));
    assert!(path.ecn.is_capable());
}
