//! One measurement of a peer in a cell.

use core::net::SocketAddr;
use core::time::Duration;

use super::cell::{Cell, Condition, Test};
use super::metric::Metric;
use super::networks;
use super::profiles::TRANSFERS;
use super::random;
use crate::bulk::{BulkServer, Download, Request};
use crate::error::TestbedError;
use crate::network::Network;
use crate::peer::{KernelTcp, Peer};
use crate::probe::{AFTERWARDS, DEADLINE, DatagramTarget, Delivery, MessageServer, Messages};
use crate::testbed::{download, start_warm};

/// A quantity, its value, and whether the value is only a bound.
pub(super) type Found = (Metric, f64, bool);

/// Sizes of requests, their number in a full and in a quick run, and the time limit of one.
type Requests = (u64, [u32; 2], Duration);

/// The requests of one path.
const REQUESTS: [Requests; 4] = [
    (10_000, [10, 5], Duration::from_secs(5)),
    (100_000, [10, 5], Duration::from_secs(5)),
    (1_000_000, [3, 1], Duration::from_secs(10)),
    (10_000_000, [1, 0], Duration::from_secs(20)),
];

/// The requests of several paths: enough of each for a 95th percentile.
const PATH_REQUESTS: [Requests; 3] = [
    (10_000, [60, 5], Duration::from_secs(5)),
    (100_000, [60, 5], Duration::from_secs(5)),
    (1_000_000, [20, 2], Duration::from_secs(20)),
];

/// The time limit of a transfer on a published profile.
const TRANSFER_WITHIN: Duration = Duration::from_secs(120);

/// How long a download runs before a stream starts beside it, so that it fills the connection.
const FILLED_AFTER: Duration = Duration::from_secs(5);

/// How long the Cubic flow runs alone before another one starts.
const HEAD_START: Duration = Duration::from_secs(1);

/// How much time a measurement takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spent {
    /// Whether it is a quick run.
    pub(super) quick: bool,
    /// Seconds of a download over several paths, if set.
    pub(super) seconds: Option<u64>,
}

impl Spent {
    /// The duration of a download.
    fn download(self, cell: &Cell) -> Duration {
        let seconds = match (cell.test, self.quick) {
            (Test::Paths | Test::Shared | Test::Profiles | Test::Relays, quick) => {
                self.seconds.unwrap_or(if quick { 2 } else { 30 })
            }
            (Test::Random, quick) => return random::time(cell.rtt(), self.seconds, quick),
            (Test::Networks, false) => return networks::time(cell.rtt()),
            (Test::Long, false) => 10,
            (Test::Long, true) => 3,
            (_, false) => 5,
            (_, true) => 2,
        };
        Duration::from_secs(seconds)
    }
}

pub(super) fn measure(
    network: &Network,
    peer: &dyn Peer,
    cell: &Cell,
    spent: Spent,
) -> Result<Vec<Found>, TestbedError> {
    let quick = spent.quick;
    match cell.test {
        Test::Goodput | Test::Long | Test::Paths | Test::Random | Test::Networks => {
            bulk(network, peer, cell, spent)
        }
        Test::Beside | Test::Shared => beside(network, peer, cell, spent),
        Test::Requests => requests(network, peer, quick, &REQUESTS),
        Test::PathRequests => requests(network, peer, quick, &PATH_REQUESTS),
        Test::NetworkRequests => first_and_later_requests(network, peer, quick),
        Test::Stream | Test::Latency | Test::PathStream => stream(network, peer, cell, quick),
        Test::Profiles => transfer(network, peer, cell, spent),
        Test::Mixed => mixed(network, peer, cell, quick),
        Test::Datagrams => datagrams(network, peer, cell, quick),
        Test::Relays => relays(network, peer, cell, spent),
    }
}

