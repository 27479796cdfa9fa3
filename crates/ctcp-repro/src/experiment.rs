//! The figures and tables that can be reproduced.

use core::num::NonZeroUsize;

use crate::changes::{Changes, Parameter};
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::shard::Shard;
use crate::{control, ctcp, eot_pb, tcp_nc, thesis};

/// Settings of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Settings {
    /// Whether this is a smoke run, with fewer seeds and smaller sizes.
    pub quick: bool,
    /// Seeds per point, if different from the experiment's own number.
    pub seeds: Option<u32>,
    /// Parameters that differ from the paper.
    pub changes: Changes,
}

impl Settings {
    /// The maximum number of seeds per point, so that the cells fit into memory.
    pub const SEEDS_MAX: u32 = 100_000;

    /// Returns the seeds per point: the configured number, or `full`, or `quick` in a quick run.
    #[must_use]
    pub fn seeds_or(&self, full: u32, quick: u32) -> u32 {
        self.seeds.unwrap_or(if self.quick { quick } else { full }).max(1)
    }

    /// Returns the virtual seconds of a run: the configured number, or `full`, or `quick` in a quick run.
    #[must_use]
    pub fn seconds_or(&self, full: u64, quick: u64) -> u64 {
        self.changes.seconds.unwrap_or(if self.quick { quick } else { full })
    }
}

/// A figure or table.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// The name on the command line, and of the files.
    pub id: &'static str,
    /// The paper in which it is printed.
    pub paper: &'static str,
    /// A one-line description.
    pub title: &'static str,
    /// Plans its work.
    pub(crate) plan: fn(&Settings) -> Plan,
    /// The parameters that can be changed.
    pub takes: &'static [Parameter],
}

impl Experiment {
    /// Returns the experiment called `id`.
    #[must_use]
    pub fn named(id: &str) -> Option<&'static Self> {
        EXPERIMENTS.iter().find(|experiment| experiment.id == id)
    }

    /// Returns its work under the given settings.
    #[must_use]
    pub fn plan(&self, settings: &Settings) -> Plan {
        (self.plan)(settings).changed_by(settings.changes)
    }

    /// Computes the whole experiment.
    #[must_use]
    pub fn run(&self, settings: &Settings, threads: NonZeroUsize) -> Outcome {
        let plan = self.plan(settings);
        let found = plan.measure(Shard::WHOLE, threads, &|| ());
        plan.outcome(found).expect("these are the values of all its own cells")
    }
}

/// A figure that cannot be reproduced yet.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// The name on the command line.
    pub id: &'static str,
    /// The paper in which it is printed.
    pub paper: &'static str,
    /// A one-line description.
    pub title: &'static str,
    /// The missing feature.
    pub waits_for: &'static str,
}

/// All figures that cannot be reproduced yet.
pub const WAITING: &[Waiting] = &[];

/// All experiments, in the order in which the papers were published, and those that are in no paper.
pub const EXPERIMENTS: &[Experiment] = &[
    tcp_nc::fig5::EXPERIMENT,
    tcp_nc::fig6::EXPERIMENT,
    tcp_nc::fig7::EXPERIMENT,
    tcp_nc::fig8::EXPERIMENT,
    tcp_nc::lemma1::EXPERIMENT,
    tcp_nc::theorem2::EXPERIMENT,
    tcp_nc::relays::DELAY,
    tcp_nc::relays::MEMORY,
    eot_pb::table1::EXPERIMENT,
    eot_pb::table2::EXPERIMENT,
    eot_pb::fig3::EXPERIMENT,
    thesis::tables_c::EXPERIMENT,
    thesis::cost::EXPERIMENT,
    thesis::overhead::EXPERIMENT,
    thesis::single::EXPERIMENT,
    thesis::multi::EXPERIMENT,
    ctcp::fig3a::EXPERIMENT,
    ctcp::fig3b::EXPERIMENT,
    ctcp::fig4::EXPERIMENT,
    ctcp::fig5::EXPERIMENT,
    ctcp::fig6::EXPERIMENT,
    ctcp::fig7::EXPERIMENT,
    ctcp::fig8::EXPERIMENT,
    ctcp::fig9::EXPERIMENT,
    ctcp::fig10::EXPERIMENT,
    ctcp::fig11::EXPERIMENT,
    ctcp::fig12::EXPERIMENT,
    ctcp::hotel::EXPERIMENT,
    ctcp::eq6::EXPERIMENT,
    ctcp::eq7::EXPERIMENT,
    control::changes::HALVED,
    control::changes::DOUBLED,
    control::changes::LONGER,
    control::changes::SHORTER,
    control::changes::DEAD,
];
