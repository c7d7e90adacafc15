//! Betweenness centrality.
//!
//! **Result**: for every vertex the sum, over the sources, of its share in the shortest paths from the source to every
//! other vertex. A vertex shares in the paths that pass through it, not in those that end there. The sums are not
//! normalized: in an undirected graph with all vertices as sources, every pair counts twice, once from each end.
//! Parallel edges make separate paths.
//!
//! **Algorithm**: Brandes'. A breadth-first search from each source counts the shortest paths to every vertex, level by
//! level, by push or pull as [`edge_map`](crate::edge_map()) decides. Then a pass goes back through the levels, and
//! gathers the dependency of a vertex from its successors. These are its out-neighbors in the next level, found with a
//! bitmap that stays in the cache. One array serves both passes. Once a vertex's dependency is known, the value that
//! its predecessors need replaces its path count: (1 + dependency) / paths.
//!
//! **Parameters**: the sources. Without in-edges, every step is a push.
//!
//! # Source
//! U. Brandes: A faster algorithm for betweenness centrality, Journal of Mathematical Sociology 25(2), 2001. K. Madduri
//! et al.: A faster parallel algorithm and efficient multithreaded implementations for evaluating betweenness
//! centrality on massive datasets, IPDPS 2009 (successors instead of predecessors). Ours differs: levels are bitmaps,
//! and edges keep no state.

mod dependencies;
mod paths;
mod verify;

use std::time::{Duration, Instant};

use anden_base::VertexId;
use anden_base::memory::{as_atomic_u64, zeroed_huge};
use anden_graph::Graph;

use crate::context::bytes_for;
use crate::edge_map::{LEAN_BYTES, SEARCH_BYTES};
use crate::{Context, Error, Result, SourceChoice};

pub use verify::verify;

/// Parameters of [`bc`].
#[derive(Clone, Debug, Default)]
pub struct BcParams {
    /// The sources. A repeated vertex counts repeatedly.
    pub sources: SourceChoice,
}

/// Result of [`bc`].
#[derive(Clone, Debug, PartialEq)]
pub struct BcResult {
    /// The sources, in the order of their searches.
    pub sources: Vec<VertexId>,
    /// The sum of the dependencies of each vertex, by vertex id.
    pub scores: Vec<f64>,
    /// Time of the searches that count paths, in seconds. Sums along the paths take the rest.
    pub search_seconds: f64,
}

/// The betweenness centrality of every vertex.
///
/// *Cost*: for each source, every edge that leaves a reached vertex, twice. *Memory*: 20 bytes a vertex and some bits,
/// and 12 bytes a source. Each vertex of the largest pushed frontier takes 12 to 16 bytes more, or less on a small
/// budget. *Determinism*: equal to 1e-9 of a score's size, since path counts beyond 2^53 are rounded.
///
/// # Errors
/// - A source does not exist, the budget is too small, the graph is damaged, or the work was cancelled.
/// - Two vertices have more shortest paths than an `f64` can hold (about 1e308).
pub fn bc<G: Graph>(ctx: &Context<'_>, graph: &G, params: &BcParams) -> Result<BcResult> {
    let bound = graph.vertex_bound() as u64;
    // A growing list of sources reaches twice its length, and three times during a copy.
    let held = bytes_for(graph, HELD_BYTES) + 12 * params.sources.most(graph);
    let lean = ctx.must_save("bc", held + SEARCH_BYTES * bound, held + LEAN_BYTES * bound)?;
    let sources = params.sources.list(graph)?;
    ctx.progress.stage("betweenness centrality", Some(sources.len() as u64));
    brandes(ctx, graph, sources, lean)
}

/// Bytes for each vertex: its score, its path count, its place in a level, and bitmaps.
const HELD_BYTES: u64 = 8 + 8 + 4 + 1;

fn brandes<G: Graph>(ctx: &Context<'_>, graph: &G, sources: Vec<VertexId>, lean: bool) -> Result<BcResult> {
    let bound = graph.vertex_bound();
    let mut scores = zeroed_huge::<u64>(bound);
    let mut values = zeroed_huge::<u64>(bound);
    let mut search_time = Duration::ZERO;
    for (i, &source) in sources.iter().enumerate() {
        // Fresh memory is zero already.
        if i > 0 {
            ctx.pool.for_each_part_mut(&mut values, 1 << 16, |_, part| part.fill(0));
        }
        let started = Instant::now();
        let levels = paths::count(ctx, graph, source, as_atomic_u64(&mut values), lean)?;
        search_time += started.elapsed();
        let is_finite =
            dependencies::add(ctx, graph, source, &levels, as_atomic_u64(&mut values), as_atomic_u64(&mut scores))?;
        if !is_finite {
            let needs = "fewer than 1e308 shortest paths between any two vertices";
            return Err(Error::Unsupported { kernel: "bc", needs });
        }
        ctx.progress.advance(1);
    }
    // A damaged page looks empty and leaves a fault, so the sums are checked last.
    graph.check()?;
    // The sizes agree, so the conversion reuses the memory.
    let scores = scores.into_iter().map(f64::from_bits).collect();
    Ok(BcResult { sources, scores, search_seconds: search_time.as_secs_f64() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anden_base::parallel::Pool;
    use anden_graph::{CsrBuilder, GraphKind};

    #[test]
    fn a_path_has_its_known_centrality() {
        let mut builder = CsrBuilder::<u32>::new(GraphKind::Undirected, 5);
        (0..4).for_each(|v| builder.edge(v, v + 1, 1));
        let pool = Pool::new(2).unwrap();
        let result = bc(&Context::new(&pool), &builder.build().unwrap(), &BcParams::default()).unwrap();
        assert_eq!(result.scores, [0.0, 6.0, 8.0, 6.0, 0.0]);
    }

    #[test]
    fn more_paths_than_a_float_holds_are_an_error() {
        let num_diamonds = 1100;
        let mut builder = CsrBuilder::<u32>::new(GraphKind::Directed, 3 * num_diamonds + 1);
        for i in 0..num_diamonds as VertexId {
            let top = 3 * i;
            [(top, top + 1), (top, top + 2), (top + 1, top + 3), (top + 2, top + 3)]
                .into_iter()
                .for_each(|(s, t)| builder.edge(s, t, 1));
        }
        let (pool, graph) = (Pool::new(1).unwrap(), builder.build().unwrap());
        let params = |source| BcParams { sources: SourceChoice::Given(vec![source]) };
        let ctx = Context::new(&pool);
        assert!(matches!(bc(&ctx, &graph, &params(0)), Err(Error::Unsupported { .. })));
        assert!(bc(&ctx, &graph, &params(600)).is_ok());
        assert!(matches!(bc(&ctx, &graph, &params(9999)), Err(Error::NoVertex { .. })));
    }
}
