//! "Network Coded TCP (CTCP)" (2013).

mod contender;
mod download;
pub(crate) mod eq6;
pub(crate) mod eq7;
pub(crate) mod fig10;
pub(crate) mod fig11;
pub(crate) mod fig12;
pub(crate) mod fig3a;
pub(crate) mod fig3b;
pub(crate) mod fig4;
pub(crate) mod fig5;
pub(crate) mod fig6;
pub(crate) mod fig7;
pub(crate) mod fig8;
pub(crate) mod fig9;
pub(crate) mod hotel;
mod interference;
mod shared_link;
mod sharing;
pub mod wireless;

/// Named in every outcome.
const PAPER: &str = "CTCP (2013)";
