//! The files that visitors expect, and the required lines of every crate's manifest.

use super::Violation;
use crate::source::tree::Tree;

const RULE: &str = "project";

/// Files at the root.
const EXPECTED: [&str; 9] = [
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "PROTOCOL.md",
    "README.md",
    "SECURITY.md",
];

/// Required lines of every crate's manifest.
const IN_MANIFESTS: [&str; 4] = [
    "description = ",
    "license.workspace = true",
    "rust-version.workspace = true",
    "[lints]\nworkspace = true",
];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let violation =
        |path: &str, what: String, fix| Violation { path: path.into(), line: None, rule: RULE, what, fix };
    let mut violations = Vec::new();
    for path in EXPECTED.iter().filter(|path| !tree.has(path)) {
        violations.push(violation(path, "the file is missing".into(), "write it"));
    }
    if tree.file("CHANGELOG.md").is_some_and(|file| !file.text.contains("\n## [Unreleased]\n")) {
        let fix = "add `## [Unreleased]` on top, where every change is noted that a user can notice";
        violations.push(violation("CHANGELOG.md", "no section for unreleased changes".into(), fix));
    }
    for file in tree.files.iter().filter(|file| is_manifest(&file.path)) {
        for line in IN_MANIFESTS.iter().filter(|line| !file.text.contains(**line)) {
            let what = format!("the manifest does not say `{}`", line.replace('\n', " "));
            violations.push(violation(&file.path, what, "add it: the workspace decides for all crates"));
        }
    }
    violations
}

/// Returns true for the manifest of a crate of the workspace; fuzz targets and benchmarks are separate workspaces.
fn is_manifest(path: &str) -> bool {
    path.ends_with("/Cargo.toml") && !["fuzz/", "benchmarks/"].iter().any(|place| path.starts_with(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_files_and_sections_are_named() {
        let present = EXPECTED.iter().filter(|path| !path.starts_with("LICENSE"));
        let files: Vec<(&str, &str)> = present.map(|path| (*path, "# A title\n")).collect();
        let tree = Tree::of(&files);
        let paths: Vec<String> = check(&tree).into_iter().map(|violation| violation.path).collect();
        assert_eq!(paths, ["LICENSE-APACHE", "LICENSE-MIT", "CHANGELOG.md"]);
    }

    #[test]
    fn a_manifest_follows_the_workspace() {
        let tree = Tree::of(&[("crates/a/Cargo.toml", "[lints]\nworkspace = true\n")]);
        let manifests = check(&tree).into_iter().filter(|violation| violation.path.ends_with(".toml"));
        assert_eq!(manifests.count(), 3);
    }
}
