//! Limits the size of files. The length of functions is checked by clippy's `too_many_lines`.

use super::Violation;
use crate::source::tree::Tree;

const RULE: &str = "size";

/// The maximum number of lines of a file, without its tests.
const FILE_LINES: usize = 600;

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (file, rust) in tree.rust() {
        let mut add = |line, what, fix| {
            violations.push(Violation { path: file.path.clone(), line, rule: RULE, what, fix });
        };
        let lines = rust.code_outside_tests().count();
        if lines > FILE_LINES {
            let what = format!("{lines} lines, the cap is {FILE_LINES}");
            add(None, what, "split where a part has its own state or its own name");
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, source: &str) -> Vec<Option<usize>> {
        check(&Tree::of(&[(path, source)])).into_iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn a_file_of_six_hundred_lines_without_its_tests_is_the_longest() {
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "    use a;\n".repeat(500));
        assert!(found("a.rs", &format!("{}{tests}", "use a;\n".repeat(600))).is_empty());
        assert_eq!(found("a.rs", &"use a;\n".repeat(601)), [None]);
    }
}
