//! The cost of decoding a block against its size, with a window of eight symbols and with a dense code, when a tenth of
//! the packets is lost.
//!
//! Elimination follows Algorithm 1 of the thesis, in [`SparseDecoder`]. A packet goes to the row of its first symbol.
//! If that row is taken, it is subtracted and the next one is tried. (The printed line 9 divides by the wrong entry if
//! the next coefficient is zero; here the first non-zero one is used.) Then follows back-substitution from the last row
//! upwards. Products of coefficients and operations on whole payloads are counted.
//!
//! Requirement: U1

use ctcp_base::{Prng, Probability};
use ctcp_baselines::coding::{SparseDecoder, SparseRepairs};
use ctcp_coding::SymbolRange;
use serde::{Deserialize, Serialize};

use super::PAPER;
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
    takes: &[],
};

const SIZES: [u16; 5] = [64, 128, 256, 512, 1024];

/// The window of the sparse code: about log n.
const WINDOW: u16 = 8;

/// Without loss, the first n packets would need no elimination.
const LOSS: f64 = 0.1;

const DENSE: &str = "dense code";
const SPARSE: &str = "window of 8";

/// A block to decode.
#[derive(Clone, Debug)]
struct Cell {
    size: u16,
    window: u16,
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
        hidden: &["exponent"],
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    for (name, is_sparse) in [(DENSE, false), (SPARSE, true)] {
        for part in ["coefficients", "payloads"] {
            let window = |size| if is_sparse { WINDOW } else { size };
            let of = |size: u16| -> Vec<f64> {
                let is_it = |cell: &Cell| cell.size == size && cell.window == window(size);
                let cells = found.iter().filter(|(cell, _)| is_it(cell));
                cells.map(|(_, cost)| cost.part(part) as f64).collect()
            };
            let costs = SIZES.map(|size| (f64::from(size), of(size)));
            for (size, costs) in &costs {
                outcome.point(&format!("{name}, {part}"), *size, &summary(costs));
            }
            // One exponent per seed, so that they have an interval.
            let exponents = (0..seeds as usize)
                .map(|seed| exponent(&costs.each_ref().map(|(size, costs)| (*size, costs[seed]))));
            let found = summary(&exponents.collect::<Vec<f64>>());
            outcome.point(&format!("{name}, {part}, exponent"), f64::from(SIZES[SIZES.len() - 1]), &found);
            let (want, got) = match (is_sparse, part) {
                (false, "coefficients") => (Want::Within { of: 3.0, margin: 0.1 }, found.mean),
                (false, _) => (Want::Within { of: 2.0, margin: 0.1 }, found.mean),
                (true, _) => (Want::AtMost(2.1), found.mean + found.margin),
            };
            let bound = if is_sparse { ", upper end of its interval" } else { "" };
            outcome.check(format!("exponent of n, {name}, {part}{bound}"), want, got);
        }
    }
    outcome.events = found.iter().map(|(_, cost)| cost.coefficients).sum();
    outcome.notes = vec![
        "the first n packets start at a permutation of the symbols, as in section 3.1.5; 10 % of the packets are lost",
        "an operation on a payload is one product and sum over all its bytes",
        "exponent: of the power of n, a straight line through the logarithms for each seed; it stands at the largest n",
    ];
    outcome
}

/// The cost of decoding.
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

/// Receives packets until the block is known, and returns the cost.
fn cost(size: u16, window: u16, prng: &Prng) -> Cost {
    let mut channel = prng.fork("channel");
    let mut sender = prng.fork(&format!("{size} {window}"));
    let loss = Probability::new(LOSS).expect("a probability");
    let block = SymbolRange::new(0, size).expect("not empty");
    let mut decoder = SparseDecoder::new(block, 1);
    let mut firsts = permutation(size, &mut sender);
    let mut repairs = SparseRepairs::new(window);
    while !decoder.is_decoded() {
        let missing = size - u16::try_from(decoder.rank()).expect("no more than the block has");
        let range = match firsts.pop() {
            // A combination must not reach beyond the end of the block (Listing D.1).
            Some(first) => SymbolRange::new(u64::from(first.min(size - window)), window).expect("not empty"),
            None => repairs.next(block, missing).range,
        };
        // The leading coefficient is one, so that the receiver need not normalise; the others are uniform.
        let mut coefficients = vec![0; usize::from(range.length())];
        sender.fill(&mut coefficients);
        coefficients[0] = 1;
        if !channel.chance(loss) {
            // Only the cost matters, so all symbols are zero.
            decoder.handle_combination(range, &coefficients, &[]).expect("inside the block");
        }
    }
    let work = decoder.work();
    Cost { coefficients: work.coefficient_products, payloads: work.payload_terms }
}

/// Returns the numbers below `size` in a random order.
fn permutation(size: u16, prng: &mut Prng) -> Vec<u16> {
    let mut numbers: Vec<u16> = (0..size).collect();
    for last in (1..numbers.len()).rev() {
        numbers.swap(last, prng.below(last as u64 + 1) as usize);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dense_block_costs_a_third_of_n_cubed_products_and_n_squared_payloads() {
        let found = cost(128, 128, &Prng::new(1));
        let (cube, square) = (128_f64.powi(3), 128_f64.powi(2));
        // Each packet is reduced by the rows before it (1/2) and then solved (1/2).
        assert!((found.payloads as f64 / square - 1.0).abs() < 0.05, "{found:?}");
        // n packets, n/2 rows on average, and the remaining length of a row.
        assert!((found.coefficients as f64 / (cube / 3.0) - 1.0).abs() < 0.05, "{found:?}");
    }

    #[test]
    fn a_small_window_saves_most_of_the_cost() {
        let (sparse, dense) = (cost(256, 8, &Prng::new(1)), cost(256, 256, &Prng::new(1)));
        assert!(sparse.coefficients * 20 < dense.coefficients && sparse.payloads * 5 < dense.payloads);
    }
}
