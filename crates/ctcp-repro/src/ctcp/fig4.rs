//! Fig. 4: a standard TCP flow and a CTCP flow share a link without losses, where only the full queue drops packets.
//!
//! With a queue of one bandwidth-delay product, CTCP's back-off RTTmin/RTT is one half when the queue is full, as
//! TCP's. Both flows should then get the same share (section 4.3). 10 and 25 Mbit/s, RTTs from 10 to 200 ms; two TCP
//! flows serve as the reference.
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
    id: "ctcp-fig4",
    paper: PAPER,
    title: "a TCP and a CTCP flow share a link without losses",
    plan,
    takes: &[Parameter::Time],
};

const MEGABITS: [u64; 2] = [10, 25];
const RTT_MILLIS: [u64; 5] = [10, 25, 50, 100, 200];

fn plan(settings: &Settings) -> Plan {
    sharing::plan(settings, figure())
}

/// Returns the figure with all its links.
#[must_use]
pub fn figure() -> Figure {
    let plot = Plot {
        title: "A TCP flow and a CTCP flow without losses (CTCP, Fig. 4)",
        x: Axis { label: "round-trip time (ms)", scale: Scale::Logarithmic },
        y: Axis { label: "goodput (Mbit/s)", scale: Scale::Linear },
        hidden: &["profile default", "second TCP"],
        dots: &[],
    };
    let notes = vec![
        "the text prints no numbers of this figure but that both flows get about the same",
        "goodput over the whole run; with half of the seeds the TCP flow begins first",
    ];
    Figure {
        plot,
        links: links().collect(),
        companions: COMPANIONS,
        x: |link| link.rtt_millis as f64,
        x_in_words: |link| format!("{} ms", link.rtt_millis),
        notes,
    }
}

fn links() -> impl Iterator<Item = Bottleneck> {
    let paths = MEGABITS.into_iter().flat_map(|megabits| RTT_MILLIS.map(|rtt_millis| (megabits, rtt_millis)));
    paths.map(|(megabits, rtt_millis)| Bottleneck { megabits, rtt_millis, loss: 0.0, buffer: 1.0 })
}
