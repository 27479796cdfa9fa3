//! "Network Coded TCP (CTCP)" (2013).

pub mod contender;
mod download;
pub(crate) mod eq6;
pub(crate) mod eq7;
pub mod fig10;
pub mod fig11;
pub mod fig12;
pub(crate) mod fig3a;
pub mod fig3b;
pub mod fig4;
pub mod fig5;
pub mod fig6;
pub mod fig7;
pub mod fig8;
pub mod fig9;
pub mod hotel;
pub mod interference;
pub mod shared_link;
pub mod sharing;
pub mod wireless;

/// The name of the paper in every outcome.
const PAPER: &str = "CTCP (2013)";
