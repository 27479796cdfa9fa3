//! `cargo xtask tidy`: the rules of the repository that a program can check, also run as a test.
//!
//! Each rule is a function of the tree and independent of the others. If a rule makes the code worse, a comment with
//! the rule's name and the reason exempts one place: see [`excuses`].

mod dependencies;
mod documents;
mod excuses;
mod paths;
mod project;
mod purity;
mod size;

use std::fmt;

use crate::requirements;
use crate::source::tree::Tree;

/// One problem to fix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    pub(crate) path: String,
    /// The line, or `None` if the problem concerns the whole file.
    pub(crate) line: Option<usize>,
    /// The name of the rule, as excuses write it.
    pub(crate) rule: &'static str,
    pub(crate) what: String,
    pub(crate) fix: &'static str,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, rule, what, fix } = self;
        write!(formatter, "{path}:{}: {what} ({rule})\n    {fix}", line.unwrap_or(1))
    }
}

/// All problems, ordered by path and line.
pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    let rules = [
        dependencies::check,
        documents::check,
        paths::check,
        project::check,
        purity::check,
        requirements::check,
        size::check,
    ];
    let mut violations = excuses::apply(tree, rules.iter().flat_map(|rule| rule(tree)).collect());
    violations.sort();
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let tree = Tree::read(&crate::root()).expect("a readable repository");
        let violations: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
        assert!(violations.is_empty(), "{} to fix:\n{}", violations.len(), violations.join("\n"));
    }

    #[test]
    fn a_violation_shows_where_it_is_and_how_to_fix_it() {
        let violation = Violation {
            path: "a.rs".into(),
            line: Some(3),
            rule: "purity",
            what: "`std::fs`".into(),
            fix: "remove it",
        };
        assert_eq!(violation.to_string(), "a.rs:3: `std::fs` (purity)\n    remove it");
    }
}
