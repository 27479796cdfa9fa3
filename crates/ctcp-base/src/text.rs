//! Escaping of text received from a peer, so that it can be displayed safely.
//!
//! A peer chooses the reason of its CLOSE, the text of its refusal and the names of its files. Printed unescaped,
//! control characters could rewrite the terminal and forge log lines, and bidirectional marks could reverse a name. All
//! text received from a peer is therefore displayed through [`Escaped`], the only place that decides which characters
//! are harmless.

use core::fmt::{self, Write};

/// Displays a text with every invisible character written as `\u{..}` (or `\n`, `\r`, `\t`).
///
/// The output is for people and cannot always be reversed: backslashes are not escaped, so escaping twice changes
/// nothing. It does not escape HTML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            if !is_hidden(character) {
                formatter.write_char(character)?;
            } else if matches!(character, '\n' | '\r' | '\t') {
                write!(formatter, "{}", character.escape_default())?;
            } else {
                write!(formatter, "{}", character.escape_unicode())?;
            }
        }
        Ok(())
    }
}

/// Returns whether a character is invisible or affects the text around it.
///
/// These are control characters (C0, DEL, C1), line and paragraph separators, variation selectors, fillers, and Unicode
/// format characters (category Cf). Format characters include bidirectional marks and overrides, zero-width characters
/// and tags.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}'
            | '\u{115f}'..='\u{1160}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_affect_a_terminal_or_a_log_are_escaped() {
        for (text, shown) in [
            ("\x1b[2J\x1b]0;owned\x07", "\\u{1b}[2J\\u{1b}]0;owned\\u{7}"),
            ("a\nWARN all is lost\r\tb", "a\\nWARN all is lost\\r\\tb"),
            ("\u{9b}31m\u{7f}\0", "\\u{9b}31m\\u{7f}\\u{0}"),
            ("exe\u{202e}gpj.txt\u{2066}\u{200f}", "exe\\u{202e}gpj.txt\\u{2066}\\u{200f}"),
            ("pay\u{200b}pal\u{feff}\u{2028}\u{e0041}", "pay\\u{200b}pal\\u{feff}\\u{2028}\\u{e0041}"),
        ] {
            assert_eq!(Escaped(text).to_string(), shown);
        }
    }

    #[test]
    fn visible_text_in_any_script_is_unchanged() {
        for text in ["", "it's \"quoted\" \\ and <b>", "Grüße, 你好, שלום, مرحبا", "e\u{301} 🦀"]
        {
            assert_eq!(Escaped(text).to_string(), text);
        }
    }

    #[test]
    fn no_hidden_character_remains_and_escaping_twice_changes_nothing() {
        let all: String = (0..=0x0010_ffff).filter_map(char::from_u32).collect();
        let shown = Escaped(&all).to_string();
        assert!(!shown.chars().any(is_hidden));
        assert_eq!(Escaped(&shown).to_string(), shown);
    }
}
