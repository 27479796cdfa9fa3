//! Many measurements of one kind, each on its own network, several at once if the machine can carry them.
//!
//! ```text
//!   cells, in a fixed shuffled order             -- several at once -->  accepted: kept
//!                     ^                                                  emulator was too late: repeated, one at a time
//! ```

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use ctcp_base::Prng;

use super::{ATTEMPTS, Progress, Run, Testbed, named};
use crate::clock::Clock;
use crate::error::TestbedError;
use crate::network::Network;
use crate::plan::NetworkPlan;
use crate::stop::Stop;

/// A cell's label and network.
pub(super) type Place = (String, NetworkPlan);

impl Testbed<'_> {
    /// Measures all cells, `at_once` at a time, and returns those whose emulator kept up, in the order of the cells.
    ///
    /// # Errors
    /// Returns an error for any other failure of a cell; then the others are stopped.
    pub fn measure_all<C: Sync, T: Send>(
        &mut self,
        at_once: usize,
        cells: Vec<C>,
        place: impl Fn(&C) -> Place,
        measure: impl Fn(&Network, &C) -> Result<T, TestbedError> + Sync,
    ) -> Result<Vec<(C, T)>, TestbedError> {
        let places: Vec<Place> = cells.iter().map(place).collect();
        let mut runs: Vec<Run> = places.iter().map(|(label, plan)| Run::new(label, plan)).collect();
        let mut found: Vec<Option<T>> = cells.iter().map(|_| None).collect();
        // A shuffled order spreads long cells, and lets disturbances of the machine affect all kinds of cells.
        let mut pending: Vec<usize> = (0..cells.len()).collect();
        shuffle(&mut pending);
        self.expect_runs(self.runs.len() + cells.len());
        for attempt in 0..ATTEMPTS {
            let width = if attempt == 0 { at_once.max(1) } else { 1 };
            let (clock, executable, stop) = (self.clock, self.executable.clone(), self.stop.clone());
            let attempt = |index: usize| {
                let ((label, plan), mut run) = (&places[index], runs[index].clone());
                let bring_up = || Network::start(plan, executable.clone(), stop.clone());
                let value = try_once(&mut run, clock, bring_up, |network| measure(network, &cells[index]));
                value.map(|value| (index, run, value)).map_err(|error| named(label, error))
            };
            for (index, run, value) in self.measure_once(width, &pending, &places, attempt)? {
                runs[index] = run;
                found[index] = value;
            }
            pending.retain(|&index| found[index].is_none());
        }
        self.runs.extend(runs);
        Ok(cells.into_iter().zip(found).filter_map(|(cell, found)| Some((cell, found?))).collect())
    }

    /// Measures every pending cell once.
    fn measure_once<T: Send>(
        &mut self,
        width: usize,
        pending: &[usize],
        places: &[Place],
        attempt: impl Fn(usize) -> Attempt<T> + Sync,
    ) -> Result<Vec<(usize, Run, Option<T>)>, TestbedError> {
        let (next, stop) = (AtomicUsize::new(0), self.stop.clone());
        let (send, results) = mpsc::channel();
        let (mut found, mut failure) = (Vec::new(), None);
        thread::scope(|scope| {
            for _ in 0..width.min(pending.len()) {
                let (send, next, stop, attempt) = (send.clone(), &next, &stop, &attempt);
                scope.spawn(move || {
                    while let Some(&index) = pending.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if stop.is_set() || send.send((index, attempt(index))).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(send);
            for (index, result) in results {
                match result {
                    Ok(one) => found.push(one),
                    Err(error) => note(&mut failure, error, &stop),
                }
                let done = self.runs.len() + places.len() - pending.len() + found.len();
                (self.on_progress)(Progress { label: &places[index].0, done, of: self.expected });
            }
        });
        failure.map_or_else(|| self.stop.check(), Err)?;
        Ok(found)
    }
}

/// The cell's index, the record of the run, and the value if the emulator kept up.
type Attempt<T> = Result<(usize, Run, Option<T>), TestbedError>;

/// Starts a network, measures, and stops it; `None` if the emulator was too late.
fn try_once<T>(
    run: &mut Run,
    clock: Clock,
    bring_up: impl Fn() -> Result<Network, TestbedError>,
    measure: impl Fn(&Network) -> Result<T, TestbedError>,
) -> Result<Option<T>, TestbedError> {
    run.begin(clock.now());
    let network = bring_up()?;
    let value = measure(&network)?;
    run.end(&network)?;
    Ok(run.is_accepted().then_some(value))
}

/// Keeps the first error, and stops all other measurements.
fn note(failure: &mut Option<TestbedError>, error: TestbedError, stop: &Stop) {
    stop.set();
    match failure {
        None | Some(TestbedError::Interrupted) => *failure = Some(error),
        Some(_) => {}
    }
}

fn shuffle(indexes: &mut [usize]) {
    let mut prng = Prng::new(0);
    for last in (1..indexes.len()).rev() {
        indexes.swap(last, prng.below(last as u64 + 1) as usize);
    }
}
