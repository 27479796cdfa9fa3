//! What must not be left behind: shortcuts of the moment, and promises in comments.

use super::Violation;
use crate::source::functions::words;
use crate::source::tree::Tree;

const RULE: &str = "leftovers";

const FINISH: &str = "finish it, or leave it out and say in the documentation that it is not there";

/// What code outside tests must not say.
const IN_CODE: [(&str, &str); 4] = [
    (".unwrap()", "return an error, or `expect(\"why it cannot fail\")` for an invariant of our own"),
    ("todo!", FINISH),
    ("unimplemented!", FINISH),
    ("dbg!", "remove it"),
];

/// What comments outside tests must not say.
const IN_COMMENTS: [&str; 3] = ["TODO", "FIXME", "XXX"];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (file, rust) in tree.rust() {
        let mut add = |line, word: &str, mend| {
            let what = format!("`{word}`");
            violations.push(Violation { path: file.path.clone(), line: Some(line), rule: RULE, what, mend });
        };
        for (number, code) in rust.code_outside_tests() {
            for (word, mend) in IN_CODE.iter().filter(|(word, _)| code.contains(word)) {
                add(number, word, mend);
            }
        }
        for (number, comment) in rust.all_comments().filter(|(number, _)| !rust.is_test(*number)) {
            for word in IN_COMMENTS.iter().filter(|word| words(comment, word).next().is_some()) {
                add(number, word, FINISH);
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str) -> Vec<String> {
        check(&Tree::of(&[("crates/a/src/b.rs", source)]))
            .into_iter()
            .map(|violation| violation.what)
            .collect()
    }

    #[test]
    fn shortcuts_and_promises_are_found() {
        assert_eq!(found("a.unwrap();\ntodo!();\n// TODO: b\n"), ["`.unwrap()`", "`todo!`", "`TODO`"]);
    }

    #[test]
    fn tests_strings_and_cousins_are_free() {
        assert!(found("a.unwrap_or(1); b(\"todo!\");\n#[test]\nfn c() { d.unwrap(); }\n").is_empty());
    }
}
