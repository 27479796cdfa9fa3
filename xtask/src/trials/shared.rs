//! One path, or several, through one link alongside a flow of another kind.

use core::fmt;
use core::time::Duration;

use ctcp_netem::{LinkConfig, PathConfig};
use ctcp_proto::{PathMode, TransportConfig};
use ctcp_repro::control::bottleneck;
use ctcp_sim::application::script::Script;
use ctcp_sim::measure::goodput_share;
use ctcp_sim::network::FlowConfig;
use ctcp_sim::topology::Chain;

/// When the second flow begins.
const SECOND: Duration = Duration::from_secs(2);

/// A cell of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shared {
    megabits: u64,
    rtt: Duration,
    /// In bandwidth-delay products.
    queue: f64,
    loss: f64,
}

/// Every cell.
pub(super) fn cells() -> Vec<Shared> {
    let mut cells = Vec::new();
    for megabits in [5, 10, 25, 100] {
        for rtt in [20, 60] {
            for queue in [0.5, 1.0, 4.0] {
                for loss in [0.0, 0.01] {
                    cells.push(Shared { megabits, rtt: Duration::from_millis(rtt), queue, loss });
                }
            }
        }
    }
    cells
}

impl fmt::Display for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { megabits, rtt, queue, loss } = self;
        write!(formatter, "/{megabits} Mbit/s {} ms queue {queue} loss {loss}", rtt.as_millis())
    }
}

/// Shares of the link that the rival and the other flow get.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shares {
    rival: f64,
    other: f64,
}

impl Shared {
    /// Runs two flows, of which one is `rival` and the other has so many paths. The rival begins first for even seeds. Their bytes count for
    /// `time` from the start of the second flow on.
    pub(super) fn run(
        &self,
        seed: u64,
        rival: &TransportConfig,
        other: (&TransportConfig, usize, PathMode),
        time: Duration,
    ) -> Shares {
        let path = bottleneck(self.megabits, self.rtt, self.queue, self.loss);
        let mut chain = Chain::dumbbell(seed, &path);
        let (transport, paths, path_mode) = other;
        let transport = TransportConfig { path_mode, ..transport.clone() };
        // The start of the second flow varies with the seed.
        let second = SECOND + Duration::from_millis(37) * (seed % 16) as u32;
        let starts = if seed.is_multiple_of(2) { [Duration::ZERO, second] } else { [second, Duration::ZERO] };
        let access = vec![PathConfig::symmetric(LinkConfig::default()); paths];
        let rival = chain.flow(FlowConfig::new(Script::endless(), rival).starting_after(starts[0]));
        let other = FlowConfig::new(Script::endless(), &transport).starting_after(starts[1]);
        let other = chain.flow(other.over_several(&access));
        let mut network = chain.build();
        network.simulation.set_scrutiny(ctcp_sim::Scrutiny::LIGHT);
        network.run_for(second);
        let before = [rival, other].map(|flow| network.bytes_read(flow));
        network.run_for(time);
        let after = [rival, other].map(|flow| network.bytes_read(flow));
        let share = |flow: usize| goodput_share(after[flow] - before[flow], time, path.forward.rate);
        Shares { rival: share(0), other: share(1) }
    }
}

/// The medians over all runs, of each flow by itself; the upper one of two.
pub(super) fn medians(shares: &[Shares]) -> Shares {
    let median = |of: fn(&Shares) -> f64| {
        let mut values: Vec<f64> = shares.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Shares { rival: median(|shares| shares.rival), other: median(|shares| shares.other) }
}

impl Shares {
    /// What the rival keeps of its share alongside its own kind, which is `usual`.
    pub(super) fn kept(&self, usual: &Self) -> f64 {
        self.rival / ((usual.rival + usual.other) / 2.0)
    }

    /// What the other flow gets of what one of the rival's kind gets there.
    pub(super) fn got(&self, usual: &Self) -> f64 {
        self.other / ((usual.rival + usual.other) / 2.0)
    }
}

impl fmt::Display for Shares {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.3} + {:.3}", self.rival, self.other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rival_keeps_what_it_gets_of_the_mean_of_two_of_its_kind() {
        let shares = |rival, other| Shares { rival, other };
        let usual = medians(&[shares(0.4, 0.5), shares(0.2, 0.7), shares(0.5, 0.4)]);
        assert_eq!((usual.rival, usual.other), (0.4, 0.5));
        assert!((shares(0.36, 0.6).kept(&usual) - 0.8).abs() < 1e-9);
        assert!((shares(0.36, 0.54).got(&usual) - 1.2).abs() < 1e-9);
    }
}
