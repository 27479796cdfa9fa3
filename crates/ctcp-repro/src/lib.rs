//! Reproduces the papers' figures and tables: one file per experiment, each of which reads like its description.
//!
//! ```text
//!   Experiment::plan(Settings) -> Plan: cells  -- measure -->  values of a shard  -- Partial -->  file
//!        ctcp/ eot_pb/ tcp_nc/ thesis/                                |                             |
//!                                          Plan::outcome, all values  v                    merge    v
//!                                                                  Outcome  <-----------------------+
//!                                                  json, csv  <-----+-+-+----->  SVG
//!                                                                     +------->  comparison with the printed numbers
//! ```
//!
//! Figures that are in no paper are in `control/`. The closed forms given in the papers are in [`theory`].
//!
//! The figures that the testbed measures again on real sockets are public in [`ctcp`] and [`thesis`]: the cells of a
//! figure and the evaluation of their values. Both results therefore have the same series, printed numbers and checks.
//!
//! An experiment derives all randomness from seeds, so it gives the same figures on every machine. It uses no clock and
//! no files; those belong to the program that runs it.

pub mod agreement;
mod changes;
pub mod comparison;
pub mod control;
pub mod ctcp;
mod eot_pb;
mod experiment;
mod outcome;
pub mod page;
mod partial;
mod plan;
mod plot;
pub mod random_path;
pub mod recorded;
mod shard;
pub mod statistics;
mod table;
mod tcp_nc;
pub mod theory;
pub mod thesis;

pub use changes::{Changes, Parameter};
pub use experiment::{EXPERIMENTS, Experiment, Settings, WAITING, Waiting};
pub use outcome::{Check, Outcome, Point, Published, Want};
pub use partial::{MergeError, Merged, Partial, merge};
pub use plan::{OutcomeError, Plan};
pub use plot::{Axis, Plot, Scale};
pub use shard::{SHARDS_MAX, Shard};
