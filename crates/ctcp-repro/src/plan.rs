//! An experiment as a list of independent cells, and the evaluation of their values.
//!
//! ```text
//!   cells:  parameters x seed    each measured independently, on any thread or machine
//!     |  measure                 a pure function of the cell
//!   values                       stored as JSON when shards are merged
//!     |  outcome                 a pure function of all values in the order of the cells
//!   points, checks, notes
//! ```
//!
//! Invariant: an outcome depends only on the settings, and not on the distribution of cells over threads and shards.

use core::fmt::{self, Debug};
use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;

use ctcp_base::Prng;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::changes::Changes;
use crate::outcome::Outcome;
use crate::shard::Shard;

/// The work of an experiment under given settings.
pub struct Plan {
    names: Vec<String>,
    /// The position of each cell in the shuffled order from which shards are dealt.
    places: Vec<usize>,
    measure: Box<dyn Fn(usize) -> Value + Sync>,
    outcome: Box<dyn Fn(Vec<Value>) -> Result<Outcome, serde_json::Error>>,
    changes: Changes,
}

impl Plan {
    /// Creates a plan that measures each cell, and evaluates all cells with their values in the given order.
    ///
    /// The name of a cell is its debug format, which contains its parameters. Values must be finite, since JSON has no
    /// other numbers.
    pub fn new<C, F>(
        cells: Vec<C>,
        measure: impl Fn(&C) -> F + Sync + 'static,
        outcome: impl Fn(&[(C, F)]) -> Outcome + 'static,
    ) -> Self
    where
        C: Clone + Debug + Send + Sync + 'static,
        F: Serialize + DeserializeOwned,
    {
        let names = cells.iter().map(|cell| format!("{cell:?}")).collect();
        let places = shuffled(cells.len());
        let cells: Arc<[C]> = cells.into();
        let measured = Arc::clone(&cells);
        Self {
            names,
            places,
            measure: Box::new(move |index| {
                serde_json::to_value(measure(&measured[index])).expect("a value of numbers and strings")
            }),
            outcome: Box::new(move |values| {
                let values = values.into_iter().map(serde_json::from_value).collect::<Result<Vec<F>, _>>()?;
                let found: Vec<(C, F)> = cells.iter().cloned().zip(values).collect();
                Ok(outcome(&found))
            }),
            changes: Changes::default(),
        }
    }

    /// Marks the work as planned with these changes. Its outcome then has a remark and skips the paper's claims.
    pub(crate) fn changed_by(self, changes: Changes) -> Self {
        Self { changes, ..self }
    }

    /// Returns the names of the cells.
    #[must_use]
    pub fn cells(&self) -> &[String] {
        &self.names
    }

    /// Returns the indexes of the cells of a shard, in ascending order.
    pub fn cells_of(&self, shard: Shard) -> impl Iterator<Item = usize> {
        (0..self.names.len()).filter(move |&cell| shard.has(self.places[cell]))
    }

    /// Returns the values of a shard's cells, in their order. `on_cell` is called once per cell, from any thread.
    ///
    /// # Panics
    /// Panics if measuring a cell panics.
    #[must_use]
    pub fn measure(&self, shard: Shard, threads: NonZeroUsize, on_cell: &(dyn Fn() + Sync)) -> Vec<Value> {
        let cells: Vec<usize> = self.cells_of(shard).collect();
        let (next, measure) = (AtomicUsize::new(0), &self.measure);
        // Each idle thread takes the next cell, so that long cells delay no others.
        let work = || {
            let mut found = Vec::new();
            while let Some(&cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                found.push((cell, measure(cell)));
                on_cell();
            }
            found
        };
        let mut found = thread::scope(|scope| {
            let workers: Vec<_> = (0..threads.get().min(cells.len())).map(|_| scope.spawn(work)).collect();
            let joined = workers.into_iter().map(|worker| worker.join().expect("a cell panicked"));
            joined.flatten().collect::<Vec<(usize, Value)>>()
        });
        found.sort_unstable_by_key(|&(cell, _)| cell);
        found.into_iter().map(|(_, value)| value).collect()
    }

    /// Evaluates the values of all cells, given in the order of the cells.
    ///
    /// # Errors
    /// Returns an error if there is not exactly one value per cell, or if a value does not have the type of this
    /// experiment's values.
    pub fn outcome(&self, values: Vec<Value>) -> Result<Outcome, OutcomeError> {
        if values.len() != self.names.len() {
            return Err(OutcomeError(format!("{} values for {} cells", values.len(), self.names.len())));
        }
        let mut outcome = (self.outcome)(values).map_err(|error| OutcomeError(error.to_string()))?;
        if !self.changes.is_empty() {
            outcome.leave_out_claims(&self.changes.to_string());
        }
        Ok(outcome)
    }
}

/// Returns a fixed permutation of `0..count`. Expensive cells often have equal distances, and without shuffling they
/// could all fall to the same shard.
fn shuffled(count: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    let mut prng = Prng::new(0);
    for last in (1..count).rev() {
        places.swap(last, prng.below(last as u64 + 1) as usize);
    }
    places
}

impl Debug for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Plan").field("cells", &self.names.len()).finish_non_exhaustive()
    }
}

/// The error for values that do not fit the experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomeError(String);

impl fmt::Display for OutcomeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl core::error::Error for OutcomeError {}

#[cfg(test)]
mod tests;
