//! Fig. 3b: the share of a link that one ctcp flow gets, for a range of link rates, round-trip times, losses and queues.
//!
//! Links, series and checks are the same as in the simulator's figure; kernel TCP is in Fig. 3a.
//!
//! Requirement: C8

use ctcp_repro::Outcome;
use ctcp_repro::ctcp::fig3b::{BUFFERS, Cell, LOSSES, MEGABITS, RTT_MILLIS, cells, links, outcome};

use super::Figure;
use super::contenders::{goodput_alone, measure_all, one_path};
use crate::error::TestbedError;
use crate::testbed::Testbed;

pub(super) const FIGURE: Figure = Figure {
    id: "ctcp-fig3b",
    paper: "CTCP",
    title: "the part of a link that our flows get, by rate, RTT, loss and queue",
    measure,
};

/// At most 50 Mbit/s in total, which two cores can carry along with both proxies.
const AT_ONCE: usize = 2;

fn measure(testbed: &mut Testbed<'_>) -> Result<Outcome, TestbedError> {
    let quick = testbed.settings.quick;
    let (seeds, seconds) = (testbed.settings.seeds_or(1, 1), if quick { 4 } else { 60 });
    let links = if quick {
        links(&[5, 25], &[10, 50], &[0.01, 0.2], &BUFFERS[..1])
    } else {
        links(&MEGABITS, &RTT_MILLIS, &LOSSES, &BUFFERS)
    };
    let place =
        |cell: &Cell| (cell.contender, format!("{:?}", cell.link), one_path(cell.seed, cell.link.path()));
    let found = measure_all(testbed, AT_ONCE, cells(&links, seconds, seeds), place, |network, cell| {
        Ok(goodput_alone(network, cell.contender, cell.seconds)? / cell.link.megabits as f64)
    })?;
    let mut outcome = outcome(seeds, quick, &links, &found);
    outcome.plot.title = "One flow on links of many kinds, real sockets (CTCP, Fig. 3b)";
    outcome.notes = vec![
        "shares count the application's bytes from before the connection is asked for, over a tunnel that is up",
        "the paper prints of this figure only that rate and RTT make little difference: 5 points are taken for little",
        "Eq. 7 is of blocks of 32; profile ctcp opens blocks as large as a bandwidth-delay product, which waste less",
    ];
    Ok(outcome)
}
