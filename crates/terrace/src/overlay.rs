//! Batches over a base: what is live then holds only what differs from it.
//!
//! One plane holds the edges that the base lacks, another the edges of the base that are gone (with the
//! weight that they have there). An edge of the base with a new weight is in both. So a reader takes the
//! base's list, leaves out what is gone, and appends plain lists of what was added; where nothing was
//! removed, he asks nothing.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use base::VertexId;
use base::parallel::Pool;
use base::simd::prefetch;
use graph::{Adjacency, Weight};

use crate::change::{Change, Sink, Update, cut_between_edges};
use crate::crew::num_parts;
use crate::terrace::SERIAL_BATCH;
use crate::{Plane, Result, Space, Value};

/// The graph that lies below a live one, and does not change.
pub trait Base<W>: Sync {
    /// What one worker looks edges up with.
    type Search<'a>: Search<W>
    where
        Self: 'a;

    /// For looking up edges, best in ascending order.
    fn search(&self) -> Self::Search<'_>;

    /// Whether there is no edge to be found.
    fn is_empty(&self) -> bool {
        false
    }

    /// This list of a plane will differ in versions that are published from now on, in no entry before `first`, or is as
    /// it was: for whoever notes what a reader need not look for. Workers call it for each list of a batch, ascending
    /// within a worker's part.
    fn touch(&self, _plane: Plane, _list: VertexId, _first: VertexId) {}
}

/// Looks up edges of a base.
pub trait Search<W> {
    /// What stands beside the edge; `None` where the base has no such edge.
    ///
    /// # Errors
    /// The base is damaged there.
    fn find(&mut self, source: VertexId, target: VertexId) -> base::Result<Option<W>>;

    /// Calls `found` with what stands beside each of the edges, in a base that may have several.
    ///
    /// # Errors
    /// As for [`find`](Self::find).
    fn find_all(&mut self, source: VertexId, target: VertexId, found: &mut dyn FnMut(W)) -> base::Result<()> {
        self.find(source, target).map(|value| value.into_iter().for_each(found))
    }

    /// These lists, ascending, will be searched next: a hint to read them from a disk. A source may be named several times.
    fn read_ahead(&self, _sources: impl Iterator<Item = VertexId>) {}

    /// The list of `source` will be searched within a few microseconds: a hint to fetch its place.
    fn prefetch_list(&self, _source: VertexId) {}

    /// The edge will be looked for within a microsecond: a hint to fetch the list.
    fn prefetch_edge(&self, _source: VertexId, _target: VertexId) {}
}

/// Tells a base of the lists that sorted changes of a plane name.
#[inline]
pub(crate) fn touch_lists<W, C: Change<W>>(base: &impl Base<W>, plane: Plane, sorted: &[C]) {
    let mut last = None;
    for change in sorted {
        if last.replace(change.source()) != Some(change.source()) {
            base.touch(plane, change.source(), change.target());
        }
    }
}

/// How many changes ahead the base is told of lists, and of edges.
const LISTS_AHEAD: usize = 24;
const EDGES_AHEAD: usize = 12;

/// How many changes the base is told of together, to read their lists from a disk. A disk serves this many reads at once,
/// and the pages stay in a small memory until they are used.
const READ_TOGETHER: usize = 512;

/// What a batch means for the two planes of a side. Kept from batch to batch.
#[derive(Debug)]
pub(crate) struct Split<W> {
    pub(crate) added: Vec<Update<W>>,
    pub(crate) removed: Vec<Update<W>>,
}

impl<W> Default for Split<W> {
    fn default() -> Self {
        Self { added: Vec::new(), removed: Vec::new() }
    }
}

impl<W: Value> Split<W> {
    /// Asks the base for every edge of a sorted batch, in place of the one before. Where nothing is `removed`
    /// yet, nothing can be taken out of that plane.
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

