//! Fig. 10: throughput on an 802.11 link of 11 Mbit/s against the mean rate of a hidden terminal, which sends at exponential intervals.
//!
//! The text prints that CTCP consistently gets about twice what TCP Cubic gets, and no throughput; the path is that of
//! [`super::wireless`]: packets that overlap a frame of the hidden terminal are lost, and the card does not send them again.
//!
//! Requirement: C11

use super::PAPER;
use super::contender::Contender;
use super::shared_link::goodput_alone;
use super::wireless::HIDDEN_TERMINAL;
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::{Summary, summary};

pub(crate) const EXPERIMENT: Experiment =
    Experiment { id: "ctcp-fig10", paper: PAPER, title: "an 802.11 link with a hidden terminal", plan };

const CONTENDERS: [Contender; 4] = [Contender::Ctcp, Contender::Default, Contender::Reno, Contender::Cubic];
/// Mean rates of the hidden terminal: 2 to 43 % of the packets collide.
const KILOBITS: [u64; 7] = [100, 250, 500, 1_000, 1_500, 2_000, 2_500];

#[derive(Clone, Debug)]
struct Cell {
    contender: Contender,
    kilobits: u64,
    seconds: u64,
    seed: u64,
}

fn plan(settings: &Settings) -> Plan {
    let (seeds, seconds) = (settings.seeds_or(4, 1), if settings.quick { 20 } else { 300 });
    let mut cells = Vec::new();
    for contender in CONTENDERS {
        for kilobits in KILOBITS {
            cells.extend((0..u64::from(seeds)).map(|seed| Cell { contender, kilobits, seconds, seed }));
        }
    }
    Plan::new(cells, measure, move |found| outcome(seeds, found))
}

/// Mbit/s, and the work it was.
fn measure(cell: &Cell) -> (f64, u64) {
    let path = HIDDEN_TERMINAL.beside_terminal(cell.kilobits).config();
    goodput_alone(cell.seed, &path, cell.contender.profile(), cell.seconds)
}

fn outcome(seeds: u32, found: &[(Cell, (f64, u64))]) -> Outcome {
    let plot = Plot {
        title: "802.11 at 11 Mbit/s with a hidden terminal (CTCP, Fig. 10)",
        x: Axis { label: "mean rate of the hidden terminal (Mbit/s)", scale: Scale::Linear },
        y: Axis { label: "throughput (Mbit/s)", scale: Scale::Linear },
        hidden: &["times TCP Cubic"],
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    let throughput = |contender, kilobits: u64| -> Summary {
        let here = found.iter().filter(|(cell, _)| cell.contender == contender && cell.kilobits == kilobits);
        summary(&here.map(|(_, (throughput, _))| *throughput).collect::<Vec<f64>>())
    };
    for contender in CONTENDERS {
        for kilobits in KILOBITS {
            outcome.point(contender.name(), kilobits as f64 / 1e3, &throughput(contender, kilobits));
        }
    }
    for kilobits in KILOBITS {
        let megabits = kilobits as f64 / 1e3;
        outcome.published("CTCP, times TCP Cubic", megabits, 2.0);
        for contender in [Contender::Ctcp, Contender::Default] {
            let times = throughput(contender, kilobits).mean / throughput(Contender::Cubic, kilobits).mean;
            outcome.exact(&format!("{}, times TCP Cubic", contender.name()), megabits, times);
            let name = format!("{megabits} Mbit/s: {}, times TCP Cubic", contender.name());
            outcome.check(name, Want::AtLeast(2.0), times);
        }
    }
    outcome.events = found.iter().map(|(_, (_, events))| events).sum();
    outcome.notes = vec![
        "printed is a factor of about 2 at any rate of the hidden terminal; which rates the figure has, the text does not say",
        "a packet that overlaps a frame of the hidden terminal is lost; cards retransmit, this one does not",
    ];
    outcome
}
