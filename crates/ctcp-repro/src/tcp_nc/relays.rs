//! What a relay gains by re-encoding, against one that repeats what its next hop lacks, and against none: the delay of a
//! stream, and what a relay holds during a transfer.
//!
//! ```text
//!   one relay            client ==== relay ==== server         every link: 25 Mbit/s, 20 ms, the same loss both ways
//!
//!                             /==== relay ====\
//!   two side by side     client                server
//!                             \==== relay ====/
//! ```
//!
//! The paper re-encodes for throughput. On a chain, repetition reaches the same throughput, so these are the figures in which
//! they can differ.
//!
//! Requirement: N5

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_netem::{LossModel, PathConfig};
use ctcp_proto::{HopRepair, TransportConfig};
use ctcp_sim::Scrutiny;
use ctcp_sim::application::script::Script;
use ctcp_sim::messages::Messages;
use ctcp_sim::network::{FlowConfig, Network};
use ctcp_sim::topology::{Chain, Relayed};

use super::PAPER;
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::summary;

pub(crate) const DELAY: Experiment = Experiment {
    id: "relays-delay",
    paper: PAPER,
    title: "a stream of messages through relays that re-encode, repeat, or are not there",
    plan: plan_delay,
    takes: &[],
};

pub(crate) const MEMORY: Experiment = Experiment {
    id: "relays-memory",
    paper: PAPER,
    title: "what a relay holds during a transfer, if it re-encodes or repeats",
    plan: plan_memory,
    takes: &[],
};

/// Losses of every link, in each direction.
const LOSSES: [f64; 5] = [0.0, 0.05, 0.1, 0.15, 0.2];
const MEGABITS: u64 = 25;
/// The round trip of a link.
const RTT: Duration = Duration::from_millis(20);

/// How long the stream lasts, in a full and in a quick run.
const STREAM_SECONDS: (u64, u64) = (60, 15);
/// How long a transfer lasts.
const TRANSFER_SECONDS: u64 = 6;
/// How often the memory is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// What is between client and server.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Between {
    /// Both links without a relay.
    Nothing,
    Relay(HopRepair),
    Two(HopRepair),
}

impl Between {
    const ALL: [Self; 5] = [
        Self::Relay(HopRepair::Combinations),
        Self::Relay(HopRepair::Repetitions),
        Self::Nothing,
        Self::Two(HopRepair::Combinations),
        Self::Two(HopRepair::Repetitions),
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "end to end",
            Self::Relay(HopRepair::Combinations) => "a relay re-encodes",
            Self::Relay(HopRepair::Repetitions) => "a relay repeats",
            Self::Two(HopRepair::Combinations) => "two side by side re-encode",
            Self::Two(HopRepair::Repetitions) => "two side by side repeat",
        }
    }

    /// Returns the network with a flow of this script, and its first relay.
    fn network(self, seed: u64, loss: f64, script: Script) -> (Network, Option<ctcp_sim::node::NodeId>) {
        let loss = LossModel::Bernoulli(Probability::new(loss).expect("a probability"));
        let link = PathConfig::new(Rate::from_megabits_per_second(MEGABITS), RTT, loss);
        let flow = FlowConfig::new(script, &TransportConfig::default());
        let (mut network, relay) = match self {
            Self::Nothing => {
                let mut chain = Chain::new(seed, &[link.clone(), link]);
                chain.flow(flow);
                (chain.build(), None)
            }
            Self::Relay(repair) => {
                let mut chain = Relayed::chain(seed, &[link.clone(), link], repair);
                chain.flow(0, 2, &[&[1]], flow);
                let relay = chain.relay_at(1);
                (chain.build(), relay)
            }
            Self::Two(repair) => {
                let mut diamond = Relayed::diamond(seed, &link, repair);
                diamond.flow(0, 3, &[&[1], &[2]], flow);
                let relay = diamond.relay_at(1);
                (diamond.build(), relay)
            }
        };
        network.simulation.set_scrutiny(Scrutiny::LIGHT);
        (network, relay)
    }
}

/// A case, a loss and a seed.
type Cell = (Between, f64, u64);

fn cells(of: &[Between], seeds: u32) -> Vec<Cell> {
    let cases = of.iter().flat_map(|&between| LOSSES.map(|loss| (between, loss)));
    cases.flat_map(|(between, loss)| (0..u64::from(seeds)).map(move |seed| (between, loss, seed))).collect()
}

