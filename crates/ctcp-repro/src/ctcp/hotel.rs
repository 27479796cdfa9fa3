//! The hotel of the slides: a link of 26.5 Mbit/s with 5 % loss, where TCP gets 1.31 Mbit/s and coded TCP 10.68, eight
//! times as much.
//!
//! The round-trip time is not printed. It is chosen so that a kernel's Cubic gets about the printed throughput. The
//! simulator's Cubic gets half as much again.
//!
//! Requirement: C8

use super::contender::Contender;
use super::shared_link::goodput_alone;
use super::wireless::{HOTEL, WirelessLoss, WirelessPath};
use crate::changes::Parameter;
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::{Summary, summary};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "slides-hotel",
    paper: "Congestion Control for Coded TCP (slides, 2013)",
    title: "a hotel's link with 5 % loss",
    plan,
    takes: &[Parameter::Time],
};

/// The losses of the figure, in percent.
pub const LOSSES: [f64; 5] = [0.0, 1.0, 2.0, 5.0, 10.0];

/// A single flow.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The transport.
    pub contender: Contender,
    /// The loss in percent.
    pub loss: f64,
    /// Duration in virtual seconds.
    pub seconds: u64,
    /// The seed of the run.
    pub seed: u64,
}

fn plan(settings: &Settings) -> Plan {
    let (seeds, seconds) = (settings.seeds_or(4, 1), settings.seconds_or(120, 30));
    let cells = cells(&LOSSES, seconds, seeds);
    Plan::new(cells, measure, move |found| outcome(seeds, &LOSSES, found))
}

/// Returns the runs of all transports with all losses.
#[must_use]
pub fn cells(losses: &[f64], seconds: u64, seeds: u32) -> Vec<Cell> {
    let mut cells = Vec::new();
    for contender in Contender::ALL {
        for &loss in losses {
            cells.extend((0..u64::from(seeds)).map(|seed| Cell { contender, loss, seconds, seed }));
        }
    }
    cells
}

impl Cell {
    /// Returns the hotel's path with the loss of this run.
    #[must_use]
    pub fn path(&self) -> WirelessPath {
        WirelessPath { loss: WirelessLoss::Dropped(self.loss / 100.0), ..HOTEL }
    }
}

/// Returns the goodput in Mbit/s and the number of events.
fn measure(cell: &Cell) -> (f64, u64) {
    goodput_alone(cell.seed, &cell.path().config(), cell.contender.profile(), cell.seconds)
}

/// Evaluates the goodputs in Mbit/s, each with its number of events.
#[must_use]
pub fn outcome(seeds: u32, losses: &[f64], found: &[(Cell, (f64, u64))]) -> Outcome {
    let plot = Plot {
        title: "26.5 Mbit/s in a hotel (slides)",
        x: Axis { label: "packet loss (%)", scale: Scale::Linear },
        y: Axis { label: "download speed (Mbit/s)", scale: Scale::Logarithmic },
        hidden: &[],
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    let speed = |contender, loss: f64| -> Summary {
        let here = found.iter().filter(|(cell, _)| cell.contender == contender && cell.loss == loss);
        summary(&here.map(|(_, (speed, _))| *speed).collect::<Vec<f64>>())
    };
    for contender in Contender::ALL {
        losses.iter().for_each(|&loss| outcome.point(contender.name(), loss, &speed(contender, loss)));
    }
    outcome.published("TCP Cubic", 0.0, 26.53);
    outcome.published("TCP Cubic", 5.0, 1.31);
    outcome.published("CTCP", 5.0, 10.68);
    let tcp = speed(Contender::Cubic, 5.0).mean;
    outcome.check("TCP Cubic at 5 % (Mbit/s)", Want::Within { of: 1.31, margin: 0.2 * 1.31 }, tcp);
    for contender in Contender::OURS {
        let coded = speed(contender, 5.0).mean;
        outcome.check(format!("{} at 5 % (Mbit/s)", contender.name()), Want::AtLeast(10.68), coded);
        outcome.check(
            format!("{} at 5 %, times TCP Cubic", contender.name()),
            Want::AtLeast(8.0),
            coded / tcp,
        );
    }
    outcome.events = found.iter().map(|(_, (_, events))| events).sum();
    outcome.notes = vec![
        "the RTT of 33 ms is ours, such that a kernel's Cubic gets about the printed 1.31 Mbit/s (the simulator's half as much again); the queue is a bandwidth-delay product",
        "printed at no loss is what a speed test said; the link here has that rate, headers included",
    ];
    outcome
}
