//! `unsafe` only where instructions are chosen and where another language calls.

use super::Violation;
use crate::source::functions::words;
use crate::source::tree::{TextFile, Tree};

const RULE: &str = "unsafe";

/// The only places with `unsafe`: the kernels, and the crates on the border to other languages.
const PLACES: [&str; 6] = [
    "crates/ctcp-coding/src/gf256/engine",
    "crates/ctcp-cli/src/allocator.rs",
    "crates/ctcp-capi/",
    "crates/ctcp-coding-capi/",
    "crates/ctcp-python/",
    "benchmarks/codec-peers/src/contestants/isal.rs",
];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (file, rust) in tree.rust() {
        if PLACES.iter().any(|place| file.path.starts_with(place)) {
            continue;
        }
        for (number, code) in rust.all_code() {
            if words(code, "unsafe").next().is_some() {
                violations.push(violation(file, Some(number), "`unsafe` outside the kernels"));
            }
        }
        let is_forbidden = rust.code.iter().any(|code| code.contains(demanded(&file.path)));
        if is_root(&file.path) && !is_forbidden {
            let what = format!("a crate root without `{}`", demanded(&file.path));
            violations.push(violation(file, None, &what));
        }
    }
    violations
}

fn violation(file: &TextFile, line: Option<usize>, what: &str) -> Violation {
    let mend = "write it without, or move it to crates/ctcp-coding/src/gf256/engine/";
    Violation { path: file.path.clone(), line, rule: RULE, what: what.into(), mend }
}

/// The root of a library or of a program.
fn is_root(path: &str) -> bool {
    ["/src/lib.rs", "/src/main.rs"].iter().any(|end| path.ends_with(end)) || path.contains("/src/bin/")
}

/// The coding crate cannot forbid what its kernels need, so it denies, and the kernels allow it; so do its border to C, the command's call of the C library's allocator, and
/// comparisons with libraries of other languages.
fn demanded(path: &str) -> &'static str {
    if ["benchmarks/", "crates/ctcp-cli/", "crates/ctcp-coding/", "crates/ctcp-coding-capi/"]
        .iter()
        .any(|place| path.starts_with(place))
    {
        "#![deny(unsafe_code)]"
    } else {
        "#![forbid(unsafe_code)]"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, source: &str) -> Vec<Option<usize>> {
        check(&Tree::of(&[(path, source)])).into_iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn only_the_kernels_are_unsafe() {
        assert_eq!(found("crates/ctcp/src/a.rs", "fn a() {\n    unsafe { b() }\n}"), [Some(2)]);
        assert!(found("crates/ctcp-coding/src/gf256/engine/avx2.rs", "unsafe { b() }").is_empty());
        assert!(found("crates/ctcp/src/a.rs", "// unsafe\nlet a = \"unsafe\";").is_empty());
    }

    #[test]
    fn every_root_forbids_it_and_the_coding_crate_denies_it() {
        assert_eq!(found("crates/ctcp/src/lib.rs", "mod a;"), [None]);
        assert!(found("crates/ctcp/src/lib.rs", "#![forbid(unsafe_code)]").is_empty());
        assert_eq!(found("crates/ctcp-coding/src/lib.rs", "mod a;"), [None]);
        assert!(found("crates/ctcp-coding/src/lib.rs", "#![deny(unsafe_code)]").is_empty());
    }
}
