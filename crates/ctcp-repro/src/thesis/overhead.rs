//! How many packets a small window wastes, for loss from 0 to 20 %.
//!
//! A block's symbols are sent first, then combinations of `coding_wnd` consecutive ones until the receiver has them all. A
//! packet that arrives and tells nothing new is overhead. A small window is cheap to decode and often hits symbols that the
//! receiver has; the thesis picks it by the measured loss and doubles it with each packet near the end (section 3.1.5).
//!
//! Requirement: U2

use ctcp_base::{Prng, Probability};
use ctcp_coding::{Arrival, Decoder, DecoderConfig, SymbolRange};

use super::PAPER;
use super::sparse::{SparseSender, Start};
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::summary;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "thesis-overhead",
    paper: PAPER,
    title: "packets wasted by a small coding window",
    plan,
};

/// Symbols in a block, as in the thesis.
const BLOCK: usize = 128;

const WINDOWS: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

const LOSSES: [f64; 5] = [0.0, 0.05, 0.1, 0.15, 0.2];

/// A block that is sent until it is known.
#[derive(Clone, Debug)]
struct Cell {
    loss: f64,
    window: usize,
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
    }
    Plan::new(cells, measure, move |found| outcome(seeds, found))
}

/// Packets wasted until the block is known, and packets that arrived.
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
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    for loss in LOSSES {
        for (doubles, name) in [(false, "fixed"), (true, "doubling")] {
            for window in WINDOWS {
                let is_it = |cell: &Cell| (cell.loss, cell.doubles, cell.window) == (loss, doubles, window);
                let cells = found.iter().filter(|(cell, _)| is_it(cell));
                // A logarithm needs something to stand on.
                let wasted: Vec<f64> = cells.map(|(_, (wasted, _))| *wasted as f64 + 0.1).collect();
                outcome.point(&format!("loss {loss}, {name}"), window as f64, &summary(&wasted));
            }
        }
    }
    outcome.events = found.iter().map(|(_, (_, arrived))| arrived).sum();
    check(&mut outcome);
    outcome.notes = vec![
        "a packet is wasted when it arrives and is no new degree of freedom; lost packets are not counted",
        "doubling: once the receiver lacks no more than coding_wnd degrees of freedom, each packet doubles the window",
        "0.1 is added to each value, because the picture's axis is logarithmic",
    ];
    outcome
}

fn check(outcome: &mut Outcome) {
    let at = |outcome: &Outcome, series: &str, window: usize| {
        let is_it = |point: &&crate::Point| point.series == series && point.x == window as f64;
        outcome.points.iter().find(is_it).map_or(f64::NAN, |point| point.y - 0.1)
    };
    let none = at(outcome, "loss 0, fixed", 1);
    outcome.check("without loss nothing is wasted, whatever the window", Want::AtMost(0.001), none);
    let full = at(outcome, "loss 0.2, fixed", BLOCK);
    outcome.check("the full window wastes about 1/255 of a packet at 20 % loss", Want::AtMost(0.05), full);
    let fixed = at(outcome, "loss 0.2, fixed", 8);
    let doubled = at(outcome, "loss 0.2, doubling", 8);
    outcome.check(
        "a window of 8 that doubles near the end wastes less than half of a fixed one at 20 % loss",
        Want::AtMost(0.5),
        doubled / fixed,
    );
}

/// Packets wasted until the block is known, and packets that arrived.
fn wasted(window: usize, loss: f64, doubles: bool, prng: &Prng) -> (u64, u64) {
    let mut channel = prng.fork("channel");
    let loss = Probability::new(loss).expect("a probability");
    let mut sender = SparseSender::new(BLOCK, window, Start::Systematic, prng.fork("sender"));
    let mut decoder = Decoder::new(DecoderConfig::new(1, BLOCK));
    let (mut rank, mut arrived) = (0, 0);
    while rank < BLOCK as u64 {
        let packet = sender.next(doubles && rank + window as u64 >= BLOCK as u64);
        if channel.chance(loss) {
            continue;
        }
        arrived += 1;
        let length = u16::try_from(packet.coefficients.len()).expect("a block is short");
        let range = SymbolRange::new(packet.first as u64, length).expect("not empty");
        // The coefficients are what counts: all symbols are zero.
        let arrival =
            decoder.handle_combination(range, &packet.coefficients, &[]).expect("inside the window");
        rank += u64::from(arrival == Arrival::Innovative);
    }
    (arrived - BLOCK as u64, arrived)
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
