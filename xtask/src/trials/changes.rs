//! A flow on a link that changes: how many round trips pass until it uses the link again.

use core::fmt;
use core::time::Duration;

use ctcp_netem::{IPV4_UDP_OVERHEAD, PathConfig, Schedule};
use ctcp_proto::TransportConfig;
use ctcp_sim::Simulation;
use ctcp_sim::application::script::Script;
use ctcp_sim::link::Direction;
use ctcp_sim::network::{FlowConfig, Network};
use ctcp_sim::topology::Chain;

use super::bottleneck;

/// When the link changes, and for how long it is dead if it is.
const CHANGE: Duration = Duration::from_secs(10);
const DEAD: Duration = Duration::from_secs(5);

/// The share of the link from which it counts as used, in the mean of so many round trips. Yielding for two of them leaves 0.87.
const USED: f64 = 0.85;
const MEAN: usize = 3;

/// The reaction to a queue, or to its losses, comes so many round trips after the change at the latest.
const REACTION: usize = 20;

/// The most round trips that are looked at.
const ROUNDS: usize = 400;

/// What happens.
#[derive(Clone, Copy, Debug)]
enum Event {
    Halved,
    Doubled,
    /// The route becomes 80 ms longer, or shorter.
    Longer,
    Shorter,
    /// Nothing gets through for five seconds.
    Dead,
}

/// A cell of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Changing {
    /// The smaller of the two rates, and the shorter of the two round trips.
    megabits: u64,
    rtt: Duration,
    loss: f64,
    event: Event,
}

/// Every cell.
pub(super) fn cells() -> Vec<Changing> {
    let mut cells = Vec::new();
    for (megabits, rtt) in [(10, 40), (25, 20), (100, 100), (5, 300)] {
        for loss in [0.0, 0.01, 0.05] {
            for event in [Event::Halved, Event::Doubled, Event::Longer, Event::Shorter, Event::Dead] {
                cells.push(Changing { megabits, rtt: Duration::from_millis(rtt), loss, event });
            }
        }
    }
    cells
}

impl fmt::Display for Changing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { megabits, rtt, loss, event } = self;
        write!(formatter, "/{megabits} Mbit/s {} ms loss {loss} {event:?}", rtt.as_millis())
    }
}

impl Changing {
    /// The rate and round trip before and after the change.
    fn phases(&self) -> [(u64, Duration); 2] {
        let Self { megabits, rtt, .. } = *self;
        let longer = rtt + Duration::from_millis(80);
        match self.event {
            Event::Halved => [(2 * megabits, rtt), (megabits, rtt)],
            Event::Doubled => [(megabits, rtt), (2 * megabits, rtt)],
            Event::Longer => [(megabits, rtt), (megabits, longer)],
            Event::Shorter => [(megabits, longer), (megabits, rtt)],
            Event::Dead => [(megabits, rtt); 2],
        }
    }

    /// Round trips of the changed path until it is used again, or `None`: 0 if it is used all the time. After a dead path they count from the
    /// first packet that is acknowledged.
    pub(super) fn run(&self, seed: u64, transport: &TransportConfig) -> Option<usize> {
        let phases = self.phases();
        let [before, after] = phases.map(|(megabits, rtt)| bottleneck(megabits, rtt, 1.0, self.loss));
        let mut chain = Chain::dumbbell(seed, &before);
        chain.flow(FlowConfig::new(Script::endless(), transport));
        let mut network = chain.build();
        network.simulation.set_scrutiny(ctcp_sim::Scrutiny::LIGHT);
        self.change(&mut network, &after);
        let [_, (_, rtt)] = phases;
        let all = after.forward.rate.bytes_in(rtt) as f64;
        let shares: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let before = arrived(&network);
                network.run_for(rtt);
                (arrived(&network) - before) as f64 / all
            })
            .collect();
        // The first packet arrives in this round trip, and its ACK in the next one.
        let first = if matches!(self.event, Event::Dead) {
            1 + shares.iter().position(|&share| share > 0.0)?
        } else {
            0
        };
        let means = shares.get(first..)?.windows(MEAN).map(|shares| shares.iter().sum::<f64>() / MEAN as f64);
        used_again(&means.collect::<Vec<f64>>())
    }

    /// Runs until the link has changed, or is alive again.
    fn change(&self, network: &mut Network, after: &PathConfig) {
        let link = network.hops()[0];
        let ways = [(Direction::Forward, &after.forward), (Direction::Backward, &after.backward)];
        if matches!(self.event, Event::Dead) {
            for (way, _) in ways {
                let schedule = Schedule::default().with_blackout(Simulation::START + CHANGE, DEAD);
                network.simulation.set_schedule(link, way, schedule);
            }
            network.run_for(CHANGE + DEAD);
            return;
        }
        network.run_for(CHANGE);
        // The queue holds as many packets as before.
        for (way, config) in ways {
            let queue = network.simulation.link(link).way(way).config().queue;
            network.simulation.set_link(link, way, config.clone().with_queue(queue));
        }
    }
}

/// The end of the first time in which less than the link was used; 0 if there is none.
fn used_again(means: &[f64]) -> Option<usize> {
    let Some(dip) = means.iter().take(REACTION).position(|&mean| mean < USED) else { return Some(0) };
    let rounds = means[dip..].iter().position(|&mean| mean >= USED)?;
    Some(dip + rounds)
}

/// Bytes that have arrived so far, as the link counts them.
fn arrived(network: &Network) -> u64 {
    let stats = network.receiver_stats(0);
    stats.bytes_received + IPV4_UDP_OVERHEAD * stats.datagrams_received
}

/// The median and the most of `runs`, and how many took at most 10 round trips.
pub(super) fn summary(runs: &[Option<usize>]) -> String {
    let mut sorted: Vec<usize> = runs.iter().map(|run| run.unwrap_or(usize::MAX)).collect();
    sorted.sort_unstable();
    let name = |rounds: usize| if rounds == usize::MAX { "never".to_owned() } else { rounds.to_string() };
    let within = sorted.iter().filter(|&&rounds| rounds <= 10).count();
    let (median, most) = (sorted[sorted.len() / 2], sorted[sorted.len() - 1]);
    format!("median {}, most {}, {within} of {} within 10", name(median), name(most), sorted.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_uses_an_ordinary_link_again_and_the_summary_names_runs_that_never_do() {
        let cell = |event| Changing { megabits: 25, rtt: Duration::from_millis(20), loss: 0.0, event };
        let transport = super::super::transport("default").expect("it exists");
        for event in [Event::Longer, Event::Doubled, Event::Dead] {
            let rounds = cell(event).run(1, &transport);
            assert!(rounds.is_some_and(|rounds| (1..100).contains(&rounds)), "{event:?}: {rounds:?}");
        }
        assert_eq!(used_again(&[1.5, 1.0, 0.4, 0.6, 0.9]), Some(4), "a collapse after the change");
        assert_eq!((used_again(&[0.9; 30]), used_again(&[0.5; 30])), (Some(0), None));
        assert_eq!(summary(&[Some(3), None, Some(12)]), "median 12, most never, 1 of 3 within 10");
    }
}
