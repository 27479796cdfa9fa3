//! Fig. 3b: the share of a link that a single flow gets, for a range of link rates, round-trip times and losses.
//!
//! The paper claims that rate and RTT make no difference, and that a queue of a quarter of a bandwidth-delay product
//! makes hardly any. The figure also shows the efficiency of a block code's redundancy alone (Eq. 7, as derived).
//!
//! Requirement: C8

use super::PAPER;
use super::contender::Contender;
use super::shared_link::Bottleneck;
use crate::changes::Parameter;
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::{Summary, summary};
use crate::theory::block_code;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "ctcp-fig3b",
    paper: PAPER,
    title: "the part of a link that CTCP gets, by rate, RTT and loss",
    plan,
    takes: &[Parameter::Time],
};

/// The rates of the figure.
pub const MEGABITS: [u64; 3] = [5, 10, 25];
/// The round-trip times of the figure.
pub const RTT_MILLIS: [u64; 3] = [10, 50, 200];
/// The losses of the figure.
pub const LOSSES: [f64; 5] = [0.001, 0.01, 0.05, 0.1, 0.2];
/// The queues of the figure, in bandwidth-delay products.
pub const BUFFERS: [f64; 2] = [1.0, 0.25];
/// The maximum share for an application.
const PAYLOAD: f64 = 1426.0 / 1500.0;
/// N of Eq. 7.
const BLOCK: u32 = 32;

/// A single flow on a link.
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

fn plan(settings: &Settings) -> Plan {
    let (seeds, seconds) = (settings.seeds_or(2, 1), settings.seconds_or(300, 10));
    let is_quick = settings.quick;
    // A quick run skips the short queue.
    let links = links(&MEGABITS, &RTT_MILLIS, &LOSSES, if is_quick { &BUFFERS[..1] } else { &BUFFERS });
    let cells = cells(&links, seconds, seeds);
    Plan::new(cells, measure, move |found| outcome(seeds, is_quick, &links, found))
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

/// Returns every combination of these parameters.
#[must_use]
pub fn links(megabits: &[u64], rtt_millis: &[u64], losses: &[f64], buffers: &[f64]) -> Vec<Bottleneck> {
    let mut links = Vec::new();
    for &megabits in megabits {
        for &rtt_millis in rtt_millis {
            for &loss in losses {
                links.extend(buffers.iter().map(|&buffer| Bottleneck { megabits, rtt_millis, loss, buffer }));
            }
        }
    }
    links
}

/// Returns the share of the link and the number of events.
fn measure(cell: &Cell) -> (f64, u64) {
    cell.link.share_alone(cell.seed, cell.contender.profile(), cell.seconds)
}

/// Evaluates shares of these links, each with its number of events.
#[must_use]
pub fn outcome(seeds: u32, is_quick: bool, links: &[Bottleneck], found: &[(Cell, (f64, u64))]) -> Outcome {
    let has = |loss: f64| links.iter().any(|link| link.loss == loss);
    let plot = Plot {
        title: "CTCP by itself on links of many kinds (CTCP, Fig. 3b)",
        x: Axis { label: "packet loss", scale: Scale::LogarithmicPercent },
        y: Axis { label: "goodput / link rate", scale: Scale::Percent },
        hidden: &["default", "0.25 BDP"],
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    let share = |contender, link| -> Summary {
        let cells = found.iter().filter(|(cell, _)| cell.contender == contender && cell.link == link);
        summary(&cells.map(|(_, (share, _))| *share).collect::<Vec<f64>>())
    };
    for contender in Contender::OURS {
        for &link in links {
            let queue = if link.buffer < 1.0 { ", queue of 0.25 BDP" } else { "" };
            let path = format!("{} Mbit/s, {} ms", link.megabits, link.rtt_millis);
            let series = format!("{path}{queue}, {}", contender.name());
            let series = series.trim_end_matches(", CTCP");
            outcome.point(series, link.loss, &share(contender, link));
        }
        // Returns the worst and the best share over all paths with this loss and this queue.
        let extremes = |loss: f64, buffer: f64| {
            let here = links.iter().filter(|link| link.loss == loss && link.buffer == buffer);
            let shares: Vec<f64> = here.map(|&link| share(contender, link).mean).collect();
            let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
            (least, shares.into_iter().fold(0.0, f64::max))
        };
        for loss in LOSSES.into_iter().filter(|&loss| has(loss)) {
            let (least, most) = extremes(loss, 1.0);
            let name = |what| format!("{}, {} %, {what}", contender.name(), 100.0 * loss);
            let worst = name("worst of all rates and RTTs");
            let spread = name("what rate and RTT make of it at most");
            // In a short run most of the difference comes from the start.
            if is_quick {
                [worst, spread].into_iter().for_each(|name| outcome.skip(name));
                continue;
            }
            outcome.check(worst, Want::AtLeast(if loss <= 0.01 { 0.92 } else { 0.87 }), least);
            outcome.check(spread, Want::AtMost(0.05), most - least);
        }
        let costs = links.iter().filter(|link| link.buffer < 1.0).map(|&short| {
            share(contender, Bottleneck { buffer: 1.0, ..short }).mean - share(contender, short).mean
        });
        let name = format!("{}, what a quarter of the queue costs at most", contender.name());
        match costs.reduce(f64::max) {
            Some(most) if !is_quick => outcome.check(name, Want::AtMost(0.05), most),
            _ => outcome.skip(name),
        }
    }
    for loss in LOSSES.into_iter().filter(|&loss| has(loss)) {
        let theory = block_code::efficiency(block_code::waste(BLOCK, loss)) * PAYLOAD;
        outcome.exact("Eq. 7 as derived", loss, theory);
    }
    outcome.events = found.iter().map(|(_, (_, events))| events).sum();
    outcome.notes = vec![
        "of 1500 bytes on the wire 1426 are the application's: 0.951 is the most there is",
        "the paper prints of this figure only that rate and RTT make little difference: 5 points are taken for little",
        "Eq. 7 is of blocks of 32; profile ctcp opens blocks as large as a bandwidth-delay product, which waste less",
    ];
    outcome
}
