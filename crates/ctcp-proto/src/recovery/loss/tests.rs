use super::*;

fn rtt(millis: u64) -> RttEstimator {
    let mut rtt = RttEstimator::new(Duration::from_millis(333));
    rtt.on_sample(Instant::ZERO, Duration::from_millis(millis), Duration::ZERO);
    rtt
}

fn spurious(distance: u64, age_millis: u64) -> SpuriousLoss {
    SpuriousLoss { distance, age: Duration::from_millis(age_millis), outcomes_since: 0 }
}

fn feed(average: &mut LossAverage, lost: bool) {
    if lost {
        average.on_loss(PacketNumber(0));
    } else {
        average.on_ack();
    }
}

#[test]
fn the_thresholds_begin_as_in_rfc_9002() {
    let thresholds = LossDetector::new().thresholds(Instant::ZERO, &rtt(80));
    assert_eq!((thresholds.packets, thresholds.delay), (3, Duration::from_millis(90)));
}

#[test]
fn the_delay_is_never_finer_than_the_timer() {
    let mut short = RttEstimator::new(Duration::from_millis(333));
    short.on_sample(Instant::ZERO, Duration::from_micros(100), Duration::ZERO);
    assert_eq!(LossDetector::new().thresholds(Instant::ZERO, &short).delay, GRANULARITY);
}

#[test]
fn reordering_by_ten_packets_raises_the_threshold() {
    let mut detector = LossDetector::new();
    detector.on_spurious_loss(Instant::ZERO, spurious(10, 100), &rtt(80));
    let thresholds = detector.thresholds(Instant::ZERO, &rtt(80));
    assert_eq!((thresholds.packets, thresholds.delay), (11, Duration::from_millis(110)));
}

#[test]
fn reordering_never_raises_the_thresholds_beyond_their_bounds() {
    let mut detector = LossDetector::new();
    detector.on_spurious_loss(Instant::ZERO, spurious(100_000, 10_000), &rtt(80));
    let thresholds = detector.thresholds(Instant::ZERO, &rtt(80));
    assert_eq!((thresholds.packets, thresholds.delay), (PACKET_THRESHOLD_MAX, Duration::from_millis(160)));
}

#[test]
fn a_patient_detector_waits_longer_and_ignores_order() {
    let mut detector = LossDetector::patient();
    let thresholds = detector.thresholds(Instant::ZERO, &rtt(80));
    assert_eq!((thresholds.packets, thresholds.delay), (u64::MAX, Duration::from_millis(120)));
    detector.on_spurious_loss(Instant::ZERO, spurious(10, 10_000), &rtt(80));
    assert_eq!(detector.thresholds(Instant::ZERO, &rtt(80)).delay, Duration::from_millis(240));
    let quiet = Instant::from_millis(80 * u64::from(QUIET_ROUNDS_PATIENT));
    assert_eq!(detector.thresholds(quiet, &rtt(80)).delay, Duration::from_millis(240));
    let calmer = quiet + Duration::from_millis(1);
    assert_eq!(detector.thresholds(calmer, &rtt(80)).delay, Duration::from_millis(180));
}

#[test]
fn round_trips_without_reordering_lower_the_thresholds() {
    let mut detector = LossDetector::new();
    detector.on_spurious_loss(Instant::ZERO, spurious(63, 10_000), &rtt(80));
    let mut packets = Vec::new();
    for period in 0..8 {
        packets.push(detector.thresholds(Instant::from_millis(period * 1_281), &rtt(80)).packets);
    }
    assert_eq!(packets, [64, 33, 18, 10, 6, 4, 3, 3]);
}

// Requirement: C3
#[test]
fn single_terms_equal_the_papers_closed_form() {
    let (mu, start) = (0.05, 0.2);
    for losses in 0..6 {
        let mut average = LossAverage::new(start, mu);
        average.on_ack();
        (0..losses).for_each(|_| average.on_loss(PacketNumber(0)));
        // p (1-mu)^(losses+1) + 1 - (1-mu)^losses
        let keep = (0..losses).fold(1.0, |product, _| product * (1.0 - mu));
        let paper = start * keep * (1.0 - mu) + (1.0 - keep);
        assert!((average.value() - paper).abs() < 1e-12, "{losses}: {} {paper}", average.value());
    }
}

#[test]
fn the_average_converges_to_the_loss_of_a_path() {
    let mut prng = ctcp_base::Prng::new(5);
    let mut average = LossAverage::new(INITIAL_LOSS, MU);
    let (mut sum, rounds) = (0.0, 50_000);
    for _ in 0..rounds {
        let lost = prng.unit() < 0.1;
        feed(&mut average, lost);
        sum += average.value();
    }
    assert!((0.09..0.11).contains(&(sum / f64::from(rounds))));
}

#[test]
fn a_spurious_loss_is_taken_out_exactly() {
    let outcomes = [false, false, true, false, true, false, false];
    let run = |late: Option<usize>| {
        let mut average = LossAverage::new(0.1, MU);
        for (index, lost) in outcomes.into_iter().enumerate() {
            feed(&mut average, lost && late != Some(index));
        }
        average
    };
    let mut corrected = run(None);
    corrected.on_spurious_loss(4);
    assert!((corrected.value() - run(Some(2)).value()).abs() < 1e-12);
}

// Requirement: C3
#[test]
fn a_timeout_resets_the_average() {
    let mut average = LossAverage::new(0.03, MU);
    (0..100).for_each(|_| average.on_loss(PacketNumber(0)));
    average.on_timeout();
    assert!((average.value() - 0.03).abs() < f64::EPSILON);
}

/// The standard deviation of a settled average if `burst` consecutive packets of each `every` are lost.
fn scatter(mut average: LossAverage, burst: u64, every: u64) -> f64 {
    let mut values = Vec::new();
    for number in 0..200_000 {
        if number % every < burst {
            average.on_loss(PacketNumber(number));
        } else {
            average.on_ack();
        }
        if number > 20_000 {
            values.push(average.value());
        }
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    assert!((mean - burst as f64 / every as f64).abs() < 0.01, "{mean}");
    (values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / values.len() as f64).sqrt()
}

#[test]
fn only_bursts_slow_a_steadied_average_down() {
    let letter = || LossAverage::new(INITIAL_LOSS, MU);
    assert!((scatter(letter().steadied(), 1, 20) / scatter(letter(), 1, 20) - 1.0).abs() < 0.01);
    let ratio = scatter(letter(), 8, 160) / scatter(letter().steadied(), 8, 160);
    assert!(ratio > 4.0, "{ratio}");
}