    /// Asks the base for every edge of a sorted batch; leaves additions and removals of edges alone, without those that
    /// only take something out of a plane.
    fn extend_all<C: Change<W>>(&mut self, base: &impl Base<W>, changes: &[C], multigraph: bool) -> Result<()> {
        if !multigraph {
            self.extend(&mut base.search(), changes, false)?;
            self.added.retain(|change| change.addition.is_some());
            return Ok(());
        }
        self.extend_parallel(&mut base.search(), changes)?;
        // What comes behind the last removal of a pair is added.
        let mut removed_below = None;
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

    /// Asks the base of a multigraph: edges of it that are removed stay in the plane of removals, all of a pair, and
    /// whatever the pair is to have is in the plane of additions.
    fn extend_parallel<C: Change<W>>(&mut self, base: &mut impl Search<W>, changes: &[C]) -> Result<()> {
        for group in changes.chunk_by(|a, b| a.key() == b.key()) {
            let (source, target) = (group[0].source(), group[0].target());
            self.added.extend(group.iter().map(|change| Update { source, target, addition: change.addition() }));
            if group.iter().any(|change| change.addition().is_none()) {
                let first = self.removed.len();
                self.removed.push(Update { source, target, addition: None });
                let removed = &mut self.removed;
                base.find_all(source, target, &mut |value| {
                    removed.push(Update { source, target, addition: Some(value) });
                })?;
                if self.removed.len() == first + 1 {
                    self.removed.pop();
                }
            }
        }
        Ok(())
    }

    fn extend<C: Change<W>>(&mut self, base: &mut impl Search<W>, changes: &[C], is_any_removed: bool) -> Result<()> {
        changes.iter().take(LISTS_AHEAD).for_each(|change| base.prefetch_list(change.source()));
        changes.iter().take(EDGES_AHEAD).for_each(|change| base.prefetch_edge(change.source(), change.target()));
        for start in (0..changes.len()).step_by(READ_TOGETHER) {
            let part = start..changes.len().min(start + READ_TOGETHER);
            base.read_ahead(changes[part.clone()].iter().map(C::source));
            self.extend_part(base, changes, part, is_any_removed)?;
        }
        Ok(())
    }

    /// Asks the base for the edges of a part of the changes.
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
            if changes.get(i + 1).is_some_and(|next| next.key() == change.key()) {
                continue;
            }
            let (source, target) = (change.source(), change.target());
            let found = base.find(source, target)?;
            let addition = change.addition();
            // The base has what is wanted, or nothing is wanted.
            let is_as_in_base = match (&addition, &found) {
                (None, _) => true,
                (Some(wanted), Some(old)) => wanted.is_same(old),
                (Some(_), None) => false,
            };
            // An edge of the base is in the plane of additions only with another weight.
            if found.is_none() || W::WORDS > 0 {
                self.added.push(Update { source, target, addition: addition.filter(|_| !is_as_in_base) });
            }
            if found.is_some() {
                let is_back = addition.is_some() && is_as_in_base;
                if !is_back || is_any_removed {
                    self.removed.push(Update { source, target, addition: found.filter(|_| !is_back) });
                }
            }
        }
        Ok(())
    }
}

/// What a batch changes in a base: what a container over it would hold that held nothing before. Sorted.
#[derive(Debug)]
pub struct Differences<W> {
    /// Edges that the base lacks, or has with another weight.
    pub added: Vec<Update<W>>,
    /// Edges of the base that are gone, or have another weight; with what stands beside them there.
    pub removed: Vec<Update<W>>,
}

