//! The transports under test, each started as its users start it: one file each.
//!
//! To add one, write a file with a type that has the peer's name and settings and starts it in a [`Network`], and add
//! its line in [`named`]. A tunnel starts its server in `network.server` and its client in `network.client`, waits
//! until both are ready, and returns the address in the client's namespace where a TCP connection leads to the
//! `target`. A kind of socket returns [`Carrier::direct`] and its kind in [`Peer::socket`]. If its program is not
//! installed, `description` returns [`TestbedError::Missing`] with the command that installs it.

mod ctcp;
mod fec;
mod kcptun;
mod kernel_tcp;
mod messages;
pub(crate) mod metrics;
mod mptcp;
mod program;
mod quinn;
mod relayed;
mod srt;
mod udp;

use core::time::Duration;
use std::any::Any;
use std::net::SocketAddr;

use serde::Serialize;

use crate::bulk::SocketPlan;
use crate::error::TestbedError;
use crate::network::Network;
use crate::process::Process;

pub use ctcp::Ctcp;
pub use fec::Fec;
pub use kcptun::Kcptun;
pub use kernel_tcp::KernelTcp;
pub use messages::CtcpMessages;
pub use mptcp::Mptcp;
pub use quinn::Quinn;
pub use relayed::Relayed;
pub use srt::Srt;
pub use udp::Udp;

/// How long a peer may take to start.
pub const READY_WITHIN: Duration = Duration::from_secs(20);

/// The description of a peer in results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Description {
    /// Its program and version.
    pub version: String,
    /// Its settings, in words or as its command line.
    pub settings: String,
}

/// A transport.
pub trait Peer: Send + Sync {
    /// The unique name in figures and tables.
    fn name(&self) -> &str;

    /// Its version and settings.
    ///
    /// # Errors
    /// Returns an error if it is not installed.
    fn description(&self, network: &Network) -> Result<Description, TestbedError>;

    /// The sockets of the applications at both ends.
    fn socket(&self) -> SocketPlan {
        SocketPlan::default()
    }

    /// Starts it. `target` listens in the server's namespace.
    ///
    /// # Errors
    /// Returns an error if it does not start.
    fn start(&self, network: &Network, target: SocketAddr) -> Result<Carrier, TestbedError>;

    /// Starts it for UDP: `target` is a UDP socket, and so is the entry of the carrier. What the target answers to a
    /// datagram's sender returns to the program that sent it.
    ///
    /// # Errors
    /// Returns an error if it does not start, or cannot carry UDP in this way.
    fn start_datagrams(&self, _network: &Network, _target: SocketAddr) -> Result<Carrier, TestbedError> {
        Err(TestbedError::failed(format!("{} carries no UDP", self.name())))
    }
}

/// The addresses at which datagrams enter and leave a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramEnds {
    /// In the server's namespace: datagrams are sent to this address.
    pub entry: SocketAddr,
    /// In the client's namespace: a listener at this address receives them.
    pub exit: SocketAddr,
}

/// A running peer. It ends when this is dropped.
pub struct Carrier {
    /// In the client's namespace: a TCP connection there reaches the target.
    pub entry: SocketAddr,
    /// The same for connections that need low latency, if there is a difference.
    pub interactive: Option<SocketAddr>,
    /// In the client's namespace: a SOCKS5 proxy that reaches any address in the server's namespace.
    pub socks: Option<SocketAddr>,
    /// In the client's namespace: the metrics of its program there, if requested.
    pub metrics: Option<SocketAddr>,
    /// The ends for a peer that carries datagrams instead of connections.
    pub datagrams: Option<DatagramEnds>,
    /// Its programs at both ends.
    pub processes: Vec<Process>,
    /// Other values that must live as long as the peer.
    pub keep: Vec<Box<dyn Any + Send>>,
    is_tunnel: bool,
}

impl Carrier {
    /// A peer without programs: connections go to the target itself.
    #[must_use]
    pub fn direct(target: SocketAddr) -> Self {
        Self {
            entry: target,
            interactive: None,
            socks: None,
            metrics: None,
            datagrams: None,
            processes: Vec::new(),
            keep: Vec::new(),
            is_tunnel: false,
        }
    }

