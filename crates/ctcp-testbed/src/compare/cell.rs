//! What is measured on which network.

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_netem::{LossModel, PathConfig};

use super::{Metric, Selection};
use crate::plan::{NetworkPlan, PathPlan};

/// The losses of a full comparison.
const LOSSES: [f64; 6] = [0.0, 0.01, 0.05, 0.1, 0.2, 0.3];
/// Where a test does not go through all of them.
const LOSSES_FEW: [f64; 2] = [0.05, 0.2];
const LOSSES_LONG: [f64; 4] = [0.0, 0.01, 0.05, 0.2];
const LOSSES_PATHS: [f64; 3] = [0.0, 0.05, 0.2];

/// Packets of a burst, on average.
const BURST: f64 = 5.0;
/// Up to so much more delay each way.
const JITTER: Duration = Duration::from_millis(5);

/// A kind of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// One download; also what it sent and computed for each byte.
    Goodput,
    /// The same on a faster and longer path.
    Long,
    /// One download beside one of kernel Cubic.
    Beside,
    /// Requests of four sizes, one after the other.
    Requests,
    /// Messages at a steady rate.
    Stream,
    /// One download where there are two paths, alike ones and different ones.
    Paths,
}

/// What else the path does beside losing packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Nothing: each packet is lost by itself.
    Independent,
    /// Packets are lost several in a row.
    Bursts,
    /// Each packet is lost by itself, and delays vary.
    Jitter,
    /// Two paths of 10 Mbit/s, 20 ms.
    EqualPaths,
    /// A path of 20 Mbit/s, 20 ms and one of 5 Mbit/s, 120 ms.
    UnequalPaths,
}

/// A test on a network.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// What is measured.
    pub test: Test,
    /// What the network does beside losing packets.
    pub condition: Condition,
    /// The mean share of packets that it loses, on the way of the data.
    pub loss: f64,
}

impl Test {
    /// All of them, in the order of the report.
    pub const ALL: [Self; 6] =
        [Self::Goodput, Self::Long, Self::Beside, Self::Requests, Self::Stream, Self::Paths];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Goodput => "goodput",
            Self::Long => "long",
            Self::Beside => "beside",
            Self::Requests => "requests",
            Self::Stream => "stream",
            Self::Paths => "paths",
        }
    }

    /// Rate and round-trip time of the first path, where the condition does not say it.
    fn path(self) -> (Rate, Duration) {
        let (megabits, millis) = match self {
            Self::Goodput | Self::Beside | Self::Requests => (25, 20),
            Self::Long => (100, 100),
            Self::Stream => (25, 50),
            Self::Paths => (20, 20),
        };
        (Rate::from_megabits_per_second(megabits), Duration::from_millis(millis))
    }
}

impl Condition {
    /// Its name in scenarios.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Independent => "independent loss",
            Self::Bursts => "bursts",
            Self::Jitter => "jitter",
            Self::EqualPaths => "10 + 10 Mbit/s, 20 + 20 ms",
            Self::UnequalPaths => "20 + 5 Mbit/s, 20 + 120 ms",
        }
    }
}

impl Cell {
    /// The cells of a comparison in their order.
    pub(super) fn all(quick: bool, selection: &Selection) -> Vec<Self> {
        let mut cells = Vec::new();
        for test in Test::ALL {
            if !selection.tests.is_empty() && !selection.tests.contains(&test) {
                continue;
            }
            for (condition, losses) in rows(test, quick) {
                let asked = |loss: &f64| selection.losses.is_empty() || selection.losses.contains(loss);
                let losses = losses.iter().filter(|loss| asked(loss));
                cells.extend(losses.map(|&loss| Self { test, condition, loss }));
            }
        }
        cells
    }

    /// The network.
    pub(super) fn plan(&self, seed: u64) -> NetworkPlan {
        let loss = Probability::new(self.loss).expect("a probability");
        let model = match self.condition {
            Condition::Bursts => LossModel::bursts(loss, BURST).expect("possible for all losses here"),
            _ => LossModel::Bernoulli(loss),
        };
        let path = |(rate, rtt)| PathConfig::new(rate, rtt, model.clone()).with_lossless_return();
        let first = path((self.rate(), self.rtt()));
        let paths = match self.condition {
            Condition::Independent | Condition::Bursts => vec![first],
            Condition::Jitter => vec![first.with_jitter(JITTER)],
            Condition::EqualPaths => vec![first.clone(), first],
            Condition::UnequalPaths => vec![first, path(SLOW_PATH)],
        };
        NetworkPlan::new(seed, paths.into_iter().map(PathPlan::new))
    }

