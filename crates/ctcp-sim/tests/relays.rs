//! Relays of the library in the topologies of network coding: a chain, a diamond and a butterfly.

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_netem::{LossModel, LossPlace, PathConfig};
use ctcp_proto::{HopRepair, TransportConfig};
use ctcp_sim::Stop;
use ctcp_sim::application::script::{Script, StreamPlan};
use ctcp_sim::messages::Messages;
use ctcp_sim::network::{FlowConfig, Network};
use ctcp_sim::topology::{Chain, Relayed};

const SECOND: Duration = Duration::from_secs(1);

/// Megabits per second of every link. Packets are lost after the link's queue, in both directions, so a link delivers this
/// times 1 - p.
const MEGABITS: f64 = 10.0;

fn loss(share: f64) -> LossModel {
    LossModel::Bernoulli(Probability::new(share).expect("a probability"))
}

fn link(share: f64) -> PathConfig {
    let rate = Rate::from_megabits_per_second(MEGABITS as u64);
    let path = PathConfig::new(rate, Duration::from_millis(20), loss(share));
    let [forward, backward] =
        [path.forward, path.backward].map(|way| way.with_loss_place(LossPlace::BehindQueue));
    PathConfig { forward, backward }
}

fn upload(size: u64) -> FlowConfig {
    let script = Script::of_client(vec![StreamPlan::upload(Duration::ZERO, size)]);
    FlowConfig::new(script, &TransportConfig::default())
}

/// Runs to the end of all scripts, and returns the seconds that took.
fn finish(network: &mut Network) -> f64 {
    let begun = network.simulation.now();
    let stop = network.run_to_completion(600 * SECOND);
    assert_eq!(stop, Stop::Done, "{:?}", network.simulation.violations().collect::<Vec<_>>());
    for flow in network.flows() {
        for end in [flow.sender, flow.receiver] {
            assert_eq!(network.simulation.host(end).lost_hops(), &[] as &[String]);
        }
    }
    (network.simulation.now() - begun).as_secs_f64()
}

/// Megabits per second of an upload over hops with these losses, with a relay between each two.
fn through_relays(losses: &[f64], repair: HopRepair) -> f64 {
    const SIZE: u64 = 8_000_000;
    let hops: Vec<PathConfig> = losses.iter().map(|&loss| link(loss)).collect();
    let mut chain = Relayed::chain(1, &hops, repair);
    let relays: Vec<usize> = (1..losses.len()).collect();
    chain.flow(0, losses.len(), &[&relays], upload(SIZE));
    SIZE as f64 * 8e-6 / finish(&mut chain.build())
}

/// The same from end to end.
fn without_relays(losses: &[f64]) -> f64 {
    const SIZE: u64 = 8_000_000;
    let hops: Vec<PathConfig> = losses.iter().map(|&loss| link(loss)).collect();
    let mut chain = Chain::new(1, &hops);
    chain.flow(upload(SIZE));
    SIZE as f64 * 8e-6 / finish(&mut chain.build())
}

// Requirement: N5
#[test]
fn a_chain_of_relays_is_as_fast_as_its_worst_hop_and_end_to_end_is_not() {
    let losses = [0.1, 0.2, 0.2];
    let worst_hop = 0.8 * MEGABITS;
    let recoded = through_relays(&losses, HopRepair::Combinations);
    let repeated = through_relays(&losses, HopRepair::Repetitions);
    let direct = without_relays(&losses);
    println!("{losses:?}: recoded {recoded:.2}, repeated {repeated:.2}, end to end {direct:.2} Mbit/s");
    assert!(recoded > 0.8 * worst_hop && repeated > 0.75 * worst_hop && direct < 0.9 * 0.8 * worst_hop);
}

// Requirement: N5, C13
#[test]
fn the_two_relays_of_a_diamond_add_up() {
    const SIZE: u64 = 16_000_000;
    let mut diamond = Relayed::diamond(1, &link(0.1), HopRepair::Combinations);
    diamond.flow(0, 3, &[&[1], &[2]], upload(SIZE));
    let megabits = SIZE as f64 * 8e-6 / finish(&mut diamond.build());
    println!("diamond: {megabits:.2} Mbit/s of a min-cut of {:.1}", 2.0 * 0.9 * MEGABITS);
    assert!(megabits > 0.8 * 2.0 * 0.9 * MEGABITS);
}

// Requirement: N5
#[test]
fn the_flows_of_a_butterfly_share_its_links() {
    // Each flow has a way of its own and one over the middle, and both ways cross the two links of the source. So two flows
    // get two links in all. Only what both sinks want, if the middle combines it, gets four: `ctcp-coding`,
    // `tests/butterfly.rs`.
    let cut = 0.95 * MEGABITS;
    const SEEDS: u64 = 12;
    let (mut means, mut mean_of_lower) = ([0.0; 2], 0.0);
    for seed in 1..=SEEDS {
        let mut butterfly = Relayed::butterfly(seed, &link(0.05), HopRepair::Combinations);
        let left = butterfly.flow(0, 5, &[&[1], &[2, 3, 4]], upload(100_000_000));
        let right = butterfly.flow(0, 6, &[&[2], &[1, 3, 4]], upload(100_000_000));
        let mut network = butterfly.build();
        let stop = network.run_for(20 * SECOND);
        assert_eq!(stop, Stop::TimeUp, "{:?}", network.simulation.violations().collect::<Vec<_>>());
        let megabits = [left, right].map(|flow| network.bytes_read(flow) as f64 * 8e-6 / 20.0);
        println!("butterfly: {megabits:.2?} Mbit/s, links of {cut:.1}");
        // Hops that share a link share it unevenly now and then, so the sharper bounds are on the means of all seeds.
        assert!(megabits.iter().all(|rate| *rate > 0.5 * cut), "seed {seed}: {megabits:?}");
        means.iter_mut().zip(megabits).for_each(|(mean, rate)| *mean += rate / SEEDS as f64);
        mean_of_lower += megabits[0].min(megabits[1]) / SEEDS as f64;
        assert!(megabits.iter().sum::<f64>() > 0.7 * 2.0 * cut, "seed {seed}: {megabits:?}");
    }
    assert!(means.iter().all(|rate| *rate > 0.7 * cut), "{means:?}");
    assert!(mean_of_lower > 0.65 * cut, "{mean_of_lower}");
    assert!(means.iter().sum::<f64>() > 0.75 * 2.0 * cut, "{means:?}");
}

/// A stream sends two or three packets together, which wait for each other, and each direction loses a fifth. None of this is
/// congestion.
#[test]
fn a_stream_is_not_taken_for_congestion() {
    let messages = Messages { bytes: 1_200, rate: Rate::from_megabits_per_second(3), time: 30 * SECOND };
    for seed in 0..4 {
        let link = PathConfig::new(Rate::from_megabits_per_second(25), Duration::from_millis(20), loss(0.2));
        let flow = FlowConfig::new(messages.script(), &TransportConfig::default());
        let mut direct = Chain::new(seed, core::slice::from_ref(&link));
        direct.flow(flow.clone());
        let mut relayed = Relayed::chain(seed, &[link.clone(), link], HopRepair::Combinations);
        relayed.flow(0, 2, &[&[1]], flow);
        for (name, mut network, bound) in
            [("direct", direct.build(), 100.0), ("through a relay", relayed.build(), 150.0)]
        {
            let [half, most] = messages.delays_in(&mut network, [0.5, 0.99]);
            println!("{name}: {half:.1} ms, {most:.1} ms");
            assert!(most < bound, "{name}, seed {seed}: {most} ms");
        }
    }
}
