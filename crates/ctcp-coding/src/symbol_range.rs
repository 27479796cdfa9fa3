//! The range of source symbols that a combination spans.

/// The maximum number of source symbols in one combination: 12 bits, like the encoding window size of RFC 8681 section
/// 4.1.3.
pub const MAX_SPAN: u16 = 4095;

/// The consecutive source symbols `[first, first + length)`, 1 to [`MAX_SPAN`] of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolRange {
    first: u64,
    length: u16,
}

impl SymbolRange {
    /// Creates `[first, first + length)`. Returns `None` if it is empty, longer than [`MAX_SPAN`], or exceeds the last
    /// index.
    #[must_use]
    pub const fn new(first: u64, length: u16) -> Option<Self> {
        if length == 0 || length > MAX_SPAN || first.checked_add(length as u64).is_none() {
            return None;
        }
        Some(Self { first, length })
    }

    /// Creates `[first, end)`, under the same conditions.
    #[must_use]
    pub fn from_bounds(first: u64, end: u64) -> Option<Self> {
        let length = u16::try_from(end.checked_sub(first)?).ok()?;
        Self::new(first, length)
    }

    /// Returns the index of the first symbol.
    #[must_use]
    pub const fn first(self) -> u64 {
        self.first
    }

    /// Returns the number of symbols, 1 to [`MAX_SPAN`].
    #[must_use]
    pub const fn length(self) -> u16 {
        self.length
    }

    /// Returns one past the index of the last symbol.
    #[must_use]
    pub const fn end(self) -> u64 {
        self.first + self.length as u64
    }

    /// Returns whether it spans the symbol `index`.
    #[must_use]
    pub const fn contains(self, index: u64) -> bool {
        self.first <= index && index < self.end()
    }

    /// Returns whether the two ranges have a symbol in common.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        self.first < other.end() && other.first < self.end()
    }

    /// Returns the indexes in ascending order.
    pub fn indexes(self) -> core::ops::Range<u64> {
        self.first..self.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_too_long_and_overflowing_ranges_are_refused() {
        assert_eq!(SymbolRange::new(3, 0), None);
        assert_eq!(SymbolRange::new(3, MAX_SPAN + 1), None);
        assert_eq!(SymbolRange::new(u64::MAX, 1), None);
        assert_eq!(SymbolRange::from_bounds(5, 5), None);
        assert_eq!(SymbolRange::from_bounds(5, 4), None);
        assert_eq!(SymbolRange::from_bounds(0, 70_000), None);
        assert_eq!(SymbolRange::new(u64::MAX - 1, 1).map(SymbolRange::end), Some(u64::MAX));
    }

    #[test]
    fn contains_and_overlaps_follow_the_bounds() {
        let range = SymbolRange::from_bounds(10, 13).unwrap();
        assert_eq!(range.indexes().collect::<std::vec::Vec<_>>(), [10, 11, 12]);
        assert!(!range.contains(9) && range.contains(10) && range.contains(12) && !range.contains(13));
        assert!(range.overlaps(SymbolRange::new(12, 5).unwrap()));
        assert!(!range.overlaps(SymbolRange::new(13, 5).unwrap()));
        assert!(!range.overlaps(SymbolRange::new(5, 5).unwrap()));
    }
}
