//! Closeness centrality.
//!
//! **Result**: for every vertex the inverse of its mean distance from the sources, times the share of the sources that
//! reach it. With all vertices as sources this is the improved formula of Wasserman and Faust, as in NetworkX:
//! (r / (n - 1)) · (r / sum of the distances from the r vertices that reach it).
//!
//! **Algorithm**: 64 breadth-first searches at once. A vertex has a word of 64 bits, one for each search: the searches
//! that have reached it. One pass over the edges of a frontier serves all searches that have it, so sources near each
//! other share work. [`edge_map`](crate::edge_map()) chooses push or pull.
//!
//! **Parameters**: the sources. A sample of them estimates the closeness of every vertex.
//!
//! # Source
//! L. Freeman: Centrality in social networks, Social Networks 1(3), 1978. S. Wasserman, K. Faust: Social Network
//! Analysis, 1994, section 5.2.2. M. Then et al.: The more the merrier: efficient multi-source graph traversal, VLDB
//! 2014. D. Eppstein, J. Wang: Fast approximation of centrality, SODA 2001 (sampling). Ours differs: a pull leaves a
//! vertex once all 64 searches have reached it.

use std::collections::{BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use anden_base::VertexId;
use anden_base::bitmap::Bitmap;
use anden_base::memory::{as_atomic_u32, as_atomic_u64, zeroed_huge};
use anden_graph::{Direction, Graph};

use crate::context::bytes_for;
use crate::edge_map::{LEAN_BYTES, ROUND_BYTES};
use crate::{Context, EdgeFunctor, EdgeMapOptions, Result, SourceChoice, VertexSubset, edge_map, vertex_map};

/// Parameters of [`closeness`].
#[derive(Clone, Debug, Default)]
pub struct ClosenessParams {
    /// The sources. A repeated vertex counts once.
    pub sources: SourceChoice,
}

/// Result of [`closeness`].
#[derive(Clone, Debug, PartialEq)]
pub struct ClosenessResult {
    /// The number of sources.
    pub num_sources: u64,
    /// The closeness of each vertex, by vertex id: 0 to 1, and 0 if no other source reaches the vertex.
    pub scores: Vec<f64>,
}

/// Searches that run at once: the bits of a word.
const AT_ONCE: usize = 64;

/// Bytes for each vertex: three words of a round, the sum of distances, the number of searches, and bitmaps.
const HELD_BYTES: u64 = 3 * 8 + 8 + 4 + 1;

/// Items of a vertex array that a worker takes at a time.
const PART: usize = 1 << 16;

/// The closeness of every vertex: how near the sources are to it, along the directions of the edges.
///
/// *Cost*: for each 64 sources, the edges that leave a reached vertex, once for each distinct distance at which some
/// source reaches it. *Memory*: 37 bytes a vertex, 12 a source, and what the frontiers take: up to 29 bytes a vertex,
/// or 3 on a small budget. *Determinism*: equal at any number of threads, bit for bit.
///
/// # Errors
/// A source does not exist, the budget is too small, the graph is damaged, or the work was cancelled.
pub fn closeness<G: Graph>(ctx: &Context<'_>, graph: &G, params: &ClosenessParams) -> Result<ClosenessResult> {
    let bound = graph.vertex_bound() as u64;
    // A growing list of sources reaches twice its length, and three times during a copy.
    let held = bytes_for(graph, HELD_BYTES) + 12 * params.sources.most(graph);
    let lean = ctx.must_save("closeness", held + ROUND_BYTES * bound, held + LEAN_BYTES * bound)?;
    let mut sources = params.sources.list(graph)?;
    // Near ids are often near in the graph, and near sources share their frontiers.
    sources.sort_unstable();
    sources.dedup();
    ctx.progress.stage("closeness centrality", Some(sources.len() as u64));
    search_all(ctx, graph, &sources, lean)
}

fn search_all<G: Graph>(ctx: &Context<'_>, graph: &G, sources: &[VertexId], lean: bool) -> Result<ClosenessResult> {
    let bound = graph.vertex_bound();
    let [mut reached, mut current, mut next] = [(); 3].map(|()| zeroed_huge::<u64>(bound));
    let (mut sums, mut counts) = (zeroed_huge::<u64>(bound), zeroed_huge::<u32>(bound));
    for (batch, sources) in sources.chunks(AT_ONCE).enumerate() {
        // Fresh memory is zero already. The words of the frontiers are zero after every batch.
        if batch > 0 {
            ctx.pool.for_each_part_mut(&mut reached, PART, |_, part| part.fill(0));
        }
        let words = Searches {
            reached: as_atomic_u64(&mut reached),
            current: as_atomic_u64(&mut current),
            next: as_atomic_u64(&mut next),
        };
        for (bit, &source) in sources.iter().enumerate() {
            words.reached[source as usize].store(1 << bit, Relaxed);
            words.current[source as usize].store(1 << bit, Relaxed);
        }
        let mut frontier = VertexSubset::from_list(bound, sources.to_vec());
        let (sums, counts) = (as_atomic_u64(&mut sums), as_atomic_u32(&mut counts));
        let mut distance = 0;
        while !frontier.is_empty() {
            distance += 1;
            let mut options = EdgeMapOptions { lean, ..EdgeMapOptions::default() };
            let found = edge_map(ctx, graph, &mut frontier, &words, &mut options)?;
            // Cleared before the new words are stored, because a vertex may be in both frontiers.
            vertex_map(ctx, &frontier, |v| words.current[v as usize].store(0, Relaxed));
            // One worker owns a vertex here, so plain loads and stores suffice.
            vertex_map(ctx, &found, |v| {
                let v = v as usize;
                let bits = words.next[v].load(Relaxed);
                words.next[v].store(0, Relaxed);
                words.current[v].store(bits, Relaxed);
                words.reached[v].store(words.reached[v].load(Relaxed) | bits, Relaxed);
                let num_searches = bits.count_ones();
                sums[v].store(sums[v].load(Relaxed) + distance * u64::from(num_searches), Relaxed);
                counts[v].store(counts[v].load(Relaxed) + num_searches, Relaxed);
            });
            frontier = found;
        }
        ctx.progress.advance(sources.len() as u64);
    }
    graph.check()?;
    let mut is_source = Bitmap::new(bound);
    sources.iter().for_each(|&source| is_source.set(source as usize));
    let scores = sums.into_iter().enumerate().map(|(v, sum)| {
        // A source reaches itself at distance 0, which the formula does not count.
        let num_others = sources.len() as u64 - u64::from(is_source.get(v));
        score(sum, u64::from(counts[v]), num_others)
    });
    Ok(ClosenessResult { num_sources: sources.len() as u64, scores: scores.collect() })
}

/// The closeness of a vertex that `count` of `num_others` sources reach, at distances with this sum.
fn score(sum: u64, count: u64, num_others: u64) -> f64 {
    // No other source reaches the vertex: 0 / 0 would be NaN.
    if sum == 0 {
        return 0.0;
    }
    (count as f64 / num_others as f64) * (count as f64 / sum as f64)
}

/// The words of 64 searches, by vertex. Each bit is a search.
struct Searches<'a> {
    /// The searches that have reached the vertex.
    reached: &'a [AtomicU64],
    /// The searches whose frontier has the vertex.
    current: &'a [AtomicU64],
    /// The searches that reach the vertex in this round.
    next: &'a [AtomicU64],
}

