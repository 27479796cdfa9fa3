//! The thesis's single interface: a file of 11 MB over a wireless link with losses added, by the sparse code, kernel TCP and profile `default`.
//!
//! The simulator's figure has two more flows: the sparse code with windows that the thesis does not have.
//!
//! Requirement: U2, U6

use core::time::Duration;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ctcp_repro::Outcome;
use ctcp_repro::thesis::single::{ADDED, CTCP, Cell, FILE, LINK, TCP, Transfer, outcome};

use super::Figure;
use super::contenders::one_path;
use crate::bulk::Request;
use crate::error::TestbedError;
use crate::network::Network;
use crate::peer::{Ctcp, KernelTcp, Peer};
use crate::probe::ping;
use crate::testbed::{Testbed, download};

pub(super) const FIGURE: Figure = Figure {
    id: "thesis-single",
    paper: "thesis",
    title: "a file over one lossy interface, sparse code against TCP",
    measure,
};

const SPARSE: Ctcp = Ctcp::profile(CTCP, "sparse");
/// The names are those of the simulator's figure, which calls Reno "TCP".
const FLOWS: [(&str, &dyn Peer); 4] = [
    (CTCP, &SPARSE),
    (TCP, &KernelTcp::RENO),
    ("TCP Cubic", &KernelTcp::CUBIC),
    ("profile default", &Ctcp::DEFAULT),
];
const ADDED_QUICK: [f64; 3] = [0.01, 0.02, 0.05];
/// A smaller file suffices, because the result is a rate.
const FILE_QUICK: u64 = 4_000_000;
/// 34 Mbit/s in total.
const AT_ONCE: usize = 2;
/// Batches of pings run during the whole download. A ping counts as lost after a second.
const PINGS: u16 = 5;
const PING_EVERY: Duration = Duration::from_millis(20);
/// The time limit of a download.
const PATIENCE: Duration = Duration::from_secs(3_600);

fn measure(testbed: &mut Testbed<'_>) -> Result<Outcome, TestbedError> {
    let quick = testbed.settings.quick;
    let seeds = testbed.settings.seeds_or(5, 1);
    let (added, file): (&[f64], u64) = if quick { (&ADDED_QUICK, FILE_QUICK) } else { (&ADDED, FILE) };
    let mut cells = Vec::new();
    for (name, _) in FLOWS {
        for &added in added {
            cells.extend((0..u64::from(seeds)).map(|seed| Cell { flow: name.to_owned(), added, seed }));
        }
    }
    testbed.describe_all(FLOWS.map(|(_, peer)| peer))?;
    let place = |cell: &Cell| {
        (format!("{}: {} added", cell.flow, cell.added), one_path(cell.seed, LINK.path(cell.added)))
    };
    let found = testbed.measure_all(AT_ONCE, cells, place, |network, cell| {
        let peer = FLOWS.into_iter().find(|(name, _)| *name == cell.flow).expect("cells are made of them").1;
        transfer(network, peer, file)
    })?;
    let mut outcome = outcome(seeds, &FLOWS.map(|(name, _)| name), &found);
    outcome.plot.title = "11 MB over one wireless interface, real sockets (thesis, section 4.1)";
    outcome.notes = vec![
        "the link is not given: 17.1 Mbit/s, 5 ms, 0.33 % loss beside what is added, all from printed numbers, and a queue of one bandwidth-delay product",
        "losses strike before the queue, as iptables at the server makes them; TCP is the kernel's Reno; lost: share of the sender's packets, in the queue as well",
        "round trips are those of pings beside the download, through the same queues",
    ];
    Ok(outcome)
}

/// Measures a download from the first byte to the last, with pings at the same time.
fn transfer(network: &Network, peer: &dyn Peer, file: u64) -> Result<Transfer, TestbedError> {
    let request = Request { bytes: Some(file), time: PATIENCE };
    let is_over = AtomicBool::new(false);
    let (measured, batches) = thread::scope(|scope| {
        let pings = scope.spawn(|| {
            let mut batches = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let began_s = network.clock.now().as_secs_f64();
                batches.push((began_s, ping(network, PINGS, PING_EVERY)?));
            }
            Ok(batches)
        });
        let measured = download(network, peer, request);
        is_over.store(true, Ordering::Relaxed);
        (measured, pings.join().expect("a ping does not panic"))
    });
    let transfer = measured?.transfer;
    let seconds = transfer.seconds - transfer.first_byte_s.unwrap_or(0.0);
    let during = batches?.into_iter().filter(|(began_s, _)| *began_s >= transfer.began_s);
    let round_trips: Vec<Duration> = during.flat_map(|(_, round_trips)| round_trips).collect();
    let mean: Duration = round_trips.iter().sum::<Duration>() / round_trips.len().max(1) as u32;
    let report = network.report();
    let link = &report.ways[0][0][0];
    Ok(Transfer {
        megabits: file as f64 * 8e-6 / seconds,
        rtt_millis: mean.as_secs_f64() * 1e3,
        lost: (link.lost + link.dropped) as f64 / link.offered.max(1) as f64,
        events: 0,
    })
}
