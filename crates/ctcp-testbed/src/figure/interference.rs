//! Figs. 9 and 10: one flow at a time on an emulated 802.11 link next to a microwave oven or a hidden terminal.
//!
//! Requirement: C11

use ctcp_repro::Outcome;
use ctcp_repro::ctcp::interference::{self, Cell, outcome};
use ctcp_repro::ctcp::{fig9, fig10};

use super::Figure;
use super::contenders::{goodput_alone, measure_all, one_path};
use crate::error::TestbedError;
use crate::testbed::Testbed;

pub(super) const OVEN: Figure = Figure {
    id: "ctcp-fig9",
    paper: "CTCP",
    title: "an 802.11 link beside a microwave oven, emulated",
    measure: |testbed| {
        measure(testbed, fig9::figure(), "802.11 beside a microwave oven, real sockets (CTCP, Fig. 9)")
    },
};

pub(super) const HIDDEN_TERMINAL: Figure = Figure {
    id: "ctcp-fig10",
    paper: "CTCP",
    title: "an 802.11 link with a hidden terminal, emulated",
    measure: |testbed| {
        measure(testbed, fig10::figure(), "802.11 with a hidden terminal, real sockets (CTCP, Fig. 10)")
    },
};

/// At most 60 Mbit/s in total, and less during pulses.
const AT_ONCE: usize = 2;
/// A quick run uses every third place, from the second on.
const QUICK_STEP: usize = 3;

fn measure(
    testbed: &mut Testbed<'_>,
    mut figure: interference::Figure,
    title: &'static str,
) -> Result<Outcome, TestbedError> {
    let quick = testbed.settings.quick;
    let (seeds, seconds) = (testbed.settings.seeds_or(2, 1), if quick { 4 } else { 60 });
    if quick {
        figure.places = figure.places.into_iter().skip(1).step_by(QUICK_STEP).collect();
    }
    let place = |cell: &Cell| {
        let plan = one_path(cell.seed, cell.place.path.config());
        (cell.contender, format!("{} Mbit/s", cell.place.megabits), plan)
    };
    let found = measure_all(testbed, AT_ONCE, figure.cells(seconds, seeds), place, |network, cell| {
        goodput_alone(network, cell.contender, cell.seconds)
    })?;
    let mut outcome = outcome(seeds, &figure, &found);
    outcome.plot.title = title;
    Ok(outcome)
}
