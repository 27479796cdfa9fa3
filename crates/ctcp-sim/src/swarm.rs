//! A random network from one number. First everything may go wrong that the plan says: the checkers must be content
//! (safety). Then the network heals, and everything that was not given up must arrive, both sides must close in
//! order and forget each other, all within a time that follows from the sizes (liveness).
//!
//! [`run`] does it twice and compares the traces, so that a failure can be replayed from its seed.

mod draw;
mod drive;
mod plan;

use core::fmt;

use ctcp_base::Instant;

pub use plan::{Happening, NetworkPlan, Plan};

use drive::Driver;

/// What came of a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// What it stands for, in a line.
    pub plan: String,
    /// How long the run took in its own time, in nanoseconds.
    pub virtual_nanos: u64,
    /// Wake-ups of hosts and links.
    pub events: u64,
    /// Datagrams sent.
    pub datagrams: u64,
    /// Bytes of content that readers got.
    pub delivered: u64,
    /// The hash of the trace.
    pub hash: u64,
    /// Connections that were begun: more than one when the network was too bad for the first.
    pub attempts: u32,
    /// From the healing of the network to the end of the script, in nanoseconds.
    pub healing_nanos: u64,
    /// What went wrong, if anything did.
    pub failure: Option<String>,
}

impl Report {
    /// Nothing went wrong.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.failure.is_none()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "seed {}: {:.1} s ({:.1} s healed), {} events, {} datagrams, {} bytes, {} attempts, hash {:016x}",
            self.seed,
            self.virtual_nanos as f64 / 1e9,
            self.healing_nanos as f64 / 1e9,
            self.events,
            self.datagrams,
            self.delivered,
            self.attempts,
            self.hash
        )?;
        match &self.failure {
            Some(failure) => write!(formatter, "\n  {}\n  FAILED: {failure}", self.plan),
            None => Ok(()),
        }
    }
}

/// Runs the network of a seed twice and compares. A seed with needless calls has none in its second run: they must
/// not make a difference.
#[must_use]
pub fn run(seed: u64) -> Report {
    let plan = Plan::draw(seed);
    let mut first = run_plan(seed, &plan);
    if first.is_success() {
        let second = run_plan(seed, &Plan { is_noisy: false, ..plan.clone() });
        if second.hash != first.hash || (!plan.is_noisy && second != first) {
            first.failure = Some(format!("the second run is another one: {second}"));
        }
    }
    first
}

/// Runs the network of a seed once.
#[must_use]
pub fn run_once(seed: u64) -> Report {
    run_plan(seed, &Plan::draw(seed))
}

/// Runs a plan once and returns its log, too.
#[must_use]
pub fn run_with_log(seed: u64, plan: &Plan) -> (Report, String) {
    let mut driver = Driver::new(seed, plan);
    driver.pair.simulation.keep_log();
    let failure = driver.run().err();
    let log = driver.pair.simulation.recorder().log().to_owned();
    (report(seed, plan, &driver, failure), log)
}

/// Runs a plan that was drawn from a seed, or changed by hand to find out what a failure needs.
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
        attempts: driver.attempts,
        healing_nanos: u64::try_from(driver.took.as_nanos()).unwrap_or(u64::MAX),
        failure: failure.map(|what| format!("at {}: {what}", since(driver.start, simulation.now()))),
    }
}

fn since(start: Instant, now: Instant) -> String {
    format!("{:.6} s", (now - start).as_secs_f64())
}
