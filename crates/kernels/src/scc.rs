//! Strongly connected components.
//!
//! **Result**: for every vertex the smallest id of its component: of the vertices that paths lead to from
//! it, and back from there.
//!
//! **Algorithm**: most graphs have one giant component. A vertex that very likely lies in it, the *pivot*,
//! is searched from in both directions at once, by a thread each. The search that is done first has found
//! a set that paths do not leave in its direction, so that no component stretches across its border; its
//! thread goes on with the vertices outside. The other search goes on inside the set only, and what both
//! have found is the component of the pivot; its thread goes on with what is left of the set. Both find
//! the components of their part by Tarjan's depth-first search, in Pearce's form.
//!
//! The searches need no levels. While many vertices join, all that are outside are asked in turn: whoever
//! has a neighbour in the set joins, seen at once by those that come later, and a list is left at its
//! first hit.
//!
//! Two threads, and not more: the searches are bound by what they know of the set, a bitmap that fits in a
//! cache as long as one thread alone writes it. Sharing it cost more than the second thread gained.
//!
//! Of an undirected graph they are the weakly connected components. Without in-edges, the depth-first
//! search goes over the whole graph.
//!
//! **Parameters**: the pivot is the vertex with the largest product of arcs in and arcs out.
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
use std::sync::{Mutex, OnceLock};

use base::VertexId;
use base::memory::{as_atomic_u32, zeroed_huge};
use graph::{Direction, InEdges, Page, Side};

use crate::context::bytes_for;
use crate::vertex_subset::CHUNK;
use crate::wcc::{WccParams, wcc};
use crate::{Context, Result};

use reach::{Closed, Reach};
use tarjan::{Arcs, Tally, Tarjan};
pub use verify::verify;

/// There is nothing to choose.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SccParams {}

/// The components.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SccResult {
    /// The smallest id of the component of each vertex, by vertex id; of a dead vertex, its own id.
    pub labels: Vec<VertexId>,
    /// The number of components; dead vertices form none.
    pub components: u64,
    /// The number of vertices of the largest.
    pub largest: u64,
}

/// Bytes a vertex: labels, numbers, the stacks of both parts or one of them and the queue of a search, and
/// bitmaps.
const BYTES_A_VERTEX: u64 = 4 + 4 + tarjan::STACK_BYTES + 4 + 1;

/// Bytes a vertex of an undirected graph.
const WEAK_BYTES_A_VERTEX: u64 = 4 + 4 + 1;

/// The strongly connected components of the graph.
///
/// *Cost*: every arc about once in either direction, usually fewer; out-arcs once where the graph has no
/// in-edges. *Memory*: 29 bytes a vertex, 9 of an undirected graph. *Determinism*: the same at any number
/// of threads.
///
/// # Errors
/// The budget is too small, the graph is damaged, or the work was cancelled.
pub fn scc<G: InEdges>(ctx: &Context<'_>, graph: &G, _params: &SccParams) -> Result<SccResult> {
    if graph.direction() == Direction::Undirected {
        ctx.require_memory("scc", bytes_for(graph, WEAK_BYTES_A_VERTEX))?;
        let weak = wcc(ctx, graph, &WccParams::default())?;
        return Ok(SccResult { labels: weak.labels, components: weak.components, largest: weak.largest });
    }
    ctx.require_memory("scc", bytes_for(graph, BYTES_A_VERTEX))?;
    ctx.pool.enter(|| find(ctx, graph))
}

fn find<G: InEdges>(ctx: &Context<'_>, graph: &G) -> Result<SccResult> {
    let bound = graph.vertex_bound();
    ctx.progress.stage("strongly connected components", Some(graph.num_vertices() as u64));
    let (mut labels, mut numbers) = (zeroed_huge::<VertexId>(bound), zeroed_huge::<u32>(bound));
    let tarjan = Tarjan { ctx, graph, labels: as_atomic_u32(&mut labels), numbers: as_atomic_u32(&mut numbers) };
    let pivot = if graph.has_in_edges() { pivot(ctx, graph) } else { None };
    let tally = match pivot {
        Some(pivot) => around(ctx, graph, pivot, &tarjan)?,
        None => tarjan.run(bound, |_| !0, Arcs::All),
    };
    ctx.progress.check()?;
    graph.check()?;
    Ok(SccResult { labels, components: tally.components, largest: tally.largest })
}

/// The vertex with the largest product of arcs in and arcs out; `None` if no vertex has both.
fn pivot<G: InEdges>(ctx: &Context<'_>, graph: &G) -> Option<VertexId> {
    let largest_of = |_, chunk: Range<usize>| {
        let mut largest = (0, 0);
        let mut see = |v: VertexId, out_degree: usize| {
            if out_degree > 0 {
                largest = largest.max((out_degree as u64 * graph.in_degree(v) as u64, v));
            }
        };
        let _ = graph.for_each_out_page(chunk.start as VertexId..chunk.end as VertexId, |page| {
            match page {
                Page::Dense(page) => page.vertices().enumerate().for_each(|(i, v)| see(v, page.degree(i))),
                Page::Patched(vertices) => vertices.for_each(|v| see(v, graph.out_degree(v))),
                Page::Empty(_) => {}
            }
            ControlFlow::Continue(())
        });
        largest
    };
    let largest = ctx.pool.map_chunks(0..graph.vertex_bound(), CHUNK, largest_of).into_iter().max();
    largest.filter(|&(product, _)| product > 0).map(|(_, v)| v)
}

/// The component of the pivot, and those of the others.
fn around<G: InEdges>(ctx: &Context<'_>, graph: &G, pivot: VertexId, tarjan: &Tarjan<'_, G>) -> Result<Tally> {
    let first = OnceLock::new();
    let search = |side| -> Result<Tally> {
        let members = Reach::new(ctx, graph, pivot, side).run(&first)?;
        // Whoever is first has all that paths lead to, and the other all of that at least which both have.
        let second = first.set(Closed { side, members }).err();
        Ok(match (first.get(), second) {
            (Some(first), None) => tarjan.outside(first),
            (Some(first), Some(second)) => tarjan.inside(first, &second.members),
            (None, _) => Tally::default(),
        })
    };
    let total = Mutex::new(Ok(Tally::default()));
    ctx.pool.for_each_item(vec![Side::In, Side::Out], |_, side| {
        let found = search(side);
        let mut total = total.lock().unwrap_or_else(|e| e.into_inner());
        *total = std::mem::replace(&mut *total, Ok(Tally::default())).and_then(|total| Ok(total.and(found?)));
    });
    total.into_inner().unwrap_or_else(|e| e.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::parallel::Pool;
    use graph::{Csr, CsrBuilder};
    use testkit::Random;

    fn built(num_vertices: u32, edges: impl IntoIterator<Item = (u32, u32)>) -> Csr {
        let mut builder = CsrBuilder::<u32>::new(Direction::Directed, num_vertices as usize);
        edges.into_iter().for_each(|(source, target)| builder.edge(source, target, 1));
        builder.build().unwrap()
    }

    /// Vertices in a random order.
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
            // A part of the vertices is attached from one side only.
            let split = random.below(num_vertices + 1);
            let pairs = (0..num_edges).map(|_| (random.below(num_vertices), random.below(num_vertices)));
            let pairs: Vec<_> = pairs.map(|(u, v)| if v < split { (u.min(v), v.max(u)) } else { (u, v) }).collect();
            check(&built(num_vertices, pairs), &format!("seed {seed}"));
        }
    }
}
