//! Fig. 3a: the share of a 25 Mbit/s link that one flow gets against the loss, for CTCP and for kernel TCP.
//!
//! As in the paper, a download goes through both proxies, and packets are lost before the rate limit. The paper's H-TCP, Westwood and Veno
//! are left out, because most kernels do not have them.
//!
//! Requirement: C8

use core::time::Duration;

use ctcp_base::{Probability, Rate};
use ctcp_netem::{LossModel, PathConfig};
use ctcp_repro::statistics::{Summary, summary};
use ctcp_repro::{Axis, Outcome, Plot, Scale, Want};

use super::Figure;
use crate::bulk::Request;
use crate::error::TestbedError;
use crate::peer::{Ctcp, KernelTcp, Peer};
use crate::plan::{NetworkPlan, PathPlan};
use crate::testbed::{Measured, Testbed};

pub(super) const FIGURE: Figure = Figure {
    id: "ctcp-fig3a",
    paper: "CTCP",
    title: "the part of a link of 25 Mbit/s, 20 ms that one flow gets, against the loss",
    measure,
};

const RATE: Rate = Rate::from_megabits_per_second(25);
/// The round trip of the caption; the text says 25 ms.
const RTT: Duration = Duration::from_millis(20);
const LOSSES: [f64; 8] = [0.0, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2];
const LOSSES_QUICK: [f64; 3] = [0.01, 0.05, 0.2];
const PEERS: [&dyn Peer; 5] =
    [&Ctcp::PAPER, &Ctcp::DEFAULT, &KernelTcp::RENO, &KernelTcp::CUBIC, &KernelTcp::BBR];

struct Found {
    peer: &'static str,
    loss: f64,
    measured: Measured,
}

fn measure(testbed: &mut Testbed<'_>) -> Result<Outcome, TestbedError> {
    let quick = testbed.settings.quick;
    let (seeds, seconds) = (testbed.settings.seeds_or(3, 1), if quick { 5 } else { 20 });
    let losses: &[f64] = if quick { &LOSSES_QUICK } else { &LOSSES };
    let request = Request { bytes: None, time: Duration::from_secs(seconds) };
    testbed.expect_runs(losses.len() * PEERS.len() * seeds as usize);
    let mut found = Vec::new();
    // Peers take turns, so that other load on the machine affects all of them.
    for seed in 0..u64::from(seeds) {
        for &loss in losses {
            for peer in PEERS {
                if let Some(measured) = testbed.download(peer, &network(seed, loss), request)? {
                    found.push(Found { peer: peer.name(), loss, measured });
                }
            }
        }
    }
    Ok(outcome(seeds, losses, &found))
}

fn network(seed: u64, loss: f64) -> NetworkPlan {
    let loss = LossModel::Bernoulli(Probability::new(loss).expect("a probability"));
    NetworkPlan::new(seed, [PathPlan::new(PathConfig::new(RATE, RTT, loss).with_lossless_return())])
}

fn outcome(seeds: u32, losses: &[f64], found: &[Found]) -> Outcome {
    let plot = Plot {
        title: "One flow on 25 Mbit/s, 20 ms, real sockets (CTCP, Fig. 3a)",
        x: Axis { label: "packet loss", scale: Scale::LogarithmicPercent },
        y: Axis { label: "goodput / link rate", scale: Scale::Percent },
        // A logarithmic axis has no zero.
        hidden: &["no loss", "sent per byte"],
        dots: &[],
    };
    let mut outcome = Outcome::new(plot, seeds);
    for peer in PEERS.map(Peer::name) {
        for &loss in losses {
            let cells = || found.iter().filter(|cell| cell.peer == peer && cell.loss == loss);
            if cells().next().is_none() {
                continue;
            }
            let series = if loss == 0.0 { format!("{peer}, no loss") } else { peer.to_owned() };
            outcome.point(&series, loss, &share(found, peer, loss));
            let sent: Vec<f64> = cells().map(|cell| cell.measured.sent_per_byte()).collect();
            outcome.point(&format!("{peer}, sent per byte"), loss, &summary(&sent));
        }
    }
    let (ctcp, default) = (Ctcp::PAPER.name(), Ctcp::DEFAULT.name());
    outcome.published(ctcp, 0.01, 0.96);
    outcome.published(KernelTcp::RENO.name(), 0.01, 0.2);
    outcome.check("CTCP at 1 %", Want::AtLeast(0.92), share(found, ctcp, 0.01).mean);
    for peer in [ctcp, default] {
        let shares = losses.iter().map(|&loss| share(found, peer, loss).mean);
        // If one is missing, the minimum is unknown.
        let least = shares
            .fold(f64::INFINITY, |least, share| if share < least || share.is_nan() { share } else { least });
        outcome.check(format!("{peer}, least of all losses to 20 %"), Want::AtLeast(0.87), least);
    }
    outcome.notes = vec![
        "shares count the application's bytes from before the connection is asked for; of 1500 bytes on the wire 1424 are at best the application's",
        "packets are lost before the rate limit, on the way of the data only; queue of one bandwidth-delay product",
        "the paper's H-TCP, Westwood and Veno are left out: the kernels of most distributions have them as modules at best",
    ];
    outcome
}

/// The share of the link's rate, or NaN if all runs were left out.
fn share(found: &[Found], peer: &str, loss: f64) -> Summary {
    let cells = found.iter().filter(|cell| cell.peer == peer && cell.loss == loss);
    let shares: Vec<f64> =
        cells.map(|cell| cell.measured.transfer.goodput() / RATE.as_bits_per_second() as f64).collect();
    if shares.is_empty() { Summary { mean: f64::NAN, deviation: 0.0, margin: 0.0 } } else { summary(&shares) }
}
