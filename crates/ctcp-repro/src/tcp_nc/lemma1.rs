//! Lemma 1: the probability that a combination makes the receiver see the next packet, for q = 2, 16 and 256.
//!
//! A sends a uniform combination of everything it knows to B, which lacks part of it. d* is the oldest packet that A
//! has seen and B has not. There are three situations:
//! - The lemma's condition as its proof needs it: d* is B's oldest unseen packet. Then B sees it with probability 1 -
//!   1/q.
//! - Any knowledge, as the lemma states: the probability is lower, but what B receives is innovative with at least that
//!   probability.
//! - The counterexample, A = {p1 + p2, p3} and B = {p1}: B sees d* = p3 with probability (1 - 1/q)/q.
//!
//! Requirement: N6

use ctcp_base::Prng;
use serde::{Deserialize, Serialize};

use super::PAPER;
use super::field::Field;
use super::knowledge::{Combination, Knowledge, PACKETS};
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::{NORMAL_99, proportion};
use crate::theory::seen;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "tcpnc-lemma1",
    paper: PAPER,
    title: "probability of seeing the next packet",
    plan,
    takes: &[],
};

/// q, the number of elements of the field.
const FIELDS: [u16; 3] = [2, 16, 256];

/// Receptions per seed.
const TRIALS: u64 = 100_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Situation {
    OldestUnseen,
    Any,
    Counterexample,
}

#[derive(Clone, Debug)]
struct Cell {
    field: u16,
    situation: Situation,
    seed: u64,
}

/// Results of [`TRIALS`] receptions.
#[derive(Default, Serialize, Deserialize)]
struct Counts {
    /// How often B saw d*.
    seen: u64,
    /// How often B saw any packet.
    innovative: u64,
}

fn plan(settings: &Settings) -> Plan {
    let seeds = settings.seeds_or(100, 5);
    let situations = [Situation::OldestUnseen, Situation::Any, Situation::Counterexample];
    let cells = FIELDS.into_iter().flat_map(|field| {
        let of_field = situations.into_iter();
        of_field
            .flat_map(move |situation| (0..u64::from(seeds)).map(move |seed| Cell { field, situation, seed }))
    });
    Plan::new(cells.collect(), measure, move |found| outcome(seeds, found))
}

fn measure(cell: &Cell) -> Counts {
    let field = Field::new(cell.field);
    let mut prng = Prng::new(cell.seed).fork(&format!("{} {:?}", cell.field, cell.situation));
    let mut counts = Counts::default();
    for _ in 0..TRIALS {
        let (sender, mut receiver, next) = draw(&field, cell.situation, &mut prng);
        let sees = receiver.receive(&field, sender.combine(&field, &mut prng));
        counts.seen += u64::from(sees == Some(next));
        counts.innovative += u64::from(sees.is_some());
    }
    counts
}

/// Draws A, B and d*.
fn draw(field: &Field, situation: Situation, prng: &mut Prng) -> (Knowledge, Knowledge, usize) {
    loop {
        let (mut sender, mut receiver) = (Knowledge::default(), Knowledge::default());
        if situation == Situation::Counterexample {
            sender.receive(field, [1, 1, 0, 0, 0, 0]);
            sender.receive(field, [0, 0, 1, 0, 0, 0]);
            receiver.receive(field, [1, 0, 0, 0, 0, 0]);
        } else {
            for node in [&mut sender, &mut receiver] {
                for _ in 0..prng.below(PACKETS as u64) {
                    node.receive(field, sparse(field, prng));
                }
            }
        }
        let Some(next) = sender.oldest_beyond(&receiver) else { continue };
        if situation != Situation::OldestUnseen || receiver.oldest_unseen() == Some(next) {
            return (sender, receiver, next);
        }
    }
}

