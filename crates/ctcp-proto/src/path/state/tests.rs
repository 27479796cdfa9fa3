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

fn acked(path: &mut Path, packet: &SentPacket<Contents>, is_sample: bool) {
    let acked = AckedPacket { packet: packet.clone(), was_expired: false, was_lost: None };
    path.on_acked(NOW + Duration::from_millis(20), &acked, is_sample);
}

fn reno() -> Path {
    let profile = Profile::named(crate::profile::ProfileName::Tcp);
    Path::new(NOW, network("192.0.2.1:1000"), profile, 1_472)
}

#[test]
fn the_first_flight_behind_a_pause_lets_the_window_grow_if_the_window_was_what_ended_it() {
    let mut path = reno();
    path.set_app_limited(true);
    path.set_app_limited(false);
    let first = packet(&mut path, 1_200);
    let before = path.controller.window();
    acked(&mut path, &first, true);
    assert_eq!(path.controller.window(), before + 1.0);
}

#[test]
fn a_request_that_leaves_the_window_unused_does_not_let_it_grow() {
    let mut path = reno();
    path.set_app_limited(true);
    path.set_app_limited(false);
    let first = packet(&mut path, 1_200);
    path.set_app_limited(true);
    let before = path.controller.window();
    acked(&mut path, &first, true);
    assert_eq!(path.controller.window(), before);
}

#[test]
fn of_the_packets_of_an_ack_one_gives_the_round_trip() {
    use std::sync::{Arc, Mutex};

    let samples = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&samples);
    let factory = ControllerFactory::new(move |_| Box::new(Samples(Arc::clone(&told))));
    let mut path = path().with_controller(Some(factory));
    let packets = [packet(&mut path, 1_200), packet(&mut path, 1_200)];
    acked(&mut path, &packets[0], false);
    acked(&mut path, &packets[1], true);
    assert_eq!(*samples.lock().expect("no panic"), [None, Some(Duration::from_millis(20))]);
}

/// Writes down the samples it is told.
#[derive(Debug)]
struct Samples(std::sync::Arc<std::sync::Mutex<Vec<Option<Duration>>>>);

impl Controller for Samples {
    fn on_sent(&mut self, _: &Sent) {}
    fn on_ack(&mut self, acked: &Acked) {
        self.0.lock().expect("no panic").push(acked.sample);
    }
    fn on_loss(&mut self, _: &Lost) {}
    fn on_timeout(&mut self, _: &TimedOut) {}
    fn on_datagram_size(&mut self, _: u64) {}
    fn window(&self) -> f64 {
        10.0
    }
    fn pacing_rate(&self) -> Option<f64> {
        None
    }
    fn phase(&self) -> Phase {
        Phase::Avoidance
    }
    fn name(&self) -> &'static str {
        "samples"
    }
}
