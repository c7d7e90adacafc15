//! Betweenness centrality.
//!
//! **Result**: for every vertex the sum, over the sources, of the part of the shortest paths from the
//! source to every other vertex that pass through it; ends of paths do not count. The sums are raw:
//! not normalised, and in an undirected graph with all vertices as sources every pair counts twice,
//! once from each end. Parallel edges are paths of their own.
//!
//! **Algorithm**: Brandes'. A breadth-first search from each source counts the shortest paths to every
//! vertex, level by level, by push or pull as [`edge_map`](crate::edge_map()) decides. Then the levels
//! are walked back: the dependency of a vertex is gathered from its successors, which are its
//! out-neighbours in the next level, found with a bitmap of that level that stays in cache. One array
//! serves both ways: once the dependency of a vertex is known, its path count is replaced by what its
//! predecessors need of it, (1 + dependency) / paths.
//!
//! **Parameters**: the sources. Without in-edges everything is pushed.
//!
//! # Source
//! U. Brandes: A faster algorithm for betweenness centrality, Journal of Mathematical Sociology 25(2),
//! 2001. K. Madduri et al.: A faster parallel algorithm and efficient multithreaded implementations for
//! evaluating betweenness centrality on massive datasets, IPDPS 2009 (successors in place of
//! predecessors). Ours differs: levels are bitmaps, nothing is kept per edge.

mod dependencies;
mod paths;
mod verify;

use base::VertexId;
use base::memory::{as_atomic_u64, zeroed_huge};
use graph::InEdges;

use crate::context::{bytes_for, require_vertex};
use crate::edge_map::{LEAN_BYTES, SEARCH_BYTES};
use crate::{Context, Error, Result};

pub use verify::verify;

/// From where paths are counted.
#[derive(Clone, Debug, Default)]
pub struct BcParams {
    /// The sources.
    pub sources: BcSources,
}

/// A choice of sources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BcSources {
    /// Every vertex: the exact centrality, at the cost of a search from each.
    #[default]
    All,
    /// These; one that is named twice counts twice.
    Given(Vec<VertexId>),
    /// So many different vertices with out-edges, or all such where there are fewer, chosen by a seed.
    Sampled {
        /// How many.
        count: usize,
        /// The same seed gives the same sources.
        seed: u64,
    },
}

/// The centralities.
#[derive(Clone, Debug, PartialEq)]
pub struct BcResult {
    /// The sources, in the order in which they were worked off.
    pub sources: Vec<VertexId>,
    /// The sum of dependencies of each vertex, by vertex id.
    pub scores: Vec<f64>,
}

/// The betweenness centrality of every vertex.
///
/// *Cost*: for each source, every edge that leads out of a reached vertex, twice. *Memory*: 20 bytes a
/// vertex and some bits, 12 bytes a source, and 12 to 16 for each vertex of the largest frontier that is
/// pushed, or less where the budget asks for it. *Determinism*: equal to 1e-9 of a score's size, since path counts beyond 2^53
/// are rounded.
///
/// # Errors
/// A source does not exist, the budget is too small, there are more shortest paths between two vertices than an `f64` can hold
/// (about 1e308), the graph is damaged, or the work was cancelled.
pub fn bc<G: InEdges>(ctx: &Context<'_>, graph: &G, params: &BcParams) -> Result<BcResult> {
    let bound = graph.vertex_bound() as u64;
    let num_sources = match &params.sources {
        BcSources::All => bound,
        BcSources::Given(sources) => sources.len() as u64,
        BcSources::Sampled { count, .. } => bound.min(*count as u64),
    };
    // A list of them grows to twice its length, by way of three times that.
    let held = bytes_for(graph, HELD_BYTES) + 12 * num_sources;
    let lean = ctx.must_save("bc", held + SEARCH_BYTES * bound, held + LEAN_BYTES * bound)?;
    let sources = match &params.sources {
        BcSources::All => (0..graph.vertex_bound() as VertexId).filter(|&v| graph.is_live(v)).collect(),
        BcSources::Given(sources) => {
            sources.iter().try_for_each(|&source| require_vertex(graph, source))?;
            sources.clone()
        }
        BcSources::Sampled { count, seed } => sample(graph, *count, *seed),
    };
    ctx.progress.stage("betweenness centrality", Some(sources.len() as u64));
    ctx.pool.enter(|| brandes(ctx, graph, sources, lean))
}

/// What is held for each vertex: its score, its number of paths, its place in a level, and bitmaps.
const HELD_BYTES: u64 = 8 + 8 + 4 + 1;

