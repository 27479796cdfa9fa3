//! Runs measurements one after the other, and keeps for each what a reader needs to trust it.
//!
//! A measurement whose emulator was too late is made again, and if the machine stays too busy it is left out and said to be: a
//! figure has either no such value or a check that fails.

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

/// How often a measurement is made until the emulator keeps up.
const ATTEMPTS: u32 = 3;

/// What a tunnel's first connection is given to come up.
const WARM_UP: Request = Request { bytes: Some(1), time: Duration::from_secs(20) };

/// How far a figure has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// The measurement that begins, or that has just ended where several are made at once.
    pub label: &'a str,
    /// How many were made.
    pub done: usize,
    /// How many there will be, as far as the figure said.
    pub of: usize,
}

/// A download and what it cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The download itself.
    pub transfer: Transfer,
    /// Bytes of IP packets that were sent meanwhile, forward and backward, lost ones included.
    pub sent: [u64; 2],
    /// CPU time of the peer's own programs, in seconds; a kernel's is nobody's.
    pub peer_cpu_s: f64,
    /// How long threads of the peer's programs were ready and had no core, in seconds.
    pub peer_waited_s: f64,
    /// CPU time of the bulk server and the download, in seconds.
    pub ends_cpu_s: f64,
}

impl Measured {
    /// Bytes on the way of the data for each byte that arrived; infinite when none did.
    #[must_use]
    pub fn sent_per_byte(&self) -> f64 {
        self.sent[0] as f64 / self.transfer.bytes as f64
    }
}

/// What a figure measures with.
pub struct Testbed<'a> {
    /// How much work to spend.
    pub settings: Settings,
    /// Those who wait look at it.
    pub stop: Stop,
    /// The program `ctcp`.
    executable: PathBuf,
    on_progress: Box<dyn FnMut(Progress<'_>) + 'a>,
    expected: usize,
    clock: Clock,
    peers: BTreeMap<String, Description>,
    runs: Vec<Run>,
    /// The largest share of a download's time in which a thread of its peer was ready and had no core.
    worst_wait: f64,
    /// For as long as something may be measured.
    _awake: Awake,
}

impl<'a> Testbed<'a> {
    /// A testbed without any runs yet. `executable` is the program `ctcp`, `on_progress` hears of each measurement.
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

    /// How long it has been there, in seconds.
    #[must_use]
    pub fn elapsed_s(&self) -> f64 {
        self.clock.now().as_secs_f64()
    }

    /// Says how many measurements there will be.
    pub fn expect_runs(&mut self, runs: usize) {
        self.expected = runs;
    }

    /// Brings a network up for what is not a measurement.
    ///
    /// # Errors
    /// When this user or machine cannot, with what it lacks.
    pub fn network(&self, plan: &NetworkPlan) -> Result<Network, TestbedError> {
        self.stop.check()?;
        Network::start(plan, self.executable.clone(), self.stop.clone())
    }

    /// Brings a network up, measures something on it, and takes it down: again when the emulator was too late. `None` when it
    /// always was.
    ///
    /// # Errors
    /// When something else went wrong.
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

    /// Measures one download by a peer on a network of its own, warm where the peer is a tunnel.
    ///
    /// # Errors
    /// When the peer did not start or brought wrong bytes.
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

    /// The same of peers that a figure will start, asked for on a network of their own.
    ///
    /// # Errors
    /// When one is not installed.
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

    /// Notes a peer's version and settings for the result, for figures that start peers themselves.
    pub fn describe(&mut self, peer: &dyn Peer, description: Description) {
        self.peers.insert(peer.name().to_owned(), description);
    }

    /// All that was recorded so far.
    #[must_use]
    pub fn record(&self) -> Record {
        Record { machine: Machine::read(), peers: self.peers.clone(), runs: self.runs.clone() }
    }

    /// All that was recorded; the outcome learns what a reader of the figure must know of it.
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

/// One download by a peer on a network that is up.
///
/// # Errors
/// When the peer did not start or brought wrong bytes.
pub fn download(network: &Network, peer: &dyn Peer, request: Request) -> Result<Measured, TestbedError> {
    let server = BulkServer::start(network, peer.socket())?;
    let mut carrier = start_warm(network, peer, &server)?;
    let (sent, server_cpu) = (network.bytes_sent(), server.cpu_seconds());
    let (peer_cpu, peer_waited) = (carrier.cpu_seconds(), carrier.waited_seconds());
    let transfer = Download::start(network, carrier.entry, peer.socket(), request).join()?;
    carrier.check()?;
    let sent_after = network.bytes_sent();
    let (peer_cpu_s, peer_waited_s) =
        (carrier.cpu_seconds() - peer_cpu, carrier.waited_seconds() - peer_waited);
    drop(carrier);
    // Its connections have ended now, and have said what they used.
    network.stop.sleep(Duration::from_millis(20))?;
    let ends_cpu_s = transfer.cpu_s + server.cpu_seconds() - server_cpu;
    Ok(Measured {
        transfer,
        sent: [0, 1].map(|way| sent_after[way] - sent[way]),
        peer_cpu_s,
        peer_waited_s,
        ends_cpu_s,
    })
}

/// Starts a peer and notes it for the result, and has a byte through it if it is a tunnel, so that its connection is up.
///
/// # Errors
/// When it does not come up.
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
