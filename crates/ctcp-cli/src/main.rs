//! The `ctcp` command, with the profiles for general use.

use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    match ctcp_cli::run(std::env::args_os().collect(), &Arc::default()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report("ctcp"),
    }
}
