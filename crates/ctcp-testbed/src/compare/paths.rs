//! The networks of several paths in the comparison.

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_netem::{LinkConfig, LossModel, PathConfig};

use super::cell::Condition;
use super::profiles::PROFILES;

/// A path whose queue holds one bandwidth-delay product.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Path {
    kilobits: u64,
    rtt_ms: u64,
    /// Loss in the direction of the data, in addition to that of the cell.
    further: f64,
}

const fn path(megabits: u64, rtt_ms: u64) -> Path {
    Path { kilobits: 1_000 * megabits, rtt_ms, further: 0.0 }
}

const EQUAL: [Path; 2] = [path(10, 20), path(10, 20)];
const UNEQUAL: [Path; 2] = [path(20, 20), path(5, 120)];
const LOSSY: [Path; 2] = [path(30, 30), Path { further: 0.1, ..path(10, 200) }];
const FAR: [Path; 2] = [path(2, 10), path(50, 80)];
/// The unequal paths and one that is hardly of use.
const THIRD: [Path; 3] = [UNEQUAL[0], UNEQUAL[1], Path { kilobits: 300, rtt_ms: 800, further: 0.3 }];

/// Rate, round-trip time, loss and its mean burst of each path of the low-latency stream.
const STREAM: [(u64, u64, f64, Option<f64>); 2] = [(25, 50, 0.1, Some(12.0)), (25, 80, 0.02, None)];

/// The link that two paths share: rate in Mbit/s and round-trip time in milliseconds.
const SHARED: (u64, u64) = (25, 20);

/// The paths of a condition, with the loss of the cell. Empty if it has a single path.
pub(super) fn paths(condition: Condition, loss: f64) -> Vec<PathConfig> {
    let plain = |paths: &[Path]| paths.iter().map(|path| path.with_loss(loss)).collect();
    match condition {
        Condition::EqualPaths => plain(&EQUAL),
        Condition::UnequalPaths => plain(&UNEQUAL),
        Condition::LossyPath => plain(&LOSSY),
        Condition::FarPath => plain(&FAR),
        Condition::ThirdPath => plain(&THIRD),
        Condition::BurstyPaths => {
            STREAM.iter().map(|&(rate, rtt, loss, burst)| stream(rate, rtt, loss, burst)).collect()
        }
        // All of the delay is in the link that they share.
        Condition::SharedLink => vec![PathConfig::symmetric(LinkConfig::default()); 2],
        Condition::Profile(index) => PROFILES[index].paths().to_vec(),
        Condition::TwoHops => chain(&[loss, loss]),
        Condition::ThreeHops => chain(&[loss / 4.0, loss / 2.0, loss]),
        Condition::SideBySide => chain(&[loss; 4]),
        _ => Vec::new(),
    }
}

/// The hops of relays, which lose as much in both directions, and the clean path behind the server.
fn chain(losses: &[f64]) -> Vec<PathConfig> {
    let (megabits, rtt_ms) = SHARED;
    let hop = |&loss: &f64| {
        let loss = LossModel::Bernoulli(Probability::new(loss).expect("a probability"));
        PathConfig::new(Rate::from_megabits_per_second(megabits), Duration::from_millis(rtt_ms), loss)
    };
    let clean = PathConfig::symmetric(LinkConfig::default());
    losses.iter().map(hop).chain([clean]).collect()
}

/// The link that all paths of a condition share.
pub(super) fn shared(condition: Condition, loss: f64) -> Option<PathConfig> {
    let (megabits, rtt_ms) = SHARED;
    (condition == Condition::SharedLink).then(|| path(megabits, rtt_ms).with_loss(loss))
}

impl Path {
    fn with_loss(self, loss: f64) -> PathConfig {
        let total = Probability::new(1.0 - (1.0 - loss) * (1.0 - self.further)).expect("a probability");
        let rate = Rate::from_bits_per_second(1_000 * self.kilobits);
        PathConfig::new(rate, Duration::from_millis(self.rtt_ms), LossModel::Bernoulli(total))
            .with_lossless_return()
    }
}

fn stream(megabits: u64, rtt_ms: u64, loss: f64, burst: Option<f64>) -> PathConfig {
    let loss = Probability::new(loss).expect("a probability");
    let model =
        burst.map_or(LossModel::Bernoulli(loss), |burst| LossModel::bursts(loss, burst).expect("possible"));
    let rate = Rate::from_megabits_per_second(megabits);
    PathConfig::new(rate, Duration::from_millis(rtt_ms), model).with_lossless_return()
}
