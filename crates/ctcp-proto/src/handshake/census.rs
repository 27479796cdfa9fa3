//! How many connections each host, or each client, has: so that none takes every place.

use std::collections::BTreeMap;

/// Connections, by the name `K` that their endpoint has for each, counted by whom they belong to.
#[derive(Clone, Debug)]
pub(crate) struct Census<K, T> {
    counts: BTreeMap<T, usize>,
    owners: BTreeMap<K, T>,
}

impl<K, T> Default for Census<K, T> {
    fn default() -> Self {
        Self { counts: BTreeMap::new(), owners: BTreeMap::new() }
    }
}

impl<K: Ord + Clone, T: Ord + Copy> Census<K, T> {
    /// How many there are in all.
    pub(crate) fn len(&self) -> usize {
        self.owners.len()
    }

    /// How many connections `owner` has.
    pub(crate) fn count(&self, owner: T) -> usize {
        self.counts.get(&owner).copied().unwrap_or(0)
    }

    /// Every connection and whose it is.
    pub(crate) fn owners(&self) -> impl Iterator<Item = (&K, &T)> {
        self.owners.iter()
    }

    /// A connection of `owner`.
    pub(crate) fn insert(&mut self, handle: K, owner: T) {
        self.remove(&handle);
        self.owners.insert(handle, owner);
        *self.counts.entry(owner).or_default() += 1;
    }

    /// The connection is over, if it was there. Returns whose it was.
    pub(crate) fn remove(&mut self, handle: &K) -> Option<T> {
        let owner = self.owners.remove(handle)?;
        if let Some(count) = self.counts.get_mut(&owner) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&owner);
            }
        }
        Some(owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ConnectionHandle;

    #[test]
    fn each_owner_is_counted_apart_and_forgotten_with_its_last_connection() {
        let mut census = Census::default();
        for index in 0..3 {
            census.insert(ConnectionHandle(index), 'a');
        }
        census.insert(ConnectionHandle(2), 'b');
        assert_eq!((census.count('a'), census.count('b'), census.count('c')), (2, 1, 0));
        assert_eq!(census.remove(&ConnectionHandle(2)), Some('b'));
        assert_eq!(census.remove(&ConnectionHandle(2)), None);
        assert!((0..2).all(|index| census.remove(&ConnectionHandle(index)) == Some('a')));
        assert!(census.counts.is_empty() && census.owners.is_empty());
    }
}
