//! Crates depend only on crates drawn above them in ARCHITECTURE.md, and the core on nothing that does I/O.
//!
//! Dev-dependencies are not checked: a test may use any crate.

use toml::{Table, Value};

use super::Violation;
use crate::source::tree::{TextFile, Tree};

const RULE: &str = "dependencies";

/// Crates without clock, entropy, threads, files and sockets.
pub(super) const CORE: [&str; 6] =
    ["ctcp-base", "ctcp-baselines", "ctcp-coding", "ctcp-netem", "ctcp-proto", "ctcp-sim"];

/// Each crate of the workspace with the crates it may depend on.
const BELOW: [(&str, &[&str]); 13] = [
    ("ctcp-base", &[]),
    ("ctcp-coding", &[]),
    ("ctcp-coding-capi", &["ctcp-coding"]),
    ("ctcp-netem", &["ctcp-base"]),
    ("ctcp-proto", &["ctcp-base", "ctcp-coding"]),
    ("ctcp-baselines", &["ctcp-base", "ctcp-coding", "ctcp-proto"]),
    ("ctcp-sim", &["ctcp-base", "ctcp-baselines", "ctcp-coding", "ctcp-netem", "ctcp-proto"]),
    ("ctcp-repro", &["ctcp-base", "ctcp-baselines", "ctcp-coding", "ctcp-netem", "ctcp-proto", "ctcp-sim"]),
    ("ctcp", &["ctcp-base", "ctcp-proto"]),
    ("ctcp-proxy", &["ctcp", "ctcp-base"]),
    ("ctcp-testbed", &["ctcp-base", "ctcp-netem", "ctcp-repro"]),
    ("ctcp-cli", &["ctcp", "ctcp-base", "ctcp-coding", "ctcp-netem", "ctcp-proxy"]),
    ("xtask", &["ctcp-base", "ctcp-baselines", "ctcp-netem", "ctcp-proto", "ctcp-repro", "ctcp-sim"]),
];

/// The crate that may use all others except xtask.
const TOP: &str = "ctcp-lab";

/// Crates that provide sockets, clocks, threads or entropy of the system.
const NOT_IN_CORE: [&str; 14] = [
    "async-std",
    "chrono",
    "crossbeam",
    "fastrand",
    "getrandom",
    "mio",
    "quinn-udp",
    "rand",
    "rayon",
    "smol",
    "socket2",
    "tempfile",
    "time",
    "tokio",
];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    tree.files
        .iter()
        .filter(|file| file.path.ends_with("/Cargo.toml"))
        .filter(|file| !["benchmarks/", "fuzz/"].iter().any(|place| file.path.starts_with(place)))
        .flat_map(check_manifest)
        .collect()
}

fn check_manifest(file: &TextFile) -> Vec<Violation> {
    let violation =
        |line, what: String, fix| Violation { path: file.path.clone(), line, rule: RULE, what, fix };
    let manifest: Table = match file.text.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![violation(None, format!("{error}"), "write it as TOML")],
    };
    let package = manifest.get("package").and_then(|package| package.get("name")).and_then(Value::as_str);
    let Some(name) = package else { return Vec::new() };
    let mut violations = Vec::new();
    let below = BELOW.iter().find(|(known, _)| *known == name).map(|(_, below)| *below);
    if below.is_none() && name != TOP {
        let what = format!("the crate {name} has no place in the order of crates");
        violations.push(violation(
            None,
            what,
            "add it to xtask/src/tidy/dependencies.rs and ARCHITECTURE.md",
        ));
    }
    for dependency in dependencies(&manifest) {
        let line = file.lines().find(|(_, line)| line.trim_start().starts_with(&dependency));
        let line = line.map(|(number, _)| number);
        let is_ours = dependency == "ctcp" || dependency == "xtask" || dependency.starts_with("ctcp-");
        if is_ours && below.is_some_and(|below| !below.contains(&dependency.as_str())) {
            let what = format!("{name} depends on {dependency}, which is not below it");
            violations.push(violation(
                line,
                what,
                "move the code down, or ask for a trait or a value instead",
            ));
        }
        if CORE.contains(&name) && NOT_IN_CORE.contains(&dependency.as_str()) {
            let what = format!("{name} depends on {dependency}");
            violations.push(violation(line, what, "the core does no I/O: make it an argument"));
        }
    }
    violations
}

/// The names of all dependencies of the library and its build script, for any target.
fn dependencies(manifest: &Table) -> Vec<String> {
    let targets = manifest.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values);
    let tables = targets.filter_map(Value::as_table).chain([manifest]);
    tables
        .flat_map(|table| ["dependencies", "build-dependencies"].map(|key| table.get(key)))
        .flatten()
        .filter_map(Value::as_table)
        .flat_map(Table::iter)
        .map(|(key, value)| value.get("package").and_then(Value::as_str).unwrap_or(key).to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, rest: &str) -> Vec<String> {
        let manifest = format!("[package]\nname = \"{name}\"\n{rest}\n");
        let tree = Tree::of(&[("crates/x/Cargo.toml", &manifest)]);
        check(&tree).into_iter().map(|violation| format!("{:?} {}", violation.line, violation.what)).collect()
    }

    #[test]
    fn a_crate_may_depend_only_on_the_listed_crates() {
        assert!(found("ctcp-proto", "[dependencies]\nctcp-base.workspace = true\nsnow = \"1\"").is_empty());
        assert_eq!(
            found("ctcp-base", "[dependencies]\nctcp-proto.workspace = true"),
            ["Some(4) ctcp-base depends on ctcp-proto, which is not below it"]
        );
        assert!(found("ctcp-cli", "[dependencies]\nctcp-proxy.workspace = true").is_empty());
        assert!(found("ctcp-netem", "[dev-dependencies]\nctcp-sim.workspace = true").is_empty());
    }

    #[test]
    fn renamed_and_target_specific_dependencies_are_found() {
        assert_eq!(
            found("ctcp-base", "[dependencies]\nx = { package = \"ctcp-sim\", path = \"a\" }").len(),
            1
        );
        assert_eq!(found("ctcp-base", "[target.'cfg(unix)'.dependencies]\nctcp-sim = \"1\"").len(), 1);
    }

    #[test]
    fn the_core_depends_on_nothing_that_does_io() {
        assert_eq!(
            found("ctcp-proto", "[dependencies]\ntokio = \"1\""),
            ["Some(4) ctcp-proto depends on tokio"]
        );
        assert!(found("ctcp", "[dependencies]\ntokio = \"1\"").is_empty());
    }

    #[test]
    fn a_new_crate_needs_a_place() {
        assert_eq!(found("ctcp-new", ""), ["None the crate ctcp-new has no place in the order of crates"]);
    }
}
