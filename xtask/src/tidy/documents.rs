//! Documents have one title, their links resolve, and everything under docs/ is linked.

use std::collections::BTreeSet;

use super::Violation;
use crate::source::tree::{TextFile, Tree};

const RULE: &str = "documents";

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut linked = BTreeSet::new();
    for file in tree.with_extension("md") {
        violations.extend(check_title(file));
        for (number, target) in links(file) {
            let path = resolve(&file.path, &target);
            if !tree.has(&path) {
                let what = format!("a link to {target}, which does not exist");
                violations.push(violation(&file.path, Some(number), what, "fix the link or remove it"));
            }
            linked.insert(path);
        }
    }
    for path in tree.paths.iter().filter(|path| path.starts_with("docs/")) {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        if !linked.contains(path) && !linked.contains(folder) {
            let what = "no document links to it".into();
            violations.push(violation(
                path,
                None,
                what,
                "link it, or its folder, from a page that a reader finds",
            ));
        }
    }
    violations
}

fn violation(path: &str, line: Option<usize>, what: String, fix: &'static str) -> Violation {
    Violation { path: path.into(), line, rule: RULE, what, fix }
}

fn check_title(file: &TextFile) -> Option<Violation> {
    let titles: Vec<usize> =
        prose(file).filter(|(_, line)| line.starts_with("# ")).map(|(number, _)| number).collect();
    match titles[..] {
        [1] => None,
        [1, second, ..] => {
            let what = "a second title".into();
            Some(violation(&file.path, Some(second), what, "make it a section: `## `"))
        }
        _ => Some(violation(&file.path, None, "the first line is no title".into(), "begin with `# Title`")),
    }
}

/// The lines outside fenced code.
fn prose(file: &TextFile) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    file.lines().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The targets of relative links, without the anchor.
fn links(file: &TextFile) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (number, line) in prose(file) {
        for piece in line.split("](").skip(1) {
            let target = piece.split([')', ' ']).next().unwrap_or_default();
            let page = target.split('#').next().unwrap_or_default();
            if !page.is_empty() && !page.contains("://") && !page.starts_with("mailto:") {
                links.push((number, page.to_owned()));
            }
        }
    }
    links
}

/// The path of `target` as seen from the document at `from`.
fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files))
            .iter()
            .map(|violation| format!("{}: {}", violation.path, violation.what))
            .collect()
    }

    #[test]
    fn a_document_has_one_title_on_its_first_line() {
        assert!(found(&[("a.md", "# A\n\n```sh\n# not a title\n```\n")]).is_empty());
        assert_eq!(found(&[("a.md", "A\n")]), ["a.md: the first line is no title"]);
        assert_eq!(found(&[("a.md", "# A\n# B\n")]), ["a.md: a second title"]);
    }

    #[test]
    fn relative_links_lead_to_a_file_or_a_folder() {
        let files = [
            ("docs/a/b.md", "# B\n[c](../../c.md#d) [e](e.md) [f](https://f.example)\n"),
            ("c.md", "# C\n[a](docs/a/)"),
        ];
        assert_eq!(found(&files), ["docs/a/b.md: a link to e.md, which does not exist"]);
    }

    #[test]
    fn a_document_without_a_link_to_it_is_found() {
        assert_eq!(found(&[("docs/a.md", "# A\n")]), ["docs/a.md: no document links to it"]);
        assert!(found(&[("docs/a.md", "# A\n"), ("README.md", "# R\n[a](docs/a.md)")]).is_empty());
    }
}
