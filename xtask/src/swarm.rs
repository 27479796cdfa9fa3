//! `cargo xtask swarm`: random networks in virtual time, one per seed, each run twice.

use std::io;

use ctcp_sim::swarm;

/// The default number of seeds.
const SEEDS: u64 = 1_000;

/// What to run.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    first: u64,
    seeds: u64,
    /// Print the log of the first seed.
    log: bool,
    /// Leave out the spurious calls.
    without_noise: bool,
}

/// Runs the requested seeds and returns those that failed.
///
/// # Errors
/// Returns an error if the arguments are invalid.
pub(crate) fn run(arguments: impl Iterator<Item = String>) -> io::Result<Vec<u64>> {
    let options = parse(arguments).map_err(io::Error::other)?;
    if options.log {
        let plan = swarm::Plan::draw(options.first);
        let plan = swarm::Plan { is_noisy: plan.is_noisy && !options.without_noise, ..plan };
        let (report, log) = swarm::run_with_log(options.first, &plan);
        println!("{log}{}\n{report}", report.plan);
        return Ok(if report.is_success() { Vec::new() } else { vec![report.seed] });
    }
    let mut failures = Vec::new();
    let mut hash = 0_u64;
    let mut virtual_seconds = 0.0;
    for seed in options.first..options.first.saturating_add(options.seeds) {
        let report = swarm::run(seed);
        println!("{report}");
        hash = hash.rotate_left(1) ^ report.hash;
        virtual_seconds += report.virtual_nanos as f64 / 1e9;
        if !report.is_success() {
            println!("  replay: cargo xtask swarm --first {seed} --seeds 1   (with --log: every datagram)");
            failures.push(seed);
        }
    }
    println!(
        "{} seeds from {}, {virtual_seconds:.0} s of virtual time, hash of all {hash:016x}, {} failed {failures:?}",
        options.seeds,
        options.first,
        failures.len(),
    );
    Ok(failures)
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options { first: 1, seeds: SEEDS, log: false, without_noise: false };
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let value = arguments.next().and_then(|value| value.parse().ok());
            value.ok_or_else(|| format!("{argument} needs a number"))
        };
        match argument.as_str() {
            "--first" => options.first = number()?,
            "--seeds" => options.seeds = number()?,
            "--log" => options.log = true,
            "--without-noise" => options.without_noise = true,
            _ => {
                return Err(format!("{argument} is not known: --seeds N, --first S, --log, --without-noise"));
            }
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_select_the_seeds() {
        let parse = |text: &str| parse(text.split_whitespace().map(str::to_owned));
        assert_eq!(parse(""), Ok(Options { first: 1, seeds: 1_000, log: false, without_noise: false }));
        assert_eq!(
            parse("--seeds 5 --first 7 --log"),
            Ok(Options { first: 7, seeds: 5, log: true, without_noise: false })
        );
        assert!(parse("--seeds").is_err() && parse("--seeds x").is_err() && parse("--sedes 5").is_err());
    }
}
