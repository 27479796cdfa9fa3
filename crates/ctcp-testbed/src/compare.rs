//! The comparison of all peers: each on the same networks, in turn, in one run.
//!
//! ```text
//!   for each repetition:  for each cell (a test on a network):  for each participating peer:  measure
//! ```
//!
//! Disturbances of the machine thus affect all peers alike, and an interrupted run has whole repetitions, or goes on later
//! after the last whole cell. A peer that
//! is not installed is reported as missing, with the command that installs it.

mod cell;
mod contestant;
mod derived;
mod measure;
mod metric;
mod networks;
mod paths;
mod profiles;
mod random;
mod report;
mod resume;
mod statistics;

use std::collections::BTreeMap;

use ctcp_repro::random_path::{self, RandomPath};
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::TestbedError;
use crate::testbed::{Record, Testbed};

pub use cell::{Cell, Condition, Test};
pub use contestant::{Contestant, PEER_NAMES};
pub use metric::Metric;
pub use networks::DrawnNetwork;
pub use resume::Kept;

use contestant::present;
use derived::ratios;
use measure::{Spent, measure};
use profiles::{Facts, PROFILES};

/// Repetitions of a full run and of a quick one.
const REPETITIONS: (u32, u32) = (5, 1);

/// What to compare.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Names of peers; empty means all.
    pub peers: Vec<&'static str>,
    /// Tests; empty means all.
    pub tests: Vec<Test>,
    /// Loss rates; empty means all of each test.
    pub losses: Vec<f64>,
    /// Seconds of each download over several or random paths; otherwise the tests' own.
    pub seconds: Option<u64>,
    /// Only so many cells of each test, the first ones; otherwise all.
    pub cells: Option<usize>,
}

/// A measured value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// The peer's name on the command line.
    pub peer: &'static str,
    /// The rate of the first path.
    pub rate_bps: u64,
    /// The round-trip time of the first path, without queueing.
    pub rtt_ms: f64,
    /// The mean loss rate in the direction of the data.
    pub loss: f64,
    /// What was measured under which conditions.
    pub scenario: String,
    /// The value.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
    /// Whether the value is only a bound, because the time limit was reached.
    pub is_cut_off: bool,
    /// The repetition, from 0.
    pub seed: u64,
    #[serde(skip)]
    pub(crate) cell: usize,
    #[serde(skip)]
    pub(crate) metric: Metric,
}

/// The values measured so far.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    cells: Vec<Cell>,
    peers: Vec<&'static str>,
    seconds: Option<u64>,
    is_quick: bool,
    samples: Vec<Sample>,
    /// Completed turns: each is a cell in a repetition.
    turns: usize,
    /// Peers that are missing, and why.
    pub missing: BTreeMap<&'static str, String>,
    /// Measurements that failed, one line each.
    pub failures: Vec<String>,
}

