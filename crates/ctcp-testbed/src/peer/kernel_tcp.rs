//! The kernel's own TCP, with a congestion control chosen for each socket.

use std::fs;
use std::net::SocketAddr;

use super::{Carrier, Description, Peer};
use crate::bulk::SocketPlan;
use crate::error::TestbedError;
use crate::network::Network;

/// Kernel TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelTcp {
    name: &'static str,
    congestion: &'static str,
}

impl KernelTcp {
    /// Reno's congestion control, with all other features of a current kernel.
    pub const RENO: Self = Self { name: "TCP Reno", congestion: "reno" };
    /// The kernel's default.
    pub const CUBIC: Self = Self { name: "TCP Cubic", congestion: "cubic" };
    /// As in the mainline kernel: version 1.
    pub const BBR: Self = Self { name: "TCP BBR", congestion: "bbr" };
}

impl Peer for KernelTcp {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self, network: &Network) -> Result<Description, TestbedError> {
        let congestion = self.congestion;
        let read = |path: &'static str| {
            let text = network.server.run(move || fs::read_to_string(path));
            text.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
                .map_err(TestbedError::of(format_args!("cannot read {path}")))
        };
        let windows = (read("/proc/sys/net/ipv4/tcp_wmem")?, read("/proc/sys/net/ipv4/tcp_rmem")?);
        Ok(Description {
            version: format!("Linux {}", read("/proc/sys/kernel/osrelease")?),
            settings: format!(
                "TCP_CONGESTION {congestion} on both sockets, tcp_wmem {}, tcp_rmem {}, tcp_no_metrics_save 1, no offloading",
                windows.0, windows.1
            ),
        })
    }

    fn socket(&self) -> SocketPlan {
        SocketPlan::congestion(self.congestion)
    }

    fn start(&self, _: &Network, target: SocketAddr) -> Result<Carrier, TestbedError> {
        Ok(Carrier::direct(target))
    }
}
