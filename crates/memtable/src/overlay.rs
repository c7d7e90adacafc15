//! Batches over a base: the memtable then holds differences from the base only.
//!
//! One adjacency table holds the arcs that the base lacks. Another holds the arcs of the base that are removed, with
//! their values in the base. An arc of the base with a new value is in both. A reader takes the list of the base,
//! leaves out the removed arcs, and appends the added ones, which are plain lists. Lists without removals need no
//! test per arc.

use std::ops::Range;

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_base::simd::prefetch;
use anden_graph::{Adjacency, Weight};
use parking_lot::Mutex;

use crate::change::{Change, EntryUpdate, Sink, cut_between_edges, num_parts};
use crate::sort::SERIAL_BATCH;
use crate::{AdjacencyTable, EntryValue, Result, Space};

/// The immutable graph below a memtable.
pub trait Base<W>: Sync {
    /// Search state of one worker.
    type Search<'a>: Search<W>
    where
        Self: 'a;

    /// Creates a search, which is fastest for ascending edges.
    fn search(&self) -> Self::Search<'_>;

    /// Whether the base has no edges.
    fn is_empty(&self) -> bool {
        false
    }

    /// Reports a list of an adjacency table that may differ in later versions, from the entry `first` on. Workers
    /// call this for each list of a batch, ascending within a worker's part.
    ///
    /// A base may note the lists for readers, which need not look for changes in others.
    fn mark_changed(&self, _adjacency_table: AdjacencyTable, _list: VertexId, _first: VertexId) {}
}

/// Searches a base for edges.
pub trait Search<W> {
    /// Returns the value of an arc, or `None` if the base lacks it.
    ///
    /// # Errors
    /// The base is damaged there.
    fn find(&mut self, source: VertexId, target: VertexId) -> anden_base::Result<Option<W>>;

    /// Calls `found` with the value of each parallel arc.
    ///
    /// # Errors
    /// As for [`find`](Self::find).
    fn find_all(&mut self, source: VertexId, target: VertexId, found: &mut dyn FnMut(W)) -> anden_base::Result<()> {
        self.find(source, target).map(|value| value.into_iter().for_each(found))
    }

    /// Hints that these lists are searched next, to read them from a disk. Sources ascend and may repeat.
    fn read_ahead(&self, _sources: impl Iterator<Item = VertexId>) {}

    /// Hints that the list of `source` is searched within a few microseconds, to fetch its place.
    fn prefetch_list(&self, _source: VertexId) {}

    /// Hints that the arc is searched within a microsecond, to fetch the list.
    fn prefetch_edge(&self, _source: VertexId, _target: VertexId) {}
}

/// Tells a base which lists the sorted changes of an adjacency table name.
#[inline]
pub(crate) fn touch_lists<W, C: Change<W>>(base: &impl Base<W>, adjacency_table: AdjacencyTable, sorted: &[C]) {
    let mut last = None;
    for change in sorted {
        if last.replace(change.source()) != Some(change.source()) {
            base.mark_changed(adjacency_table, change.source(), change.target());
        }
    }
}

/// Prefetch distances in changes: for lists, and for edges.
const LISTS_AHEAD: usize = 24;
const EDGES_AHEAD: usize = 12;

/// Number of changes whose lists are read from a disk together. A disk serves this many reads at once, and the pages
/// stay in a small memory until they are used.
const READ_TOGETHER: usize = 512;

/// Changes of a batch to the two adjacency tables of a direction. Kept from batch to batch.
#[derive(Debug)]
pub(crate) struct SplitBatch<W> {
    pub(crate) added: Vec<EntryUpdate<W>>,
    pub(crate) removed: Vec<EntryUpdate<W>>,
}

impl<W> Default for SplitBatch<W> {
    fn default() -> Self {
        Self { added: Vec::new(), removed: Vec::new() }
    }
}

