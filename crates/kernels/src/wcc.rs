//! Weakly connected components.
//!
//! **Result**: for every vertex the smallest id of its component; directions are ignored.
//!
//! **Algorithm**: Afforest's plan: find most of the largest component cheaply, then link only the vertices *outside* it
//! to all their neighbors. An edge with one end in the found part is linked from its other end; an edge with both ends
//! there needs no link. So skipping needs in-edges on a directed graph; without them every edge is linked. Vertices
//! point at a smaller id of their component or at themselves, so the pointers form trees. A link sets the pointer of
//! the larger root to the smaller one, so every root ends as the smallest id of its component.
//!
//! Two methods find that part:
//! - If one vertex neighbors a large share of all vertices, one pass grows its component. Each vertex with a neighbor
//!   in the part joins, and later vertices see that at once. Membership is a bitmap that stays in the cache, and
//!   reading a list ends at its first hit. If most vertices are far from the hub, the other method runs instead.
//! - Otherwise, as in the paper, each vertex is linked to two of its neighbors, and a sample of the vertices tells the
//!   largest tree. The first link needs no random access: a list ascends, so the vertex points at the smaller of itself
//!   and its first neighbor.
//!
//! **Parameters**: a vertex with 1/64 of all vertices as neighbors is a hub; 2 neighbors and 1,024 samples, as in the
//! paper. Hubs are searched among two neighbors of each sampled vertex: a hub appears there as often as its share of
//! the edges. This reads no degrees but theirs.
//!
//! # Source
//! M. Sutton, T. Ben-Nun, A. Barak: Optimizing parallel graph connectivity computation via subgraph sampling, IPDPS
//! 2018. Ours differs in growing the component of a hub, and in the first link.

mod core;
mod forest;
mod verify;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anden_base::VertexId;
use anden_base::memory::{as_atomic_u32, zeroed_huge};
use anden_graph::{Direction, Graph, GraphKind};

use crate::context::bytes_for;
use crate::vertex_subset::CHUNK;
use crate::{Context, Result};

use forest::Forest;
pub use verify::verify;

/// Parameters of [`wcc`]: none.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct WccParams {}

/// Result of [`wcc`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WccResult {
    /// The smallest id in the component of each vertex, by vertex id; a dead vertex has its own id.
    pub labels: Vec<VertexId>,
    /// The number of components; dead vertices form none.
    pub components: u64,
    /// The number of vertices of the largest component.
    pub largest: u64,
}

/// The weakly connected components of the graph.
///
/// *Cost*: a few entries of each list, and all edges of the vertices outside the largest component. All edges of a
/// directed graph without in-edges, and of any graph on a disk, in stored order. *Memory*: 9 bytes a vertex.
/// *Determinism*: equal at any number of threads.
///
/// # Errors
/// The budget is too small, the graph is damaged, or the work was cancelled.
pub fn wcc<G: Graph>(ctx: &Context<'_>, graph: &G, _params: &WccParams) -> Result<WccResult> {
    // Labels, sizes, and the bitmap of a core.
    ctx.require_memory("wcc", bytes_for(graph, 4 + 4 + 1))?;
    afforest(ctx, graph)
}

fn afforest<G: Graph>(ctx: &Context<'_>, graph: &G) -> Result<WccResult> {
    let bound = graph.vertex_bound();
    ctx.progress.stage("connected components", Some(3 * bound as u64));
    let mut labels = zeroed_huge::<VertexId>(bound);
    let run = WccSearch { ctx, graph, forest: Forest(as_atomic_u32(&mut labels)) };
    let common = if ctx.reads_from_disk(graph) {
        run.link_in_order()?
    } else {
        match run.hub() {
            Some(hub) => run.link_outside_core(hub)?,
            None => run.link_outside_sample()?,
        }
    };
    let (components, largest) = run.sizes(common)?;
    graph.check()?;
    Ok(WccResult { labels, components, largest })
}

/// A running search for components.
struct WccSearch<'a, G> {
    ctx: &'a Context<'a>,
    graph: &'a G,
    forest: Forest<'a>,
}

/// The lists that together hold all neighbors of a vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WccLists {
    /// Out-lists: the graph is undirected.
    Out,
    /// Out-lists and in-lists.
    Both,
    /// Neither: a directed graph without in-edges.
    Unknown,
}

