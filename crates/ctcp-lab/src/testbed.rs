//! `ctcp-lab testbed`: the papers' figures on real sockets, in Linux network namespaces. On other systems it prints an error.

mod agree;
#[cfg(target_os = "linux")]
mod compare;
#[cfg(target_os = "linux")]
mod link;
#[cfg(target_os = "linux")]
mod measure;
mod report;

use std::path::PathBuf;

use clap::Args;

use ctcp_cli::error::CliError;

/// Numbers are strings here, so that errors in them are reported in one line in the style of this program.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  ctcp-lab testbed list\n  sudo ctcp-lab testbed validate ctcp-fig3a --quick --out results\n  \
                  ctcp-lab testbed agree simulated results --out results\n  ctcp-lab testbed report results --out results\n  \
                  sudo ctcp-lab testbed compare --peers default,bbr,quinn-bbr --tests goodput,stream\n  \
                  sudo ctcp-lab testbed link NAMESPACE NAMESPACE     (then lines such as: rate 25mbit loss 5% delay 10ms)"
)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "read where there is a testbed"))]
pub(crate) struct TestbedArgs {
    /// Figures by name; `list` names them; `agree SIMULATED MEASURED` compares the results of `ctcp-lab repro` and `ctcp-lab testbed`;
    /// `compare` measures all peers on the same networks; `report FOLDER...` makes one page of results for a browser;
    /// `link SERVER CLIENT` joins two network namespaces by a path (or as many as a third argument says) whose conditions it reads from standard input
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// A smoke run: fewer points, shorter
    #[arg(long)]
    quick: bool,
    /// Repetitions of each point (default: each figure's own)
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    seeds: Option<String>,
    /// With `compare`: peers by name, divided by commas (default: all that are installed)
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    peers: Vec<String>,
    /// With `compare`: some of goodput, long, beside, requests, stream, latency, mixed, datagrams, paths, path-requests, path-stream, shared, profiles, relays, random, networks and network-requests, divided by commas (default: all)
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    tests: Vec<String>,
    /// With `compare`: some of each test's losses, such as 0.01,0.2 (default: all)
    #[arg(long, value_name = "P,Q", value_delimiter = ',')]
    losses: Vec<String>,
    /// With `compare`: seconds of each download in the tests paths, shared, profiles and relays (default: 30, with --quick 2) and random (default: 5)
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    seconds: Option<String>,
    /// With `compare`: only so many cells of each test, the first ones; a cell is a network with a loss (default: all)
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    cells: Option<String>,
    /// With `compare`: go on with the interrupted run in this folder; the other options must be the same
    #[arg(long)]
    resume: bool,
    /// Folder for ID.json, ID.csv and ID.svg (of `compare`: .md instead); made if it does not exist
    #[arg(long, value_name = "DIR", default_value = "results/testbed")]
    out: PathBuf,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &TestbedArgs) -> Result<(), CliError> {
    match args.ids.split_first() {
        Some((first, folders)) if first == "report" => report::run(folders, &args.out),
        Some((first, folders)) if first == "agree" => agree::run(folders, &args.out, args.json),
        _ => run_here(args),
    }
}

#[cfg(target_os = "linux")]
fn run_here(args: &TestbedArgs) -> Result<(), CliError> {
    if args.ids == ["compare"] {
        return compare::run(args);
    }
    if let [command, namespaces @ ..] = args.ids.as_slice()
        && command == "link"
    {
        return link::run(namespaces);
    }
    let has_lists = !(args.peers.is_empty() && args.tests.is_empty() && args.losses.is_empty());
    if has_lists || args.seconds.is_some() || args.cells.is_some() || args.resume {
        return Err(CliError::usage(
            "--peers, --tests, --losses, --seconds, --cells and --resume belong to `ctcp-lab testbed compare`",
        ));
    }
    measure::run(args)
}

#[cfg(not(target_os = "linux"))]
fn run_here(_: &TestbedArgs) -> Result<(), CliError> {
    Err(CliError::failure("the testbed needs Linux, whose network namespaces and TUN devices it is made of"))
}
