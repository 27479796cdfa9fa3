//! The thesis "CTCP: Coded TCP using multiple paths" (2012).

mod band;
pub(crate) mod cost;
pub mod multi;
pub(crate) mod overhead;
pub mod single;
pub(crate) mod tables_c;

/// The name of the paper in every outcome.
const PAPER: &str = "Thesis (2012)";
