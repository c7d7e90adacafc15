//! What a transaction read.

use std::collections::BTreeSet;

use lama::Key;

use super::{Conflict, Failure, ReadKey, VersionTable};
use crate::Result;

/// Beyond so many, those that are there twice are looked for.
const MANY: usize = 1 << 10;

/// What a transaction read in its view, what was not there included.
#[derive(Debug)]
pub(crate) struct ReadSet {
    /// Of the view.
    epoch: u64,
    /// How many indexes had been made and dropped when it was taken.
    index_changes: u64,
    items: Vec<ReadKey>,
    /// Keys that named no vertex, nor ever had.
    absent: BTreeSet<Key>,
    /// When so many were read, duplicates go.
    next_clearing: usize,
}

impl ReadSet {
    /// Nothing yet, of a view that has what was committed up to `epoch`; by then, indexes had been made and dropped this
    /// many times at least.
    pub(crate) fn new(epoch: u64, index_changes: u64) -> Self {
        Self { epoch, index_changes, items: Vec::new(), absent: BTreeSet::new(), next_clearing: MANY }
    }

    /// Something was read.
    #[inline]
    pub(crate) fn push(&mut self, item: ReadKey) {
        if self.items.last() == Some(&item) {
            return;
        }
        self.items.push(item);
        if self.items.len() >= self.next_clearing {
            self.items.sort_unstable();
            self.items.dedup();
            self.next_clearing = MANY.max(2 * self.items.len());
        }
    }

    /// A key had no id.
    pub(crate) fn push_absent(&mut self, key: &Key) {
        if !self.absent.contains(key) {
            self.absent.insert(key.clone());
        }
    }

    /// Whether all that was read is still so, as far as the stripes tell; `index_changes` says how often indexes were made and dropped
    /// by now, and `has_id` which keys have an id.
    ///
    /// # Errors
    /// What changed; damage in the dictionary.
    pub(crate) fn validate(
        &self,
        stripes: &VersionTable,
        index_changes: u64,
        has_id: impl Fn(&Key) -> Result<bool>,
    ) -> Result<(), Failure> {
        // Nothing was noted of an index while it was not there.
        let has_other_indexes = index_changes != self.index_changes;
        let has_changed = |item: ReadKey| {
            stripes.last_change(item) > self.epoch || has_other_indexes && matches!(item, ReadKey::Value(..))
        };
        if let Some(&item) = self.items.iter().find(|&&item| has_changed(item)) {
            return Err(Failure::Conflict(Conflict::Changed(item)));
        }
        for key in &self.absent {
            if has_id(key)? {
                return Err(Failure::Conflict(Conflict::Created(key.clone())));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conflict(reads: &ReadSet, stripes: &VersionTable, known: &[&str]) -> Option<Conflict> {
        let has_id = |key: &Key| Ok(known.iter().any(|&known| *key == Key::from(known)));
        match reads.validate(stripes, 0, has_id) {
            Ok(()) => None,
            Err(Failure::Conflict(conflict)) => Some(conflict),
            Err(Failure::Error(error)) => panic!("{error}"),
        }
    }

    #[test]
    fn what_changed_since_is_a_conflict() {
        let mut stripes = VersionTable::default();
        stripes.begin(3);
        let mut reads = ReadSet::new(3, 0);
        (0..5_000).for_each(|i| reads.push(ReadKey::OutList(i % 10)));
        assert!(reads.items.len() < 2 * MANY);
        reads.push_absent(&"x".into());
        stripes.change(ReadKey::OutList(77), 4);
        assert_eq!(conflict(&reads, &stripes, &["y"]), None);
        assert_eq!(conflict(&reads, &stripes, &["x"]), Some(Conflict::Created("x".into())));
        stripes.change(ReadKey::OutList(7), 4);
        assert_eq!(conflict(&reads, &stripes, &[]), Some(Conflict::Changed(ReadKey::OutList(7))));
        let mut younger = ReadSet::new(4, 0);
        younger.push(ReadKey::OutList(7));
        assert_eq!(conflict(&younger, &stripes, &[]), None);
    }
}
