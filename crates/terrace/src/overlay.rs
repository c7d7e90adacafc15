//! Batches over a base: what is live then holds only what differs from it.
//!
//! One plane holds the edges that the base lacks, another the edges of the base that are gone (with the
//! weight that they have there). An edge of the base with a new weight is in both. So a reader takes the
//! base's list, leaves out what is gone, and appends plain lists of what was added; where nothing was
//! removed, he asks nothing.

use base::VertexId;
use base::simd::prefetch;
use graph::{Adjacency, Weight};

use crate::change::{Applied, Change, Sink, Update};
use crate::{Plane, Value};

/// The graph that lies below a live one, and does not change.
pub trait Base<W>: Sync {
    /// What stands beside the edge; `None` where the base has no such edge.
    fn find(&self, source: VertexId, target: VertexId) -> Option<W>;

    /// The list of `source` will be searched within a few microseconds: a hint to fetch its place.
    fn prefetch_list(&self, _source: VertexId) {}

    /// The edge will be looked for within a microsecond: a hint to fetch the list.
    fn prefetch_edge(&self, _source: VertexId, _target: VertexId) {}
}

/// The planes that belong to one side of a base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// [`Plane::Out`] and [`Plane::OutRemoved`].
    Out,
    /// [`Plane::In`] and [`Plane::InRemoved`].
    In,
}

impl Side {
    /// Where the edges are that the base lacks.
    pub fn added(self) -> Plane {
        match self {
            Self::Out => Plane::Out,
            Self::In => Plane::In,
        }
    }

    /// Where the edges are that are gone from the base.
    pub fn removed(self) -> Plane {
        match self {
            Self::Out => Plane::OutRemoved,
            Self::In => Plane::InRemoved,
        }
    }
}

/// How many changes ahead the base is told of lists, and of edges.
const LISTS_AHEAD: usize = 24;
const EDGES_AHEAD: usize = 12;

/// What a batch means for the two planes of a side.
#[derive(Debug)]
pub(crate) struct Split<W> {
    pub(crate) added: Vec<Update<W>>,
    pub(crate) removed: Vec<Update<W>>,
}

impl<W: Value> Split<W> {
    /// Asks the base for every edge of a sorted batch. Where nothing is `removed` yet, nothing can be taken
    /// out of that plane.
    pub(crate) fn new<C: Change<W>>(base: &impl Base<W>, changes: &[C], is_any_removed: bool) -> Self {
        let mut split = Self { added: Vec::with_capacity(changes.len()), removed: Vec::new() };
        changes.iter().take(LISTS_AHEAD).for_each(|change| base.prefetch_list(change.source()));
        for (i, change) in changes.iter().enumerate() {
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
            let found = base.find(source, target);
            let addition = change.addition();
            // The base has what is wanted, or nothing is wanted.
            let is_as_in_base = addition.is_none() || addition == found;
            // An edge of the base is in the plane of additions only with another weight.
            if found.is_none() || W::WORDS > 0 {
                split.added.push(Update { source, target, addition: addition.filter(|_| !is_as_in_base) });
            }
            if found.is_some() {
                let is_back = addition.is_some() && is_as_in_base;
                if !is_back || is_any_removed {
                    split.removed.push(Update { source, target, addition: found.filter(|_| !is_back) });
                }
            }
        }
        split
    }
}

/// Effective changes of a plane, where somebody wants them.
pub(crate) trait Listing<W>: Sink<Update<W>> + Default + Send {
    fn list(&self) -> &[Update<W>];
}

/// Nobody wants them.
#[derive(Debug, Default)]
pub(crate) struct Silent;

impl<C> Sink<C> for Silent {
    #[inline(always)]
    fn effective(&mut self, _: &C) {}
}

impl<W: Value> Listing<W> for Silent {
    fn list(&self) -> &[Update<W>] {
        &[]
    }
}

impl<W: Value> Listing<W> for Vec<Update<W>> {
    fn list(&self) -> &[Update<W>] {
        self
    }
}

/// The effect on the graph of what had an effect in the two planes; appends it to `effective`.
pub(crate) fn joined<W: Value>(
    base: &impl Base<W>,
    (added, adds): (Applied, &[Update<W>]),
    (removed, removes): (Applied, &[Update<W>]),
    effective: &mut Vec<Update<W>>,
) -> Applied {
    // What changed in the plane of removals alone leads to the base, or away from it.
    let alone = |remove: &Update<W>| {
        let addition = if remove.addition.is_some() { None } else { base.find(remove.source, remove.target) };
        Update { addition, ..*remove }
    };
    let (mut num_outweighed, mut num_restored) = (0, 0);
    let mut rest = removes;
    for add in adds {
        let num_before = rest.iter().take_while(|remove| remove.key() < add.key()).count();
        effective.extend(rest[..num_before].iter().map(alone));
        rest = &rest[num_before..];
        match rest.split_first() {
            Some((remove, others)) if remove.key() == add.key() => {
                rest = others;
                let is_restored = add.addition.is_none();
                (num_restored, num_outweighed) =
                    (num_restored + u64::from(is_restored), num_outweighed + u64::from(!is_restored));
                effective.push(if is_restored { alone(remove) } else { *add });
            }
            _ => effective.push(*add),
        }
    }
    effective.extend(rest.iter().map(alone));
    Applied {
        num_added: added.num_added - num_outweighed + removed.num_removed - num_restored,
        num_removed: added.num_removed - num_restored + removed.num_added - num_outweighed,
        num_replaced: added.num_replaced + num_outweighed + num_restored,
        num_loops: added.num_loops - removed.num_loops,
    }
}

/// The lists of a plain CSR are a base.
macro_rules! impl_base {
    ($($type:ty),*) => {
        $(impl Base<$type> for Adjacency {
            #[inline]
            fn find(&self, source: VertexId, target: VertexId) -> Option<$type> {
                position(self, source, target).and_then(|at| <$type>::of(self.weights()?)?.get(at).copied())
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

impl_base!(u32, i64, f32, f64);

impl Base<()> for Adjacency {
    #[inline]
    fn find(&self, source: VertexId, target: VertexId) -> Option<()> {
        position(self, source, target).map(|_| ())
    }

    #[inline]
    fn prefetch_list(&self, source: VertexId) {
        prefetch(self.offsets(), source as usize);
    }

    #[inline]
    fn prefetch_edge(&self, source: VertexId, _: VertexId) {
        prefetch_targets(self, source);
    }
}

fn list_range(lists: &Adjacency, source: VertexId) -> std::ops::Range<usize> {
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
