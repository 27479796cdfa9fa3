//! Counts the connections of each host or client, so that none takes all places.

use std::collections::BTreeMap;

/// Connections, identified by the endpoint's key `K`, counted by their owner.
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
    /// The number of connections in total.
    pub(crate) fn len(&self) -> usize {
        self.owners.len()
    }

    /// The number of connections of `owner`.
    pub(crate) fn count(&self, owner: T) -> usize {
        self.counts.get(&owner).copied().unwrap_or(0)
    }

    /// All connections with their owners.
    pub(crate) fn owners(&self) -> impl Iterator<Item = (&K, &T)> {
        self.owners.iter()
    }

    /// Adds a connection of `owner`.
    pub(crate) fn insert(&mut self, handle: K, owner: T) {
        self.remove(&handle);
        self.owners.insert(handle, owner);
        *self.counts.entry(owner).or_default() += 1;
    }

    /// Removes a connection, if present, and returns its owner.
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
    fn owners_are_counted_separately_and_removed_with_their_last_connection() {
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
