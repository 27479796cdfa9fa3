//! Jitter as large as the round trip: the delay indicates a queue all the time, but the link must still be used.

#![allow(clippy::print_stdout, reason = "the figures are what people run it for")]

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_netem::{LossModel, PathConfig};
use ctcp_proto::TransportConfig;
use ctcp_sim::Scrutiny;
use ctcp_sim::application::script::{Script, StreamPlan};
use ctcp_sim::link::Direction;
use ctcp_sim::measure::goodput_share;
use ctcp_sim::topology::Pair;

const TIME: Duration = Duration::from_secs(8);

/// Returns the share of the link used by an upload from a cold start, and the share of its packets that the queue
/// drops.
fn upload(path: &PathConfig, seed: u64) -> (f64, f64) {
    let script = Script::of_client(vec![StreamPlan::upload(Duration::ZERO, u64::MAX / 4)]);
    let transport = TransportConfig {
        stream_credit: 64 << 20,
        stream_credit_max: 256 << 20,
        connection_credit: 256 << 20,
        connection_credit_max: 256 << 20,
        ..TransportConfig::default()
    };
    let mut pair = Pair::new(seed, path, &transport, &script);
    pair.simulation.set_scrutiny(Scrutiny::LIGHT);
    pair.connect().expect("a valid configuration");
    pair.simulation.run_for(TIME, |_| false);
    let read = pair.simulation.host(pair.server).bytes_read();
    let link = pair.simulation.link(pair.link).way(Direction::Forward).stats();
    (goodput_share(read, TIME, path.forward.rate), link.dropped as f64 / link.offered as f64)
}

fn path(megabits: u64, rtt: u64, jitter: u64, loss: f64, burst: f64) -> PathConfig {
    let share = Probability::new(loss).expect("a share");
    let model = if burst > 1.0 {
        LossModel::bursts(share, burst).expect("possible")
    } else {
        LossModel::Bernoulli(share)
    };
    PathConfig::new(Rate::from_megabits_per_second(megabits), Duration::from_millis(rtt), model)
        .with_lossless_return()
        .with_jitter(Duration::from_millis(jitter))
}

#[test]
fn jitter_of_the_size_of_the_round_trip_does_not_starve_a_flow() {
    // Rate, round trip, jitter in each direction, loss, mean burst, and the minimum share of the link.
    let cases = [
        (110, 22, 11, 0.009, 1.0, 0.85),
        (75, 26, 12, 0.24, 5.0, 0.62),
        (43, 62, 2, 0.07, 1.0, 0.88),
        (26, 89, 6, 0.17, 1.0, 0.76),
        (25, 20, 20, 0.02, 1.0, 0.68),
    ];
    for (megabits, rtt, jitter, loss, burst, least) in cases {
        // Runs differ by a tenth and more, so take the median of three.
        let mut runs = [1, 2, 3].map(|seed| upload(&path(megabits, rtt, jitter, loss, burst), seed));
        runs.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
        let (share, dropped) = runs[1];
        println!("{megabits} Mbit/s {rtt} ms + {jitter} ms, loss {loss}: {share:.3}, dropped {dropped:.3}");
        assert!(share > least, "{megabits} Mbit/s, {rtt} ms, jitter {jitter} ms, loss {loss}: {share:.3}");
        assert!(dropped < 0.05, "{megabits} Mbit/s, {rtt} ms, jitter {jitter} ms: {dropped:.3} dropped");
    }
}
