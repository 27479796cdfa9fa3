//! Fig. 7: throughput of two flows against the loss of each of four hops, with the best redundancy for each loss.
//!
//! A share (1-p)^4 of the packets crosses four hops, and each flow's fair share is half of that. R = 1/(1-p)^4 exactly
//! compensates for the losses on average. The lag of the sink then has no drift and wanders, and the window follows it.
//! A few percent more bring it back. The paper's optimum is therefore taken as the best of a sweep; the literal R is
//! shown as well.
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
    id: "tcpnc-fig7",
    paper: PAPER,
    title: "throughput of two flows against the loss of each hop",
    plan,
    takes: &[Parameter::Time],
};

const HOPS: usize = 4;
/// Loss of a hop, and how far the best may stay below (1-p)^4/2.
const LOSSES: [(f64, f64); 8] =
    [(0.0, 0.1), (0.02, 0.1), (0.05, 0.1), (0.08, 0.1), (0.1, 0.1), (0.12, 0.1), (0.15, 0.15), (0.2, 0.25)];
/// The losses of a quick run.
const QUICK: [f64; 4] = [0.0, 0.05, 0.12, 0.2];
/// R as a multiple of 1/(1-p)^4.
const SWEEP: [f64; 5] = [LITERAL, 1.03, 1.05, 1.08, 1.12];
const LITERAL: f64 = 1.0;
/// The multiple that stands for TCP without coding.
const UNCODED: f64 = 0.0;
const BEST: &str = "TCP/NC, best R";
const TO_THE_LETTER: &str = "TCP/NC, R = 1/(1-p)^4";
const PLAIN: &str = "TCP";
const CAPACITY: &str = "(1-p)^4/2";

/// A run of two flows.
#[derive(Clone, Debug)]
struct Cell {
    loss: f64,
    /// R as a multiple of 1/(1-p)^4.
    multiple: f64,
    seconds: u64,
    seed: u64,
}

fn through(loss: f64) -> f64 {
    (1.0 - loss).powi(HOPS as i32)
}

fn plan(settings: &Settings) -> Plan {
    let (quick, seeds) = (settings.quick, settings.seeds_or(4, 1));
    let seconds = settings.seconds_or(10_000, 1_000);
    let mut cells = Vec::new();
    for (loss, _) in LOSSES {
        for multiple in [UNCODED].into_iter().chain(SWEEP) {
            let is_needed = !quick || (QUICK.contains(&loss) && multiple != 1.03 && multiple != 1.12);
            let of = |seed| Cell { loss, multiple, seconds, seed };
            cells.extend((0..u64::from(seeds)).filter(|_| is_needed).map(of));
        }
    }
    Plan::new(cells, measure, move |found| outcome(quick, seeds, found))
}

/// Returns the mean throughput of the two flows in Mbit/s, and the number of events.
fn measure(cell: &Cell) -> (f64, u64) {
    let profile = if cell.multiple == UNCODED { tcp() } else { tcp_nc(cell.multiple / through(cell.loss)) };
    let start = Duration::from_millis(500);
    let flows = [(); 2].map(|()| flow(profile).starting_after(start));
    let mut network = tandem(cell.seed, &[(); HOPS].map(|()| hop(cell.loss)), flows);
    let time = Duration::from_secs(cell.seconds);
    network.run_for(time);
    let got = |flow| throughput(&network, flow, time - start);
    ((got(0) + got(1)) / 2.0, network.simulation.events())
}

fn outcome(quick: bool, seeds: u32, found: &[(Cell, (f64, u64))]) -> Outcome {
    let plot = Plot {
        title: "Two flows over four hops (TCP/NC, Fig. 7)",
        x: Axis { label: "loss of each hop (%)", scale: Scale::Linear },
        y: Axis { label: "throughput of a flow (Mbit/s)", scale: Scale::Linear },
        hidden: &["share", "multiple"],
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    let at = |loss: f64, multiple: f64| -> Option<Summary> {
        let cells = found.iter().filter(|(cell, _)| cell.loss == loss && cell.multiple == multiple);
        let got: Vec<f64> = cells.map(|(_, (mean, _))| *mean).collect();
        (!got.is_empty()).then(|| summary(&got))
    };
    for (loss, margin) in LOSSES {
        let (x, capacity) = (loss * 100.0, through(loss) / 2.0);
        outcome.exact(CAPACITY, x, capacity);
        let name = format!("shortfall of the best R at {x:.0} % loss");
        let swept = SWEEP.iter().filter_map(|&multiple| Some((multiple, at(loss, multiple)?)));
        let Some((multiple, best)) = swept.max_by(|a, b| a.1.mean.total_cmp(&b.1.mean)) else {
            outcome.skip(name);
            continue;
        };
        outcome.point(BEST, x, &best);
        outcome.exact("best R, multiple of 1/(1-p)^4", x, multiple);
        outcome.point("best R, share of (1-p)^4/2", x, &best.map(|got| got / capacity));
        for (series, multiple) in [(TO_THE_LETTER, LITERAL), (PLAIN, UNCODED)] {
            if let Some(found) = at(loss, multiple) {
                outcome.point(series, x, &found);
            }
        }
        if quick {
            outcome.skip(name);
        } else {
            outcome.check(name, Want::AtMost(margin), 1.0 - best.mean / capacity);
        }
    }
    for (loss, most) in [(0.05, 0.02), (0.2, 0.002)] {
        let plain = at(loss, UNCODED).expect("it is among the losses of a quick run");
        outcome.check(
            format!("throughput of TCP at {:.0} % loss", loss * 100.0),
            Want::AtMost(most),
            plain.mean,
        );
    }
    outcome.events = found.iter().map(|(_, (_, events))| events).sum();
    outcome.notes = vec![
        "the text prints no number of this figure but the bound (1-p)^4/2, so that nothing is marked as printed",
        "the best R is the best of 1, 1.03, 1.05, 1.08 and 1.12 times 1/(1-p)^4, judged by the mean over the seeds; a quick run leaves out two",
        "the mean of both flows: one of two may collapse on a bad smallest round trip",
        "losses strike behind the queue, acknowledgements too; a packet counts 1000 bytes, an acknowledgement 40",
        "every combination that can be innovative is",
    ];
    outcome
}
