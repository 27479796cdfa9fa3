//! The cells of the comparison: what is measured on which network.

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_netem::{LossModel, PathConfig};
use ctcp_repro::comparison::{BURST, JITTER};

use super::{Metric, Selection};
use crate::plan::{NetworkPlan, PathPlan};
use crate::probe::Messages;

/// The loss rates of a full comparison.
const LOSSES: [f64; 6] = [0.0, 0.01, 0.05, 0.1, 0.2, 0.3];
/// The loss rates of tests that do not use all of them.
const LOSSES_FEW: [f64; 2] = [0.05, 0.2];
const LOSSES_LONG: [f64; 4] = [0.0, 0.01, 0.05, 0.2];
const LOSSES_LATENCY: [f64; 4] = [0.0, 0.01, 0.05, 0.1];
const LOSSES_MESSAGES: [f64; 2] = [0.05, 0.1];
const LOSSES_PATHS: [f64; 4] = [0.0, 0.05, 0.15, 0.2];

/// A kind of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// One download; also the bytes sent and the CPU time per byte.
    Goodput,
    /// The same on a faster and longer path.
    Long,
    /// One download alongside one of kernel Cubic.
    Beside,
    /// Consecutive requests of four sizes.
    Requests,
    /// Messages at a steady rate.
    Stream,
    /// The same for a minute, on the paths of interactive traffic.
    Latency,
    /// The same stream alone, a download alone, and both through the same connection.
    Mixed,
    /// Messages with a deadline, as datagrams, for a minute.
    Datagrams,
    /// One download over two paths, equal or different ones.
    Paths,
}

/// What distinguishes the cells of a test besides the loss rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Packets are lost independently.
    Independent,
    /// Packets are lost in bursts.
    Bursts,
    /// The same, in bursts of 3 packets on average.
    ShortBursts,
    /// The same, in bursts of 6.
    LongBursts,
    /// Packets are lost independently, and delays vary.
    Jitter,
    /// Packets are lost independently, on a link of 100 Mbit/s.
    Fast,
    /// Packets are lost independently, and there are 50 messages of 200 bytes a second.
    Sparse,
    /// The same with 500 of them.
    Frequent,
    /// The same with 3 Mbit/s in messages of 1,200 bytes.
    Video,
    /// Two paths of 10 Mbit/s, 20 ms.
    EqualPaths,
    /// A path of 20 Mbit/s, 20 ms and one of 5 Mbit/s, 120 ms.
    UnequalPaths,
    /// A path of 30 Mbit/s, 30 ms and one of 10 Mbit/s, 200 ms that loses another 10 %.
    LossyPath,
    /// A path of 2 Mbit/s, 10 ms and one of 50 Mbit/s, 80 ms.
    FarPath,
}

/// A test on a network.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The test.
    pub test: Test,
    /// The behaviour of the network besides its loss rate.
    pub condition: Condition,
    /// The mean loss rate in the direction of the data.
    pub loss: f64,
}

impl Test {
    /// All tests, in the order of the report.
    pub const ALL: [Self; 9] = [
        Self::Goodput,
        Self::Long,
        Self::Beside,
        Self::Requests,
        Self::Stream,
        Self::Latency,
        Self::Mixed,
        Self::Datagrams,
        Self::Paths,
    ];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Goodput => "goodput",
            Self::Long => "long",
            Self::Beside => "beside",
            Self::Requests => "requests",
            Self::Stream => "stream",
            Self::Latency => "latency",
            Self::Mixed => "mixed",
            Self::Datagrams => "datagrams",
            Self::Paths => "paths",
        }
    }

    /// Rate and round-trip time of the first path, unless the condition sets them.
    fn path(self) -> (Rate, Duration) {
        let (megabits, millis) = match self {
            Self::Goodput | Self::Beside | Self::Requests => (25, 20),
            Self::Long => (100, 100),
            Self::Stream | Self::Latency | Self::Mixed | Self::Datagrams => (25, 50),
            Self::Paths => (20, 20),
        };
        (Rate::from_megabits_per_second(megabits), Duration::from_millis(millis))
    }
}