    /// A tunnel that starts at `entry`.
    #[must_use]
    pub fn tunnel(entry: SocketAddr, processes: Vec<Process>) -> Self {
        Self {
            entry,
            interactive: None,
            socks: None,
            metrics: None,
            datagrams: None,
            processes,
            keep: Vec::new(),
            is_tunnel: true,
        }
    }

    /// Returns true if it has its own connection, which should be established before a measurement.
    #[must_use]
    pub fn is_tunnel(&self) -> bool {
        self.is_tunnel
    }

    /// CPU time of its programs so far, in seconds.
    #[must_use]
    pub fn cpu_seconds(&self) -> f64 {
        self.processes.iter().filter_map(Process::cpu_seconds).sum()
    }

    /// How long threads of its programs have been ready without a core so far, in seconds.
    #[must_use]
    pub fn waited_seconds(&self) -> f64 {
        self.processes.iter().map(Process::waited_seconds).sum()
    }

    /// The source symbols that its client has decoded so far, and what it received in vain; `None` if it serves no
    /// metrics.
    ///
    /// # Errors
    /// Returns an error if the metrics cannot be read.
    pub fn symbols(&self, network: &Network) -> Result<Option<[u64; 2]>, TestbedError> {
        let Some(address) = self.metrics else { return Ok(None) };
        let text = network.client.run(move || metrics::read_metrics(address));
        let text = text.map_err(TestbedError::of("the metrics of ctcp client"))?;
        Ok(Some(
            ["ctcp_symbols_decoded", "ctcp_redundant_received"].map(|name| metrics::counter(&text, name)),
        ))
    }

    /// Checks that all its programs still run.
    ///
    /// # Errors
    /// Returns an error with the last line of output if a program ended.
    pub fn check(&mut self) -> Result<(), TestbedError> {
        self.processes.iter_mut().try_for_each(Process::check)
    }
}

/// Looks up a peer by its name on the command line and in figures' lists.
#[must_use]
pub fn named(name: &str) -> Option<Box<dyn Peer>> {
    match name {
        "reno" => Some(Box::new(KernelTcp::RENO)),
        "cubic" => Some(Box::new(KernelTcp::CUBIC)),
        "bbr" => Some(Box::new(KernelTcp::BBR)),
        "mptcp-cubic" => Some(Box::new(Mptcp::CUBIC)),
        "mptcp-bbr" => Some(Box::new(Mptcp::BBR)),
        "kcptun" => Some(Box::new(Kcptun::USUAL)),
        "kcptun-10-10" => Some(Box::new(Kcptun::DOUBLE)),
        "quinn-cubic" => Some(Box::new(Quinn::CUBIC)),
        "quinn-bbr" => Some(Box::new(Quinn::BBR)),
        "srt" => Some(Box::new(Srt)),
        "ctcp" => Some(Box::new(Ctcp::PAPER)),
        "default" => Some(Box::new(Ctcp::DEFAULT)),
        "low-latency" => Some(Box::new(Ctcp::LOW_LATENCY)),
        "low-latency-forward" => Some(Box::new(Ctcp::LOW_LATENCY_FORWARD)),
        "path-1" => Some(Box::new(Ctcp::FIRST_PATH)),
        "path-2" => Some(Box::new(Ctcp::SECOND_PATH)),
        "path-1-2" => Some(Box::new(Ctcp::FIRST_TWO_PATHS)),
        "independent" => Some(Box::new(Ctcp::INDEPENDENT)),
        "redundant" => Some(Box::new(Ctcp::REDUNDANT)),
        "relay-recode" => Some(Box::new(Relayed::RECODE)),
        "relay-repeat" => Some(Box::new(Relayed::REPEAT)),
        "relay-forward" => Some(Box::new(Relayed::FORWARD)),
        "messages" => Some(Box::new(CtcpMessages)),
        "udp" => Some(Box::new(Udp)),
        "fec-10-3" => Some(Box::new(Fec::USUAL)),
        "fec-10-10" => Some(Box::new(Fec::DOUBLE)),
        _ => None,
    }
}
