//! Weakly connected components.
//!
//! **Result**: for every vertex the smallest id of its component; directions are ignored.
//!
//! **Algorithm**: Afforest's plan: find most of the largest component at little cost, then link only
//! the vertices *outside* it to all their neighbours. An edge with an end in the part found is linked
//! from its other end, or has both ends there already; so a directed graph needs in-edges to skip, and
//! without them links every edge. Vertices point at a smaller id of their component or at themselves,
//! so the pointers form trees. A link sets the pointer of the larger root to the smaller one: every
//! root ends as the smallest id of its component.
//!
//! There are two ways to find that part. Where one vertex has a good part of all as neighbours, its
//! component is grown in one pass: whoever has a neighbour in the part joins, seen at once by those
//! that come later. Membership is a bitmap that stays in cache, and a list is left at its first hit.
//! Elsewhere, as in the paper, each vertex is linked to two of its neighbours, and a sample of the
//! vertices tells which tree is the largest. The first of the two costs no random access: a list
//! ascends, so pointing at the smaller of the vertex and its first neighbour is a link that needs no
//! look at other vertices.
//!
//! **Parameters**: a vertex is a hub if it has 1/64 of all vertices as neighbours; 2 neighbours and
//! 1,024 samples, as in the paper. Hubs are looked for among two neighbours of each sample, where they
//! are met as often as their share of the edges is large: that reads no degrees but theirs.
//!
//! # Source
//! M. Sutton, T. Ben-Nun, A. Barak: Optimizing parallel graph connectivity computation via subgraph
//! sampling, IPDPS 2018. Ours differs in growing the component of a hub, and in the first link.

mod core;
mod forest;
mod verify;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::VertexId;
use base::memory::{as_atomic_u32, zeroed_huge};
use graph::{Direction, InEdges};

use crate::context::bytes_for;
use crate::vertex_subset::CHUNK;
use crate::{Context, Result};

use forest::Forest;
pub use verify::verify;

/// There is nothing to choose.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct WccParams {}

/// The components.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WccResult {
    /// The smallest id of the component of each vertex, by vertex id; of a dead vertex, its own id.
    pub labels: Vec<VertexId>,
    /// The number of components; dead vertices form none.
    pub components: u64,
    /// The number of vertices of the largest.
    pub largest: u64,
}

/// The weakly connected components of the graph.
///
/// *Cost*: a few entries of each list, and all edges of the vertices outside the largest component;
/// all edges of a directed graph without in-edges, and of one whose lists are read from a disk, in their order.
/// *Memory*: 9 bytes a vertex. *Determinism*: the same at any number of threads.
///
/// # Errors
/// The budget is too small, the graph is damaged, or the work was cancelled.
pub fn wcc<G: InEdges>(ctx: &Context<'_>, graph: &G, _params: &WccParams) -> Result<WccResult> {
    // Labels, sizes, and the bitmap of a core.
    ctx.require_memory("wcc", bytes_for(graph, 4 + 4 + 1))?;
    ctx.pool.enter(|| afforest(ctx, graph))
}

fn afforest<G: InEdges>(ctx: &Context<'_>, graph: &G) -> Result<WccResult> {
    let bound = graph.vertex_bound();
    ctx.progress.stage("connected components", Some(3 * bound as u64));
    let mut labels = zeroed_huge::<VertexId>(bound);
    let run = Run { ctx, graph, forest: Forest(as_atomic_u32(&mut labels)) };
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

/// One search for components under way.
struct Run<'a, G> {
    ctx: &'a Context<'a>,
    graph: &'a G,
    forest: Forest<'a>,
}

/// Which lists of a vertex hold all its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sides {
    /// The out-lists: the graph is undirected.
    Out,
    /// Out-lists and in-lists.
    Both,
    /// Neither: a directed graph without in-edges.
    Unknown,
}

