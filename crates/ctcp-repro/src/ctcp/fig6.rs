//! Fig. 6: two CTCP flows share a lossy link of 25 ms. The second begins when the first uses the whole link.
//!
//! Their tokens converge (a, at 25 Mbit/s and 5 %), and they get the same share over a range of rates and losses (b).
//! Profile `default` is included, because the claim applies to any flow that calls itself CTCP.
//!
//! Requirement: C9

use core::time::Duration;

use ctcp_sim::measure::jain;
use ctcp_sim::series::{ConnectionSample, increments};

use super::PAPER;
use super::contender::Contender;
use super::shared_link::Bottleneck;
use crate::changes::Parameter;
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::summary;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "ctcp-fig6",
    paper: PAPER,
    title: "two CTCP flows share a lossy link",
    plan,
    takes: &[Parameter::Time],
};

const MEGABITS: [u64; 2] = [10, 25];
const LOSSES: [f64; 5] = [0.001, 0.01, 0.05, 0.1, 0.2];
/// The link of Fig. 6a.
pub const SHOWN: Bottleneck = Bottleneck { megabits: 25, rtt_millis: 25, loss: 0.05, buffer: 1.0 };
/// Interval between two token values in the simulator.
const BIN: Duration = Duration::from_millis(500);

/// Two flows of the same transport on a link.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The transport.
    pub contender: Contender,
    /// The link.
    pub link: Bottleneck,
    /// Duration in virtual seconds.
    pub seconds: u64,
    /// The seed of the run.
    pub seed: u64,
}

/// The result of a flow: its tokens at times in seconds, and its goodput in the second half of the time, in Mbit/s.
pub type Flow = (Vec<(f64, f64)>, f64);

fn plan(settings: &Settings) -> Plan {
    let (seeds, seconds) = (settings.seeds_or(4, 1), settings.seconds_or(300, 60));
    let (links, is_quick) = (links(), settings.quick);
    let cells = cells(&links, seconds, seeds);
    Plan::new(cells, measure, move |found| outcome(seeds, is_quick, &links, found))
}

/// Returns the links of the figure.
#[must_use]
pub fn links() -> Vec<Bottleneck> {
    let links = MEGABITS.into_iter().flat_map(|megabits| LOSSES.map(|loss| (megabits, loss)));
    links.map(|(megabits, loss)| Bottleneck { megabits, loss, ..SHOWN }).collect()
}

/// Returns the runs of both coded transports on all links.
#[must_use]
pub fn cells(links: &[Bottleneck], seconds: u64, seeds: u32) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &link in links {
        for contender in Contender::OURS {
            cells.extend((0..u64::from(seeds)).map(|seed| Cell { contender, link, seconds, seed }));
        }
    }
    cells
}

impl Cell {
    /// Returns whether the tokens of this run are plotted.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        self.link == SHOWN && self.seed == 0
    }

    /// Returns when each flow begins. The second one begins after a sixth of the time.
    #[must_use]
    pub fn starts(&self) -> [Duration; 2] {
        [Duration::ZERO, Duration::from_secs(self.seconds) / 6]
    }
}

fn measure(cell: &Cell) -> ([Flow; 2], u64) {
    let time = Duration::from_secs(cell.seconds);
    let profile = cell.contender.profile();
    let mut network = cell.link.with_flows(cell.seed, &cell.starts().map(|start| (profile, start)));
    network.keep_series(BIN);
    network.run_for(time);
    let series = network.simulation.series().expect("the series is kept");
    let flows = [0, 1].map(|which: usize| {
        let flow = &network.flows()[which];
        let tokens =
            |(bin, sample): (usize, &ConnectionSample)| ((bin + 1) as f64 * BIN.as_secs_f64(), sample.window);
        let samples = series.connection(flow.sender).iter().enumerate();
        let tokens = if cell.is_shown() { samples.map(tokens).collect() } else { Vec::new() };
        let read = increments(series.connection(flow.receiver), |sample| sample.bytes_read);
        let half = read.len() / 2;
        let seconds = (read.len() - half) as f64 * BIN.as_secs_f64();
        (tokens, read[half..].iter().sum::<u64>() as f64 * 8e-6 / seconds)
    });
    (flows, network.simulation.events())
}

/// Evaluates the flows, each pair with its number of events.
#[must_use]
pub fn outcome(
    seeds: u32,
    is_quick: bool,
    links: &[Bottleneck],
    found: &[(Cell, ([Flow; 2], u64))],
) -> Outcome {
    let plot = Plot {
        title: "Two flows at 25 Mbit/s, 25 ms, 5 % loss (CTCP, Fig. 6a)",
        x: Axis { label: "time (s)", scale: Scale::Linear },
        y: Axis { label: "tokens (packets)", scale: Scale::Linear },
        hidden: &["goodput against loss"],
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    let names = ["first", "second"];
    for contender in Contender::OURS {
        for &link in links {
            let runs: Vec<&[Flow; 2]> = found
                .iter()
                .filter(|(cell, _)| cell.contender == contender && cell.link == link)
                .map(|(_, (flows, _))| flows)
                .collect();
            for (which, name) in names.iter().enumerate() {
                let tokens = runs.first().into_iter().flat_map(|flows| &flows[which].0);
                for &(time, tokens) in tokens.filter(|(_, tokens)| *tokens > 0.0) {
                    outcome.exact(&format!("{}, {name} flow", contender.name()), time, tokens);
                }
                let goodput: Vec<f64> = runs.iter().map(|flows| flows[which].1).collect();
                let series = format!(
                    "{}, {name} flow, {} Mbit/s: goodput against loss",
                    contender.name(),
                    link.megabits
                );
                outcome.point(&series, link.loss, &summary(&goodput));
            }
            let fairness = runs.iter().map(|[first, second]| jain(&[first.1, second.1]));
            let name = format!(
                "{}, {} Mbit/s, {} %: Jain's index, second half, worst seed",
                contender.name(),
                link.megabits,
                100.0 * link.loss
            );
            // Twenty seconds are too short for two flows with little loss.
            if is_quick && link.loss < 0.01 {
                outcome.skip(name);
            } else {
                outcome.check(name, Want::AtLeast(0.98), fairness.reduce(f64::min).unwrap_or(f64::NAN));
            }
        }
    }
    outcome.events = found.iter().map(|(_, (_, events))| events).sum();
    outcome.notes = vec![
        "tokens over time are those of seed 0; the goodputs of Fig. 6b, in Mbit/s over the second half, are in the files",
        "the text prints no numbers of this figure",
    ];
    outcome
}
