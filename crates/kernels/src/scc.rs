//! Strongly connected components.
//!
//! **Result**: for every vertex the smallest id of its component. Two vertices share a component if paths lead from
//! each to the other.
//!
//! **Algorithm**: most graphs have one giant component. Two threads search from the *pivot*, a vertex that very likely
//! lies in it, one in each direction. The search that ends first has a set that no path leaves in its direction, so no
//! component crosses the border of the set. Its thread goes on with the vertices outside. The other search continues
//! only inside the set. The vertices that both searches found are the pivot's component. Its thread goes on with the
//! rest of the set. Both threads find the components of their part by Tarjan's depth-first search, in Pearce's form.
//!
//! The searches need no levels. While many vertices join, a sweep tests all vertices outside in order. Each vertex with
//! a neighbor in the set joins, later vertices see that at once, and reading a list ends at its first hit.
//!
//! Only two threads work: the bitmap of the set limits a search, and it stays in a cache only if one thread alone
//! writes it. Sharing the bitmap cost more than the second thread gained.
//!
//! On an undirected graph, the result is the weakly connected components. Without in-edges, the depth-first search
//! covers the whole graph.
//!
//! **Parameters**: the pivot is the vertex with the largest product of in-degree and out-degree.
//!
//! # Source
//! - L. Fleischer, B. Hendrickson, A. Pınar: On identifying strongly connected components in parallel,
//!   IPDPS 2000 workshops: the searches from a pivot. Ours differs in that one cuts the other short.
//! - G. Slota, S. Rajamanickam, K. Madduri: BFS and coloring-based parallel algorithms for strongly
//!   connected components and related problems, IPDPS 2014, section III: the pivot, and Tarjan's algorithm
//!   for the rest.
//! - D. Pearce: A space-efficient algorithm for finding strongly connected components, Information
//!   Processing Letters 2016, algorithm PEA_FIND_SCC2: one number a vertex.

mod reach;
mod tarjan;
mod verify;

use std::ops::{ControlFlow, Range};
use std::sync::OnceLock;

use anden_base::VertexId;
use anden_base::memory::{as_atomic_u32, zeroed_huge};
use anden_graph::{Direction, Graph, GraphKind, Page};
use parking_lot::Mutex;

use crate::context::bytes_for;
use crate::vertex_subset::CHUNK;
use crate::wcc::{WccParams, wcc};
use crate::{Context, Result};

use reach::{Reach, ReachedSet};
use tarjan::{ComponentTally, Tarjan, TarjanArcs};
pub use verify::verify;

/// Parameters of [`scc`]: none.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SccParams {}

/// Result of [`scc`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SccResult {
    /// The smallest id in the component of each vertex, by vertex id; a dead vertex has its own id.
    pub labels: Vec<VertexId>,
    /// The number of components; dead vertices form none.
    pub components: u64,
    /// The number of vertices of the largest component.
    pub largest: u64,
}

/// Bytes a vertex: labels, numbers, the stacks of both parts (or of one, with the queue of a search), and bitmaps.
const BYTES_A_VERTEX: u64 = 4 + 4 + tarjan::STACK_BYTES + 4 + 1;

/// Bytes a vertex of an undirected graph, as for [`wcc`].
const WEAK_BYTES_A_VERTEX: u64 = 4 + 4 + 1;

/// The strongly connected components of the graph.
///
/// *Cost*: every arc about once in either direction, usually fewer; without in-edges, each out-arc once. *Memory*: 29
/// bytes a vertex; undirected, 9. *Determinism*: equal at any number of threads.
///
/// # Errors
/// The budget is too small, the graph is damaged, or the work was cancelled.
pub fn scc<G: Graph>(ctx: &Context<'_>, graph: &G, _params: &SccParams) -> Result<SccResult> {
    if graph.graph_kind() == GraphKind::Undirected {
        ctx.require_memory("scc", bytes_for(graph, WEAK_BYTES_A_VERTEX))?;
        let weak = wcc(ctx, graph, &WccParams::default())?;
        return Ok(SccResult { labels: weak.labels, components: weak.components, largest: weak.largest });
    }
    ctx.require_memory("scc", bytes_for(graph, BYTES_A_VERTEX))?;
    find(ctx, graph)
}

fn find<G: Graph>(ctx: &Context<'_>, graph: &G) -> Result<SccResult> {
    let bound = graph.vertex_bound();
    ctx.progress.stage("strongly connected components", Some(graph.num_vertices() as u64));
    let (mut labels, mut numbers) = (zeroed_huge::<VertexId>(bound), zeroed_huge::<u32>(bound));
    let tarjan = Tarjan { ctx, graph, labels: as_atomic_u32(&mut labels), numbers: as_atomic_u32(&mut numbers) };
    let pivot = if graph.has_lists(Direction::In) { pivot(ctx, graph) } else { None };
    let tally = match pivot {
        Some(pivot) => around(ctx, graph, pivot, &tarjan)?,
        None => tarjan.run(bound, |_| !0, TarjanArcs::All),
    };
    ctx.progress.check()?;
    graph.check()?;
    Ok(SccResult { labels, components: tally.components, largest: tally.largest })
}

