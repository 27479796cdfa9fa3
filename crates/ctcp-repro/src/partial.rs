//! The results of a shard as a file, and the merging of a run from all its shards.

use core::fmt;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::changes::Changes;
use crate::experiment::{Experiment, Settings};
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::shard::Shard;

/// Identifies the format of the file.
const FORMAT: &str = "shard of ctcp repro, 1";

/// The maximum number of missing shards to list.
const NAMED_MAX: usize = 12;

/// The values of some cells of an experiment, with the settings of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Partial {
    format: String,
    /// The version of the program that measured.
    program: String,
    /// The experiment.
    pub id: String,
    /// The part of the experiment.
    pub shard: Shard,
    quick: bool,
    seeds: Option<u32>,
    #[serde(default)]
    changes: Changes,
    /// Duration in seconds.
    pub wall_s: f64,
    found: Vec<Found>,
}

/// A cell's name and its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Found {
    cell: String,
    value: Value,
}

impl Partial {
    /// Creates a partial result from the values that [`Plan::measure`] returned for the shard in `wall_s` seconds.
    #[must_use]
    pub fn new(
        experiment: &Experiment,
        settings: &Settings,
        shard: Shard,
        values: Vec<Value>,
        wall_s: f64,
    ) -> Self {
        let plan = experiment.plan(settings);
        let cells = plan.cells_of(shard).map(|cell| plan.cells()[cell].clone());
        Self {
            format: FORMAT.to_owned(),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            id: experiment.id.to_owned(),
            shard,
            quick: settings.quick,
            seeds: settings.seeds,
            changes: settings.changes,
            wall_s,
            found: cells.zip(values).map(|(cell, value)| Found { cell, value }).collect(),
        }
    }

    /// Returns the settings of the run.
    #[must_use]
    pub fn settings(&self) -> Settings {
        Settings { quick: self.quick, seeds: self.seeds, changes: self.changes }
    }

    /// Returns the name of its file.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}.shard-{}-of-{}.json", self.id, self.shard.index(), self.shard.count())
    }

    /// Returns whether a file may hold a shard, judging by its name.
    #[must_use]
    pub fn is_file_name(name: &str) -> bool {
        name.ends_with(".json") && name.contains(".shard-") && !name.starts_with('.')
    }

    /// Returns the text of its file.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers and strings")
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// Returns an error if the text is not a complete shard file.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let partial: Self =
            serde_json::from_str(text).map_err(|error| format!("not a shard file: {error}"))?;
        if partial.format != FORMAT {
            return Err(format!("not a shard file: its format is `{}`, not `{FORMAT}`", partial.format));
        }
        if partial.seeds.is_some_and(|seeds| !(1..=Settings::SEEDS_MAX).contains(&seeds)) {
            return Err(format!("not a shard file: its seeds are not from 1 to {}", Settings::SEEDS_MAX));
        }
        Ok(partial)
    }

    /// Returns everything that must be equal for the shards of a run.
    fn run(&self) -> impl PartialEq {
        (self.id.clone(), self.program.clone(), self.settings(), self.shard.count())
    }

    fn describe_run(&self) -> String {
        let quick = if self.quick { ", quick" } else { "" };
        let seeds = self.seeds.map_or_else(String::new, |seeds| format!(", {seeds} seeds"));
        let changes = if self.changes.is_empty() { String::new() } else { format!(", {}", self.changes) };
        format!(
            "{} in {} shards{quick}{seeds}{changes}, version {}",
            self.id,
            self.shard.count(),
            self.program
        )
    }
}

/// A merged run.
#[derive(Clone, Debug)]
pub struct Merged {
    /// The experiment.
    pub experiment: &'static Experiment,
    /// The settings of all shards.
    pub settings: Settings,
    /// The total seconds of all shards.
    pub wall_s: f64,
    /// The result, which equals that of an undivided run.
    pub outcome: Outcome,
}

