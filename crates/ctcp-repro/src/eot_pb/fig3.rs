//! Figs. 2 and 3: packets decoded per tenth of a second of a transfer of 3 MB, and how evenly they are decoded.
//!
//! Without pseudo blocks the sink decodes nothing while a single packet is missing, and then everything at once. The
//! paper prints a standard deviation of 121.53 for NC and of 48.08 for PB. It calls the unit packets per second, but
//! the figures count tenths of a second.
//!
//! Requirement: K4

use core::time::Duration;

use ctcp_sim::series::increments;

use super::PAPER;
use super::transfer::{Factor, Scheme, Transfer};
use crate::changes::Parameter;
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::{Summary, summary};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "pb-fig3",
    paper: PAPER,
    title: "packets decoded per tenth of a second, with and without pseudo blocks",
    plan,
    takes: &[Parameter::Rate],
};

const PACKETS: u64 = 3_000;
const BIN: Duration = Duration::from_millis(100);
const LOSSES: [f64; 2] = [0.1, 0.05];
/// One-way delays in milliseconds: as in the other simulations, and as in the text of this one, an RTT of 50 ms.
const DELAYS: [u64; 2] = [50, 25];
const SCHEMES: [(Scheme, &str); 3] = [(Scheme::Nc, "NC"), (Scheme::Eot, "NC with EOT"), (Scheme::Pb, "PB")];
const DEVIATION: &str = "standard deviation";

fn plan(settings: &Settings) -> Plan {
    let seeds = settings.seeds_or(100, 20);
    let mut cells = Vec::new();
    for loss in LOSSES {
        for delay in DELAYS {
            for factor in [Factor::Adjusted, Factor::Theoretical] {
                let of = |seed| {
                    let transfer = Transfer { factor, delay, ..Transfer::new(PACKETS, loss, seed) };
                    transfer.changed_by(settings.changes)
                };
                cells.extend((0..u64::from(seeds)).map(of));
            }
        }
    }
    Plan::new(cells, measure, move |found| outcome(seeds, found))
}

/// Returns the packets decoded per bin until the last packet, for each scheme.
fn measure(cell: &Transfer) -> ([Vec<u64>; 3], u64) {
    let mut events = 0;
    let decoded = SCHEMES.map(|(scheme, _)| {
        let network = cell.run(scheme, Some(BIN));
        events += network.simulation.events();
        let series = network.simulation.series().expect("the series is kept");
        let samples = series.connection(network.flows()[0].receiver);
        let mut bins = increments(samples, |sample| sample.symbols_decoded);
        // The bin of the last packet is not complete.
        let rest = PACKETS - bins.iter().sum::<u64>();
        bins.extend((rest > 0).then_some(rest));
        bins
    });
    (decoded, events)
}

type Found = (Transfer, ([Vec<u64>; 3], u64));

fn deviation(bins: &[u64]) -> f64 {
    summary(&bins.iter().map(|&count| count as f64).collect::<Vec<f64>>()).deviation
}

/// Returns the deviations of NC and PB, and the reduction from NC to PB in percent, over the seeds.
fn deviations(found: &[Found], loss: f64, delay: u64, factor: Factor) -> [Summary; 3] {
    let cells =
        found.iter().filter(|(cell, _)| (cell.loss, cell.delay, cell.factor) == (loss, delay, factor));
    let pairs: Vec<[f64; 2]> =
        cells.map(|(_, (bins, _))| [&bins[0], &bins[2]].map(|bins| deviation(bins))).collect();
    let of = |value: &dyn Fn(&[f64; 2]) -> f64| summary(&pairs.iter().map(value).collect::<Vec<f64>>());
    [of(&|[nc, _]| *nc), of(&|[_, pb]| *pb), of(&|[nc, pb]| 100.0 * (1.0 - pb / nc))]
}

fn outcome(seeds: u32, found: &[Found]) -> Outcome {
    let plot = Plot {
        title: "3 MB at 10 % loss, seed 0 (EOT/PB, Fig. 2)",
        x: Axis { label: "time (s)", scale: Scale::Linear },
        y: Axis { label: "packets decoded in 0.1 s", scale: Scale::Linear },
        hidden: &[DEVIATION, "cut (%)"],
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    let (_, (traces, _)) = &found[0];
    for ((_, name), bins) in SCHEMES.iter().zip(traces) {
        for (bin, count) in bins.iter().enumerate() {
            outcome.exact(name, (bin + 1) as f64 * BIN.as_secs_f64(), *count as f64);
        }
    }
    for delay in DELAYS {
        for (factor, name) in [(Factor::Adjusted, "R_a"), (Factor::Theoretical, "1/(1-p)")] {
            for loss in LOSSES {
                let [nc, pb, cut] = deviations(found, loss, delay, factor);
                outcome.point(&format!("NC, {delay} ms, {name}: {DEVIATION}"), loss, &nc);
                outcome.point(&format!("PB, {delay} ms, {name}: {DEVIATION}"), loss, &pb);
                outcome.point(&format!("{delay} ms, {name}: cut (%)"), loss, &cut);
                if (delay, factor) == (DELAYS[0], Factor::Adjusted) {
                    let loss = format!("at {:.0} % loss", loss * 100.0);
                    outcome.check(format!("{DEVIATION} of PB {loss}"), Want::AtMost(75.0), pb.mean);
                    outcome.check(
                        format!("cut of the {DEVIATION} {loss} (%)"),
                        Want::AtLeast(40.0),
                        cut.mean,
                    );
                }
            }
        }
    }
    outcome.published(&format!("NC, 50 ms, R_a: {DEVIATION}"), LOSSES[0], 121.53);
    outcome.published(&format!("PB, 50 ms, R_a: {DEVIATION}"), LOSSES[0], 48.08);
    outcome.events = found.iter().map(|(_, (_, events))| events).sum();
    outcome.notes = vec![
        "the unit of the deviations is packets per tenth of a second: the link carries 62 in one, so that 121 per second would be next to nothing",
        "the text does not say which loss its deviations belong to, nor which R; the checks take R_a and 50 ms one way, the other readings stand beside",
        "decoded: a packet counts when everything the sink has heard of is seen, for then all of it is known at once",
    ];
    outcome
}
