//! Why a measurement failed.

use core::fmt;

/// An error whose text is one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestbedError {
    /// The measurement was interrupted.
    Interrupted,
    /// This machine lacks something; the text names it and how to get it.
    Missing(String),
    /// An operation failed.
    Failed(String),
}

impl TestbedError {
    /// Creates an error for a failed operation.
    pub fn failed(what: impl Into<String>) -> Self {
        Self::Failed(what.into())
    }

    /// Creates an error for `what`, which failed with an error of the system.
    pub(crate) fn of<E: fmt::Display>(what: impl fmt::Display) -> impl FnOnce(E) -> Self {
        move |error| Self::Failed(format!("{what}: {error}"))
    }
}

impl fmt::Display for TestbedError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => formatter.write_str("interrupted"),
            Self::Missing(what) | Self::Failed(what) => formatter.write_str(what),
        }
    }
}

impl core::error::Error for TestbedError {}