impl<W: EntryValue> SplitBatch<W> {
    /// Searches the base for each edge of a sorted batch, and replaces the content. Without `is_any_removed`, the
    /// table of removals is empty, and no arc is taken out of it.
    pub(crate) fn fill<C: Change<W>>(
        &mut self,
        pool: &Pool,
        base: &impl Base<W>,
        changes: &[C],
        is_any_removed: bool,
        multigraph: bool,
    ) -> Result<()> {
        self.added.clear();
        self.removed.clear();
        if multigraph {
            return self.extend_parallel(&mut base.search(), changes);
        }
        let num_parts = num_parts(pool, changes.len());
        if num_parts == 1 {
            return self.extend(&mut base.search(), changes, is_any_removed);
        }
        let parts = pool.share(cut_between_edges(changes, num_parts), |_, part| -> Result<Self> {
            let mut split = Self::default();
            split.extend(&mut base.search(), part, is_any_removed)?;
            Ok(split)
        });
        for part in parts {
            let mut part = part?;
            self.added.append(&mut part.added);
            self.removed.append(&mut part.removed);
        }
        Ok(())
    }

    /// Searches the base for each edge of a sorted batch. Keeps only additions to the two adjacency tables, and none
    /// of the changes that take arcs out of an adjacency table.
    fn extend_all<C: Change<W>>(&mut self, base: &impl Base<W>, changes: &[C], multigraph: bool) -> Result<()> {
        if !multigraph {
            self.extend(&mut base.search(), changes, false)?;
            self.added.retain(|change| change.addition.is_some());
            return Ok(());
        }
        self.extend_parallel(&mut base.search(), changes)?;
        // Only additions after the last removal of a pair remain.
        let mut removed_below = None;
        // Read backward, a removal comes before the additions that it undoes.
        self.added.reverse();
        self.added.retain(|change| {
            if change.addition.is_none() {
                removed_below = Some(change.key());
            }
            removed_below != Some(change.key())
        });
        self.added.reverse();
        self.removed.retain(|change| change.addition.is_some());
        Ok(())
    }

    /// Searches the base of a multigraph. A removal puts all arcs of its pair in the base into the table of removals.
    /// All changes of the pair go to the table of additions.
    fn extend_parallel<C: Change<W>>(&mut self, base: &mut impl Search<W>, changes: &[C]) -> Result<()> {
        for group in changes.chunk_by(|a, b| a.key() == b.key()) {
            let (source, target) = (group[0].source(), group[0].target());
            self.added.extend(group.iter().map(|change| EntryUpdate { source, target, addition: change.addition() }));
            if group.iter().any(|change| change.addition().is_none()) {
                let first = self.removed.len();
                // The removal comes first, so that the table then holds each arc of the base once.
                self.removed.push(EntryUpdate { source, target, addition: None });
                let removed = &mut self.removed;
                base.find_all(source, target, &mut |value| {
                    removed.push(EntryUpdate { source, target, addition: Some(value) });
                })?;
                // The base has no such arc, so the table of removals has none either.
                if self.removed.len() == first + 1 {
                    self.removed.pop();
                }
            }
        }
        Ok(())
    }

    fn extend<C: Change<W>>(&mut self, base: &mut impl Search<W>, changes: &[C], is_any_removed: bool) -> Result<()> {
        // The first changes. Later ones are announced while earlier ones are searched.
        changes.iter().take(LISTS_AHEAD).for_each(|change| base.prefetch_list(change.source()));
        changes.iter().take(EDGES_AHEAD).for_each(|change| base.prefetch_edge(change.source(), change.target()));
        for start in (0..changes.len()).step_by(READ_TOGETHER) {
            let part = start..changes.len().min(start + READ_TOGETHER);
            base.read_ahead(changes[part.clone()].iter().map(C::source));
            self.extend_part(base, changes, part, is_any_removed)?;
        }
        Ok(())
    }

