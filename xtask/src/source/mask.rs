//! Separates code from comments and literals, so that rules about code ignore words in sentences. It knows Rust's
//! comments, strings, raw strings, characters and lifetimes, and nothing else.

use std::iter::Peekable;
use std::str::Chars;

/// A source file in two layers with the same line numbers.
pub(crate) struct Masked {
    /// The code; comments and the contents of literals are blank.
    pub(crate) code: String,
    /// The comments, line by line; code and literals are blank.
    pub(crate) comments: String,
}

/// Splits `source` into its layers.
pub(crate) fn mask(source: &str) -> Masked {
    let mut masker = Masker {
        rest: source.chars().peekable(),
        code: String::with_capacity(source.len()),
        comments: String::new(),
    };
    masker.run();
    Masked { code: masker.code, comments: masker.comments }
}

struct Masker<'a> {
    rest: Peekable<Chars<'a>>,
    code: String,
    comments: String,
}

impl Masker<'_> {
    fn run(&mut self) {
        while let Some(character) = self.rest.next() {
            match character {
                '/' if self.rest.peek() == Some(&'/') => self.line_comment(),
                '/' if self.rest.peek() == Some(&'*') => self.block_comment(),
                '"' => self.string(),
                '\'' => self.character_or_lifetime(),
                'r' if self.begins_raw_string() => self.raw_string(),
                other => self.keep(other),
            }
        }
    }

    fn keep(&mut self, character: char) {
        self.code.push(character);
        self.comments.push(if character == '\n' { '\n' } else { ' ' });
    }

    /// Blanks a character of a literal in both layers; a line break is kept in both.
    fn blank(&mut self, character: char) {
        self.keep(if character == '\n' { '\n' } else { ' ' });
    }

    fn comment(&mut self, character: char) {
        self.code.push(if character == '\n' { '\n' } else { ' ' });
        self.comments.push(character);
    }

    fn line_comment(&mut self) {
        self.comment('/');
        while let Some(character) = self.rest.next_if(|&character| character != '\n') {
            self.comment(character);
        }
    }

    fn block_comment(&mut self) {
        self.comment('/');
        let (mut depth, mut before) = (0_usize, '/');
        while let Some(character) = self.rest.next() {
            self.comment(character);
            match (before, character) {
                ('/', '*') => depth += 1,
                ('*', '/') => depth -= 1,
                _ => {
                    before = character;
                    continue;
                }
            }
            if depth == 0 {
                return;
            }
            // Characters of one bracket do not count for the next one.
            before = ' ';
        }
    }

    fn string(&mut self) {
        self.keep('"');
        while let Some(character) = self.rest.next() {
            match character {
                '"' => return self.keep('"'),
                '\\' => {
                    self.blank(' ');
                    if let Some(escaped) = self.rest.next() {
                        self.blank(escaped);
                    }
                }
                other => self.blank(other),
            }
        }
    }

    /// Returns true if the `r` just read starts a raw string: no identifier precedes it (except `b` and `c`), and
    /// hashes and a quote follow it.
    fn begins_raw_string(&self) -> bool {
        let mut before = self.code.chars().rev();
        let last = before.next();
        let is_prefixed = matches!(last, Some('b' | 'c')) && !before.next().is_some_and(is_word);
        if last.is_some_and(is_word) && !is_prefixed {
            return false;
        }
        self.rest.clone().find(|&character| character != '#') == Some('"')
    }

    fn raw_string(&mut self) {
        self.keep('r');
        let mut hashes = 0;
        while self.rest.next_if_eq(&'#').is_some() {
            hashes += 1;
            self.keep('#');
        }
        self.rest.next();
        self.keep('"');
        while let Some(character) = self.rest.next() {
            if character == '"'
                && self.rest.clone().take(hashes).filter(|&next| next == '#').count() == hashes
            {
                self.keep('"');
                for _ in 0..hashes {
                    self.rest.next();
                    self.keep('#');
                }
                return;
            }
            self.blank(character);
        }
    }

    fn character_or_lifetime(&mut self) {
        self.keep('\'');
        let mut ahead = self.rest.clone();
        let (first, second) = (ahead.next(), ahead.next());
        if first != Some('\\') && second != Some('\'') {
            return; // A lifetime.
        }
        let mut is_escaped = false;
        for character in self.rest.by_ref() {
            if character == '\'' && !is_escaped {
                self.code.push('\'');
                self.comments.push(' ');
                return;
            }
            is_escaped = character == '\\' && !is_escaped;
            self.code.push(' ');
            self.comments.push(' ');
        }
    }
}

/// Whether the character may be part of an identifier.
pub(crate) fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(source: &str) -> String {
        mask(source).code.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn comments(source: &str) -> String {
        mask(source).comments.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_are_removed_from_the_code_and_keep_their_text() {
        assert_eq!(code("a(); // b()\nc();"), "a(); c();");
        assert_eq!(comments("a(); // b()\nc();"), "// b()");
        assert_eq!(code("a /* b /* c */ d */ e"), "a e");
        assert_eq!(code("a /*/ b */ c"), "a c");
        assert_eq!(code("a /**/ b"), "a b");
    }

    #[test]
    fn literals_are_blank_in_both_layers() {
        assert_eq!(code(r#"a("b // c \" d", e)"#), r#"a(" ", e)"#);
        assert_eq!(code(r###"a(r#"b " c"#, br"d\", e)"###), r###"a(r#" "#, br" ", e)"###);
        assert_eq!(comments(r#"a("// b")"#), "");
        assert_eq!(code(r"a('{', '\'', '\\', b'}', e)"), "a(' ', ' ', ' ', b' ', e)");
    }

    #[test]
    fn lifetimes_and_raw_identifiers_are_code() {
        assert_eq!(code("fn a<'a>(b: &'a str, r#fn: u8)"), "fn a<'a>(b: &'a str, r#fn: u8)");
        assert_eq!(code("for_r\"a\""), "for_r\" \"");
    }

    #[test]
    fn every_layer_has_the_lines_of_the_source() {
        let source = "a\n/* b\nc */ d\n\"e\nf\" // g\n";
        let masked = mask(source);
        for layer in [masked.code, masked.comments] {
            assert_eq!(layer.lines().count(), source.lines().count());
        }
    }
}
