//! The number of packets that a small window wastes, for loss from 0 to 20 %.
//!
//! The symbols of a block are sent first, then combinations of `coding_wnd` consecutive ones until the receiver has
//! them all. A packet that arrives and is not innovative is overhead. A small window is cheap to decode but often hits
//! symbols that the receiver has. The thesis chooses the window by the measured loss and doubles it with each packet
//! near the end (section 3.1.5). The sender is [`SparseCode`]; profile `sparse` uses the same repairs.
//!
//! Requirement: U2

use ctcp_base::{Prng, Probability};
use ctcp_baselines::coding::{SparseChoice, SparseCode, SparseDecoder, coding_window};
use ctcp_coding::{SymbolRange, coefficients};

use super::PAPER;
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::{Summary, summary};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "thesis-overhead",
    paper: PAPER,
    title: "packets wasted by a small coding window",
    plan,
    takes: &[],
};

/// Symbols per block, as in the thesis.
const BLOCK: u16 = 128;

const WINDOWS: [u16; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

const LOSSES: [f64; 5] = [0.0, 0.05, 0.1, 0.15, 0.2];

const BY_LOSS: &str = "coding_wnd by the loss";

/// A block that is sent until it is known.
#[derive(Clone, Debug)]
struct Cell {
    loss: f64,
    window: u16,
    doubles: bool,
    seed: u32,
}

fn plan(settings: &Settings) -> Plan {
    let seeds = settings.seeds_or(400, 40);
    let mut cells = Vec::new();
    for loss in LOSSES {
        for doubles in [false, true] {
            for window in WINDOWS {
                cells.extend((0..seeds).map(|seed| Cell { loss, window, doubles, seed }));
            }
        }
        let window = coding_window(BLOCK, loss);
        if !WINDOWS.contains(&window) {
            cells.extend((0..seeds).map(|seed| Cell { loss, window, doubles: true, seed }));
        }
    }
    Plan::new(cells, measure, move |found| outcome(seeds, found))
}

/// Returns the packets wasted until the block is known, and the packets that arrived.
fn measure(cell: &Cell) -> (u64, u64) {
    let prng = Prng::new(u64::from(cell.seed)).fork(&format!("{} {}", cell.loss, cell.window));
    wasted(cell.window, cell.loss, cell.doubles, &prng)
}

fn outcome(seeds: u32, found: &[(Cell, (u64, u64))]) -> Outcome {
    let plot = Plot {
        title: "Packets that arrive for nothing, a block of 128 symbols (thesis, section 3.1.5)",
        x: Axis { label: "coding_wnd (symbols)", scale: Scale::Logarithmic },
        y: Axis { label: "wasted packets + 0.1", scale: Scale::Logarithmic },
        hidden: &[],
        dots: &[BY_LOSS],
    };
    let mut outcome = Outcome::new(plot, seeds);
    let wasted = |loss: f64, doubles: bool, window: u16| -> Summary {
        let is_it = |cell: &Cell| (cell.loss, cell.doubles, cell.window) == (loss, doubles, window);
        let cells = found.iter().filter(|(cell, _)| is_it(cell));
        summary(&cells.map(|(_, (wasted, _))| *wasted as f64).collect::<Vec<f64>>())
    };
    // A logarithmic axis needs positive values.
    let raised = |found: Summary| Summary { mean: found.mean + 0.1, ..found };
    for loss in LOSSES {
        for (doubles, name) in [(false, "fixed"), (true, "doubling")] {
            for window in WINDOWS {
                let found = raised(wasted(loss, doubles, window));
                outcome.point(&format!("loss {loss}, {name}"), f64::from(window), &found);
            }
        }
        let window = coding_window(BLOCK, loss);
        outcome.point(BY_LOSS, f64::from(window), &raised(wasted(loss, true, window)));
    }
    outcome.events = found.iter().map(|(_, (_, arrived))| arrived).sum();
    outcome.check(
        "the full window wastes about 1/255 of a packet at 20 % loss",
        Want::AtMost(0.05),
        wasted(0.2, false, BLOCK).mean,
    );
    outcome.check(
        "a window of 8 that doubles near the end wastes less than half of a fixed one at 20 % loss",
        Want::AtMost(0.5),
        wasted(0.2, true, 8).mean / wasted(0.2, false, 8).mean,
    );
    let most = LOSSES
        .map(|loss| wasted(loss, true, coding_window(BLOCK, loss)).mean)
        .into_iter()
        .fold(0.0, f64::max);
    outcome.check(
        "the window by the loss, most packets wasted of a block to 20 % loss",
        Want::AtMost(1.0),
        most,
    );
    outcome.notes = vec![
        "a packet is wasted when it arrives and is no new degree of freedom; lost packets are not counted",
        "doubling: once the receiver lacks no more than log2(128 / coding_wnd) degrees of freedom, each packet doubles the window",
        "by the loss: coding_wnd = 2 sqrt(128 / p), doubling; from right to left 0, 5, 10, 15 and 20 %",
        "0.1 is added to each value, because the picture's axis is logarithmic",
    ];
    outcome
}

/// Returns the packets wasted until the block is known, and the packets that arrived.
fn wasted(window: u16, loss: f64, doubles: bool, prng: &Prng) -> (u64, u64) {
    let mut channel = prng.fork("channel");
    let loss = Probability::new(loss).expect("a probability");
    let block = SymbolRange::new(0, BLOCK).expect("not empty");
    let mut decoder = SparseDecoder::new(block, 1);
    let mut code = SparseCode::new(block, window);
    let mut arrived = 0;
    while !decoder.is_decoded() {
        let missing = BLOCK - u16::try_from(decoder.rank()).expect("no more than the block has");
        // With a constant number of missing packets, the sender never doubles its window.
        let choice = code.next(if doubles { missing } else { BLOCK }).expect("some are missing");
        if channel.chance(loss) {
            continue;
        }
        arrived += 1;
        // Only the coefficients matter, so all symbols are zero.
        let arrival = match choice {
            SparseChoice::Source(index) => decoder.handle_source(index, &[]),
            SparseChoice::Combination(sent) => {
                let mut row = vec![0; usize::from(sent.range.length())];
                coefficients::generate(sent.key, coefficients::DENSITY_MAX, &mut row);
                decoder.handle_combination(sent.range, &row, &[])
            }
        };
        arrival.expect("inside the block");
    }
    (arrived - u64::from(BLOCK), arrived)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_window_wastes_less_and_doubling_helps_a_small_one() {
        let mean = |window, doubles| {
            let total: u64 = (0..40).map(|seed| wasted(window, 0.2, doubles, &Prng::new(seed)).0).sum();
            total as f64 / 40.0
        };
        let [one, eight, all] = [1, 8, BLOCK].map(|window| mean(window, false));
        assert!(one > 100.0 && eight < one / 4.0 && all < 0.5, "{one} {eight} {all}");
        assert!(mean(8, true) < eight / 2.0);
    }
}
