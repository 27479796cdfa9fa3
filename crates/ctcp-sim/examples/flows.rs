//! A dumbbell with any number of flows, to be measured from outside: the time, the memory, the instructions of a simulated packet.
//!
//! ```text
//! cargo build --release -p ctcp-sim --example flows
//! time target/release/examples/flows 10 100000000 tcp light
//! valgrind --tool=callgrind target/release/examples/flows 10 20000000 tcp full
//! ```
//!
//! The bottleneck has 25 Mbit/s for each flow, 20 ms and a queue of one bandwidth-delay product.

#![allow(clippy::print_stdout, reason = "the figures are what people run it for")]

use core::time::Duration;

use ctcp_base::Rate;
use ctcp_netem::{LossModel, PathConfig};
use ctcp_proto::{Profile, ProfileName, TransportConfig};
use ctcp_sim::Scrutiny;
use ctcp_sim::application::script::Script;
use ctcp_sim::network::FlowConfig;
use ctcp_sim::topology::Chain;

const USAGE: &str = "usage: flows FLOWS BYTES_OF_ALL_FLOWS PROFILE full|light";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [flows, bytes, profile, scrutiny] = &arguments[..] else { panic!("{USAGE}") };
    let flows: u64 = flows.parse().expect(USAGE);
    let bytes: u64 = bytes.parse().expect(USAGE);
    let profile: ProfileName = profile.parse().expect(USAGE);
    let scrutiny = if scrutiny == "light" { Scrutiny::LIGHT } else { Scrutiny::FULL };
    let rate = Rate::from_bits_per_second(25_000_000 * flows);
    let path = PathConfig::new(rate, Duration::from_millis(20), LossModel::None);
    let transport = TransportConfig { profile: Profile::named(profile), ..TransportConfig::default() };
    let mut dumbbell = Chain::dumbbell(1, &path);
    for _ in 0..flows {
        dumbbell.flow(FlowConfig::new(Script::bulk(bytes / flows), &transport));
    }
    let mut network = dumbbell.build();
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
