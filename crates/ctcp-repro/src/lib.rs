//! The papers' figures and tables, computed again: one file an experiment, each of which reads like its description.
//!
//! ```text
//!   Experiment::plan(Settings) -> Plan: cells  -- measure -->  values of a shard  -- Partial -->  file
//!        ctcp/ eot_pb/ tcp_nc/ thesis/                                |                             |
//!                                          Plan::outcome, all values  v                    merge    v
//!                                                                  Outcome  <-----------------------+
//!                                                  json, csv  <-----+-+-+----->  SVG
//!                                                                     +------->  what the papers print beside it
//! ```
//!
//! The closed forms that the papers give are in [`theory`].
//!
//! What the testbed measures again on real sockets is public in [`ctcp`] and [`thesis`]: the cells of a figure, and what is made of
//! their values, so that both have the same series, printed numbers and checks.
//!
//! An experiment draws everything from seeds, so that it gives the same figures on every machine. It knows no clock and no
//! files; who runs it does.

pub mod agreement;
mod changes;
pub mod comparison;
pub mod ctcp;
mod eot_pb;
mod experiment;
mod outcome;
pub mod page;
mod partial;
mod plan;
mod plot;
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
