//! PageRank: how often a walker who follows random edges, and now and then jumps, is at a vertex.
//!
//! # Result
//! With damping `d`, `n` live vertices and `D` the scores of the vertices without out-edges (the
//! *dangling* ones), summed, round `i` gives every live vertex
//!
//! ```text
//! score[i + 1](v) = (1 - d) / n + d * (D[i] / n + sum over edges (u, v) of score[i](u) / out_degree(u))
//! ```
//!
//! from `score[0] = 1 / n`. By weight, an edge carries the part of its source's score that its weight is
//! of the weights of all edges from there, in place of `1 / out_degree(u)`; a vertex all of whose edges
//! weigh nothing is dangling. Parallel edges count as often as they are there; an undirected edge
//! leads both ways. Dead vertices have score 0 and are left out of `n`. With sources, the `(1 - d)`
//! and the dangling mass go to the sources in equal shares and to nobody else. After `i` rounds the
//! scores are within `d^i` of the limit, in the sum of absolute differences.
//!
//! # Algorithm
//! One gather of `score / out_degree` an edge reads memory at random, which is where the time goes
//! in graphs larger than the caches. The *binned* variant cuts the vertices into partitions whose
//! scores fit in the second-level cache. A round first copies, partition by partition, each score to
//! one slot for each partition that its vertex has edges to (all reads in cache, all writes in
//! sequence), then adds, partition by partition, the slots up at the targets (all writes in cache,
//! all reads in sequence). It needs out-lists only. The *pull* variant adds up the in-lists with the
//! scores prefetched some edges ahead; the *push* variant gives each worker a range of targets to
//! add up and lets it scan all out-lists for them. No variant uses atomics, and each adds the scores
//! up at a vertex in the order of the sources, so a result has the same bits at any number of
//! threads. By weight there are pull and push only.
//!
//! # Parameters
//! Damping .85 and the start are those of the first paper and of LDBC Graphalytics, which also gives
//! the treatment of dangling vertices. Without iterations and tolerance, rounds go on until the
//! scores change by less than 1e-6 in sum, as in NetworkX (which compares to 1e-6 a vertex), at most
//! 100.
//!
//! # References
//! - L. Page, S. Brin, R. Motwani, T. Winograd: The PageRank Citation Ranking, Stanford 1999.
//! - S. Beamer, K. Asanović, D. Patterson: Reducing PageRank Communication via Propagation Blocking,
//!   IPDPS 2017: the bins.
//! - K. Lakhotia, R. Kannan, V. Prasanna: Accelerating PageRank using Partition-Centric Processing,
//!   USENIX ATC 2018: one slot for each source and partition. Ours orders the slots by source
//!   partition first, so that every array is written by one worker in sequence.
//! - A. Iosup et al.: LDBC Graphalytics, VLDB 2016: the definition above.

mod bins;
mod direct;
mod score;
mod verify;
mod weighted;

use std::time::Instant;

use base::VertexId;
use graph::InEdges;

use crate::{Context, Error, Medium, Result};
use bins::Bins;
use score::{Block, Round, Score, State};

pub use bins::MAX_PARTITION_BITS;
pub use verify::{verify, verify_weighted};
pub use weighted::weighted_pagerank;

/// The bound on rounds where only a tolerance ends them.
pub const DEFAULT_MAX_ITERATIONS: u32 = 100;

/// The tolerance where neither it nor the number of iterations is given.
pub const DEFAULT_TOLERANCE: f64 = 1e-6;

/// What becomes of the scores of vertices without out-edges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// They are spread over all live vertices, or over the sources: scores add up to 1.
    #[default]
    Standard,
    /// They are dropped, as the GAP benchmark does: scores add up to less than 1.
    Gap,
}

/// How the scores are carried along the edges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// Binned where the scores exceed a cache and the budget allows; else pull where there are
    /// in-edges, else push. For a [medium](crate::Medium) that is chosen, the first where the budget allows, or the
    /// others.
    #[default]
    Auto,
    /// Through bins: 2 bytes an arc, and 6 or 10 for each pair of a source and a partition.
    Binned,
    /// Along in-edges, prefetching.
    Pull,
    /// Along out-edges, each worker scanning all of them: needs neither in-edges nor memory.
    Push,
}

impl Variant {
    /// The name that users type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Binned => "binned",
            Self::Pull => "pull",
            Self::Push => "push",
        }
    }
}

/// The numbers that scores are kept and added up in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// 64 bits.
    #[default]
    F64,
    /// 32 bits, as the GAP benchmark: half the traffic.
    F32,
}

