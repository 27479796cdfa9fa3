//! The cells of the comparison: what is measured on which network.

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_netem::{LinkConfig, LossModel, PathConfig};
use ctcp_repro::comparison::{BURST, JITTER};
use ctcp_repro::random_path::RandomPath;

use super::networks::{self, DrawnNetwork};
use super::paths::{paths, shared};
use super::profiles::PROFILES;
use super::random;
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
const LOSSES_RELAYS: [f64; 3] = [0.0, 0.1, 0.2];

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
    /// Consecutive requests over two different paths.
    PathRequests,
    /// A low-latency stream of messages over two lossy paths.
    PathStream,
    /// One download over two paths through the same bottleneck, alongside one of kernel Cubic.
    Shared,
    /// A transfer and a download on published profiles of two paths.
    Profiles,
    /// A download and a stream of messages through relays.
    Relays,
    /// A download on paths drawn at random.
    Random,
    /// A download on networks drawn from all combinations of rate, round-trip time, loss and noise.
    Networks,
    /// Requests on other networks drawn so: the first one of a tunnel, and consecutive ones.
    NetworkRequests,
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
    /// The unequal paths, and one of 0.3 Mbit/s, 800 ms that loses another 30 %.
    ThirdPath,
    /// Two paths of 25 Mbit/s: 50 ms with losses in bursts of 12, 80 ms with a fifth of the loss, independent.
    BurstyPaths,
    /// Two paths through one link.
    SharedLink,
    /// A published profile, by its index.
    Profile(usize),
    /// One relay between two hops.
    TwoHops,
    /// Two relays after one another; the hops lose a quarter, a half and all of the loss.
    ThreeHops,
    /// Two relays side by side.
    SideBySide,
    /// A path drawn from this seed.
    Drawn(u64),
    /// A network drawn from all combinations.
    Network(DrawnNetwork),
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
    pub const ALL: [Self; 17] = [
        Self::Goodput,
        Self::Long,
        Self::Beside,
        Self::Requests,
        Self::Stream,
        Self::Latency,
        Self::Mixed,
        Self::Datagrams,
        Self::Paths,
        Self::PathRequests,
        Self::PathStream,
        Self::Shared,
        Self::Profiles,
        Self::Relays,
        Self::Random,
        Self::Networks,
        Self::NetworkRequests,
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
            Self::PathRequests => "path-requests",
            Self::PathStream => "path-stream",
            Self::Shared => "shared",
            Self::Profiles => "profiles",
            Self::Relays => "relays",
            Self::Random => "random",
            Self::Networks => "networks",
            Self::NetworkRequests => "network-requests",
        }
    }

    /// Rate and round-trip time of the path, unless the condition sets them.
    fn path(self) -> (Rate, Duration) {
        let (megabits, millis) = match self {
            Self::Long => (100, 100),
            Self::Stream | Self::Latency | Self::Mixed | Self::Datagrams => (25, 50),
            _ => (25, 20),
        };
        (Rate::from_megabits_per_second(megabits), Duration::from_millis(millis))
    }
}

impl Condition {
    /// The name in scenarios.
    pub(super) fn name(self) -> String {
        let name = match self {
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
            Self::ThirdPath => "20 + 5 + 0.3 Mbit/s, 20 + 120 + 800 ms, the third loses another 30 %",
            Self::BurstyPaths => "25 + 25 Mbit/s, 50 + 80 ms, lost: 10 % in bursts of 12 + 2 %",
            Self::SharedLink => "two paths through one link",
            Self::Profile(index) => PROFILES[index].name,
            Self::TwoHops => "one relay, two hops",
            Self::ThreeHops => "two relays, three hops that lose a quarter, a half and all of it",
            Self::SideBySide => "two relays side by side",
            Self::Drawn(seed) => return format!("path {seed}"),
            Self::Network(network) => return network.name(),
        };
        name.to_owned()
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
            let asked = |cell: &Self| selection.losses.is_empty() || selection.losses.contains(&cell.loss);
            let of_condition = |(condition, losses): (Condition, Vec<f64>)| {
                losses.into_iter().map(move |loss| Self { test, condition, loss })
            };
            let all = rows(test, quick).into_iter().flat_map(of_condition).filter(asked);
            cells.extend(all.take(selection.cells.unwrap_or(usize::MAX)));
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
        let several = paths(self.condition, self.loss);
        let paths = if several.is_empty() { vec![self.path(model)] } else { several };
        let of_path = if let Condition::Drawn(of_path) = self.condition { of_path } else { 0 };
        let plan = NetworkPlan::new(seed + of_path, paths.into_iter().map(PathPlan::new));
        match shared(self.condition, self.loss) {
            Some(link) => plan.through(PathPlan::new(link)),
            None => plan,
        }
    }

