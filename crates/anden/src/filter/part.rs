//! A part of a view: the filters that select it, and its lists once they are laid out.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use anden_snapshots::{Entries, SnapshotView};
use parking_lot::Mutex;

use super::Filter;
use crate::Result;

/// A part of a view: a sequence of filters, and the resulting lists once they are laid out.
#[derive(Debug)]
pub(crate) struct FilteredPart {
    filters: Vec<Arc<Filter>>,
    pub(crate) laid_out: OnceLock<SnapshotView>,
    /// Serializes the layout: one thread works, others wait for its result.
    pub(crate) laying_out: Mutex<()>,
    /// A view that reports why the part cannot be laid out.
    pub(crate) failed: OnceLock<SnapshotView>,
    /// Cost of tests by single queries until now, in entries.
    pub(crate) spent: AtomicU64,
}

impl FilteredPart {
    /// Adds a filter to those of `before`. `found` holds the lists if they are cached.
    pub(crate) fn new(before: Option<&Self>, filter: Filter, found: Option<SnapshotView>) -> Self {
        // Shared: a part of a part repeats the filters before it.
        let mut filters = before.map_or(Vec::new(), |before| before.filters.clone());
        filters.push(Arc::new(filter));
        let laid_out = found.map_or_else(OnceLock::new, OnceLock::from);
        Self { filters, laid_out, laying_out: Mutex::default(), failed: OnceLock::new(), spent: AtomicU64::new(0) }
    }

    pub(crate) fn filters(&self) -> impl Iterator<Item = &Filter> {
        self.filters.iter().map(|filter| &**filter)
    }

    /// The lists, if they are laid out.
    pub(crate) fn laid_out(&self) -> Option<&SnapshotView> {
        self.laid_out.get()
    }

    /// Counts tested entries of a query.
    pub(super) fn spend(&self, num_entries: usize) {
        // An estimate needs no ordering.
        self.spent.fetch_add(num_entries as u64, Ordering::Relaxed);
    }

    /// For each entry, whether it passes all predicates over edges. A later predicate tests only what passed the
    /// earlier ones.
    pub(crate) fn keeps(&self, lists: &SnapshotView, entries: &Entries) -> Result<Vec<bool>> {
        let mut kept = vec![true; entries.len()];
        for (index, filter) in self.filters().filter_map(|filter| filter.edges.as_ref()).enumerate() {
            // The first predicate tests all entries, and needs no copy of them.
            if index == 0 {
                kept = filter.passing(lists, entries)?;
                continue;
            }
            let mut left = entries.clone();
            left.retain(|place| kept[place]);
            let mut passing = filter.passing(lists, &left)?.into_iter();
            kept.iter_mut().filter(|kept| **kept).for_each(|kept| *kept = passing.next() == Some(true));
        }
        Ok(kept)
    }
}
