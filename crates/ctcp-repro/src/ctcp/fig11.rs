//! Fig. 11: a file of 50 MB downloaded at five public hotspots, with standard TCP and with CTCP.
//!
//! Measured in the paper in food courts, coffee shops and hotel lobbies, of which it prints mean loss, mean RTT and the two times. The rest of
//! each path is fixed in [`super::wireless`], and said there how.
//!
//! Requirement: C11

use core::time::Duration;

use super::PAPER;
use super::contender::Contender;
use super::download::Download;
use super::wireless::{HOTSPOTS, Hotspot};
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::{Summary, summary};

pub(crate) const EXPERIMENT: Experiment =
    Experiment { id: "ctcp-fig11", paper: PAPER, title: "50 MB at five hotspots, over time", plan };

pub(super) const CONTENDERS: [Contender; 3] = [Contender::Ctcp, Contender::Default, Contender::Cubic];
pub(super) const MEGABYTES: u64 = 50;
/// Nobody waits longer, and no download here has to.
const PATIENCE: Duration = Duration::from_secs(36_000);

#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) contender: Contender,
    pub(super) hotspot: Hotspot,
    seed: u64,
}

/// When each megabyte was there, in seconds, and the work it was.
pub(super) type Trace = (Vec<f64>, u64);

pub(super) fn cells(seeds: u32) -> Vec<Cell> {
    let mut cells = Vec::new();
    for hotspot in HOTSPOTS {
        for contender in CONTENDERS {
            cells.extend((0..u64::from(seeds)).map(|seed| Cell { contender, hotspot, seed }));
        }
    }
    cells
}

fn plan(settings: &Settings) -> Plan {
    let seeds = settings.seeds_or(8, 1);
    Plan::new(cells(seeds), measure, move |found| outcome(seeds, found))
}

pub(super) fn measure(cell: &Cell) -> Trace {
    let path = cell.hotspot.path.config();
    let mut download = Download::new(cell.seed, &path, cell.contender.profile(), MEGABYTES * 1_000_000);
    let times = (1..=MEGABYTES).map(|megabytes| download.seconds_until(megabytes * 1_000_000, PATIENCE));
    (times.collect(), download.events())
}

/// Seconds for all of it.
pub(super) fn seconds(found: &[(Cell, Trace)], hotspot: Hotspot, contender: Contender) -> Summary {
    let here = found.iter().filter(|(cell, _)| cell.contender == contender && cell.hotspot == hotspot);
    summary(&here.map(|(_, (times, _))| times[times.len() - 1]).collect::<Vec<f64>>())
}

fn outcome(seeds: u32, found: &[(Cell, Trace)]) -> Outcome {
    let plot = Plot {
        title: "50 MB at five hotspots (CTCP, Fig. 11)",
        x: Axis { label: "time (s)", scale: Scale::Logarithmic },
        y: Axis { label: "received (MB)", scale: Scale::Linear },
        hidden: &["default", "seconds"],
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    for (number, hotspot) in HOTSPOTS.into_iter().enumerate() {
        for contender in CONTENDERS {
            let series = format!("{}: {}", hotspot.name, contender.name());
            let of = |(cell, _): &&(Cell, Trace)| cell.contender == contender && cell.hotspot == hotspot;
            let (_, (trace, _)) = found.iter().find(of).expect("a first seed");
            for (megabytes, time) in trace.iter().enumerate() {
                outcome.exact(&series, *time, (megabytes + 1) as f64);
            }
            let total = seconds(found, hotspot, contender);
            outcome.point(&format!("{series}, seconds"), number as f64, &total);
        }
        outcome.published(&format!("{}: TCP Cubic", hotspot.name), hotspot.tcp_seconds, MEGABYTES as f64);
        outcome.published(&format!("{}: CTCP", hotspot.name), hotspot.ctcp_seconds, MEGABYTES as f64);
        let (printed, tcp) = (hotspot.tcp_seconds, seconds(found, hotspot, Contender::Cubic).mean);
        let name = format!("{}: seconds of TCP Cubic, as printed", hotspot.name);
        outcome.check(name, Want::Within { of: printed, margin: 0.2 * printed }, tcp);
        for contender in Contender::OURS {
            let name = format!("{}: {}, times faster than TCP Cubic", hotspot.name, contender.name());
            let factor = tcp / seconds(found, hotspot, contender).mean;
            outcome.check(name, Want::AtLeast(printed / hotspot.ctcp_seconds), factor);
        }
    }
    outcome.events = found.iter().map(|(_, (_, events))| events).sum();
    outcome.notes = vec![
        "received over time is that of seed 0; crosses are the printed times, at 50 MB",
        "the links' rates are ours and decide by how much CTCP can be faster: the checks of it say that it fills them",
        "at a, b and e the printed TCP is 2.4 to 3.5 times slower than sqrt(1.5/p) says, and no link makes ours so",
    ];
    outcome
}
