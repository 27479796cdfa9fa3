//! The papers' figures and tables, computed again: one file an experiment, each of which reads like its description.
//!
//! ```text
//!   Experiment::run(Settings) -> Outcome  -- json, csv -->  files
//!        thesis/*.rs                \------- plot ------->  SVG
//!                                    \------ table ------>  what the papers print beside what came out
//! ```
//!
//! An experiment draws everything from seeds, so that it gives the same figures on every machine. It knows no clock and no
//! files; who runs it does.
#![forbid(unsafe_code)]

mod experiment;
mod outcome;
mod plot;
pub mod statistics;
mod table;
pub mod theory;
mod thesis;

pub use experiment::{EXPERIMENTS, Experiment, Settings};
pub use outcome::{Check, Outcome, Point, Published, Want};
pub use plot::{Axis, Plot, Scale};
