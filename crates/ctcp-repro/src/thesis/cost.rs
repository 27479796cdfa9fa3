//! What it costs to decode a block against its size, with a window of eight symbols and with a dense code, when a tenth of
//! the packets is lost.
//!
//! Elimination as in Algorithm 1 of the thesis: a packet goes to the row of its first symbol, and while that is taken, the
//! row is subtracted and the next one tried. (The printed line 9 divides by the wrong entry where the next coefficient is zero;
//! here the first that is not zero counts.) Then back-substitution from the last row upwards. Counted are products of
//! coefficients, and operations on whole payloads.
//!
//! Requirement: U1

use ctcp_base::{Prng, Probability};
use ctcp_coding::gf256::{self, element};
use serde::{Deserialize, Serialize};

use super::PAPER;
use super::sparse::{Combination, SparseSender, Start};
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::{exponent, summary};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "thesis-cost",
    paper: PAPER,
    title: "cost of decoding against the size of a block",
    plan,
};

const SIZES: [usize; 5] = [64, 128, 256, 512, 1024];

/// Of the sparse code: about log n.
const WINDOW: usize = 8;

/// Without loss the first n packets need no elimination at all.
const LOSS: f64 = 0.1;

const DENSE: &str = "dense code";
const SPARSE: &str = "window of 8";

/// A block that is decoded.
#[derive(Clone, Debug)]
struct Cell {
    size: usize,
    window: usize,
    seed: u32,
}

fn plan(settings: &Settings) -> Plan {
    let seeds = settings.seeds_or(20, 3);
    let mut cells = Vec::new();
    for size in SIZES {
        for window in [size, WINDOW] {
            cells.extend((0..seeds).map(|seed| Cell { size, window, seed }));
        }
    }
    let measure = |cell: &Cell| cost(cell.size, cell.window, &Prng::new(u64::from(cell.seed)));
    Plan::new(cells, measure, move |found| outcome(seeds, found))
}

fn outcome(seeds: u32, found: &[(Cell, Cost)]) -> Outcome {
    let plot = Plot {
        title: "Cost of decoding a block (thesis, section 3.1.3)",
        x: Axis { label: "n (symbols in a block)", scale: Scale::Logarithmic },
        y: Axis { label: "products of coefficients; operations on payloads", scale: Scale::Logarithmic },
        hidden: &[],
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    for (name, is_sparse) in [(DENSE, false), (SPARSE, true)] {
        for part in ["coefficients", "payloads"] {
            let mut means = Vec::new();
            for size in SIZES {
                let is_it =
                    |cell: &Cell| cell.size == size && cell.window == if is_sparse { WINDOW } else { size };
                let cells = found.iter().filter(|(cell, _)| is_it(cell));
                let costs: Vec<f64> = cells.map(|(_, cost)| cost.part(part) as f64).collect();
                let found = summary(&costs);
                means.push((size as f64, found.mean));
                outcome.point(&format!("{name}, {part}"), size as f64, &found);
            }
            let want = match (is_sparse, part) {
                (false, "coefficients") => Want::Within { of: 3.0, margin: 0.1 },
                (false, _) => Want::Within { of: 2.0, margin: 0.1 },
                (true, _) => Want::AtMost(2.1),
            };
            outcome.check(format!("exponent of n, {name}, {part}"), want, exponent(&means));
        }
    }
    outcome.events = found.iter().map(|(_, cost)| cost.coefficients).sum();
    outcome.notes = vec![
        "the first n packets start at a permutation of the symbols, as in section 3.1.5; 10 % of the packets are lost",
        "an operation on a payload is one product and sum over all its bytes",
    ];
    outcome
}

/// What decoding took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Cost {
    /// Products of coefficients.
    coefficients: u64,
    /// Operations on whole payloads.
    payloads: u64,
}

impl Cost {
    fn part(self, name: &str) -> u64 {
        if name == "coefficients" { self.coefficients } else { self.payloads }
    }
}

/// Receives until the block is known, then solves it.
fn cost(size: usize, window: usize, prng: &Prng) -> Cost {
    let mut cost = Cost::default();
    let mut channel = prng.fork("channel");
    let loss = Probability::new(LOSS).expect("a probability");
    let mut sender = SparseSender::new(size, window, Start::Permuted, prng.fork(&format!("{size} {window}")));
    let mut rows: Vec<Option<Vec<u8>>> = vec![None; size];
    let mut missing = size;
    while missing > 0 {
        let packet = sender.next(missing <= WINDOW);
        if !channel.chance(loss) {
            missing -= usize::from(insert(&mut rows, packet, &mut cost));
        }
    }
    substitute_back(&rows, &mut cost);
    cost
}

/// Algorithm 1. Row `j` holds the coefficients of the symbols from `j` on and begins with a one. Returns whether the packet was new.
fn insert(rows: &mut [Option<Vec<u8>>], packet: Combination, cost: &mut Cost) -> bool {
    let Combination { mut first, mut coefficients } = packet;
    loop {
        let Some(lead) = coefficients.iter().position(|&coefficient| coefficient != 0) else { return false };
        coefficients.drain(..lead);
        first += lead;
        let factor = coefficients[0];
        if factor != 1 {
            gf256::scale(&mut coefficients, element::inverse(factor).expect("the lead is not zero"));
            cost.coefficients += coefficients.len() as u64;
            cost.payloads += 1;
        }
        let Some(row) = &rows[first] else {
            rows[first] = Some(coefficients);
            return true;
        };
        if coefficients.len() < row.len() {
            coefficients.resize(row.len(), 0);
        }
        gf256::xor(&mut coefficients[..row.len()], row);
        cost.coefficients += row.len() as u64;
        cost.payloads += 1;
    }
}

/// From the last row upwards: every coefficient behind the lead is one operation on payloads.
fn substitute_back(rows: &[Option<Vec<u8>>], cost: &mut Cost) {
    for row in rows.iter().flatten() {
        cost.payloads += row.iter().skip(1).filter(|&&coefficient| coefficient != 0).count() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dense_block_costs_a_third_of_the_cube_and_the_square() {
        let found = cost(128, 128, &Prng::new(1));
        let (cube, square) = (128_f64.powi(3), 128_f64.powi(2));
        // Each packet is reduced by the rows before it and normalised in between (1), and then solved (1/2).
        assert!((found.payloads as f64 / square - 1.5).abs() < 0.1, "{found:?}");
        // n packets, n/2 rows on average, twice what is left of a row.
        assert!((0.6..0.72).contains(&(found.coefficients as f64 / cube)), "{found:?}");
    }

    #[test]
    fn a_window_saves_most_of_it() {
        let (sparse, dense) = (cost(256, 8, &Prng::new(1)), cost(256, 256, &Prng::new(1)));
        assert!(sparse.coefficients * 20 < dense.coefficients && sparse.payloads * 5 < dense.payloads);
    }
}
