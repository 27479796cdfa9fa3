//! Runs measurements one after the other, and records for each what a reader needs to judge it.
//!
//! A measurement for which the emulator was too late is repeated. If the machine stays too busy the measurement is left
//! out, and this is reported: the figure lacks the value, and a check fails.

mod cells;
mod machine;
mod record;

use core::time::Duration;
use std::collections::BTreeMap;
use std::path::PathBuf;

use ctcp_netem::LinkConfig;
use ctcp_repro::{Outcome, Settings, Want};
use serde::{Deserialize, Serialize};

use crate::awake::Awake;
use crate::bulk::{BulkServer, Download, Request, Transfer};
use crate::clock::Clock;
use crate::error::TestbedError;
use crate::network::Network;
use crate::peer::{Carrier, Description, Peer};
use crate::plan::{NetworkPlan, PathPlan, WayPlan};
use crate::stop::Stop;

pub use machine::Machine;
pub use record::{Record, Run};

/// How many attempts a measurement gets until the emulator keeps up.
const ATTEMPTS: u32 = 3;

/// The limits of a tunnel's first connection.
const WARM_UP: Request = Request { bytes: Some(1), time: Duration::from_secs(20) };

/// The progress of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// The measurement that starts, or that has just ended if several run at once.
    pub label: &'a str,
    /// How many measurements are complete.
    pub done: usize,
    /// The expected number of measurements.
    pub of: usize,
}

/// A download and its costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The download itself.
    pub transfer: Transfer,
    /// Bytes of IP packets sent during the download, forward and backward, including lost ones.
    pub sent: [u64; 2],
    /// CPU time of the peer's own programs, in seconds; the kernel's time is not included.
    pub peer_cpu_s: f64,
    /// How long threads of the peer's programs were ready without a core, in seconds.
    pub peer_waited_s: f64,
    /// CPU time of the bulk server and the download, in seconds.
    pub ends_cpu_s: f64,
    /// Symbols that the peer's client decoded and what it received in vain, if it says so.
    #[serde(default)]
    pub symbols: Option<[u64; 2]>,
}

impl Measured {
    /// Bytes sent in the direction of the data per byte that arrived; infinite if none did.
    #[must_use]
    pub fn sent_per_byte(&self) -> f64 {
        self.sent[0] as f64 / self.transfer.bytes as f64
    }

    /// The share of what the peer's client received that told it nothing new, if it says so.
    #[must_use]
    pub fn wasted(&self) -> Option<f64> {
        let [decoded, redundant] = self.symbols?;
        Some(redundant as f64 / (decoded + redundant).max(1) as f64)
    }
}

/// The tools and records of a figure's measurements.
pub struct Testbed<'a> {
    /// How much work to spend.
    pub settings: Settings,
    /// Checked by all code that waits.
    pub stop: Stop,
    /// The program `ctcp`.
    executable: PathBuf,
    on_progress: Box<dyn FnMut(Progress<'_>) + 'a>,
    expected: usize,
    clock: Clock,
    peers: BTreeMap<String, Description>,
    runs: Vec<Run>,
    /// The largest share of a download's time in which a thread of its peer was ready without a core.
    worst_wait: f64,
    /// Keeps the cores awake while measurements may run.
    _awake: Awake,
}

impl<'a> Testbed<'a> {
    /// Creates a testbed without runs. `executable` is the program `ctcp`; `on_progress` is called for each
    /// measurement.
    #[must_use]
    pub fn new(
        settings: Settings,
        executable: PathBuf,
        stop: Stop,
        on_progress: impl FnMut(Progress<'_>) + 'a,
    ) -> Self {
        Self {
            settings,
            stop,
            executable,
            on_progress: Box::new(on_progress),
            expected: 0,
            clock: Clock::start(),
            peers: BTreeMap::new(),
            runs: Vec::new(),
            worst_wait: 0.0,
            _awake: Awake::start(),
        }
    }

    /// The time since it was created, in seconds.
    #[must_use]
    pub fn elapsed_s(&self) -> f64 {
        self.clock.now().as_secs_f64()
    }

    /// Sets the expected number of measurements.
    pub fn expect_runs(&mut self, runs: usize) {
        self.expected = runs;
    }

    /// Starts a network for something other than a measurement.
    ///
    /// # Errors
    /// Returns an error if this user or machine cannot do so, with what is missing.
    pub fn network(&self, plan: &NetworkPlan) -> Result<Network, TestbedError> {
        self.stop.check()?;
        Network::start(plan, self.executable.clone(), self.stop.clone())
    }

    /// Starts a network, measures on it, and stops it; repeats this if the emulator was too late. Returns `None` if it
    /// was too late each time.
    ///
    /// # Errors
    /// Returns an error for any other failure.
    pub fn measure<T>(
        &mut self,
        label: &str,
        plan: &NetworkPlan,
        mut measure: impl FnMut(&Network) -> Result<T, TestbedError>,
    ) -> Result<Option<T>, TestbedError> {
        (self.on_progress)(Progress { label, done: self.runs.len(), of: self.expected });
        let mut run = Run::new(label, plan);
        let mut accepted = None;
        while accepted.is_none() && run.attempts < ATTEMPTS {
            run.begin(self.clock.now());
            let network = self.network(plan)?;
            let found = measure(&network).map_err(|error| named(label, error))?;
            run.end(&network)?;
            self.peers.append(&mut network.noted());
            accepted = run.is_accepted().then_some(found);
        }
        self.runs.push(run);
        Ok(accepted)
    }

    /// Measures one download by a peer on a new network. If the peer is a tunnel, its connection is established first.
    ///
    /// # Errors
    /// Returns an error if the peer did not start or delivered wrong bytes.
    pub fn download(
        &mut self,
        peer: &dyn Peer,
        plan: &NetworkPlan,
        request: Request,
    ) -> Result<Option<Measured>, TestbedError> {
        let label = format!("{}: {plan}", peer.name());
        let measured = self.measure(&label, plan, |network| download(network, peer, request))?;
        if let Some(measured) = &measured {
            self.worst_wait = self.worst_wait.max(measured.peer_waited_s / measured.transfer.seconds);
        }
        Ok(measured)
    }

    /// Records the versions and settings of peers that a figure will start, on a network for this purpose.
    ///
    /// # Errors
    /// Returns an error if one is not installed.
    pub fn describe_all<'p>(
        &mut self,
        peers: impl IntoIterator<Item = &'p dyn Peer>,
    ) -> Result<(), TestbedError> {
        let perfect = PathPlan {
            forward: WayPlan::new(LinkConfig::default()),
            backward: WayPlan::new(LinkConfig::default()),
        };
        let network =
            Network::start(&NetworkPlan::new(0, [perfect]), self.executable.clone(), self.stop.clone())?;
        for peer in peers {
            self.describe(peer, peer.description(&network)?);
        }
        Ok(())
    }

