//! Table I: how much sooner a small file arrives with protection of the end of the transmission (EOT) than without
//! (NC).
//!
//! A file of 250, 500 or 1000 packets, a one-way delay of 50 or 150 ms, loss 5 or 15 %, R = 1/(1-p) or R_a: eight
//! scenarios per size. Both schemes use the same seed, so that they do not differ before the last packet.
//!
//! Requirement: K4

use super::PAPER;
use super::transfer::{Factor, Scheme, Transfer};
use crate::changes::Parameter;
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::summary;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "eot-table1",
    paper: PAPER,
    title: "time that EOT saves for files of up to 1 MB",
    plan,
    takes: &[Parameter::Rate],
};

/// Packets of a file, and the printed reduction of its time in percent and in seconds.
const PRINTED: [(u64, f64, f64); 3] = [(250, 6.09, 0.249), (500, 8.00, 0.452), (1000, 10.04, 0.756)];
const CUT: &str = "mean of cuts (%)";
const CUT_OF_MEANS: &str = "cut of means (%)";
const SECONDS: &str = "cut (s)";

fn plan(settings: &Settings) -> Plan {
    let seeds = settings.seeds_or(100, 10);
    let mut cells = Vec::new();
    for (packets, ..) in PRINTED {
        for delay in [50, 150] {
            for loss in [0.05, 0.15] {
                for factor in [Factor::Theoretical, Factor::Adjusted] {
                    let of = |seed| {
                        let transfer = Transfer { factor, delay, ..Transfer::new(packets, loss, seed) };
                        transfer.changed_by(settings.changes)
                    };
                    cells.extend((0..u64::from(seeds)).map(of));
                }
            }
        }
    }
    Plan::new(cells, measure, move |found| outcome(seeds, found))
}

/// Returns the seconds of NC and of EOT, and the number of events.
fn measure(cell: &Transfer) -> (f64, f64, u64) {
    let ((nc, one), (eot, other)) = (cell.time(Scheme::Nc), cell.time(Scheme::Eot));
    (nc, eot, one + other)
}

fn outcome(seeds: u32, found: &[(Transfer, (f64, f64, u64))]) -> Outcome {
    let plot = Plot {
        title: "Time that EOT saves (EOT/PB, Table I)",
        x: Axis { label: "file (packets of 1000 bytes)", scale: Scale::Linear },
        y: Axis { label: "cut (%)", scale: Scale::Linear },
        hidden: &[SECONDS],
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    let mut all = Vec::new();
    for (packets, percent, seconds) in PRINTED {
        let times = found.iter().filter(|(cell, _)| cell.packets == packets);
        let times: Vec<(f64, f64)> = times.map(|(_, (nc, eot, _))| (*nc, *eot)).collect();
        let cuts: Vec<f64> = times.iter().map(|(nc, eot)| 100.0 * (1.0 - eot / nc)).collect();
        let saved = summary(&times.iter().map(|(nc, eot)| nc - eot).collect::<Vec<f64>>());
        let mean_nc = times.iter().map(|(nc, _)| nc).sum::<f64>() / times.len() as f64;
        let x = packets as f64;
        let cut = summary(&cuts);
        outcome.point(CUT, x, &cut);
        // The cut of the means is the mean cut in seconds relative to NC's mean. It is much more precise than the mean
        // of the cuts.
        outcome.point(CUT_OF_MEANS, x, &saved.map(|saved| 100.0 * saved / mean_nc));
        outcome.point(SECONDS, x, &saved);
        outcome.published(CUT, x, percent);
        outcome.published(SECONDS, x, seconds);
        let name = format!("mean cut at {packets} packets (%)");
        outcome.check(name, Want::Within { of: percent, margin: 5.0 }, cut.mean);
        all.extend(cuts);
    }
    let mean = summary(&all).mean;
    outcome.check("mean cut of all, at least (%)", Want::AtLeast(5.0), mean);
    outcome.check("mean cut of all, at most (%)", Want::AtMost(11.0), mean);
    outcome.events = found.iter().map(|(_, (.., events))| events).sum();
    outcome.notes = vec![
        "R_a: the listing of its algorithm is missing; here the smallest R with P[Binomial(ceil(R t), 1-p) >= t] >= 0.9, t packets of the file",
        "the time begins with the first packet of the handshake, which may be lost and then costs both schemes the same",
        "losses strike behind the queue; a lost packet has used the link",
        "the sink acknowledges only what is new (section II); a time-out comes after 0.2 s at least and sends the oldest packet again, on which the text is silent",
    ];
    outcome
}
