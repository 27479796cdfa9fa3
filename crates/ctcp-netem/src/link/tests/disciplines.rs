//! Tests of policers, marking and flow queues in a complete link.

use super::{millis, probability};
use ctcp_base::{Instant, Prng, Rate};

use crate::{
    Change, CodelConfig, Discipline, Link, LinkConfig, LossModel, LossPlace, Packet, PolicerConfig,
    QueueLimit,
};

/// A packet whose first byte is its flow and whose second byte is its ECN state: 1 for ECN-capable, 2 for CE.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sample(Vec<u8>);

impl AsRef<[u8]> for Sample {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl AsMut<[u8]> for Sample {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl Packet for Sample {
    fn flow(&self) -> u64 {
        u64::from(self.0[0])
    }

    fn is_ecn_capable(&self) -> bool {
        self.0[1] != 0
    }

    fn set_congestion_experienced(&mut self) {
        self.0[1] = 2;
    }
}

/// Returns a packet of 1000 bytes.
fn sample(flow: u8, mark: u8) -> Sample {
    let mut bytes = vec![0; 1_000];
    bytes[..2].copy_from_slice(&[flow, mark]);
    Sample(bytes)
}

/// A link on which a packet of 1000 bytes takes a millisecond.
fn config() -> LinkConfig {
    LinkConfig::default().with_overhead(0).with_rate(Rate::from_megabits_per_second(8)).with_delay(millis(10))
}

fn flow_queue() -> Discipline {
    Discipline::FlowQueueCodel(CodelConfig::default())
}

/// Returns all deliveries as (microseconds, flow, mark).
fn drain(link: &mut Link<Sample>) -> Vec<(u64, u8, u8)> {
    let mut found = Vec::new();
    while let Some(due) = link.poll_timeout() {
        while let Some(Sample(bytes)) = link.poll_delivery(due) {
            found.push((due.as_nanos() / 1_000, bytes[0], bytes[1]));
        }
    }
    found
}

#[test]
fn an_ecn_capable_packet_that_waits_longer_than_the_threshold_is_marked() {
    let step = Discipline::StepMarking { threshold: millis(2) };
    let mut link = Link::new(config().with_discipline(step), Prng::new(1));
    for mark in [1, 1, 1, 1, 0, 1] {
        link.handle_packet(Instant::ZERO, sample(1, mark));
    }
    // The third packet waits 2 ms, the fourth 3 ms.
    let marks: Vec<u8> = drain(&mut link).into_iter().map(|(.., mark)| mark).collect();
    assert_eq!(marks, [1, 1, 1, 2, 0, 2]);
    let stats = link.stats();
    assert_eq!((stats.marked, stats.dropped, stats.transmitted), (2, 0, 6));
    assert_eq!((stats.waited, stats.mean_wait()), (millis(15), core::time::Duration::from_micros(2_500)));
}

#[test]
fn a_policer_drops_packets_that_exceed_its_rate_and_delays_none() {
    let policer = PolicerConfig { rate: Rate::from_megabits_per_second(8), bucket: 3_000 };
    let fast = config().with_rate(Rate::default()).with_policer(policer);
    let mut link = Link::new(fast, Prng::new(1));
    for _ in 0..5 {
        link.handle_packet(Instant::ZERO, sample(1, 1));
    }
    link.handle_packet(Instant::from_millis(1), sample(2, 1));
    assert_eq!(drain(&mut link), [(10_000, 1, 1), (10_000, 1, 1), (10_000, 1, 1), (11_000, 2, 1)]);
    let stats = link.stats();
    assert_eq!((stats.policed, stats.dropped, stats.delivered, stats.offered), (2, 2, 4, 6));
}

#[test]
fn flows_take_turns_and_every_packet_takes_its_transmission_time() {
    let mut link = Link::new(config().with_discipline(flow_queue()), Prng::new(1));
    for flow in [1, 1, 1, 1, 2] {
        link.handle_packet(Instant::ZERO, sample(flow, 0));
    }
    assert_eq!((link.queued_packets(Instant::ZERO), link.stats().held), (5, 5));
    // After its first packet, the first flow still has a third of its quantum left.
    let wanted = [(11_000, 1, 0), (12_000, 1, 0), (13_000, 2, 0), (14_000, 1, 0), (15_000, 1, 0)];
    assert_eq!(drain(&mut link), wanted);
    let stats = link.stats();
    assert_eq!((stats.waited, stats.queue_max_packets, stats.held), (millis(10), 4, 0));
}

#[test]
fn late_polling_of_flow_queues_gives_the_same_deliveries() {
    let lossy = config()
        .with_discipline(flow_queue())
        .with_queue(QueueLimit::Packets(120))
        .with_loss(LossModel::Bernoulli(probability(0.1)))
        .with_loss_place(LossPlace::BehindQueue);
    let run = |is_punctual: bool| {
        let mut link = Link::new(lossy.clone(), Prng::new(7));
        let mut found = Vec::new();
        for step in 0..1_000_u64 {
            let now = Instant::from_micros(step * 700);
            while let Some(due) = link.poll_timeout().filter(|due| is_punctual && *due < now) {
                found.extend(core::iter::from_fn(|| link.poll_delivery(due)));
            }
            link.handle_packet(now, sample((step % 3) as u8, (step % 2) as u8));
        }
        while let Some(due) = link.poll_timeout() {
            found.extend(core::iter::from_fn(|| link.poll_delivery(due)));
        }
        (found, link.stats())
    };
    let (punctual, stats) = run(true);
    assert_eq!(run(false), (punctual, stats));
    assert!(stats.marked > 0 && stats.dropped > 0 && stats.lost > 0, "{stats:?}");
    assert_eq!(stats.offered, stats.lost + stats.dropped + stats.delivered);
}

#[test]
fn changing_rate_or_discipline_loses_no_queued_packet() {
    let mut link = Link::new(config().with_discipline(flow_queue()), Prng::new(1));
    for flow in [1, 1, 2, 2] {
        link.handle_packet(Instant::ZERO, sample(flow, 1));
    }
    let half = Change::Rate(Rate::from_megabits_per_second(4));
    link.apply(Instant::from_micros(500), half);
    // Half of the first packet is left. Each further packet takes 2 ms.
    let next = core::iter::from_fn(|| link.poll_delivery(Instant::from_micros(11_499))).count();
    assert_eq!(next, 0);
    link.set_config(Instant::from_micros(1_600), config().with_rate(Rate::from_megabits_per_second(4)));
    assert_eq!(link.stats().held, 4);
    let times: Vec<u64> = drain(&mut link).into_iter().map(|(at, ..)| at).collect();
    assert_eq!(times, [11_500, 13_500, 15_500, 17_500]);
}
