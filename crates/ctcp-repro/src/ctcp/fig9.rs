//! Fig. 9: throughput against the PHY rate on an 802.11 link beside a microwave oven, which sends for 9 ms of every 20.
//!
//! The text prints how many times TCP's throughput CTCP has: 2 at 5.5 Mbit/s, 3 at 8, 11 and 18, 10 above. It prints no throughput, so
//! that there is no column of TCP to fit: the path, of [`super::wireless`], is airtime and pulses alone, without the retransmissions of the
//! card and without the losses by distance that end the paper's curves above 36 Mbit/s.
//!
//! Requirement: C11

use super::PAPER;
use super::contender::Contender;
use super::shared_link::goodput_alone;
use super::wireless::{OVEN, Phy};
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::{Summary, summary};

pub(crate) const EXPERIMENT: Experiment =
    Experiment { id: "ctcp-fig9", paper: PAPER, title: "an 802.11 link beside a microwave oven", plan };

const CONTENDERS: [Contender; 4] = [Contender::Ctcp, Contender::Default, Contender::Reno, Contender::Cubic];

/// What TCP counts for in Mbit/s where it gets less, so that ratios are numbers.
const STANDSTILL: f64 = 1e-3;

#[derive(Clone, Debug)]
struct Cell {
    contender: Contender,
    phy: Phy,
    seconds: u64,
    seed: u64,
}

fn plan(settings: &Settings) -> Plan {
    let (seeds, seconds) = (settings.seeds_or(4, 1), if settings.quick { 20 } else { 300 });
    let mut cells = Vec::new();
    for contender in CONTENDERS {
        for phy in OVEN {
            cells.extend((0..u64::from(seeds)).map(|seed| Cell { contender, phy, seconds, seed }));
        }
    }
    Plan::new(cells, measure, move |found| outcome(seeds, found))
}

/// Mbit/s, and the work it was.
fn measure(cell: &Cell) -> (f64, u64) {
    let path = cell.phy.beside_oven().config();
    goodput_alone(cell.seed, &path, cell.contender.profile(), cell.seconds)
}

/// How many times TCP's throughput is printed for CTCP.
fn printed(phy: Phy) -> f64 {
    if phy.kilobits <= 5_500 {
        2.0
    } else if phy.kilobits <= 18_000 {
        3.0
    } else {
        10.0
    }
}

fn outcome(seeds: u32, found: &[(Cell, (f64, u64))]) -> Outcome {
    let plot = Plot {
        title: "802.11 beside a microwave oven (CTCP, Fig. 9)",
        x: Axis { label: "PHY rate (Mbit/s)", scale: Scale::Linear },
        y: Axis { label: "throughput (Mbit/s)", scale: Scale::Linear },
        hidden: &["times TCP Cubic"],
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    let throughput = |contender, phy: Phy| -> Summary {
        let here = found.iter().filter(|(cell, _)| cell.contender == contender && cell.phy == phy);
        summary(&here.map(|(_, (throughput, _))| *throughput).collect::<Vec<f64>>())
    };
    for contender in CONTENDERS {
        for phy in OVEN {
            let megabits = phy.kilobits as f64 / 1e3;
            outcome.point(contender.name(), megabits, &throughput(contender, phy));
        }
    }
    for phy in OVEN {
        let megabits = phy.kilobits as f64 / 1e3;
        let in_text = if megabits == 9.0 { 8.0 } else { megabits };
        outcome.published("CTCP, times TCP Cubic", in_text, printed(phy));
        for contender in [Contender::Ctcp, Contender::Default] {
            let times =
                throughput(contender, phy).mean / throughput(Contender::Cubic, phy).mean.max(STANDSTILL);
            outcome.exact(&format!("{}, times TCP Cubic", contender.name()), megabits, times);
            let name = format!("{megabits} Mbit/s: {}, times TCP Cubic", contender.name());
            outcome.check(name, Want::AtLeast(printed(phy)), times);
        }
    }
    outcome.events = found.iter().map(|(_, (_, events))| events).sum();
    outcome.notes = vec![
        "a packet is lost when any of its airtime is in a pulse: half of the time or more; cards retransmit, this one does not",
        "8 Mbit/s in the text are taken for 802.11's 9; the factor 10 is printed for all rates above 18 Mbit/s",
        "the paper's TCP falls to zero above 36 Mbit/s by losses of the radio path, which are not modelled",
    ];
    outcome
}
