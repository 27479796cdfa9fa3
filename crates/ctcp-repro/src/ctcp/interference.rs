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
pub struct Figure {
    /// Of the picture.
    pub title: &'static str,
    /// Of the places on the x axis.
    pub label: &'static str,
    /// Where it is measured.
    pub places: Vec<Place>,
    /// What a reader must know.
    pub notes: Vec<&'static str>,
}

/// A place on the x axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// Where it is, in Mbit/s.
    pub megabits: f64,
    /// Where the text says it is.
    pub in_text: f64,
    /// The path there.
    pub path: WirelessPath,
    /// How many times TCP's throughput is printed for CTCP.
    pub printed: f64,
}

/// A flow by itself at a place.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Whose flow.
    pub contender: Contender,
    /// Where.
    pub place: Place,
    /// For how long.
    pub seconds: u64,
    /// What is left to chance follows from it.
    pub seed: u64,
}

/// Everyone at all places, for 300 s.
pub(super) fn plan(settings: &Settings, figure: Figure) -> Plan {
    let (seeds, seconds) = (settings.seeds_or(4, 1), settings.seconds_or(300, 20));
    Plan::new(figure.cells(seconds, seeds), measure, move |found| outcome(seeds, &figure, found))
}

impl Figure {
    /// Everyone at all places.
    #[must_use]
    pub fn cells(&self, seconds: u64, seeds: u32) -> Vec<Cell> {
        let mut cells = Vec::new();
        for contender in Contender::ALL {
            for &place in &self.places {
                cells.extend((0..u64::from(seeds)).map(|seed| Cell { contender, place, seconds, seed }));
            }
        }
        cells
    }
}

/// Mbit/s, and the work it was.
fn measure(cell: &Cell) -> (f64, u64) {
    goodput_alone(cell.seed, &cell.place.path.config(), cell.contender.profile(), cell.seconds)
}

/// What the throughputs in Mbit/s say, each with the work it was.
#[must_use]
pub fn outcome(seeds: u32, figure: &Figure, found: &[(Cell, (f64, u64))]) -> Outcome {
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
