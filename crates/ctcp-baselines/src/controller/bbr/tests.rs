use super::*;
use ctcp_proto::PacketNumber;
use ctcp_proto::congestion::{INITIAL_RTT, RttEstimator};

const RTT: Duration = Duration::from_millis(50);

/// A path that delivers so many packets per round trip, and queues the rest.
struct Path {
    bbr: Bbr,
    rtt: RttEstimator,
    next: u64,
    now: Instant,
    capacity: u64,
}

impl Path {
    fn new(capacity: u64, tolerates_loss: bool) -> Self {
        let (bbr, rtt) = (Bbr::new(1_200, tolerates_loss), RttEstimator::new(INITIAL_RTT));
        Self { bbr, rtt, next: 0, now: Instant::from_secs(1), capacity }
    }

    /// Sends what window and pacing allow for a round trip, and learns its fate; every `lost`th packet is lost.
    fn round_trip(&mut self, lost: Option<u64>) {
        let paced = self.bbr.pacing_rate().map_or(32.0, |rate| rate / 1_200.0 * RTT.as_secs_f64());
        let count = (self.bbr.window() as u64).min(paced.ceil() as u64).max(1);
        let (first, began) = (self.next, self.now);
        let step = RTT / count as u32;
        for number in first..first + count {
            self.bbr.on_sent(&Sent {
                now: began + step * (number - first) as u32,
                number: PacketNumber(number),
                size: 1_200,
                in_flight: number - first + 1,
                rtt: self.rtt.view(began),
            });
        }
        self.next += count;
        let arrives = RTT / self.capacity.min(count) as u32;
        for number in first..first + count {
            let place = number - first;
            self.now = began + RTT + arrives * place as u32;
            let delay = self.now - (began + step * place as u32);
            let (sent_time, in_flight) = (began + step * place as u32, count - place - 1);
            if lost.is_some_and(|each| number % each == 0) {
                self.bbr.on_loss(&Lost {
                    now: self.now,
                    number: PacketNumber(number),
                    sent_time,
                    size: 1_200,
                    in_flight,
                    largest_sent: PacketNumber(self.next - 1),
                    rtt: self.rtt.view(self.now),
                    loss_average: 0.0,
                });
                continue;
            }
            self.rtt.on_sample(self.now, delay, Duration::ZERO);
            self.bbr.on_ack(&Acked {
                now: self.now,
                number: PacketNumber(number),
                sent_time,
                sample: Some(delay),
                size: 1_200,
                in_flight,
                largest_sent: PacketNumber(self.next - 1),
                rtt: self.rtt.view(self.now),
                loss_average: 0.0,
                is_app_limited: false,
                delivery_rate: None,
                ecn_ce: false,
            });
        }
        self.now = began + RTT + arrives * count as u32;
    }
}

#[test]
fn startup_doubles_and_ends_when_the_rate_no_longer_grows() {
    let mut path = Path::new(200, false);
    let mut rounds = 0;
    while path.bbr.state == State::Startup {
        path.round_trip(None);
        rounds += 1;
        assert!(rounds < 20, "{:?}", path.bbr.model);
    }
    assert!(path.bbr.model.bandwidth() > 100.0 / RTT.as_secs_f64(), "{:?}", path.bbr.model);
}

#[test]
fn the_path_is_probed_for_bandwidth_again_and_again() {
    let mut path = Path::new(200, false);
    let mut seen = Vec::new();
    for _ in 0..200 {
        path.round_trip(None);
        if seen.last() != Some(&path.bbr.state) {
            seen.push(path.bbr.state);
        }
    }
    for state in [State::Cruise, State::Refill, State::Up, State::ProbeRtt] {
        assert!(seen.contains(&state), "{seen:?}");
    }
}

#[test]
fn only_the_tolerant_one_takes_loss_without_queue_for_the_paths_own() {
    let [strict, tolerant] = [false, true].map(|tolerates_loss| {
        let mut path = Path::new(200, tolerates_loss);
        (0..100).for_each(|_| path.round_trip(Some(10)));
        (path.bbr.innocent.loss(), path.bbr.innocent.threshold(0.02, 1e6))
    });
    assert_eq!(strict, (0.0, 0.02));
    assert!((0.06..0.14).contains(&tolerant.0) && tolerant.1 > tolerant.0 + 0.019, "{tolerant:?}");
}

#[test]
fn a_sample_counts_what_was_delivered_and_lost_since_its_packet_was_sent() {
    let mut sampler = Sampler::default();
    let rtt = RttEstimator::new(INITIAL_RTT).view(Instant::ZERO);
    let at = |millis| Instant::from_millis(millis);
    for number in 0..4 {
        let number = PacketNumber(number);
        let in_flight = number.0 + 1;
        sampler.on_sent(&Sent { now: at(0), number, size: 1, in_flight, rtt });
    }
    let acked = |number, now| Acked {
        now,
        number: PacketNumber(number),
        sent_time: at(0),
        sample: None,
        size: 1,
        in_flight: 0,
        largest_sent: PacketNumber(3),
        rtt,
        loss_average: 0.0,
        is_app_limited: false,
        delivery_rate: None,
        ecn_ce: false,
    };
    let first = sampler.on_ack(&acked(0, at(100)), RTT).expect("it was sent");
    assert_eq!((first.delivered, first.lost, first.rate), (1.0, 0.0, Some(10.0)));
    let lost = Lost {
        now: at(100),
        number: PacketNumber(1),
        sent_time: at(0),
        size: 1,
        in_flight: 2,
        largest_sent: PacketNumber(3),
        rtt,
        loss_average: 0.0,
    };
    assert_eq!(sampler.on_loss(&lost).map(|sample| (sample.lost, sample.rate)), Some((1.0, None)));
    let last = sampler.on_ack(&acked(3, at(200)), RTT).expect("it was sent");
    assert_eq!((last.delivered, last.lost, last.in_flight), (2.0, 1.0, 4.0));
    assert_eq!(sampler.on_ack(&acked(3, at(200)), RTT), None, "twice");
}
