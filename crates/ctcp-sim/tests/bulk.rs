//! A long download over a link of 25 Mbit/s and 20 ms, with a queue of one bandwidth-delay product and loss in both
//! directions.
//!
//! To see the table: `cargo test --release -p ctcp-sim --test bulk -- --nocapture`.

#![allow(clippy::print_stdout, reason = "the table is what people run it for")]

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_netem::{LossModel, PathConfig};
use ctcp_proto::{Profile, TransportConfig};
use ctcp_sim::Stop;
use ctcp_sim::application::script::{Script, StreamPlan};
use ctcp_sim::measure::goodput_share;
use ctcp_sim::topology::Pair;

const SIZE: u64 = 10_000_000;
const RATE: Rate = Rate::from_megabits_per_second(25);
const RTT: Duration = Duration::from_millis(20);

fn share(profile: Profile, loss: f64, seed: u64) -> f64 {
    share_of(profile, RATE, RTT, loss, SIZE, seed)
}

/// Returns the share of the link used by a download, from the first datagram of the handshake to the last byte read.
fn share_of(profile: Profile, rate: Rate, rtt: Duration, loss: f64, size: u64, seed: u64) -> f64 {
    let loss_model = LossModel::Bernoulli(Probability::new(loss).expect("a probability"));
    let path = PathConfig::new(rate, rtt, loss_model);
    let transport = TransportConfig { profile, ..TransportConfig::default() };
    let script = Script::of_client(vec![StreamPlan::download(Duration::ZERO, size)]);
    let mut pair = Pair::new(seed, &path, &transport, &script);
    let start = pair.simulation.now();
    pair.connect().expect("a valid configuration");
    let stop = pair.run_to_completion(Duration::from_secs(600));
    let violations: Vec<&String> = pair.simulation.violations().collect();
    assert_eq!(stop, Stop::Done, "{profile} at loss {loss}: {violations:?}");
    let time = pair.simulation.now() - start;
    let stats = pair.simulation.host(pair.server).stats();
    let share = goodput_share(size, time, rate);
    println!(
        "{profile:8} loss {loss:.2} seed {seed}: {share:.3} of the link, {time:.2?}, {} symbols, {} repairs, {} lost, {} window stalls",
        stats.symbols_sent, stats.repairs_sent, stats.packets_lost, stats.window_stalls
    );
    share
}

#[test]
fn the_default_profile_fills_the_link_at_any_loss() {
    for (loss, worst, median) in [(0.0, 0.90, 0.90), (0.05, 0.88, 0.90), (0.2, 0.78, 0.88)] {
        let mut shares = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(|seed| share(Profile::DEFAULT, loss, seed));
        shares.sort_by(f64::total_cmp);
        assert!(shares[0] >= worst && shares[4] >= median, "loss {loss}: {shares:.3?}");
    }
}

#[test]
fn the_papers_profile_beats_the_uncoded_one_under_loss() {
    for loss in [0.0, 0.05, 0.2] {
        let coded = share(Profile::CTCP, loss, 1);
        let uncoded = share(Profile::TCP, loss, 1);
        // Without loss the uncoded profile may win: CTCP controls its window by the delay and leaves room in the queue.
        assert!(loss == 0.0 || coded > uncoded, "{coded:.3} against {uncoded:.3} at loss {loss}");
        assert!(coded > 0.5, "{coded:.3} at loss {loss}");
    }
}

/// A satellite, and the other side of the world. The share includes slow start. The receiver's window must not be the
/// limit.
#[test]
fn one_stream_fills_a_long_path() {
    for (megabits, rtt, size, least) in [(25, 600, 60_000_000, 0.62), (100, 100, 100_000_000, 0.80)] {
        let (rate, rtt) = (Rate::from_megabits_per_second(megabits), Duration::from_millis(rtt));
        let share = share_of(Profile::DEFAULT, rate, rtt, 0.01, size, 1);
        assert!(share >= least, "{share:.3} at {megabits} Mbit/s and {rtt:?}");
    }
}

/// A handshake, request or credit update that is lost several times must not cost more than a moment.
#[test]
#[ignore = "takes a while; docs/testing.md"]
fn no_seed_of_sixty_is_far_behind() {
    for loss in [0.05, 0.2] {
        let mut shares: Vec<f64> = (1..=60).map(|seed| share(Profile::DEFAULT, loss, seed)).collect();
        shares.sort_by(f64::total_cmp);
        println!("loss {loss}: worst {:.3}, median {:.3}", shares[0], shares[30]);
        assert!(shares[0] > 0.8 && shares[30] > 0.9, "loss {loss}: {shares:?}");
    }
}

#[test]
fn a_long_path_with_bursty_loss_is_used_and_not_flooded_with_repairs() {
    let loss = LossModel::bursts(Probability::new(0.25).expect("a probability"), 15.0).expect("possible");
    let rate = Rate::from_megabits_per_second(200);
    let path = PathConfig::new(rate, Duration::from_millis(60), loss).with_lossless_return();
    let size = 40_000_000;
    let script = Script::of_client(vec![StreamPlan::upload(Duration::ZERO, size)]);
    // A single seed says little: the shares range from 0.2 to 0.5.
    const SEEDS: u64 = 8;
    let mut mean = 0.0;
    for seed in 1..=SEEDS {
        let mut pair = Pair::new(seed, &path, &TransportConfig::default(), &script);
        let start = pair.simulation.now();
        pair.connect().expect("a valid configuration");
        assert_eq!(pair.run_to_completion(Duration::from_secs(60)), Stop::Done);
        let share = goodput_share(size, pair.simulation.now() - start, rate);
        let stats = pair.simulation.host(pair.client).stats();
        let repairs = stats.repairs_sent as f64 / stats.symbols_sent as f64;
        assert!(share > 0.15 && repairs < 0.6, "seed {seed}: {share:.3}, {repairs:.2} repairs a symbol");
        mean += share / SEEDS as f64;
    }
    assert!(mean > 0.33, "{mean:.3} of the link");
}