/// What PageRank is to do.
#[derive(Clone, Debug, PartialEq)]
pub struct PageRankParams {
    /// The chance to follow an edge, from 0 to 1.
    pub damping: f64,
    /// The most rounds; without a tolerance, exactly so many.
    pub iterations: Option<u32>,
    /// Rounds end once the absolute changes of a round add up to less than this.
    pub tolerance: Option<f64>,
    /// What becomes of dangling mass.
    pub algorithm: Algorithm,
    /// How scores are carried.
    pub variant: Variant,
    /// What scores are kept in.
    pub precision: Precision,
    /// Personalised: jumps lead to these vertices only; repetitions count once. Empty: to all.
    pub sources: Vec<VertexId>,
    /// Partitions of the bins have two to this power vertices, at most [`MAX_PARTITION_BITS`].
    pub partition_bits: u32,
}

impl Default for PageRankParams {
    fn default() -> Self {
        Self {
            damping: 0.85,
            iterations: None,
            tolerance: None,
            algorithm: Algorithm::Standard,
            variant: Variant::Auto,
            precision: Precision::F64,
            sources: Vec::new(),
            partition_bits: MAX_PARTITION_BITS,
        }
    }
}

impl PageRankParams {
    /// The most rounds, and the tolerance that ends them earlier.
    fn limits(&self) -> (u32, Option<f64>) {
        match (self.iterations, self.tolerance) {
            (Some(iterations), tolerance) => (iterations, tolerance),
            (None, Some(tolerance)) => (DEFAULT_MAX_ITERATIONS, Some(tolerance)),
            (None, None) => (DEFAULT_MAX_ITERATIONS, Some(DEFAULT_TOLERANCE)),
        }
    }
}

/// What PageRank found.
#[derive(Clone, Debug)]
pub struct PageRankResult {
    /// The score of each vertex; 0 where there is no vertex.
    pub scores: Vec<f64>,
    /// The rounds made.
    pub iterations: u32,
    /// The absolute changes of the last round, summed; 0 without rounds.
    pub delta: f64,
    /// The sum of the scores.
    pub sum: f64,
    /// The variant that ran.
    pub variant: Variant,
    /// The time before the first round, in seconds.
    pub preparation_seconds: f64,
    /// The memory of the bins; 0 without bins.
    pub bins_bytes: u64,
}

/// Ranks the vertices of `graph`.
///
/// Work: a round reads every arc once, and the binned variant twice more to prepare. Memory: at most
/// 24 bytes a vertex, 8 more for push, and .8 MB; bins on top, see [`Variant::Binned`]. Deterministic.
///
/// # Errors
/// A parameter is out of range, a source does not exist, the budget is too small, pull is asked of a
/// graph without in-edges, the graph is damaged, or the work was cancelled.
pub fn pagerank(ctx: &Context<'_>, graph: &impl InEdges, params: &PageRankParams) -> Result<PageRankResult> {
    let sources = checked_sources(graph, params)?;
    match params.precision {
        Precision::F64 => run::<f64>(ctx, graph, params, sources),
        Precision::F32 => run::<f32>(ctx, graph, params, sources),
    }
}

/// Checks the parameters; gives the sources ascending, each once.
fn checked_sources(graph: &impl InEdges, params: &PageRankParams) -> Result<Vec<VertexId>> {
    if !(0.0..=1.0).contains(&params.damping) {
        return Err(Error::Parameter(format!("the damping of pagerank must be from 0 to 1, not {}", params.damping)));
    }
    if let Some(tolerance) = params.tolerance.filter(|t| t.is_nan() || *t < 0.0) {
        return Err(Error::Parameter(format!("the tolerance of pagerank must be 0 or more, not {tolerance}")));
    }
    if !(1..=MAX_PARTITION_BITS).contains(&params.partition_bits) {
        let bits = params.partition_bits;
        let what = format!("the partition bits of pagerank must be from 1 to {MAX_PARTITION_BITS}, not {bits}");
        return Err(Error::Parameter(what));
    }
    let bound = graph.vertex_bound();
    let is_missing = |v: VertexId| v as usize >= bound || !graph.is_live(v);
    if let Some(&vertex) = params.sources.iter().find(|&&v| is_missing(v)) {
        return Err(Error::NoVertex { vertex, bound });
    }
    let mut sources = params.sources.clone();
    sources.sort_unstable();
    sources.dedup();
    Ok(sources)
}

/// The way that a graph, the budget and the parameters lead to, ready for its first round.
enum Way<T> {
    Binned(Bins<T>),
    Pull,
    Push(Vec<T>),
}

