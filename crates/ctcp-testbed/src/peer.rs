//! The transports under test, each started as its users start it: one file each.
//!
//! To add one: a file with a type that says what it is called and set to, and how it is started in a [`Network`], and its line in
//! [`named`]. A peer that is a tunnel starts its server in `network.server` and its client in `network.client`, waits until
//! both are ready, and answers where in the client's namespace a TCP connection leads to the `target`. One that is a kind of
//! socket answers [`Carrier::direct`] and says in [`Peer::socket`] what kind. One whose program is not installed answers
//! [`TestbedError::Missing`] with the command that installs it, as soon as it is asked for its description.

mod ctcp;
mod kcptun;
mod kernel_tcp;
mod mptcp;
mod program;
mod quinn;
mod srt;

use core::time::Duration;
use std::any::Any;
use std::net::SocketAddr;

use serde::Serialize;

use crate::bulk::SocketPlan;
use crate::error::TestbedError;
use crate::network::Network;
use crate::process::Process;

pub use ctcp::Ctcp;
pub use kcptun::Kcptun;
pub use kernel_tcp::KernelTcp;
pub use mptcp::Mptcp;
pub use quinn::Quinn;
pub use srt::Srt;

/// How long a peer may take until it is ready.
pub const READY_WITHIN: Duration = Duration::from_secs(20);

/// What a result says about a peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Description {
    /// Its program and version.
    pub version: String,
    /// What it was told, in words or as its command line.
    pub settings: String,
}

/// A transport.
pub trait Peer: Send + Sync {
    /// What it is called in figures and tables; unlike all others.
    fn name(&self) -> &str;

    /// Its version and settings.
    ///
    /// # Errors
    /// When it is not installed.
    fn description(&self, network: &Network) -> Result<Description, TestbedError>;

    /// The sockets of the applications at both ends.
    fn socket(&self) -> SocketPlan {
        SocketPlan::default()
    }

    /// Starts it. `target` listens in the server's namespace.
    ///
    /// # Errors
    /// When it does not start.
    fn start(&self, network: &Network, target: SocketAddr) -> Result<Carrier, TestbedError>;
}

/// Where datagrams enter a peer and leave it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramEnds {
    /// In the server's namespace: it is sent there.
    pub entry: SocketAddr,
    /// In the client's namespace: the listener there receives it.
    pub exit: SocketAddr,
}

/// A peer that runs, until it is dropped.
pub struct Carrier {
    /// In the client's namespace: a TCP connection there reaches the target.
    pub entry: SocketAddr,
    /// In the client's namespace: a SOCKS5 proxy, by which anything in the server's namespace is reached.
    pub socks: Option<SocketAddr>,
    /// In the client's namespace: the metrics of its program there, if they were asked for.
    pub metrics: Option<SocketAddr>,
    /// For one that carries datagrams instead of connections.
    pub datagrams: Option<DatagramEnds>,
    /// Its programs, at both ends.
    pub processes: Vec<Process>,
    /// Whatever else has to stay.
    pub keep: Vec<Box<dyn Any + Send>>,
    is_tunnel: bool,
}

impl Carrier {
    /// There is nothing to be started: the target itself is connected to.
    #[must_use]
    pub fn direct(target: SocketAddr) -> Self {
        Self {
            entry: target,
            socks: None,
            metrics: None,
            datagrams: None,
            processes: Vec::new(),
            keep: Vec::new(),
            is_tunnel: false,
        }
    }

    /// A tunnel that begins at `entry`.
    #[must_use]
    pub fn tunnel(entry: SocketAddr, processes: Vec<Process>) -> Self {
        Self {
            entry,
            socks: None,
            metrics: None,
            datagrams: None,
            processes,
            keep: Vec::new(),
            is_tunnel: true,
        }
    }

    /// Whether it has a connection of its own that should be up before anything is measured.
    #[must_use]
    pub fn is_tunnel(&self) -> bool {
        self.is_tunnel
    }

    /// CPU time of its programs so far, in seconds.
    #[must_use]
    pub fn cpu_seconds(&self) -> f64 {
        self.processes.iter().filter_map(Process::cpu_seconds).sum()
    }

    /// How long threads of its programs were ready and had no core so far, in seconds.
    #[must_use]
    pub fn waited_seconds(&self) -> f64 {
        self.processes.iter().map(Process::waited_seconds).sum()
    }

    /// Whether all its programs still run.
    ///
    /// # Errors
    /// When one ended, with the last line it said.
    pub fn check(&mut self) -> Result<(), TestbedError> {
        self.processes.iter_mut().try_for_each(Process::check)
    }
}

/// The peer called so on the command line and in figures' lists.
#[must_use]
pub fn named(name: &str) -> Option<Box<dyn Peer>> {
    match name {
        "reno" => Some(Box::new(KernelTcp::RENO)),
        "cubic" => Some(Box::new(KernelTcp::CUBIC)),
        "bbr" => Some(Box::new(KernelTcp::BBR)),
        "mptcp-cubic" => Some(Box::new(Mptcp::CUBIC)),
        "mptcp-bbr" => Some(Box::new(Mptcp::BBR)),
        "kcptun" => Some(Box::new(Kcptun)),
        "quinn-cubic" => Some(Box::new(Quinn::CUBIC)),
        "quinn-bbr" => Some(Box::new(Quinn::BBR)),
        "srt" => Some(Box::new(Srt)),
        "ctcp" => Some(Box::new(Ctcp::PAPER)),
        "default" => Some(Box::new(Ctcp::DEFAULT)),
        _ => None,
    }
}
