//! Random networks: a few seeds with every test run, and all that ever failed.

use ctcp_sim::swarm;

/// A thousand and more are run by `cargo xtask swarm`.
const SEEDS: u64 = 60;

fn run_all(seeds: impl IntoIterator<Item = u64>) {
    let failures: Vec<String> = seeds
        .into_iter()
        .map(swarm::run)
        .filter(|report| !report.is_success())
        .map(|report| format!("{report}\n  replay: cargo xtask swarm --first {} --seeds 1", report.seed))
        .collect();
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
}

/// The seeds that failed once; true for those that still do.
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
fn random_networks_keep_every_promise() {
    let failed = failed_seeds();
    run_all((1..=SEEDS).filter(|seed| !failed.contains(&(*seed, true))));
}

#[test]
fn seeds_that_failed_once_do_not_fail_again() {
    run_all(failed_seeds().into_iter().filter(|(_, is_open)| !is_open).map(|(seed, _)| seed));
}

#[test]
fn another_seed_is_another_trace() {
    assert_ne!(swarm::run_once(1).hash, swarm::run_once(2).hash);
}
