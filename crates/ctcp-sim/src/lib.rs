//! Random and scripted networks in virtual time: real endpoints of `ctcp-proto`, emulated links of `ctcp-netem`,
//! and checkers that look at everything that happens.
//!
//! ```text
//!   Host ---- DuplexLink ---- Host        Simulation: one queue of wake-ups ordered by (time, links first)
//!   Endpoint     taps      Endpoint
//!   Connections            Connections    Recorder: a hash over every datagram
//!   Application            Application    Ledger:   what was written, what was read
//! ```
//!
//! Nothing here reads a clock, and everything random follows from one seed: the same seed gives the same trace, to
//! the byte. [`swarm::run`] draws a whole network from a seed; a failure is replayed with that number alone.
#![forbid(unsafe_code)]

pub mod application;
pub mod checker;
pub mod ledger;
pub mod link;
pub mod measure;
pub mod mischief;
pub mod node;
pub mod recorder;
pub mod simulation;
pub mod swarm;
pub mod topology;

pub use simulation::{Simulation, Stop};
