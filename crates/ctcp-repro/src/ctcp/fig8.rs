//! Fig. 8: a film of 60 s streamed over 25 Mbit/s, 10 ms: how long it takes, and how often it stalls.
//!
//! The player receives the film in blocks of frames. It starts once it has the first blocks, plays a block only if it
//! is complete, and stalls after a block if the next one is not: an under-run.
//!
//! The paper counts at most about a hundred under-runs, one after every block, so a block is 0.6 s. It does not print
//! the film's rate. TCP takes 95 s at 1 % loss. At the rate at which Fig. 7's TCP fetches 10 MB in 7.1 s, this is 1070
//! Mbit, or 17.9 Mbit/s.
//!
//! ```text
//!   arrived  |--0--|-1-|--2--|-------3-------|-4-|
//!   played         |  0  |  1  |  2  | stops  |  3  |  4  |
//! ```
//!
//! Requirement: C10

use core::time::Duration;

use super::PAPER;
use super::contender::Contender;
use super::download::Download;
use super::fig7;
use super::shared_link::Bottleneck;
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::{Summary, summary};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "ctcp-fig8",
    paper: PAPER,
    title: "a film of 60 s streamed over a lossy link",
    plan,
    takes: &[],
};

/// The losses of the figure.
pub const LOSSES: [f64; 6] = [0.0, 0.01, 0.02, 0.05, 0.1, 0.2];
const LOSSES_QUICK: [f64; 3] = [0.0, 0.01, 0.2];
/// Number of blocks of the film.
pub const BLOCKS: u32 = 100;
/// Seconds of film in a block.
const BLOCK: f64 = 0.6;
/// Bytes of a block: 0.6 s at 17.9 Mbit/s.
pub const BLOCK_BYTES: u64 = 1_342_500;
/// Number of blocks that the player buffers before it starts.
const AHEAD: usize = 2;
/// The time limit.
const PATIENCE: Duration = Duration::from_secs(36_000);

/// The streaming of a film.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The transport.
    pub contender: Contender,
    /// The loss of the link.
    pub loss: f64,
    /// The seed of the run.
    pub seed: u64,
}

fn plan(settings: &Settings) -> Plan {
    let seeds = settings.seeds_or(5, 1);
    let losses: &'static [f64] = if settings.quick { &LOSSES_QUICK } else { &LOSSES };
    let mut cells = Vec::new();
    for contender in Contender::ALL {
        for &loss in losses {
            cells.extend((0..u64::from(seeds)).map(|seed| Cell { contender, loss, seed }));
        }
    }
    Plan::new(cells, measure, move |found| outcome(seeds, losses, BLOCKS, found))
}

/// Streams the film and plays it.
fn measure(cell: &Cell) -> (Showing, u64) {
    let path = Bottleneck { loss: cell.loss, ..fig7::LINK }.path();
    let size = u64::from(BLOCKS) * BLOCK_BYTES;
    let mut download = Download::new(cell.seed, &path, cell.contender.profile(), size);
    let arrivals: Vec<f64> = (1..=u64::from(BLOCKS))
        .map(|blocks| download.seconds_until(blocks * BLOCK_BYTES, PATIENCE))
        .collect();
    (show(&arrivals), download.events())
}

/// Seconds from the request to the end of the film, and the number of under-runs.
pub type Showing = (f64, u32);

/// Plays blocks with these arrival times.
///
/// # Panics
/// Panics if there is no block.
#[must_use]
pub fn show(arrivals: &[f64]) -> Showing {
    let begin = arrivals[AHEAD.min(arrivals.len()) - 1];
    arrivals.iter().fold((begin, 0), |(end, under_runs), &there| {
        (end.max(there) + BLOCK, under_runs + u32::from(there > end))
    })
}

