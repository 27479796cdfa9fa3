//! Fig. 11: a file of 50 MB downloaded at five public hotspots, with standard TCP and with CTCP.
//!
//! The paper measured in food courts, coffee shops and hotel lobbies. It prints mean loss, mean RTT and the two times
//! for each. The rest of each path is chosen in [`super::wireless`] and explained there.
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

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "ctcp-fig11",
    paper: PAPER,
    title: "50 MB at five hotspots, over time",
    plan,
    takes: &[],
};

/// The transports that download.
pub const CONTENDERS: [Contender; 3] = [Contender::Ctcp, Contender::Default, Contender::Cubic];
/// Size of the file in MB.
pub const MEGABYTES: f64 = 50.0;
/// Number of equal parts of the file. The arrival time of each part is recorded.
pub const PARTS: u32 = 50;
/// The time limit, which no download reaches.
const PATIENCE: Duration = Duration::from_secs(36_000);

/// A download.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The transport.
    pub contender: Contender,
    /// The hotspot.
    pub hotspot: Hotspot,
    /// The seed of the run.
    pub seed: u64,
}

/// The arrival time of each part in seconds, and the number of events.
pub type Trace = (Vec<f64>, u64);

/// Returns the downloads of all transports at all hotspots.
#[must_use]
pub fn cells(seeds: u32) -> Vec<Cell> {
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
    Plan::new(cells(seeds), measure, move |found| outcome(seeds, MEGABYTES, found))
}

pub(super) fn measure(cell: &Cell) -> Trace {
    let path = cell.hotspot.path;
    let part = (MEGABYTES * 1e6) as u64 / u64::from(PARTS);
    let size = u64::from(PARTS) * part;
    let download = Download::new(cell.seed, &path.config(), cell.contender.profile(), size);
    let mut download = match path.trace() {
        Some(trace) => download.changing(&trace),
        None => download,
    };
    let times = (1..=u64::from(PARTS)).map(|parts| download.seconds_until(parts * part, PATIENCE));
    (times.collect(), download.events())
}

/// Returns the seconds for the whole file.
pub(super) fn seconds(found: &[(Cell, Trace)], hotspot: Hotspot, contender: Contender) -> Summary {
    let here = found.iter().filter(|(cell, _)| cell.contender == contender && cell.hotspot == hotspot);
    summary(&here.map(|(_, (times, _))| times[times.len() - 1]).collect::<Vec<f64>>())
}

/// Evaluates downloads of the given size. For a smaller file than the paper's, all checks are skipped.
#[must_use]
pub fn outcome(seeds: u32, megabytes: f64, found: &[(Cell, Trace)]) -> Outcome {
    let is_whole = megabytes == MEGABYTES;
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
            if let Some((_, (trace, _))) = found.iter().find(of) {
                for (parts, time) in (1..).zip(trace) {
                    outcome.exact(&series, *time, f64::from(parts) * megabytes / trace.len() as f64);
                }
            }
            let total = seconds(found, hotspot, contender);
            outcome.point(&format!("{series}, seconds"), number as f64, &total);
        }
        if !is_whole {
            continue;
        }
        outcome.published(&format!("{}: TCP Cubic", hotspot.name), hotspot.tcp_seconds, MEGABYTES);
        outcome.published(&format!("{}: CTCP", hotspot.name), hotspot.ctcp_seconds, MEGABYTES);
        let (printed, tcp) = (hotspot.tcp_seconds, seconds(found, hotspot, Contender::Cubic).mean);
        let name = format!("{}: seconds of TCP Cubic, as printed", hotspot.name);
        outcome.check(name, Want::Within { of: printed, margin: 0.2 * printed }, tcp);
        for contender in Contender::OURS {
            let name = format!("{}: {}, times faster than TCP Cubic", hotspot.name, contender.name());
            let factor = tcp / seconds(found, hotspot, contender).mean;
            outcome.check(name, Want::AtLeast(printed / hotspot.ctcp_seconds), factor);
        }
    }
    if !is_whole {
        outcome.skip("times of 50 MB, as printed, and who is faster by how much");
    }
    outcome.events = found.iter().map(|(_, (_, events))| events).sum();
    outcome.notes = vec![
        "received over time is that of seed 0; crosses are the printed times, at 50 MB",
        "the links' rates are ours and decide by how much CTCP can be faster: the checks of it say that it fills them",
        "the links are chosen by a kernel's Cubic, on the testbed; at a and b others have the air for 2.4 s of each 6.4 s; at e TCP is slower in print than on any link that was tried and on which CTCP is as fast as printed",
    ];
    outcome
}
