//! The `ctcp` command: thin commands over the libraries.
#![deny(unsafe_code)]

mod allocator;
mod args;
mod clients_file;
mod commands;
mod config_file;
mod engine;
mod error;
mod key_file;
mod logging;
mod metrics;
mod network;
mod open_files;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};
use crate::error::CliError;
use crate::logging::Kind;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}

fn run() -> Result<(), CliError> {
    let words = config_file::with_config(std::env::args_os().collect(), &|name| std::env::var_os(name))?;
    let cli = Cli::try_parse_from(&words.words).map_err(|error| words.explain(error))?;
    engine::force_from_environment()?;
    match cli.command {
        Command::Keygen(args) => commands::keygen::run(&args),
        Command::Pubkey(args) => commands::keygen::show(&args),
        Command::Demo(args) => on_runtime(&args.log, Kind::Tool, commands::demo::run(&args)),
        Command::Server(args) => with_common(&args.common, Kind::Service, commands::server::run(&args)),
        Command::Client(args) => with_common(&args.common, Kind::Service, commands::client::run(&args)),
        Command::Connect(args) => with_common(&args.common, Kind::Tool, commands::connect::run(&args)),
        Command::Get(args) => with_common(&args.common, Kind::Tool, commands::files::get(&args)),
        Command::Bench(args) => commands::bench::run(&args),
        Command::Repro(args) => commands::repro::run(&args),
        Command::Testbed(args) => commands::testbed::run(&args),
        Command::Put(args) => with_common(&args.common, Kind::Tool, commands::files::put(&args)),
    }
}

/// What server, client, connect, get and put have in common.
fn with_common(
    common: &args::CommonArgs,
    kind: Kind,
    command: impl Future<Output = Result<(), CliError>>,
) -> Result<(), CliError> {
    on_runtime(&common.log, kind, async {
        if let Some(address) = common.metrics.filter(|address| !address.ip().is_loopback()) {
            tracing::warn!(
                "--metrics {address} is not a loopback address: anyone who can reach it can read the metrics"
            );
        }
        command.await
    })
}

fn on_runtime(
    log: &args::LogArgs,
    kind: Kind,
    command: impl Future<Output = Result<(), CliError>>,
) -> Result<(), CliError> {
    logging::start(log, kind)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::failure(format!("cannot start the runtime: {error}")))?;
    let outcome = runtime.block_on(command);
    // Blocking reads of standard input cannot be ended; the process ends them.
    runtime.shutdown_background();
    outcome
}
