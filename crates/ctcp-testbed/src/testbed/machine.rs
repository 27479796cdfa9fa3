//! The machine that runs the measurements.

use std::fs;
use std::thread;

use serde::Serialize;

/// What a reader must know about a machine; empty where the machine does not report it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Its kernel's release.
    pub linux: String,
    /// Its processor's name.
    pub cpu: String,
    /// Threads that run at once.
    pub cores: usize,
    /// The congestion controls of its kernel.
    pub congestion_controls: String,
}

impl Machine {
    /// This machine.
    #[must_use]
    pub fn read() -> Self {
        let cpu = read("/proc/cpuinfo");
        let name = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        Self {
            linux: read("/proc/sys/kernel/osrelease"),
            cpu: name.map(|(_, name)| name.trim().to_owned()).unwrap_or_default(),
            cores: thread::available_parallelism().map_or(0, Into::into),
            congestion_controls: read("/proc/sys/net/ipv4/tcp_available_congestion_control"),
        }
    }
}

/// The number of programs that needed a core, averaged over the last minute.
pub(super) fn load_average() -> f64 {
    read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok()).unwrap_or_default()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}