    /// Of the first path.
    pub(super) fn rate(&self) -> Rate {
        match self.condition {
            Condition::EqualPaths => Rate::from_megabits_per_second(10),
            _ => self.test.path().0,
        }
    }

    /// Of all paths together, which shares refer to.
    pub(super) fn total_rate(&self) -> f64 {
        let first = self.rate().as_bits_per_second() as f64;
        match self.condition {
            Condition::EqualPaths => 2.0 * first,
            Condition::UnequalPaths => first + SLOW_PATH.0.as_bits_per_second() as f64,
            Condition::Independent | Condition::Bursts | Condition::Jitter => first,
        }
    }

    /// Of the first path.
    pub(super) fn rtt(&self) -> Duration {
        self.test.path().1
    }

    /// For progress and messages.
    pub(super) fn label(&self) -> String {
        format!("{}, {}, {} % lost", self.test.name(), self.condition.name(), percent(self.loss))
    }

    /// For results: no two quantities share one at the same rate, round-trip time and loss.
    pub(super) fn scenario(&self, metric: Metric) -> String {
        let beside = if self.test == Test::Beside { " beside Cubic" } else { "" };
        format!("{}{beside}, {}", metric.name(), self.condition.name())
    }
}

const SLOW_PATH: (Rate, Duration) = (Rate::from_megabits_per_second(5), Duration::from_millis(120));

/// A share as a number of per cent.
pub(super) fn percent(share: f64) -> f64 {
    (share * 1e4).round() / 1e2
}

fn rows(test: Test, quick: bool) -> Vec<(Condition, &'static [f64])> {
    use Condition::{Bursts, EqualPaths, Independent, Jitter, UnequalPaths};
    match (test, quick) {
        (Test::Goodput, true) => {
            vec![(Independent, &[0.0, 0.05, 0.2]), (Bursts, &[0.05]), (Jitter, &[0.05])]
        }
        (Test::Goodput, false) => vec![(Independent, &LOSSES), (Bursts, &LOSSES[1..]), (Jitter, &LOSSES)],
        (Test::Long | Test::Beside | Test::Requests | Test::Stream, true) => vec![(Independent, &[0.05])],
        (Test::Long, false) => vec![(Independent, &LOSSES_LONG)],
        (Test::Beside | Test::Requests | Test::Stream, false) => {
            vec![(Independent, &LOSSES), (Bursts, &LOSSES_FEW), (Jitter, &LOSSES_FEW)]
        }
        (Test::Paths, true) => vec![(UnequalPaths, &[0.05])],
        (Test::Paths, false) => vec![(EqualPaths, &LOSSES_PATHS), (UnequalPaths, &LOSSES_PATHS)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::PATHS_MAX;

    const EVERYTHING: Selection = Selection { peers: Vec::new(), tests: Vec::new(), losses: Vec::new() };

    #[test]
    fn all_losses_are_tried_with_each_condition() {
        let cells = Cell::all(false, &EVERYTHING);
        for condition in [Condition::Independent, Condition::Bursts, Condition::Jitter] {
            for loss in [0.01, 0.05, 0.1, 0.2, 0.3] {
                let cell = Cell { test: Test::Goodput, condition, loss };
                assert!(cells.contains(&cell), "{}", cell.label());
            }
        }
    }

    #[test]
    fn every_cell_has_a_network_of_its_own_and_every_value_a_name_of_its_own() {
        for quick in [false, true] {
            let cells = Cell::all(quick, &EVERYTHING);
            let mut names: Vec<String> = cells
                .iter()
                .map(|cell| {
                    assert!(cell.plan(1).paths.len() <= PATHS_MAX);
                    let metric = match cell.test {
                        Test::Requests => Metric::Request(10_000),
                        Test::Stream => Metric::Undelivered,
                        _ => Metric::Goodput,
                    };
                    format!("{} {:?} {:?} {}", cell.scenario(metric), cell.rate(), cell.rtt(), cell.loss)
                })
                .collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), cells.len());
        }
    }

    #[test]
    fn a_selection_leaves_only_what_was_asked_for() {
        let selection = Selection { tests: vec![Test::Stream], losses: vec![0.05], ..EVERYTHING };
        let cells = Cell::all(false, &selection);
        assert_eq!(cells.len(), 3, "one for each condition");
        assert!(cells.iter().all(|cell| cell.test == Test::Stream && cell.loss == 0.05));
    }
}
