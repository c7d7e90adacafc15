//! Sets of vertices: the input and output of one round of an algorithm.
//!
//! A small set is a list of ids, a large one a bitmap (Ligra's two forms); a third form is *all*.
//! [`edge_map`](crate::edge_map()) picks the form; the members stay equal.
//!
//! # Source
//! J. Shun and G. Blelloch: Ligra, a lightweight graph processing framework for shared memory,
//! PPoPP 2013, section 4.1.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use anden_base::VertexId;
use anden_base::bitmap::{AtomicBitmap, Bitmap, ones};
use anden_base::parallel::Pool;
use anden_graph::Graph;
use parking_lot::Mutex;

use crate::Context;

/// The number of vertices that a worker takes at a time: a multiple of 64, so that no two workers share a bitmap word.
pub(crate) const CHUNK: usize = 4096;

/// The number of list entries that a worker takes at a time.
pub(crate) const LIST_CHUNK: usize = 1024;

/// A set of vertices of one graph.
#[derive(Clone, Debug)]
pub struct VertexSubset {
    bound: usize,
    members: Members,
}

/// The forms of a set.
#[derive(Clone, Debug)]
pub(crate) enum Members {
    /// Every id below the bound.
    All,
    /// Distinct ids, in any order.
    Sparse(Vec<VertexId>),
    /// A bit for each id, and the number of set bits.
    Dense(Bitmap, usize),
}

impl VertexSubset {
    /// The empty set, for a graph with ids below `bound`.
    pub fn empty(bound: usize) -> Self {
        Self { bound, members: Members::Sparse(Vec::new()) }
    }

    /// One vertex.
    ///
    /// # Panics
    /// If the vertex is not below the bound.
    pub fn single(bound: usize, vertex: VertexId) -> Self {
        Self::from_list(bound, vec![vertex])
    }

    /// The vertices of a list without duplicates.
    ///
    /// # Panics
    /// If a vertex is not below the bound.
    pub fn from_list(bound: usize, vertices: Vec<VertexId>) -> Self {
        assert!(vertices.iter().all(|&v| (v as usize) < bound), "a vertex is not below the bound {bound}");
        Self::sparse(bound, vertices)
    }

    /// The vertices whose bits are set; the length of the bitmap is the bound.
    pub fn from_bitmap(bits: Bitmap) -> Self {
        let count = bits.count_ones();
        Self { bound: bits.len(), members: Members::Dense(bits, count) }
    }

    /// Every live vertex of `graph`. Cost: constant if no vertex is dead, else linear.
    pub fn all(ctx: &Context<'_>, graph: &impl Graph) -> Self {
        let bound = graph.vertex_bound();
        if graph.num_vertices() == bound {
            return Self { bound, members: Members::All };
        }
        let bits = AtomicBitmap::new(bound);
        ctx.pool.for_each_chunk(0..bound, CHUNK, |_, chunk| {
            chunk.filter(|&v| graph.is_live(v as VertexId)).for_each(|v| {
                bits.set(v);
            });
        });
        Self::from_bitmap(bits.into_bitmap())
    }

    pub(crate) fn sparse(bound: usize, vertices: Vec<VertexId>) -> Self {
        Self { bound, members: Members::Sparse(vertices) }
    }

    pub(crate) fn dense(bits: AtomicBitmap, count: usize) -> Self {
        Self { bound: bits.len(), members: Members::Dense(bits.into_bitmap(), count) }
    }

    pub(crate) fn members(&self) -> &Members {
        &self.members
    }

    /// One more than the largest id that could be in the set.
    pub fn bound(&self) -> usize {
        self.bound
    }

    /// The number of vertices in the set.
    pub fn len(&self) -> usize {
        match &self.members {
            Members::All => self.bound,
            Members::Sparse(list) => list.len(),
            Members::Dense(_, count) => *count,
        }
    }

