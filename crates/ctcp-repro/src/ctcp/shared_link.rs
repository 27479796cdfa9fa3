//! The link of the paper's section 6: a bottleneck with a drop-tail queue, in front of which packets are lost.
//!
//! ```text
//!   sender --- loss --- [ queue ] === rate, half an RTT ==> receiver        acknowledgements return without loss
//! ```
//!
//! Packets have their true sizes, including IP and UDP headers, as on the testbed.

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_baselines::CLASSIC;
use ctcp_netem::{LossModel, PathConfig, QueueLimit};
use ctcp_proto::congestion::Algorithm;
use ctcp_proto::{Profile, TransportConfig};
use ctcp_sim::Scrutiny;
use ctcp_sim::application::script::Script;
use ctcp_sim::network::{FlowConfig, Network};
use ctcp_sim::topology::Chain;

use crate::changes::Changes;

/// The link of a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bottleneck {
    /// Rate in Mbit/s.
    pub megabits: u64,
    /// Round-trip time without queueing.
    pub rtt_millis: u64,
    /// Share of data packets lost.
    pub loss: f64,
    /// Queue in bandwidth-delay products.
    pub buffer: f64,
}

impl Bottleneck {
    /// Returns the link with another rate or round-trip time.
    pub(super) fn changed_by(self, changes: Changes) -> Self {
        Self {
            megabits: changes.megabits.unwrap_or(self.megabits),
            rtt_millis: changes.rtt_millis.unwrap_or(self.rtt_millis),
            ..self
        }
    }

    /// Returns both directions for the link model. Acknowledgements are not lost.
    ///
    /// # Panics
    /// Panics if the loss is not a probability.
    #[must_use]
    pub fn path(self) -> PathConfig {
        let (rate, rtt) =
            (Rate::from_megabits_per_second(self.megabits), Duration::from_millis(self.rtt_millis));
        let loss = LossModel::Bernoulli(Probability::new(self.loss).expect("a probability"));
        let path = PathConfig::new(rate, rtt, loss).with_lossless_return();
        let queue = QueueLimit::bandwidth_delay_products(self.buffer, rate, rtt);
        PathConfig { forward: path.forward.with_queue(queue), ..path }
    }

    /// Returns the link with endless flows that have not begun.
    pub(super) fn with_flows(self, seed: u64, flows: &[(Profile, Duration)]) -> Network {
        with_flows(seed, &self.path(), flows)
    }

    /// Returns the share of the link's rate that a single flow gets in the first `seconds`, and the number of events.
    pub(super) fn share_alone(self, seed: u64, profile: Profile, seconds: u64) -> (f64, u64) {
        let time = Duration::from_secs(seconds);
        let mut network = self.with_flows(seed, &[(profile, Duration::ZERO)]);
        network.run_for(time);
        (self.share(&network, 0, time), network.simulation.events())
    }

    /// Returns the share of the link's rate that the application of a flow got over `time`.
    pub(super) fn share(self, network: &Network, flow: usize, time: Duration) -> f64 {
        network.bytes_read(flow) as f64 * 8.0 / time.as_secs_f64() / (self.megabits as f64 * 1e6)
    }
}

/// Returns a path shared by endless flows that have not begun.
pub(super) fn with_flows(seed: u64, path: &PathConfig, flows: &[(Profile, Duration)]) -> Network {
    let mut dumbbell = Chain::dumbbell(seed, path);
    for &(profile, start) in flows {
        let transport = TransportConfig { profile, ..TransportConfig::default() };
        dumbbell.flow(FlowConfig::new(Script::endless(), &transport).starting_after(start));
    }
    let mut network = dumbbell.build();
    network.simulation.set_scrutiny(Scrutiny::LIGHT);
    network
}

/// Returns the goodput of a single flow on a path in Mbit/s over the first `seconds`, and the number of events.
pub(super) fn goodput_alone(seed: u64, path: &PathConfig, profile: Profile, seconds: u64) -> (f64, u64) {
    let mut network = with_flows(seed, path, &[(profile, Duration::ZERO)]);
    network.run_for(Duration::from_secs(seconds));
    (network.bytes_read(0) as f64 * 8e-6 / seconds as f64, network.simulation.events())
}

/// TCP exactly as in the RFCs: no coding, cumulative acknowledgements, fast retransmit, and one timer of at least 0.2
/// s.
///
/// A kernel's TCP lies between this and [`tcp`]. Up to 5 % loss all three get the same. At 20 % this gets a third to
/// two thirds of a kernel's share, and `tcp` gets two and a half times that share.
pub(super) fn classical_tcp(congestion: Algorithm) -> Profile {
    Profile { congestion, code: CLASSIC, ..Profile::TCP }
}

/// Profile `tcp`: no coding, selective retransmission.
pub(super) fn tcp(congestion: Algorithm) -> Profile {
    Profile { congestion, ..Profile::TCP }
}
