//! A random network drawn from a number. First everything that the plan contains may go wrong, and the checkers must
//! find no violation (safety). Then the network heals. Within a time limit computed from the sizes, everything that was
//! not reset must arrive, and both sides must close cleanly and drop their state (liveness).
//!
//! [`run`] does this twice and compares the traces, so that a failure can be replayed from its seed.

mod draw;
mod drive;
mod plan;

use core::fmt;

use ctcp_base::Instant;
use ctcp_proto::Profile;

pub use plan::{Happening, NetworkPlan, PathHappening, Plan};

use drive::Driver;

/// The result of a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// A one-line description of the plan.
    pub plan: String,
    /// The virtual duration of the run in nanoseconds.
    pub virtual_nanos: u64,
    /// Number of wake-ups of hosts and links.
    pub events: u64,
    /// Datagrams sent.
    pub datagrams: u64,
    /// Bytes of content that readers got.
    pub delivered: u64,
    /// The hash of the trace.
    pub hash: u64,
    /// Whether the client has several paths.
    pub has_paths: bool,
    /// Packets with coded data that brought something new to the sides of the last connection.
    pub useful: u64,
    /// Packets with coded data that arrived for nothing.
    pub redundant: u64,
    /// How often one of several paths of the client was opened or closed.
    pub path_events: u64,
    /// Number of connections begun: more than one if the network was too bad for the first.
    pub attempts: u32,
    /// The time from the healing of the network to the end of the script, in nanoseconds.
    pub healing_nanos: u64,
    /// A description of the failure, if any.
    pub failure: Option<String>,
}

impl Report {
    /// Returns whether there was no failure.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.failure.is_none()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "seed {}: {:.1} s ({:.1} s healed), {} events, {} datagrams, {} bytes, {} attempts, {} of {} for nothing, hash {:016x}",
            self.seed,
            self.virtual_nanos as f64 / 1e9,
            self.healing_nanos as f64 / 1e9,
            self.events,
            self.datagrams,
            self.delivered,
            self.attempts,
            self.redundant,
            self.useful + self.redundant,
            self.hash
        )?;
        if self.path_events > 0 {
            write!(formatter, ", {} path events", self.path_events)?;
        }
        match &self.failure {
            Some(failure) => write!(formatter, "\n  {}\n  FAILED: {failure}", self.plan),
            None => Ok(()),
        }
    }
}

/// Runs the network of a seed twice and compares the runs. If the plan has spurious calls, the second run has none,
/// because they must not make a difference.
#[must_use]
pub fn run(seed: u64) -> Report {
    run_twice(seed, &Plan::draw(seed))
}

/// Runs the network of a seed with further paths that come and go ([`Plan::draw_paths`]), as [`run`] does.
#[must_use]
pub fn run_paths(seed: u64) -> Report {
    run_twice(seed, &Plan::draw_paths(seed))
}

/// Runs the network of a seed with another profile.
#[must_use]
pub fn run_with(seed: u64, profile: Profile) -> Report {
    let mut plan = Plan::draw(seed);
    plan.client.profile = profile;
    run_twice(seed, &plan)
}

fn run_twice(seed: u64, plan: &Plan) -> Report {
    let mut first = run_plan(seed, plan);
    if first.is_success() {
        let second = run_plan(seed, &Plan { is_noisy: false, ..plan.clone() });
        if second.hash != first.hash || (!plan.is_noisy && second != first) {
            first.failure = Some(format!("the second run differs: {second}"));
        }
    }
    first
}

/// Runs the network of a seed once.
#[must_use]
pub fn run_once(seed: u64) -> Report {
    run_plan(seed, &Plan::draw(seed))
}

/// Runs a plan once with a log, and returns the log, too.
#[must_use]
pub fn run_with_log(seed: u64, plan: &Plan) -> (Report, String) {
    let mut driver = Driver::new(seed, plan);
    driver.pair.simulation.keep_log();
    let failure = driver.run().err();
    let log = driver.pair.simulation.recorder().log().to_owned();
    (report(seed, plan, &driver, failure), log)
}

/// Runs a plan that was drawn from a seed, or changed by hand to analyse a failure.
#[must_use]
pub fn run_plan(seed: u64, plan: &Plan) -> Report {
    let mut driver = Driver::new(seed, plan);
    let failure = driver.run().err();
    report(seed, plan, &driver, failure)
}

fn report(seed: u64, plan: &Plan, driver: &Driver<'_>, failure: Option<String>) -> Report {
    let simulation = &driver.pair.simulation;
    Report {
        seed,
        plan: plan.to_string(),
        virtual_nanos: simulation.now().as_nanos() - driver.start.as_nanos(),
        events: simulation.events(),
        datagrams: simulation.recorder().datagrams(),
        delivered: simulation.ledger().total_read(),
        hash: simulation.recorder().hash(),
        has_paths: !plan.further.is_empty(),
        useful: driver.coded.useful,
        redundant: driver.coded.redundant,
        path_events: driver.path_events(),
        attempts: driver.attempts,
        healing_nanos: u64::try_from(driver.took.as_nanos()).unwrap_or(u64::MAX),
        failure: failure.map(|what| format!("at {}: {what}", since(driver.start, simulation.now()))),
    }
}

fn since(start: Instant, now: Instant) -> String {
    format!("{:.6} s", (now - start).as_secs_f64())
}
