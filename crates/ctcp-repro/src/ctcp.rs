//! "Network Coded TCP (CTCP)" (2013).

pub(crate) mod eq7;
pub(crate) mod fig3a;
mod shared_link;

/// Named in every outcome.
const PAPER: &str = "CTCP (2013)";
