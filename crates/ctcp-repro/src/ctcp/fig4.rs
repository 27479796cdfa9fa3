//! Fig. 4: a standard TCP flow and a CTCP flow share a link without losses, where only the full queue drops packets.
//!
//! With a queue of one bandwidth-delay product CTCP's back-off RTTmin/RTT is one half when the queue is full, TCP's own, and both should get
//! the same (section 4.3). 10 and 25 Mbit/s, RTTs from 10 to 200 ms; two TCP flows beside one another are the yardstick.
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

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "ctcp-fig4",
    paper: PAPER,
    title: "a TCP and a CTCP flow share a link without losses",
    plan,
};

const MEGABITS: [u64; 2] = [10, 25];
const RTT_MILLIS: [u64; 5] = [10, 25, 50, 100, 200];

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
    let paths = MEGABITS.into_iter().flat_map(|megabits| RTT_MILLIS.map(|rtt_millis| (megabits, rtt_millis)));
    paths.map(|(megabits, rtt_millis)| Bottleneck { megabits, rtt_millis, loss: 0.0, buffer: 1.0 })
}

fn outcome(seeds: u32, is_quick: bool, found: &[(Sharing, (Goodputs, u64))]) -> Outcome {
    let plot = Plot {
        title: "A TCP flow and a CTCP flow without losses (CTCP, Fig. 4)",
        x: Axis { label: "round-trip time (ms)", scale: Scale::Logarithmic },
        y: Axis { label: "goodput (Mbit/s)", scale: Scale::Linear },
        hidden: &["profile default", "second TCP"],
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    for link in links() {
        for companion in COMPANIONS {
            let beside = if companion == Contender::Reno { "a second TCP" } else { companion.name() };
            let [tcp, other] = goodputs(found, link, companion);
            let (megabits, rtt) = (link.megabits, link.rtt_millis as f64);
            outcome.point(&format!("{megabits} Mbit/s: TCP beside {beside}"), rtt, &tcp);
            if companion != Contender::Reno {
                outcome.point(&format!("{megabits} Mbit/s: {beside}"), rtt, &other);
            }
        }
    }
    for companion in [Contender::Ctcp, Contender::Default] {
        for link in links() {
            let (megabits, rtt) = (link.megabits, link.rtt_millis);
            let name = format!(
                "{megabits} Mbit/s, {rtt} ms: TCP beside {}, of what it gets beside TCP",
                companion.name()
            );
            // Two flows of a long round trip take minutes to settle.
            if is_quick {
                outcome.skip(name);
            } else {
                outcome.check(name, Want::AtLeast(0.9), friendliness(found, link, companion));
            }
        }
    }
    outcome.events = found.iter().map(|(_, (_, events))| events).sum();
    outcome.notes = vec![
        "the text prints no numbers of this figure but that both flows get about the same",
        "goodput over the whole run; with half of the seeds the TCP flow begins first",
    ];
    outcome
}