impl Searches<'_> {
    /// The searches that the edge brings to the target for the first time.
    #[inline(always)]
    fn new_bits(&self, source: VertexId, target: VertexId) -> u64 {
        let target = target as usize;
        let known = self.reached[target].load(Relaxed) | self.next[target].load(Relaxed);
        self.current[source as usize].load(Relaxed) & !known
    }
}

impl EdgeFunctor for Searches<'_> {
    #[inline(always)]
    fn update_atomic(&self, source: VertexId, target: VertexId, (): ()) -> bool {
        // Most edges bring nothing new, and a plain load is much cheaper than an atomic write.
        let bits = self.new_bits(source, target);
        bits != 0 && self.next[target as usize].fetch_or(bits, Relaxed) == 0
    }

    #[inline(always)]
    fn update(&self, source: VertexId, target: VertexId, (): ()) -> bool {
        let bits = self.new_bits(source, target);
        let before = self.next[target as usize].load(Relaxed);
        self.next[target as usize].store(before | bits, Relaxed);
        bits != 0 && before == 0
    }

    #[inline(always)]
    fn condition(&self, target: VertexId) -> bool {
        let target = target as usize;
        self.reached[target].load(Relaxed) | self.next[target].load(Relaxed) != u64::MAX
    }
}

/// Checks a result against one serial search from each source, with a queue.
///
/// # Errors
/// The first difference, as a sentence.
pub fn verify<G: Graph>(graph: &G, params: &ClosenessParams, result: &ClosenessResult) -> Result<(), String> {
    let bound = graph.vertex_bound();
    let sources = params.sources.list(graph).map_err(|error| error.to_string())?;
    let sources: BTreeSet<VertexId> = sources.into_iter().collect();
    if result.num_sources != sources.len() as u64 || result.scores.len() != bound {
        return Err(format!(
            "{} sources and {} scores, {} and {bound} wanted",
            result.num_sources,
            result.scores.len(),
            sources.len()
        ));
    }
    let (mut sums, mut counts) = (vec![0; bound], vec![0; bound]);
    for &source in &sources {
        let mut distances = vec![u64::MAX; bound];
        distances[source as usize] = 0;
        let mut queue = VecDeque::from([source]);
        while let Some(vertex) = queue.pop_front() {
            let distance = distances[vertex as usize] + 1;
            let _ = graph.for_each_fragment(Direction::Out, vertex, |list| {
                for &neighbor in list {
                    if distances[neighbor as usize] == u64::MAX {
                        distances[neighbor as usize] = distance;
                        sums[neighbor as usize] += distance;
                        counts[neighbor as usize] += 1;
                        queue.push_back(neighbor);
                    }
                }
                ControlFlow::Continue(())
            });
        }
    }
    for (v, &found) in result.scores.iter().enumerate() {
        let others = sources.len() as u64 - u64::from(sources.contains(&(v as VertexId)));
        let wanted = match sums[v] {
            0 => 0.0,
            sum => (counts[v] * counts[v]) as f64 / (others * sum) as f64,
        };
        // Written so that a NaN counts as a difference.
        let is_near = (found - wanted).abs() <= 1e-12;
        if !is_near {
            return Err(format!("vertex {v} has closeness {found}, {wanted} wanted"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use anden_base::parallel::Pool;
    use anden_base::progress::CancelFlag;
    use anden_graph::{CsrBuilder, GraphKind};
    use anden_testkit::on_every_view;

    use super::*;
    use crate::Error;

    fn check(ctx: &Context<'_>, graph: &impl Graph, what: &str) {
        let last = graph.vertex_bound().saturating_sub(1) as VertexId;
        let given = [last, last / 2, last].into_iter().filter(|&v| graph.has_vertex(v)).collect();
        let mut choices = vec![SourceChoice::Given(given), SourceChoice::Sampled { count: 70, seed: 3 }];
        // A search from each vertex of a large graph would take the verifier long.
        if graph.vertex_bound() < 200 {
            choices.push(SourceChoice::All);
        }
        for sources in choices {
            let params = ClosenessParams { sources };
            let result = closeness(ctx, graph, &params).unwrap();
            assert_eq!(verify(graph, &params, &result), Ok(()), "{what}, {params:?}");
        }
    }

    #[test]
    fn closeness_over_all_graphs() {
        on_every_view!(Context::new, "closeness", check);
    }

    /// The figures are those of NetworkX 3.6, `closeness_centrality`.
    #[test]
    fn small_graph_has_its_known_closeness() {
        let mut builder = CsrBuilder::<u32>::new(GraphKind::Directed, 6);
        [(0, 1), (1, 2), (2, 3), (0, 3), (4, 3)].into_iter().for_each(|(s, t)| builder.edge(s, t, 1));
        let (pool, graph) = (Pool::new(2).unwrap(), builder.build().unwrap());
        let found = closeness(&Context::new(&pool), &graph, &ClosenessParams::default()).unwrap();
        assert_eq!(found.num_sources, 6);
        let wanted = [0.0, 0.2, 2.0 / 5.0 * 2.0 / 3.0, 4.0 / 5.0 * 4.0 / 5.0, 0.0, 0.0];
        found.scores.iter().zip(wanted).for_each(|(found, wanted)| assert!((found - wanted).abs() < 1e-12));
    }

    #[test]
    fn verifier_notices_a_wrong_score() {
        let csr = anden_testkit::graphs().into_iter().find(|g| g.name == "path").unwrap().build().unwrap();
        let (pool, params) = (Pool::new(1).unwrap(), ClosenessParams::default());
        let right = closeness(&Context::new(&pool), &csr, &params).unwrap();
        for wrong_score in [0.0, f64::NAN, 1.0] {
            let mut wrong = right.clone();
            wrong.scores[7] = wrong_score;
            assert!(verify(&csr, &params, &wrong).unwrap_err().contains("vertex 7"));
        }
        let wrong = ClosenessResult { num_sources: 3, ..right };
        assert!(verify(&csr, &params, &wrong).unwrap_err().contains("3 sources"));
    }

    #[test]
    fn unknown_source_budget_and_cancellation_are_errors() {
        let csr = anden_testkit::graphs().into_iter().find(|g| g.name == "path").unwrap().build().unwrap();
        let (pool, flag) = (Pool::new(2).unwrap(), CancelFlag::default());
        let ctx = Context::new(&pool);
        let unknown = ClosenessParams { sources: SourceChoice::Given(vec![1 << 20]) };
        assert!(matches!(closeness(&ctx, &csr, &unknown), Err(Error::NoVertex { .. })));
        let small = Context { memory: Some(100), ..ctx };
        assert!(matches!(closeness(&small, &csr, &ClosenessParams::default()), Err(Error::Memory { .. })));
        flag.cancel();
        let cancelled = closeness(&Context { progress: &flag, ..ctx }, &csr, &ClosenessParams::default());
        assert!(matches!(cancelled, Err(Error::Base(anden_base::Error::Cancelled))));
    }
}
