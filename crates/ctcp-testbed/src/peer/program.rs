//! Programs that a peer needs, and how to install missing ones.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::TestbedError;
use crate::namespace::Namespace;
use crate::process::Process;

/// The first line of a program's version output.
///
/// # Errors
/// Returns [`TestbedError::Missing`] with the command that installs it if there is no such program.
pub(super) fn version(program: &Path, words: &[&str], install: &str) -> Result<String, TestbedError> {
    let output = Command::new(program).args(words).stdin(Stdio::null()).output();
    let output = output.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            TestbedError::Missing(format!("`{}` is not installed: {install}", program.display()))
        }
        _ => TestbedError::failed(format!("cannot run {}: {error}", program.display())),
    })?;
    // Programs print it to either stream, with any exit code.
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let line = said.lines().map(str::trim).find(|line| !line.is_empty());
    line.map(str::to_owned)
        .ok_or_else(|| TestbedError::failed(format!("{} does not say its version", program.display())))
}

/// The path of a program of `benchmarks/`: in the current folder's tree, or next to the running program.
pub(super) fn beside(executable: &Path, built: &str) -> PathBuf {
    let in_tree = PathBuf::from(built);
    let name = in_tree.file_name().map(PathBuf::from).unwrap_or_default();
    let sibling = executable.with_file_name(&name);
    if in_tree.exists() || !sibling.exists() { in_tree } else { sibling }
}

/// Starts a program with the arguments of a line, which are separated by single spaces.
///
/// # Errors
/// Returns an error if there is no such program.
pub(super) fn start(namespace: &Namespace, program: &Path, line: &str) -> Result<Process, TestbedError> {
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    namespace.start(program, &words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_reported_with_the_command_that_installs_it() {
        let found = version(Path::new("no-such-program-at-all"), &["--version"], "apt-get install it");
        let text = "`no-such-program-at-all` is not installed: apt-get install it";
        assert_eq!(found, Err(TestbedError::Missing(text.to_owned())));
    }

    #[test]
    fn the_version_is_the_first_line_that_is_not_empty() {
        let found = version(Path::new("sh"), &["-c", "echo; echo ' one '; echo two"], "-");
        assert_eq!(found, Ok("one".to_owned()));
    }
}
