//! A part of an experiment's cells: `2/8` is the second of eight.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

/// The maximum number of shards of a run: the limit of a Kubernetes indexed job. It limits the list of missing shards.
pub const SHARDS_MAX: u32 = 100_000;

/// One of `count` shards, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    index: u32,
    count: u32,
}

impl Shard {
    /// All cells in a single shard.
    pub const WHOLE: Self = Self { index: 1, count: 1 };

    /// Returns the shard `index` of `count`, or `None` unless `1 <= index <= count <= SHARDS_MAX`.
    #[must_use]
    pub fn new(index: u32, count: u32) -> Option<Self> {
        (1..=count).contains(&index).then_some(Self { index, count }).filter(|_| count <= SHARDS_MAX)
    }

    /// Returns its index, counted from 1.
    #[must_use]
    pub fn index(self) -> u32 {
        self.index
    }

    /// Returns the number of shards.
    #[must_use]
    pub fn count(self) -> u32 {
        self.count
    }

    /// Returns whether it has the cell at this position of the shuffled order.
    #[must_use]
    pub fn has(self, place: usize) -> bool {
        place as u64 % u64::from(self.count) == u64::from(self.index - 1)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(index, count)| Some((number(index)?, number(count)?)));
        let (index, count) =
            numbers.ok_or_else(|| format!("`{text}` is not a shard: expected I/N, for example 2/8"))?;
        if count == 0 {
            return Err(format!("shard {text}: there must be at least one shard"));
        }
        if count > u64::from(SHARDS_MAX) {
            return Err(format!("shard {text}: at most {SHARDS_MAX} shards are possible"));
        }
        let shard = u32::try_from(index).ok().and_then(|index| Self::new(index, count as u32));
        shard.ok_or_else(|| format!("shard {text}: the first number must be from 1 to {count}"))
    }
}

/// Parses digits only; `parse` alone would accept a sign.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

impl fmt::Display for Shard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.index, self.count)
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shards_of_a_run_share_its_cells_without_gap_or_overlap() {
        for count in [1, 3, 7, 40] {
            for cell in 0..30 {
                let owners = (1..=count).filter(|&index| Shard::new(index, count).unwrap().has(cell));
                assert_eq!(owners.count(), 1);
            }
        }
    }

    #[test]
    fn invalid_shards_are_refused_with_the_reason() {
        assert_eq!("2/8".parse(), Ok(Shard { index: 2, count: 8 }));
        for (text, reason) in [
            ("5/4", "from 1 to 4"),
            ("0/4", "from 1 to 4"),
            ("1/0", "at least one"),
            ("1/100001", "at most 100000"),
            ("4", "I/N"),
            ("+1/4", "I/N"),
            ("-1/4", "I/N"),
            ("1/4/5", "I/N"),
            ("/", "I/N"),
            ("99999999999/100000", "from 1 to 100000"),
        ] {
            let error = text.parse::<Shard>().unwrap_err();
            assert!(error.contains(reason) && error.contains(text) && !error.contains('\n'), "{error}");
        }
    }
}