impl Condition {
    /// The name in scenarios.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Independent | Self::Fast => "independent loss",
            Self::Sparse => "50 messages of 200 bytes/s",
            Self::Frequent => "500 messages of 200 bytes/s",
            Self::Video => "3 Mbit/s in messages of 1,200 bytes",
            Self::Bursts => "bursts",
            Self::ShortBursts => "bursts of 3",
            Self::LongBursts => "bursts of 6",
            Self::Jitter => "jitter",
            Self::EqualPaths => "10 + 10 Mbit/s, 20 + 20 ms",
            Self::UnequalPaths => "20 + 5 Mbit/s, 20 + 120 ms",
            Self::LossyPath => "30 + 10 Mbit/s, 30 + 200 ms, the second loses another 10 %",
            Self::FarPath => "2 + 50 Mbit/s, 10 + 80 ms",
        }
    }
}

impl Cell {
    /// The cells of a comparison, in order.
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

    /// The network of the cell.
    pub(super) fn plan(&self, seed: u64) -> NetworkPlan {
        let loss = Probability::new(self.loss).expect("a probability");
        let burst = match self.condition {
            Condition::Bursts => Some(BURST),
            Condition::ShortBursts => Some(3.0),
            Condition::LongBursts => Some(6.0),
            _ => None,
        };
        let model = burst.map_or(LossModel::Bernoulli(loss), |burst| {
            LossModel::bursts(loss, burst).expect("possible for all losses here")
        });
        let path = |(rate, rtt)| PathConfig::new(rate, rtt, model.clone()).with_lossless_return();
        let first = path((self.rate(), self.rtt()));
        let mut paths = vec![match self.condition {
            Condition::Jitter => first.with_jitter(JITTER),
            _ => first,
        }];
        if let Some((rate, rtt, further)) = self.second_path() {
            let total = Probability::new(1.0 - (1.0 - self.loss) * (1.0 - further)).expect("a probability");
            let model = if further > 0.0 { LossModel::Bernoulli(total) } else { model };
            paths.push(PathConfig::new(rate, rtt, model).with_lossless_return());
        }
        NetworkPlan::new(seed, paths.into_iter().map(PathPlan::new))
    }

    /// The rate of the first path.
    pub(super) fn rate(&self) -> Rate {
        let megabits = match self.condition {
            Condition::EqualPaths => 10,
            Condition::Fast => 100,
            Condition::LossyPath => 30,
            Condition::FarPath => 2,
            _ => return self.test.path().0,
        };
        Rate::from_megabits_per_second(megabits)
    }

    /// Rate, round-trip time and further loss of the second path, if there is one.
    fn second_path(&self) -> Option<(Rate, Duration, f64)> {
        let (megabits, millis, further) = match self.condition {
            Condition::EqualPaths => (10, 20, 0.0),
            Condition::UnequalPaths => (5, 120, 0.0),
            Condition::LossyPath => (10, 200, 0.1),
            Condition::FarPath => (50, 80, 0.0),
            _ => return None,
        };
        Some((Rate::from_megabits_per_second(megabits), Duration::from_millis(millis), further))
    }

    /// The rate of all paths together, to which shares refer.
    pub(super) fn total_rate(&self) -> f64 {
        let second = self.second_path().map_or(0, |(rate, ..)| rate.as_bits_per_second());
        (self.rate().as_bits_per_second() + second) as f64
    }

    /// The messages to send for this time.
    pub(super) fn messages(&self, time: Duration) -> Messages {
        let (bytes, kilobits) = match self.condition {
            Condition::Sparse => (200, 80),
            Condition::Frequent => (200, 800),
            _ => (1_200, 3_000),
        };
        Messages { bytes, rate: Rate::from_bits_per_second(kilobits * 1_000), time }
    }

