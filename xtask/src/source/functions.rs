//! Finds where functions start and end, by counting brackets in masked code.

use std::ops::RangeInclusive;

use super::mask::is_word;

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// The line of the word `fn`, counted from 1.
    pub(crate) first: usize,
    /// The line of the closing brace.
    pub(crate) last: usize,
}

impl Function {
    pub(crate) fn lines(&self) -> RangeInclusive<usize> {
        self.first..=self.last
    }
}

/// All functions with a body, in the order of their first line.
pub(crate) fn find(code: &str) -> Vec<Function> {
    let mut functions = Vec::new();
    for start in words(code, "fn") {
        let after = &code[start + 2..];
        let name: String = after.trim_start().chars().take_while(|&character| is_word(character)).collect();
        let end = start + end_of_item(&code[start..]);
        // Without a name it is a function pointer type, without a brace a declaration.
        if !name.is_empty() && code[end..].starts_with('}') {
            let line = |offset: usize| code[..offset].matches('\n').count() + 1;
            functions.push(Function { name, first: line(start), last: line(end) });
        }
    }
    functions
}

/// The positions of `word` in `code` as a separate word.
pub(crate) fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(word).map(|(start, _)| start).filter(move |&start| {
        let before = code[..start].chars().next_back();
        let after = code[start + word.len()..].chars().next();
        !before.is_some_and(|before| is_word(before) || before == '#') && !after.is_some_and(is_word)
    })
}

/// The offset of the last character of the item at the start of `code`: the brace that closes its body, or the
/// semicolon that ends it. The code's end if there is neither.
pub(crate) fn end_of_item(code: &str) -> usize {
    let (mut braces, mut others) = (0_usize, 0_usize);
    for (offset, character) in code.char_indices() {
        match character {
            '(' | '[' => others += 1,
            ')' | ']' => others = others.saturating_sub(1),
            '{' => braces += 1,
            '}' => {
                braces = braces.saturating_sub(1);
                if braces == 0 && others == 0 {
                    return offset;
                }
            }
            ';' if braces == 0 && others == 0 => return offset,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_with_their_first_and_last_line() {
        let code = "fn a(b: [u8; 2]) -> u8 {\n    if c { d }\n}\ntrait E {\n    fn f();\n    fn g(h: fn(u8)) {}\n}\n";
        let found = find(code);
        let named = |name: &str, first, last| Function { name: name.into(), first, last };
        assert_eq!(found, [named("a", 1, 3), named("g", 6, 6)]);
    }

    #[test]
    fn words_are_whole() {
        assert_eq!(words("fn fnord(); r#fn; my_fn fn", "fn").collect::<Vec<_>>(), [0, 24]);
    }
}
