//! The kernel's Multipath TCP: one connection over all paths of the network.
//!
//! On a single path it is TCP with another option in its segments, so it is compared only where there are two paths.

use std::net::SocketAddr;
use std::path::Path;

use super::program::version;
use super::{Carrier, Description, Peer};
use crate::bulk::SocketPlan;
use crate::error::TestbedError;
use crate::network::Network;
use crate::plan::PATHS_MAX;

/// Multipath TCP with a congestion control for each subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mptcp {
    name: &'static str,
    congestion: &'static str,
}

impl Mptcp {
    /// Cubic on every subflow.
    pub const CUBIC: Self = Self { name: "MPTCP Cubic", congestion: "cubic" };
    /// BBR on every subflow.
    pub const BBR: Self = Self { name: "MPTCP BBR", congestion: "bbr" };
}

impl Peer for Mptcp {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self, network: &Network) -> Result<Description, TestbedError> {
        let read = |path| network.server.run(move || std::fs::read_to_string(path));
        let scheduler = read("/proc/sys/net/mptcp/scheduler")
            .map_err(|error| TestbedError::Missing(format!("this kernel has no Multipath TCP ({error})")))?;
        let release = read("/proc/sys/kernel/osrelease").unwrap_or_default();
        let iproute = version(Path::new("ip"), &["-V"], "apt-get install iproute2")?;
        Ok(Description {
            version: format!("Linux {}, {iproute}", release.trim()),
            settings: format!(
                "IPPROTO_MPTCP and TCP_CONGESTION {} on both sockets, scheduler {}, the server signals its further addresses",
                self.congestion,
                scheduler.trim()
            ),
        })
    }

    fn socket(&self) -> SocketPlan {
        SocketPlan { congestion: Some(self.congestion), is_multipath: true }
    }

    fn start(&self, network: &Network, target: SocketAddr) -> Result<Carrier, TestbedError> {
        for namespace in [&network.server, &network.client] {
            // A kernel that supports it may have it disabled.
            namespace.set("net.mptcp.enabled", "1")?;
            namespace.configure(&format!(
                "mptcp limits set subflows {PATHS_MAX} add_addr_accepted {PATHS_MAX}\n"
            ))?;
        }
        for (index, path) in network.paths().enumerate().skip(1) {
            let line = format!("mptcp endpoint add {} dev path{} signal\n", path.server, index + 1);
            network.server.configure(&line)?;
        }
        Ok(Carrier::direct(target))
    }
}
