//! Table II: how much sooner a file arrives if the packets that the sink lacks are sent every hundred packets (PB) than
//! without (NC).
//!
//! Files from 100 packets (100 KB) to 10 million (10 GB); loss 1, 10 and 30 %; a one-way delay of 50 ms; R_a. Both
//! schemes use the same seed. The figure also shows other readings of the text, and the effect of assuming that every
//! combination is innovative.
//!
//! Requirement: K4

use super::PAPER;
use super::transfer::{Factor, Scheme, Transfer};
use crate::changes::Parameter;
use crate::experiment::{Experiment, Settings};
use crate::outcome::{Outcome, Want};
use crate::plan::Plan;
use crate::plot::{Axis, Plot, Scale};
use crate::statistics::{Summary, summary};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "pb-table2",
    paper: PAPER,
    title: "time that pseudo blocks save for files of 100 KB to 10 GB",
    plan,
    takes: &[Parameter::Rate, Parameter::Rtt],
};

/// Packets of a file, and the seeds of a full and of a quick run. With the seeds of a full run, the interval of a large
/// file stays below 5 points.
const FILES: [(u64, u32, u32); 6] = [
    (100, 400, 20),
    (1_000, 200, 20),
    (10_000, 100, 8),
    (100_000, 40, 2),
    (1_000_000, 10, 0),
    (10_000_000, 4, 0),
];
/// Loss, and the printed reduction in percent for each file.
const PRINTED: [(f64, [f64; 6]); 3] = [
    (0.01, [7.97, 0.53, 25.47, 5.15, 51.34, 64.54]),
    (0.1, [15.66, 20.49, 11.25, 53.24, 65.23, 65.19]),
    (0.3, [17.33, 2.20, 29.77, 61.21, 70.10, 72.12]),
];

/// The reading of the text that a cell belongs to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reading {
    Table,
    /// Packets are lost before they enter the queue.
    LostBefore,
    /// The sink acknowledges every arrival and a time-out retransmits everything, as in TCP/NC. Three duplicate
    /// acknowledgements then indicate a loss.
    AsTcpNc,
    /// R_a for the hundred packets of a pseudo block.
    BlockRedundancy,
    /// 50 ms is the round trip.
    HalfDelay,
    /// The source estimates N_lp.
    OwnEstimate,
    /// Random coefficients, elimination and payload.
    Coefficients,
}

const READINGS: [(Reading, &str); 6] = [
    (Reading::AsTcpNc, "sink and time-outs of TCP/NC"),
    (Reading::LostBefore, "loss before the queue"),
    (Reading::BlockRedundancy, "R_a of 100 packets"),
    (Reading::HalfDelay, "50 ms both ways"),
    (Reading::OwnEstimate, "the source's own estimate"),
    (Reading::Coefficients, "real coefficients"),
];
/// The file on which the readings are tried: packets, seeds of a full and of a quick run. With coefficients it is
/// smaller.
const TRIED: (u64, u32, u32) = (100_000, 10, 1);
const TRIED_LOSS: f64 = 0.1;
const TRIED_WITH_COEFFICIENTS: (u64, u32, u32) = (1_000, 40, 8);

fn plan(settings: &Settings) -> Plan {
    let quick = settings.quick;
    let count = |(_, full, few): (u64, u32, u32)| match settings.seeds {
        Some(seeds) if few > 0 || !quick => seeds,
        _ if quick => few,
        _ => full,
    };
    let transfer = |packets, loss, seed| Transfer::new(packets, loss, seed).changed_by(settings.changes);
    let mut cells = Vec::new();
    for file in FILES {
        for (loss, _) in PRINTED {
            let of = |seed| (Reading::Table, transfer(file.0, loss, seed));
            cells.extend((0..u64::from(count(file))).map(of));
        }
    }
    for (reading, _) in READINGS {
        let file = if reading == Reading::Coefficients { TRIED_WITH_COEFFICIENTS } else { TRIED };
        let of = |seed| (reading, read(reading, transfer(file.0, TRIED_LOSS, seed)));
        cells.extend((0..u64::from(count(file))).map(of));
    }
    Plan::new(cells, measure, move |found| outcome(quick, found))
}

fn read(reading: Reading, transfer: Transfer) -> Transfer {
    match reading {
        Reading::Table => transfer,
        Reading::LostBefore => Transfer { is_lost_behind: false, ..transfer },
        Reading::AsTcpNc => Transfer { is_as_tcp_nc: true, ..transfer },
        Reading::BlockRedundancy => Transfer { factor: Factor::AdjustedTo(100), ..transfer },
        Reading::HalfDelay => Transfer { delay: transfer.delay / 2, ..transfer },
        Reading::OwnEstimate => Transfer { is_estimated: true, ..transfer },
        Reading::Coefficients => Transfer { is_symbolic: false, ..transfer },
    }
}

