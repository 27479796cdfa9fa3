//! A flow on a link that changes: its share of the link in the round trips after the change, and how many pass until it uses the link again.
//!
//! ```text
//!   sender ====== link ====== receiver       after ten seconds the link's rate halves or doubles, its route becomes 80 ms longer or shorter,
//!                                            or nothing gets through for five seconds
//! ```
//!
//! A round trip is that of the link after the change, without a queue.

use core::time::Duration;

use ctcp_netem::{PathConfig, Schedule};
use ctcp_proto::TransportConfig;
use ctcp_sim::application::script::Script;
use ctcp_sim::link::Direction;
use ctcp_sim::network::{FlowConfig, Network};
use ctcp_sim::topology::Chain;
use ctcp_sim::{Scrutiny, Simulation};

use super::{PAPER, bottleneck};
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::summary;

pub(crate) const HALVED: Experiment = Experiment {
    id: "change-halved",
    paper: PAPER,
    title: "the rate of a link halves",
    plan: |settings| plan(Change::Halved, settings),
    takes: &[],
};

pub(crate) const DOUBLED: Experiment = Experiment {
    id: "change-doubled",
    paper: PAPER,
    title: "the rate of a link doubles",
    plan: |settings| plan(Change::Doubled, settings),
    takes: &[],
};

pub(crate) const LONGER: Experiment = Experiment {
    id: "change-longer",
    paper: PAPER,
    title: "a route becomes 80 ms longer",
    plan: |settings| plan(Change::Longer, settings),
    takes: &[],
};

pub(crate) const SHORTER: Experiment = Experiment {
    id: "change-shorter",
    paper: PAPER,
    title: "a route becomes 80 ms shorter",
    plan: |settings| plan(Change::Shorter, settings),
    takes: &[],
};

pub(crate) const DEAD: Experiment = Experiment {
    id: "change-dead",
    paper: PAPER,
    title: "a path is dead for five seconds",
    plan: |settings| plan(Change::Dead, settings),
    takes: &[],
};

/// When the link changes, for how long it is dead if it is, and how much longer a route is.
const AT: Duration = Duration::from_secs(10);
const DEAD_FOR: Duration = Duration::from_secs(5);
const LONGER_BY: Duration = Duration::from_millis(80);

/// The share of the link from which it counts as used, in the mean of so many round trips. Yielding for two of them leaves 0.87.
const USED: f64 = 0.85;
const MEAN: usize = 3;

/// The reaction to a queue, or to its losses, comes so many round trips after the change at the latest.
const REACTION: usize = 20;

/// The round trips that are looked at, and drawn. A flow that does not use the link by then counts as if it did then.
const ROUNDS: usize = 100;
const DRAWN: usize = 40;

/// The most round trips until the link is used again.
const WANTED: f64 = 10.0;

/// Rate (Mbit/s) and round trip (ms) of the slower link and of the shorter route, and the losses before the queue.
const LINKS: [(u64, u64); 4] = [(10, 40), (25, 20), (100, 100), (5, 300)];
const LOSSES: [f64; 3] = [0.0, 0.01, 0.05];

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    Halved,
    Doubled,
    Longer,
    Shorter,
    Dead,
}

/// A run.
#[derive(Clone, Copy, Debug)]
struct Cell {
    change: Change,
    megabits: u64,
    rtt_millis: u64,
    loss: f64,
    seed: u64,
}

impl Cell {
    /// The rate and round trip before and after the change.
    fn phases(&self) -> [(u64, Duration); 2] {
        let (rate, rtt) = (self.megabits, Duration::from_millis(self.rtt_millis));
        match self.change {
            Change::Halved => [(2 * rate, rtt), (rate, rtt)],
            Change::Doubled => [(rate, rtt), (2 * rate, rtt)],
            Change::Longer => [(rate, rtt), (rate, rtt + LONGER_BY)],
            Change::Shorter => [(rate, rtt + LONGER_BY), (rate, rtt)],
            Change::Dead => [(rate, rtt); 2],
        }
    }

    /// The share of the link that is used in each round trip after the change. After a dead path they begin with the first packet that is
    /// acknowledged.
    fn shares(&self) -> Vec<f64> {
        let phases = self.phases();
        let [before, after] = phases.map(|(megabits, rtt)| bottleneck(megabits, rtt, 1.0, self.loss));
        // Flow control is not part of the figure.
        let transport = TransportConfig {
            stream_credit: 64 << 20,
            stream_credit_max: 256 << 20,
            connection_credit: 256 << 20,
            connection_credit_max: 256 << 20,
            ..TransportConfig::default()
        };
        let mut chain = Chain::dumbbell(self.seed, &before);
        chain.flow(FlowConfig::new(Script::endless(), &transport));
        let mut network = chain.build();
        network.simulation.set_scrutiny(Scrutiny::LIGHT);
        self.change(&mut network, &after);
        let [_, (_, rtt)] = phases;
        let all = after.forward.rate.bytes_in(rtt) as f64;
        if self.change == Change::Dead {
            let acks = |network: &Network| network.sender_stats(0).datagrams_received;
            let before = acks(&network);
            for _ in 0..ROUNDS {
                if acks(&network) > before {
                    break;
                }
                network.run_for(rtt);
            }
        }
        let share = |_| {
            let before = network.bytes_arrived(0);
            network.run_for(rtt);
            (network.bytes_arrived(0) - before) as f64 / all
        };
        (0..ROUNDS).map(share).collect()
    }

