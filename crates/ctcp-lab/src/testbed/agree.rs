//! `ctcp-lab testbed agree SIMULATED MEASURED`: compares the results of `ctcp-lab repro` with those of `ctcp-lab testbed`.

use std::fs;
use std::path::Path;

use ctcp_repro::agreement::{COMPARED, Pair, pairs, table};
use serde_json::{Value, json};

use crate::folder::Folder;
use ctcp_cli::error::CliError;

#[expect(clippy::print_stdout, reason = "the table is the result")]
pub(super) fn run(folders: &[String], out: &Path, is_json: bool) -> Result<(), CliError> {
    let [simulated, measured] = folders else {
        let usage = "`agree` takes two folders: `ctcp-lab testbed agree SIMULATED MEASURED`, as `ctcp-lab repro` and `ctcp-lab testbed` wrote them";
        return Err(CliError::usage(usage));
    };
    let mut found: Vec<Pair> = Vec::new();
    for id in COMPARED {
        let both = (read(simulated, id)?, read(measured, id)?);
        if let (Some(simulated), Some(measured)) = both {
            found.extend(pairs(id, &simulated, &measured));
        }
    }
    if found.is_empty() {
        return Err(CliError::failure(format!(
            "{simulated} and {measured} have no point of {} in common",
            COMPARED.join(", ")
        )));
    }
    let folder = Folder::open(out)?;
    let (text, json) = (table(&found), json!({ "points": found }));
    folder.write("agreement.md", &format!("# Simulator and testbed\n\n{text}"))?;
    folder.write("agreement.json", &format!("{json:#}"))?;
    if is_json {
        println!("{json}");
    } else {
        print!("{text}");
    }
    folder.say(is_json);
    Ok(())
}

/// A figure's JSON, if it exists.
fn read(folder: &str, id: &str) -> Result<Option<Value>, CliError> {
    let path = Path::new(folder).join(format!("{id}.json"));
    let cannot_read =
        |error: &dyn std::fmt::Display| CliError::failure(format!("cannot read {}: {error}", path.display()));
    match fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str(&text).map(Some).map_err(|error| cannot_read(&error)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(cannot_read(&error)),
    }
}
