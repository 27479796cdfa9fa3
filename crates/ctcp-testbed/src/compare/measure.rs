//! One measurement of a peer in a cell.

use core::time::Duration;

use ctcp_base::Rate;

use super::cell::{Cell, Test};
use super::metric::Metric;
use crate::bulk::{BulkServer, Download, Request};
use crate::error::TestbedError;
use crate::network::Network;
use crate::peer::{KernelTcp, Peer};
use crate::probe::{AFTERWARDS, MessageServer, Messages};
use crate::testbed::{download, start_warm};

/// A quantity, its value, and whether the value is only a bound.
pub(super) type Found = (Metric, f64, bool);

/// Sizes of requests, their number in a full and in a quick run, and the time limit of one.
const REQUESTS: [(u64, [u32; 2], Duration); 4] = [
    (10_000, [10, 5], Duration::from_secs(5)),
    (100_000, [10, 5], Duration::from_secs(5)),
    (1_000_000, [3, 1], Duration::from_secs(10)),
    (10_000_000, [1, 0], Duration::from_secs(20)),
];

/// How long the Cubic flow runs alone before another one starts.
const HEAD_START: Duration = Duration::from_secs(1);

/// Bytes of a message, and the rate of the stream.
const MESSAGE_BYTES: usize = 1_200;
const STREAM_RATE: Rate = Rate::from_megabits_per_second(3);

pub(super) fn measure(
    network: &Network,
    peer: &dyn Peer,
    cell: &Cell,
    quick: bool,
) -> Result<Vec<Found>, TestbedError> {
    match cell.test {
        Test::Goodput | Test::Long | Test::Paths => bulk(network, peer, cell, quick),
        Test::Beside => beside(network, peer, cell, quick),
        Test::Requests => requests(network, peer, quick),
        Test::Stream | Test::Latency => stream(network, peer, stream_seconds(cell.test, quick)),
    }
}

/// The duration of a download.
fn seconds(test: Test, quick: bool) -> u64 {
    match (test, quick) {
        (Test::Long, false) => 10,
        (Test::Long, true) => 3,
        (_, false) => 5,
        (_, true) => 2,
    }
}

fn bulk(network: &Network, peer: &dyn Peer, cell: &Cell, quick: bool) -> Result<Vec<Found>, TestbedError> {
    let time = Duration::from_secs(seconds(cell.test, quick));
    let measured = download(network, peer, Request { bytes: None, time })?;
    let bytes = measured.transfer.bytes as f64;
    let mut found = vec![(Metric::Goodput, measured.transfer.goodput() / cell.total_rate(), false)];
    // A ratio to zero bytes is undefined.
    if bytes > 0.0 {
        let cpu_s = measured.peer_cpu_s + measured.ends_cpu_s;
        found.extend([
            (Metric::SentPerByte, measured.sent_per_byte(), false),
            (Metric::Cpu, cpu_s / bytes * 1e9, false),
        ]);
    }
    Ok(found)
}

fn beside(network: &Network, peer: &dyn Peer, cell: &Cell, quick: bool) -> Result<Vec<Found>, TestbedError> {
    let time = Duration::from_secs(seconds(cell.test, quick));
    let cubic = KernelTcp::CUBIC.socket();
    let (cubic_server, server) =
        (BulkServer::start(network, cubic)?, BulkServer::start(network, peer.socket())?);
    let mut carrier = start_warm(network, peer, &server)?;
    let all_of_it = Request { bytes: None, time: HEAD_START + time + Duration::from_millis(200) };
    let other = Download::start(network, cubic_server.address(), cubic, all_of_it);
    network.stop.sleep(HEAD_START)?;
    let ours =
        Download::start(network, carrier.entry, peer.socket(), Request { bytes: None, time }).join()?;
    let other = other.join()?;
    carrier.check()?;
    let from = ours.began_s - other.began_s;
    let beside = other.goodput_between(from, from + ours.seconds);
    Ok(vec![
        (Metric::Goodput, ours.goodput() / cell.total_rate(), false),
        (Metric::CubicBeside, beside / cell.total_rate(), false),
    ])
}

fn requests(network: &Network, peer: &dyn Peer, quick: bool) -> Result<Vec<Found>, TestbedError> {
    let server = BulkServer::start(network, peer.socket())?;
    let mut carrier = start_warm(network, peer, &server)?;
    let mut found = Vec::new();
    'sizes: for (bytes, counts, time) in REQUESTS {
        for _ in 0..counts[usize::from(quick)] {
            let request = Request { bytes: Some(bytes), time };
            let transfer = Download::start(network, carrier.entry, peer.socket(), request).join()?;
            if !transfer.is_complete {
                // Larger requests would reach the time limit too.
                found.push((Metric::Request(bytes), time.as_secs_f64(), true));
                break 'sizes;
            }
            found.push((Metric::Request(bytes), transfer.seconds, false));
        }
    }
    carrier.check()?;
    Ok(found)
}

/// The duration of a stream of messages.
fn stream_seconds(test: Test, quick: bool) -> u64 {
    match (test, quick) {
        (_, true) => 2,
        (Test::Latency, false) => 60,
        (_, false) => 6,
    }
}

fn stream(network: &Network, peer: &dyn Peer, seconds: u64) -> Result<Vec<Found>, TestbedError> {
    let time = Duration::from_secs(seconds);
    let messages = Messages { bytes: MESSAGE_BYTES, rate: STREAM_RATE, time };
    let server = MessageServer::start(network, peer.socket(), MESSAGE_BYTES)?;
    let mut carrier = peer.start(network, server.address())?;
    let mut before = 0;
    let delivery = messages.run(network, peer, &carrier, || before = network.bytes_sent()[0])?;
    let sent = network.bytes_sent()[0] - before;
    carrier.check()?;
    let mut found = vec![(Metric::Undelivered, delivery.missing(), false)];
    for thousandths in [500, 990, 999] {
        let late = delivery.percentile(f64::from(thousandths) / 1e3);
        // A message that was not delivered is at least as late as the time limit.
        let shown = late.unwrap_or(time + AFTERWARDS).as_secs_f64() * 1e3;
        found.push((Metric::Delivery(thousandths), shown, late.is_none()));
    }
    let bytes = (delivery.latencies.len() * MESSAGE_BYTES) as f64;
    if bytes > 0.0 {
        found.push((Metric::SentPerByte, sent as f64 / bytes, false));
    }
    Ok(found)
}
