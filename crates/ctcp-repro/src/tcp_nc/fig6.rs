//! Fig. 6: throughput of two flows against the redundancy factor R, at 5 % loss on each of four hops.
//!
//! Left of the peak, R does not compensate for the end-to-end loss of 19 %, and TCP has time-outs. Right of it, unneeded
//! packets take capacity, and the throughput is 0.5/R. The published optimum is 0.397 Mbit/s near R = 1.25; a fair
//! share is 0.405.
//!
//! Requirement: N4

use core::time::Duration;

use super::PAPER;
use super::tandem::{flow, hop, tandem, tcp, tcp_nc, throughput};
use crate::changes::Parameter;
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::{Summary, summary};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "tcpnc-fig6",
    paper: PAPER,
    title: "throughput of two flows against the redundancy factor R",
    plan,
    takes: &[Parameter::Loss, Parameter::Time],
};

const HOPS: usize = 4;
const LOSS: f64 = 0.05;
const FACTORS: [f64; 14] = [1.0, 1.05, 1.1, 1.15, 1.2, 1.22, 1.23, 1.24, 1.25, 1.27, 1.3, 1.35, 1.4, 1.5];
/// The factor that stands for TCP without coding.
const UNCODED: f64 = 0.0;
const CODED: &str = "TCP/NC mean";
const PLAIN: &str = "TCP mean";

/// A run of two flows.
#[derive(Clone, Debug)]
struct Cell {
    factor: f64,
    loss: f64,
    seconds: u64,
    seed: u64,
}

fn plan(settings: &Settings) -> Plan {
    let (seeds, seconds) = (settings.seeds_or(8, 2), settings.seconds_or(10_000, 2_000));
    let (quick, loss) = (settings.quick, settings.changes.loss.unwrap_or(LOSS));
    let factors = core::iter::once(UNCODED).chain(FACTORS);
    let cells = factors
        .flat_map(|factor| (0..u64::from(seeds)).map(move |seed| Cell { factor, loss, seconds, seed }));
    Plan::new(cells.collect(), measure, move |found| outcome(quick, seeds, found))
}

/// Returns the throughputs of the two flows in Mbit/s, and the number of events.
fn measure(cell: &Cell) -> (f64, f64, u64) {
    let profile = if cell.factor == UNCODED { tcp() } else { tcp_nc(cell.factor) };
    let start = Duration::from_millis(500);
    let flows = [(); 2].map(|()| flow(profile).starting_after(start));
    let mut network = tandem(cell.seed, &[(); HOPS].map(|()| hop(cell.loss)), flows);
    let time = Duration::from_secs(cell.seconds);
    network.run_for(time);
    let got = |flow| throughput(&network, flow, time - start);
    (got(0), got(1), network.simulation.events())
}

fn outcome(quick: bool, seeds: u32, found: &[(Cell, (f64, f64, u64))]) -> Outcome {
    let plot = Plot {
        title: "Two flows over four hops that lose 5 % each (TCP/NC, Fig. 6)",
        x: Axis { label: "redundancy factor R", scale: Scale::Linear },
        y: Axis { label: "throughput of a flow (Mbit/s)", scale: Scale::Linear },
        hidden: &[],
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    let mean = |factor: f64| -> Summary {
        let cells = found.iter().filter(|(cell, _)| cell.factor == factor);
        summary(&cells.map(|(_, (one, other, _))| (one + other) / 2.0).collect::<Vec<f64>>())
    };
    let coded: Vec<(f64, Summary)> = FACTORS.iter().map(|&factor| (factor, mean(factor))).collect();
    for (factor, found) in &coded {
        outcome.point(CODED, *factor, found);
        outcome.exact("0.5/R", *factor, 0.5 / factor);
    }
    let plain = mean(UNCODED);
    for end in [FACTORS[0], FACTORS[FACTORS.len() - 1]] {
        outcome.point(PLAIN, end, &plain);
    }
    outcome.published(CODED, 1.25, 0.397);
    outcome.published(CODED, 1.0, 0.011);
    outcome.published(PLAIN, 1.0, (0.0062 + 0.0072) / 2.0);
    let (best, peak) =
        coded.iter().copied().max_by(|a, b| a.1.mean.total_cmp(&b.1.mean)).expect("there are factors");
    let at_one = coded[0].1.mean;
    let beyond = coded.iter().filter(|(factor, _)| *factor > 1.25);
    let off = beyond.map(|(factor, found)| (found.mean * factor / 0.5 - 1.0).abs()).fold(0.0, f64::max);
    if quick {
        for name in ["the best R", "throughput there", "distance from 0.5/R beyond the peak"] {
            outcome.skip(name);
        }
    } else {
        outcome.check("the best R", Want::Within { of: 1.25, margin: 0.02 }, best);
        outcome.check("throughput there", Want::Within { of: 0.397, margin: 0.02 * 0.397 }, peak.mean);
        outcome.check("distance from 0.5/R beyond the peak", Want::AtMost(0.01), off);
    }
    outcome.check("throughput at R = 1, at least", Want::AtLeast(0.005), at_one);
    outcome.check("throughput at R = 1, at most", Want::AtMost(0.02), at_one);
    outcome.check("throughput of TCP", Want::AtMost(0.02), plain.mean);
    outcome.events = found.iter().map(|(_, (.., events))| events).sum();
    outcome.notes = vec![
        "the mean of both flows: one of two may collapse on a bad smallest round trip",
        "losses strike behind the queue, acknowledgements too; a packet counts 1000 bytes, an acknowledgement 40",
    ];
    outcome
}
