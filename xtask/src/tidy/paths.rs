//! No file depends on the machine it was written on: no absolute paths, no host of a package registry.

use super::Violation;
use crate::source::mask::is_word;
use crate::source::tree::Tree;

const RULE: &str = "paths";

const RELATIVE: &str = "name the file relative to the repository, or let the user give it";
const REGISTRY: &str = "registries are settings of a machine, not of the repository";

/// Texts that no line may contain, and how to fix them. Split in two, so that this file does not contain them.
const FORBIDDEN: [(&str, &str, &str); 9] = [
    ("/wo", "rk/", RELATIVE),
    ("/ro", "ot/", RELATIVE),
    ("/ho", "me/", RELATIVE),
    ("/Us", "ers/", RELATIVE),
    ("/t", "mp/", RELATIVE),
    ("index.", "crates.io", REGISTRY),
    ("static.", "crates.io", REGISTRY),
    ("[sour", "ce.", REGISTRY),
    ("[regis", "tries", REGISTRY),
];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in &tree.files {
        // Cargo writes its own file, and the licences are not our text.
        if file.path.ends_with("Cargo.lock") || file.path.starts_with("LICENSE") {
            continue;
        }
        for (number, line) in file.lines() {
            if file.rust.as_ref().is_some_and(|rust| rust.is_test(number)) {
                continue;
            }
            for (start, end, fix) in FORBIDDEN {
                let pattern = format!("{start}{end}");
                if begins_with_word_boundary(line, &pattern) {
                    let what = format!("`{pattern}`");
                    let path = file.path.clone();
                    violations.push(Violation { path, line: Some(number), rule: RULE, what, fix });
                }
            }
        }
    }
    violations
}

/// Returns true if `pattern` is in `line` and not just the continuation of a longer path or name.
fn begins_with_word_boundary(line: &str, pattern: &str) -> bool {
    line.match_indices(pattern).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        !before.is_some_and(|before| is_word(before) || "./-}>)".contains(before))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, line: &str) -> usize {
        check(&Tree::of(&[(path, line)])).len()
    }

    #[test]
    fn absolute_paths_are_found_and_relative_ones_are_not() {
        assert_eq!(found("README.md", "look into /tmp/x"), 1);
        assert_eq!(found("a.sh", "cp a \"/home/me/b\""), 1);
        assert_eq!(found("README.md", "target/tmp/x and https://a.example/home/"), 0);
        assert_eq!(found("crates/a/tests/b.rs", "\"/tmp/x\""), 0);
    }

    #[test]
    fn registries_are_found_except_in_cargos_own_file() {
        assert_eq!(found(".cargo/config.toml", "[source.crates-io]"), 1);
        assert_eq!(found("Cargo.lock", "https://index.crates.io/"), 0);
    }
}