impl Comparison {
    /// Runs the comparison, or goes on with one that this `version` of the program `kept`. `on_turn` gets the values after each cell of
    /// each repetition.
    ///
    /// # Errors
    /// Returns an error if the testbed itself fails, no cell or peer is left, what was kept is of another comparison, or the run was
    /// interrupted. A failure of a peer is only recorded.
    pub fn run(
        testbed: &mut Testbed<'_>,
        selection: &Selection,
        (version, kept): (&str, Option<Kept>),
        mut on_turn: impl FnMut(&Self, &Testbed<'_>) -> Result<(), TestbedError>,
    ) -> Result<Self, TestbedError> {
        let quick = testbed.settings.quick;
        let repetitions = testbed.settings.seeds_or(REPETITIONS.0, REPETITIONS.1);
        let cells = Cell::all(quick, selection);
        if cells.is_empty() {
            return Err(TestbedError::failed("no test has a network with such a loss"));
        }
        let mut comparison = Self { cells, seconds: selection.seconds, is_quick: quick, ..Self::default() };
        let contestants = present(testbed, selection, &mut comparison.missing)?;
        if contestants.is_empty() {
            return Err(TestbedError::Missing("none of these peers is installed here".to_owned()));
        }
        comparison.peers = contestants.iter().map(|contestant| contestant.name).collect();
        if let Some(kept) = kept {
            comparison.take(kept, version)?;
        }
        let cells = comparison.cells.clone();
        let turns = comparison.turns..cells.len() * repetitions as usize;
        let taking_part = |cell| contestants.iter().filter(move |peer| peer.takes_part(cell));
        testbed.expect_runs(turns.clone().map(|turn| taking_part(&cells[turn % cells.len()]).count()).sum());
        for turn in turns {
            let (seed, index) = ((turn / cells.len()) as u64, turn % cells.len());
            let cell = &cells[index];
            for contestant in taking_part(cell) {
                comparison.add(testbed, contestant, cell, (index, seed))?;
            }
            comparison.relate(cell, (index, seed));
            comparison.turns = turn + 1;
            on_turn(&comparison, testbed)?;
        }
        Ok(comparison)
    }

    /// Completed repetitions.
    #[must_use]
    pub fn repetitions(&self) -> usize {
        self.turns.checked_div(self.cells.len()).unwrap_or_default()
    }

    /// Whether every cell has as many values: the last turn completed a repetition.
    #[must_use]
    pub fn is_even(&self) -> bool {
        self.turns.is_multiple_of(self.cells.len())
    }

    fn add(
        &mut self,
        testbed: &mut Testbed<'_>,
        contestant: &Contestant,
        cell: &Cell,
        (index, seed): (usize, u64),
    ) -> Result<(), TestbedError> {
        let plan = cell.plan(seed);
        let label = format!("{}, {}", contestant.name, cell.label());
        let spent = Spent { quick: testbed.settings.quick, seconds: self.seconds };
        let measured =
            testbed.measure(&label, &plan, |network| measure(network, contestant.peer(), cell, spent));
        let found = match measured {
            Ok(Some(found)) => found,
            Ok(None) => {
                self.failures.push(format!("{label}: left out, since the emulator was too late"));
                return Ok(());
            }
            Err(TestbedError::Interrupted) => return Err(TestbedError::Interrupted),
            Err(error) => {
                self.failures.push(error.to_string());
                return Ok(());
            }
        };
        self.samples
            .extend(found.into_iter().map(|found| sample(contestant.name, cell, (index, seed), found)));
        Ok(())
    }

    /// Adds the values that relate the peers of a cell and repetition to each other.
    fn relate(&mut self, cell: &Cell, (index, seed): (usize, u64)) {
        let measured = |peer: &str, metric: Metric| {
            let mut samples = self.samples.iter().filter(|one| one.cell == index && one.seed == seed);
            samples.find(|one| one.peer == peer && one.metric == metric).map(|one| one.value)
        };
        let related: Vec<Sample> = self
            .peers
            .iter()
            .flat_map(|&peer| {
                let ratios = ratios(cell, peer, measured).into_iter();
                ratios.map(move |(metric, value)| sample(peer, cell, (index, seed), (metric, value, false)))
            })
            .collect();
        self.samples.extend(related);
    }

    /// The contents of `compare.json`.
    #[must_use]
    pub fn json(&self, record: &Record, version: &str, quick: bool, wall_s: f64) -> Value {
        json!({
            "version": version, "peers": self.peers, "runs": self.samples, "summary": self.summary(), "missing": self.missing, "failures": self.failures,
            "profiles": self.profiles(), "random": self.drawn(), "repetitions": self.repetitions(), "quick": quick, "seconds": self.seconds, "wall_s": wall_s, "testbed": record,
        })
    }

    /// The random paths that were measured.
    fn drawn(&self) -> Vec<random_path::Facts> {
        let measured = self.cells.iter().filter_map(|cell| match cell.condition {
            Condition::Drawn(seed) => Some(RandomPath::draw(seed).facts()),
            _ => None,
        });
        measured.collect()
    }

    /// The published profiles that were measured.
    fn profiles(&self) -> Vec<Facts> {
        let measured = self.cells.iter().filter_map(|cell| match cell.condition {
            Condition::Profile(index) => Some(PROFILES[index].facts()),
            _ => None,
        });
        measured.collect()
    }
}

fn sample(
    peer: &'static str,
    cell: &Cell,
    (index, seed): (usize, u64),
    (metric, value, is_cut_off): (Metric, f64, bool),
) -> Sample {
    Sample {
        peer,
        rate_bps: cell.rate().as_bits_per_second(),
        rtt_ms: cell.rtt().as_secs_f64() * 1e3,
        loss: cell.loss,
        scenario: cell.scenario(metric),
        value,
        unit: metric.unit(),
        is_cut_off,
        seed,
        cell: index,
        metric,
    }
}