    /// The round-trip time of the first path.
    pub(super) fn rtt(&self) -> Duration {
        match self.condition {
            Condition::LossyPath => Duration::from_millis(30),
            Condition::FarPath => Duration::from_millis(10),
            _ => self.test.path().1,
        }
    }

    /// The label for progress and messages.
    pub(super) fn label(&self) -> String {
        format!("{}, {}, {} % lost", self.test.name(), self.condition.name(), percent(self.loss))
    }

    /// The label for results: no two quantities share one at the same rate, round-trip time and loss.
    pub(super) fn scenario(&self, metric: Metric) -> String {
        let beside = match self.test {
            Test::Beside => " beside Cubic",
            Test::Latency => " in a minute",
            _ => "",
        };
        format!("{}{beside}, {}", metric.name(), self.condition.name())
    }
}

/// Converts a share to per cent.
pub(super) fn percent(share: f64) -> f64 {
    (share * 1e4).round() / 1e2
}

fn rows(test: Test, quick: bool) -> Vec<(Condition, &'static [f64])> {
    use Condition::{
        Bursts, EqualPaths, FarPath, Fast, Frequent, Independent, Jitter, LongBursts, LossyPath, ShortBursts,
        Sparse, UnequalPaths, Video,
    };
    match (test, quick) {
        (Test::Goodput, true) => {
            vec![(Independent, &[0.0, 0.05, 0.2]), (Bursts, &[0.05]), (Jitter, &[0.05])]
        }
        (Test::Goodput, false) => vec![(Independent, &LOSSES), (Bursts, &LOSSES[1..]), (Jitter, &LOSSES)],
        (Test::Long | Test::Beside | Test::Requests | Test::Stream | Test::Latency, true) => {
            vec![(Independent, &[0.05])]
        }
        (Test::Long, false) => vec![(Independent, &LOSSES_LONG)],
        (Test::Beside | Test::Requests | Test::Stream, false) => {
            vec![(Independent, &LOSSES), (Bursts, &LOSSES_FEW), (Jitter, &LOSSES_FEW)]
        }
        (Test::Latency, false) => {
            vec![(Independent, &LOSSES_LATENCY), (ShortBursts, &[0.05]), (LongBursts, &[0.05])]
        }
        (Test::Mixed, true) => vec![(Fast, &[0.05])],
        (Test::Mixed, false) => vec![(Fast, &[0.05]), (Independent, &[0.05])],
        (Test::Datagrams, true) => vec![(Frequent, &[0.05])],
        (Test::Datagrams, false) => {
            [Sparse, Frequent, Video].map(|condition| (condition, &LOSSES_MESSAGES[..])).to_vec()
        }
        (Test::Paths, true) => vec![(UnequalPaths, &[0.05])],
        (Test::Paths, false) => {
            [EqualPaths, UnequalPaths, LossyPath, FarPath].map(|paths| (paths, &LOSSES_PATHS[..])).to_vec()
        }
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
    fn every_cell_has_its_own_network_and_every_value_its_own_name() {
        for quick in [false, true] {
            let cells = Cell::all(quick, &EVERYTHING);
            let mut names: Vec<String> = cells
                .iter()
                .map(|cell| {
                    assert!(cell.plan(1).paths.len() <= PATHS_MAX);
                    let metric = match cell.test {
                        Test::Requests => Metric::Request(10_000),
                        Test::Stream | Test::Latency => Metric::Undelivered,
                        Test::Mixed => Metric::StreamAlone(990),
                        Test::Datagrams => Metric::Late,
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
    fn a_selection_leaves_only_the_requested_cells() {
        let selection = Selection { tests: vec![Test::Stream], losses: vec![0.05], ..EVERYTHING };
        let cells = Cell::all(false, &selection);
        assert_eq!(cells.len(), 3, "one for each condition");
        assert!(cells.iter().all(|cell| cell.test == Test::Stream && cell.loss == 0.05));
    }
}
