//! Figures of the default congestion controller, which are in no paper.

pub(crate) mod changes;

/// The name of the source in every outcome.
const PAPER: &str = "The default controller";
