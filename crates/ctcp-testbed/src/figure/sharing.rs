//! Figs. 4 and 5: a flow of kernel TCP shares its link with one of the simulator's companions or with TCP Cubic.
//!
//! ```text
//!   TCP Reno      ---+--- loss --- [ queue ] === rate ===+--> download
//!   its companion ---+        the same TUN device        +--> download
//! ```
//!
//! Requirement: C9

use core::time::Duration;

use ctcp_repro::Outcome;
use ctcp_repro::ctcp::contender::Contender;
use ctcp_repro::ctcp::shared_link::Bottleneck;
use ctcp_repro::ctcp::sharing::{self, Sharing, outcome};
use ctcp_repro::ctcp::{fig4, fig5};

use super::Figure;
use super::contenders::{bytes_together, measure_all, one_path};
use crate::error::TestbedError;
use crate::testbed::Testbed;

pub(super) const LOSS_FREE: Figure = Figure {
    id: "ctcp-fig4",
    paper: "CTCP",
    title: "kernel TCP beside our flows on a link without losses",
    measure: |testbed| {
        let figure = sharing::Figure {
            companions: &Contender::ALL,
            links: links(testbed, fig4::figure().links, |link| link.rtt_millis == 25),
            ..fig4::figure()
        };
        measure(testbed, figure, "Kernel TCP beside another flow, real sockets (CTCP, Fig. 4)")
    },
};

pub(super) const LOSSY: Figure = Figure {
    id: "ctcp-fig5",
    paper: "CTCP",
    title: "kernel TCP beside our flows on a lossy link",
    measure: |testbed| {
        let figure = sharing::Figure {
            companions: &Contender::ALL,
            links: links(testbed, fig5::figure().links, |link| link.loss == 0.01),
            ..fig5::figure()
        };
        measure(testbed, figure, "Kernel TCP beside another flow at 25 ms, real sockets (CTCP, Fig. 5)")
    },
};

/// At most 50 Mbit/s in total, which two cores can carry along with the proxies.
const AT_ONCE: usize = 2;

/// The links; a quick run uses only some of them.
fn links(
    testbed: &Testbed<'_>,
    mut links: Vec<Bottleneck>,
    is_quick: fn(&Bottleneck) -> bool,
) -> Vec<Bottleneck> {
    links.retain(|link| !testbed.settings.quick || is_quick(link));
    links
}

fn measure(
    testbed: &mut Testbed<'_>,
    figure: sharing::Figure,
    title: &'static str,
) -> Result<Outcome, TestbedError> {
    let quick = testbed.settings.quick;
    let (seeds, seconds) = (testbed.settings.seeds_or(2, 1), if quick { 8 } else { 60 });
    let place = |cell: &Sharing| {
        let plan = one_path(cell.seed, cell.link.path());
        (cell.companion, format!("alongside TCP Reno, {:?}", cell.link), plan)
    };
    let found = measure_all(testbed, AT_ONCE, figure.cells(seconds, seeds), place, |network, cell| {
        let (starts, time) = (cell.starts(), Duration::from_secs(cell.seconds));
        let flows = [(Contender::Reno, starts[0]), (cell.companion, starts[1])];
        let bytes = bytes_together(network, flows, time)?;
        Ok(bytes.map(|bytes| bytes as f64 * 8e-6 / cell.seconds as f64))
    })?;
    let mut outcome = outcome(seeds, quick, &figure, &found);
    outcome.plot.title = title;
    outcome.plot.hidden = &["profile default", "Cubic", "second TCP"];
    outcome.notes = vec![
        "the text prints no numbers of this figure",
        "two kernel Reno flows, the paper's dotted line, are the yardstick: the mean of both",
        "goodput over the whole run; with half of the seeds the TCP flow begins first",
    ];
    Ok(outcome)
}
