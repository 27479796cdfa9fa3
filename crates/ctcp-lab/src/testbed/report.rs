//! `ctcp-lab testbed report FOLDER...`: all results in some folders as one page for a browser.

use std::fs;
use std::path::Path;

use ctcp_repro::page::{Figure, page};
use serde_json::Value;

use crate::folder::Folder;
use ctcp_cli::error::CliError;

const FILE: &str = "report.html";

#[expect(clippy::print_stdout, reason = "where the page is is the result")]
pub(super) fn run(folders: &[String], out: &Path) -> Result<(), CliError> {
    if folders.is_empty() {
        let usage = "`report` takes folders with results: `ctcp-lab testbed report testbed --out report`";
        return Err(CliError::usage(usage));
    }
    let (mut figures, mut comparison) = (Vec::new(), None);
    for folder in folders {
        for path in results_in(folder)? {
            let json: Value =
                serde_json::from_str(&read(&path)?).map_err(|error| cannot_read(&path, &error))?;
            if path.file_stem().is_some_and(|stem| stem == "compare") {
                comparison = Some(json);
            } else if json["points"].is_array() {
                figures.push(Figure { json, svg: read(&path.with_extension("svg"))? });
            }
        }
    }
    if figures.is_empty() && comparison.is_none() {
        return Err(CliError::failure(format!("there are no results in {}", folders.join(", "))));
    }
    let file = Folder::open(out)?.write(FILE, &page(&figures, comparison.as_ref()))?;
    println!("{}: open it in a browser", file.display());
    Ok(())
}

/// JSON files in the order of their names.
fn results_in(folder: &str) -> Result<Vec<std::path::PathBuf>, CliError> {
    let path = Path::new(folder);
    let entries = fs::read_dir(path).map_err(|error| cannot_read(path, &error))?;
    let mut files = Vec::new();
    for entry in entries {
        let file = entry.map_err(|error| cannot_read(path, &error))?.path();
        if file.extension().is_some_and(|extension| extension == "json") {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Result<String, CliError> {
    fs::read_to_string(path).map_err(|error| cannot_read(path, &error))
}

fn cannot_read(path: &Path, error: &dyn std::fmt::Display) -> CliError {
    CliError::failure(format!("cannot read {}: {error}", path.display()))
}