/// The reason why shards cannot be merged. Files have the names given by the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeError {
    /// There is no shard.
    Nothing,
    /// This program does not have the experiment.
    Unknown(String),
    /// Two files belong to different runs.
    Foreign {
        /// A file, and a description of its run.
        one: (String, String),
        /// Another file, and a description of its run.
        other: (String, String),
    },
    /// Two files contain the same shard.
    Twice(String, String),
    /// A file contains cells or values that the experiment does not have.
    Unfit {
        /// The file.
        file: String,
        /// The problem.
        why: String,
    },
    /// Some shards are missing.
    Missing {
        /// The run.
        run: String,
        /// Some of the missing shards.
        shards: Vec<Shard>,
        /// The number of missing shards.
        count: usize,
    },
}

/// Merges a run of one experiment. Each shard comes with the name of its file, for messages.
///
/// # Errors
/// Returns an error if shards are missing, duplicated, from different runs, or do not fit this program.
pub fn merge(partials: Vec<(String, Partial)>) -> Result<Merged, MergeError> {
    let Some((first_file, first)) = partials.first().cloned() else { return Err(MergeError::Nothing) };
    let experiment = Experiment::named(&first.id).ok_or_else(|| MergeError::Unknown(first.id.clone()))?;
    let plan = experiment.plan(&first.settings());
    let mut shards = BTreeMap::new();
    let (mut wall_s, mut values) = (0.0, vec![Value::Null; plan.cells().len()]);
    for (file, partial) in partials {
        if partial.run() != first.run() {
            let one = (first_file, first.describe_run());
            return Err(MergeError::Foreign { one, other: (file, partial.describe_run()) });
        }
        if let Some(other) = shards.insert(partial.shard.index(), file.clone()) {
            return Err(MergeError::Twice(other, file));
        }
        wall_s += partial.wall_s;
        place(&plan, partial, &mut values).map_err(|why| MergeError::Unfit { file, why })?;
    }
    let count = first.shard.count();
    let missing = || (1..=count).filter(|index| !shards.contains_key(index));
    if missing().next().is_some() {
        let named = missing().take(NAMED_MAX).filter_map(|index| Shard::new(index, count)).collect();
        return Err(MergeError::Missing {
            run: first.describe_run(),
            shards: named,
            count: missing().count(),
        });
    }
    let outcome = plan
        .outcome(values)
        .map_err(|error| MergeError::Unfit { file: first_file, why: format!("or another file: {error}") })?;
    Ok(Merged { experiment, settings: first.settings(), wall_s, outcome })
}

/// Puts the values of a shard into their places.
fn place(plan: &Plan, partial: Partial, values: &mut [Value]) -> Result<(), String> {
    let cells: Vec<usize> = plan.cells_of(partial.shard).collect();
    if cells.len() != partial.found.len() {
        return Err(format!("it has {} cells where this program has {}", partial.found.len(), cells.len()));
    }
    for (cell, found) in cells.into_iter().zip(partial.found) {
        if plan.cells()[cell] != found.cell {
            return Err(format!(
                "it has the cell {} where this program has {}",
                found.cell,
                plan.cells()[cell]
            ));
        }
        values[cell] = found.value;
    }
    Ok(())
}

impl fmt::Display for MergeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => write!(formatter, "there is no shard to merge"),
            Self::Unknown(id) => write!(formatter, "this program has no experiment `{id}`"),
            Self::Foreign { one, other } => write!(
                formatter,
                "{} belongs to another run ({}) than {} ({}): merge one run at a time",
                other.0, other.1, one.0, one.1
            ),
            Self::Twice(one, other) => write!(formatter, "{one} and {other} contain the same shard"),
            Self::Unfit { file, why } => {
                write!(formatter, "{file} does not fit: {why}; measure it with this program")
            }
            Self::Missing { run, shards, count } => {
                let named: Vec<String> = shards.iter().map(Shard::to_string).collect();
                let more = if *count > shards.len() { ", ..." } else { "" };
                write!(formatter, "{run}: {count} missing ({}{more})", named.join(", "))
            }
        }
    }
}

impl core::error::Error for MergeError {}

#[cfg(test)]
mod tests;
