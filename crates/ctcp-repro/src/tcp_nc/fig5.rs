//! Fig. 5: fairness. A flow uses a network of four hops alone for 1000 s, then a second flow begins.
//!
//! There are no losses and R = 1. Coding then changes only the meaning of an acknowledgement, and the flows should
//! share like two TCP flows. The paper shows TCP/NC against TCP, in bins of 2.5 s. Here there are also coded against
//! coded and TCP against TCP.
//!
//! Requirement: N4

use core::time::Duration;

use ctcp_proto::Profile;
use ctcp_sim::measure::jain;
use ctcp_sim::series::increments;

use super::PAPER;
use super::tandem::{flow, hop, tandem, tcp, tcp_nc};
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::summary;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "tcpnc-fig5",
    paper: PAPER,
    title: "a coded and an uncoded flow share four hops",
    plan,
    takes: &[],
};

const HOPS: usize = 4;
const BIN: Duration = Duration::from_millis(2_500);
/// The start of the second flow, the end, and the settling time of the second flow, in seconds.
const SECOND: u64 = 1_000;
const END: u64 = 2_000;
const SETTLING: u64 = 200;
/// Mbit per packet.
const MEGABITS: f64 = 8_000.0 / 1e6;

/// The order in which the flows begin.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pairing {
    CodedThenPlain,
    PlainThenCoded,
    BothCoded,
    BothPlain,
}

const PAIRINGS: [(Pairing, &str, [&str; 2]); 4] = [
    (Pairing::CodedThenPlain, "TCP/NC, then TCP", ["TCP/NC, first", "TCP, second"]),
    (Pairing::PlainThenCoded, "TCP, then TCP/NC", ["TCP, first", "TCP/NC, second"]),
    (Pairing::BothCoded, "both TCP/NC", ["TCP/NC, first of two", "TCP/NC, second of two"]),
    (Pairing::BothPlain, "both TCP", ["TCP, first of two", "TCP, second of two"]),
];

fn plan(settings: &Settings) -> Plan {
    let seeds = settings.seeds_or(4, 1);
    let cells =
        PAIRINGS.iter().flat_map(|&(pairing, ..)| (0..u64::from(seeds)).map(move |seed| (pairing, seed)));
    Plan::new(cells.collect(), measure, move |found| outcome(seeds, found))
}

/// Returns the throughput of each flow per bin in Mbit/s, and the number of events.
fn measure(&(pairing, seed): &(Pairing, u64)) -> ([Vec<f64>; 2], u64) {
    let profiles: [Profile; 2] = match pairing {
        Pairing::CodedThenPlain => [tcp_nc(1.0), tcp()],
        Pairing::PlainThenCoded => [tcp(), tcp_nc(1.0)],
        Pairing::BothCoded => [tcp_nc(1.0), tcp_nc(1.0)],
        Pairing::BothPlain => [tcp(), tcp()],
    };
    // Without losses the only randomness is the start of the second flow: it begins a tenth of a second later with each
    // seed.
    let starts = [Duration::from_millis(500), Duration::from_millis(1_000 * SECOND + 100 * seed)];
    let flows = [0, 1].map(|which| flow(profiles[which]).starting_after(starts[which]));
    let mut network = tandem(seed, &[(); HOPS].map(|()| hop(0.0)), flows);
    network.keep_series(BIN);
    network.run_for(Duration::from_secs(END));
    let series = network.simulation.series().expect("the series is kept");
    let got = [0, 1].map(|which: usize| {
        let samples = series.connection(network.flows()[which].receiver);
        let decoded = increments(samples, |sample| sample.symbols_decoded);
        decoded.iter().map(|&count| count as f64 * MEGABITS / BIN.as_secs_f64()).collect()
    });
    (got, network.simulation.events())
}

/// A pairing and a seed, the throughputs of its flows, and the number of events.
type Found = ((Pairing, u64), ([Vec<f64>; 2], u64));

fn outcome(seeds: u32, found: &[Found]) -> Outcome {
    let plot = Plot {
        title: "Two flows over four hops without losses (TCP/NC, Fig. 5)",
        x: Axis { label: "time (s)", scale: Scale::Linear },
        y: Axis { label: "throughput (Mbit/s)", scale: Scale::Linear },
        hidden: &["of two", "TCP, first", "TCP/NC, second", "Jain's index"],
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    let settled = ((SECOND + SETTLING) as f64 / BIN.as_secs_f64()) as usize;
    for (pairing, name, flows) in PAIRINGS {
        let runs: Vec<&[Vec<f64>; 2]> =
            found.iter().filter(|((this, _), _)| *this == pairing).map(|(_, (got, _))| got).collect();
        for (flow, got) in flows.iter().zip(runs[0]) {
            for (bin, got) in got.iter().enumerate() {
                outcome.exact(flow, (bin + 1) as f64 * BIN.as_secs_f64(), *got);
            }
        }
        let fairness = |got: &&[Vec<f64>; 2]| {
            let sums: Vec<f64> = got.iter().map(|flow| flow.iter().skip(settled).sum::<f64>()).collect();
            jain(&sums)
        };
        let fairness: Vec<f64> = runs.iter().map(fairness).collect();
        outcome.point(&format!("{name}: Jain's index"), END as f64, &summary(&fairness));
        let least = fairness.iter().copied().fold(1.0, f64::min);
        // TCP against TCP is the reference and not a claim.
        if pairing != Pairing::BothPlain {
            outcome.check(format!("Jain's index, {name}, worst seed"), Want::AtLeast(0.98), least);
        }
    }
    outcome.events = found.iter().map(|(_, (_, events))| events).sum();
    outcome.notes = vec![
        "Jain's index of what the flows get from 200 s after the second has begun to the end at 2000 s",
        "each flow has a window of 100 packets of its own, which binds it while it is alone to 0.96 of the link",
        "the throughput over time is that of seed 0; a seed moves the beginning of the second flow by a tenth of a second",
        "the text prints no number of this figure, so that nothing is marked as printed",
    ];
    outcome
}
