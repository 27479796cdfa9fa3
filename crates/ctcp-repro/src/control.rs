//! Figures of the default congestion controller, which are in no paper, and the link of its trials.

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_netem::{LossModel, PathConfig, QueueLimit};

pub(crate) mod changes;

/// The name of the source in every outcome.
const PAPER: &str = "The default controller";

/// A link of `megabits` Mbit/s that flows share. Its queue is in bandwidth-delay products, but at least ten packets. `loss` is a share of
/// packets, lost on the way out and before the queue.
///
/// # Panics
/// Panics if `loss` is not between 0 and 1.
#[must_use]
pub fn bottleneck(megabits: u64, rtt: Duration, queue: f64, loss: f64) -> PathConfig {
    let rate = Rate::from_megabits_per_second(megabits);
    let loss = LossModel::Bernoulli(Probability::new(loss).expect("a share"));
    let path = PathConfig::new(rate, rtt, loss).with_lossless_return();
    let queue = QueueLimit::bandwidth_delay_products(queue, rate, rtt).at_least(10);
    PathConfig { forward: path.forward.with_queue(queue), ..path }
}
