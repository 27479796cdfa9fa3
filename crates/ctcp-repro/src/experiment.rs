//! What can be reproduced.

use core::num::NonZeroUsize;

use crate::changes::{Changes, Parameter};
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::shard::Shard;
use crate::{ctcp, eot_pb, tcp_nc, thesis};

/// How much work to spend.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Settings {
    /// A smoke run: fewer seeds and smaller sizes.
    pub quick: bool,
    /// Seeds a point, if not the experiment's own number.
    pub seeds: Option<u32>,
    /// What is not as in the paper.
    pub changes: Changes,
}

impl Settings {
    /// Most seeds a point: more cells than memory holds are no experiment.
    pub const SEEDS_MAX: u32 = 100_000;

    /// Seeds a point: those asked for, or `full`, or `quick` in a quick run.
    #[must_use]
    pub fn seeds_or(&self, full: u32, quick: u32) -> u32 {
        self.seeds.unwrap_or(if self.quick { quick } else { full }).max(1)
    }

    /// Virtual seconds of a run: those asked for, or `full`, or `quick` in a quick run.
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
    /// Where it is printed.
    pub paper: &'static str,
    /// What it shows, in a line.
    pub title: &'static str,
    /// Its work.
    pub(crate) plan: fn(&Settings) -> Plan,
    /// What can be changed of it.
    pub takes: &'static [Parameter],
}

impl Experiment {
    /// The experiment called `id`.
    #[must_use]
    pub fn named(id: &str) -> Option<&'static Self> {
        EXPERIMENTS.iter().find(|experiment| experiment.id == id)
    }

    /// Its work under some settings.
    #[must_use]
    pub fn plan(&self, settings: &Settings) -> Plan {
        (self.plan)(settings).changed_by(settings.changes)
    }

    /// Computes all of it.
    #[must_use]
    pub fn run(&self, settings: &Settings, threads: NonZeroUsize) -> Outcome {
        let plan = self.plan(settings);
        let found = plan.measure(Shard::WHOLE, threads, &|| ());
        plan.outcome(found).expect("what its own cells gave, all of it")
    }
}

/// A figure that cannot be reproduced yet.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// The name on the command line.
    pub id: &'static str,
    /// Where it is printed.
    pub paper: &'static str,
    /// What it shows, in a line.
    pub title: &'static str,
    /// What is not there yet.
    pub waits_for: &'static str,
}

/// Those that wait.
pub const WAITING: &[Waiting] = &[thesis::multi::WAITING];

/// All of them, in the order in which the papers came.
pub const EXPERIMENTS: &[Experiment] = &[
    tcp_nc::fig5::EXPERIMENT,
    tcp_nc::fig6::EXPERIMENT,
    tcp_nc::fig7::EXPERIMENT,
    tcp_nc::fig8::EXPERIMENT,
    tcp_nc::lemma1::EXPERIMENT,
    tcp_nc::theorem2::EXPERIMENT,
    eot_pb::table1::EXPERIMENT,
    eot_pb::table2::EXPERIMENT,
    eot_pb::fig3::EXPERIMENT,
    thesis::tables_c::EXPERIMENT,
    thesis::cost::EXPERIMENT,
    thesis::overhead::EXPERIMENT,
    thesis::single::EXPERIMENT,
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
];