impl<G: Graph> WccSearch<'_, G> {
    fn lists(&self) -> WccLists {
        match self.graph.graph_kind() {
            GraphKind::Undirected => WccLists::Out,
            GraphKind::Directed if self.graph.has_lists(Direction::In) => WccLists::Both,
            GraphKind::Directed => WccLists::Unknown,
        }
    }

    /// Calls `body` with chunks of all vertices, in parallel.
    fn each_chunk(&self, body: impl Fn(Range<VertexId>) + Sync) -> Result<()> {
        let bound = self.graph.vertex_bound();
        self.ctx.pool.for_each_chunk(0..bound, CHUNK, |_, chunk| {
            if !self.ctx.progress.is_cancelled() {
                body(chunk.start as VertexId..chunk.end as VertexId);
            }
        });
        self.ctx.progress.advance(bound as u64);
        Ok(self.ctx.progress.check()?)
    }

    /// Links each vertex to all its out-neighbors in stored order. Returns a vertex of the probably largest tree.
    ///
    /// On a disk, this reads every byte once; methods that skip lists read most of them several times.
    fn link_in_order(&self) -> Result<Option<VertexId>> {
        self.each_chunk(|chunk| self.forest.plant(chunk))?;
        let Some(seed) = self.forest.sample_busiest(self.graph) else { return Ok(None) };
        self.link_around(seed)?;
        Ok(Some(seed))
    }

    /// Links two neighbors of each vertex, then all those outside the largest tree. Returns a vertex of that tree.
    fn link_outside_sample(&self) -> Result<Option<VertexId>> {
        let (forest, graph) = (&self.forest, self.graph);
        self.each_chunk(|chunk| forest.point_at_first(graph, chunk))?;
        // Flat trees make the paths of later links short.
        self.each_chunk(|chunk| forest.flatten_all(chunk))?;
        self.each_chunk(|chunk| forest.link_second(graph, chunk))?;
        let largest = forest.sample_largest(graph);
        let lists = self.lists();
        // An edge between a skipped vertex and another is linked from that other end, which needs lists of both
        // directions.
        let skipped = largest.filter(|_| lists != WccLists::Unknown);
        self.each_chunk(|chunk| forest.link_out_lists(graph, chunk, skipped))?;
        if lists == WccLists::Both {
            self.each_chunk(|chunk| forest.link_in_lists(graph, chunk, skipped))?;
        }
        Ok(largest)
    }

    /// Points every vertex at its root. Returns the number of components and the size of the largest. `common` is a
    /// vertex of the most frequent tree.
    fn sizes(&self, common: Option<VertexId>) -> Result<(u64, u64)> {
        let (forest, graph, bound) = (&self.forest, self.graph, self.graph.vertex_bound());
        let common = common.map(|v| forest.root(v));
        // Roots and the common tree have counters of their own, so few vertices need an atomic addition by label.
        let mut others = zeroed_huge::<u32>(bound);
        let counts = as_atomic_u32(&mut others);
        let (components, common_count) = (AtomicU64::new(0), AtomicU64::new(0));
        let has_others = AtomicBool::new(false);
        let has_dead = graph.num_vertices() < bound;
        self.each_chunk(|chunk| {
            let (mut roots, mut in_common) = (0, 0);
            for v in chunk {
                let root = forest.flatten(v);
                if root == v {
                    roots += u64::from(!has_dead || graph.is_live(v));
                } else if Some(root) == common {
                    in_common += 1;
                } else {
                    counts[root as usize].fetch_add(1, Ordering::Relaxed);
                    has_others.store(true, Ordering::Relaxed);
                }
            }
            components.fetch_add(roots, Ordering::Relaxed);
            common_count.fetch_add(in_common, Ordering::Relaxed);
        })?;
        let mut largest = common_count.into_inner();
        // One component is often all there is, which saves the pass over the counts.
        if has_others.into_inner() {
            let maxima = self.ctx.pool.map_chunks(0..bound, 1 << 16, |_, chunk| others[chunk].iter().copied().max());
            largest = largest.max(u64::from(maxima.into_iter().flatten().max().unwrap_or(0)));
        }
        let components = components.into_inner();
        // The counts leave out the root of each component.
        Ok((components, if components == 0 { 0 } else { largest + 1 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anden_base::parallel::Pool;
    use anden_graph::Graph;
    use anden_testkit::{FragmentedGraph, for_each_graph};

    /// The method of finding components.
    #[derive(Clone, Copy, Debug)]
    enum WccMethod {
        InOrder,
        Sampled,
        Around(VertexId),
    }

    fn by<G: Graph>(pool: &Pool, graph: &G, way: WccMethod) -> WccResult {
        let ctx = Context::new(pool);
        let mut labels = vec![0; graph.vertex_bound()];
        let run = WccSearch { ctx: &ctx, graph, forest: Forest(as_atomic_u32(&mut labels)) };
        let common = match way {
            WccMethod::InOrder => run.link_in_order(),
            WccMethod::Sampled => run.link_outside_sample(),
            WccMethod::Around(hub) => run.link_outside_core(hub),
        };
        let common = common.unwrap();
        let (components, largest) = run.sizes(common).unwrap();
        WccResult { labels, components, largest }
    }

    fn check<G: Graph>(pool: &Pool, graph: &G, what: &str) {
        let bound = graph.vertex_bound() as VertexId;
        let hubs =
            [0, bound / 2, bound.saturating_sub(1)].into_iter().filter(|&hub| hub < bound).map(WccMethod::Around);
        for way in [WccMethod::InOrder, WccMethod::Sampled].into_iter().chain(hubs) {
            let result = by(pool, graph, way);
            assert_eq!(verify(graph, &WccParams::default(), &result), Ok(()), "{what}, {way:?}");
        }
    }

    #[test]
    fn hubs_are_found_where_there_are_any() {
        let pool = Pool::new(1).unwrap();
        let (mut found, mut missed) = (0, 0);
        for_each_graph(|name, csr| {
            let ctx = Context::new(&pool);
            let mut labels = vec![0; csr.vertex_bound()];
            let run = WccSearch { ctx: &ctx, graph: csr, forest: Forest(as_atomic_u32(&mut labels)) };
            let degree = |v| {
                csr.degree(Direction::Out, v)
                    + if run.lists() == WccLists::Both { csr.degree(Direction::In, v) } else { 0 }
            };
            let bound = csr.vertex_bound();
            let largest = (0..bound as VertexId).map(degree).max().unwrap_or(0);
            match run.hub() {
                Some(hub) => {
                    assert!(degree(hub) >= (bound / 64).max(1), "{name}");
                    found += 1;
                }
                None => missed += usize::from(run.lists() != WccLists::Unknown && largest >= (bound / 8).max(1)),
            }
        });
        assert!(found > 0 && missed == 0, "{found} found, {missed} of large ones missed");
    }

    #[test]
    fn all_ways_find_the_components_of_every_graph() {
        for threads in [1, 3] {
            let pool = Pool::new(threads).unwrap();
            for_each_graph(|name, csr| {
                check(&pool, csr, name);
                check(&pool, &FragmentedGraph::new(csr), &format!("{name} in pieces"));
            });
        }
    }
}
