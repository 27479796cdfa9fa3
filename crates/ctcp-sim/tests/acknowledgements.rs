//! What the acknowledgements of a bulk transfer cost, as a share of the bytes that they acknowledge, with IP and UDP headers.
//!
//! To see the table: `cargo test --release -p ctcp-sim --test acknowledgements -- --nocapture`.

#![allow(clippy::print_stdout, reason = "the table is what people run it for")]

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_netem::{IPV4_UDP_OVERHEAD, LossModel, PathConfig};
use ctcp_proto::{Profile, TransportConfig};
use ctcp_sim::Stop;
use ctcp_sim::application::script::{Script, StreamPlan};
use ctcp_sim::link::Direction;
use ctcp_sim::topology::Pair;

/// A run is a matter of chance by some percent.
const SEEDS: u64 = 8;

/// The bytes of acknowledgements of uploads as a share of the bytes that arrived.
fn share(profile: Profile, megabits: u64, rtt: u64, loss: f64) -> f64 {
    let shares = (1..=SEEDS).map(|seed| share_of(seed, profile, megabits, rtt, loss));
    let share = shares.sum::<f64>() / SEEDS as f64;
    println!("{profile}: {megabits} Mbit/s {rtt} ms loss {loss}: {share:.4}");
    share
}

/// The share in one run.
fn share_of(seed: u64, profile: Profile, megabits: u64, rtt: u64, loss: f64) -> f64 {
    let rate = Rate::from_megabits_per_second(megabits);
    let model = LossModel::Bernoulli(Probability::new(loss).expect("a probability"));
    let path = PathConfig::new(rate, Duration::from_millis(rtt), model).with_lossless_return();
    let transport = TransportConfig { profile, ..TransportConfig::default() };
    let size = megabits * 1_000_000;
    let script = Script::of_client(vec![StreamPlan::upload(Duration::ZERO, size)]);
    let mut pair = Pair::new(seed, &path, &transport, &script);
    pair.connect().expect("a valid configuration");
    assert_eq!(pair.run_to_completion(Duration::from_secs(120)), Stop::Done);
    let link = pair.simulation.link(pair.link);
    let (there, back) = (link.way(Direction::Forward).stats(), link.way(Direction::Backward).stats());
    let acks = back.bytes_offered + IPV4_UDP_OVERHEAD * back.offered;
    let data = there.bytes_delivered + IPV4_UDP_OVERHEAD * there.delivered;
    acks as f64 / data as f64
}

/// Slow start, in which each packet counts, is a part of these eight seconds: a third of them with 300 ms.
#[test]
fn acknowledgements_of_a_bulk_transfer_cost_little() {
    for (megabits, rtt, most) in
        [(5, 300, 0.023), (25, 20, 0.025), (25, 100, 0.015), (100, 30, 0.011), (100, 100, 0.015)]
    {
        for loss in [0.0, 0.05, 0.2] {
            let share = share(Profile::DEFAULT, megabits, rtt, loss);
            assert!(share <= most, "{megabits} Mbit/s, {rtt} ms, loss {loss}: {share:.4}");
        }
    }
}

/// The baseline acknowledges every second packet, as TCP does.
#[test]
fn the_uncoded_profile_acknowledges_as_tcp_does() {
    assert!(share(Profile::TCP, 25, 20, 0.0) > 0.025);
}
