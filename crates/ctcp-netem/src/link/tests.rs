use core::time::Duration;

use ctcp_base::{Instant, Prng, Probability, Rate};
use proptest::prelude::*;

use super::Link;
use crate::{Charge, GilbertElliott, LinkConfig, LinkStats, LossModel, LossPlace, QueueLimit};

type Packet = Vec<u8>;

fn probability(value: f64) -> Probability {
    Probability::new(value).expect("a probability")
}

fn millis(value: u64) -> Duration {
    Duration::from_millis(value)
}

/// Returns a packet with the given number and length.
fn packet(number: u64, length: usize) -> Packet {
    let mut bytes = vec![0; length.max(8)];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn number(packet: &Packet) -> u64 {
    u64::from_be_bytes(packet[..8].try_into().expect("eight bytes"))
}

/// Delivers everything the link still holds, with the delivery times.
fn drain(link: &mut Link<Packet>) -> Vec<(Instant, Packet)> {
    let mut deliveries = Vec::new();
    while let Some(due) = link.poll_timeout() {
        let packet = link.poll_delivery(due).expect("the packet that was announced");
        deliveries.push((due, packet));
    }
    deliveries
}

/// Sends `count` packets of `length` bytes, one every `gap`, and returns the deliveries.
fn run(config: LinkConfig, seed: u64, count: u64, length: usize, gap: Duration) -> Vec<(Instant, Packet)> {
    let mut link = Link::new(config, Prng::new(seed));
    let mut deliveries = Vec::new();
    let mut now = Instant::ZERO;
    for sequence in 0..count {
        link.handle_packet(now, packet(sequence, length));
        now += gap;
        while let Some(due) = link.poll_timeout().filter(|due| *due <= now) {
            deliveries.push((due, link.poll_delivery(due).expect("the packet that was announced")));
        }
    }
    deliveries.extend(drain(&mut link));
    deliveries
}

fn is_balanced(stats: LinkStats) -> bool {
    stats.offered + stats.duplicated
        == stats.lost + stats.dropped + stats.overflowed + stats.delivered + stats.held
}

#[test]
fn a_perfect_link_delivers_everything_at_once_and_in_order() {
    let mut link = Link::new(LinkConfig::default(), Prng::new(1));
    for sequence in 0..100 {
        link.handle_packet(Instant::ZERO, packet(sequence, 100));
    }
    for sequence in 0..100 {
        assert_eq!(link.poll_delivery(Instant::ZERO), Some(packet(sequence, 100)));
    }
    assert_eq!(link.poll_delivery(Instant::from_secs(1)), None);
    assert_eq!(link.poll_timeout(), None);
    assert_eq!(link.stats().bytes_delivered, 10_000);
}

#[test]
fn a_packet_arrives_after_its_transmission_time_and_the_delay() {
    let config = LinkConfig::default().with_rate(Rate::from_megabits_per_second(12)).with_delay(millis(10));
    let mut link = Link::new(config, Prng::new(1));
    link.handle_packet(Instant::from_millis(5), packet(1, 1_472));
    link.handle_packet(Instant::from_millis(5), packet(2, 1_472));
    let times: Vec<Instant> = drain(&mut link).into_iter().map(|(due, _)| due).collect();
    assert_eq!(times, [Instant::from_millis(16), Instant::from_millis(17)]);
}

#[test]
fn a_backlogged_link_delivers_exactly_its_rate_for_every_packet_size() {
    let rate = Rate::from_bits_per_second(7_654_321);
    for length in [8, 40, 1_000, 1_472] {
        let deliveries = run(LinkConfig::default().with_rate(rate), 1, 5_000, length, Duration::ZERO);
        assert_eq!(deliveries.len(), 5_000);
        let end = deliveries.last().expect("deliveries").0;
        let charged = 5_000 * (length as u64 + 28);
        assert_eq!(end - Instant::ZERO, rate.time_to_send(charged), "{length} bytes");
    }
}

#[test]
fn loss_before_the_rate_uses_no_capacity() {
    let rate = Rate::from_megabits_per_second(10);
    let config = LinkConfig::default()
        .with_rate(rate)
        .with_queue(QueueLimit::Packets(20))
        .with_loss(LossModel::Bernoulli(probability(0.3)));
    // The load is twice the capacity, so the packets that are not lost still fill the link.
    let deliveries = run(config, 3, 20_000, 1_222, Duration::from_micros(500));
    let bytes: u64 = deliveries.iter().map(|(_, packet)| packet.len() as u64 + 28).sum();
    let end = deliveries.last().expect("deliveries").0;
    let share = bytes as f64 / rate.bytes_in(end - Instant::ZERO) as f64;
    assert!(share > 0.999, "the link was busy for a share of {share}");
}

#[test]
fn loss_after_the_rate_uses_capacity() {
    let rate = Rate::from_megabits_per_second(10);
    let config = LinkConfig::default()
        .with_rate(rate)
        .with_queue(QueueLimit::Packets(20))
        .with_loss(LossModel::Bernoulli(probability(0.3)))
        .with_loss_place(LossPlace::BehindQueue);
    // The load is twice the capacity, as above.
    let deliveries = run(config, 3, 20_000, 1_222, Duration::from_micros(500));
    let bytes: u64 = deliveries.iter().map(|(_, packet)| packet.len() as u64 + 28).sum();
    let end = deliveries.last().expect("deliveries").0;
    let share = bytes as f64 / rate.bytes_in(end - Instant::ZERO) as f64;
    // 10,000 packets cross; four standard deviations are 0.018.
    assert!((share - 0.7).abs() < 0.018, "the link delivered a share of {share}");
}

#[test]
fn a_packet_lost_after_the_queue_was_in_it_and_is_not_held() {
    let config = LinkConfig::default()
        .with_rate(Rate::from_megabits_per_second(8))
        .with_delay(millis(10))
        .with_overhead(0)
        .with_queue(QueueLimit::Packets(3))
        .with_loss(LossModel::Pattern(vec![false, true, false]))
        .with_loss_place(LossPlace::BehindQueue);
    let mut link = Link::new(config, Prng::new(1));
    for sequence in 0..4 {
        link.handle_packet(Instant::ZERO, packet(sequence, 1_000));
    }
    let stats = link.stats();
    assert_eq!((stats.lost, stats.dropped, stats.held), (1, 1, 2));
    assert!(is_balanced(stats));
    assert_eq!([0, 1, 2, 3].map(|at| link.queued_packets(Instant::from_millis(at))), [3, 2, 1, 0]);
    // The rate halves at 0.5 ms. The lost packet still takes its time.
    link.set_rate(Instant::from_micros(500), Rate::from_megabits_per_second(4));
    let times: Vec<_> = drain(&mut link).into_iter().map(|(due, packet)| (due, number(&packet))).collect();
    assert_eq!(times, [(Instant::from_micros(11_500), 0), (Instant::from_micros(15_500), 2)]);
}

#[test]
fn loss_after_the_queue_is_drawn_when_the_packet_leaves() {
    let (sure, none) = (probability(1.0), probability(0.0));
    // All packets that leave in the second second are lost.
    let model = LossModel::Steps {
        since: Instant::ZERO,
        step: Duration::from_secs(1),
        losses: [none, sure, none, none].into(),
    };
    let config =
        LinkConfig::default().with_rate(Rate::from_megabits_per_second(8)).with_overhead(0).with_loss(model);
    for (place, expected) in [(LossPlace::BeforeQueue, 3_000), (LossPlace::BehindQueue, 2_000)] {
        // Three thousand packets at once, one of which leaves every millisecond.
        let config = config.clone().with_loss_place(place);
        let deliveries = run(config, 1, 3_000, 1_000, Duration::ZERO);
        assert_eq!(deliveries.len(), expected, "{place:?}");
        let second = Instant::from_secs(1)..Instant::from_secs(2);
        let in_it = deliveries.iter().filter(|(due, _)| second.contains(due)).count();
        assert_eq!(in_it, expected - 2_000, "{place:?}");
    }
}

#[test]
fn charged_sizes_give_exactly_the_expected_rate() {
    let rate = Rate::from_megabits_per_second(1);
    for (charge, lengths, charged) in [
        (Charge::PAPERS, [600, 1_472], [1_000, 1_000]),
        (Charge::PAPERS, [8, 1_000], [40, 1_000]),
        (Charge::every(1_000), [8, 77], [1_000, 1_000]),
    ] {
        let config = LinkConfig::default().with_rate(rate).with_charge(charge);
        let mut link = Link::new(config, Prng::new(1));
        for sequence in 0..1_000 {
            link.handle_packet(Instant::ZERO, packet(sequence, lengths[sequence as usize % 2]));
        }
        let end = drain(&mut link).last().expect("deliveries").0;
        assert_eq!(end - Instant::ZERO, rate.time_to_send(500 * (charged[0] + charged[1])), "{charge:?}");
    }
}

#[test]
fn the_queue_never_holds_more_than_its_limit() {
    let rate = Rate::from_megabits_per_second(1);
    for (limit, packets) in
        [(QueueLimit::Packets(10), 10), (QueueLimit::Bytes(10_279), 9), (QueueLimit::Packets(0), 1)]
    {
        let config = LinkConfig::default().with_rate(rate).with_queue(limit);
        let mut link = Link::new(config, Prng::new(1));
        for sequence in 0..100 {
            link.handle_packet(Instant::ZERO, packet(sequence, 1_000));
        }
        let stats = link.stats();
        assert_eq!((stats.held, stats.dropped), (packets, 100 - packets), "{limit:?}");
        assert_eq!((stats.queue_max_packets, stats.queue_max_bytes), (packets, packets * 1_028));
        // A packet leaves after 8.224 ms, which frees its place.
        link.handle_packet(Instant::from_micros(8_223), packet(100, 1_000));
        assert_eq!(link.stats().dropped, 101 - packets);
        link.handle_packet(Instant::from_micros(8_224), packet(101, 1_000));
        assert_eq!(link.stats().dropped, 101 - packets);
    }
}

#[test]
fn an_unlimited_queue_stops_at_the_memory_limit_and_counts_the_overflow() {
    let config = LinkConfig::default().with_rate(Rate::from_bits_per_second(1));
    let mut link = Link::new(config, Prng::new(1));
    for sequence in 0..crate::MAX_HELD_PACKETS as u64 + 10 {
        link.handle_packet(Instant::ZERO, packet(sequence, 8));
    }
    let stats = link.stats();
    assert_eq!((stats.held, stats.overflowed), (crate::MAX_HELD_PACKETS as u64, 10));
    assert!(is_balanced(stats));
}

#[test]
fn every_random_model_has_the_configured_mean_loss() {
    let wanted = 0.1;
    let bursts = GilbertElliott::from_mean_and_burst(probability(wanted), 4.0).expect("possible");
    let models = [
        LossModel::Bernoulli(probability(wanted)),
        LossModel::GilbertElliott(bursts),
        LossModel::OnOff { period: millis(20), on: millis(4), loss: probability(0.5) },
    ];
    for model in models {
        let config = LinkConfig::default().with_loss(model.clone());
        let deliveries = run(config, 9, 100_000, 8, Duration::from_micros(10));
        let mean = 1.0 - deliveries.len() as f64 / 100_000.0;
        assert!((mean - wanted).abs() < 0.006, "{mean} with {model:?}");
    }
}

#[test]
fn jitter_spreads_the_delay_but_never_changes_the_order() {
    let config = LinkConfig::default().with_delay(millis(10)).with_jitter(millis(5));
    let deliveries = run(config.clone(), 4, 2_000, 8, Duration::from_micros(100));
    let order: Vec<u64> = deliveries.iter().map(|(_, packet)| number(packet)).collect();
    assert!(order.is_sorted());
    // Packets far apart from each other show the whole range.
    let deliveries = run(config, 4, 2_000, 8, millis(20));
    let delays: Vec<Duration> =
        deliveries.iter().map(|(due, packet)| *due - Instant::from_millis(number(packet) * 20)).collect();
    assert!(delays.iter().all(|delay| (millis(10)..=millis(15)).contains(delay)));
    let shortest = delays.iter().min().expect("deliveries");
    let longest = delays.iter().max().expect("deliveries");
    assert!(*longest - *shortest > Duration::from_micros(4_900), "{shortest:?} to {longest:?}");
}

#[test]
fn reordering_happens_only_if_configured() {
    let base = LinkConfig::default().with_rate(Rate::from_megabits_per_second(20)).with_delay(millis(10));
    let jittery = base.with_jitter(millis(8)).with_duplicate(probability(0.1)).with_corrupt(probability(0.1));
    for (reorder, share) in [(0.0, 0.0..0.000_1), (0.02, 0.01..0.03)] {
        let config = jittery.clone().with_reorder(probability(reorder), millis(20));
        let mut link = Link::new(config, Prng::new(8));
        for sequence in 0..20_000 {
            let now = Instant::from_micros(sequence * 200);
            link.handle_packet(now, packet(sequence, 8));
            while link.poll_delivery(now).is_some() {}
        }
        drain(&mut link);
        let stats = link.stats();
        let overtaken = stats.reordered as f64 / stats.delivered as f64;
        assert!(share.contains(&overtaken), "{overtaken} of the packets were overtaken");
    }
}

#[test]
fn corruption_flips_at_least_one_bit_and_keeps_the_length() {
    let config = LinkConfig::default().with_corrupt(Probability::ONE);
    let deliveries = run(config, 2, 1_000, 32, millis(1));
    assert_eq!(deliveries.len(), 1_000);
    for (sequence, (_, received)) in deliveries.iter().enumerate() {
        assert_eq!(received.len(), 32);
        assert_ne!(*received, packet(sequence as u64, 32));
    }
}

#[test]
fn corruption_happens_with_its_probability_and_skips_empty_packets() {
    let mut link = Link::new(LinkConfig::default().with_corrupt(probability(0.1)), Prng::new(2));
    for sequence in 0..20_000 {
        link.handle_packet(Instant::ZERO, packet(sequence, 8));
        link.poll_delivery(Instant::ZERO);
    }
    assert!((1_800..2_200).contains(&link.stats().corrupted), "{}", link.stats().corrupted);
    let before = link.stats().corrupted;
    for _ in 0..100 {
        link.handle_packet(Instant::ZERO, Vec::new());
        assert_eq!(link.poll_delivery(Instant::ZERO), Some(Vec::new()));
    }
    assert_eq!(link.stats().corrupted, before);
}

#[test]
fn a_duplicate_follows_its_original_and_uses_capacity() {
    let config = LinkConfig::default()
        .with_rate(Rate::from_megabits_per_second(8))
        .with_overhead(0)
        .with_duplicate(Probability::ONE);
    let deliveries = run(config, 1, 2, 1_000, Duration::ZERO);
    let seen: Vec<(u64, u64)> =
        deliveries.iter().map(|(due, packet)| (due.as_nanos() / 1_000_000, number(packet))).collect();
    assert_eq!(seen, [(1, 0), (2, 0), (3, 1), (4, 1)]);
}

#[test]
fn other_faults_do_not_change_the_losses() {
    let plain = LinkConfig::default().with_loss(LossModel::Bernoulli(probability(0.2)));
    let busy = plain.clone().with_jitter(millis(3)).with_reorder(probability(0.1), millis(2));
    let delivered = |config: LinkConfig| {
        let mut numbers: Vec<u64> =
            run(config, 12, 5_000, 8, millis(1)).iter().map(|(_, packet)| number(packet)).collect();
        numbers.sort_unstable();
        numbers
    };
    assert_eq!(delivered(plain), delivered(busy));
}

#[test]
fn a_slower_rate_applies_to_the_packet_in_transmission_and_to_queued_packets() {
    let config = LinkConfig::default().with_rate(Rate::from_megabits_per_second(8)).with_overhead(0);
    let mut link = Link::new(config, Prng::new(1));
    for sequence in 0..3 {
        link.handle_packet(Instant::ZERO, packet(sequence, 1_000));
    }
    link.set_rate(Instant::from_micros(1_500), Rate::from_megabits_per_second(4));
    let times: Vec<u64> = drain(&mut link).iter().map(|(due, _)| due.as_nanos() / 1_000).collect();
    // The first packet has left. Half of the second now takes 1 ms, and the third 2 ms.
    assert_eq!(times, [1_000, 2_500, 4_500]);
}

#[test]
fn removing_the_rate_limit_sends_queued_packets_at_once() {
    let config = LinkConfig::default().with_rate(Rate::from_bits_per_second(1)).with_delay(millis(5));
    let mut link = Link::new(config, Prng::new(1));
    for sequence in 0..3 {
        link.handle_packet(Instant::ZERO, packet(sequence, 1_000));
    }
    link.set_rate(Instant::from_millis(1), Rate::default());
    link.handle_packet(Instant::from_millis(2), packet(3, 1_000));
    let seen: Vec<(u64, u64)> =
        drain(&mut link).iter().map(|(due, packet)| (due.as_nanos() / 1_000_000, number(packet))).collect();
    assert_eq!(seen, [(6, 0), (6, 1), (6, 2), (7, 3)]);
}

#[test]
fn a_blackout_loses_new_packets_and_delivers_those_in_transit() {
    let mut link = Link::new(LinkConfig::default().with_delay(millis(10)), Prng::new(1));
    link.handle_packet(Instant::ZERO, packet(1, 8));
    link.set_down(true);
    link.handle_packet(Instant::from_millis(1), packet(2, 8));
    link.set_down(false);
    link.handle_packet(Instant::from_millis(2), packet(3, 8));
    let seen: Vec<u64> = drain(&mut link).iter().map(|(_, packet)| number(packet)).collect();
    assert_eq!(seen, [1, 3]);
    assert_eq!((link.stats().lost, link.stats().lost_while_down), (1, 1));
}

#[test]
fn a_shorter_delay_does_not_let_new_packets_overtake_old_ones() {
    let mut link = Link::new(LinkConfig::default().with_delay(millis(100)), Prng::new(1));
    link.handle_packet(Instant::ZERO, packet(1, 8));
    link.set_config(Instant::ZERO, LinkConfig::default().with_delay(millis(1)));
    link.handle_packet(Instant::from_millis(1), packet(2, 8));
    assert_eq!(link.poll_timeout(), Some(Instant::from_millis(100)));
    let order: Vec<u64> = drain(&mut link).iter().map(|(_, packet)| number(packet)).collect();
    assert_eq!(order, [1, 2]);
}

#[test]
fn an_unchanged_loss_model_keeps_its_state_across_configurations() {
    let config = LinkConfig::default().with_loss(LossModel::Pattern(vec![false, true]));
    let mut link = Link::new(config.clone(), Prng::new(1));
    link.handle_packet(Instant::ZERO, packet(0, 8));
    link.set_config(Instant::ZERO, config.with_delay(millis(1)));
    link.handle_packet(Instant::ZERO, packet(1, 8));
    assert_eq!(link.stats().lost, 1);
}

#[test]
fn time_that_runs_backwards_counts_as_the_latest_time() {
    let mut link = Link::new(LinkConfig::default().with_delay(millis(1)), Prng::new(1));
    link.handle_packet(Instant::from_millis(10), packet(1, 8));
    link.handle_packet(Instant::from_millis(3), packet(2, 8));
    assert_eq!(link.poll_timeout(), Some(Instant::from_millis(11)));
    assert_eq!(link.poll_delivery(Instant::from_millis(11)), Some(packet(1, 8)));
    assert_eq!(link.poll_delivery(Instant::ZERO), Some(packet(2, 8)));
}

fn any_probability() -> impl Strategy<Value = Probability> {
    (0.0..0.4_f64).prop_map(probability)
}

fn any_loss() -> impl Strategy<Value = LossModel> {
    prop_oneof![
        Just(LossModel::None),
        any_probability().prop_map(LossModel::Bernoulli),
        (any_probability(), 1.0..20.0_f64)
            .prop_map(|(mean, burst)| LossModel::bursts(mean, burst).unwrap_or_default()),
        (0..50_u64, 0..50_u64, any_probability()).prop_map(|(period, on, loss)| LossModel::OnOff {
            period: millis(period),
            on: millis(on),
            loss
        }),
        (0..50_u64, 0..50_u64).prop_map(|(interval, vulnerable)| LossModel::Collisions {
            interval: millis(interval),
            vulnerable: millis(vulnerable)
        }),
    ]
}

fn any_queue() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        Just(QueueLimit::Unlimited),
        (0..100_u64).prop_map(QueueLimit::Packets),
        (0..100_000_u64).prop_map(QueueLimit::Bytes),
    ]
}

