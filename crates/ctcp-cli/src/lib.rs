//! The commands of `ctcp`, which are thin wrappers of the libraries.
//!
//! This is a library so that `ctcp-lab` can run the same commands with the profiles of the papers registered.

mod allocator;
mod args;
mod clients_file;
mod commands;
mod config_file;
pub mod engine;
pub mod error;
mod key_file;
mod logging;
mod metrics;
mod network;
mod open_files;

use std::ffi::OsString;
use std::sync::Arc;

use clap::Parser;
use ctcp::Catalogue;

use crate::args::{Cli, Command};
pub use crate::commands::interrupted;
use crate::error::CliError;
use crate::logging::Kind;

/// The version, with the commit if it is known.
pub const VERSION: &str = env!("CTCP_VERSION");

/// Runs the command that `words` specify; the first word is the program. Profiles and their parts come from
/// `catalogue`.
///
/// # Errors
/// Returns why the command failed, for [`CliError::report`].
pub fn run(words: Vec<OsString>, catalogue: &Arc<Catalogue>) -> Result<(), CliError> {
    let words = config_file::with_config(words, &|name| std::env::var_os(name))?;
    let cli = Cli::try_parse_from(&words.words).map_err(|error| words.explain(error))?;
    engine::force_from_environment()?;
    match cli.command {
        Command::Keygen(args) => commands::keygen::run(&args),
        Command::Pubkey(args) => commands::keygen::show(&args),
        Command::Demo(args) => on_runtime(&args.log, Kind::Tool, commands::demo::run(&args, catalogue)),
        Command::Server(args) => {
            with_common(&args.common, Kind::Service, commands::server::run(&args, catalogue))
        }
        Command::Relay(args) => {
            with_common(&args.common, Kind::Service, commands::relay::run(&args, catalogue))
        }
        Command::Client(args) => {
            with_common(&args.common, Kind::Service, commands::client::run(&args, catalogue))
        }
        Command::Connect(args) => {
            with_common(&args.common, Kind::Tool, commands::connect::run(&args, catalogue))
        }
        Command::Get(args) => with_common(&args.common, Kind::Tool, commands::files::get(&args, catalogue)),
        Command::Put(args) => with_common(&args.common, Kind::Tool, commands::files::put(&args, catalogue)),
    }
}

/// Runs a command that has the common options.
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
    // Blocking reads of standard input cannot be cancelled; they end with the process.
    runtime.shutdown_background();
    outcome
}