    /// Searches the base for the edges of a part of the changes.
    fn extend_part<C: Change<W>>(
        &mut self,
        base: &mut impl Search<W>,
        changes: &[C],
        part: Range<usize>,
        is_any_removed: bool,
    ) -> Result<()> {
        for i in part {
            let change = &changes[i];
            if let Some(next) = changes.get(i + LISTS_AHEAD) {
                base.prefetch_list(next.source());
            }
            if let Some(next) = changes.get(i + EDGES_AHEAD) {
                base.prefetch_edge(next.source(), next.target());
            }
            // Only the last of several changes of an edge counts.
            if changes.get(i + 1).is_some_and(|next| next.key() == change.key()) {
                continue;
            }
            let (source, target) = (change.source(), change.target());
            let found = base.find(source, target)?;
            let addition = change.addition();
            // The base already has the wanted value, or the edge is removed.
            let is_as_in_base = match (&addition, &found) {
                (None, _) => true,
                (Some(wanted), Some(old)) => wanted.is_same(old),
                (Some(_), None) => false,
            };
            // An arc of the base is in the table of additions only with another value.
            if found.is_none() || W::WORDS > 0 {
                self.added.push(EntryUpdate { source, target, addition: addition.filter(|_| !is_as_in_base) });
            }
            if found.is_some() {
                let is_back = addition.is_some() && is_as_in_base;
                // An empty table of removals has no arc to take out.
                if !is_back || is_any_removed {
                    self.removed.push(EntryUpdate { source, target, addition: found.filter(|_| !is_back) });
                }
            }
        }
        Ok(())
    }
}

/// Differences of a batch from a base, sorted: the adjacency tables of a memtable that was empty before.
#[derive(Debug)]
pub struct Differences<W> {
    /// Arcs that the base lacks or has with another value.
    pub added: Vec<EntryUpdate<W>>,
    /// Arcs of the base that are removed or have another value, with their values in the base.
    pub removed: Vec<EntryUpdate<W>>,
}

/// Finds the differences of a batch from a base without a memtable, part by part in order. Sources and targets are
/// below `bound`. In a simple graph, the last of several changes of an edge counts. In a multigraph, a removal takes
/// all edges of its pair.
///
/// Cost: sorts the batch, and searches the base once for each edge.
///
/// # Errors
/// The base is damaged.
pub fn differences<W: EntryValue, C: Change<W>>(
    pool: &Pool,
    base: &impl Base<W>,
    changes: &[C],
    (bound, multigraph): (usize, bool),
    space: &mut Space<C>,
) -> Result<Vec<Differences<W>>> {
    let part = |sorted: &[C]| -> Result<Differences<W>> {
        let mut split = SplitBatch::default();
        split.extend_all(base, sorted, multigraph)?;
        Ok(Differences { added: split.added, removed: split.removed })
    };
    // Waking workers takes longer than so small a batch.
    if changes.len() <= SERIAL_BATCH {
        return Ok(vec![part(space.sort.sorted(changes, bound))?]);
    }
    let buckets: Vec<_> = space.sort.buckets(pool, changes, bound).into_iter().enumerate().collect();
    let parts = Mutex::new(Vec::with_capacity(buckets.len()));
    pool.for_each_item(buckets, |_, (i, bucket)| {
        let part = part(bucket.sort());
        parts.lock().push((i, part));
    });
    let mut parts = parts.into_inner();
    // Parts end in any order.
    parts.sort_unstable_by_key(|&(i, _)| i);
    parts.into_iter().map(|(_, part)| part).collect()
}

/// Collects the effective changes of an adjacency table.
#[derive(Debug)]
pub(crate) struct Listed<W>(pub(crate) Vec<EntryUpdate<W>>);

impl<W> Default for Listed<W> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<W: EntryValue, C: Change<W>> Sink<C> for Listed<W> {
    #[inline(always)]
    fn effective(&mut self, change: &C) {
        self.0.push(EntryUpdate { source: change.source(), target: change.target(), addition: change.addition() });
    }

    fn absorb(&mut self, Self(mut later): Self) {
        self.0.append(&mut later);
    }
}

