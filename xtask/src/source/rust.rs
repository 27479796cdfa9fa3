//! What the rules ask of a Rust file: its code, its comments, its functions, and which lines are tests.

use super::functions::{self, Function};
use super::mask::mask;

/// A Rust file taken apart.
pub(crate) struct RustSource {
    /// The lines of code, comments and literals blank.
    pub(crate) code: Vec<String>,
    /// The lines of comments.
    pub(crate) comments: Vec<String>,
    /// The functions in the order of their first line.
    pub(crate) functions: Vec<Function>,
    /// For each line whether it belongs to tests.
    is_test: Vec<bool>,
}

impl RustSource {
    pub(crate) fn new(path: &str, source: &str) -> Self {
        let masked = mask(source);
        let is_test =
            if is_test_path(path) { vec![true; source.lines().count()] } else { test_lines(&masked.code) };
        Self {
            functions: functions::find(&masked.code),
            code: masked.code.lines().map(Into::into).collect(),
            comments: masked.comments.lines().map(Into::into).collect(),
            is_test,
        }
    }

    /// Whether line `number`, counted from 1, belongs to tests.
    pub(crate) fn is_test(&self, number: usize) -> bool {
        self.is_test.get(number - 1).copied().unwrap_or(false)
    }

    /// The lines of code outside tests, with their numbers from 1.
    pub(crate) fn code_outside_tests(&self) -> impl Iterator<Item = (usize, &str)> {
        self.all_code().filter(|(number, _)| !self.is_test(*number))
    }

    /// All lines of code, with their numbers from 1.
    pub(crate) fn all_code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.iter().enumerate().map(|(index, line)| (index + 1, line.as_str()))
    }

    /// The lines of comments, with their numbers from 1.
    pub(crate) fn all_comments(&self) -> impl Iterator<Item = (usize, &str)> {
        self.comments.iter().enumerate().map(|(index, line)| (index + 1, line.trim()))
    }

    /// The name of the function that line `number` is in or, if it is in none, that follows it.
    pub(crate) fn function_at(&self, number: usize) -> Option<&str> {
        let inside = self.functions.iter().rfind(|function| function.lines().contains(&number));
        let next = || self.functions.iter().find(|function| function.first > number);
        inside.or_else(next).map(|function| function.name.as_str())
    }
}

/// Whether all of the file is for tests, benchmarks or examples.
fn is_test_path(path: &str) -> bool {
    let folders = ["tests/", "benches/", "examples/", "fuzz/"];
    folders.iter().any(|folder| path.starts_with(folder) || path.contains(&format!("/{folder}")))
        || path.ends_with("/tests.rs")
}

/// The lines of items that are compiled for tests only.
fn test_lines(code: &str) -> Vec<bool> {
    let mut is_test = vec![false; code.lines().count()];
    for marker in ["#[cfg(test)]", "#[cfg(all(test", "#[cfg(any(test", "#[test]"] {
        for (start, _) in code.match_indices(marker) {
            let end = start + functions::end_of_item(&code[start..]);
            let first = line_of(code, start);
            let last = line_of(code, end);
            is_test[first..=last].fill(true);
        }
    }
    if code.contains("#![cfg(test)]") {
        is_test.fill(true);
    }
    is_test
}

/// The index of the line that holds the byte at `offset`.
fn line_of(code: &str, offset: usize) -> usize {
    code[..offset].matches('\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_module_ends_at_its_brace_and_a_test_file_at_its_declaration() {
        let source = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n#[cfg(test)]\nmod d;\nfn e() {}\n";
        let rust = RustSource::new("crates/x/src/lib.rs", source);
        let outside: Vec<usize> = rust.code_outside_tests().map(|(number, _)| number).collect();
        assert_eq!(outside, [1, 6, 9]);
    }

    #[test]
    fn files_of_tests_are_known_by_their_path() {
        for path in
            ["crates/x/tests/a.rs", "crates/x/src/y/tests.rs", "crates/x/src/y/tests/z.rs", "fuzz/a.rs"]
        {
            assert!(RustSource::new(path, "fn a() {}").is_test(1), "{path}");
        }
        assert!(!RustSource::new("crates/x/src/contests.rs", "fn a() {}").is_test(1));
    }

    #[test]
    fn a_line_is_named_after_its_function_or_the_next_one() {
        let rust = RustSource::new("a.rs", "// one\nfn a() {\n    // two\n}\n// three\nfn b() {}\n");
        assert_eq!([1, 3, 5].map(|line| rust.function_at(line)), [Some("a"), Some("a"), Some("b")]);
    }
}
