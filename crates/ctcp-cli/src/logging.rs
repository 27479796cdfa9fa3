//! Log lines go to standard error; standard output is for results.

use tracing_subscriber::EnvFilter;

use crate::args::{LogArgs, LogFormat};
use crate::error::CliError;

/// The kind of command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A proxy that keeps running and logs its activity.
    Service,
    /// A command that does one task and logs only problems.
    Tool,
}

/// Starts logging at the requested level.
pub(crate) fn start(log: &LogArgs, kind: Kind) -> Result<(), CliError> {
    let level = match (log.quiet, log.verbose) {
        (true, _) if kind == Kind::Tool => "error",
        (true, _) => "warn",
        // A missing connection is reported as the command's error.
        (false, 0) if kind == Kind::Tool => "warn,ctcp_proxy::link::unconnected=off",
        (false, 0) => "warn,ctcp=info,ctcp_proxy=info,ctcp_proto=info",
        (false, 1) => "info,ctcp=debug,ctcp_proxy=debug,ctcp_proto=debug",
        (false, _) => "trace",
    };
    let filter = EnvFilter::try_new(level).map_err(|error| CliError::failure(error.to_string()))?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match log.log_format {
        LogFormat::Text => lines.with_target(false).try_init(),
        LogFormat::Json => lines.json().try_init(),
    };
    started.map_err(|error| CliError::failure(format!("cannot start logging: {error}")))
}
