//! The command in a separate folder.

use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) fn lab(directory: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ctcp-lab"));
    command.current_dir(directory).args(words).stdin(Stdio::null());
    command
}

/// Returns the exit code and the output on standard error.
pub(crate) fn run(directory: &Path, words: &[&str]) -> (Option<i32>, String) {
    let output = lab(directory, words).output().expect("the command starts");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}
