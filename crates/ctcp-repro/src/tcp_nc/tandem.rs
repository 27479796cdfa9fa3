//! The network of TCP/NC's figures: a row of hops, and flows from end to end.
//!
//! ```text
//!   sources ==== node ==== node ==== node ==== sinks        each hop: 1 Mbit/s, 100 ms, queue of 200 packets
//! ```
//!
//! Packets count as 1000 bytes and acknowledgements as 40, regardless of their actual sizes. Packets are lost after a
//! hop's queue, in both directions. A lost packet has used the link, without which the published throughput could not
//! be reached. Throughput is counted in symbols that the sink has decoded, each standing for a packet of 1000 bytes.

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_baselines::{TCP_NC, VEGAS, VEGAS_SOURCE};
use ctcp_netem::{Charge, LinkConfig, LossModel, LossPlace, PathConfig, QueueLimit};
use ctcp_proto::{Profile, Ratio, Redundancy, TransportConfig};
use ctcp_sim::Scrutiny;
use ctcp_sim::application::script::Script;
use ctcp_sim::network::{FlowConfig, Network};
use ctcp_sim::topology::Chain;

/// Bits per packet.
const PACKET_BITS: f64 = 8_000.0;

/// The receive window in packets.
const WINDOW: u32 = 100;

/// Returns a hop that loses this share of the packets in each direction.
pub(super) fn hop(loss: f64) -> PathConfig {
    hop_that_loses(LossModel::Bernoulli(Probability::new(loss).expect("a probability")))
}

/// Returns a hop with this loss model in each direction.
pub(super) fn hop_that_loses(loss: LossModel) -> PathConfig {
    let way = LinkConfig::default()
        .with_rate(Rate::from_megabits_per_second(1))
        .with_delay(Duration::from_millis(100))
        .with_queue(QueueLimit::Packets(200))
        .with_loss(loss)
        .with_loss_place(LossPlace::BehindQueue);
    PathConfig {
        forward: way.clone().with_charge(Charge::every(1_000)),
        backward: way.with_charge(Charge::every(40)),
    }
}

/// Returns TCP Vegas without coding.
pub(super) fn tcp() -> Profile {
    Profile { code: VEGAS_SOURCE, congestion: VEGAS, ..Profile::TCP }
}

/// Returns TCP/NC with R combinations per packet.
pub(super) fn tcp_nc(redundancy: f64) -> Profile {
    let ratio = Ratio::new(redundancy).expect("R is at least 1");
    Profile { redundancy: Redundancy::fixed(ratio), ..TCP_NC }
}

/// Returns an endless flow with the given profile.
pub(super) fn flow(profile: Profile) -> FlowConfig {
    let is_coded = profile.code.spans_window();
    let defaults = TransportConfig::default();
    let transport = TransportConfig {
        profile,
        congestion_window_max: WINDOW,
        // Symbols are as small as possible, because their size is not part of the simulation.
        symbol_size_max: 256,
        symbol_window: 65_536,
        coding_window: if is_coded { 65_536 } else { defaults.coding_window },
        idle_timeout: Duration::from_secs(36_000),
        keep_alive: None,
        ..defaults
    };
    let flow = FlowConfig::new(Script::endless(), &transport);
    if is_coded { flow.symbolic() } else { flow }
}

/// Returns the network with its flows, which have not begun.
pub(super) fn tandem(seed: u64, hops: &[PathConfig], flows: impl IntoIterator<Item = FlowConfig>) -> Network {
    at_rest(chain(seed, hops, flows))
}

/// Returns a chain with its flows that can still be changed.
pub(super) fn chain(seed: u64, hops: &[PathConfig], flows: impl IntoIterator<Item = FlowConfig>) -> Chain {
    let mut chain = Chain::new(seed, hops);
    for flow in flows {
        chain.flow(flow);
    }
    chain
}

/// Builds the network of a chain, with as few checks as possible.
pub(super) fn at_rest(chain: Chain) -> Network {
    let mut network = chain.build();
    network.simulation.set_scrutiny(Scrutiny::LIGHT);
    network
}

/// Returns the throughput of a flow over `time` in Mbit/s.
pub(super) fn throughput(network: &Network, flow: usize, time: Duration) -> f64 {
    network.receiver_stats(flow).symbols_decoded as f64 * PACKET_BITS / time.as_secs_f64() / 1e6
}
