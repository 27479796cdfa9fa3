//! Figs. 11 and 12: a file of 50 MB downloaded at the five hotspots of the table of wireless paths: progress over time and mean goodput.
//!
//! Requirement: C11

use core::time::Duration;

use ctcp_repro::ctcp::fig11::{self, Cell, MEGABYTES, PARTS, Trace, cells};
use ctcp_repro::ctcp::fig12;

use super::Figure;
use super::contenders::{download_cold, measure_all};
use crate::bulk::Request;
use crate::error::TestbedError;
use crate::plan::{NetworkPlan, PathPlan};
use crate::testbed::Testbed;

pub(super) const OVER_TIME: Figure = Figure {
    id: "ctcp-fig11",
    paper: "CTCP",
    title: "50 MB at five hotspots, emulated, over time",
    measure: |testbed| {
        let (seeds, megabytes, found) = measure(testbed)?;
        let mut outcome = fig11::outcome(seeds, megabytes, &found);
        outcome.plot.title = "Downloads at five hotspots, real sockets (CTCP, Fig. 11)";
        Ok(outcome)
    },
};

pub(super) const MEAN: Figure = Figure {
    id: "ctcp-fig12",
    paper: "CTCP",
    title: "mean goodput at the hotspots of Fig. 11",
    measure: |testbed| {
        let (seeds, megabytes, found) = measure(testbed)?;
        let mut outcome = fig12::outcome(seeds, megabytes, &found);
        outcome.plot.title = "Goodput at five hotspots, and their mean at 6, real sockets (CTCP, Fig. 12)";
        Ok(outcome)
    },
};

const MEGABYTES_QUICK: f64 = 0.5;
/// All at once: the links have at most 4.25 Mbit/s each and 41 Mbit/s in total.
const AT_ONCE: usize = 15;
/// The time limit of a download.
const PATIENCE: Duration = Duration::from_secs(36_000);

/// Seeds, megabytes of the file, and the downloads.
type Found = (u32, f64, Vec<(Cell, Trace)>);

fn measure(testbed: &mut Testbed<'_>) -> Result<Found, TestbedError> {
    let seeds = testbed.settings.seeds_or(2, 1);
    let megabytes = if testbed.settings.quick { MEGABYTES_QUICK } else { MEGABYTES };
    let part = (megabytes * 1e6) as u64 / u64::from(PARTS);
    let place = |cell: &Cell| (cell.contender, format!("hotspot {}", cell.hotspot.name), network(cell));
    let request = Request { bytes: Some(part * u64::from(PARTS)), time: PATIENCE };
    let found = measure_all(testbed, AT_ONCE, cells(seeds), place, |network, cell| {
        Ok(download_cold(network, cell.contender, request, part)?.parts_s)
    })?;
    Ok((seeds, megabytes, found))
}

fn network(cell: &Cell) -> NetworkPlan {
    let path = cell.hotspot.path;
    let mut plan = PathPlan::new(path.config());
    if let Some(trace) = path.trace() {
        plan.forward = plan.forward.changing(trace);
    }
    NetworkPlan::new(cell.seed, [plan])
}