/// Transpose of a batch's effects on the out-lists, for the in-lists. The caller keeps it from batch to batch.
#[derive(Debug)]
pub struct TransposedChanges<W> {
    pub(crate) changes: Vec<EntryUpdate<W>>,
    pub(crate) space: Space<EntryUpdate<W>>,
}

impl<W> Default for TransposedChanges<W> {
    fn default() -> Self {
        Self { changes: Vec::new(), space: Space::default() }
    }
}

impl<W: EntryValue> TransposedChanges<W> {
    /// Replaces the content by these changes with source and target swapped.
    pub(crate) fn fill(&mut self, pool: &Pool, parts: &[Listed<W>]) {
        /// One thread moves up to this many: waking others takes longer.
        const SERIAL: usize = 1 << 14;
        let nothing = EntryUpdate { source: 0, target: 0, addition: None };
        let len = parts.iter().map(|part| part.0.len()).sum();
        // Not cleared before: all entries are overwritten below, so only growth needs a fill.
        self.changes.resize(len, nothing);
        let mut rest = &mut self.changes[..];
        let mut pairs = Vec::with_capacity(parts.len());
        for Listed(part) in parts {
            let (own, others) = rest.split_at_mut(part.len());
            pairs.push((own, &part[..]));
            rest = others;
        }
        let swap = |_, (to, from): (&mut [EntryUpdate<W>], &[EntryUpdate<W>])| {
            for (to, from) in to.iter_mut().zip(from) {
                *to = EntryUpdate { source: from.target, target: from.source, addition: from.addition };
            }
        };
        if len <= SERIAL {
            pairs.into_iter().for_each(|pair| swap(0, pair));
        } else {
            pool.for_each_item(pairs, swap);
        }
    }
}

/// Makes the lists of a plain CSR a base.
macro_rules! impl_base {
    ($($type:ty: $value:expr),*) => {
        $(impl Base<$type> for Adjacency {
            type Search<'a> = &'a Self;

            fn search(&self) -> &Self {
                self
            }
        }

        impl Search<$type> for &Adjacency {
            #[inline]
            fn find(&mut self, source: VertexId, target: VertexId) -> anden_base::Result<Option<$type>> {
                Ok(position(self, source, target).and_then(|at| $value(self, at)))
            }

            #[inline]
            fn prefetch_list(&self, source: VertexId) {
                prefetch(self.offsets(), source as usize);
            }

            #[inline]
            fn prefetch_edge(&self, source: VertexId, _: VertexId) {
                prefetch_targets(self, source);
            }
        })*
    };
}

fn weight_at<W: Weight>(lists: &Adjacency, at: usize) -> Option<W> {
    W::of(lists.weights()?)?.get(at).copied()
}

impl_base!((): |_: &Adjacency, _| Some(()), u32: weight_at, i64: weight_at, f32: weight_at, f64: weight_at);

fn list_range(lists: &Adjacency, source: VertexId) -> Range<usize> {
    match lists.offsets().get(source as usize..source as usize + 2) {
        Some(&[start, end]) => start as usize..end as usize,
        _ => 0..0,
    }
}

/// Position of the arc among those of all lists. A vertex beyond the base has no arcs.
#[inline]
fn position(lists: &Adjacency, source: VertexId, target: VertexId) -> Option<usize> {
    let range = list_range(lists, source);
    let list = &lists.targets()[range.clone()];
    list.binary_search(&target).ok().map(|at| range.start + at)
}

/// Fetches a short list whole, and from a long list the places where a binary search starts.
#[inline]
fn prefetch_targets(lists: &Adjacency, source: VertexId) {
    const LINE: usize = 16;
    let range = list_range(lists, source);
    if range.len() <= 4 * LINE {
        range.step_by(LINE).for_each(|at| prefetch(lists.targets(), at));
    } else {
        (1..4).for_each(|quarter| prefetch(lists.targets(), range.start + range.len() / 4 * quarter));
    }
}
