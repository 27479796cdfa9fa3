//! Many flows on one link without random loss: the share of dropped packets stays bounded, and every flow makes
//! progress.
//!
//! `cargo xtask trials crowd` prints the whole table, alongside the same number of Reno flows.

use core::time::Duration;

use ctcp_base::Rate;
use ctcp_netem::{LossModel, PathConfig, QueueLimit};
use ctcp_proto::TransportConfig;
use ctcp_sim::Scrutiny;
use ctcp_sim::application::script::Script;
use ctcp_sim::link::Direction;
use ctcp_sim::network::FlowConfig;
use ctcp_sim::topology::Chain;

const TIME: Duration = Duration::from_secs(15);

/// Runs `flows` flows that start one after the other within five seconds. Returns the share of packets that the queue
/// drops, and the bytes read by the slowest flow.
fn crowd(flows: u32, megabits: u64, rtt: Duration) -> (f64, u64) {
    let path = PathConfig::new(Rate::from_megabits_per_second(megabits), rtt, LossModel::None);
    let mut chain = Chain::dumbbell(1, &path);
    let transport = TransportConfig::default();
    for number in 0..flows {
        let start = Duration::from_secs(5) * number / flows;
        chain.flow(FlowConfig::new(Script::endless(), &transport).starting_after(start));
    }
    let mut network = chain.build();
    network.simulation.set_scrutiny(Scrutiny::LIGHT);
    network.run_for(TIME);
    let link = network.simulation.link(network.hops()[0]).way(Direction::Forward).stats();
    let least = (0..flows as usize).map(|flow| network.bytes_read(flow)).min();
    (link.dropped as f64 / link.offered as f64, least.unwrap_or(0))
}

#[test]
fn many_flows_in_a_small_queue_do_not_collapse() {
    for (flows, megabits, millis) in [(5, 10, 20), (20, 25, 20), (50, 100, 20)] {
        let (dropped, least) = crowd(flows, megabits, Duration::from_millis(millis));
        println!("{flows} flows: {dropped:.3} dropped, the least {least} bytes");
        assert!(dropped < 0.2, "{flows} flows: {dropped:.3} of the packets are dropped");
        assert!(least > 0, "{flows} flows: a flow gets nothing");
    }
}

/// Streams that together want more than the link carries, and queues of a tenth of the round trip and less. Each of them sends
/// less than its window allows until the queue is full, so what is dropped could be taken for loss of the path.
#[test]
fn many_streams_in_a_short_queue_do_not_collapse() {
    const STREAMS: usize = 12;
    for packets in [10, 21] {
        let rate = Rate::from_megabits_per_second(25);
        let mut path = PathConfig::new(rate, Duration::from_millis(100), LossModel::None);
        path.forward = path.forward.with_queue(QueueLimit::Packets(packets));
        let mut chain = Chain::dumbbell(1, &path);
        let script = Script::constant_rate(Rate::from_megabits_per_second(3), 1_200, 2 * TIME);
        for number in 0..STREAMS {
            let flow = FlowConfig::new(script.clone(), &TransportConfig::default());
            chain.flow(flow.starting_after(Duration::from_millis(10 * number as u64)));
        }
        let mut network = chain.build();
        network.simulation.set_scrutiny(Scrutiny::LIGHT);
        network.run_for(TIME);
        let link = network.simulation.link(network.hops()[0]).way(Direction::Forward).stats();
        let dropped = link.dropped as f64 / link.offered as f64;
        let read: Vec<u64> = (0..STREAMS).map(|flow| network.bytes_read(flow)).collect();
        println!("queue of {packets}: {dropped:.3} dropped, {read:?} bytes");
        assert!(dropped < 0.2, "queue of {packets}: {dropped:.3} of the packets are dropped");
        assert!(read.iter().all(|&bytes| bytes > 100_000), "{read:?}");
    }
}
