//! A chain with any number of flows and hops (a single hop is a dumbbell), for measurements from outside: time, memory
//! and instructions per simulated packet.
//!
//! ```text
//! cargo build --release -p ctcp-sim --example flows
//! time target/release/examples/flows 10 1 100000000 tcp light
//! valgrind --tool=callgrind target/release/examples/flows 10 1 20000000 tcp full
//! ```
//!
//! Each hop has 25 Mbit/s per flow and a queue of one bandwidth-delay product. The round trip over all hops is 20 ms.

#![allow(clippy::print_stdout, reason = "the figures are what people run it for")]

use core::time::Duration;

use ctcp_base::Rate;
use ctcp_netem::{LossModel, PathConfig};
use ctcp_proto::TransportConfig;
use ctcp_sim::Scrutiny;
use ctcp_sim::application::script::Script;
use ctcp_sim::network::FlowConfig;
use ctcp_sim::topology::Chain;

const USAGE: &str = "usage: flows FLOWS HOPS BYTES_OF_ALL_FLOWS PROFILE full|light";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [flows, hops, bytes, profile, scrutiny] = &arguments[..] else { panic!("{USAGE}") };
    let flows: u64 = flows.parse().expect(USAGE);
    let hops: u32 = hops.parse().expect(USAGE);
    let bytes: u64 = bytes.parse().expect(USAGE);
    let profile = ctcp_baselines::catalogue().profile(profile).expect(USAGE);
    let scrutiny = if scrutiny == "light" { Scrutiny::LIGHT } else { Scrutiny::FULL };
    let rate = Rate::from_bits_per_second(25_000_000 * flows);
    let path = PathConfig::new(rate, Duration::from_millis(20) / hops, LossModel::None);
    let transport = TransportConfig { profile, ..TransportConfig::default() };
    let mut chain = Chain::new(1, &vec![path; hops as usize]);
    for _ in 0..flows {
        chain.flow(FlowConfig::new(Script::bulk(bytes / flows), &transport));
    }
    let mut network = chain.build();
    network.simulation.set_scrutiny(scrutiny);
    let stop = network.run_to_completion(Duration::from_secs(100_000));
    let recorder = network.simulation.recorder();
    println!(
        "{stop:?} after {}: {} datagrams, {} bytes, {} events, hash {:016x}",
        network.simulation.now(),
        recorder.datagrams(),
        recorder.bytes(),
        network.simulation.events(),
        recorder.hash(),
    );
}
