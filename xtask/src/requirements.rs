//! `cargo xtask requirements`: lists the code and the tests that meet the papers' requirements.
//!
//! A requirement is cited where it is met, in a comment: `Requirement: C4`, or several with commas. The ids are defined
//! in docs/papers/requirements.md.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::source::tree::Tree;
use crate::tidy::Violation;

const RULE: &str = "requirements";

/// The page that explains the ids.
const PAGE: &str = "docs/papers/requirements.md";

const CITATION: &str = "Requirement: ";

/// The letter of each paper's ids, their number, and the paper.
const PAPERS: [(char, u32, &str); 4] = [
    ('C', 13, "Network Coded TCP (CTCP), 2013"),
    ('N', 6, "Network Coding Meets TCP, 2009"),
    ('K', 4, "End-of-transmission and pseudo-block coding, 2013"),
    ('U', 10, "CTCP thesis, 2012"),
];

/// A requirement's id: the letter of the paper and the number.
type Id = (char, u32);

/// One citation.
struct Citation {
    text: String,
    id: Option<Id>,
    path: String,
    line: usize,
    item: Option<String>,
    is_test: bool,
}

/// The ids with the places that cite them, as a table for people.
pub(crate) fn table(tree: &Tree) -> String {
    let mut by_id: BTreeMap<Id, Vec<Citation>> = BTreeMap::new();
    for citation in citations(tree) {
        if let Some(id) = citation.id {
            by_id.entry(id).or_default().push(citation);
        }
    }
    let mut table = String::new();
    for (letter, count, paper) in PAPERS {
        let _ = writeln!(table, "{paper}");
        for id in (1..=count).map(|number| (letter, number)) {
            let citations = by_id.remove(&id).unwrap_or_default();
            let _ = writeln!(
                table,
                "  {letter}{:<3} {}",
                id.1,
                if citations.is_empty() { "not cited" } else { "" }
            );
            for citation in citations {
                let Citation { path, line, item, is_test, .. } = citation;
                let kind = if is_test { "test" } else { "code" };
                let item = item.unwrap_or_default();
                let _ = writeln!(table, "       {kind}  {path}:{line}  {item}");
            }
        }
    }
    table
}

/// Finds citations of unknown ids, and missing files that the page of requirements names.
pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    let unknown =
        citations(tree).into_iter().filter(|citation| citation.id.is_none()).map(|citation| Violation {
            path: citation.path,
            line: Some(citation.line),
            rule: RULE,
            what: format!("`{}` is not a requirement", citation.text),
            fix: "write the ids of docs/papers/requirements.md: `Requirement: C4, C5`",
        });
    unknown.chain(missing_files(tree)).collect()
}

fn citations(tree: &Tree) -> Vec<Citation> {
    let mut citations = Vec::new();
    for (file, rust) in tree.rust() {
        for (line, comment) in rust.all_comments() {
            let Some((before, cited)) = comment.split_once(CITATION) else { continue };
            if before.ends_with('`') {
                continue; // A sentence about the form of citations.
            }
            for text in cited.trim_end_matches('.').split(',').map(str::trim) {
                citations.push(Citation {
                    text: text.into(),
                    id: parse(text),
                    path: file.path.clone(),
                    line,
                    item: rust.item_at(line),
                    is_test: rust.is_test(line),
                });
            }
        }
    }
    citations
}

fn parse(text: &str) -> Option<Id> {
    let mut rest = text.chars();
    let letter = rest.next()?;
    let number: u32 = rest.as_str().parse().ok()?;
    let (_, count, _) = PAPERS.iter().find(|(known, ..)| *known == letter)?;
    (1..=*count).contains(&number).then_some((letter, number))
}

/// Files named in backquotes on the page of requirements that do not exist.
fn missing_files(tree: &Tree) -> Vec<Violation> {
    let Some(page) = tree.file(PAGE) else { return Vec::new() };
    let mut violations = Vec::new();
    for (number, line) in page.lines() {
        for named in line.split('`').skip(1).step_by(2).filter(|named| is_path(named)) {
            let path = named.split([':', '#']).next().unwrap_or(named);
            if !tree.has(path) {
                violations.push(Violation {
                    path: PAGE.into(),
                    line: Some(number),
                    rule: RULE,
                    what: format!("`{named}` does not exist"),
                    fix: "name a file of the repository, with its path from the root",
                });
            }
        }
    }
    violations
}

/// Returns true if a text in backquotes names a file: it has a folder and a known extension.
fn is_path(text: &str) -> bool {
    let path = text.split([':', '#']).next().unwrap_or(text);
    let is_file = [".rs", ".md", ".sh", ".toml"].iter().any(|ending| path.ends_with(ending));
    path.contains('/') && is_file && !path.contains(' ') && !path.contains("://")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "/// Requirement: C4, C5.\nfn a() {}\n#[cfg(test)]\nmod tests {\n    // Requirement: C4\n    fn b() {}\n}\n";

    #[test]
    fn the_table_separates_code_from_tests() {
        let table = table(&Tree::of(&[("crates/a/src/b.rs", SOURCE)]));
        assert!(
            table.contains(
                "  C4   \n       code  crates/a/src/b.rs:1  fn a\n       test  crates/a/src/b.rs:5  fn b\n"
            ),
            "{table}"
        );
        assert!(table.contains("  C5   \n       code  crates/a/src/b.rs:1  fn a\n"));
        assert!(table.contains("  C6   not cited\n"));
    }

    #[test]
    fn ids_that_do_not_exist_are_refused() {
        for text in ["C14", "C0", "X1", "C4 and C5", ""] {
            let source = format!("// Requirement: {text}\n");
            assert_eq!(check(&Tree::of(&[("a.rs", &source)])).len(), usize::from(!text.is_empty()), "{text}");
        }
    }

    #[test]
    fn the_page_names_only_files_that_exist() {
        let page = "# R\n| C4 | `crates/a/src/b.rs:12` `crates/a/src/gone.rs` `cargo xtask` |\n";
        let violations = check(&Tree::of(&[(PAGE, page), ("crates/a/src/b.rs", "")]));
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].what, "`crates/a/src/gone.rs` does not exist");
    }
}
