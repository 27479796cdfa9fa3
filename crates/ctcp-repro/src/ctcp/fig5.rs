//! Fig. 5: a standard TCP flow and a CTCP flow share a lossy link, 25 ms.
//!
//! TCP gets less with each loss, and CTCP takes what it leaves. The claim is that CTCP costs TCP nothing: beside CTCP it gets what it gets
//! beside another TCP.
//!
//! Requirement: C9

use super::PAPER;
use super::contender::Contender;
use super::shared_link::Bottleneck;
use super::sharing::{COMPANIONS, Goodputs, Sharing, friendliness, goodputs, measure};
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};

pub(crate) const EXPERIMENT: Experiment =
    Experiment { id: "ctcp-fig5", paper: PAPER, title: "a TCP and a CTCP flow share a lossy link", plan };

const MEGABITS: [u64; 2] = [10, 25];
const LOSSES: [f64; 7] = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05];

fn plan(settings: &Settings) -> Plan {
    let (seeds, seconds) = (settings.seeds_or(4, 1), if settings.quick { 30 } else { 300 });
    let mut cells = Vec::new();
    for link in links() {
        for companion in COMPANIONS {
            cells.extend((0..u64::from(seeds)).map(|seed| Sharing { link, companion, seconds, seed }));
        }
    }
    let is_quick = settings.quick;
    Plan::new(cells, measure, move |found| outcome(seeds, is_quick, found))
}

fn links() -> impl Iterator<Item = Bottleneck> {
    let links = MEGABITS.into_iter().flat_map(|megabits| LOSSES.map(|loss| (megabits, loss)));
    links.map(|(megabits, loss)| Bottleneck { megabits, rtt_millis: 25, loss, buffer: 1.0 })
}

fn outcome(seeds: u32, is_quick: bool, found: &[(Sharing, (Goodputs, u64))]) -> Outcome {
    let plot = Plot {
        title: "A TCP flow and a CTCP flow on a lossy link, 25 ms (CTCP, Fig. 5)",
        x: Axis { label: "packet loss", scale: Scale::Logarithmic },
        y: Axis { label: "goodput (Mbit/s)", scale: Scale::Linear },
        hidden: &["profile default"],
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    for link in links() {
        for companion in COMPANIONS {
            let beside = if companion == Contender::Reno { "a second TCP" } else { companion.name() };
            let [tcp, other] = goodputs(found, link, companion);
            outcome.point(&format!("{} Mbit/s: TCP beside {beside}", link.megabits), link.loss, &tcp);
            if companion != Contender::Reno {
                outcome.point(&format!("{} Mbit/s: {beside}", link.megabits), link.loss, &other);
            }
        }
    }
    for companion in [Contender::Ctcp, Contender::Default] {
        for link in links() {
            let name = format!(
                "{} Mbit/s, {} %: TCP beside {}, of what it gets beside TCP",
                link.megabits,
                100.0 * link.loss,
                companion.name()
            );
            // Half a minute of TCP is a handful of saw teeth.
            if is_quick {
                outcome.skip(name);
            } else {
                outcome.check(name, Want::AtLeast(0.9), friendliness(found, link, companion));
            }
        }
    }
    outcome.events = found.iter().map(|(_, (_, events))| events).sum();
    outcome.notes = vec![
        "the text prints no numbers of this figure",
        "two TCP flows, the paper's dotted line, are the yardstick: the mean of both",
        "losses strike the data of both flows before the queue; the way back loses nothing",
    ];
    outcome
}
