//! "An algorithm for improving sliding window network coding in TCP" (2013): EOT and PB.

pub(crate) mod fig3;
pub(crate) mod table1;
pub(crate) mod table2;
mod transfer;

/// The name of the paper in every outcome.
const PAPER: &str = "EOT/PB (2013)";
