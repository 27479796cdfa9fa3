//! Fig. 8: a film of 60 s streamed over 25 Mbit/s, 10 ms: how long it plays and how often it stops.
//!
//! The player is the model of the simulator: blocks of 0.6 s, two of them buffered before the film begins, and one under-run for each block
//! that is late. Only the arrival times of the blocks are measured here.
//!
//! Requirement: C10

use core::time::Duration;

use ctcp_repro::Outcome;
use ctcp_repro::ctcp::contender::Contender;
use ctcp_repro::ctcp::fig7::LINK;
use ctcp_repro::ctcp::fig8::{BLOCK_BYTES, BLOCKS, Cell, LOSSES, outcome, show};
use ctcp_repro::ctcp::shared_link::Bottleneck;

use super::Figure;
use super::contenders::{download_cold, measure_all, one_path};
use crate::bulk::Request;
use crate::error::TestbedError;
use crate::network::Network;
use crate::testbed::Testbed;

pub(super) const FIGURE: Figure = Figure {
    id: "ctcp-fig8",
    paper: "CTCP",
    title: "a film streamed over a lossy link, with under-runs",
    measure,
};

const LOSSES_QUICK: [f64; 3] = [0.0, 0.01, 0.2];
/// 6 s of film.
const BLOCKS_QUICK: u32 = 10;
/// At higher losses, TCP takes minutes for the shortest film.
const TCP_QUICK: f64 = 0.01;
/// 50 Mbit/s in total.
const AT_ONCE: usize = 2;
/// Kernel TCP uses little CPU, and with losses it sends little for hours.
const TCP_AT_ONCE: usize = 6;
/// The time limit of a film.
const PATIENCE: Duration = Duration::from_secs(36_000);

fn measure(testbed: &mut Testbed<'_>) -> Result<Outcome, TestbedError> {
    let quick = testbed.settings.quick;
    let seeds = testbed.settings.seeds_or(2, 1);
    let (losses, blocks): (&[f64], u32) =
        if quick { (&LOSSES_QUICK, BLOCKS_QUICK) } else { (&LOSSES, BLOCKS) };
    let place = |cell: &Cell| {
        let plan = one_path(cell.seed, Bottleneck { loss: cell.loss, ..LINK }.path());
        (cell.contender, format!("a film at {}", cell.loss), plan)
    };
    let request = Request { bytes: Some(u64::from(blocks) * BLOCK_BYTES), time: PATIENCE };
    let film = |network: &Network, cell: &Cell| {
        let transfer = download_cold(network, cell.contender, request, BLOCK_BYTES)?;
        Ok(show(&transfer.parts_s))
    };
    let tcp: Vec<f64> = losses.iter().copied().filter(|&loss| !quick || loss <= TCP_QUICK).collect();
    let mut found = measure_all(testbed, AT_ONCE, cells(&Contender::OURS, losses, seeds), place, film)?;
    let kernel = cells(&[Contender::Reno, Contender::Cubic], &tcp, seeds);
    found.extend(measure_all(testbed, TCP_AT_ONCE, kernel, place, film)?);
    let mut outcome = outcome(seeds, losses, blocks, &found);
    outcome.plot.title = "A film of 60 s over 25 Mbit/s, 10 ms, real sockets (CTCP, Fig. 8a)";
    if quick {
        outcome.plot.title = "A film of 6 s over 25 Mbit/s, 10 ms, real sockets (CTCP, Fig. 8a, quick)";
    }
    Ok(outcome)
}

fn cells(contenders: &[Contender], losses: &[f64], seeds: u32) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &contender in contenders {
        for &loss in losses {
            cells.extend((0..u64::from(seeds)).map(|seed| Cell { contender, loss, seed }));
        }
    }
    cells
}