impl<T: Score> Way<T> {
    fn variant(&self) -> Variant {
        match self {
            Self::Binned(_) => Variant::Binned,
            Self::Pull => Variant::Pull,
            Self::Push(_) => Variant::Push,
        }
    }
}

fn run<T: Score>(
    ctx: &Context<'_>,
    graph: &impl InEdges,
    params: &PageRankParams,
    sources: Vec<VertexId>,
) -> Result<PageRankResult> {
    let started = Instant::now();
    ctx.progress.stage("pagerank: prepare", None);
    let bound = graph.vertex_bound();
    let num_bytes = State::<T>::num_bytes(bound);
    let may_push = match params.variant {
        Variant::Auto => !graph.has_in_edges(),
        variant => variant == Variant::Push,
    };
    let sums_bytes = if may_push { bound * size_of::<T>() } else { 0 };
    ctx.require_memory("pagerank", num_bytes + sums_bytes as u64)?;
    let mut state = State::<T>::new(ctx, graph, sources, |vertex| graph.out_degree(vertex) as f64);
    let mut way = choose::<T>(ctx, graph, params, num_bytes)?;
    let (variant, bins_bytes) = (way.variant(), if let Way::Binned(bins) = &way { bins.num_bytes() } else { 0 });
    graph.check()?;
    let preparation_seconds = started.elapsed().as_secs_f64();

    let (iterations, delta) = iterate(ctx, graph, params, &mut state, |state, round| match &mut way {
        Way::Binned(bins) => bins.round(ctx, state, round),
        Way::Pull => direct::pull_round(ctx, graph, state, round),
        Way::Push(sums) => direct::push_round(ctx, graph, sums, state, round),
    })?;
    drop(way);
    let (scores, sum) = state.into_scores(ctx);
    Ok(PageRankResult { scores, iterations, delta, sum, variant, preparation_seconds, bins_bytes })
}

/// Makes rounds until there are enough or the scores change little; gives their number and the change of
/// the last.
fn iterate<T: Score>(
    ctx: &Context<'_>,
    graph: &impl InEdges,
    params: &PageRankParams,
    state: &mut State<T>,
    mut make_round: impl FnMut(&mut State<T>, &Round<T>) -> Vec<Block>,
) -> Result<(u32, f64)> {
    let (max_iterations, tolerance) = params.limits();
    ctx.progress.stage("pagerank", params.iterations.map(u64::from));
    let (mut iterations, mut delta) = (0, 0.0);
    while iterations < max_iterations {
        let round = state.next_round(params);
        let blocks = make_round(state, &round);
        ctx.progress.check()?;
        graph.check()?;
        delta = state.finish_round(&blocks);
        iterations += 1;
        ctx.progress.advance(1);
        if tolerance.is_some_and(|tolerance| delta < tolerance) {
            break;
        }
    }
    Ok((iterations, delta))
}

/// Below so many bytes of scores, a gather stays in the cache and bins do not pay.
const CACHED_BYTES: usize = 1 << 20;

fn choose<T: Score>(
    ctx: &Context<'_>,
    graph: &impl InEdges,
    params: &PageRankParams,
    state_bytes: u64,
) -> Result<Way<T>> {
    let push = || Way::Push(T::zeros(graph.vertex_bound()));
    let variant = match (params.variant, ctx.medium) {
        (Variant::Auto, Medium::Disk) if graph.has_in_edges() => Variant::Pull,
        (Variant::Auto, Medium::Disk) => Variant::Push,
        (variant, _) => variant,
    };
    match variant {
        Variant::Pull if !graph.has_in_edges() => {
            Err(Error::Unsupported { kernel: "pagerank by pull", needs: "in-edges: load the graph with them" })
        }
        Variant::Pull => Ok(Way::Pull),
        Variant::Push => Ok(push()),
        Variant::Binned => Ok(Way::Binned(Bins::build(ctx, graph, params.partition_bits, state_bytes)?)),
        Variant::Auto => {
            let wanted = ctx.medium == Medium::Memory || graph.vertex_bound() * size_of::<T>() > CACHED_BYTES;
            let hopeful = wanted && ctx.allows(state_bytes + 2 * graph.num_arcs());
            if hopeful && let Ok(bins) = Bins::build(ctx, graph, params.partition_bits, state_bytes) {
                return Ok(Way::Binned(bins));
            }
            ctx.progress.check()?;
            Ok(if graph.has_in_edges() { Way::Pull } else { push() })
        }
    }
}
