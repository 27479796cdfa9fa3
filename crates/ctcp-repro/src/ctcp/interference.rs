//! A single flow on an 802.11 link next to a source of interference, compared with the ratio of CTCP's throughput to
//! TCP's in the text. Figs. 9 and 10 define the interference.

use super::contender::Contender;
use super::shared_link::goodput_alone;
use super::wireless::WirelessPath;
use crate::experiment::Settings;
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::{Summary, summary};

/// The minimum throughput of TCP in Mbit/s for ratios, to avoid division by zero.
const STANDSTILL: f64 = 1e-3;

/// The definition of one of the figures.
pub struct Figure {
    /// The title of the plot.
    pub title: &'static str,
    /// The label of the x axis.
    pub label: &'static str,
    /// The points of the figure.
    pub places: Vec<Place>,
    /// Notes for readers.
    pub notes: Vec<&'static str>,
}

/// A point on the x axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// The position on the x axis in Mbit/s.
    pub megabits: f64,
    /// The corresponding position in the text.
    pub in_text: f64,
    /// The path at this point.
    pub path: WirelessPath,
    /// The printed ratio of CTCP's throughput to TCP's.
    pub printed: f64,
}

/// A single flow at a point.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The transport.
    pub contender: Contender,
    /// The point.
    pub place: Place,
    /// Duration in virtual seconds.
    pub seconds: u64,
    /// The seed of the run.
    pub seed: u64,
}

/// Plans the runs of all transports at all points, for 300 s.
pub(super) fn plan(settings: &Settings, figure: Figure) -> Plan {
    let (seeds, seconds) = (settings.seeds_or(4, 1), settings.seconds_or(300, 20));
    Plan::new(figure.cells(seconds, seeds), measure, move |found| outcome(seeds, &figure, found))
}

impl Figure {
    /// Returns the runs of all transports at all points.
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

/// Returns the throughput in Mbit/s and the number of events.
fn measure(cell: &Cell) -> (f64, u64) {
    goodput_alone(cell.seed, &cell.place.path.config(), cell.contender.profile(), cell.seconds)
}

/// Evaluates the throughputs in Mbit/s, each with its number of events.
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
