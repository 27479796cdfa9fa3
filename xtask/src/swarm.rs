//! `cargo xtask swarm`: random networks in virtual time, one per seed, each run twice. `--paths` gives the client of each
//! network further paths, which come and go.

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
    /// Add further paths.
    paths: bool,
}

/// Runs the requested seeds and returns those that failed.
///
/// # Errors
/// Returns an error if the arguments are invalid.
pub(crate) fn run(arguments: impl Iterator<Item = String>) -> io::Result<Vec<u64>> {
    let options = parse(arguments).map_err(io::Error::other)?;
    if options.log {
        let draw = if options.paths { swarm::Plan::draw_paths } else { swarm::Plan::draw };
        let plan = draw(options.first);
        let plan = swarm::Plan { is_noisy: plan.is_noisy && !options.without_noise, ..plan };
        let (report, log) = swarm::run_with_log(options.first, &plan);
        println!("{log}{}\n{report}", report.plan);
        return Ok(if report.is_success() { Vec::new() } else { vec![report.seed] });
    }
    let mut failures = Vec::new();
    let mut hash = 0_u64;
    let mut virtual_seconds = 0.0;
    let (mut useful, mut redundant) = (0, 0);
    for seed in options.first..options.first.saturating_add(options.seeds) {
        let report = if options.paths { swarm::run_paths(seed) } else { swarm::run(seed) };
        println!("{report}");
        hash = hash.rotate_left(1) ^ report.hash;
        virtual_seconds += report.virtual_nanos as f64 / 1e9;
        useful += report.useful;
        redundant += report.redundant;
        if !report.is_success() {
            let paths = if options.paths { " --paths" } else { "" };
            println!(
                "  replay: cargo xtask swarm{paths} --first {seed} --seeds 1   (with --log: every datagram)"
            );
            failures.push(seed);
        }
    }
    println!("{redundant} of {} packets with coded data arrived for nothing", useful + redundant);
    println!(
        "{} seeds from {}, {virtual_seconds:.0} s of virtual time, hash of all {hash:016x}, {} failed {failures:?}",
        options.seeds,
        options.first,
        failures.len(),
    );
    Ok(failures)
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options { first: 1, seeds: SEEDS, log: false, without_noise: false, paths: false };
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
            "--paths" => options.paths = true,
            _ => {
                return Err(format!(
                    "{argument} is not known: --seeds N, --first S, --log, --without-noise, --paths"
                ));
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
        let usual = Options { first: 1, seeds: 1_000, log: false, without_noise: false, paths: false };
        assert_eq!(parse(""), Ok(usual));
        assert_eq!(
            parse("--seeds 5 --first 7 --log --paths"),
            Ok(Options { first: 7, seeds: 5, log: true, without_noise: false, paths: true })
        );
        assert!(parse("--seeds").is_err() && parse("--seeds x").is_err() && parse("--sedes 5").is_err());
    }
}