fn plan_delay(settings: &Settings) -> Plan {
    let (seeds, seconds) =
        (settings.seeds_or(20, 3), settings.seconds_or(STREAM_SECONDS.0, STREAM_SECONDS.1));
    let measure = move |&(between, loss, seed): &Cell| -> (f64, f64) {
        let rate = Rate::from_megabits_per_second(3);
        let messages = Messages { bytes: 1_200, rate, time: Duration::from_secs(seconds) };
        let (mut network, _) = between.network(seed, loss, messages.script());
        // A message that never arrives is as late as the end of the run.
        let limit = seconds as f64 * 1e3;
        let [half, most] = messages.delays_in(&mut network, [0.5, 0.99]).map(|delay| delay.min(limit));
        (half, most)
    };
    Plan::new(cells(&Between::ALL, seeds), measure, move |found| delays(seeds, found))
}

fn plan_memory(settings: &Settings) -> Plan {
    let seeds = settings.seeds_or(20, 2);
    let measure = |&(between, loss, seed): &Cell| -> f64 {
        let (mut network, relay) = between.network(seed, loss, Script::endless());
        let relay = relay.expect("a case with a relay");
        let mut most = 0;
        for _ in 0..Duration::from_secs(TRANSFER_SECONDS).as_millis() / LOOK.as_millis() {
            network.run_for(LOOK);
            most = most.max(network.simulation.host(relay).relayed_memory());
        }
        most as f64 / 1e3
    };
    let with_relays: Vec<Between> =
        Between::ALL.into_iter().filter(|between| *between != Between::Nothing).collect();
    Plan::new(cells(&with_relays, seeds), measure, move |found| memory(seeds, found))
}

/// Adds a point for each case and loss, and returns their means by case in the order of losses.
fn add<F>(outcome: &mut Outcome, suffix: &str, found: &[(Cell, F)], value: impl Fn(&F) -> f64) -> Means {
    let mut means = Vec::new();
    for between in Between::ALL {
        for loss in LOSSES {
            let runs = found.iter().filter(|((case, of, _), _)| *case == between && *of == loss);
            let values: Vec<f64> = runs.map(|(_, found)| value(found)).collect();
            if !values.is_empty() {
                let of_seeds = summary(&values);
                outcome.point(&format!("{}{suffix}", between.name()), loss * 100.0, &of_seeds);
                means.push((between, loss, of_seeds.mean));
            }
        }
    }
    Means(means)
}

struct Means(Vec<(Between, f64, f64)>);

impl Means {
    fn of(&self, between: Between, loss: f64) -> f64 {
        let found = self.0.iter().find(|(case, of, _)| *case == between && *of == loss);
        found.map_or(f64::NAN, |(.., mean)| *mean)
    }
}

const RECODES: Between = Between::Relay(HopRepair::Combinations);
const REPEATS: Between = Between::Relay(HopRepair::Repetitions);

fn delays(seeds: u32, found: &[(Cell, (f64, f64))]) -> Outcome {
    let plot = Plot {
        title: "A stream of 3 Mbit/s through relays: the delay that one message in a hundred exceeds",
        x: Axis { label: "loss of every link (%)", scale: Scale::Linear },
        y: Axis { label: "delay (ms)", scale: Scale::Logarithmic },
        hidden: &[", half of all"],
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    let most = add(&mut outcome, "", found, |(_, most)| *most);
    let half = add(&mut outcome, ", half of all", found, |(half, _)| *half);
    for loss in [0.1, 0.2] {
        let of = |means: &Means| means.of(REPEATS, loss) / means.of(RECODES, loss);
        outcome.check(
            format!("99 of 100 messages, repeating / re-encoding at {loss}"),
            Want::AtLeast(1.2),
            of(&most),
        );
        outcome.check(
            format!("half of the messages, repeating / re-encoding at {loss}"),
            Want::AtLeast(1.2),
            of(&half),
        );
    }
    outcome.notes = vec![
        "25 Mbit/s and 20 ms a link, lost before the limiter, in both directions; messages of 1200 bytes in order",
        "relays that only forward cannot be told from none here: end to end",
    ];
    outcome
}

fn memory(seeds: u32, found: &[(Cell, f64)]) -> Outcome {
    let plot = Plot {
        title: "The most that a relay holds during a transfer",
        x: Axis { label: "loss of every link (%)", scale: Scale::Linear },
        y: Axis { label: "KB", scale: Scale::Linear },
        hidden: &[],
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    let most = add(&mut outcome, "", found, |held| *held);
    outcome.check(
        "re-encoding / repeating at 0.2",
        Want::AtMost(1.5),
        most.of(RECODES, 0.2) / most.of(REPEATS, 0.2),
    );
    outcome.notes = vec![
        "an upload of six seconds from cold; a relay holds what its next hop lacks and a few symbols more, in rows of one symbol or a sum of several",
    ];
    outcome
}
