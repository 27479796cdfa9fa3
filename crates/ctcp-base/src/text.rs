//! Text from elsewhere, made fit to be shown.
//!
//! A peer chooses the reason of its CLOSE, the text of its refusal and the names of its files. Printed as they are, control
//! characters rewrite a terminal and forge lines of a log, and bidirectional marks turn a name around. Whatever comes from
//! a peer is therefore shown through [`Escaped`], and nothing else decides which characters are harmless.

use core::fmt::{self, Write};

/// Shows a text with every character that does not show itself written as `\u{..}` (and `\n`, `\r`, `\t`).
///
/// It is for people: a backslash stays one, so that escaping twice changes nothing, and the original cannot always be told
/// from the result. It does not escape for HTML, which is on top of this.
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

/// Whether a character acts on its surroundings instead of showing itself: control characters (C0, DEL, C1), line and
/// paragraph separators, and the format characters of Unicode (category Cf): bidirectional marks and overrides, zero-width
/// characters, tags.
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
    fn what_acts_on_a_terminal_or_a_log_is_spelled_out() {
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
    fn what_shows_itself_stays_in_every_script() {
        for text in ["", "it's \"quoted\" \\ and <b>", "Grüße, 你好, שלום, مرحبا", "e\u{301} 🦀"]
        {
            assert_eq!(Escaped(text).to_string(), text);
        }
    }

    #[test]
    fn nothing_hidden_is_left_and_escaping_twice_changes_nothing() {
        let all: String = (0..=0x0010_ffff).filter_map(char::from_u32).collect();
        let shown = Escaped(&all).to_string();
        assert!(!shown.chars().any(is_hidden));
        assert_eq!(Escaped(&shown).to_string(), shown);
    }
}
