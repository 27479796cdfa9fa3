//! Paths that fail periodically: for a while everything is lost or the rate is very low, and then the path works again.

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_netem::{LossModel, LossPlace, PathConfig, QueueLimit, Trace};
use ctcp_proto::{Profile, TransportConfig};
use ctcp_sim::Simulation;
use ctcp_sim::application::script::Script;
use ctcp_sim::link::Direction;
use ctcp_sim::network::{FlowConfig, Network};
use ctcp_sim::topology::Chain;

const RTT: Duration = Duration::from_millis(10);

/// Returns a network with an endless flow of profile `ctcp` that begins after `start`.
fn network(path: PathConfig, queue: u64, start: Duration) -> Network {
    let path = path.with_lossless_return();
    let forward = path.forward.with_queue(QueueLimit::Packets(queue)).with_loss_place(LossPlace::BehindQueue);
    let mut dumbbell = Chain::dumbbell(1, &PathConfig { forward, ..path });
    let profile = Profile::CTCP;
    let transport = TransportConfig { profile, ..TransportConfig::default() };
    dumbbell.flow(FlowConfig::new(Script::endless(), &transport).starting_after(start));
    dumbbell.build()
}

/// Returns such a network on a link that loses everything in the first `on` of each `period`. The flow begins after the
/// first losses.
fn with_losses(megabits: u64, period: Duration, on: Duration) -> Network {
    let loss = LossModel::OnOff { period, on, loss: Probability::ONE };
    network(PathConfig::new(Rate::from_megabits_per_second(megabits), RTT, loss), 100, on)
}

/// If a whole window is lost, the only acknowledgements left are those of the few packets sent after it. These packets
/// arrive just before the next pulse. A sender that waits for their acknowledgements would send everything into the
/// pulse.
///
/// Requirement: C5, C11
#[test]
fn a_flow_does_not_synchronize_with_a_microwave_oven() {
    for megabits in [14, 17, 24, 30] {
        // With a pulse of 9 ms and airtime of 0.5 ms, packets that leave in 0.525 of the time arrive.
        let mut network = with_losses(megabits, 2 * RTT, Duration::from_micros(9_500));
        network.run_for(Duration::from_secs(20));
        let share = network.bytes_read(0) as f64 * 8e-6 / 20.0 / megabits as f64;
        assert!(share > 0.24, "{share:.3} of {megabits} Mbit/s, of which about half could arrive");
    }
}

/// Unacknowledged packets may be replaced by others, but a dead path gets fewer and fewer packets.
///
/// Requirement: C4
#[test]
fn a_dead_path_gets_fewer_and_fewer_packets() {
    let seconds = Duration::from_secs;
    let mut network = with_losses(25, seconds(20), seconds(10));
    network.run_for(seconds(25));
    let link = network.hops()[0];
    let before = network.simulation.link(link).way(Direction::Forward).stats();
    assert!(before.delivered > 10_000, "{before:?}");
    // In the middle of the silence, which began with a window in flight and a full queue.
    assert!((100..600).contains(&before.lost), "{before:?}");
    network.run_for(seconds(5));
    let after = network.simulation.link(link).way(Direction::Forward).stats();
    assert!(after.lost - before.lost < 60, "{} packets in 5 s of silence", after.lost - before.lost);
}

/// In a stall, round trips take seconds. A sender that then paces its window over their average would waste the good
/// second.
///
/// Requirement: C4
#[test]
fn a_flow_uses_the_link_as_soon_as_it_recovers() {
    let trace = Trace::parse("0s rate 3750kbit\n1s rate 50kbit\n1.6s repeat").expect("a trace");
    let loss = LossModel::Bernoulli(Probability::new(0.0428).expect("a probability"));
    let path = PathConfig::new(Rate::from_bits_per_second(3_750_000), Duration::from_millis(54), loss);
    let mut network = network(path, 17, Duration::ZERO);
    let link = network.hops()[0];
    network.simulation.set_schedule(link, Direction::Forward, trace.schedule(Simulation::START));
    network.run_for(Duration::from_secs(120));
    let megabits = network.bytes_read(0) as f64 * 8e-6 / 120.0;
    assert!(megabits > 1.5, "{megabits:.2} Mbit/s, of which 2.3 are possible");
}
