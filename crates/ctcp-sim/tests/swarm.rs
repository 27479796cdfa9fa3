//! Random networks: a few seeds in every test run, and all seeds that ever failed.

use ctcp_proto::Profile;
use ctcp_sim::swarm::{self, Report};

/// `cargo xtask swarm` runs a thousand seeds and more.
const SEEDS: u64 = 60;

fn run_all(seeds: impl IntoIterator<Item = u64>) {
    expect_success(seeds.into_iter().map(swarm::run));
}

fn expect_success(reports: impl Iterator<Item = Report>) {
    let failures: Vec<String> = reports
        .filter(|report| !report.is_success())
        .map(|report| format!("{report}\n  replay: cargo xtask swarm --first {} --seeds 1", report.seed))
        .collect();
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
}

/// Returns the seeds that failed once, with true for those that still fail.
fn failed_seeds() -> Vec<(u64, bool)> {
    let lines = include_str!("failed_seeds.txt").lines();
    let lines = lines.filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let seeds = lines.map(|line| {
        let (number, what) = line.split_once(' ').unwrap_or((line, ""));
        (number.parse().unwrap_or_else(|_| panic!("not a seed: {line}")), what.starts_with("open"))
    });
    seeds.collect()
}

#[test]
fn random_networks_are_safe_and_live() {
    let failed = failed_seeds();
    run_all((1..=SEEDS).filter(|seed| !failed.contains(&(*seed, true))));
}

#[test]
fn random_networks_are_safe_and_live_with_low_latency() {
    expect_success((1..=SEEDS).map(|seed| swarm::run_with(seed, Profile::LOW_LATENCY)));
}

#[test]
fn seeds_that_failed_before_pass() {
    run_all(failed_seeds().into_iter().filter(|(_, is_open)| !is_open).map(|(seed, _)| seed));
}

#[test]
fn different_seeds_give_different_traces() {
    assert_ne!(swarm::run_once(1).hash, swarm::run_once(2).hash);
}
