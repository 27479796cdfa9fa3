//! "Network Coded TCP (CTCP)" (2013).

pub(crate) mod eq7;

/// Named in every outcome.
const PAPER: &str = "CTCP (2013)";
