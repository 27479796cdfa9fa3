//! `ctcp repro`: the papers' figures and tables, computed again.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use ctcp_repro::{EXPERIMENTS, Experiment, Outcome, Settings};

use crate::error::CliError;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  ctcp repro list\n  ctcp repro thesis-tablesC --out results")]
pub(crate) struct ReproArgs {
    /// Figures and tables by name, or `list`
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// A smoke run: fewer seeds and smaller sizes
    #[arg(long)]
    quick: bool,
    /// Seeds a point (default: each experiment's own)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    seeds: Option<u32>,
    /// Folder for ID.json, ID.csv and ID.svg; made if it does not exist
    #[arg(long, value_name = "DIR", default_value = "repro")]
    out: PathBuf,
}

#[expect(clippy::print_stdout, reason = "the tables are the result")]
#[expect(clippy::disallowed_methods, reason = "how long it took is part of the result's file")]
pub(crate) fn run(args: &ReproArgs) -> Result<(), CliError> {
    if args.ids == ["list"] {
        for experiment in EXPERIMENTS {
            println!("{:18} {:16} {}", experiment.id, experiment.paper, experiment.title);
        }
        return Ok(());
    }
    let named = |id: &String| {
        Experiment::named(id).ok_or_else(|| {
            CliError::usage(format!(
                "`{id}` is no figure or table that can be reproduced yet: see `ctcp repro list`"
            ))
        })
    };
    let experiments: Vec<&Experiment> = args.ids.iter().map(named).collect::<Result<_, _>>()?;
    fs::create_dir_all(&args.out).map_err(|error| cannot_write(&args.out, &error))?;
    let mut failed = 0;
    for experiment in experiments {
        let settings = Settings { quick: args.quick, seeds: args.seeds };
        let start = Instant::now();
        let outcome = (experiment.run)(&settings);
        let seconds = start.elapsed().as_secs_f64();
        write_files(experiment, &outcome, args, seconds)?;
        println!("{}: {} ({seconds:.1} s)\n{}", experiment.id, experiment.title, outcome.table());
        failed += outcome.checks.iter().filter(|check| !check.pass).count();
    }
    if failed > 0 {
        return Err(CliError::failure(format!("{failed} checks do not hold")));
    }
    Ok(())
}

fn write_files(
    experiment: &Experiment,
    outcome: &Outcome,
    args: &ReproArgs,
    seconds: f64,
) -> Result<(), CliError> {
    let id = experiment.id;
    let svg = outcome.svg().map_err(|error| CliError::failure(format!("{id} cannot be drawn: {error}")))?;
    let json = outcome.json(id, experiment.paper, args.quick, seconds);
    for (extension, text) in [("json", json), ("csv", outcome.csv()), ("svg", svg)] {
        let file = args.out.join(format!("{id}.{extension}"));
        fs::write(&file, text).map_err(|error| cannot_write(&file, &error))?;
    }
    Ok(())
}

fn cannot_write(path: &Path, error: &std::io::Error) -> CliError {
    CliError::failure(format!("cannot write {}: {error}", path.display()))
}
