use super::*;
use crate::recovery::loss::INITIAL_LOSS;

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
        delivery,
        contents: Contents::default(),
    };
    path.on_sent(NOW, packet.clone());
    packet
}

#[test]
fn what_becomes_of_packets_to_the_old_address_says_nothing_of_the_new_one() {
    let mut path = path();
    let old = packet(&mut path, 1_472);
    path.migrate(NOW, network("198.51.100.1:1000"));
    let size = path.mtu.current();
    path.on_mtu_probe_acked(NOW, old.number, 1_472);
    assert_eq!(path.mtu.current(), size);
    path.on_lost(NOW, &old);
    let spurious = SpuriousLoss { distance: 50, age: Duration::from_secs(1), outcomes_since: 0 };
    path.on_spurious_loss(NOW, old.number, spurious);
    assert_eq!(path.loss_average.value(), INITIAL_LOSS);

    let new = packet(&mut path, 1_472);
    path.on_lost(NOW, &new);
    assert!(path.loss_average.value() > INITIAL_LOSS);
    path.on_mtu_probe_acked(NOW, new.number, 1_472);
    assert_eq!(path.mtu.current(), 1_472);
}

#[test]
fn another_port_of_the_same_host_is_the_same_way() {
    let mut path = path();
    let old = packet(&mut path, 1_472);
    path.migrate(NOW, network("192.0.2.1:2000"));
    path.on_mtu_probe_acked(NOW, old.number, 1_472);
    assert_eq!(path.mtu.current(), 1_472);
}