/// The vertex with the largest product of in-degree and out-degree; `None` if no vertex has both.
fn pivot<G: Graph>(ctx: &Context<'_>, graph: &G) -> Option<VertexId> {
    let largest_of = |_, chunk: Range<usize>| {
        let mut largest = (0, 0);
        let mut see = |v: VertexId, out_degree: usize| {
            if out_degree > 0 {
                largest = largest.max((out_degree as u64 * graph.degree(Direction::In, v) as u64, v));
            }
        };
        let _ = graph.for_each_page(Direction::Out, chunk.start as VertexId..chunk.end as VertexId, |page| {
            match page {
                // Degrees of a dense page come from its offsets: no list is read.
                Page::Dense(page) => page.vertices().enumerate().for_each(|(i, v)| see(v, page.degree(i))),
                Page::Patched(vertices) => vertices.for_each(|v| see(v, graph.degree(Direction::Out, v))),
                Page::Empty(_) => {}
            }
            ControlFlow::Continue(())
        });
        largest
    };
    // Ties go to the larger id, so the pivot does not depend on the threads.
    let largest = ctx.pool.map_chunks(0..graph.vertex_bound(), CHUNK, largest_of).into_iter().max();
    largest.filter(|&(product, _)| product > 0).map(|(_, v)| v)
}

/// The component of the pivot, and those of the other vertices.
fn around<G: Graph>(ctx: &Context<'_>, graph: &G, pivot: VertexId, tarjan: &Tarjan<'_, G>) -> Result<ComponentTally> {
    let first = OnceLock::new();
    let search = |direction| -> Result<ComponentTally> {
        let members = Reach::new(ctx, graph, pivot, direction).run(&first)?;
        // The first search is complete. The second, cut short, still has all vertices that both sets share.
        let second = first.set(ReachedSet { direction, members }).err();
        Ok(match (first.get(), second) {
            (Some(first), None) => tarjan.outside(first),
            (Some(first), Some(second)) => tarjan.inside(first, &second.members),
            (None, _) => ComponentTally::default(),
        })
    };
    let total = Mutex::new(Ok(ComponentTally::default()));
    ctx.pool.for_each_item(vec![Direction::In, Direction::Out], |_, direction| {
        let found = search(direction);
        let mut total = total.lock();
        *total = std::mem::replace(&mut *total, Ok(ComponentTally::default())).and_then(|total| Ok(total.and(found?)));
    });
    total.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anden_base::parallel::Pool;
    use anden_graph::{Csr, CsrBuilder};
    use anden_testkit::Random;

    fn built(num_vertices: u32, edges: impl IntoIterator<Item = (u32, u32)>) -> Csr {
        let mut builder = CsrBuilder::<u32>::new(GraphKind::Directed, num_vertices as usize);
        edges.into_iter().for_each(|(source, target)| builder.edge(source, target, 1));
        builder.build().unwrap()
    }

    /// Vertices in random order.
    fn shuffled(num_vertices: u32, seed: u64) -> Vec<u32> {
        let mut random = Random::new(seed);
        let mut order: Vec<u32> = (0..num_vertices).collect();
        (1..num_vertices).for_each(|i| order.swap(i as usize, random.below(i + 1) as usize));
        order
    }

    fn check(csr: &Csr, what: &str) -> SccResult {
        let results = [1, 2, 3, 5].map(|threads| {
            let pool = Pool::new(threads).unwrap();
            let result = scc(&Context::new(&pool), csr, &SccParams::default()).unwrap();
            assert_eq!(verify(csr, &SccParams::default(), &result), Ok(()), "{what}, {threads} threads");
            result
        });
        assert!(results.iter().all(|result| *result == results[0]), "{what}");
        results[0].clone()
    }

    #[test]
    fn long_chains_and_cycles_are_walked() {
        const N: u32 = 100_000;
        for seed in 0..2 {
            let order = shuffled(N, seed);
            let path = || order.windows(2).map(|pair| (pair[0], pair[1]));
            let chain = check(&built(N, path()), "chain");
            assert_eq!((chain.components, chain.largest), (u64::from(N), 1));
            let back = (order[N as usize - 1], order[0]);
            let cycle = check(&built(N, path().chain([back])), "cycle");
            assert_eq!((cycle.components, cycle.largest), (1, u64::from(N)));
            assert!(cycle.labels.iter().all(|&label| label == 0));
            let links = order.windows(2).step_by(2).map(|pair| (pair[1], pair[0]));
            let pairs = check(&built(N, path().chain(links)), "chain of pairs");
            assert_eq!((pairs.components, pairs.largest), (u64::from(N) / 2, 2));
        }
    }

    #[test]
    fn random_graphs_of_every_density_agree_with_the_check() {
        for seed in 0..60 {
            let mut random = Random::new(seed);
            let num_vertices = 1 + random.below(3000);
            let num_edges = random.below(4 * num_vertices);
            // The vertices below `split` have edges in one direction only.
            let split = random.below(num_vertices + 1);
            let pairs = (0..num_edges).map(|_| (random.below(num_vertices), random.below(num_vertices)));
            let pairs: Vec<_> = pairs.map(|(u, v)| if v < split { (u.min(v), v.max(u)) } else { (u, v) }).collect();
            check(&built(num_vertices, pairs), &format!("seed {seed}"));
        }
    }
}
