//! How a command fails: one clear line on standard error, and the exit code of the contract (2 wrong usage, 1 failure;
//! 128 and the number of the signal for what a signal ended).

use std::process::ExitCode;

/// Why a command did not do what it was asked to.
#[derive(Debug)]
pub enum CliError {
    /// What clap found, `--help` and `--version` included.
    Arguments(clap::Error),
    /// Options that make no sense together or hold no valid value.
    Usage(String),
    /// It was tried and failed.
    Failure(String),
    /// Ended by the signal of this number. Nothing is printed: the sender of the signal knows.
    Signal(u8),
}

impl CliError {
    /// Options that make no sense.
    #[must_use]
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    /// It was tried and failed.
    #[must_use]
    pub fn failure(message: impl Into<String>) -> Self {
        Self::Failure(message.into())
    }

    /// Says it in the name of `program` and answers the exit code.
    #[expect(clippy::print_stderr, reason = "the one place where commands report errors")]
    #[must_use]
    pub fn report(self, program: &str) -> ExitCode {
        match self {
            Self::Arguments(error) => {
                let code = if error.use_stderr() { 2 } else { 0 };
                // A closed pipe is no reason to fail differently.
                let _ = error.print();
                ExitCode::from(code)
            }
            Self::Usage(message) => {
                eprintln!("{program}: {message}");
                ExitCode::from(2)
            }
            // As shells do for a process that a signal ended.
            Self::Signal(number) => ExitCode::from(128 + number),
            Self::Failure(message) => {
                eprintln!("{program}: {message}");
                ExitCode::from(1)
            }
        }
    }
}