prop_compose! {
    fn any_config()(
        megabits in 0..50_u64,
        delay in 0..100_u64,
        jitter in 0..20_u64,
        loss in any_loss(),
        queue in any_queue(),
        (reorder, extra, duplicate, corrupt) in (any_probability(), 0..50_u64, any_probability(), any_probability()),
    ) -> LinkConfig {
        LinkConfig::default()
            .with_rate(Rate::from_megabits_per_second(megabits))
            .with_delay(millis(delay))
            .with_jitter(millis(jitter))
            .with_loss(loss)
            .with_queue(queue)
            .with_reorder(reorder, millis(extra))
            .with_duplicate(duplicate)
            .with_corrupt(corrupt)
    }
}

/// A call of the link's driver.
#[derive(Clone, Debug)]
enum Step {
    Offer(usize),
    SetRate(u64),
    SetConfig(Box<LinkConfig>),
    SetDown(bool),
}

fn any_step() -> impl Strategy<Value = (u64, Step)> {
    let step = prop_oneof![
        20 => (0..1_500_usize).prop_map(Step::Offer),
        1 => (0..50_u64).prop_map(Step::SetRate),
        1 => any_config().prop_map(|config| Step::SetConfig(Box::new(config))),
        1 => any::<bool>().prop_map(Step::SetDown),
    ];
    (0..3_000_u64, step)
}

