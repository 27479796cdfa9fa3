//! "Network coding meets TCP" (2009).

mod coded_chain;
mod field;
mod knowledge;
pub(crate) mod lemma1;
mod slotted_chain;
pub(crate) mod theorem2;

/// Named in every outcome.
const PAPER: &str = "TCP/NC (2009)";
