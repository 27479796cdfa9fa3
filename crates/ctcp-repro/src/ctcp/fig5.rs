//! Fig. 5: a standard TCP flow and a CTCP flow share a lossy link, 25 ms.
//!
//! TCP gets less with rising loss, and CTCP takes what TCP leaves. The claim is that CTCP costs TCP nothing: next to
//! CTCP, TCP gets the same as next to another TCP.
//!
//! Requirement: C9

use super::PAPER;
use super::shared_link::Bottleneck;
use super::sharing::{self, COMPANIONS, Figure};
use crate::changes::Parameter;
use crate::experiment::{Experiment, Settings};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "ctcp-fig5",
    paper: PAPER,
    title: "a TCP and a CTCP flow share a lossy link",
    plan,
    takes: &[Parameter::Time],
};

const MEGABITS: [u64; 2] = [10, 25];
const LOSSES: [f64; 7] = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05];

fn plan(settings: &Settings) -> Plan {
    sharing::plan(settings, figure())
}

/// Returns the figure with all its links.
#[must_use]
pub fn figure() -> Figure {
    let plot = Plot {
        title: "A TCP flow and a CTCP flow on a lossy link, 25 ms (CTCP, Fig. 5)",
        x: Axis { label: "packet loss", scale: Scale::LogarithmicPercent },
        y: Axis { label: "goodput (Mbit/s)", scale: Scale::Linear },
        hidden: &["profile default"],
        dots: &[],
    };
    let notes = vec![
        "the text prints no numbers of this figure",
        "two TCP flows, the paper's dotted line, are the yardstick: the mean of both",
        "losses strike the data of both flows before the queue; the way back loses nothing",
    ];
    Figure {
        plot,
        links: links().collect(),
        companions: COMPANIONS,
        x: |link| link.loss,
        x_in_words: |link| format!("{} %", 100.0 * link.loss),
        notes,
    }
}

fn links() -> impl Iterator<Item = Bottleneck> {
    let links = MEGABITS.into_iter().flat_map(|megabits| LOSSES.map(|loss| (megabits, loss)));
    links.map(|(megabits, loss)| Bottleneck { megabits, rtt_millis: 25, loss, buffer: 1.0 })
}