fn brandes<G: InEdges>(ctx: &Context<'_>, graph: &G, sources: Vec<VertexId>, lean: bool) -> Result<BcResult> {
    let bound = graph.vertex_bound();
    let mut scores = zeroed_huge::<u64>(bound);
    let mut values = zeroed_huge::<u64>(bound);
    for (i, &source) in sources.iter().enumerate() {
        if i > 0 {
            ctx.pool.for_each_part_mut(&mut values, 1 << 16, |_, part| part.fill(0));
        }
        let levels = paths::count(ctx, graph, source, as_atomic_u64(&mut values), lean)?;
        let is_finite =
            dependencies::add(ctx, graph, source, &levels, as_atomic_u64(&mut values), as_atomic_u64(&mut scores))?;
        if !is_finite {
            let needs = "fewer than 1e308 shortest paths between any two vertices";
            return Err(Error::Unsupported { kernel: "bc", needs });
        }
        ctx.progress.advance(1);
    }
    graph.check()?;
    Ok(BcResult { sources, scores: scores.into_iter().map(f64::from_bits).collect() })
}

/// Different vertices with out-edges, in the order of a random walk through all ids.
fn sample<G: InEdges>(graph: &G, count: usize, seed: u64) -> Vec<VertexId> {
    let bound = graph.vertex_bound();
    let has_edges = |v: VertexId| graph.is_live(v) && graph.out_degree(v) > 0;
    // A permutation of the ids: multiplication by an odd number and mixing of high bits into low ones
    // are one-to-one below a power of two; what falls beyond the bound is stepped over.
    let bits = bound.next_power_of_two().trailing_zeros();
    let mask = (1_u64 << bits) - 1;
    let shift = (bits / 2).max(1);
    let permuted = |index: u64| {
        (0..3_u64).fold(index.wrapping_add(seed) & mask, |x, round| {
            let x = x.wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ (seed.rotate_left(round as u32 * 21) << 1)) & mask;
            x ^ (x >> shift)
        })
    };
    let candidates = (0..=mask).map(permuted).filter(|&v| v < bound as u64).map(|v| v as VertexId);
    candidates.filter(|&v| has_edges(v)).take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::parallel::Pool;
    use graph::{CsrBuilder, Direction};

    #[test]
    fn samples_are_different_vertices_with_edges() {
        for test in testkit::graphs() {
            let csr = test.build().unwrap();
            let with_edges = csr.out_lists().offsets().windows(2).filter(|pair| pair[0] < pair[1]).count();
            for seed in [0, 1, u64::MAX] {
                let mut some = sample(&csr, 7, seed);
                assert_eq!(some, sample(&csr, 7, seed));
                some.sort_unstable();
                some.dedup();
                assert_eq!(some.len(), with_edges.min(7), "{} by seed {seed}", test.name);
                assert_eq!(sample(&csr, usize::MAX, seed).len(), with_edges, "{} by seed {seed}", test.name);
            }
        }
    }

    #[test]
    fn a_path_has_its_known_centrality() {
        let mut builder = CsrBuilder::<u32>::new(Direction::Undirected, 5);
        (0..4).for_each(|v| builder.edge(v, v + 1, 1));
        let pool = Pool::new(2).unwrap();
        let result = bc(&Context::new(&pool), &builder.build().unwrap(), &BcParams::default()).unwrap();
        assert_eq!(result.scores, [0.0, 6.0, 8.0, 6.0, 0.0]);
    }

    #[test]
    fn more_paths_than_a_float_holds_are_an_error() {
        let num_diamonds = 1100;
        let mut builder = CsrBuilder::<u32>::new(Direction::Directed, 3 * num_diamonds + 1);
        for i in 0..num_diamonds as VertexId {
            let top = 3 * i;
            [(top, top + 1), (top, top + 2), (top + 1, top + 3), (top + 2, top + 3)]
                .into_iter()
                .for_each(|(s, t)| builder.edge(s, t, 1));
        }
        let (pool, graph) = (Pool::new(1).unwrap(), builder.build().unwrap());
        let params = |source| BcParams { sources: BcSources::Given(vec![source]) };
        let ctx = Context::new(&pool);
        assert!(matches!(bc(&ctx, &graph, &params(0)), Err(Error::Unsupported { .. })));
        assert!(bc(&ctx, &graph, &params(600)).is_ok());
        assert!(matches!(bc(&ctx, &graph, &params(9999)), Err(Error::NoVertex { .. })));
    }
}
