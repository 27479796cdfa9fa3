//! How a connection uses several paths. The client chooses; both directions follow (PROTOCOL.md section 6).

use core::fmt;
use core::str::FromStr;

/// How a connection uses several paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathMode {
    /// All paths carry data. Paths that may share a bottleneck take the share of one connection together.
    #[default]
    Aggregate,
    /// The path with the lowest preference carries everything; the others take over while it does not answer.
    Backup,
    /// As `Aggregate`, and latency-sensitive data (messages, small writes, everything in profile `low-latency`) is sent once on each path.
    Redundant,
    /// As `Aggregate`, but each path competes as a connection of its own.
    Independent,
}

/// The preference of path 0. A lower number is preferred.
pub const PREFERENCE_OF_FIRST: u8 = 64;

impl PathMode {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Aggregate, "aggregate"),
        (Self::Backup, "backup"),
        (Self::Redundant, "redundant"),
        (Self::Independent, "independent"),
    ];

    /// The number on the wire.
    pub(crate) fn number(self) -> u64 {
        self as u64
    }

    /// An unknown number means `Aggregate`.
    pub(crate) fn from_number(number: u64) -> Self {
        let known = usize::try_from(number).ok().and_then(|number| Self::ALL.get(number));
        known.map_or_else(Self::default, |(mode, _)| *mode)
    }
}

impl fmt::Display for PathMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(Self::ALL[*self as usize].1)
    }
}

impl FromStr for PathMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|(_, name)| *name == text);
        known.map(|(mode, _)| mode).ok_or_else(|| {
            let names = Self::ALL.map(|(_, name)| name).join(", ");
            format!("there is no such use of paths; there are {names}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_has_a_name_and_a_number_and_unknown_numbers_mean_the_default() {
        for (mode, name) in PathMode::ALL {
            assert_eq!(name.parse(), Ok(mode));
            assert_eq!(mode.to_string(), name);
            assert_eq!(PathMode::from_number(mode.number()), mode);
        }
        assert_eq!(PathMode::from_number(77), PathMode::Aggregate);
        assert!("both".parse::<PathMode>().is_err());
    }
}
