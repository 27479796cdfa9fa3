//! Errors of commands: one line on standard error, and the exit code of the contract (2 for wrong usage, 1 for a
//! failure; 128 and the number of the signal if a signal ended the command).

use std::process::ExitCode;

/// Why a command failed.
#[derive(Debug)]
pub enum CliError {
    /// The result of clap's parser, including `--help` and `--version`.
    Arguments(clap::Error),
    /// Options that contradict each other or have invalid values.
    Usage(String),
    /// The command was run and failed.
    Failure(String),
    /// The command was ended by the signal with this number. Nothing is printed, because the user sent the signal.
    Signal(u8),
}

impl CliError {
    /// Creates an error of wrong usage.
    #[must_use]
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    /// Creates an error of a failed command.
    #[must_use]
    pub fn failure(message: impl Into<String>) -> Self {
        Self::Failure(message.into())
    }

    /// Prints the error with the name of `program` and returns the exit code.
    #[expect(clippy::print_stderr, reason = "the one place where commands report errors")]
    #[must_use]
    pub fn report(self, program: &str) -> ExitCode {
        match self {
            Self::Arguments(error) => {
                let code = if error.use_stderr() { 2 } else { 0 };
                // A closed pipe does not change the exit code.
                let _ = error.print();
                ExitCode::from(code)
            }
            Self::Usage(message) => {
                eprintln!("{program}: {message}");
                ExitCode::from(2)
            }
            // The convention of shells for processes that a signal ended.
            Self::Signal(number) => ExitCode::from(128 + number),
            Self::Failure(message) => {
                eprintln!("{program}: {message}");
                ExitCode::from(1)
            }
        }
    }
}
