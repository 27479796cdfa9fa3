use core::time::Duration;

use super::*;

/// A packet of a flow, ECN-capable or not.
#[derive(Clone, Debug)]
struct Sample {
    flow: u64,
    is_capable: bool,
    is_marked: bool,
    bytes: Vec<u8>,
}

impl AsRef<[u8]> for Sample {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl AsMut<[u8]> for Sample {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Packet for Sample {
    fn flow(&self) -> u64 {
        self.flow
    }

    fn is_ecn_capable(&self) -> bool {
        self.is_capable
    }

    fn set_congestion_experienced(&mut self) {
        self.is_marked = true;
    }
}

struct Bench {
    queues: FlowQueues<Sample>,
    limit: QueueLimit,
    stats: LinkStats,
}

impl Bench {
    fn new(limit: QueueLimit) -> Self {
        Self { queues: FlowQueues::new(CodelConfig::default()), limit, stats: LinkStats::default() }
    }

    fn push(&mut self, millis: u64, flow: u64, bytes: u64, is_capable: bool) {
        let payload = vec![0; usize::try_from(bytes).expect("a size")];
        let packet = Sample { flow, is_capable, is_marked: false, bytes: payload };
        let waiting = Waiting { packet, bytes, arrival: Instant::from_millis(millis) };
        self.queues.push(waiting, self.limit, &mut self.stats);
    }

    fn pop(&mut self, millis: u64) -> Option<Sample> {
        let waiting = self.queues.pop(Instant::from_millis(millis), &mut self.stats);
        waiting.map(|waiting| waiting.packet)
    }

    /// Returns the flows of the next `count` packets, all popped at one millisecond.
    fn flows(&mut self, count: usize) -> Vec<u64> {
        (0..count).filter_map(|_| self.pop(1)).map(|packet| packet.flow).collect()
    }
}

#[test]
fn flows_share_bytes_fairly_for_any_packet_size() {
    let mut bench = Bench::new(QueueLimit::Unlimited);
    for _ in 0..1_000 {
        bench.push(0, 1, 1_500, true);
        bench.push(0, 2, 500, true);
        bench.push(0, 3, 100, true);
    }
    let mut bytes = [0_usize; 4];
    for _ in 0..500 {
        let packet = bench.pop(1).expect("packets wait");
        bytes[packet.flow as usize] += packet.bytes.len();
    }
    let (most, least) = (bytes[1..].iter().max().expect("three"), bytes[1..].iter().min().expect("three"));
    assert!(most - least <= 2 * PACKET_MAX as usize, "{bytes:?}");
}

#[test]
fn a_new_flow_overtakes_backlogged_flows_once() {
    let mut bench = Bench::new(QueueLimit::Unlimited);
    for _ in 0..10 {
        bench.push(0, 1, 1_514, true);
    }
    assert_eq!(bench.flows(3), [1, 1, 1]);
    bench.push(0, 2, 100, true);
    assert_eq!(bench.flows(2), [2, 1]);
    // With a backlog of its own, and its first credit used up, it takes turns like any other flow.
    for _ in 0..6 {
        bench.push(0, 2, 1_514, true);
    }
    assert_eq!(bench.flows(6), [2, 2, 1, 2, 1, 2]);
}

#[test]
fn beyond_the_limit_the_longest_queue_loses_its_oldest_packet() {
    let mut bench = Bench::new(QueueLimit::Packets(4));
    for size in [1_000, 1_001, 1_002, 1_003] {
        bench.push(0, 1, size, true);
    }
    bench.push(0, 2, 100, true);
    assert_eq!((bench.stats.dropped, bench.queues.packets), (1, 4));
    let sizes: Vec<usize> = (0..4).filter_map(|_| bench.pop(1)).map(|packet| packet.bytes.len()).collect();
    assert_eq!(sizes, [1_001, 1_002, 100, 1_003]);
    assert!(bench.pop(1).is_none() && bench.queues.is_empty());
    let mut bytes = Bench::new(QueueLimit::Bytes(10));
    bytes.push(0, 1, 1_000, true);
    assert_eq!(bytes.stats.dropped, 0, "an empty queue takes any packet");
    bytes.push(0, 1, 1_000, true);
    assert_eq!((bytes.stats.dropped, bytes.queues.held()), (1, (1, 1_000)));
}

/// Pushes a packet every millisecond and pops one 50 ms later.
fn standing_queue(is_capable: bool) -> (LinkStats, u64) {
    let mut bench = Bench::new(QueueLimit::Unlimited);
    let mut marked = 0;
    for millis in 0..1_000 {
        bench.push(millis, 1, 1_000, is_capable);
        if millis >= 50 {
            marked += bench.pop(millis).map_or(0, |packet| u64::from(packet.is_marked));
        }
    }
    (bench.stats, marked)
}

#[test]
fn codel_marks_ecn_capable_packets_and_drops_others() {
    let (stats, marked) = standing_queue(true);
    // The first mark comes at 150 ms. The following 24 take 100 ms / sqrt(1) + .. + 100 ms / sqrt(24) = 844 ms.
    assert_eq!((stats.dropped, stats.marked, marked), (0, 25, 25));
    let (stats, marked) = standing_queue(false);
    // Drops shorten the wait, so fewer drops than marks are needed.
    assert_eq!((stats.marked, marked), (0, 0));
    assert!((15..=25).contains(&stats.dropped), "{stats:?}");
}

#[test]
fn only_the_flow_with_a_standing_queue_is_marked() {
    let mut bench = Bench::new(QueueLimit::Unlimited);
    let mut marked = [0; 3];
    for millis in 0..1_000 {
        bench.push(millis, 1, 1_000, true);
        bench.push(millis, 1, 1_000, true);
        bench.push(millis, 2, 500, true);
        for _ in 0..2 {
            if let Some(packet) = bench.pop(millis) {
                marked[packet.flow as usize] += u64::from(packet.is_marked);
            }
        }
    }
    assert!(marked[1] > 0 && marked[2] == 0, "{marked:?}");
}

#[test]
fn emptying_the_queues_loses_nothing() {
    let mut bench = Bench::new(QueueLimit::Unlimited);
    for flow in 0..50 {
        bench.push(0, flow, 100, false);
    }
    bench.pop(0);
    let rest = core::iter::from_fn(|| bench.queues.pop_unmanaged()).count();
    assert_eq!((rest, bench.queues.held()), (49, (0, 0)));
    assert_eq!(Duration::ZERO, bench.stats.waited);
}
