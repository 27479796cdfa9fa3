//! Fig. 7: the completion time of an HTTP request by curl against the size of the file: 25 Mbit/s, 10 ms, losses up to 20 %.
//!
//! ```text
//!   web server --- kernel TCP, Reno or Cubic ------------------------------------------> curl
//!   web server --- ctcp server === a new connection === ctcp client (SOCKS5) ----------> curl
//! ```
//!
//! Requirement: C10

use core::time::Duration;
use std::path::Path;

use ctcp_repro::Outcome;
use ctcp_repro::ctcp::contender::Contender;
use ctcp_repro::ctcp::fig7::{Cell, KILOBYTES, LINK, LOSSES, cells, outcome};
use ctcp_repro::ctcp::shared_link::Bottleneck;

use super::Figure;
use super::contenders::{measure_all, one_path, peer};
use crate::bulk::BulkServer;
use crate::error::TestbedError;
use crate::network::Network;
use crate::testbed::Testbed;

pub(super) const FIGURE: Figure =
    Figure { id: "ctcp-fig7", paper: "CTCP", title: "completion time of HTTP requests by curl", measure };

const LOSSES_QUICK: [f64; 3] = [0.0, 0.01, 0.2];
const KILOBYTES_QUICK: [u64; 2] = [100, 1_000];
/// Most of the time goes to TCP at 10 and 20 % loss, which sends very little.
const AT_ONCE: usize = 3;
/// The time limit of a request.
const PATIENCE: Duration = Duration::from_secs(3_600);

fn measure(testbed: &mut Testbed<'_>) -> Result<Outcome, TestbedError> {
    let quick = testbed.settings.quick;
    let seeds = testbed.settings.seeds_or(5, 1);
    let (losses, kilobytes): (&[f64], &[u64]) =
        if quick { (&LOSSES_QUICK, &KILOBYTES_QUICK) } else { (&LOSSES, &KILOBYTES) };
    let place = |cell: &Cell| {
        let plan = one_path(cell.seed, Bottleneck { loss: cell.loss, ..LINK }.path());
        (cell.contender, format!("{} kB at {}", cell.kilobytes, cell.loss), plan)
    };
    let cells = cells(losses, kilobytes, seeds);
    let found = measure_all(testbed, AT_ONCE, cells, place, |network, cell| {
        request(network, cell.contender, 1_000 * cell.kilobytes)
    })?;
    let mut outcome = outcome(seeds, losses, kilobytes, &found);
    outcome.plot.title = "curl over 25 Mbit/s, 10 ms, real sockets (CTCP, Fig. 7)";
    outcome.notes = vec![
        "curl's own time, from its start to the last byte; losses strike the response, before the queue",
        "ours through both proxies by SOCKS5, started for each request: the connection between them is made while curl's is",
        "the paper's factors are 18.5 s and 205 s of its TCP against CTCP's times, which the text does not print",
    ];
    Ok(outcome)
}

/// The duration of a request in seconds.
fn request(network: &Network, contender: Contender, bytes: u64) -> Result<f64, TestbedError> {
    let peer = peer(contender);
    let server = BulkServer::start_web(network, peer.socket())?;
    let mut carrier = peer.start(network, server.address())?;
    let mut line =
        format!("--silent --show-error --fail --output /dev/null --max-time {}", PATIENCE.as_secs());
    if let Some(socks) = carrier.socks {
        line += &format!(" --proxy socks5h://{socks}");
    }
    line += &format!(" --write-out %{{time_total}}/%{{size_download}} http://{}/{bytes}", server.address());
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let mut curl = network.client.start(Path::new("curl"), &words)?;
    network.wait_until("curl", PATIENCE, || curl.is_done())?;
    carrier.check()?;
    let said = curl.said();
    let seconds = said.trim().split_once('/').filter(|(_, size)| *size == bytes.to_string());
    let seconds = seconds.and_then(|(seconds, _)| seconds.parse().ok());
    seconds.ok_or_else(|| TestbedError::failed(format!("curl said `{}`", said.trim())))
}