/// Evaluates the films, each with its number of events. For a shorter film than the paper's, most checks are skipped.
#[must_use]
pub fn outcome(seeds: u32, losses: &[f64], blocks: u32, found: &[(Cell, (Showing, u64))]) -> Outcome {
    let is_whole = blocks == BLOCKS;
    let plot = Plot {
        title: "A film of 60 s over 25 Mbit/s, 10 ms (CTCP, Fig. 8a)",
        x: Axis { label: "packet loss (%)", scale: Scale::Linear },
        y: Axis { label: "time until the film is over (s)", scale: Scale::Logarithmic },
        hidden: &["under-runs"],
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    let of = |contender, loss: f64, value: fn(&Showing) -> f64| -> Summary {
        let here = found.iter().filter(|(cell, _)| cell.contender == contender && cell.loss == loss);
        summary(&here.map(|(_, (showing, _))| value(showing)).collect::<Vec<f64>>())
    };
    let seconds = |contender, loss| of(contender, loss, |showing| showing.0);
    let under_runs = |contender, loss| of(contender, loss, |showing| f64::from(showing.1));
    for contender in Contender::ALL {
        let name = contender.name();
        for &loss in losses {
            outcome.point(name, 100.0 * loss, &seconds(contender, loss));
            outcome.point(&format!("{name}, under-runs"), 100.0 * loss, &under_runs(contender, loss));
        }
    }
    losses.iter().for_each(|loss| outcome.published("CTCP, under-runs", 100.0 * loss, 0.0));
    if is_whole {
        losses.iter().for_each(|loss| outcome.published("CTCP", 100.0 * loss, 60.0));
        outcome.published("TCP Reno", 1.0, 95.0);
        outcome.published("TCP Reno", 20.0, 1_886.0);
    }
    for contender in Contender::OURS {
        let name = contender.name();
        let worst = losses.iter().map(|&loss| under_runs(contender, loss).mean).fold(0.0, f64::max);
        outcome.check(format!("{name}, under-runs at any loss to 20 %"), Want::AtMost(0.0), worst);
        let longest = losses.iter().map(|&loss| seconds(contender, loss).mean).fold(0.0, f64::max);
        let times = seconds(Contender::Cubic, 0.2).mean / seconds(contender, 0.2).mean;
        let length = format!("{name}, seconds at any loss to 20 %");
        let faster = format!("{name} at 20 %, faster than TCP Cubic");
        if is_whole {
            outcome.check(length, Want::AtMost(63.0), longest);
            outcome.check(faster, Want::AtLeast(30.0), times);
        } else {
            [length, faster].into_iter().for_each(|name| outcome.skip(name));
        }
    }
    if is_whole {
        let stops = under_runs(Contender::Reno, 0.2).mean;
        outcome.check("TCP Reno at 20 %, under-runs", Want::Within { of: 100.0, margin: 5.0 }, stops);
    } else {
        outcome.skip("TCP Reno at 20 %, under-runs");
    }
    outcome.events = found.iter().map(|(_, (_, events))| events).sum();
    outcome.notes = vec![
        "the film's rate is not printed: 17.9 Mbit/s follow from 95 s at 1 % and the rate of Fig. 7's TCP there",
        "blocks of 0.6 s, two of them ahead before the film begins; the server sends as fast as the transport takes it",
    ];
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    // Requirement: C10
    #[test]
    fn a_film_stalls_once_for_each_block_that_is_late() {
        let (end, under_runs) = show(&[0.1, 0.2, 0.3, 0.4]);
        assert!((end - (0.2 + 4.0 * BLOCK)).abs() < 1e-12 && under_runs == 0);
        // The second block ends at 1.4 and the third at 2.6, when the fourth has just arrived.
        let (end, under_runs) = show(&[0.1, 0.2, 2.0, 2.6]);
        assert!((end - 3.2).abs() < 1e-12 && under_runs == 1, "{end}");
        let slow: Vec<f64> = (1..=100).map(|block| f64::from(block) * 20.0).collect();
        assert_eq!(show(&slow).1, 98);
    }
}