    /// The path, if there is one only.
    fn path(&self, loss: LossModel) -> PathConfig {
        if let Condition::Drawn(seed) = self.condition {
            return RandomPath::draw(seed).config();
        }
        if let Condition::Network(network) = self.condition {
            return network.path(Probability::new(self.loss).expect("a probability"));
        }
        let (rate, rtt) = self.test.path();
        let rate = if self.condition == Condition::Fast { Rate::from_megabits_per_second(100) } else { rate };
        let path = PathConfig::new(rate, rtt, loss).with_lossless_return();
        if self.condition == Condition::Jitter { path.with_jitter(JITTER) } else { path }
    }

    /// Returns true if there is more than one path.
    pub(super) fn has_several_paths(&self) -> bool {
        !paths(self.condition, self.loss).is_empty()
    }

    /// The links that data can take, one for each path that has its own.
    fn links(&self) -> Vec<LinkConfig> {
        let paths = match shared(self.condition, self.loss) {
            Some(link) => vec![link],
            None => paths(self.condition, self.loss),
        };
        let paths = if paths.is_empty() { vec![self.path(LossModel::None)] } else { paths };
        paths.into_iter().map(|path| path.forward).collect()
    }

    /// The rate of the first path.
    pub(super) fn rate(&self) -> Rate {
        self.links()[0].rate
    }

    /// The rate of all paths together, to which shares refer. Of relays, that of the narrowest hop of each chain.
    pub(super) fn total_rate(&self) -> f64 {
        if self.test == Test::Relays {
            let chains = if self.condition == Condition::SideBySide { 2.0 } else { 1.0 };
            return chains * self.rate().as_bits_per_second() as f64;
        }
        self.links().iter().map(|link| link.rate.as_bits_per_second() as f64).sum()
    }

