use super::*;
use ctcp_proto::PacketNumber;
use ctcp_proto::congestion::{INITIAL_RTT, RttEstimator};

/// A path that sends and acknowledges one window after another, with a given round-trip time.
struct Path {
    vegas: Vegas,
    next: u64,
    now: Instant,
    /// Upper limit of packets in flight, independent of the window.
    held_at: u64,
}

impl Path {
    fn new() -> Self {
        Self { vegas: Vegas::new(), next: 0, now: Instant::from_secs(1), held_at: u64::MAX }
    }

    /// Sends and acknowledges a whole window.
    fn round_trip(&mut self, millis: u64) {
        let (first, flight) = (self.next, (self.vegas.window() as u64).min(self.held_at));
        let rtt = RttEstimator::new(INITIAL_RTT).view(self.now);
        let sent_time = self.now;
        for number in first..first + flight {
            self.vegas.on_sent(&Sent {
                now: self.now,
                number: PacketNumber(number),
                size: 0,
                in_flight: number - first + 1,
                rtt,
            });
        }
        self.next += flight;
        self.now += Duration::from_millis(millis);
        for number in first..first + flight {
            self.vegas.on_ack(&Acked {
                now: self.now,
                number: PacketNumber(number),
                sent_time,
                sample: Some(self.now - sent_time),
                size: 0,
                in_flight: 0,
                largest_sent: PacketNumber(self.next - 1),
                rtt,
                loss_average: 0.0,
                is_app_limited: false,
                delivery_rate: None,
                ecn_ce: false,
            });
        }
    }

    fn lose(&mut self, sent_time: Instant) {
        self.vegas.on_loss(&Lost {
            now: self.now,
            number: PacketNumber(self.next),
            sent_time,
            size: 0,
            in_flight: 1,
            largest_sent: PacketNumber(self.next),
            rtt: RttEstimator::new(INITIAL_RTT).view(self.now),
            loss_average: 0.0,
        });
    }
}

#[test]
fn slow_start_doubles_every_other_round_trip_until_a_queue_shows() {
    let mut path = Path::new();
    let windows: Vec<f64> = (0..6)
        .map(|_| {
            path.round_trip(100);
            path.vegas.window()
        })
        .collect();
    assert_eq!(windows, [4.0, 4.0, 8.0, 8.0, 16.0, 16.0]);
    // A round trip of 125 ms means that a fifth of the packets are queued, three of sixteen.
    path.round_trip(125);
    path.round_trip(125);
    assert_eq!(path.vegas.phase(), Phase::Avoidance);
    assert!(path.vegas.window() < 32.0, "{}", path.vegas.window());
}

// Requirement: N3
#[test]
fn the_window_stays_between_alpha_and_beta_queued_packets() {
    // Of 98 packets, 28 queued ones mean a round trip of 140 ms, and 30 one of 144 ms.
    for (millis, change) in [(100, 1.0), (139, 1.0), (142, 0.0), (146, -1.0), (200, -1.0)] {
        let mut path = Path::new();
        path.round_trip(100);
        path.vegas.is_slow_start = false;
        path.vegas.window = 98.0;
        path.round_trip(millis);
        // The first acknowledgement of the next round trip completes it.
        path.vegas.window = 98.0;
        path.round_trip(millis);
        assert_eq!(path.vegas.window() - 98.0, change, "{millis} ms");
    }
}

#[test]
fn all_losses_of_a_window_reduce_it_once_by_a_quarter() {
    let mut path = Path::new();
    path.vegas.window = 80.0;
    let before = path.now;
    path.now += Duration::from_millis(10);
    path.lose(before);
    assert_eq!((path.vegas.window(), path.vegas.phase()), (60.0, Phase::Avoidance));
    path.lose(before);
    assert_eq!(path.vegas.window(), 60.0);
    let later = path.now + Duration::from_millis(1);
    path.now += Duration::from_millis(20);
    path.lose(later);
    assert_eq!(path.vegas.window(), 45.0);
}

#[test]
fn an_unused_window_does_not_grow() {
    let mut path = Path::new();
    path.held_at = 10;
    for _ in 0..100 {
        path.round_trip(100);
    }
    assert!(path.vegas.window() <= 20.0, "{}", path.vegas.window());
    path.vegas.is_slow_start = false;
    path.vegas.window = 9.0;
    for _ in 0..100 {
        path.round_trip(100);
    }
    assert!((10.0..12.0).contains(&path.vegas.window()), "{}", path.vegas.window());
}
