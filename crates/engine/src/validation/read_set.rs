//! The read set of a transaction.

use std::collections::BTreeSet;

use anden_snapshots::Key;

use super::{CommitFailure, Conflict, ReadKey, VersionTable};
use crate::Result;

/// Number of items from which on duplicates are removed.
const MANY: usize = 1 << 10;

/// The read keys of a transaction's view, and the keys that it did not find.
#[derive(Debug)]
pub(crate) struct ReadSet {
    /// The epoch of the view.
    epoch: u64,
    /// Number of indexes made or dropped before the view.
    index_changes: u64,
    items: Vec<ReadKey>,
    /// Keys that never named a vertex.
    absent: BTreeSet<Key>,
    /// Number of items at which duplicates are removed next.
    next_clearing: usize,
}

impl ReadSet {
    /// An empty read set of a view with all commits up to `epoch`. At least `index_changes` indexes were made or
    /// dropped before it.
    pub(crate) fn new(epoch: u64, index_changes: u64) -> Self {
        Self { epoch, index_changes, items: Vec::new(), absent: BTreeSet::new(), next_clearing: MANY }
    }

    /// Adds a read key.
    #[inline]
    pub(crate) fn push(&mut self, item: ReadKey) {
        // A degree and a scan after it note one list twice in a row.
        if self.items.last() == Some(&item) {
            return;
        }
        self.items.push(item);
        if self.items.len() >= self.next_clearing {
            self.items.sort_unstable();
            self.items.dedup();
            // Doubling bounds the number of sorts.
            self.next_clearing = MANY.max(2 * self.items.len());
        }
    }

    /// Adds a key that has no id.
    pub(crate) fn push_absent(&mut self, key: &Key) {
        if !self.absent.contains(key) {
            self.absent.insert(key.clone());
        }
    }

    /// Validates the read set against the version table. `index_changes` counts the indexes made or dropped until now,
    /// and `has_id` tells which keys have an id.
    ///
    /// # Errors
    /// The conflict; damage in the dictionary.
    pub(crate) fn validate(
        &self,
        versions: &VersionTable,
        index_changes: u64,
        has_id: impl Fn(&Key) -> Result<bool>,
    ) -> Result<(), CommitFailure> {
        // Changes of values were not noted while the index did not exist.
        let has_other_indexes = index_changes != self.index_changes;
        let has_changed = |item: ReadKey| {
            versions.last_change(item) > self.epoch || has_other_indexes && matches!(item, ReadKey::Value(..))
        };
        if let Some(&item) = self.items.iter().find(|&&item| has_changed(item)) {
            return Err(CommitFailure::Conflict(Conflict::Changed(item)));
        }
        // Keys without an id have no stripe, so each key is looked up again.
        for key in &self.absent {
            if has_id(key)? {
                return Err(CommitFailure::Conflict(Conflict::Created(key.clone())));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conflict(reads: &ReadSet, versions: &VersionTable, known: &[&str]) -> Option<Conflict> {
        let has_id = |key: &Key| Ok(known.iter().any(|&known| *key == Key::from(known)));
        match reads.validate(versions, 0, has_id) {
            Ok(()) => None,
            Err(CommitFailure::Conflict(conflict)) => Some(conflict),
            Err(CommitFailure::Error(error)) => panic!("{error}"),
        }
    }

    #[test]
    fn read_key_changed_later_is_a_conflict() {
        let mut versions = VersionTable::default();
        versions.begin(3);
        let mut reads = ReadSet::new(3, 0);
        (0..5_000).for_each(|i| reads.push(ReadKey::OutList(i % 10)));
        assert!(reads.items.len() < 2 * MANY);
        reads.push_absent(&"x".into());
        versions.change(ReadKey::OutList(77), 4);
        assert_eq!(conflict(&reads, &versions, &["y"]), None);
        assert_eq!(conflict(&reads, &versions, &["x"]), Some(Conflict::Created("x".into())));
        versions.change(ReadKey::OutList(7), 4);
        assert_eq!(conflict(&reads, &versions, &[]), Some(Conflict::Changed(ReadKey::OutList(7))));
        let mut younger = ReadSet::new(4, 0);
        younger.push(ReadKey::OutList(7));
        assert_eq!(conflict(&younger, &versions, &[]), None);
    }
}
