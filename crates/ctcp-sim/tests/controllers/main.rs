//! Congestion controllers on a bottleneck: how much of it they use, how long a queue they keep, and how they share it.
//!
//! Flows are real connections over emulated links. Shares are measured at the link, in bytes that arrive with all
//! headers, so that what the code adds is no part of them.

mod alone;
mod bottleneck;
mod changes;
mod rate_based;
mod shares;
mod table;
