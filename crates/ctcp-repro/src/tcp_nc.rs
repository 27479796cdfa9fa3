//! "Network coding meets TCP" (2009).

mod coded_chain;
mod field;
pub(crate) mod fig5;
pub(crate) mod fig6;
pub(crate) mod fig7;
pub(crate) mod fig8;
mod knowledge;
pub(crate) mod lemma1;
pub(crate) mod relays;
mod slotted_chain;
mod tandem;
pub(crate) mod theorem2;

/// The name of the paper in every outcome.
const PAPER: &str = "TCP/NC (2009)";
