//! Decoding speed of `ctcp-coding` compared with other libraries, all in one interleaved run.
//!
//! `cargo run --release -- [--rounds N] [--json] [--isal LABEL=PATH]... [--only LIBRARY]...`
//!
//! In each round every library decodes the same block a few times. Its time is the minimum of all rounds, since other
//! work on the machine only adds to it. ISA-L is loaded as `libisal.so.2` if no path is given.
#![deny(unsafe_code)]

mod case;
mod contestants;
mod matrix;

use case::{Case, SYMBOL};
use contestants::{Contestant, ctcp, isal, raptorq, reed_solomon, rlnc};
use std::error::Error;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Systematic cells: symbols in a block, and the share of them that is lost.
const SYSTEMATIC: [(usize, f64); 8] =
    [(32, 0.05), (32, 0.1), (32, 0.2), (32, 0.5), (128, 0.05), (128, 0.1), (128, 0.2), (128, 0.5)];
/// Dense cells: symbols in a block, none of which arrives uncoded.
const DENSE: [usize; 4] = [32, 64, 128, 256];
/// The minimum duration of a timing, so that reading the clock does not distort it.
const LEAST: Duration = Duration::from_micros(20);
const RUNS_MAX: usize = 16;

struct Options {
    rounds: usize,
    json: bool,
    isal: Vec<(String, String)>,
    only: Vec<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = options()?;
    let mut versions = Vec::new();
    for (label, path) in &options.isal {
        match isal::Isal::load(label, path) {
            Ok(version) => versions.push(Rc::new(version)),
            Err(error) => eprintln!("without {label}: {error}"),
        }
    }
    let mut cells: Vec<Case> = SYSTEMATIC.iter().map(|&(n, loss)| Case::new(n, loss, 1)).collect();
    cells.extend(DENSE.iter().map(|&n| Case::new(n, 1.0, 1)));
    let mut rows = Vec::new();
    for case in &cells {
        let mut contestants = contestants_of(case, &versions);
        if !options.only.is_empty() {
            contestants.retain(|contestant| options.only.contains(&contestant.library()));
        }
        let times = race(case, &mut contestants, options.rounds);
        if !options.json {
            print_cell(case, &contestants, &times);
        }
        for (contestant, time) in contestants.iter().zip(times) {
            rows.push(serde_json::json!({
                "library": contestant.library(), "n": case.n, "loss": case.loss, "dense": case.is_dense(),
                "mbps": megabytes_per_second(case, time),
            }));
        }
    }
    if options.json {
        println!("{}", serde_json::json!({ "symbol_bytes": SYMBOL, "decode": rows }));
    }
    Ok(())
}

fn options() -> Result<Options, Box<dyn Error>> {
    let mut options = Options { rounds: 200, json: false, isal: Vec::new(), only: Vec::new() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} wants a value"));
        match word.as_str() {
            "--json" => options.json = true,
            "--rounds" => options.rounds = value()?.parse()?,
            "--only" => options.only.push(value()?),
            "--isal" => {
                let value = value()?;
                let (label, path) = value.split_once('=').ok_or("--isal wants LABEL=PATH")?;
                options.isal.push((label.into(), path.into()));
            }
            _ => return Err(format!("no option {word}").into()),
        }
    }
    if options.isal.is_empty() {
        options.isal.push(("isa-l".into(), "libisal.so.2".into()));
    }
    Ok(options)
}

fn contestants_of<'c>(case: &'c Case, versions: &[Rc<isal::Isal>]) -> Vec<Box<dyn Contestant + 'c>> {
    let mut all: Vec<Box<dyn Contestant + 'c>> = vec![Box::new(ctcp::Streaming::new(case))];
    for version in versions {
        all.push(Box::new(isal::Reconstruction::new(version, case, isal::Usage::Plain)));
        all.push(Box::new(isal::Reconstruction::new(version, case, isal::Usage::FastInverse)));
        if !case.is_dense() {
            all.push(Box::new(isal::Reconstruction::new(version, case, isal::Usage::Copied)));
        }
    }
    all.push(Box::new(rlnc::Rlnc::new(case)));
    all.push(Box::new(raptorq::Raptorq::new(case)));
    all.push(Box::new(reed_solomon::Leopard::new(case)));
    if let Some(erasure) = reed_solomon::Erasure::new(case) {
        all.push(Box::new(erasure));
    }
    all
}

/// The minimum time of one run of each contestant.
fn race(case: &Case, contestants: &mut [Box<dyn Contestant + '_>], rounds: usize) -> Vec<Duration> {
    let mut runs = Vec::new();
    let mut best = Vec::new();
    for contestant in contestants.iter_mut() {
        contestant.arm(1);
        let start = now();
        contestant.run();
        let first = start.elapsed();
        contestant.check(case);
        runs.push((LEAST.as_nanos() / first.as_nanos().max(1) + 1).min(RUNS_MAX as u128) as usize);
        best.push(first);
    }
    for _ in 0..rounds {
        for ((contestant, &runs), best) in contestants.iter_mut().zip(&runs).zip(&mut best) {
            contestant.arm(runs + 1);
            // The first run warms the caches, which the other contestants have used in between.
            contestant.run();
            let start = now();
            for _ in 0..runs {
                contestant.run();
            }
            *best = start.elapsed().div_f64(runs as f64).min(*best);
        }
    }
    contestants.iter().for_each(|contestant| contestant.check(case));
    best
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn now() -> Instant {
    Instant::now()
}

fn megabytes_per_second(case: &Case, time: Duration) -> f64 {
    ((case.n * SYMBOL) as f64 / time.as_secs_f64() / 1e6).round()
}

fn print_cell(case: &Case, contestants: &[Box<dyn Contestant + '_>], times: &[Duration]) {
    let kind = if case.is_dense() { "dense".into() } else { format!("{:.0} % lost", 100.0 * case.loss) };
    println!("N = {}, {kind} ({} symbols missing)", case.n, case.lost.len());
    for (contestant, &time) in contestants.iter().zip(times) {
        let factor = time.as_secs_f64() / times[0].as_secs_f64();
        println!(
            "  {:<26}{:>9.0} MB/s  {:>10.2} us  ctcp is {factor:.2} times as fast",
            contestant.library(),
            megabytes_per_second(case, time),
            1e6 * time.as_secs_f64(),
        );
    }
}
