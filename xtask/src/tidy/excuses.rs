//! Excuses: a comment `tidy: allow(RULE) reason` exempts one place from one rule.
//!
//! It covers its own line and the next line of code; attributes and comments in between do not count. A violation of a
//! whole file is covered by an excuse anywhere in it. An excuse without a reason, or one that excuses nothing, is a
//! violation itself, so that none outlives its cause.

use super::Violation;
use crate::source::tree::{TextFile, Tree};

const RULE: &str = "excuses";

struct Excuse {
    path: String,
    rule: String,
    line: usize,
    /// The next line of code.
    covers: usize,
    has_reason: bool,
    is_used: bool,
}

/// Returns the violations that are not excused, and those of the excuses themselves.
pub(super) fn apply(tree: &Tree, violations: Vec<Violation>) -> Vec<Violation> {
    let mut excuses: Vec<Excuse> = tree.files.iter().flat_map(find).collect();
    let mut rest: Vec<Violation> = Vec::new();
    for violation in violations {
        match excuses.iter_mut().find(|excuse| excuse.covers(&violation)) {
            Some(excuse) => excuse.is_used = true,
            None => rest.push(violation),
        }
    }
    rest.extend(excuses.iter().filter_map(Excuse::violation));
    rest
}

impl Excuse {
    fn covers(&self, violation: &Violation) -> bool {
        self.path == violation.path
            && self.rule == violation.rule
            && violation.line.is_none_or(|line| line == self.line || line == self.covers)
    }

    fn violation(&self) -> Option<Violation> {
        let (what, fix) = match (self.has_reason, self.is_used) {
            (_, false) => ("an excuse that excuses nothing", "remove it"),
            (false, true) => ("an excuse without a reason", "write the reason after the bracket"),
            (true, true) => return None,
        };
        Some(Violation {
            path: self.path.clone(),
            line: Some(self.line),
            rule: RULE,
            what: format!("{what}: {}", self.rule),
            fix,
        })
    }
}

/// The excuses of a file; in Rust only those in comments.
fn find(file: &TextFile) -> Vec<Excuse> {
    let lines: Vec<&str> = match &file.rust {
        Some(rust) => rust.comments.iter().map(String::as_str).collect(),
        None => file.text.lines().collect(),
    };
    lines.iter().enumerate().filter_map(|(index, line)| parse(file, index + 1, line)).collect()
}

fn parse(file: &TextFile, line: usize, text: &str) -> Option<Excuse> {
    let (_, rest) = text.split_once("tidy: allow(")?;
    let (rule, reason) = rest.split_once(')')?;
    // In capitals it is a placeholder, in a text about excuses.
    if !rule.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') {
        return None;
    }
    let is_code = |code: &str| !(code.trim().is_empty() || code.trim_start().starts_with("#["));
    let covers = match &file.rust {
        Some(rust) => rust.all_code().find(|(number, code)| *number > line && is_code(code)),
        None => file.lines().find(|(number, _)| *number > line),
    };
    Some(Excuse {
        path: file.path.clone(),
        rule: rule.into(),
        line,
        covers: covers.map_or(line, |(number, _)| number),
        has_reason: reason.chars().any(char::is_alphabetic),
        is_used: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violation(line: Option<usize>) -> Violation {
        Violation { path: "a.rs".into(), line, rule: "size", what: String::new(), fix: "" }
    }

    fn left(source: &str, line: Option<usize>) -> Vec<&'static str> {
        let tree = Tree::of(&[("a.rs", source)]);
        apply(&tree, vec![violation(line)]).into_iter().map(|violation| violation.rule).collect()
    }

    #[test]
    fn an_excuse_covers_its_own_line_and_the_next_line_of_code() {
        assert!(left("a(); // tidy: allow(size) a table\n", Some(1)).is_empty());
        assert!(left("// tidy: allow(size) a table\n// more\n#[inline]\nfn a() {}\n", Some(4)).is_empty());
        assert!(left("fn b() {}\n// tidy: allow(size) a table\n", None).is_empty());
    }

    #[test]
    fn an_excuse_covers_nothing_else_and_must_be_used() {
        assert_eq!(left("// tidy: allow(size) a table\nfn a() {}\nfn b() {}\n", Some(3)), ["size", RULE]);
        assert_eq!(left("// tidy: allow(purity) a table\nfn a() {}\n", Some(2)), ["size", RULE]);
        assert_eq!(left("a(\"tidy: allow(size) a string\");\n", Some(1)), ["size"]);
        assert_eq!(left("// tidy: allow(RULE) any\nfn a() {}\n", Some(2)), ["size"]);
    }

    #[test]
    fn an_excuse_needs_a_reason() {
        assert_eq!(left("// tidy: allow(size)\nfn a() {}\n", Some(2)), [RULE]);
    }
}
