//! Why a measurement could not be made.

use core::fmt;

/// A line for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestbedError {
    /// Somebody asked us to stop.
    Interrupted,
    /// This machine lacks something, which the text names together with what would help.
    Missing(String),
    /// Something was tried and failed.
    Failed(String),
}

impl TestbedError {
    /// Something failed.
    pub fn failed(what: impl Into<String>) -> Self {
        Self::Failed(what.into())
    }

    /// `what` failed for a reason of the system.
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
