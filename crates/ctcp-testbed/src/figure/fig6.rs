//! Fig. 6: two ctcp flows share a lossy link of 25 ms; the second one begins after a sixth of the time.
//!
//! The window of a flow is read from its client's `--metrics` each second. They show the client's sending side, so both flows are uploads
//! and the losses are in that direction.
//!
//! Requirement: C9

use core::time::Duration;
use std::net::SocketAddr;
use std::thread::JoinHandle;

use ctcp_base::Instant;
use ctcp_repro::Outcome;
use ctcp_repro::ctcp::contender::Contender;
use ctcp_repro::ctcp::fig6::{Cell, Flow, SHOWN, cells, links, outcome};

use super::Figure;
use super::contenders::{measure_all, one_path};
use crate::bulk::{Sink, SocketPlan, Transfer, upload};
use crate::error::TestbedError;
use crate::network::Network;
use crate::peer::metrics::read_metrics;
use crate::peer::{Ctcp, Peer};
use crate::plan::{NetworkPlan, PathPlan};
use crate::testbed::Testbed;

pub(super) const FIGURE: Figure = Figure {
    id: "ctcp-fig6",
    paper: "CTCP",
    title: "two of our flows share a lossy link: windows over time, goodputs",
    measure,
};

/// 50 Mbit/s in total.
const AT_ONCE: usize = 2;
/// The interval between two reads of a client's metrics.
const LOOK_AT_METRICS_EVERY: Duration = Duration::from_secs(1);
const WINDOW: &str = "ctcp_window_packets ";

fn measure(testbed: &mut Testbed<'_>) -> Result<Outcome, TestbedError> {
    let quick = testbed.settings.quick;
    let (seeds, seconds) = (testbed.settings.seeds_or(2, 1), if quick { 24 } else { 120 });
    let links = if quick { vec![SHOWN] } else { links() };
    let place = |cell: &Cell| {
        let plan = upload_path(one_path(cell.seed, cell.link.path()));
        (cell.contender, format!("two flows, {:?}", cell.link), plan)
    };
    let found = measure_all(testbed, AT_ONCE, cells(&links, seconds, seeds), place, flows)?;
    let mut outcome = outcome(seeds, quick, &links, &found);
    outcome.plot.title = "Two flows at 25 Mbit/s, 25 ms, 5 % loss, real sockets (CTCP, Fig. 6a)";
    outcome.notes = vec![
        "uploads, since the clients' metrics show the window of what they send; read each second",
        "tokens over time are those of seed 0; the goodputs of Fig. 6b, in Mbit/s over the second half, are in the files",
        "the text prints no numbers of this figure",
    ];
    Ok(outcome)
}

/// The same paths with both directions exchanged.
fn upload_path(plan: NetworkPlan) -> NetworkPlan {
    let turn = |path: PathPlan| PathPlan { forward: path.backward, backward: path.forward };
    NetworkPlan { paths: plan.paths.into_iter().map(turn).collect(), ..plan }
}

fn flows(network: &Network, cell: &Cell) -> Result<[Flow; 2], TestbedError> {
    let peer = match cell.contender {
        Contender::Default => Ctcp::DEFAULT.with_metrics(),
        _ => Ctcp::PAPER.with_metrics(),
    };
    let time = Duration::from_secs(cell.seconds);
    // Both pairs of proxies are started before either flow begins.
    let begin = network.clock.now() + Duration::from_secs(2);
    let end = begin + time;
    let mut ends = Vec::new();
    for _ in 0..2 {
        let sink = Sink::start(network, SocketPlan::default(), end)?;
        let carrier = peer.start(network, sink.address)?;
        ends.push((sink, carrier));
    }
    let (mut uploads, mut windows) = (Vec::new(), Vec::new());
    for ((_, carrier), start) in ends.iter().zip(cell.starts()) {
        network.stop.sleep((begin + start).saturating_since(network.clock.now()))?;
        uploads.push(upload(network, carrier.entry, SocketPlan::default(), end));
        let metrics = carrier.metrics.expect("they were asked for");
        windows.push(watch(network, metrics, begin, end));
    }
    let mut flows = [Flow::default(), Flow::default()];
    for (index, ((sink, mut carrier), (upload, windows))) in
        ends.into_iter().zip(uploads.into_iter().zip(windows)).enumerate()
    {
        // If nothing arrived, this side knows why.
        upload.join().expect("an upload does not panic")?;
        let transfer = sink.join()?;
        carrier.check()?;
        let tokens = windows.join().expect("a watch does not panic")?;
        let tokens = if cell.is_shown() { tokens } else { Vec::new() };
        flows[index] = (tokens, second_half(&transfer, begin, end));
    }
    Ok(flows)
}

/// The goodput in the second half of the time, in Mbit/s.
fn second_half(transfer: &Transfer, begin: Instant, end: Instant) -> f64 {
    let half = (begin.as_secs_f64() + end.as_secs_f64()) / 2.0 - transfer.began_s;
    transfer.goodput_between(half, transfer.seconds) * 1e-6
}

/// Reads the window from a client's metrics until `end`. Times are in seconds since `begin`.
fn watch(
    network: &Network,
    metrics: SocketAddr,
    begin: Instant,
    end: Instant,
) -> JoinHandle<Result<Vec<(f64, f64)>, TestbedError>> {
    let (clock, stop) = (network.clock, network.stop.clone());
    network.client.spawn("watch", move || {
        let mut windows = Vec::new();
        while clock.now() < end {
            stop.sleep(LOOK_AT_METRICS_EVERY)?;
            let text = read_metrics(metrics).map_err(TestbedError::of("the metrics of ctcp client"))?;
            let window = text.lines().find_map(|line| line.strip_prefix(WINDOW)?.trim().parse().ok());
            let time = clock.now().saturating_since(begin).as_secs_f64();
            windows.extend(window.map(|window| (time, window)));
        }
        Ok(windows)
    })
}
