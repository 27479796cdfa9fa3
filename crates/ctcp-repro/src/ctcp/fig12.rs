//! Fig. 12: the mean goodput of the downloads of Fig. 11.
//!
//! Over all measurements of the paper, more than the five of Fig. 11, the text gives about 750 kbit/s for CTCP and 300
//! for TCP. The printed times of the five alone give 930 and 510.
//!
//! Requirement: C11

use super::PAPER;
use super::contender::Contender;
use super::fig11::{CONTENDERS, Cell, MEGABYTES, Trace, cells, measure, seconds};
use super::wireless::HOTSPOTS;
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::Summary;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "ctcp-fig12",
    paper: PAPER,
    title: "mean goodput at the hotspots of Fig. 11",
    plan,
    takes: &[],
};

/// Position of the mean over the hotspots, after the fifth.
const MEAN: f64 = 6.0;

fn plan(settings: &Settings) -> Plan {
    let seeds = settings.seeds_or(8, 1);
    Plan::new(cells(seeds), measure, move |found| outcome(seeds, MEGABYTES, found))
}

/// Evaluates downloads of the given size. For a smaller file than the paper's, all checks are skipped.
#[must_use]
pub fn outcome(seeds: u32, megabytes: f64, found: &[(Cell, Trace)]) -> Outcome {
    // In Mbit. The printed times are for 50 MB.
    let (file, printed_file) = (megabytes * 8.0, MEGABYTES * 8.0);
    let plot = Plot {
        title: "Goodput at five hotspots, and their mean at 6 (CTCP, Fig. 12)",
        x: Axis { label: "hotspot (1 to 5: a to e; 6: mean)", scale: Scale::Linear },
        y: Axis { label: "goodput (Mbit/s)", scale: Scale::Linear },
        hidden: &[],
        dots: &["CTCP", "default", "Cubic", "time"],
    };
    let mut outcome = Outcome::new(plot, seeds);
    let mean = |contender| {
        let goodputs = HOTSPOTS.map(|hotspot| file / seconds(found, hotspot, contender).mean);
        goodputs.iter().sum::<f64>() / goodputs.len() as f64
    };
    for contender in CONTENDERS {
        for (number, hotspot) in (1..).zip(HOTSPOTS) {
            let goodput: Summary = seconds(found, hotspot, contender).map(|seconds| file / seconds);
            outcome.point(contender.name(), f64::from(number), &goodput);
        }
        outcome.exact(contender.name(), MEAN, mean(contender));
    }
    for (number, hotspot) in (1..).zip(HOTSPOTS) {
        outcome.exact("CTCP, by its printed time", f64::from(number), printed_file / hotspot.ctcp_seconds);
        outcome.exact("TCP, by its printed time", f64::from(number), printed_file / hotspot.tcp_seconds);
    }
    outcome.published("CTCP", MEAN, 0.75);
    outcome.published("TCP Cubic", MEAN, 0.3);
    if megabytes != MEGABYTES {
        outcome.skip("mean goodput, times that of TCP Cubic");
    }
    for contender in Contender::OURS.into_iter().filter(|_| megabytes == MEGABYTES) {
        let times = mean(contender) / mean(Contender::Cubic);
        let name = format!("{}, mean goodput, times that of TCP Cubic", contender.name());
        outcome.check(name, Want::AtLeast(2.5), times);
        let name = format!("{}, the same against the printed times of these five", contender.name());
        outcome.check(name, Want::AtLeast(1.83), times);
        for hotspot in HOTSPOTS {
            let name = format!("{}: {}, times TCP Cubic", hotspot.name, contender.name());
            let of = |contender| seconds(found, hotspot, contender).mean;
            outcome.check(name, Want::AtLeast(1.0), of(Contender::Cubic) / of(contender));
        }
    }
    outcome.events = found.iter().map(|(_, (_, events))| events).sum();
    outcome.notes = vec![
        "the printed means are of more measurements than these five, whose printed times give 0.93 and 0.51 Mbit/s",
        "the same downloads as in Fig. 11",
    ];
    outcome
}
