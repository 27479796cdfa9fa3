//! Theorem 2: the mean queues along a chain of lossy links whose relays re-encode, against the load.
//!
//! The model of section VI-B runs for ten million slots per seed, with chains of four equal links at loads from 0.3 to
//! 0.95, and with chains of unequal links. The results are compared with the theorem as printed, and as it follows from
//! the model (`theory/queues.rs`). Two chains also run with coefficients over GF(256), where some combinations are not
//! innovative.
//!
//! Requirement: N6

use ctcp_base::Prng;

use super::PAPER;
use super::coded_chain::CodedChain;
use super::slotted_chain::SlottedChain;
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::{Summary, summary};
use crate::theory::queues::Chain;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "tcpnc-theorem2",
    paper: PAPER,
    title: "mean queues along a chain of lossy links",
    plan,
    takes: &[],
};

const SLOTS: u64 = 10_000_000;

/// With elimination at each reception, a slot takes a thousand times as long as with counting.
const SLOTS_WITH_COEFFICIENTS: u64 = 50_000;

/// Four links that are on in four out of five slots.
const EQUAL: [f64; 4] = [0.8; 4];
const LOADS: [f64; 7] = [0.3, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95];

/// Arrivals and links.
const UNEQUAL: [(f64, &[f64]); 6] = [
    (0.57, &[0.9, 0.6]),
    (0.57, &[0.6, 0.9]),
    (0.4, &[0.5, 0.7, 0.9]),
    (0.45, &[0.9, 0.7, 0.5]),
    (0.4, &[0.95, 0.5, 0.95, 0.5, 0.95]),
    (0.76, &[0.8, 0.85, 0.9, 0.95, 0.99]),
];

/// Chains that also run with coefficients: an equal and an unequal one.
const WITH_COEFFICIENTS: [usize; 2] = [2, 9];

/// The maximum relative error of the corrected form.
const MARGIN: f64 = 0.03;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Model {
    /// Every combination that can be innovative is innovative.
    Counting,
    /// Coefficients over GF(256), and elimination.
    Coefficients,
    /// Counting, for the number of slots used with coefficients and with the same random events.
    CountingShort,
}

#[derive(Clone, Debug)]
struct Cell {
    index: usize,
    chain: Chain,
    model: Model,
    slots: u64,
    seed: u64,
}

fn chains() -> Vec<Chain> {
    let equal = LOADS.map(|load| Chain { arrivals: load * EQUAL[0], channels: EQUAL.to_vec() });
    let unequal = UNEQUAL.map(|(arrivals, channels)| Chain { arrivals, channels: channels.to_vec() });
    equal.into_iter().chain(unequal).collect()
}

fn plan(settings: &Settings) -> Plan {
    let seeds = settings.seeds_or(20, 2);
    let mut cells = Vec::new();
    for (index, chain) in chains().into_iter().enumerate() {
        for seed in 0..u64::from(seeds) {
            let cell = |model, slots| Cell { index, chain: chain.clone(), model, slots, seed };
            cells.push(cell(Model::Counting, SLOTS));
            if WITH_COEFFICIENTS.contains(&index) {
                cells.push(cell(Model::Coefficients, SLOTS_WITH_COEFFICIENTS));
                cells.push(cell(Model::CountingShort, SLOTS_WITH_COEFFICIENTS));
            }
        }
    }
    Plan::new(cells, measure, move |found| outcome(seeds, found))
}

/// Returns the mean queues of the nodes.
fn measure(cell: &Cell) -> Vec<f64> {
    // Each chain has its own random events, the same for all models.
    let prng = Prng::new(cell.seed).fork(&format!("{:?}", cell.chain));
    match cell.model {
        Model::Counting | Model::CountingShort => {
            SlottedChain::new(&cell.chain, prng).mean_queues(cell.slots)
        }
        Model::Coefficients => CodedChain::new(&cell.chain, prng).mean_queues(cell.slots),
    }
}

fn outcome(seeds: u32, found: &[(Cell, Vec<f64>)]) -> Outcome {
    let plot = Plot {
        title: "Mean queues along four links with mu = 0.8 (TCP/NC, Theorem 2)",
        x: Axis { label: "load of each link", scale: Scale::Linear },
        y: Axis { label: "mean queue (packets)", scale: Scale::Logarithmic },
        hidden: &["by node"],
        dots: &["simulated"],
    };
    let mut outcome = Outcome::new(plot, seeds);
    let mut least_printed_error = f64::INFINITY;
    for (index, chain) in chains().iter().enumerate() {
        let queue = |model, node: usize| -> Summary {
            let cells = found.iter().filter(|(cell, _)| cell.index == index && cell.model == model);
            summary(
                &cells.map(|(_, queues)| queues.get(node).copied().unwrap_or(f64::NAN)).collect::<Vec<f64>>(),
            )
        };
        let (mut corrected_error, mut printed_error) = (0.0_f64, 0.0_f64);
        for node in 0..chain.channels.len() {
            let simulated = queue(Model::Counting, node);
            let (corrected, printed) = (chain.queue(node), chain.queue_printed(node));
            corrected_error = corrected_error.max((corrected / simulated.mean - 1.0).abs());
            printed_error = printed_error.max((printed / simulated.mean - 1.0).abs());
            let (name, x) = match LOADS.get(index) {
                Some(&load) => (format!("node {node}, {{}}"), load),
                None => (format!("{}, {{}}, by node", describe(chain)), node as f64),
            };
            outcome.exact(&name.replace("{}", "as printed"), x, printed);
            outcome.exact(&name.replace("{}", "corrected"), x, corrected);
            outcome.point(&name.replace("{}", "simulated"), x, &simulated);
        }
        least_printed_error = least_printed_error.min(printed_error);
        let name = format!("{}: largest error of the corrected form", describe(chain));
        outcome.check(name, Want::AtMost(MARGIN), corrected_error);
        if WITH_COEFFICIENTS.contains(&index) {
            let mut worst = 0.0_f64;
            for node in 0..chain.channels.len() {
                let [coded, counted] =
                    [Model::Coefficients, Model::CountingShort].map(|model| queue(model, node));
                let name = |model| format!("{}, {model}, by node", describe(chain));
                outcome.point(&name("GF(256)"), node as f64, &coded);
                outcome.point(&name("counted, same luck"), node as f64, &counted);
                worst = worst.max((coded.mean / counted.mean - 1.0).abs());
            }
            let name = format!("{}: coefficients against counting with the same luck", describe(chain));
            outcome.check(name, Want::AtMost(MARGIN), worst);
        }
    }
    outcome.check(
        "in every chain the printed form is further off than that at some node",
        Want::AtLeast(MARGIN),
        least_printed_error,
    );
    outcome.events = found.iter().map(|(cell, _)| cell.slots).sum();
    outcome.notes = vec![
        "by node: a chain of unequal links, whose x is the node; lambda / mu of its links",
        "GF(256): real coefficients for 50,000 slots a seed; counted, same luck: the same slots with every combination innovative",
        "as printed it lacks the slot that each relay waits, and the first channel on the way of the news to the relays",
    ];
    outcome
}

fn describe(chain: &Chain) -> String {
    let channels: Vec<String> = chain.channels.iter().map(f64::to_string).collect();
    format!("{:.3} / {}", chain.arrivals, channels.join(" "))
}
