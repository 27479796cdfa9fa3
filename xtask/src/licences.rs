//! `cargo xtask licences`: every dependency's licence is one that both of ours are compatible with.
//!
//! It asks cargo for the packages of all platforms and may therefore use the network; for that
//! reason it is a step of the checks and not a test.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Licences that put no condition on the work as a whole.
const ACCEPTED: [&str; 13] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// A package whose licence is not accepted.
pub(crate) struct Refused {
    package: String,
    licence: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { package, licence } = self;
        write!(
            formatter,
            "{package}: {licence}\n    use another crate, or argue for the licence in xtask/src/licences.rs"
        )
    }
}

/// The packages with a licence that is not accepted, or from elsewhere than the public registry.
pub(crate) fn check(root: &Path) -> io::Result<Vec<Refused>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked"])
        .current_dir(root)
        .output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    Ok(packages.iter().filter_map(refuse).collect())
}

fn refuse(package: &Value) -> Option<Refused> {
    let licence = package["license"].as_str().unwrap_or("no licence stated");
    let source = package["source"].as_str().unwrap_or_default();
    let is_from_git = source.starts_with("git+");
    if is_accepted(licence) && !is_from_git {
        return None;
    }
    let name = package["name"].as_str().unwrap_or_default();
    let version = package["version"].as_str().unwrap_or_default();
    let licence = if is_from_git { format!("{licence}, from {source}") } else { licence.to_owned() };
    Some(Refused { package: format!("{name} {version}"), licence })
}

/// Whether an SPDX expression can be met: one part of an OR, all parts of an AND, which binds tighter.
fn is_accepted(expression: &str) -> bool {
    // The old form with a slash means OR.
    let expression = expression.trim().replace('/', " OR ");
    let (alternatives, parts) = (split(&expression, " OR "), split(&expression, " AND "));
    if alternatives.len() > 1 {
        return alternatives.into_iter().any(is_accepted);
    }
    if parts.len() > 1 {
        return parts.into_iter().all(is_accepted);
    }
    match expression.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        Some(inner) => is_accepted(inner),
        None => ACCEPTED.contains(&expression.as_str()),
    }
}

/// Splits at `operator` outside brackets.
fn split<'a>(expression: &'a str, operator: &str) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let (mut start, mut depth) = (0, 0_i32);
    for (offset, character) in expression.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            ' ' if depth == 0 && expression[offset..].starts_with(operator) => {
                parts.push(&expression[start..offset]);
                start = offset + operator.len();
            }
            _ => {}
        }
    }
    parts.push(&expression[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_part_of_an_or_and_all_parts_of_an_and_must_be_accepted() {
        for accepted in [
            "MIT",
            "MIT OR GPL-3.0",
            "Apache-2.0/MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 AND ISC",
        ] {
            assert!(is_accepted(accepted), "{accepted}");
        }
        for refused in
            ["GPL-3.0-only", "MIT AND GPL-3.0-only", "(GPL-2.0 OR LGPL-2.1) AND MIT", "", "no licence stated"]
        {
            assert!(!is_accepted(refused), "{refused}");
        }
    }

    #[test]
    fn a_package_from_a_repository_is_refused() {
        let package = |source: &str| serde_json::json!({ "name": "a", "version": "1.0.0", "license": "MIT", "source": source });
        assert!(refuse(&package("registry+https://example.org")).is_none());
        assert!(refuse(&package("git+https://example.org/a")).is_some());
    }
}
