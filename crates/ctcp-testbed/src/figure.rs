//! The measurements, one file per figure.

mod contenders;
mod fig3a;
mod fig3b;
mod fig6;
mod fig7;
mod fig8;
mod hotel;
mod hotspots;
mod interference;
mod sharing;
mod single;
mod validate;

use ctcp_repro::{Outcome, Waiting};
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::error::TestbedError;
use crate::testbed::{Record, Testbed};

/// A figure or another named measurement.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// The name on the command line and of the files.
    pub id: &'static str,
    /// The paper and figure it belongs to.
    pub paper: &'static str,
    /// A one-line description.
    pub title: &'static str,
    /// Runs its measurements.
    pub measure: fn(&mut Testbed<'_>) -> Result<Outcome, TestbedError>,
}

/// All figures.
pub const FIGURES: &[Figure] = &[
    validate::FIGURE,
    fig3a::FIGURE,
    fig3b::FIGURE,
    sharing::LOSS_FREE,
    sharing::LOSSY,
    fig6::FIGURE,
    fig7::FIGURE,
    fig8::FIGURE,
    interference::OVEN,
    interference::HIDDEN_TERMINAL,
    hotspots::OVER_TIME,
    hotspots::MEAN,
    hotel::FIGURE,
    single::FIGURE,
];

/// The figures that cannot be measured yet.
pub const WAITING: &[Waiting] = &[ctcp_repro::thesis::multi::WAITING];

/// A measured figure.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Points, printed numbers, checks and how to draw them.
    pub outcome: Outcome,
    /// The conditions of the measurement.
    pub record: Record,
    /// The duration in seconds.
    pub wall_s: f64,
}

impl Figure {
    /// Looks up a figure by its id.
    #[must_use]
    pub fn named(id: &str) -> Option<&'static Self> {
        FIGURES.iter().find(|figure| figure.id == id)
    }

    /// Measures the figure.
    ///
    /// # Errors
    /// Returns an error if the measurement failed.
    pub fn run(&self, mut testbed: Testbed<'_>) -> Result<Finding, TestbedError> {
        let clock = Clock::start();
        let mut outcome = (self.measure)(&mut testbed)?;
        let record = testbed.finish(&mut outcome);
        Ok(Finding { outcome, record, wall_s: clock.now().as_secs_f64() })
    }
}

impl Finding {
    /// The contents of `ID.json`: those of `ctcp-lab repro`, plus `testbed` with the machine, the peers and every run.
    ///
    /// # Panics
    /// Never panics: the value consists of numbers and strings.
    #[must_use]
    pub fn json(&self, figure: &Figure, version: &str, quick: bool) -> Value {
        let text = self.outcome.json(figure.id, figure.paper, version, quick, self.wall_s);
        let mut json: Value = serde_json::from_str(&text).expect("the text is valid JSON");
        json["testbed"] = json!(self.record);
        json
    }
}
