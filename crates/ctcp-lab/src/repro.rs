//! `ctcp-lab repro`: reproduces the papers' figures and tables, in one run or in shards that are merged.

mod changes;
mod merge;
mod request;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, Subcommand};
use ctcp_repro::{EXPERIMENTS, Experiment, Outcome, Partial, Plan, Settings, Shard, WAITING, Waiting};
use indicatif::{ProgressBar, ProgressStyle};

use crate::folder::Folder;
use ctcp_cli::error::CliError;
use request::Request;
#[cfg(target_os = "linux")]
pub(super) use request::count;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    after_help = "Example:\n  ctcp-lab repro list\n  ctcp-lab repro thesis-tablesC --out results\n\
                  With another link, then without the paper's claims:\n  \
                  ctcp-lab repro ctcp-fig3a --rate 100mbit --rtt 60ms --out results\n\
                  In parts, on any machines, and put together:\n  \
                  ctcp-lab repro tcpnc-theorem2 --shard 2/8 --out parts\n  ctcp-lab repro merge parts --out results"
)]
pub(crate) struct ReproArgs {
    #[command(subcommand)]
    command: Option<ReproCommand>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Subcommand)]
enum ReproCommand {
    /// List everything that can be reproduced
    List,
    /// Merge shards; the files are the same as of a single run
    #[command(after_help = "Example:\n  ctcp-lab repro merge parts --out results")]
    Merge(MergeArgs),
}

/// Numbers stay strings here, so that errors about them are single lines in our own format.
#[derive(Debug, Args)]
struct RunArgs {
    /// Figures and tables by name; `list` shows the names, `merge` combines shards
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// A smoke run: fewer seeds and smaller sizes
    #[arg(long)]
    quick: bool,
    /// Seeds per point (default: each experiment's own)
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    seeds: Option<String>,
    /// Another rate of the link; `list` shows which options an experiment has
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    rate: Option<String>,
    /// Another round-trip time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    rtt: Option<String>,
    /// Another loss probability of each link
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    loss: Option<String>,
    /// Longer or shorter runs, in virtual time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    time: Option<String>,
    /// Compute only the I-th of N parts, and write it as ID.shard-I-of-N.json
    #[arg(long, value_name = "I/N", allow_hyphen_values = true)]
    shard: Option<String>,
    /// Number of threads (default: as many as the machine has); results do not depend on it
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    threads: Option<String>,
    /// Folder for ID.json, ID.csv and ID.svg, or for the shard; created if it does not exist
    #[arg(long, value_name = "DIR", default_value = "results/repro")]
    out: PathBuf,
}

#[derive(Debug, Args)]
struct MergeArgs {
    /// Folders with all shards of one or more experiments
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Folder for ID.json, ID.csv and ID.svg; created if it does not exist
    #[arg(long, value_name = "DIR", default_value = "results/repro")]
    out: PathBuf,
}

pub(crate) fn run(args: &ReproArgs) -> Result<(), CliError> {
    match &args.command {
        Some(ReproCommand::List) => {
            list();
            Ok(())
        }
        Some(ReproCommand::Merge(args)) => merge::run(&args.folders, &args.out),
        None => compute(&Request::parse(&args.run)?, &args.run.out),
    }
}

#[expect(clippy::print_stdout, reason = "the list is the result")]
fn list() {
    for experiment in EXPERIMENTS {
        let takes = match changes::options(experiment) {
            takes if takes.is_empty() => takes,
            takes => format!(" ({takes})"),
        };
        println!("{:18} {:16} {}{takes}", experiment.id, experiment.paper, experiment.title);
    }
    for Waiting { id, paper, title, waits_for } in WAITING {
        println!("{id:18} {paper:16} {title}; waits for {waits_for}");
    }
}

#[expect(clippy::print_stdout, reason = "the written files are the result")]
fn compute(request: &Request, out: &Path) -> Result<(), CliError> {
    let folder = Folder::open(out)?;
    let mut failed = 0;
    for &experiment in &request.experiments {
        let (plan, start) = (experiment.plan(&request.settings), now());
        let shard = request.shard.unwrap_or(Shard::WHOLE);
        let values = measure(experiment, &plan, shard, request.threads);
        let seconds = start.elapsed().as_secs_f64();
        if request.shard.is_some() {
            let partial = Partial::new(experiment, &request.settings, shard, values, seconds);
            let file = folder.write(&partial.file_name(), &partial.json())?;
            println!("{}: shard {shard} is in {} ({seconds:.1} s)", experiment.id, file.display());
            continue;
        }
        let outcome = plan.outcome(values).expect("the outcomes of all its cells");
        failed += show(experiment, &outcome, &request.settings, seconds, &folder)?;
    }
    folder.say(false);
    judge(failed)
}

#[expect(clippy::disallowed_methods, reason = "the duration is part of the result's file")]
fn now() -> Instant {
    Instant::now()
}

/// Measures, with a progress bar if there is a terminal.
fn measure(
    experiment: &Experiment,
    plan: &Plan,
    shard: Shard,
    threads: NonZeroUsize,
) -> Vec<serde_json::Value> {
    let bar = ProgressBar::new(plan.cells_of(shard).count() as u64);
    let style = ProgressStyle::with_template("{prefix} {bar:30} {pos}/{len} {eta}").expect("a constant");
    bar.set_style(style);
    bar.set_prefix(experiment.id);
    let values = plan.measure(shard, threads, &|| bar.inc(1));
    bar.finish_and_clear();
    values
}

/// Writes the files and prints the table; returns the number of failed checks.
#[expect(clippy::print_stdout, reason = "the tables are the result")]
fn show(
    experiment: &Experiment,
    outcome: &Outcome,
    settings: &Settings,
    seconds: f64,
    folder: &Folder,
) -> Result<usize, CliError> {
    let id = experiment.id;
    let svg = outcome.svg().map_err(|error| CliError::failure(format!("{id} cannot be drawn: {error}")))?;
    let json = outcome.json(id, experiment.paper, ctcp_cli::VERSION, settings.quick, seconds);
    let names = ["csv", "svg", "json"].map(|ending| format!("{id}.{ending}"));
    // The JSON file is written last: if it exists, so do the others.
    folder.write_together(&[(&names[0], &outcome.csv()), (&names[1], &svg), (&names[2], &json)])?;
    println!("{id}: {} ({seconds:.1} s)\n{}", experiment.title, outcome.table());
    Ok(outcome.checks.iter().filter(|check| !check.pass).count())
}

pub(super) fn judge(failed: usize) -> Result<(), CliError> {
    match failed {
        0 => Ok(()),
        1 => Err(CliError::failure("a check failed")),
        _ => Err(CliError::failure(format!("{failed} checks failed"))),
    }
}