    /// Runs until the link has changed, or is alive again.
    fn change(&self, network: &mut Network, after: &PathConfig) {
        let link = network.hops()[0];
        let ways = [(Direction::Forward, &after.forward), (Direction::Backward, &after.backward)];
        if self.change == Change::Dead {
            for (way, _) in ways {
                let schedule = Schedule::default().with_blackout(Simulation::START + AT, DEAD_FOR);
                network.simulation.set_schedule(link, way, schedule);
            }
            network.run_for(AT + DEAD_FOR);
            return;
        }
        network.run_for(AT);
        // The queue holds as many packets as before.
        for (way, config) in ways {
            let queue = network.simulation.link(link).way(way).config().queue;
            network.simulation.set_link(link, way, config.clone().with_queue(queue));
        }
    }
}

/// The round trips until the end of the first time in which less than the link was used: 0 if there is none, [`ROUNDS`] if it does not end.
fn rounds_until_used(shares: &[f64]) -> usize {
    let means: Vec<f64> =
        shares.windows(MEAN).map(|shares| shares.iter().sum::<f64>() / MEAN as f64).collect();
    let Some(dip) = means.iter().take(REACTION).position(|&mean| mean < USED) else { return 0 };
    let rounds = means[dip..].iter().position(|&mean| mean >= USED);
    rounds.map_or(ROUNDS, |rounds| dip + rounds)
}

fn plan(change: Change, settings: &Settings) -> Plan {
    let seeds = settings.seeds_or(8, 1);
    let mut cells = Vec::new();
    for (megabits, rtt_millis) in LINKS {
        for loss in LOSSES {
            cells.extend((0..u64::from(seeds)).map(|seed| Cell { change, megabits, rtt_millis, loss, seed }));
        }
    }
    Plan::new(cells, Cell::shares, move |found| outcome(change, seeds, found))
}

fn outcome(change: Change, seeds: u32, found: &[(Cell, Vec<f64>)]) -> Outcome {
    let title = match change {
        Change::Halved => "The rate of a link halves: the share that a flow uses, 1 % lost",
        Change::Doubled => "The rate of a link doubles: the share that a flow uses, 1 % lost",
        Change::Longer => "A route becomes 80 ms longer: the share that a flow uses, 1 % lost",
        Change::Shorter => "A route becomes 80 ms shorter: the share that a flow uses, 1 % lost",
        Change::Dead => "A path was dead for five seconds: the share that a flow uses, 1 % lost",
    };
    let plot = Plot {
        title,
        x: Axis { label: "round trips since the change", scale: Scale::Linear },
        y: Axis { label: "share of the link", scale: Scale::Percent },
        hidden: &[", no loss", ", 5 % lost"],
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    for (megabits, rtt_millis) in LINKS {
        for loss in LOSSES {
            let is_here =
                |cell: &Cell| (cell.megabits, cell.rtt_millis) == (megabits, rtt_millis) && cell.loss == loss;
            let runs: Vec<&Vec<f64>> =
                found.iter().filter(|(cell, _)| is_here(cell)).map(|(_, shares)| shares).collect();
            let link = format!("{megabits} Mbit/s, {rtt_millis} ms");
            let series = match loss {
                0.0 => format!("{link}, no loss"),
                0.01 => link.clone(),
                _ => format!("{link}, {} % lost", loss * 100.0),
            };
            for round in 0..DRAWN {
                let shares: Vec<f64> = runs.iter().filter_map(|shares| shares.get(round)).copied().collect();
                outcome.point(&series, (round + 1) as f64, &summary(&shares));
            }
            let most = runs.iter().map(|shares| rounds_until_used(shares)).max().unwrap_or(ROUNDS);
            outcome.check(
                format!("{link}, {} % lost: round trips until it uses the link, worst run", loss * 100.0),
                Want::AtMost(WANTED),
                most as f64,
            );
        }
    }
    outcome.notes = vec![
        "one flow of profile default; a queue of one bandwidth-delay product of the link before the change, at least ten packets; lost before the queue",
        "the link is used again at the end of the first time in which the mean of three round trips is below 0.85",
        "100 round trips mean: not within 100",
    ];
    if change == Change::Dead {
        outcome.notes.push("round trips since the first packet that is acknowledged");
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_uses_an_ordinary_link_again() {
        for change in [Change::Longer, Change::Doubled, Change::Dead] {
            let shares = Cell { change, megabits: 25, rtt_millis: 20, loss: 0.0, seed: 1 }.shares();
            let rounds = rounds_until_used(&shares);
            assert!((1..ROUNDS).contains(&rounds), "{change:?}: {rounds}");
        }
    }

    #[test]
    fn the_first_time_in_which_less_is_used_counts() {
        assert_eq!(
            rounds_until_used(&[1.5, 1.5, 1.5, 0.0, 0.0, 0.6, 0.9, 0.9, 0.9]),
            6,
            "a collapse after the change"
        );
        assert_eq!(rounds_until_used(&[0.9; 30]), 0);
        assert_eq!(rounds_until_used(&[0.5; 30]), ROUNDS);
    }
}
