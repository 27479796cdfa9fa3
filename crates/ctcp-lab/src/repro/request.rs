//! The request of a run, validated before anything is computed.

use std::num::NonZeroUsize;

use ctcp_repro::{Experiment, Settings, Shard, WAITING};

use super::{RunArgs, changes};
use ctcp_cli::error::CliError;

/// The number of threads if the machine does not report its parallelism.
const THREADS: NonZeroUsize = NonZeroUsize::MIN;

/// More than any machine has.
const THREADS_MAX: u32 = 4096;

/// A requested run.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) experiments: Vec<&'static Experiment>,
    pub(super) settings: Settings,
    /// The shard to compute, if it is not the whole run.
    pub(super) shard: Option<Shard>,
    pub(super) threads: NonZeroUsize,
}

impl Request {
    pub(super) fn parse(args: &RunArgs) -> Result<Self, CliError> {
        let experiments = args.ids.iter().map(|id| experiment(id)).collect::<Result<Vec<_>, _>>()?;
        let changes = changes::parse(args)?;
        experiments.iter().try_for_each(|experiment| changes::check(experiment, &changes))?;
        let seeds =
            args.seeds.as_deref().map(|text| count("--seeds", text, Settings::SEEDS_MAX)).transpose()?;
        let shard =
            args.shard.as_deref().map(|text| text.parse::<Shard>().map_err(CliError::usage)).transpose()?;
        let threads = match args.threads.as_deref() {
            Some(text) => {
                NonZeroUsize::new(count("--threads", text, THREADS_MAX)? as usize).unwrap_or(THREADS)
            }
            None => std::thread::available_parallelism().unwrap_or(THREADS),
        };
        Ok(Self { experiments, settings: Settings { quick: args.quick, seeds, changes }, shard, threads })
    }
}

fn experiment(id: &str) -> Result<&'static Experiment, CliError> {
    Experiment::named(id).ok_or_else(|| {
        let reason = if id == "list" || id == "merge" {
            format!("`{id}` is a command: it stands alone, as `ctcp-lab repro {id}`")
        } else if let Some(waiting) = WAITING.iter().find(|waiting| waiting.id == id) {
            format!("`{id}` waits for {}", waiting.waits_for)
        } else {
            format!("`{id}` is no figure or table that can be reproduced yet: see `ctcp-lab repro list`")
        };
        CliError::usage(reason)
    })
}

/// Parses the number of an option, at least 1.
pub(crate) fn count(option: &str, text: &str, most: u32) -> Result<u32, CliError> {
    let number = text.parse().ok().filter(|number| (1..=most).contains(number));
    number
        .ok_or_else(|| CliError::usage(format!("{option} {text}: expected a whole number from 1 to {most}")))
}
