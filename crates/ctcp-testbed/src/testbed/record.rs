//! The records of runs besides their values.

use std::collections::BTreeMap;

use ctcp_base::Instant;
use serde::Serialize;

use super::machine::{Machine, load_average};
use crate::emulator::Report;
use crate::error::TestbedError;
use crate::network::Network;
use crate::peer::Description;
use crate::plan::NetworkPlan;

/// All records of a figure.
#[derive(Clone, Debug, Serialize)]
pub struct Record {
    /// The machine.
    pub machine: Machine,
    /// The peers' versions and settings.
    pub peers: BTreeMap<String, Description>,
    /// The runs in order.
    pub runs: Vec<Run>,
}

/// A run.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// What was measured.
    pub label: String,
    /// The network.
    pub network: String,
    /// The start of its last attempt since the start of the figure, in seconds.
    pub began_s: f64,
    /// The number of attempts.
    pub attempts: u32,
    /// The machine's load average at the start of the last attempt.
    pub load: f64,
    /// The emulator's report on the last attempt.
    pub emulator: Report,
    /// Packets lost between a namespace and its link, which the plan does not provide for.
    pub device_drops: u64,
}

impl Run {
    pub(super) fn new(label: &str, plan: &NetworkPlan) -> Self {
        Self {
            label: label.to_owned(),
            network: plan.to_string(),
            began_s: 0.0,
            attempts: 0,
            load: 0.0,
            emulator: Report::default(),
            device_drops: 0,
        }
    }

    pub(super) fn begin(&mut self, now: Instant) {
        self.attempts += 1;
        self.began_s = now.as_secs_f64();
        self.load = load_average();
    }

    pub(super) fn end(&mut self, network: &Network) -> Result<(), TestbedError> {
        self.emulator = network.report();
        self.device_drops = network.device_drops()?;
        Ok(())
    }

    /// Returns true if the network matched its plan: the emulator kept up, and packets were lost in links only.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.emulator.lateness.is_acceptable() && self.emulator.refused == 0 && self.device_drops == 0
    }
}
