use super::*;

const RTT: Duration = Duration::from_millis(20);

/// Sends one 1000-byte packet each `gap` and acknowledges it a round trip later.
fn run(meter: &mut DeliveryRate, gap: Duration, packets: u64) -> Option<f64> {
    let mut in_flight = std::collections::VecDeque::new();
    let mut now = Instant::from_secs(1);
    for _ in 0..packets {
        while in_flight.front().is_some_and(|(_, sent)| *sent + RTT <= now) {
            let (snapshot, sent) = in_flight.pop_front().expect("just seen");
            meter.on_packet_acked(sent + RTT, snapshot, sent, 1_000);
            meter.finish_ack(sent + RTT, RTT);
        }
        in_flight.push_back((meter.on_sent(now, in_flight.len() as u64 * 1_000), now));
        now += gap;
    }
    meter.maximum()
}

#[test]
fn one_kilobyte_per_millisecond_is_a_megabyte_per_second() {
    let rate = run(&mut DeliveryRate::new(Instant::ZERO), Duration::from_millis(1), 200).expect("samples");
    assert!((0.99e6..1.01e6).contains(&rate), "{rate}");
}

#[test]
fn compressed_acknowledgements_do_not_make_the_path_look_faster() {
    let mut meter = DeliveryRate::new(Instant::ZERO);
    let start = Instant::from_secs(1);
    let sent: Vec<_> = (0..20)
        .map(|index| {
            let now = start + Duration::from_millis(index);
            (meter.on_sent(now, index * 1_000), now)
        })
        .collect();
    // All twenty acknowledged in one instant.
    let now = start + Duration::from_millis(40);
    for (snapshot, sent) in sent {
        meter.on_packet_acked(now, snapshot, sent, 1_000);
    }
    let sample = meter.finish_ack(now, RTT).expect("a sample");
    assert!(sample.rate <= 20_000.0 / 0.019 * 1.001, "{}", sample.rate);
}

#[test]
fn an_application_limited_sample_never_lowers_the_maximum() {
    let mut meter = DeliveryRate::new(Instant::ZERO);
    let before = run(&mut meter, Duration::from_millis(1), 200).expect("samples");
    meter.on_app_limited(20_000);
    assert!(meter.is_app_limited());
    let now = Instant::from_secs(2);
    let snapshot = meter.on_sent(now, 0);
    meter.on_packet_acked(now + RTT, snapshot, now, 1_000);
    let sample = meter.finish_ack(now + RTT, RTT).expect("a sample");
    assert!(sample.is_app_limited && sample.rate < before);
    assert_eq!(meter.maximum(), Some(before));
}

#[test]
fn only_a_sender_with_more_to_send_shows_what_the_path_carries() {
    let mut meter = DeliveryRate::new(Instant::ZERO);
    let send = |meter: &mut DeliveryRate, second| {
        let now = Instant::from_secs(second);
        let snapshot = meter.on_sent(now, 0);
        meter.on_packet_acked(now + RTT, snapshot, now, 1_000);
        meter.finish_ack(now + RTT, RTT).expect("a sample");
        (meter.capacity().is_some(), meter.maximum().is_some())
    };
    meter.on_app_limited(2_000);
    assert_eq!(send(&mut meter, 1), (false, true));
    (2..5).for_each(|second| _ = send(&mut meter, second));
    assert_eq!(send(&mut meter, 5), (true, true));
    for second in 6..6 + WINDOW_ROUNDS {
        meter.on_app_limited(0);
        assert_eq!(send(&mut meter, second), (true, true));
    }
    meter.on_app_limited(0);
    assert_eq!(send(&mut meter, 30), (false, true));
}

#[test]
fn an_acknowledgement_without_new_packets_gives_no_sample() {
    assert_eq!(DeliveryRate::new(Instant::ZERO).finish_ack(Instant::from_secs(1), RTT), None);
}