    /// Whether the set has no vertex.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether `vertex` is in the set. Cost: constant, but linear if the set is a list.
    pub fn contains(&self, vertex: VertexId) -> bool {
        match &self.members {
            Members::All => (vertex as usize) < self.bound,
            Members::Sparse(list) => list.contains(&vertex),
            Members::Dense(bits, _) => (vertex as usize) < self.bound && bits.get(vertex as usize),
        }
    }

    /// The ids, ascending.
    pub fn to_list(&self) -> Vec<VertexId> {
        match &self.members {
            Members::All => (0..self.bound as VertexId).collect(),
            Members::Sparse(list) => {
                let mut list = list.clone();
                list.sort_unstable();
                list
            }
            Members::Dense(bits, _) => bits.iter_ones().map(|v| v as VertexId).collect(),
        }
    }

    /// Calls `body(worker, vertex)` for each vertex, in parallel and in no order.
    pub fn for_each(&self, pool: &Pool, body: impl Fn(usize, VertexId) + Sync) {
        match &self.members {
            Members::All => {
                pool.for_each_chunk(0..self.bound, CHUNK, |worker, chunk| {
                    chunk.for_each(|v| body(worker, v as VertexId));
                });
            }
            Members::Sparse(list) => {
                pool.for_each_chunk(0..list.len(), LIST_CHUNK, |worker, chunk| {
                    list[chunk].iter().for_each(|&v| body(worker, v));
                });
            }
            Members::Dense(bits, _) => {
                let words = bits.words();
                pool.for_each_chunk(0..words.len(), CHUNK / 64, |worker, chunk| {
                    for i in chunk {
                        ones(words[i]).for_each(|bit| body(worker, (i * 64 + bit) as VertexId));
                    }
                });
            }
        }
    }

    /// Turns a bitmap (or *all*) into a list.
    pub(crate) fn make_sparse(&mut self, pool: &Pool) {
        let list = match &self.members {
            Members::Sparse(_) => return,
            Members::All => (0..self.bound as VertexId).collect(),
            Members::Dense(bits, _) => {
                let (lists, words) = (WorkerLists::new(pool), bits.words());
                pool.for_each_chunk(0..words.len(), CHUNK / 64, |worker, chunk| {
                    lists.with(worker, |list| {
                        for i in chunk {
                            list.extend(ones(words[i]).map(|bit| (i * 64 + bit) as VertexId));
                        }
                    });
                });
                lists.join()
            }
        };
        self.members = Members::Sparse(list);
    }

    /// Turns a list into a bitmap; keeps *all*.
    pub(crate) fn make_dense(&mut self, pool: &Pool) {
        if let Members::Sparse(list) = &self.members {
            let (bits, count) = (AtomicBitmap::new(self.bound), list.len());
            self.for_each(pool, |_, v| {
                bits.set(v as usize);
            });
            self.members = Members::Dense(bits.into_bitmap(), count);
        }
    }

    /// Sorts a list, for reads in stored order.
    pub(crate) fn sort(&mut self) {
        if let Members::Sparse(list) = &mut self.members {
            list.sort_unstable();
        }
    }
}

/// Calls `body` with each bitmap word that covers some of the vertices, and the mask of these vertices.
#[inline(always)]
pub(crate) fn each_word(vertices: Range<VertexId>, mut body: impl FnMut(usize, u64)) {
    let mut start = vertices.start;
    while start < vertices.end {
        let first = start & !63;
        let end = vertices.end.min(first + 64);
        body(first as usize / 64, (!0 >> (64 - (end - first))) & (!0 << (start - first)));
        start = end;
    }
}

/// One list for each worker, filled in parallel.
pub(crate) struct WorkerLists(Vec<Mutex<Vec<VertexId>>>);

impl WorkerLists {
    pub(crate) fn new(pool: &Pool) -> Self {
        Self((0..pool.num_threads()).map(|_| Mutex::new(Vec::new())).collect())
    }

