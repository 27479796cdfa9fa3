//! A Rust file as the rules need it: its code, its comments, its functions, and which lines are tests.

use super::functions::{self, Function};
use super::mask::{is_word, mask};

/// The words that an item's name follows.
const ITEMS: [&str; 9] = ["fn", "struct", "enum", "trait", "const", "static", "type", "mod", "impl"];

/// A parsed Rust file.
pub(crate) struct RustSource {
    /// The lines of code, comments and literals blank.
    pub(crate) code: Vec<String>,
    /// The lines of comments.
    pub(crate) comments: Vec<String>,
    /// The functions in the order of their first line.
    pub(crate) functions: Vec<Function>,
    /// For each line, whether it belongs to tests.
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

    /// Returns true if line `number`, counted from 1, belongs to tests.
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

    /// The item that line `number` belongs to: the function it is in, or the item that follows it. `None` for the
    /// comment of a whole file.
    pub(crate) fn item_at(&self, number: usize) -> Option<String> {
        if let Some(function) = self.functions.iter().rfind(|function| function.lines().contains(&number)) {
            return Some(format!("fn {}", function.name));
        }
        if self.comments.get(number - 1)?.trim_start().starts_with("//!") {
            return None;
        }
        let is_item = |code: &str| !(code.trim().is_empty() || code.trim_start().starts_with("#["));
        let (_, next) = self.all_code().find(|(line, code)| *line > number && is_item(code))?;
        let words: Vec<&str> = next.split(|character| !is_word(character)).collect();
        words
            .windows(2)
            .find(|pair| ITEMS.contains(&pair[0]) && !ITEMS.contains(&pair[1]))
            .map(|pair| pair.join(" "))
    }
}

/// Returns true if the whole file is for tests, benchmarks or examples.
fn is_test_path(path: &str) -> bool {
    let folders = ["tests/", "benches/", "benchmarks/", "examples/", "fuzz/"];
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
    fn test_files_are_recognized_by_their_path() {
        for path in
            ["crates/x/tests/a.rs", "crates/x/src/y/tests.rs", "crates/x/src/y/tests/z.rs", "fuzz/a.rs"]
        {
            assert!(RustSource::new(path, "fn a() {}").is_test(1), "{path}");
        }
        assert!(!RustSource::new("crates/x/src/contests.rs", "fn a() {}").is_test(1));
    }

    #[test]
    fn a_line_is_named_after_its_function_or_the_item_that_follows() {
        let source = "//! file\nfn a() {\n    // in a\n}\n// of D\npub const fn d() {}\n// of B\n#[derive(Debug)]\npub(crate) struct B<'a> {\n    // in B\n    c: &'a str,\n}\n";
        let rust = RustSource::new("a.rs", source);
        let names = [1, 3, 5, 7, 10].map(|line| rust.item_at(line));
        assert_eq!(names, [None, Some("fn a".into()), Some("fn d".into()), Some("struct B".into()), None]);
    }
}
