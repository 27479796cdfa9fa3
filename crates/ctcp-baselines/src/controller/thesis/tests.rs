use super::*;
use ctcp_base::Instant;
use ctcp_proto::PacketNumber;
use ctcp_proto::congestion::{INITIAL_RTT, RttEstimator};

const DATAGRAM: u64 = 1_472;

/// Acknowledges packet after packet, each with its own round trip.
struct Path {
    thesis: Thesis,
    next: u64,
}

impl Path {
    fn in_slow_start() -> Self {
        Self { thesis: Thesis::new(DATAGRAM), next: 0 }
    }

    /// A path in congestion avoidance with the given window, after many round trips of 100 ms.
    fn avoiding(window: f64) -> Self {
        let mut path = Self::in_slow_start();
        path.thesis.is_slow_start = false;
        (0..2_000).for_each(|_| path.ack(100.0));
        path.thesis.window = window;
        path
    }

    fn ack(&mut self, millis: f64) {
        let sample = Duration::from_secs_f64(millis / 1e3);
        self.next += 1;
        self.thesis.on_ack(&Acked {
            now: Instant::from_secs(1),
            number: PacketNumber(self.next),
            sent_time: Instant::ZERO,
            sample: Some(sample),
            size: DATAGRAM,
            in_flight: 10,
            largest_sent: PacketNumber(self.next + 10),
            rtt: RttEstimator::new(INITIAL_RTT).view(Instant::from_secs(1)),
            loss_average: 0.0,
            is_app_limited: false,
            delivery_rate: None,
            ecn_ce: false,
        });
    }

    fn lose(&mut self, number: u64) {
        self.thesis.on_loss(&Lost {
            now: Instant::from_secs(1),
            number: PacketNumber(number),
            sent_time: Instant::ZERO,
            size: DATAGRAM,
            in_flight: 10,
            largest_sent: PacketNumber(number + 10),
            rtt: RttEstimator::new(INITIAL_RTT).view(Instant::from_secs(1)),
            loss_average: 0.1,
        });
    }

    fn time_out(&mut self) {
        self.thesis.on_timeout(&TimedOut {
            now: Instant::from_secs(2),
            in_flight: 10,
            largest_sent: PacketNumber(self.next + 10),
            rtt: RttEstimator::new(INITIAL_RTT).view(Instant::from_secs(2)),
        });
    }
}

// Requirement: U6
#[test]
fn between_its_bounds_the_window_stays() {
    // With s the smoothed time, v = 1 - ((1-phi) s + phi rtt) / rtt = (1-phi) (1 - s/rtt): 0.05 at 105.5 ms, 0.2 at
    // 126.3.
    for (millis, change) in
        [(50.0, 1.0), (100.0, 1.0), (105.0, 1.0), (106.0, 0.0), (126.0, 0.0), (127.0, -1.0)]
    {
        let mut path = Path::avoiding(20.0);
        path.ack(millis);
        let found = (path.thesis.window() - 20.0) * 20.0;
        assert!((found - change).abs() < 1e-9, "{millis} ms: {found}");
    }
}

// Requirement: U6
#[test]
fn the_smoothed_time_takes_a_twenty_fifth_of_each_round_trip() {
    let mut path = Path::avoiding(20.0);
    path.ack(200.0);
    let smoothed = path.thesis.smoothed.expect("measured") * 1e3;
    assert!((smoothed - (100.0 + 100.0 * 5.0 / 128.0)).abs() < 1e-6, "{smoothed}");
}

// Requirement: U6
#[test]
fn the_first_loss_ends_slow_start_and_later_ones_change_nothing() {
    let mut path = Path::in_slow_start();
    (0..22).for_each(|_| path.ack(100.0));
    assert_eq!((path.thesis.window(), path.thesis.phase()), (32.0, Phase::SlowStart));
    path.lose(23);
    assert_eq!((path.thesis.window(), path.thesis.phase()), (16.0, Phase::Avoidance));
    for number in 24..200 {
        path.lose(number);
    }
    assert_eq!(path.thesis.window(), 16.0);
}

// Requirement: U6
#[test]
fn a_time_out_restarts_slow_start_up_to_half_the_window() {
    let mut path = Path::avoiding(20.0);
    path.time_out();
    assert_eq!((path.thesis.window(), path.thesis.phase()), (1.0, Phase::SlowStart));
    path.lose(path.next);
    assert_eq!(path.thesis.phase(), Phase::SlowStart, "losses of older packets change nothing");
    path.time_out();
    (0..9).for_each(|_| path.ack(100.0));
    assert_eq!((path.thesis.window(), path.thesis.phase()), (10.0, Phase::Avoidance));
    (0..400).for_each(|step| path.ack(if step % 40 == 0 { 500.0 } else { 106.0 }));
    assert_eq!(path.thesis.phase(), Phase::Avoidance, "slow start does not restart below the threshold");
}
