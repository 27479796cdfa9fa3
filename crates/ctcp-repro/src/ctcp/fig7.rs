//! Fig. 7: completion time of HTTP requests against the file size: 25 Mbit/s, 10 ms, losses up to 20 %.
//!
//! Each request uses its own connection and is timed from its first packet to the last byte that the client reads.
//! CTCP's times hardly depend on the loss; those of TCP grow by a factor of twenty and more.
//!
//! Requirement: C10

use core::time::Duration;

use super::PAPER;
use super::contender::Contender;
use super::download::Download;
use super::shared_link::Bottleneck;
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::{Summary, summary};

pub(crate) const EXPERIMENT: Experiment =
    Experiment { id: "ctcp-fig7", paper: PAPER, title: "completion time of HTTP requests", plan, takes: &[] };

/// The link, without its loss.
pub const LINK: Bottleneck = Bottleneck { megabits: 25, rtt_millis: 10, loss: 0.0, buffer: 1.0 };
/// The losses of the figure.
pub const LOSSES: [f64; 6] = [0.0, 0.01, 0.02, 0.05, 0.1, 0.2];
/// The file sizes of the figure.
pub const KILOBYTES: [u64; 4] = [10, 100, 1_000, 10_000];
/// The time limit, far above the time of any request.
const PATIENCE: Duration = Duration::from_secs(3_600);
/// Times of standard TCP in the text: kB, loss, seconds.
const PUBLISHED: [(u64, f64, f64); 4] =
    [(1_000, 0.01, 0.9), (1_000, 0.2, 18.5), (10_000, 0.01, 7.1), (10_000, 0.2, 205.0)];

/// A request.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The transport.
    pub contender: Contender,
    /// The loss of the link.
    pub loss: f64,
    /// The size of the file.
    pub kilobytes: u64,
    /// The seed of the run.
    pub seed: u64,
}

fn plan(settings: &Settings) -> Plan {
    let seeds = settings.seeds_or(20, 4);
    Plan::new(cells(&LOSSES, &KILOBYTES, seeds), measure, move |found| {
        outcome(seeds, &LOSSES, &KILOBYTES, found)
    })
}

/// Returns the requests of all transports with every loss and every file size.
#[must_use]
pub fn cells(losses: &[f64], kilobytes: &[u64], seeds: u32) -> Vec<Cell> {
    let mut cells = Vec::new();
    for contender in Contender::ALL {
        for &loss in losses {
            for &kilobytes in kilobytes {
                cells.extend((0..u64::from(seeds)).map(|seed| Cell { contender, loss, kilobytes, seed }));
            }
        }
    }
    cells
}

/// Returns the seconds and the number of events.
fn measure(cell: &Cell) -> (f64, u64) {
    let path = Bottleneck { loss: cell.loss, ..LINK }.path();
    let bytes = 1_000 * cell.kilobytes;
    let mut download = Download::new(cell.seed, &path, cell.contender.profile(), bytes);
    let seconds = download.seconds_until(bytes, PATIENCE);
    (seconds, download.events())
}

/// Evaluates the times in seconds, each with its number of events. Checks about losses or sizes that were not run are
/// skipped.
#[must_use]
pub fn outcome(seeds: u32, losses: &[f64], kilobytes: &[u64], found: &[(Cell, (f64, u64))]) -> Outcome {
    let plot = Plot {
        title: "HTTP requests over 25 Mbit/s, 10 ms (CTCP, Fig. 7)",
        x: Axis { label: "file size (kB)", scale: Scale::Logarithmic },
        y: Axis { label: "completion time (s)", scale: Scale::Logarithmic },
        hidden: &["default", "Cubic", "2 %", "10 %"],
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    let time = |contender, loss: f64, kilobytes| -> Summary {
        let here =
            |cell: &Cell| cell.contender == contender && cell.loss == loss && cell.kilobytes == kilobytes;
        let times = found.iter().filter(|(cell, _)| here(cell)).map(|(_, (seconds, _))| *seconds);
        summary(&times.collect::<Vec<f64>>())
    };
    for contender in Contender::ALL {
        for &loss in losses {
            let series = format!("{} %, {}", 100.0 * loss, contender.name());
            for &size in kilobytes {
                outcome.point(&series, size as f64, &time(contender, loss, size));
            }
        }
    }
    for &size in kilobytes {
        let best = 0.02 + size as f64 * 8e3 / 25e6 / 0.951;
        outcome.exact("two round trips and the rate", size as f64, best);
    }
    for (kilobytes, loss, seconds) in PUBLISHED {
        outcome.published(&format!("{} %, TCP Reno", 100.0 * loss), kilobytes as f64, seconds);
    }
    let mut check = |name: String, want, (size, loss): (u64, f64), got: f64| {
        if kilobytes.contains(&size) && losses.contains(&loss) {
            outcome.check(name, want, got);
        } else {
            outcome.skip(name);
        }
    };
    for contender in Contender::OURS {
        for (kilobytes, factor) in [(1_000, 20.0), (10_000, 30.0)] {
            let of = |contender, loss| time(contender, loss, kilobytes).mean;
            let megabytes = kilobytes / 1_000;
            let name = format!("{} at 20 %, {megabytes} MB, faster than TCP Cubic", contender.name());
            let times = of(Contender::Cubic, 0.2) / of(contender, 0.2);
            check(name, Want::AtLeast(factor), (kilobytes, 0.2), times);
            let name = format!("{}, {megabytes} MB, 20 % against no loss", contender.name());
            check(name, Want::AtMost(1.5), (kilobytes, 0.2), of(contender, 0.2) / of(contender, 0.0));
        }
    }
    for (kilobytes, loss, seconds) in PUBLISHED {
        let name = format!("TCP Reno, {} MB at {} %, as printed", kilobytes / 1_000, 100.0 * loss);
        let ours = time(Contender::Reno, loss, kilobytes).mean;
        check(name, Want::Within { of: seconds, margin: 0.2 * seconds }, (kilobytes, loss), ours);
    }
    outcome.events = found.iter().map(|(_, (_, events))| events).sum();
    outcome.notes = vec![
        "from the first packet of the handshake to the last byte read; losses strike the response, before the queue",
        "the paper's factors are 18.5 s and 205 s of its TCP against CTCP's times, which the text does not print",
        "our TCP probes after a round trip or two of silence, kernels of 2013 waited 200 ms at least and doubled that",
    ];
    outcome
}
