//! Paths that come and go by the clock: for a while everything is lost, or nearly nothing gets through, and then all is well.

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

/// A flow without end of profile `ctcp` that begins after `start`.
fn network(path: PathConfig, queue: u64, start: Duration) -> Network {
    let path = path.with_lossless_return();
    let forward = path.forward.with_queue(QueueLimit::Packets(queue)).with_loss_place(LossPlace::BehindQueue);
    let mut dumbbell = Chain::dumbbell(1, &PathConfig { forward, ..path });
    let profile = Profile::CTCP;
    let transport = TransportConfig { profile, ..TransportConfig::default() };
    dumbbell.flow(FlowConfig::new(Script::endless(), &transport).starting_after(start));
    dumbbell.build()
}

/// The same on a link that loses everything in the first `on` of each `period`. The flow begins when the first losses are over.
fn with_losses(megabits: u64, period: Duration, on: Duration) -> Network {
    let loss = LossModel::OnOff { period, on, loss: Probability::ONE };
    network(PathConfig::new(Rate::from_megabits_per_second(megabits), RTT, loss), 100, on)
}

/// A window that is lost whole leaves nothing to wait for but the few packets behind it, whose acknowledgements arrive when the next pulse
/// begins. Who waits for them sends only what is lost.
///
/// Requirement: C5, C11
#[test]
fn a_flow_beside_a_microwave_oven_does_not_fall_into_step_with_it() {
    for megabits in [14, 17, 24, 30] {
        // With 9 ms of pulses and half a millisecond on the air, what leaves in 0.525 of the time arrives unharmed.
        let mut network = with_losses(megabits, 2 * RTT, Duration::from_micros(9_500));
        network.run_for(Duration::from_secs(20));
        let share = network.bytes_read(0) as f64 * 8e-6 / 20.0 / megabits as f64;
        assert!(share > 0.24, "{share:.3} of {megabits} Mbit/s, of which about half could arrive");
    }
}

/// In place of what is lost unheard packets may leave, but a path that died gets fewer and fewer.
///
/// Requirement: C4
#[test]
fn a_path_that_died_is_sent_less_and_less() {
    let seconds = Duration::from_secs;
    let mut network = with_losses(25, seconds(20), seconds(10));
    network.run_for(seconds(25));
    let link = network.hops()[0];
    let before = network.simulation.link(link).way(Direction::Forward).stats();
    assert!(before.delivered > 10_000, "{before:?}");
    // In the middle of the silence, which began with a window and a full queue under way.
    assert!((100..600).contains(&before.lost), "{before:?}");
    network.run_for(seconds(5));
    let after = network.simulation.link(link).way(Direction::Forward).stats();
    assert!(after.lost - before.lost < 60, "{} packets in 5 s of silence", after.lost - before.lost);
}

/// In a stall round trips become seconds. Who spreads his window over their average when it is over lets the good second pass by.
///
/// Requirement: C4
#[test]
fn a_flow_makes_use_of_the_air_as_soon_as_it_is_back() {
    let trace = Trace::parse("0s rate 3750kbit\n1s rate 50kbit\n1.6s repeat").expect("a trace");
    let loss = LossModel::Bernoulli(Probability::new(0.0428).expect("a probability"));
    let path = PathConfig::new(Rate::from_bits_per_second(3_750_000), Duration::from_millis(54), loss);
    let mut network = network(path, 17, Duration::ZERO);
    let link = network.hops()[0];
    network.simulation.set_schedule(link, Direction::Forward, trace.schedule(Simulation::START));
    network.run_for(Duration::from_secs(120));
    let megabits = network.bytes_read(0) as f64 * 8e-6 / 120.0;
    assert!(megabits > 1.5, "{megabits:.2} Mbit/s, of which 2.3 could be");
}
