//! Fig. 3a: the share of a link of 25 Mbit/s that a single flow gets, against the loss, for CTCP and for standard TCP.
//!
//! The paper measured on a testbed; here the same protocol code runs in virtual time. TCP follows `sqrt(1.5 / p)`
//! packets per round trip. CTCP gets above 96 % at 1 % loss, also with a queue of a quarter of a bandwidth-delay
//! product. A full datagram carries 1426 application bytes in 1500 bytes on the wire, so 0.951 is the maximum.
//!
//! Requirement: C8

use ctcp_proto::Profile;
use ctcp_proto::congestion::Algorithm;

use super::PAPER;
use super::shared_link::{Bottleneck, classical_tcp, tcp};
use crate::changes::Parameter;
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::{Summary, summary};
use crate::theory::padhye;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "ctcp-fig3a",
    paper: PAPER,
    title: "the part of a link that one flow gets, against the loss",
    plan,
    takes: &[Parameter::Rate, Parameter::Rtt, Parameter::Time],
};

const LINK: Bottleneck = Bottleneck { megabits: 25, rtt_millis: 25, loss: 0.0, buffer: 1.0 };
const LOSSES: [f64; 8] = [0.0005, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2];
/// The maximum share for an application.
const PAYLOAD: f64 = 1426.0 / 1500.0;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Flow {
    Ctcp,
    CtcpShortQueue,
    Ours,
    Reno,
    Cubic,
    ClassicalReno,
    ClassicalCubic,
}

const FLOWS: [(Flow, &str); 7] = [
    (Flow::Ctcp, "CTCP"),
    (Flow::CtcpShortQueue, "CTCP, queue of 0.25 BDP"),
    (Flow::Ours, "profile default"),
    (Flow::Reno, "TCP Reno"),
    (Flow::Cubic, "TCP Cubic"),
    (Flow::ClassicalReno, "TCP Reno, classical recovery"),
    (Flow::ClassicalCubic, "TCP Cubic, classical recovery"),
];

impl Flow {
    fn profile(self) -> Profile {
        match self {
            Self::Ctcp | Self::CtcpShortQueue => Profile::CTCP,
            Self::Ours => Profile::DEFAULT,
            Self::Reno => tcp(Algorithm::RENO),
            Self::Cubic => tcp(Algorithm::CUBIC),
            Self::ClassicalReno => classical_tcp(Algorithm::RENO),
            Self::ClassicalCubic => classical_tcp(Algorithm::CUBIC),
        }
    }
}

#[derive(Clone, Debug)]
struct Cell {
    flow: Flow,
    link: Bottleneck,
    seconds: u64,
    seed: u64,
}

fn plan(settings: &Settings) -> Plan {
    let (seeds, seconds) = (settings.seeds_or(4, 1), settings.seconds_or(300, 30));
    let link = LINK.changed_by(settings.changes);
    let mut cells = Vec::new();
    for (flow, _) in FLOWS {
        for loss in LOSSES {
            let buffer = if flow == Flow::CtcpShortQueue { 0.25 } else { LINK.buffer };
            let link = Bottleneck { loss, buffer, ..link };
            cells.extend((0..u64::from(seeds)).map(|seed| Cell { flow, link, seconds, seed }));
        }
    }
    Plan::new(cells, measure, move |found| outcome(seeds, link, found))
}

/// Returns the share of the link and the number of events.
fn measure(cell: &Cell) -> (f64, u64) {
    cell.link.share_alone(cell.seed, cell.flow.profile(), cell.seconds)
}

fn outcome(seeds: u32, link: Bottleneck, found: &[(Cell, (f64, u64))]) -> Outcome {
    let plot = Plot {
        title: "One flow on 25 Mbit/s, 25 ms (CTCP, Fig. 3a)",
        x: Axis { label: "packet loss", scale: Scale::LogarithmicPercent },
        y: Axis { label: "goodput / link rate", scale: Scale::Percent },
        hidden: &[],
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    // Number of packets of 1500 bytes per round trip.
    let capacity = (link.megabits * link.rtt_millis) as f64 * 1e3 / 8.0 / 1500.0;
    let share = |flow, loss| -> Summary {
        let cells = found.iter().filter(|(cell, _)| cell.flow == flow && cell.link.loss == loss);
        summary(&cells.map(|(_, (share, _))| *share).collect::<Vec<f64>>())
    };
    for (flow, name) in FLOWS {
        for loss in LOSSES {
            outcome.point(name, loss, &share(flow, loss));
        }
    }
    for loss in LOSSES {
        outcome.exact("sqrt(1.5/p)", loss, padhye::efficiency(loss, capacity) * PAYLOAD);
    }
    outcome.published("CTCP", 0.01, 0.96);
    outcome.published("TCP Reno", 0.01, 0.2);
    outcome.check("CTCP at 1 %", Want::AtLeast(0.92), share(Flow::Ctcp, 0.01).mean);
    let least = |flow| LOSSES.map(|loss| share(flow, loss).mean).into_iter().fold(f64::INFINITY, f64::min);
    outcome.check("CTCP, least of all losses to 20 %", Want::AtLeast(0.87), least(Flow::Ctcp));
    outcome.check("profile default, least of all losses to 20 %", Want::AtLeast(0.87), least(Flow::Ours));
    let queues = LOSSES.map(|loss| share(Flow::Ctcp, loss).mean - share(Flow::CtcpShortQueue, loss).mean);
    outcome.check(
        "CTCP, what a quarter of the queue costs at most",
        Want::AtMost(0.05),
        queues.into_iter().fold(f64::NEG_INFINITY, f64::max),
    );
    // Below 0.5 % the queue is the limit, above 5 % time-outs are.
    for loss in [0.005, 0.01, 0.02] {
        let model = padhye::efficiency(loss, capacity) * PAYLOAD;
        let name = format!("TCP Reno at {} %, against sqrt(1.5/p)", 100.0 * loss);
        outcome.check(name, Want::Within { of: 1.0, margin: 0.15 }, share(Flow::Reno, loss).mean / model);
    }
    outcome.events = found.iter().map(|(_, (_, events))| events).sum();
    outcome.notes = vec![
        "of 1500 bytes on the wire 1426 are the application's: 0.951 is the most there is, the paper's 0.96 of it 0.913",
        "the text says 25 ms, the caption 20 ms: 25 ms here. H-TCP, Westwood and Veno are left to the testbed",
        "losses strike data before the queue; the way back loses nothing",
    ];
    outcome
}