/// Draws a combination of a random run of packets. Combinations of all packets would leave no gaps in what is seen.
fn sparse(field: &Field, prng: &mut Prng) -> Combination {
    let first = prng.below(PACKETS as u64) as usize;
    let end = first + 1 + prng.below((PACKETS - first) as u64) as usize;
    core::array::from_fn(|packet| if (first..end).contains(&packet) { field.draw(prng) } else { 0 })
}

fn outcome(seeds: u32, found: &[(Cell, Counts)]) -> Outcome {
    let plot = Plot {
        title: "Probability that a combination shows the next packet (TCP/NC, Lemma 1)",
        x: Axis { label: "q (elements of the field)", scale: Scale::Logarithmic },
        y: Axis { label: "probability", scale: Scale::Linear },
        hidden: &[],
        dots: &["oldest unseen", "any A and B", "innovative", "B = {p1}"],
    };
    let mut outcome = Outcome::new(plot, seeds);
    let trials = u64::from(seeds) * TRIALS;
    for field in FIELDS {
        let q = f64::from(field);
        let sum = |situation, part: fn(&Counts) -> u64| -> u64 {
            let cells = found.iter().filter(|(cell, _)| cell.field == field && cell.situation == situation);
            cells.map(|(_, counts)| part(counts)).sum()
        };
        let seen_when = |situation| proportion(sum(situation, |counts| counts.seen), trials);
        let margin = |p: f64| NORMAL_99 * (p * (1.0 - p) / trials as f64).sqrt();
        let (lemma, counter) = (seen::next_is_seen(q), seen::counterexample(q));
        let [right, any, wrong] =
            [Situation::OldestUnseen, Situation::Any, Situation::Counterexample].map(seen_when);
        let innovative = proportion(sum(Situation::Any, |counts| counts.innovative), trials);
        outcome.exact("lemma as printed, 1 - 1/q", q, lemma);
        outcome.exact("(1 - 1/q)/q", q, counter);
        outcome.point("d* is B's oldest unseen", q, &right);
        outcome.point("any A and B", q, &any);
        outcome.point("any A and B, innovative", q, &innovative);
        outcome.point("A = {p1+p2, p3}, B = {p1}", q, &wrong);
        outcome.check(
            format!("q = {field}: under its condition the lemma holds, 99 % interval"),
            Want::Within { of: lemma, margin: margin(lemma) },
            right.mean,
        );
        outcome.check(
            format!("q = {field}: the counterexample has (1 - 1/q)/q instead, 99 % interval"),
            Want::Within { of: counter, margin: margin(counter) },
            wrong.mean,
        );
        outcome.check(
            format!("q = {field}: as printed, for any A and B, the lemma falls short"),
            Want::AtMost(lemma - margin(lemma)),
            any.mean,
        );
        outcome.check(
            format!("q = {field}: what is received is innovative as often, for any A and B"),
            Want::AtLeast(lemma - margin(lemma)),
            innovative.mean,
        );
        outcome.events += 3 * trials;
    }
    outcome.notes = vec![
        "any A and B: up to five combinations each of random runs of six packets; how far the lemma falls short depends on this choice",
        "the counterexample's d* is p3, but what is left of a combination begins with p2, which neither node has seen",
    ];
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    // Requirement: N6
    #[test]
    fn the_counterexamples_next_packet_is_the_third() {
        let (sender, receiver, next) = draw(&Field::new(2), Situation::Counterexample, &mut Prng::new(1));
        assert_eq!((next, receiver.oldest_unseen()), (2, Some(1)));
        assert!(sender.has_seen(0) && !sender.has_seen(1) && sender.has_seen(2));
    }

    // Requirement: N6
    #[test]
    fn the_lemma_holds_in_gf_2_under_its_condition_only() {
        let share = |situation| {
            let counts = measure(&Cell { field: 2, situation, seed: 1 });
            counts.seen as f64 / TRIALS as f64
        };
        assert!((share(Situation::OldestUnseen) - 0.5).abs() < 0.006);
        assert!(share(Situation::Any) < 0.495);
        assert!((share(Situation::Counterexample) - 0.25).abs() < 0.006);
    }
}