fn bulk(network: &Network, peer: &dyn Peer, cell: &Cell, spent: Spent) -> Result<Vec<Found>, TestbedError> {
    let measured = download(network, peer, Request { bytes: None, time: spent.download(cell) })?;
    let bytes = measured.transfer.bytes as f64;
    let mut found = vec![(Metric::Goodput, measured.transfer.goodput() / cell.total_rate(), false)];
    found.extend(measured.wasted().map(|wasted| (Metric::Wasted, wasted, false)));
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

/// A transfer, of which the first part counts by itself, and after it a download.
fn transfer(
    network: &Network,
    peer: &dyn Peer,
    cell: &Cell,
    spent: Spent,
) -> Result<Vec<Found>, TestbedError> {
    let server = BulkServer::start(network, peer.socket())?;
    let mut carrier = start_warm(network, peer, &server)?;
    let [part, whole] = TRANSFERS.map(|size| size << 20);
    let request = Request { bytes: Some(whole), time: TRANSFER_WITHIN };
    let endless = Request { bytes: None, time: spent.download(cell) };
    let transfer = Download::start_in_parts(network, carrier.entry, peer.socket(), request, part).join()?;
    let download = Download::start(network, carrier.entry, peer.socket(), endless).join()?;
    carrier.check()?;
    let share = |rate: f64| rate / cell.total_rate();
    // If not even the first part arrived, the rate of what did.
    let rate_of_part =
        transfer.parts_s.first().map_or(transfer.goodput(), |seconds| part as f64 * 8.0 / seconds);
    Ok(vec![
        (Metric::Transfer(TRANSFERS[0]), share(rate_of_part), transfer.parts_s.is_empty()),
        (Metric::Transfer(TRANSFERS[1]), share(transfer.goodput()), !transfer.is_complete),
        (Metric::Goodput, share(download.goodput()), !download.is_complete),
    ])
}

fn beside(network: &Network, peer: &dyn Peer, cell: &Cell, spent: Spent) -> Result<Vec<Found>, TestbedError> {
    let time = spent.download(cell);
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

fn requests(
    network: &Network,
    peer: &dyn Peer,
    quick: bool,
    sizes: &[Requests],
) -> Result<Vec<Found>, TestbedError> {
    let server = BulkServer::start(network, peer.socket())?;
    let mut carrier = start_warm(network, peer, &server)?;
    let mut found = Vec::new();
    'sizes: for &(bytes, counts, time) in sizes {
        for _ in 0..counts[usize::from(quick)] {
            let (seconds, is_cut_off) = request(network, peer, carrier.entry, bytes, time)?;
            found.push((Metric::Request(bytes), seconds, is_cut_off));
            if is_cut_off {
                // Larger requests would reach the time limit too.
                break 'sizes;
            }
        }
    }
    carrier.check()?;
    Ok(found)
}

/// How many seconds a request takes, and whether its time limit cut it off.
fn request(
    network: &Network,
    peer: &dyn Peer,
    entry: SocketAddr,
    bytes: u64,
    time: Duration,
) -> Result<(f64, bool), TestbedError> {
    let request = Request { bytes: Some(bytes), time };
    let transfer = Download::start(network, entry, peer.socket(), request).join()?;
    let seconds = if transfer.is_complete { transfer.seconds } else { time.as_secs_f64() };
    Ok((seconds, !transfer.is_complete))
}

/// The first request of each size, each on a connection of its own, and then consecutive ones on another.
fn first_and_later_requests(
    network: &Network,
    peer: &dyn Peer,
    quick: bool,
) -> Result<Vec<Found>, TestbedError> {
    let mut found = Vec::new();
    for (bytes, counts, time) in REQUESTS {
        if counts[usize::from(quick)] == 0 {
            continue;
        }
        let server = BulkServer::start(network, peer.socket())?;
        let mut carrier = start_warm(network, peer, &server)?;
        let (seconds, is_cut_off) = request(network, peer, carrier.entry, bytes, time)?;
        carrier.check()?;
        found.push((Metric::FirstRequest(bytes), seconds, is_cut_off));
    }
    found.extend(requests(network, peer, quick, &REQUESTS)?);
    Ok(found)
}

/// The duration of a stream of messages.
fn stream_seconds(test: Test, quick: bool) -> u64 {
    match (test, quick) {
        (Test::Mixed | Test::Datagrams, true) => 5,
        (_, true) => 2,
        (Test::Latency | Test::Datagrams | Test::PathStream, false) => 60,
        (Test::Mixed, false) => 30,
        (_, false) => 6,
    }
}

fn stream(network: &Network, peer: &dyn Peer, cell: &Cell, quick: bool) -> Result<Vec<Found>, TestbedError> {
    let messages = cell.messages(Duration::from_secs(stream_seconds(cell.test, quick)));
    let server = MessageServer::start(network, peer.socket(), messages.bytes)?;
    let mut carrier = peer.start(network, server.address())?;
    let mut before = 0;
    let delivery = messages.run(network, peer, &carrier, || before = network.bytes_sent()[0])?;
    let sent = network.bytes_sent()[0] - before;
    carrier.check()?;
    let mut found = vec![(Metric::Undelivered, delivery.missing(), false)];
    found.extend([500, 990, 999].map(|share| percentile(messages, &delivery, share, Metric::Delivery)));
    let bytes = (delivery.latencies.len() * messages.bytes) as f64;
    if bytes > 0.0 {
        found.push((Metric::SentPerByte, sent as f64 / bytes, false));
    }
    Ok(found)
}

/// The latency that this many of 1000 messages did not exceed.
fn percentile(
    messages: Messages,
    delivery: &Delivery,
    thousandths: u16,
    metric: impl Fn(u16) -> Metric,
) -> Found {
    let late = delivery.percentile(f64::from(thousandths) / 1e3);
    // A message that was not delivered is at least as late as the time limit.
    let shown = late.unwrap_or(messages.time + AFTERWARDS).as_secs_f64() * 1e3;
    (metric(thousandths), shown, late.is_none())
}

/// A stream alone, a download alone, and both, each at the same time after the start of the download.
fn mixed(network: &Network, peer: &dyn Peer, cell: &Cell, quick: bool) -> Result<Vec<Found>, TestbedError> {
    let messages = cell.messages(Duration::from_secs(stream_seconds(cell.test, quick)));
    let server = MessageServer::start(network, peer.socket(), messages.bytes)?;
    network.note(peer)?;
    let mut carrier = peer.start(network, server.address())?;
    let alone = messages.run(network, peer, &carrier, || {})?;
    let request = Request { bytes: None, time: FILLED_AFTER + messages.time };
    let download = || Download::start(network, carrier.entry, peer.socket(), request);
    let rest = download().join()?;
    let download_alone = rest.goodput_between(FILLED_AFTER.as_secs_f64(), request.time.as_secs_f64());
    let other = download();
    network.stop.sleep(FILLED_AFTER)?;
    let beside = messages.run(network, peer, &carrier, || {})?;
    let other = other.join()?;
    carrier.check()?;
    let download_beside = other.goodput_between(FILLED_AFTER.as_secs_f64(), request.time.as_secs_f64());
    let shares = [500, 990, 999];
    let mut found: Vec<Found> =
        shares.map(|share| percentile(messages, &alone, share, Metric::StreamAlone)).to_vec();
    found.extend(shares.map(|share| percentile(messages, &beside, share, Metric::StreamBeside)));
    let rate = messages.rate.as_bits_per_second() as f64;
    let [(_, alone, is_bound), (_, beside, is_too)] =
        [&alone, &beside].map(|delivery| percentile(messages, delivery, 990, Metric::Delivery));
    found.extend([
        (Metric::StreamRatio, beside / alone, is_bound || is_too),
        (Metric::DownloadAlone, download_alone / cell.total_rate(), false),
        (Metric::DownloadBeside, download_beside / cell.total_rate(), false),
    ]);
    // Ratios to a download that got nothing are undefined.
    if download_alone > rate {
        found.extend([
            (Metric::DownloadRatio, download_beside / download_alone, false),
            (Metric::DownloadOfRest, download_beside / (download_alone - rate), false),
        ]);
    }
    Ok(found)
}

/// Messages as datagrams. Packets of acknowledgements that the server sends count too.
fn datagrams(
    network: &Network,
    peer: &dyn Peer,
    cell: &Cell,
    quick: bool,
) -> Result<Vec<Found>, TestbedError> {
    let messages = cell.messages(Duration::from_secs(stream_seconds(cell.test, quick)));
    let target = DatagramTarget::bind(network)?;
    network.note(peer)?;
    let mut carrier = peer.start_datagrams(network, target.address())?;
    let mut before = 0;
    let delivery =
        messages.run_datagrams(network, target, carrier.entry, || before = network.packets_sent()[0])?;
    let sent = network.packets_sent()[0] - before;
    carrier.check()?;
    let mut found = vec![
        (Metric::Late, delivery.late(DEADLINE), false),
        (Metric::PacketsPerMessage, sent as f64 / delivery.due as f64, false),
    ];
    found.extend([500, 990].map(|share| percentile(messages, &delivery, share, Metric::Delivery)));
    Ok(found)
}

/// A download and then a stream of messages through relays.
fn relays(network: &Network, peer: &dyn Peer, cell: &Cell, spent: Spent) -> Result<Vec<Found>, TestbedError> {
    let server = BulkServer::start(network, peer.socket())?;
    let mut carrier = start_warm(network, peer, &server)?;
    let (sent, cpu) = (first_hop(network, cell), carrier.cpu_seconds());
    let request = Request { bytes: None, time: spent.download(cell) };
    let transfer = Download::start(network, carrier.entry, peer.socket(), request).join()?;
    carrier.check()?;
    let mut found = vec![(Metric::Goodput, transfer.goodput() / cell.total_rate(), false)];
    let bytes = transfer.bytes as f64;
    if bytes > 0.0 {
        let sent = first_hop(network, cell).since(&sent);
        found.push((Metric::FirstHop, sent.bytes as f64 / bytes * sent.arriving(), false));
        found.push((Metric::Cpu, (carrier.cpu_seconds() - cpu) / bytes * 1e9, false));
    }
    drop((carrier, server));
    let messages = cell.messages(Duration::from_secs(if spent.quick { 2 } else { 15 }));
    let server = MessageServer::start(network, peer.socket(), messages.bytes)?;
    let mut carrier = peer.start(network, server.address())?;
    let delivery = messages.run(network, peer, &carrier, || {})?;
    carrier.check()?;
    found.push((Metric::Undelivered, delivery.missing(), false));
    found.extend([500, 990].map(|share| percentile(messages, &delivery, share, Metric::Delivery)));
    Ok(found)
}

/// What the server has sent on its hops.
#[derive(Default)]
struct FirstHop {
    bytes: u64,
    packets: u64,
    lost: u64,
}

impl FirstHop {
    fn since(&self, before: &Self) -> Self {
        Self {
            bytes: self.bytes - before.bytes,
            packets: self.packets - before.packets,
            lost: self.lost - before.lost,
        }
    }

    /// The share of packets that were not lost at random.
    fn arriving(&self) -> f64 {
        1.0 - self.lost as f64 / self.packets.max(1) as f64
    }
}

fn first_hop(network: &Network, cell: &Cell) -> FirstHop {
    let ways = network.report().ways;
    // Forward is from the namespace of the target; the server of two hops is in the other one.
    let links = match cell.condition {
        Condition::ThreeHops => &[(2, 0)][..],
        Condition::SideBySide => &[(1, 1), (3, 1)],
        _ => &[(1, 1)],
    };
    let stats = links.iter().filter_map(|&(path, way)| ways.get(path).and_then(|path| path[way].first()));
    stats.fold(FirstHop::default(), |sum, link| FirstHop {
        bytes: sum.bytes + link.bytes_offered,
        packets: sum.packets + link.offered,
        lost: sum.lost + link.lost,
    })
}
