//! Eq. 7: the cost of a block's redundancy alone, against the loss.
//!
//! Each block of 32 packets has `n = floor(N/(1-p)) - N` combinations that are sent ahead of any feedback. Packets that
//! are still missing are then sent one by one until the receiver has the block; none of these is wasted. The link loses
//! packets before its rate limit, as in section 6, so its efficiency is the share of useful packets among those that
//! arrive.
//!
//! This is the curve "theory" of Fig. 3b. Congestion control, feedback and windows, which the measurements of Fig. 3b
//! include, play no role in it.
//!
//! Requirement: C12

use ctcp_base::{Prng, Probability};
use ctcp_coding::{Arrival, Decoder, DecoderConfig, SymbolRange};

use super::PAPER;
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::{Moments, NORMAL_99};
use crate::theory::block_code::{ahead, efficiency, waste, waste_printed};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "ctcp-eq7",
    paper: PAPER,
    title: "efficiency of a block code's redundancy",
    plan,
    takes: &[],
};

/// N.
const BLOCK: u32 = 32;

const LOSSES: [f64; 9] = [0.01, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2];

/// Blocks per seed.
const BLOCKS: u32 = 200_000;

/// Blocks per seed with elimination, which takes longer.
const BLOCKS_WITH_COEFFICIENTS: u32 = 2_000;

#[derive(Clone, Debug)]
struct Cell {
    loss: f64,
    /// Whether the receiver runs elimination. Otherwise every combination that arrives while something is missing
    /// counts as innovative.
    with_coefficients: bool,
    seed: u64,
}

fn plan(settings: &Settings) -> Plan {
    let seeds = settings.seeds_or(40, 5);
    let mut cells = Vec::new();
    for loss in LOSSES {
        for with_coefficients in [false, true] {
            cells.extend((0..u64::from(seeds)).map(|seed| Cell { loss, with_coefficients, seed }));
        }
    }
    Plan::new(cells, measure, move |found| outcome(seeds, found))
}

/// Returns the wasted packets per block.
fn measure(cell: &Cell) -> Moments {
    let mut prng = Prng::new(cell.seed).fork(&format!("{} {}", cell.loss, cell.with_coefficients));
    let loss = Probability::new(cell.loss).expect("a probability");
    let mut moments = Moments::default();
    if cell.with_coefficients {
        (0..BLOCKS_WITH_COEFFICIENTS)
            .for_each(|_| moments.add(f64::from(wasted_of_decoder(loss, &mut prng))));
    } else {
        (0..BLOCKS).for_each(|_| moments.add(f64::from(wasted(loss, &mut prng))));
    }
    moments
}

/// Returns the redundant packets of a block: the arrivals beyond the 32nd of those sent ahead. Later ones are sent on
/// demand.
fn wasted(loss: Probability, prng: &mut Prng) -> u32 {
    let sent = BLOCK + ahead(BLOCK, loss.as_f64());
    let arrived = (0..sent).filter(|_| !prng.chance(loss)).count() as u32;
    arrived.saturating_sub(BLOCK)
}

/// The same with real elimination: first the symbols themselves, then combinations of the whole block.
fn wasted_of_decoder(loss: Probability, prng: &mut Prng) -> u32 {
    let sent_ahead = BLOCK + ahead(BLOCK, loss.as_f64());
    let mut decoder = Decoder::new(DecoderConfig::new(1, BLOCK as usize));
    let whole = SymbolRange::new(0, BLOCK as u16).expect("not empty");
    let mut coefficients = [0; BLOCK as usize];
    let (mut rank, mut wasted, mut sent) = (0, 0, 0);
    while rank < BLOCK || sent < sent_ahead {
        sent += 1;
        if prng.chance(loss) {
            continue;
        }
        let arrival = if sent <= BLOCK {
            decoder.handle_source(u64::from(sent - 1), &[])
        } else {
            prng.fill(&mut coefficients);
            decoder.handle_combination(whole, &coefficients, &[])
        };
        if arrival == Ok(Arrival::Innovative) {
            rank += 1;
        } else {
            wasted += 1;
        }
    }
    wasted
}

fn outcome(seeds: u32, found: &[(Cell, Moments)]) -> Outcome {
    let plot = Plot {
        title: "Efficiency of a block code of 32 packets, redundancy alone (CTCP, Eq. 7)",
        x: Axis { label: "loss", scale: Scale::Percent },
        y: Axis { label: "efficiency (goodput / link rate)", scale: Scale::Percent },
        hidden: &[],
        dots: &["simulated", "GF(256)"],
    };
    let mut outcome = Outcome::new(plot, seeds);
    for loss in LOSSES {
        let of = |with_coefficients| -> Moments {
            let is_it = |cell: &Cell| cell.loss == loss && cell.with_coefficients == with_coefficients;
            found.iter().filter(|(cell, _)| is_it(cell)).map(|(_, moments)| *moments).sum()
        };
        let (counted, decoded) = (of(false), of(true));
        let (derived, printed) = (waste(BLOCK, loss), waste_printed(BLOCK, loss));
        let block = f64::from(BLOCK);
        let simulated = |moments: &Moments| moments.summary().map(|packets| efficiency(packets / block));
        outcome.exact("1 - eta as printed", loss, 1.0 - printed);
        outcome.exact("1 - eta as derived", loss, 1.0 - derived);
        outcome.exact("1 / (1 + eta as derived)", loss, efficiency(derived));
        outcome.point("simulated", loss, &simulated(&counted));
        outcome.point("simulated, GF(256)", loss, &simulated(&decoded));
        let margin = NORMAL_99 * counted.summary().deviation / counted.count().sqrt() / block;
        // If nothing is sent ahead, nothing can be wasted and there is nothing to test.
        if derived > 0.0 {
            outcome.check(
                format!("eta at {loss} as derived, 99 % interval"),
                Want::Within { of: derived, margin },
                counted.summary().mean / block,
            );
        }
        outcome.events += (counted.count() + decoded.count()) as u64;
    }
    outcome.notes = vec![
        "the paper prints no numbers of this curve",
        "eta is the share wasted, 1 - eta the paper's bound; with losses before the rate limit the efficiency is 1 / (1 + eta)",
        "GF(256): a receiver that eliminates; one combination in 256 or so is not innovative",
        "efficiencies of connections, with congestion control and feedback, are Fig. 3b's and not here",
    ];
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    // Requirement: C12
    #[test]
    fn elimination_wastes_hardly_more_than_counting_predicts() {
        let mean = |with_coefficients| {
            measure(&Cell { loss: 0.1, with_coefficients, seed: 1 }).summary().mean / f64::from(BLOCK)
        };
        let (counted, decoded, derived) = (mean(false), mean(true), waste(BLOCK, 0.1));
        assert!((counted - derived).abs() < 2e-4, "{counted} {derived}");
        assert!((decoded - derived).abs() < 3e-3, "{decoded} {derived}");
    }
}
