//! Losses that come and go by the clock: everything is lost for a while, then nothing is.

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_netem::{LossModel, LossPlace, PathConfig, QueueLimit};
use ctcp_proto::{Profile, ProfileName, TransportConfig};
use ctcp_sim::application::script::Script;
use ctcp_sim::link::Direction;
use ctcp_sim::network::{FlowConfig, Network};
use ctcp_sim::topology::Chain;

const RTT: Duration = Duration::from_millis(10);

/// A flow without end of profile `ctcp`, which begins after `on`, on a link that loses everything in the first `on` of each `period`.
fn network(megabits: u64, period: Duration, on: Duration) -> Network {
    let loss = LossModel::OnOff { period, on, loss: Probability::ONE };
    let path = PathConfig::new(Rate::from_megabits_per_second(megabits), RTT, loss).with_lossless_return();
    let forward = path.forward.with_queue(QueueLimit::Packets(100)).with_loss_place(LossPlace::BehindQueue);
    let mut dumbbell = Chain::dumbbell(1, &PathConfig { forward, ..path });
    let profile = Profile::named(ProfileName::Ctcp);
    let transport = TransportConfig { profile, ..TransportConfig::default() };
    dumbbell.flow(FlowConfig::new(Script::endless(), &transport).starting_after(on));
    dumbbell.build()
}

/// A window that is lost whole leaves nothing to wait for but the few packets behind it, whose acknowledgements arrive when the next pulse
/// begins. Who waits for them sends only what is lost.
///
/// Requirement: C5, C11
#[test]
fn a_flow_beside_a_microwave_oven_does_not_fall_into_step_with_it() {
    for megabits in [14, 17, 24, 30] {
        // With 9 ms of pulses and half a millisecond on the air, 0.525 of the time nothing arrives unharmed.
        let mut network = network(megabits, 2 * RTT, Duration::from_micros(9_500));
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
    let mut network = network(25, seconds(20), seconds(10));
    network.run_for(seconds(25));
    let link = network.hops()[0];
    let before = network.simulation.link(link).way(Direction::Forward).stats();
    assert!(before.delivered > 10_000, "{before:?}");
    // In the middle of the silence, which began with a window and a full queue under way.
    assert!((100..1_000).contains(&before.lost), "{before:?}");
    network.run_for(seconds(5));
    let after = network.simulation.link(link).way(Direction::Forward).stats();
    assert!(after.lost - before.lost < 60, "{} packets in 5 s of silence", after.lost - before.lost);
}
