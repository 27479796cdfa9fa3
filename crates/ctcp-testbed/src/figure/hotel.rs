//! The hotel of the slides: a link of 26.5 Mbit/s. At 5 % loss, TCP gets 1.31 Mbit/s of it and coded TCP 10.68.
//!
//! Requirement: C8

use ctcp_repro::Outcome;
use ctcp_repro::ctcp::hotel::{Cell, LOSSES, cells, outcome};

use super::Figure;
use super::contenders::{goodput_alone, measure_all, one_path};
use crate::error::TestbedError;
use crate::testbed::Testbed;

pub(super) const FIGURE: Figure =
    Figure { id: "slides-hotel", paper: "slides", title: "a hotel's link with 5 % loss", measure };

const LOSSES_QUICK: [f64; 2] = [0.0, 5.0];
/// 53 Mbit/s in total.
const AT_ONCE: usize = 2;

fn measure(testbed: &mut Testbed<'_>) -> Result<Outcome, TestbedError> {
    let quick = testbed.settings.quick;
    let (seeds, seconds) = (testbed.settings.seeds_or(3, 1), if quick { 6 } else { 60 });
    let losses: &[f64] = if quick { &LOSSES_QUICK } else { &LOSSES };
    let place =
        |cell: &Cell| (cell.contender, format!("{} %", cell.loss), one_path(cell.seed, cell.path().config()));
    let found = measure_all(testbed, AT_ONCE, cells(losses, seconds, seeds), place, |network, cell| {
        goodput_alone(network, cell.contender, cell.seconds)
    })?;
    let mut outcome = outcome(seeds, losses, &found);
    outcome.plot.title = "26.5 Mbit/s in a hotel, real sockets (slides)";
    Ok(outcome)
}