/// Runs the steps, polling only every `grain`. Returns all deliveries and the statistics.
fn drive(config: &LinkConfig, steps: &[(u64, Step)], grain: Duration) -> (Vec<Packet>, LinkStats) {
    let mut link = Link::new(config.clone(), Prng::new(77));
    let (mut now, mut next_poll) = (Instant::ZERO, Instant::ZERO);
    let mut delivered = Vec::new();
    for (sequence, (gap, step)) in steps.iter().enumerate() {
        now += Duration::from_micros(*gap);
        if now >= next_poll {
            next_poll = now + grain;
            let due: Vec<Packet> = core::iter::from_fn(|| link.poll_delivery(now)).collect();
            assert!(link.poll_timeout().is_none_or(|next| next > now), "a late poll left something due");
            delivered.extend(due);
        }
        match step {
            Step::Offer(length) => link.handle_packet(now, packet(sequence as u64, *length)),
            Step::SetRate(megabits) => link.set_rate(now, Rate::from_megabits_per_second(*megabits)),
            Step::SetConfig(config) => link.set_config(now, (**config).clone()),
            Step::SetDown(is_down) => link.set_down(*is_down),
        }
        assert!(is_balanced(link.stats()), "{:?}", link.stats());
    }
    delivered.extend(drain(&mut link).into_iter().map(|(_, packet)| packet));
    (delivered, link.stats())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_same_seed_gives_the_same_run_and_every_packet_is_accounted_for(
        config in any_config(),
        steps in prop::collection::vec(any_step(), 0..300),
    ) {
        let (delivered, stats) = drive(&config, &steps, Duration::ZERO);
        prop_assert_eq!(stats.held, 0);
        prop_assert_eq!(stats.delivered, delivered.len() as u64);
        prop_assert_eq!(drive(&config, &steps, Duration::ZERO), (delivered, stats));
    }

    #[test]
    fn polling_late_delivers_the_same_packets_in_the_same_order(
        config in any_config(),
        steps in prop::collection::vec(any_step(), 0..300),
        grain in 0..50_u64,
    ) {
        // A driver in real time wakes up every few milliseconds instead of at each instant. The same arrivals must
        // still give the same deliveries in the same order.
        let (punctual, stats) = drive(&config, &steps, Duration::ZERO);
        let (late, late_stats) = drive(&config, &steps, millis(grain));
        prop_assert_eq!(punctual, late);
        prop_assert_eq!(stats, late_stats);
    }
}

mod disciplines;
