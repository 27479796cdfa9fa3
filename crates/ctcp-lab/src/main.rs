//! The `ctcp-lab` command: figures of the papers, measurements on real sockets, benchmarks.
//!
//! `ctcp-lab peer COMMAND ...` is the command `ctcp` with the profiles of the papers in addition to those for general
//! use. The testbed starts it at both ends of its paths.

mod bench;
mod folder;
mod messages;
mod repro;
mod results;
mod testbed;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use ctcp_cli::error::CliError;

/// The word before a command of `ctcp`.
const PEER: &str = "peer";

/// Figures of the papers, measurements on real sockets, and benchmarks of ctcp.
#[derive(Debug, Parser)]
#[command(name = "ctcp-lab", version = ctcp_cli::VERSION, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compute figures and tables of the papers in the simulator
    Repro(repro::ReproArgs),
    /// Measure the papers' figures on real sockets, with other transports alongside (Linux, root)
    Testbed(testbed::TestbedArgs),
    /// Redraw the pages and pictures of docs/results from the JSON of runs
    Results(results::ResultsArgs),
    /// Measure how fast coding is on this machine
    Bench(bench::BenchArgs),
    /// Carry UDP datagrams as messages with a deadline, as a program that uses the library
    Messages(messages::MessagesArgs),
    /// Run a command of `ctcp` that also knows the papers' profiles: tcp-nc, tcp-nc-eot, tcp-nc-pb and sparse
    #[command(name = PEER, disable_help_flag = true)]
    Peer {
        /// The arguments after `ctcp`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
        words: Vec<std::ffi::OsString>,
    },
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report("ctcp-lab"),
    }
}

fn run() -> Result<(), CliError> {
    let cli = Cli::try_parse().map_err(CliError::Arguments)?;
    ctcp_cli::engine::force_from_environment()?;
    match cli.command {
        Command::Repro(args) => repro::run(&args),
        Command::Testbed(args) => testbed::run(&args),
        Command::Results(args) => results::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Messages(args) => messages::run(&args),
        Command::Peer { words } => {
            let words = std::iter::once("ctcp".into()).chain(words).collect();
            ctcp_cli::run(words, &ctcp_baselines::catalogue())
        }
    }
}