impl<G: InEdges> Run<'_, G> {
    fn sides(&self) -> Sides {
        match self.graph.direction() {
            Direction::Undirected => Sides::Out,
            Direction::Directed if self.graph.has_in_edges() => Sides::Both,
            Direction::Directed => Sides::Unknown,
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

    /// Links each vertex to all its out-neighbours in the order in which the lists are stored: of a graph that does not
    /// fit in memory, every byte is read once, while ways that skip lists read most of them several times. Gives a
    /// vertex of what is probably the largest tree.
    fn link_in_order(&self) -> Result<Option<VertexId>> {
        self.each_chunk(|chunk| self.forest.plant(chunk))?;
        let Some(seed) = self.forest.sample_busiest(self.graph) else { return Ok(None) };
        self.link_around(seed)?;
        Ok(Some(seed))
    }

    /// Links two neighbours of each vertex, then the rest outside the largest tree; gives a vertex of it.
    fn link_outside_sample(&self) -> Result<Option<VertexId>> {
        let (forest, graph) = (&self.forest, self.graph);
        self.each_chunk(|chunk| forest.point_at_first(graph, chunk))?;
        self.each_chunk(|chunk| forest.flatten_all(chunk))?;
        self.each_chunk(|chunk| forest.link_second(graph, chunk))?;
        let largest = forest.sample_largest(graph);
        let sides = self.sides();
        let skipped = largest.filter(|_| sides != Sides::Unknown);
        self.each_chunk(|chunk| forest.link_out_lists(graph, chunk, skipped))?;
        if sides == Sides::Both {
            self.each_chunk(|chunk| forest.link_in_lists(graph, chunk, skipped))?;
        }
        Ok(largest)
    }

    /// Lets every vertex point at its root; gives the number of components and the size of the largest.
    /// Most vertices have the same root as `common`.
    fn sizes(&self, common: Option<VertexId>) -> Result<(u64, u64)> {
        let (forest, graph, bound) = (&self.forest, self.graph, self.graph.vertex_bound());
        let common = common.map(|v| forest.root(v));
        // Roots and the common label are counted on the side, which leaves few to count by label.
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
        if has_others.into_inner() {
            let maxima = self.ctx.pool.map_chunks(0..bound, 1 << 16, |_, chunk| others[chunk].iter().copied().max());
            largest = largest.max(u64::from(maxima.into_iter().flatten().max().unwrap_or(0)));
        }
        let components = components.into_inner();
        // The root of each component was not counted with it.
        Ok((components, if components == 0 { 0 } else { largest + 1 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::parallel::Pool;
    use graph::Graph;
    use testkit::{Pieces, for_each_graph};

    /// How components are found.
    #[derive(Clone, Copy, Debug)]
    enum Way {
        InOrder,
        Sampled,
        Around(VertexId),
    }

    fn by<G: InEdges>(pool: &Pool, graph: &G, way: Way) -> WccResult {
        let ctx = Context::new(pool);
        let mut labels = vec![0; graph.vertex_bound()];
        let run = Run { ctx: &ctx, graph, forest: Forest(as_atomic_u32(&mut labels)) };
        let common = match way {
            Way::InOrder => run.link_in_order(),
            Way::Sampled => run.link_outside_sample(),
            Way::Around(hub) => run.link_outside_core(hub),
        };
        let common = common.unwrap();
        let (components, largest) = run.sizes(common).unwrap();
        WccResult { labels, components, largest }
    }

    fn check<G: InEdges>(pool: &Pool, graph: &G, what: &str) {
        let bound = graph.vertex_bound() as VertexId;
        let hubs = [0, bound / 2, bound.saturating_sub(1)].into_iter().filter(|&hub| hub < bound).map(Way::Around);
        for way in [Way::InOrder, Way::Sampled].into_iter().chain(hubs) {
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
            let run = Run { ctx: &ctx, graph: csr, forest: Forest(as_atomic_u32(&mut labels)) };
            let degree = |v| csr.out_degree(v) + if run.sides() == Sides::Both { csr.in_degree(v) } else { 0 };
            let bound = csr.vertex_bound();
            let largest = (0..bound as VertexId).map(degree).max().unwrap_or(0);
            match run.hub() {
                Some(hub) => {
                    assert!(degree(hub) >= (bound / 64).max(1), "{name}");
                    found += 1;
                }
                None => missed += usize::from(run.sides() != Sides::Unknown && largest >= (bound / 8).max(1)),
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
                check(&pool, &Pieces::new(csr), &format!("{name} in pieces"));
            });
        }
    }
}
