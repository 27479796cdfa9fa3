//! What holds for every controller, whatever it is told, in any order.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Operation {
    Send,
    Ack { app_limited: bool, mark: bool },
    Lose,
    TimeOut,
    Resize(u64),
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        8 => Just(Operation::Send),
        8 => (prop::bool::weighted(0.1), prop::bool::weighted(0.02))
            .prop_map(|(app_limited, mark)| Operation::Ack { app_limited, mark }),
        3 => Just(Operation::Lose),
        1 => Just(Operation::TimeOut),
        1 => (1_200u64..9_000).prop_map(Operation::Resize),
    ]
}

/// Round-trip times that need not fit together.
fn rtt() -> impl Strategy<Value = RttView> {
    (1u64..2_000_000, 1u64..2_000_000, 1u64..2_000_000, 1u64..2_000_000).prop_map(|(a, b, c, d)| {
        let micros = Duration::from_micros;
        let minimum = micros(a.min(b));
        RttView {
            latest: micros(b),
            smoothed: micros(c),
            variance: micros(d) / 4,
            minimum,
            minimum_ever: minimum.min(micros(d)),
            standing: micros(b.min(c)).max(minimum),
        }
    })
}

fn apply(controller: &mut dyn Controller, operation: &Operation, step: u64, rtt: RttView, rate: Option<f64>) {
    let now = Instant::from_micros(step * 500);
    let sent_time = now.saturating_back(rtt.latest);
    let (number, largest_sent) = (PacketNumber(step), PacketNumber(step + step % 40));
    let (size, in_flight, loss_average) = (DATAGRAM, step % 100, (step % 11) as f64 / 10.0);
    match *operation {
        Operation::Send => {
            controller.on_sent(&Sent { now, number, size, in_flight, rtt });
        }
        Operation::Ack { app_limited: is_app_limited, mark: ecn_ce } => controller.on_ack(&Acked {
            now,
            number,
            sent_time,
            sample: Some(now - sent_time),
            size,
            in_flight,
            largest_sent,
            rtt,
            loss_average,
            is_app_limited,
            delivery_rate: rate,
            ecn_ce,
        }),
        Operation::Lose => {
            controller.on_loss(&Lost {
                now,
                number,
                sent_time,
                size,
                in_flight,
                largest_sent,
                rtt,
                loss_average,
            });
        }
        Operation::TimeOut => controller.on_timeout(&TimedOut { now, in_flight, largest_sent, rtt }),
        Operation::Resize(bytes) => controller.on_datagram_size(bytes),
    }
}

proptest! {
    #[test]
    fn the_window_and_the_rate_stay_finite_and_positive(
        steps in prop::collection::vec((operation(), rtt(), prop::option::of(0.0f64..1e12)), 1..400),
    ) {
        for algorithm in crate::Catalogue::default().controls() {
            let mut controller = algorithm.controller(DATAGRAM);
            for (step, (operation, rtt, rate)) in steps.iter().enumerate() {
                apply(controller.as_mut(), operation, step as u64, *rtt, *rate);
                let window = controller.window();
                prop_assert!((1.0..=WINDOW_MAX).contains(&window), "{:?}: {}", algorithm, window);
                if let Some(rate) = controller.pacing_rate() {
                    prop_assert!(rate.is_finite() && rate > 0.0, "{:?}: {}", algorithm, rate);
                }
            }
        }
    }
}

#[test]
fn every_controller_paces_its_first_window_once_it_knows_a_round_trip() {
    let micros = Duration::from_micros(20_000);
    let rtt = RttView {
        latest: micros,
        smoothed: micros,
        variance: micros / 2,
        minimum: micros,
        minimum_ever: micros,
        standing: micros,
    };
    for algorithm in [Algorithm::DEFAULT, Algorithm::CTCP, Algorithm::RENO, Algorithm::CUBIC] {
        let mut controller = algorithm.controller(DATAGRAM);
        assert_eq!(controller.pacing_rate(), None);
        apply(controller.as_mut(), &Operation::Send, 0, rtt, None);
        let expected = 2.0 * controller.window() * DATAGRAM as f64 / 0.02;
        let rate = controller.pacing_rate().expect("a round trip is known");
        assert!((rate / expected - 1.0).abs() < 1e-9, "{algorithm:?}: {rate} {expected}");
    }
}

#[test]
fn a_time_out_never_makes_a_window_larger() {
    let mut controller = Algorithm::DEFAULT.controller(DATAGRAM);
    for number in 0..10 {
        let before = controller.window();
        let (now, largest_sent) = (Instant::from_millis(number), PacketNumber(number));
        controller.on_timeout(&TimedOut { now, in_flight: 1, largest_sent, rtt: super::rtt(0) });
        assert!(controller.window() <= before, "{} after {before}", controller.window());
    }
}

#[test]
fn a_time_out_after_another_leaves_eight_packets_five_times_and_then_half() {
    let mut controller = Algorithm::DEFAULT.controller(DATAGRAM);
    let windows: Vec<f64> = (0..9)
        .map(|number| {
            let (now, largest_sent) = (Instant::from_millis(number), PacketNumber(number));
            controller.on_timeout(&TimedOut { now, in_flight: 1, largest_sent, rtt: super::rtt(0) });
            controller.window()
        })
        .collect();
    assert_eq!(windows, [16.0, 8.0, 8.0, 8.0, 8.0, 4.0, 2.0, 1.0, 1.0]);
}
