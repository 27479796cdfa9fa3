//! One flow at a time on an 802.11 link beside something that disturbs it, against how many times TCP's throughput the text gives CTCP.
//! Figs. 9 and 10 say beside what.

use super::contender::Contender;
use super::shared_link::goodput_alone;
use super::wireless::WirelessPath;
use crate::experiment::Settings;
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::{Summary, summary};

/// What TCP counts for in Mbit/s where it gets less, so that ratios are numbers.
const STANDSTILL: f64 = 1e-3;

/// One of the figures.
pub(super) struct Figure {
    pub(super) title: &'static str,
    /// Of the places on the x axis.
    pub(super) label: &'static str,
    pub(super) places: Vec<Place>,
    pub(super) notes: Vec<&'static str>,
}

/// A place on the x axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    /// Where it is, in Mbit/s, and where the text says it is.
    pub(super) megabits: f64,
    pub(super) in_text: f64,
    pub(super) path: WirelessPath,
    /// How many times TCP's throughput is printed for CTCP.
    pub(super) printed: f64,
}

#[derive(Clone, Debug)]
struct Cell {
    contender: Contender,
    place: Place,
    seconds: u64,
    seed: u64,
}

/// Everyone at all places, for 300 s.
pub(super) fn plan(settings: &Settings, figure: Figure) -> Plan {
    let (seeds, seconds) = (settings.seeds_or(4, 1), if settings.quick { 20 } else { 300 });
    let mut cells = Vec::new();
    for contender in Contender::ALL {
        for &place in &figure.places {
            cells.extend((0..u64::from(seeds)).map(|seed| Cell { contender, place, seconds, seed }));
        }
    }
    Plan::new(cells, measure, move |found| outcome(seeds, &figure, found))
}

/// Mbit/s, and the work it was.
fn measure(cell: &Cell) -> (f64, u64) {
    goodput_alone(cell.seed, &cell.place.path.config(), cell.contender.profile(), cell.seconds)
}

fn outcome(seeds: u32, figure: &Figure, found: &[(Cell, (f64, u64))]) -> Outcome {
    let plot = Plot {
        title: figure.title,
        x: Axis { label: figure.label, scale: Scale::Linear },
        y: Axis { label: "throughput (Mbit/s)", scale: Scale::Linear },
        hidden: &["times TCP Cubic"],
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    let throughput = |contender, place: Place| -> Summary {
        let here = found.iter().filter(|(cell, _)| cell.contender == contender && cell.place == place);
        summary(&here.map(|(_, (throughput, _))| *throughput).collect::<Vec<f64>>())
    };
    for contender in Contender::ALL {
        for &place in &figure.places {
            outcome.point(contender.name(), place.megabits, &throughput(contender, place));
        }
    }
    for &place in &figure.places {
        let Place { megabits, in_text, printed, .. } = place;
        outcome.published("CTCP, times TCP Cubic", in_text, printed);
        for contender in Contender::OURS {
            let tcp = throughput(Contender::Cubic, place).mean.max(STANDSTILL);
            let times = throughput(contender, place).mean / tcp;
            outcome.exact(&format!("{}, times TCP Cubic", contender.name()), megabits, times);
            let name = format!("{megabits} Mbit/s: {}, times TCP Cubic", contender.name());
            outcome.check(name, Want::AtLeast(printed), times);
        }
    }
    outcome.events = found.iter().map(|(_, (_, events))| events).sum();
    outcome.notes = figure.notes.clone();
    outcome
}
