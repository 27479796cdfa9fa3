//! Flows of profile `default` beside each other, and beside Reno and Cubic.

use ctcp_netem::{LinkConfig, PathConfig};
use ctcp_proto::congestion::Algorithm;
use ctcp_proto::{PathMode, Profile, TransportConfig};
use ctcp_sim::Scrutiny;
use ctcp_sim::application::script::Script;
use ctcp_sim::measure::jain;
use ctcp_sim::network::FlowConfig;
use ctcp_sim::topology::Chain;

use crate::bottleneck::{Bottleneck, Conditions, secs, transport};

/// The shares of the link that two flows get in so many seconds from the 15th on; the second begins at the fifth.
fn pair(first: Profile, second: Profile, conditions: Conditions, seconds: u64) -> [f64; 2] {
    let flows = [(transport(first), secs(0)), (transport(second), secs(5))];
    let mut bottleneck = Bottleneck::new(conditions, &flows);
    bottleneck.run(secs(15));
    let shares = bottleneck.run(secs(seconds)).shares;
    [shares[0], shares[1]]
}

#[test]
fn two_flows_share_equally_whichever_came_first() {
    for conditions in [
        Conditions::papers(0.0),
        Conditions::papers(0.05),
        Conditions::papers(0.0).with_late_acks_and_packets(2),
        Conditions::new(25, 20, 0.25, 0.0),
        Conditions::new(10, 25, 1.0, 0.0),
    ] {
        let shares = pair(Profile::DEFAULT, Profile::DEFAULT, conditions, 15);
        let sum: f64 = shares.iter().sum();
        assert!(jain(&shares) > 0.95 && sum > 0.98, "{conditions:?}: {shares:.3?}");
    }
}

#[test]
fn five_flows_share_equally() {
    let of_seed = |seed| {
        let flows = [0, 1, 2, 3, 4].map(|start| (transport(Profile::DEFAULT), secs(start)));
        let mut bottleneck = Bottleneck::new(Conditions { seed, ..Conditions::papers(0.02) }, &flows);
        bottleneck.run(secs(10));
        jain(&bottleneck.run(secs(30)).shares)
    };
    let indices = [1, 2, 3, 4, 5, 6, 7, 8].map(of_seed);
    assert!(
        indices.iter().sum::<f64>() / 8.0 > 0.95 && indices.iter().all(|&jain| jain > 0.85),
        "{indices:.3?}"
    );
}

#[test]
fn reno_and_the_default_share_a_clean_link_and_a_long_queue_less_equally() {
    for (queue, least) in [(1.0, 0.4), (2.0, 0.3)] {
        for megabits in [10, 25] {
            let conditions = Conditions::new(megabits, 25, queue, 0.0);
            for (first, second) in [(Profile::TCP, Profile::DEFAULT), (Profile::DEFAULT, Profile::TCP)] {
                let shares = pair(first, second, conditions, 30);
                let is_shared = shares.iter().all(|&share| share > least);
                assert!(is_shared, "{first} first, {conditions:?}: {shares:.3?}");
            }
        }
    }
}

#[test]
fn a_flow_is_not_starved_when_cubic_begins_to_fill_a_long_queue() {
    let cubic = Profile { congestion: Algorithm::CUBIC, ..Profile::TCP };
    for seed in 1..=4 {
        let conditions = Conditions { seed, ..Conditions::new(10, 60, 4.0, 0.0) };
        let flows = [(transport(Profile::DEFAULT), secs(0)), (transport(cubic), secs(2))];
        let mut bottleneck = Bottleneck::new(conditions, &flows);
        bottleneck.run(secs(2));
        let shares = bottleneck.run(secs(15)).shares;
        assert!(shares[0] > 0.08, "seed {seed}: {shares:.3?}");
    }
}

#[test]
fn a_flow_that_joins_cubic_does_not_take_its_queue_for_the_path() {
    let cubic = Profile { congestion: Algorithm::CUBIC, ..Profile::TCP };
    for seed in 1..=3 {
        let conditions = Conditions { seed, ..Conditions::new(25, 60, 1.0, 0.0) };
        let flows = [(transport(cubic), secs(0)), (transport(Profile::DEFAULT), secs(2))];
        let mut bottleneck = Bottleneck::new(conditions, &flows);
        bottleneck.run(secs(2));
        let shares = bottleneck.run(secs(60)).shares;
        assert!(shares[1] > 0.27, "seed {seed}: {shares:.3?}");
    }
}

/// What random loss leaves to Reno does not depend on its neighbour (Padhye's formula).
#[test]
fn on_a_lossy_link_reno_gets_what_it_gets_beside_another_reno() {
    for loss in [0.01, 0.05] {
        let [beside_itself, _] = pair(Profile::TCP, Profile::TCP, Conditions::papers(loss), 20);
        let [beside_us, ours] = pair(Profile::TCP, Profile::DEFAULT, Conditions::papers(loss), 20);
        assert!(beside_us > 0.7 * beside_itself, "loss {loss}: {beside_us:.3} against {beside_itself:.3}");
        assert!(beside_us + ours > 0.98, "loss {loss}: {beside_us:.3} {ours:.3}");
    }
}

/// What Reno gets of the link alongside a client with so many paths through it, in bytes of a minute.
fn reno_alongside(paths: usize, path_mode: PathMode) -> f64 {
    let mut chain = Chain::dumbbell(1, &Conditions::new(25, 20, 1.0, 0.0).path());
    let access = vec![PathConfig::symmetric(LinkConfig::default()); paths];
    let reno = chain.flow(FlowConfig::new(Script::endless(), &transport(Profile::TCP)));
    let several = TransportConfig { path_mode, ..transport(Profile::DEFAULT) };
    chain.flow(FlowConfig::new(Script::endless(), &several).over_several(&access));
    let mut network = chain.build();
    network.simulation.set_scrutiny(Scrutiny::LIGHT);
    network.run_for(secs(60));
    network.bytes_read(reno) as f64
}

#[test]
fn three_paths_through_one_link_take_the_share_of_one_and_independent_ones_take_more() {
    let one = reno_alongside(1, PathMode::Aggregate);
    let three = reno_alongside(3, PathMode::Aggregate);
    let independent = reno_alongside(3, PathMode::Independent);
    assert!((0.85..1.3).contains(&(three / one)), "{three} alongside three paths, {one} alongside one");
    assert!(independent < 0.8 * three, "{independent} alongside three that compete each, {three}");
}
