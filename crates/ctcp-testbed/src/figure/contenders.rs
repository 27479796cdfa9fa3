//! The transports that figures compare, under the names of the simulator's figures, and their transfers on real sockets.

use core::time::Duration;

use ctcp_netem::PathConfig;
use ctcp_repro::ctcp::contender::Contender;

use crate::bulk::{BulkServer, Download, Request, Transfer};
use crate::error::TestbedError;
use crate::network::Network;
use crate::peer::{Ctcp, KernelTcp, Peer};
use crate::plan::{NetworkPlan, PathPlan};
use crate::testbed::{Testbed, download, start_warm};

/// The transport of a contender.
pub(super) fn peer(contender: Contender) -> &'static dyn Peer {
    match contender {
        Contender::Ctcp => &Ctcp::PAPER,
        Contender::Default => &Ctcp::DEFAULT,
        Contender::Reno => &KernelTcp::RENO,
        Contender::Cubic => &KernelTcp::CUBIC,
    }
}

/// Cells with their values, in the form of the simulator's figures: the second number counts simulated events, of which there are none here.
pub(super) type Found<C, T> = Vec<(C, (T, u64))>;

/// Measures every cell on a network of its own, `at_once` at a time. `place` gives the transport under test, a label and the network.
pub(super) fn measure_all<C: Sync, T: Send>(
    testbed: &mut Testbed<'_>,
    at_once: usize,
    cells: Vec<C>,
    place: impl Fn(&C) -> (Contender, String, NetworkPlan),
    measure: impl Fn(&Network, &C) -> Result<T, TestbedError> + Sync,
) -> Result<Found<C, T>, TestbedError> {
    let mut contenders: Vec<Contender> = Vec::new();
    for (contender, ..) in cells.iter().map(&place) {
        if !contenders.contains(&contender) {
            contenders.push(contender);
        }
    }
    testbed.describe_all(contenders.into_iter().map(peer))?;
    let place = |cell: &C| {
        let (contender, label, plan) = place(cell);
        (format!("{}: {label}", peer(contender).name()), plan)
    };
    let found = testbed.measure_all(at_once, cells, place, measure)?;
    Ok(found.into_iter().map(|(cell, value)| (cell, (value, 0))).collect())
}

/// A network of one path.
pub(super) fn one_path(seed: u64, path: PathConfig) -> NetworkPlan {
    NetworkPlan::new(seed, [PathPlan::new(path)])
}

/// The goodput of a flow alone over the first `seconds`, in Mbit/s. A tunnel is connected before.
pub(super) fn goodput_alone(
    network: &Network,
    contender: Contender,
    seconds: u64,
) -> Result<f64, TestbedError> {
    let request = Request { bytes: None, time: Duration::from_secs(seconds) };
    Ok(download(network, peer(contender), request)?.transfer.goodput() * 1e-6)
}

/// A download on a new connection, with the time at which each part of `part` bytes was complete.
///
/// The programs of a tunnel are started just before, so the time includes the handshake of the tunnel.
pub(super) fn download_cold(
    network: &Network,
    contender: Contender,
    request: Request,
    part: u64,
) -> Result<Transfer, TestbedError> {
    let peer = peer(contender);
    let server = BulkServer::start(network, peer.socket())?;
    let mut carrier = peer.start(network, server.address())?;
    let download = Download::start_in_parts(network, carrier.entry, peer.socket(), request, part);
    let transfer = download.join()?;
    carrier.check()?;
    if transfer.is_complete {
        return Ok(transfer);
    }
    let what = format!("{}: {} bytes came, and then no more", peer.name(), transfer.bytes);
    Err(TestbedError::failed(what))
}

/// The bytes of two flows that share a network, each from its start until `time`. Tunnels are connected before.
pub(super) fn bytes_together(
    network: &Network,
    flows: [(Contender, Duration); 2],
    time: Duration,
) -> Result<[u64; 2], TestbedError> {
    let mut ends = Vec::new();
    for (contender, _) in flows {
        let server = BulkServer::start(network, peer(contender).socket())?;
        let carrier = start_warm(network, peer(contender), &server)?;
        ends.push((server, carrier));
    }
    let mut order = [0, 1];
    order.sort_by_key(|&flow: &usize| flows[flow].1);
    let (begin, mut downloads) = (network.clock.now(), [None, None]);
    for flow in order {
        let (contender, start) = flows[flow];
        network.stop.sleep((begin + start).saturating_since(network.clock.now()))?;
        let request = Request { bytes: None, time: (begin + time).saturating_since(network.clock.now()) };
        downloads[flow] =
            Some(Download::start(network, ends[flow].1.entry, peer(contender).socket(), request));
    }
    let mut bytes = [0; 2];
    for (flow, download) in downloads.into_iter().enumerate() {
        bytes[flow] = download.expect("each was started").join()?.bytes;
    }
    ends.iter_mut().try_for_each(|(_, carrier)| carrier.check())?;
    Ok(bytes)
}
