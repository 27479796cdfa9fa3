//! Names of files on the wire: relative paths with `/` between plain components.
//!
//! A name is refused if *any* system would interpret it as something other than a path inside the directory. A name
//! that is harmless on one system may be a drive, a device or a way out of the directory on another.

use core::fmt;
use core::str::FromStr;

/// Longest name in bytes.
pub const NAME_BYTES_MAX: usize = 1024;

/// Longest component in bytes: file systems allow 255, and the suffix `.part.json` must fit.
pub const COMPONENT_BYTES_MAX: usize = 240;

/// The suffix of a file that is not complete yet.
pub(super) const PART: &str = ".part";

/// The suffix of the sidecar of such a file.
pub(super) const SIDECAR: &str = ".part.json";

/// The name of a file inside a served directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileName(String);

/// Why a text is not a valid file name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// Empty.
    #[error("the file name is empty")]
    Empty,
    /// Beyond [`NAME_BYTES_MAX`], or a component beyond [`COMPONENT_BYTES_MAX`].
    #[error(
        "the file name is too long: at most {NAME_BYTES_MAX} bytes, {COMPONENT_BYTES_MAX} between slashes"
    )]
    TooLong,
    /// It starts with `/` or a drive.
    #[error("the file name is absolute: names are relative to the served directory")]
    Absolute,
    /// A component is empty, `.` or `..`.
    #[error("the file name has an empty component, \".\" or \"..\"")]
    Component,
    /// A character that names cannot contain: NUL, another control character, a backslash.
    #[error("the file name has the character {0:?}")]
    Character(char),
    /// It has the suffix of an incomplete file (`.part`, `.part.json`).
    #[error("names that end in .part or .part.json belong to unfinished transfers")]
    Reserved,
}

impl FromStr for FileName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if text.len() > NAME_BYTES_MAX {
            return Err(NameError::TooLong);
        }
        if let Some(character) = text.chars().find(|character| character.is_control() || *character == '\\') {
            return Err(NameError::Character(character));
        }
        if text.starts_with('/') {
            return Err(NameError::Absolute);
        }
        for component in text.split('/') {
            check_component(component)?;
        }
        if text.ends_with(PART) || text.ends_with(SIDECAR) {
            return Err(NameError::Reserved);
        }
        Ok(Self(text.to_owned()))
    }
}

fn check_component(component: &str) -> Result<(), NameError> {
    if matches!(component, "" | "." | "..") {
        return Err(NameError::Component);
    }
    if component.len() > COMPONENT_BYTES_MAX {
        return Err(NameError::TooLong);
    }
    let mut bytes = component.bytes();
    if matches!((bytes.next(), bytes.next()), (Some(letter), Some(b':')) if letter.is_ascii_alphabetic()) {
        return Err(NameError::Absolute);
    }
    // On Windows a colon names a stream of a file, and trailing dots and spaces are dropped.
    if cfg!(windows) && (component.contains(':') || component.ends_with(['.', ' '])) {
        return Err(NameError::Component);
    }
    Ok(())
}

impl FileName {
    /// Splits the name into its directories and the last component.
    pub fn split(&self) -> (impl Iterator<Item = &str>, &str) {
        let (directories, leaf) = match self.0.rsplit_once('/') {
            Some((directories, leaf)) => (Some(directories), leaf),
            None => (None, self.0.as_str()),
        };
        (directories.into_iter().flat_map(|directories| directories.split('/')), leaf)
    }

    /// The name as on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_relative_names_are_split() {
        let name: FileName = "a/b c/d.tar.gz".parse().unwrap();
        let (directories, leaf) = name.split();
        assert_eq!((directories.collect::<Vec<_>>(), leaf), (vec!["a", "b c"], "d.tar.gz"));
        for text in ["x", ".hidden", "...", "a..b", "2026-01-01T00:00:00.log", "ä/ö", "part", "x.part.txt"]
        {
            assert_eq!(text.parse::<FileName>().map(|name| name.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn names_that_leave_the_directory_or_are_ambiguous_are_refused() {
        let long = "a".repeat(COMPONENT_BYTES_MAX + 1);
        let longer = "a/".repeat(NAME_BYTES_MAX / 2) + "a";
        for (text, error) in [
            ("", NameError::Empty),
            ("/", NameError::Absolute),
            ("/etc/passwd", NameError::Absolute),
            ("//server/share", NameError::Absolute),
            ("..", NameError::Component),
            ("../x", NameError::Component),
            ("a/../x", NameError::Component),
            ("a/..", NameError::Component),
            (".", NameError::Component),
            ("a/./b", NameError::Component),
            ("a//b", NameError::Component),
            ("a/", NameError::Component),
            ("a\0b", NameError::Character('\0')),
            ("a\nb", NameError::Character('\n')),
            ("..\\x", NameError::Character('\\')),
            ("a\\b", NameError::Character('\\')),
            ("C:", NameError::Absolute),
            ("c:/x", NameError::Absolute),
            ("a/C:x", NameError::Absolute),
            ("x.part", NameError::Reserved),
            ("a/x.part.json", NameError::Reserved),
            (long.as_str(), NameError::TooLong),
            (longer.as_str(), NameError::TooLong),
        ] {
            assert_eq!(text.parse::<FileName>(), Err(error), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn random_text_never_panics_and_no_component_is_special(text in "[./a:\\\\\\PC]{0,20}") {
            if let Ok(name) = text.parse::<FileName>() {
                let (mut directories, leaf) = name.split();
                prop_assert!(directories.all(|part| !matches!(part, "" | "." | "..")));
                prop_assert!(!matches!(leaf, "" | "." | ".."));
                prop_assert!(!text.starts_with('/'));
            }
        }
    }
}