type Found = ((Reading, Transfer), (f64, f64, u64));

/// Returns the seconds of NC and of PB, and the number of events.
fn measure((_, transfer): &(Reading, Transfer)) -> (f64, f64, u64) {
    let ((nc, one), (pb, other)) = (transfer.time(Scheme::Nc), transfer.time(Scheme::Pb));
    (nc, pb, one + other)
}

/// Returns the mean of the cuts and the cut of the means in percent, or `None` if nothing was measured.
fn cuts<'a>(found: impl Iterator<Item = &'a Found>) -> Option<[Summary; 2]> {
    let times: Vec<(f64, f64)> = found.map(|(_, (nc, pb, _))| (*nc, *pb)).collect();
    let mean_nc = times.iter().map(|(nc, _)| nc).sum::<f64>() / times.len() as f64;
    let mean_pb = times.iter().map(|(_, pb)| pb).sum::<f64>() / times.len() as f64;
    let cuts: Vec<f64> = times.iter().map(|(nc, pb)| 100.0 * (1.0 - pb / nc)).collect();
    // The first-order contribution of each run to the ratio of the means.
    let shifts: Vec<f64> = times
        .iter()
        .map(|(nc, pb)| 100.0 * (1.0 - mean_pb / mean_nc - (pb - nc * mean_pb / mean_nc) / mean_nc))
        .collect();
    (!times.is_empty()).then(|| [summary(&cuts), summary(&shifts)])
}

fn outcome(quick: bool, found: &[Found]) -> Outcome {
    let plot = Plot {
        title: "Time that pseudo blocks save (EOT/PB, Table II)",
        x: Axis { label: "file (packets of 1000 bytes)", scale: Scale::Logarithmic },
        y: Axis { label: "mean cut (%)", scale: Scale::Linear },
        hidden: &["of means", "NC (s)", "PB (s)"],
        dots: &["TCP/NC", "queue", "packets", "ways", "estimate", "coefficients"],
    };
    let of = |reading: Reading, packets: u64, loss: f64| {
        found
            .iter()
            .filter(move |((this, cell), _)| *this == reading && cell.packets == packets && cell.loss == loss)
    };
    let seeds =
        found.iter().filter(|((reading, cell), _)| *reading == Reading::Table && cell.packets == FILES[3].0);
    let mut outcome = Outcome::new(plot, (seeds.count() / PRINTED.len()) as u32);
    for (loss, printed) in PRINTED {
        let series = format!("loss {:.0} %", loss * 100.0);
        for ((packets, ..), printed) in FILES.into_iter().zip(printed) {
            let x = packets as f64;
            outcome.published(&series, x, printed);
            let name = format!("mean cut at {packets} packets, {series} (%)");
            let Some([cut, of_means]) = cuts(of(Reading::Table, packets, loss)) else {
                outcome.skip(name);
                continue;
            };
            outcome.point(&series, x, &cut);
            outcome.point(&format!("{series}, of means"), x, &of_means);
            for (scheme, pick) in [("NC", 0), ("PB", 1)] {
                let times = of(Reading::Table, packets, loss).map(|(_, (nc, pb, _))| [*nc, *pb][pick]);
                outcome.point(&format!("{series}, {scheme} (s)"), x, &summary(&times.collect::<Vec<f64>>()));
            }
            let is_near = (packets >= 100_000 && loss >= 0.1) || packets == 10_000_000;
            match (quick, is_near) {
                (true, _) => outcome.skip(name),
                (false, true) => outcome.check(name, Want::Within { of: printed, margin: 15.0 }, cut.mean),
                (false, false) => outcome.check(name, Want::AtLeast(0.0), cut.mean),
            }
        }
    }
    for (reading, name) in READINGS {
        let packets = if reading == Reading::Coefficients { TRIED_WITH_COEFFICIENTS.0 } else { TRIED.0 };
        if let Some([cut, _]) = cuts(of(reading, packets, TRIED_LOSS)) {
            outcome.point(&format!("10 %, {name}"), packets as f64, &cut);
        }
    }
    outcome.events = found.iter().map(|(_, (.., events))| events).sum();
    outcome.notes = vec![
        "seeds are those of 100,000 packets; smaller files have more and larger ones fewer, and a quick run has none of the two largest",
        "R_a: the listing of its algorithm is missing; here the smallest R with P[Binomial(ceil(R t), 1-p) >= t] >= 0.9, t packets of the file",
        "losses strike behind the queue; a lost packet has used the link",
        "the sink acknowledges only what is new (section II); a time-out comes after 0.2 s at least and sends the oldest packet again, on which the text is silent",
        "mean of cuts: each seed's cut, averaged, as the paper's words have it; cut of means: one less mean time over mean time",
        "every combination that can be innovative is; the row with real coefficients says what that changes",
    ];
    outcome
}
