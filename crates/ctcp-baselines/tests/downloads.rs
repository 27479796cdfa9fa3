//! Downloads with the papers' profiles over one lossy link, in virtual time.

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_baselines::{
    SPARSE_PROFILE, TCP_NC, TCP_NC_EOT, TCP_NC_PB, THESIS, VEGAS, VEGAS_SOURCE, catalogue, simulated,
};
use ctcp_netem::{LossModel, PathConfig};
use ctcp_proto::{ConnectionStats, Profile, Ratio, Redundancy, TransportConfig};
use ctcp_sim::Stop;
use ctcp_sim::application::script::Script;
use ctcp_sim::network::{FlowConfig, Network};
use ctcp_sim::topology::Chain;

const MEGABITS: u64 = 25;

fn path(loss: f64) -> PathConfig {
    let loss = match loss {
        0.0 => LossModel::None,
        loss => LossModel::Bernoulli(Probability::new(loss).expect("a probability")),
    };
    PathConfig::new(Rate::from_megabits_per_second(MEGABITS), Duration::from_millis(20), loss)
}

fn paced(profile: Profile) -> TransportConfig {
    TransportConfig { profile, catalogue: catalogue(), ..TransportConfig::default() }
}

fn unpaced(profile: Profile) -> TransportConfig {
    TransportConfig { catalogue: simulated(), ..paced(profile) }
}

/// Runs one flow of `megabytes` to completion. Returns its share of the link and the sender's statistics.
fn upload(flow: FlowConfig, loss: f64, megabytes: u64) -> (f64, ConnectionStats) {
    let mut chain = Chain::dumbbell(1, &path(loss));
    chain.flow(flow);
    let mut network = chain.build();
    let stop = network.run_to_completion(Duration::from_secs(600));
    let violations: Vec<&String> = network.simulation.violations().collect();
    assert_eq!((stop, violations), (Stop::Done, Vec::new()));
    let seconds = (network.simulation.now() - ctcp_sim::Simulation::START).as_secs_f64();
    (megabytes as f64 * 8.0 / seconds / MEGABITS as f64, stats(&network))
}

fn stats(network: &Network) -> ConnectionStats {
    network.simulation.host(network.flows()[0].sender).stats()
}

fn flow(transport: &TransportConfig, megabytes: u64) -> FlowConfig {
    FlowConfig::new(Script::bulk(megabytes * 1_000_000), transport)
}

fn share(transport: &TransportConfig, loss: f64, megabytes: u64) -> f64 {
    upload(flow(transport, megabytes), loss, megabytes).0
}

fn with_ratio(profile: Profile, ratio: f64) -> Profile {
    Profile { redundancy: Redundancy::fixed(Ratio::new(ratio).expect("in range")), ..profile }
}

// Requirement: U2, U6
#[test]
fn the_thesis_is_several_times_as_fast_as_tcp_at_five_percent_loss() {
    let sparse = share(&paced(SPARSE_PROFILE), 0.05, 8);
    let tcp = share(&paced(Profile::TCP), 0.05, 1);
    println!("sparse {sparse:.3}, tcp {tcp:.3}");
    assert!(sparse > 0.6 && sparse > 4.0 * tcp, "{sparse:.3} {tcp:.3}");
}

/// With the same TCP on top, only the coding layer masks the loss.
#[test]
fn coding_below_vegas_masks_loss_that_stalls_it() {
    let vegas = Profile { code: VEGAS_SOURCE, congestion: VEGAS, ..Profile::TCP };
    let uncoded = share(&unpaced(vegas), 0.05, 1);
    let coded = share(&unpaced(with_ratio(TCP_NC, 1.15)), 0.05, 4);
    println!("vegas {uncoded:.3}, coded {coded:.3}");
    assert!(coded > 0.6 && coded > 4.0 * uncoded, "{uncoded:.3} {coded:.3}");
    for profile in [TCP_NC_EOT, TCP_NC_PB] {
        println!("{profile}: {:.3}", share(&unpaced(profile), 0.05, 2));
    }
}

/// Without coefficients and payload, the delivered bytes are the same and the number of packets is nearly the same.
#[test]
fn symbolic_coding_delivers_the_same_bytes_with_as_many_packets() {
    let transport = unpaced(with_ratio(TCP_NC, 1.15));
    let real = upload(flow(&transport, 2), 0.05, 2).1;
    let symbolic = upload(flow(&transport, 2).symbolic(), 0.05, 2).1;
    // Packets on the wire are shorter, so compare numbers of packets and not rates.
    let ratio = |one: u64, other: u64| one as f64 / other as f64;
    assert!((ratio(symbolic.symbols_sent, real.symbols_sent) - 1.0).abs() < 0.02);
    assert!((ratio(symbolic.repairs_sent, real.repairs_sent) - 1.0).abs() < 0.1);
}

/// Returns what an endless flow puts into the link in five seconds, in Mbit/s.
fn sent(transport: &TransportConfig) -> f64 {
    let mut chain = Chain::dumbbell(1, &path(0.0));
    chain.flow(FlowConfig::new(Script::endless(), transport));
    let mut network = chain.build();
    network.run_for(Duration::from_secs(5));
    let stats = stats(&network);
    (stats.bytes_sent + 28 * stats.datagrams_sent) as f64 * 8e-6 / 5.0
}

#[test]
fn on_a_network_no_profile_sends_more_than_the_link_carries() {
    for profile in [TCP_NC, TCP_NC_EOT, TCP_NC_PB, SPARSE_PROFILE] {
        for ratio in [1.5, 64.0] {
            let megabits = sent(&paced(with_ratio(profile, ratio)));
            println!("{profile} R={ratio}: {megabits:.1} Mbit/s");
            // The thesis's control ignores loss, so its window grows beyond what the path carries.
            let most = if profile == SPARSE_PROFILE { 2.0 } else { 1.1 };
            assert!(megabits < MEGABITS as f64 * most, "{profile} R={ratio}: {megabits}");
        }
    }
}

/// The papers' source: it must flood the link in a simulation, and nowhere else.
#[test]
fn in_a_simulation_a_classical_source_floods_the_link() {
    let megabits = sent(&unpaced(with_ratio(TCP_NC, 64.0)));
    assert!(megabits > 10.0 * MEGABITS as f64, "{megabits}");
}

/// Without another limit on its window it overflows a long queue forever, since it does not detect a standing queue.
#[test]
fn the_thesis_does_not_see_a_standing_queue() {
    let mut chain = Chain::dumbbell(1, &path(0.0));
    let transport = paced(Profile { congestion: THESIS, ..Profile::DEFAULT });
    chain.flow(FlowConfig::new(Script::endless(), &transport));
    let mut network = chain.build();
    network.run_for(Duration::from_secs(60));
    let stats = stats(&network);
    println!("window {:.0}, lost {} of {}", stats.window, stats.packets_lost, stats.datagrams_sent);
    // The path and its queue hold 84 packets.
    assert!(stats.window > 5.0 * 84.0, "{stats:?}");
    assert!(stats.packets_lost * 3 > stats.datagrams_sent, "{stats:?}");
}