    /// Lends a worker its list. Take the lock once for a whole chunk of work.
    #[inline]
    pub(crate) fn with<R>(&self, worker: usize, body: impl FnOnce(&mut Vec<VertexId>) -> R) -> R {
        body(&mut self.0[worker].lock())
    }

    /// Joins all lists into one.
    pub(crate) fn join(self) -> Vec<VertexId> {
        let lists = self.0.into_iter().map(Mutex::into_inner);
        let mut lists: Vec<Vec<VertexId>> = lists.filter(|list| !list.is_empty()).collect();
        // A single list needs no copy.
        if lists.len() <= 1 {
            return lists.pop().unwrap_or_default();
        }
        let mut all = Vec::with_capacity(lists.iter().map(Vec::len).sum());
        lists.into_iter().for_each(|list| all.extend_from_slice(&list));
        all
    }
}

/// Calls `body` for each vertex of the set, in parallel.
pub fn vertex_map(ctx: &Context<'_>, subset: &VertexSubset, body: impl Fn(VertexId) + Sync) {
    subset.for_each(ctx.pool, |_, v| body(v));
}

/// The vertices of the set for which `keep` returns true, called once for each, in parallel.
pub fn vertex_filter(ctx: &Context<'_>, subset: &VertexSubset, keep: impl Fn(VertexId) -> bool + Sync) -> VertexSubset {
    if let Members::Sparse(vertices) = &subset.members {
        let lists = WorkerLists::new(ctx.pool);
        ctx.pool.for_each_chunk(0..vertices.len(), LIST_CHUNK, |worker, chunk| {
            lists.with(worker, |list| list.extend(vertices[chunk].iter().filter(|&&v| keep(v))));
        });
        return VertexSubset::sparse(subset.bound, lists.join());
    }
    let (bits, count) = (AtomicBitmap::new(subset.bound), AtomicUsize::new(0));
    subset.for_each(ctx.pool, |_, v| {
        if keep(v) {
            bits.set(v as usize);
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    VertexSubset::dense(bits, count.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_holds_the_same_vertices() {
        for threads in [1, 3] {
            let pool = Pool::new(threads).unwrap();
            let ctx = Context::new(&pool);
            let wanted: Vec<VertexId> = (0..10_000).filter(|v| v % 7 == 3).collect();
            let mut set = VertexSubset::from_list(10_000, wanted.iter().rev().copied().collect());
            assert_eq!((set.to_list(), set.len()), (wanted.clone(), wanted.len()));
            set.make_dense(&pool);
            assert!(set.contains(10) && !set.contains(11) && !set.contains(10_003));
            assert_eq!((set.to_list(), set.len()), (wanted.clone(), wanted.len()));
            let dense_odd = vertex_filter(&ctx, &set, |v| v % 2 == 1).to_list();
            set.make_sparse(&pool);
            assert_eq!((set.to_list(), set.len()), (wanted.clone(), wanted.len()));
            assert_eq!(vertex_filter(&ctx, &set, |v| v % 2 == 1).to_list(), dense_odd);
            assert!(dense_odd.iter().all(|v| v % 14 == 3));
        }
    }

    #[test]
    fn all_leaves_dead_vertices_out() {
        let pool = Pool::new(2).unwrap();
        let ctx = Context::new(&pool);
        let csr = anden_testkit::graphs().iter().find(|g| g.name == "two parts").unwrap().build().unwrap();
        assert_eq!(VertexSubset::all(&ctx, &csr).len(), 95);
        let pieces = anden_testkit::FragmentedGraph::new(&csr);
        let all = VertexSubset::all(&ctx, &pieces);
        assert_eq!(all.len(), pieces.num_vertices());
        let sum = AtomicUsize::new(0);
        vertex_map(&ctx, &all, |v| {
            assert!(pieces.is_live(v));
            sum.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(sum.into_inner(), all.len());
        assert!(VertexSubset::empty(5).is_empty() && VertexSubset::single(5, 4).contains(4));
    }
}