    /// The round-trip time of the first path without queues: the average on a profile, else without jitter.
    pub(super) fn rtt(&self) -> Duration {
        let first = &self.links()[0];
        2 * first.delay + if self.test == Test::Profiles { first.jitter } else { Duration::ZERO }
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

    /// The label for progress and messages.
    pub(super) fn label(&self) -> String {
        let path = match self.condition {
            Condition::Network(_) | Condition::Fast => {
                format!(
                    "{} Mbit/s, {} ms, ",
                    self.rate().as_bits_per_second() / 1_000_000,
                    self.rtt().as_millis()
                )
            }
            _ => String::new(),
        };
        format!("{}, {path}{}, {} % lost", self.test.name(), self.condition.name(), percent(self.loss))
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

/// The conditions of a test, with the losses of each.
fn rows(test: Test, quick: bool) -> Vec<(Condition, Vec<f64>)> {
    use Condition::{
        Bursts, BurstyPaths, EqualPaths, FarPath, Fast, Frequent, Independent, Jitter, LongBursts, LossyPath,
        Profile, SharedLink, ShortBursts, SideBySide, Sparse, ThirdPath, ThreeHops, TwoHops, UnequalPaths,
        Video,
    };
    let each = |conditions: &[Condition], losses: &[f64]| -> Vec<(Condition, Vec<f64>)> {
        conditions.iter().map(|condition| (*condition, losses.to_vec())).collect()
    };
    match (test, quick) {
        (Test::Goodput, true) => {
            [each(&[Independent], &[0.0, 0.05, 0.2]), each(&[Bursts, Jitter], &[0.05])].concat()
        }
        (Test::Goodput, false) => {
            [each(&[Independent], &LOSSES), each(&[Bursts], &LOSSES[1..]), each(&[Jitter], &LOSSES)].concat()
        }
        (Test::Long | Test::Beside | Test::Requests | Test::Stream | Test::Latency, true) => {
            each(&[Independent], &[0.05])
        }
        (Test::Long, false) => each(&[Independent], &LOSSES_LONG),
        (Test::Beside | Test::Requests | Test::Stream, false) => {
            [each(&[Independent], &LOSSES), each(&[Bursts, Jitter], &LOSSES_FEW)].concat()
        }
        (Test::Latency, false) => {
            [each(&[Independent], &LOSSES_LATENCY), each(&[ShortBursts, LongBursts], &[0.05])].concat()
        }
        (Test::Mixed, true) => each(&[Fast], &[0.05]),
        (Test::Mixed, false) => each(&[Fast, Independent], &[0.05]),
        (Test::Datagrams, true) => each(&[Frequent], &[0.05]),
        (Test::Datagrams, false) => each(&[Sparse, Frequent, Video], &LOSSES_MESSAGES),
        (Test::Paths, true) => each(&[UnequalPaths], &[0.05]),
        (Test::Paths, false) => {
            each(&[EqualPaths, UnequalPaths, LossyPath, FarPath, ThirdPath], &LOSSES_PATHS)
        }
        (Test::PathRequests, true) => each(&[UnequalPaths], &[0.05]),
        (Test::PathRequests, false) => each(&[UnequalPaths, LossyPath, FarPath], &[0.0, 0.05]),
        (Test::PathStream, _) => each(&[BurstyPaths], &[0.1]),
        (Test::Shared, _) => each(&[SharedLink], &[0.0]),
        (Test::Relays, true) => each(&[TwoHops], &[0.1]),
        (Test::Relays, false) => {
            [each(&[TwoHops], &LOSSES_RELAYS), each(&[ThreeHops], &[0.2]), each(&[SideBySide], &[0.1])]
                .concat()
        }
        (Test::Profiles, _) => {
            let count = if quick { 1 } else { PROFILES.len() };
            (0..count).map(|index| (Profile(index), vec![PROFILES[index].loss()])).collect()
        }
        (Test::Random, quick) => {
            random::paths(quick).map(|path| (Condition::Drawn(path.seed), vec![path.loss])).collect()
        }
        (Test::Networks, quick) => drawn(&networks::DOWNLOADS, quick),
        (Test::NetworkRequests, quick) => drawn(&networks::REQUESTS, quick),
    }
}

/// Rows of networks drawn from these ranges.
fn drawn(ranges: &networks::Ranges, quick: bool) -> Vec<(Condition, Vec<f64>)> {
    let drawn = networks::networks(ranges, quick).into_iter();
    drawn.map(|(network, loss)| (Condition::Network(network), vec![loss])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::PATHS_MAX;

    const EVERYTHING: Selection =
        Selection { peers: Vec::new(), tests: Vec::new(), losses: Vec::new(), seconds: None, cells: None };

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
                        Test::Requests | Test::PathRequests | Test::NetworkRequests => {
                            Metric::Request(10_000)
                        }
                        Test::Stream | Test::Latency | Test::PathStream => Metric::Undelivered,
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
            let mut labels: Vec<String> = cells.iter().map(Cell::label).collect();
            labels.sort();
            labels.dedup();
            assert_eq!(labels.len(), cells.len());
        }
    }

    #[test]
    fn a_run_without_a_selection_has_every_test() {
        for quick in [false, true] {
            let cells = Cell::all(quick, &EVERYTHING);
            for test in Test::ALL {
                assert!(cells.iter().any(|cell| cell.test == test), "{}, quick: {quick}", test.name());
            }
        }
    }

    #[test]
    fn a_selection_leaves_only_the_requested_cells() {
        let selection = Selection { tests: vec![Test::Stream], losses: vec![0.05], ..EVERYTHING };
        let cells = Cell::all(false, &selection);
        assert_eq!(cells.len(), 3, "one for each condition");
        assert!(cells.iter().all(|cell| cell.test == Test::Stream && cell.loss == 0.05));
        let first = Cell::all(false, &Selection { cells: Some(2), ..selection });
        assert_eq!(first, cells[..2]);
    }
}
