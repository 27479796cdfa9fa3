//! `ctcp testbed`: the papers' figures on real sockets. Linux has network namespaces; other systems only say so.

mod agree;
#[cfg(target_os = "linux")]
mod measure;

use std::path::PathBuf;

use clap::Args;

use crate::error::CliError;

/// Numbers stay words here, so that whatever is wrong with one is said in one line of ours.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  ctcp testbed list\n  sudo ctcp testbed validate ctcp-fig3a --quick --out results\n  ctcp testbed agree simulated results --out results"
)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "read where there is a testbed"))]
pub(crate) struct TestbedArgs {
    /// Figures by name; `list` names them; `agree SIMULATED MEASURED` lays the results of `ctcp repro` and `ctcp testbed` side by side
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// A smoke run: fewer points, shorter
    #[arg(long)]
    quick: bool,
    /// Repetitions of each point (default: each figure's own)
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    seeds: Option<String>,
    /// Folder for ID.json, ID.csv and ID.svg; made if it does not exist
    #[arg(long, value_name = "DIR", default_value = "testbed")]
    out: PathBuf,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &TestbedArgs) -> Result<(), CliError> {
    match args.ids.split_first() {
        Some((first, folders)) if first == "agree" => agree::run(folders, &args.out, args.json),
        _ => run_here(args),
    }
}

#[cfg(target_os = "linux")]
fn run_here(args: &TestbedArgs) -> Result<(), CliError> {
    measure::run(args)
}

#[cfg(not(target_os = "linux"))]
fn run_here(_: &TestbedArgs) -> Result<(), CliError> {
    Err(CliError::failure("the testbed needs Linux, whose network namespaces and TUN devices it is made of"))
}