/// Finds out what a batch changes in a base, without a container; part by part, in order. Sources and targets are below
/// `bound`. In a simple graph, the last of several changes of an edge counts; in a multigraph, a removal takes
/// all edges of its pair.
///
/// Cost: the batch is sorted, and each edge looked up once.
///
/// # Errors
/// The base is damaged.
pub fn differences<W: Value, C: Change<W>>(
    pool: &Pool,
    base: &impl Base<W>,
    changes: &[C],
    (bound, multigraph): (usize, bool),
    space: &mut Space<C>,
) -> Result<Vec<Differences<W>>> {
    let part = |sorted: &[C]| -> Result<Differences<W>> {
        let mut split = Split::default();
        split.extend_all(base, sorted, multigraph)?;
        Ok(Differences { added: split.added, removed: split.removed })
    };
    if changes.len() <= SERIAL_BATCH {
        return Ok(vec![part(space.sort.sorted(changes, bound))?]);
    }
    let buckets: Vec<_> = space.sort.buckets(pool, changes, bound).into_iter().enumerate().collect();
    let parts = Mutex::new(Vec::with_capacity(buckets.len()));
    pool.for_each_item(buckets, |_, (i, bucket)| {
        let part = part(bucket.sort());
        parts.lock().unwrap_or_else(PoisonError::into_inner).push((i, part));
    });
    let mut parts = parts.into_inner().unwrap_or_else(PoisonError::into_inner);
    parts.sort_unstable_by_key(|&(i, _)| i);
    parts.into_iter().map(|(_, part)| part).collect()
}

/// The effective changes of a plane, for who wants them.
#[derive(Debug)]
pub(crate) struct Listed<W>(pub(crate) Vec<Update<W>>);

impl<W> Default for Listed<W> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<W: Value, C: Change<W>> Sink<C> for Listed<W> {
    #[inline(always)]
    fn effective(&mut self, change: &C) {
        self.0.push(Update { source: change.source(), target: change.target(), addition: change.addition() });
    }

    fn absorb(&mut self, Self(mut later): Self) {
        self.0.append(&mut later);
    }
}

/// What a batch did to the planes of the out-lists, the other way round: for those of the in-lists. Kept
/// by the caller from batch to batch.
#[derive(Debug)]
pub struct Mirror<W> {
    pub(crate) changes: Vec<Update<W>>,
    pub(crate) space: Space<Update<W>>,
}

impl<W> Default for Mirror<W> {
    fn default() -> Self {
        Self { changes: Vec::new(), space: Space::default() }
    }
}

impl<W: Value> Mirror<W> {
    /// Takes these changes, with source and target swapped, in place of those before.
    pub(crate) fn fill(&mut self, pool: &Pool, parts: &[Listed<W>]) {
        /// Up to this many are moved by one thread: others would not be awake in time.
        const SERIAL: usize = 1 << 14;
        let nothing = Update { source: 0, target: 0, addition: None };
        let len = parts.iter().map(|part| part.0.len()).sum();
        self.changes.resize(len, nothing);
        let mut rest = &mut self.changes[..];
        let mut pairs = Vec::with_capacity(parts.len());
        for Listed(part) in parts {
            let (own, others) = rest.split_at_mut(part.len());
            pairs.push((own, &part[..]));
            rest = others;
        }
        let swap = |_, (to, from): (&mut [Update<W>], &[Update<W>])| {
            for (to, from) in to.iter_mut().zip(from) {
                *to = Update { source: from.target, target: from.source, addition: from.addition };
            }
        };
        if len <= SERIAL {
            pairs.into_iter().for_each(|pair| swap(0, pair));
        } else {
            pool.for_each_item(pairs, swap);
        }
    }
}

/// The lists of a plain CSR are a base.
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
            fn find(&mut self, source: VertexId, target: VertexId) -> base::Result<Option<$type>> {
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

/// Where in all lists the edge stands. A vertex beyond the base has no edges there.
#[inline]
fn position(lists: &Adjacency, source: VertexId, target: VertexId) -> Option<usize> {
    let range = list_range(lists, source);
    let list = &lists.targets()[range.clone()];
    list.binary_search(&target).ok().map(|at| range.start + at)
}

/// A short list whole; of a long one, where a search begins.
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
