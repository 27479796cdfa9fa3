//! `ctcp-lab repro merge`: finds the shards in folders and merges each experiment.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ctcp_repro::{Merged, Partial, merge};

use super::{judge, show};
use crate::folder::Folder;
use ctcp_cli::error::CliError;

/// A file's name for messages, and its content.
type Named = (String, Partial);

pub(super) fn run(folders: &[PathBuf], out: &Path) -> Result<(), CliError> {
    let mut experiments: BTreeMap<String, Vec<Named>> = BTreeMap::new();
    for folder in folders {
        for (file, partial) in read(folder)? {
            experiments.entry(partial.id.clone()).or_default().push((file, partial));
        }
    }
    if experiments.is_empty() {
        let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        return Err(CliError::failure(format!(
            "no shard in {}: `ctcp-lab repro ID --shard I/N --out DIR` writes them",
            folders.join(", ")
        )));
    }
    // All experiments are merged before any file is written.
    let merged = experiments.into_values().map(merge).collect::<Result<Vec<Merged>, _>>();
    let merged = merged.map_err(|error| CliError::failure(error.to_string()))?;
    let folder = Folder::open(out)?;
    let mut failed = 0;
    for Merged { experiment, settings, wall_s, outcome } in merged {
        failed += show(experiment, &outcome, &settings, wall_s, &folder)?;
    }
    folder.say(false);
    judge(failed)
}

/// The shards in a folder, ordered by name.
fn read(folder: &Path) -> Result<Vec<Named>, CliError> {
    let cannot_read = |path: &Path, error: &dyn std::fmt::Display| {
        CliError::failure(format!("cannot read {}: {error}", path.display()))
    };
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut files: Vec<PathBuf> =
        entries.map_err(|error| cannot_read(folder, &error))?.into_iter().map(|entry| entry.path()).collect();
    files.retain(|file| file.file_name().and_then(|name| name.to_str()).is_some_and(Partial::is_file_name));
    files.sort();
    let read = |file: PathBuf| {
        let text = fs::read_to_string(&file).map_err(|error| cannot_read(&file, &error))?;
        let partial = Partial::from_json(&text).map_err(|error| cannot_read(&file, &error))?;
        Ok((file.display().to_string(), partial))
    };
    files.into_iter().map(read).collect()
}