    /// Records a peer's version and settings for the result, for figures that start peers themselves.
    pub fn describe(&mut self, peer: &dyn Peer, description: Description) {
        self.peers.insert(peer.name().to_owned(), description);
    }

    /// The records so far.
    #[must_use]
    pub fn record(&self) -> Record {
        Record { machine: Machine::read(), peers: self.peers.clone(), runs: self.runs.clone() }
    }

    /// Returns the records, and adds to the outcome what a reader of the figure must know about them.
    #[must_use]
    pub fn finish(self, outcome: &mut Outcome) -> Record {
        let rejected = self.runs.iter().filter(|run| !run.is_accepted()).count();
        outcome.check("runs left out, since the emulator was too late", Want::AtMost(0.0), rejected as f64);
        let worst = self.runs.iter().filter(|run| run.is_accepted()).map(|run| run.emulator.lateness.p99_ms);
        let worst = worst.fold(0.0, f64::max);
        let loads = self.runs.iter().map(|run| run.load);
        let load = loads.clone().sum::<f64>() / loads.len().max(1) as f64;
        outcome.events = self.runs.iter().map(|run| run.emulator.lateness.deliveries).sum();
        outcome.remarks.push(format!(
            "the emulator's 99th percentile of lateness was at most {worst:.3} ms in a run; load average {load:.1}, \
             threads that keep cores awake included; peers' threads waited for a core for at most {:.1} % of a run",
            100.0 * self.worst_wait
        ));
        for (name, Description { version, settings }) in &self.peers {
            outcome.remarks.push(format!("{name}: {version}; {settings}"));
        }
        self.record()
    }
}

/// One download by a peer on a running network.
///
/// # Errors
/// Returns an error if the peer did not start or delivered wrong bytes.
pub fn download(network: &Network, peer: &dyn Peer, request: Request) -> Result<Measured, TestbedError> {
    let server = BulkServer::start(network, peer.socket())?;
    let mut carrier = start_warm(network, peer, &server)?;
    let (sent, server_cpu) = (network.bytes_sent(), server.cpu_seconds());
    let (peer_cpu, peer_waited) = (carrier.cpu_seconds(), carrier.waited_seconds());
    let symbols = carrier.symbols(network)?;
    let transfer = Download::start(network, carrier.entry, peer.socket(), request).join()?;
    carrier.check()?;
    let sent_after = network.bytes_sent();
    let (peer_cpu_s, peer_waited_s) =
        (carrier.cpu_seconds() - peer_cpu, carrier.waited_seconds() - peer_waited);
    let symbols_after = carrier.symbols(network)?;
    let symbols =
        symbols.zip(symbols_after).map(|(before, after)| [0, 1].map(|kind| after[kind] - before[kind]));
    drop(carrier);
    // Waits until its connections have ended and reported their CPU time.
    network.stop.sleep(Duration::from_millis(20))?;
    let ends_cpu_s = transfer.cpu_s + server.cpu_seconds() - server_cpu;
    Ok(Measured {
        transfer,
        sent: [0, 1].map(|way| sent_after[way] - sent[way]),
        peer_cpu_s,
        peer_waited_s,
        ends_cpu_s,
        symbols,
    })
}

/// Starts a peer and records it for the result. If it is a tunnel, downloads a byte to establish its connection.
///
/// # Errors
/// Returns an error if it does not start or connect.
pub fn start_warm(network: &Network, peer: &dyn Peer, server: &BulkServer) -> Result<Carrier, TestbedError> {
    network.note(peer)?;
    let carrier = peer.start(network, server.address())?;
    if carrier.is_tunnel() {
        let first = Download::start(network, carrier.entry, peer.socket(), WARM_UP).join()?;
        if !first.is_complete {
            let what = format!("{} carried nothing within {} s", peer.name(), WARM_UP.time.as_secs());
            return Err(TestbedError::failed(what));
        }
    }
    Ok(carrier)
}

fn named(label: &str, error: TestbedError) -> TestbedError {
    match error {
        TestbedError::Failed(what) => TestbedError::Failed(format!("{label}: {what}")),
        other => other,
    }
}
