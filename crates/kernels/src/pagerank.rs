//! PageRank: the probability that a random walker with occasional jumps is at a vertex.
//!
//! # Result
//! Round `i` gives every live vertex `v` the score below. `d` is the damping, `n` the number of live vertices, and `D`
//! the sum of the scores of *dangling* vertices, which have no out-edges.
//!
//! ```text
//! score[i + 1](v) = (1 - d) / n + d * (D[i] / n + sum over edges (u, v) of score[i](u) / out_degree(u))
//! ```
//!
//! It starts from `score[0] = 1 / n`. By weight, an edge's share of the sum of its source's out-weights takes the place
//! of `1 / out_degree(u)`. A vertex whose out-weights sum to 0 is dangling. Parallel edges count separately; an
//! undirected edge leads both ways. Dead vertices have score 0 and do not count in `n`. With sources, `(1 - d)` and the
//! dangling mass go to the sources only, in equal shares. Each round shrinks the distance to the limit, in the sum of
//! absolute differences, by the factor `d` or more.
//!
//! # Algorithm
//! A gather of `score / out_degree` for each edge reads memory at random, which takes most of the time on graphs larger
//! than the caches. The *binned* variant cuts the vertices into partitions whose scores fit in the second-level cache.
//! A round has two steps:
//! 1. For each source partition, copy each score to one slot for each partition that its vertex has edges to. All reads
//!    hit the cache, all writes are sequential.
//! 2. For each target partition, add the slots at the targets. All writes hit the cache, all reads are sequential.
//!
//! The binned variant needs out-lists only. The *pull* variant sums the in-lists, several long ones side by side,
//! because each addition to one sum waits for the last. The *push* variant gives each worker a range of targets, and
//! each worker scans all out-lists for them. No variant uses atomics. Each adds the scores at a vertex in the order of
//! the sources, so results are equal, bit for bit, at any number of threads. By weight, only pull and push exist.
//!
//! # Parameters
//! Damping .85 and the start are those of the first paper and of LDBC Graphalytics, which also defines the treatment of
//! dangling vertices. Without iterations and tolerance, rounds end when the scores change by less than 1e-6 in sum, or
//! after 100. NetworkX compares to 1e-6 a vertex.
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

use std::ops::{ControlFlow, Range};
use std::time::Instant;

use anden_base::VertexId;
use anden_graph::{Direction, Graph, Page, StoredFormKey};

use crate::preparation::PreparedForm;
use crate::{Context, Error, Medium, Result};
use bins::Bins;
use score::{PageRankBlockSums, PageRankState, Round, Score};

pub(crate) use bins::StoredBins;

pub use bins::MAX_PARTITION_BITS;
pub use verify::{verify, verify_weighted};
pub use weighted::weighted_pagerank;

/// The most rounds, if only a tolerance ends them.
pub const DEFAULT_MAX_ITERATIONS: u32 = 100;

/// The tolerance, if neither a tolerance nor a number of iterations is given.
pub const DEFAULT_TOLERANCE: f64 = 1e-6;

/// The treatment of the scores of dangling vertices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// Spread over all live vertices, or over the sources: scores sum to 1.
    #[default]
    Standard,
    /// Dropped, as in the GAP benchmark: scores sum to less than 1.
    Gap,
}

/// The way in which scores travel along the edges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// Pull if all scores fit in a cache, or for a few rounds if the neighbors of a vertex have similar ids. Otherwise
    /// binned if the budget allows, else pull, or push without in-edges. An explicit [medium](crate::Medium) decides
    /// instead: memory takes bins if the budget allows, disk takes pull or push.
    #[default]
    Auto,
    /// By bins: 2 bytes an arc, and 6 or 10 for each pair of a source and a partition.
    Binned,
    /// Along in-edges, with prefetching.
    Pull,
    /// Along out-edges; each worker scans all of them. Needs no in-edges and little memory.
    Push,
}

impl Variant {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Binned => "binned",
            Self::Pull => "pull",
            Self::Push => "push",
        }
    }
}

/// The number type of scores and sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// 64 bits.
    #[default]
    F64,
    /// 32 bits, as in the GAP benchmark; moves half the bytes.
    F32,
}

/// Parameters of [`pagerank`](pagerank()) and [`weighted_pagerank`].
#[derive(Clone, Debug, PartialEq)]
pub struct PageRankParams {
    /// The probability of following an edge, from 0 to 1.
    pub damping: f64,
    /// The most rounds; without a tolerance, the exact number.
    pub iterations: Option<u32>,
    /// Rounds end once the absolute changes of a round sum to less than this.
    pub tolerance: Option<f64>,
    /// The treatment of dangling mass.
    pub algorithm: Algorithm,
    /// The way in which scores travel.
    pub variant: Variant,
    /// The number type of scores.
    pub precision: Precision,
    /// Personalized: jumps lead to these vertices only. Repetitions count once. Empty: jumps lead to all.
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
    /// The most rounds, and the tolerance that may end them earlier.
    fn limits(&self) -> (u32, Option<f64>) {
        match (self.iterations, self.tolerance) {
            (Some(iterations), tolerance) => (iterations, tolerance),
            (None, Some(tolerance)) => (DEFAULT_MAX_ITERATIONS, Some(tolerance)),
            (None, None) => (DEFAULT_MAX_ITERATIONS, Some(DEFAULT_TOLERANCE)),
        }
    }
}

/// Result of [`pagerank`](pagerank()) and [`weighted_pagerank`].
#[derive(Clone, Debug)]
pub struct PageRankResult {
    /// The score of each vertex, by vertex id; 0 for dead vertices.
    pub scores: Vec<f64>,
    /// The number of rounds.
    pub iterations: u32,
    /// The sum of the absolute changes of the last round; 0 without rounds.
    pub delta: f64,
    /// The sum of the scores.
    pub sum: f64,
    /// The variant that ran.
    pub variant: Variant,
    /// The time before the first round, in seconds.
    pub preparation_seconds: f64,
    /// Whether an earlier run made the bins, or the database stores them.
    pub was_prepared: bool,
    /// The bytes of the bins; 0 without bins.
    pub bins_bytes: u64,
}

/// Ranks the vertices of `graph`.
///
/// *Cost*: a round reads every arc once; the binned variant first reads all arcs once to build the bins. *Memory*: at
/// most 24 bytes a vertex, 8 more for push, and .8 MB; bins on top, see [`Variant::Binned`]. *Determinism*: equal at
/// any number of threads.
///
/// # Errors
/// A parameter is out of range, a source does not exist, or a pull lacks in-edges. The budget is too small, the graph
/// is damaged, or the work was cancelled.
pub fn pagerank(ctx: &Context<'_>, graph: &impl Graph, params: &PageRankParams) -> Result<PageRankResult> {
    let sources = checked_sources(graph, params)?;
    match params.precision {
        Precision::F64 => run::<f64>(ctx, graph, params, sources),
        Precision::F32 => run::<f32>(ctx, graph, params, sources),
    }
}

/// The form that a run without parameters reads from a database that stores it; `None`: it takes another way.
pub fn stored_form(graph: &impl Graph) -> Option<StoredFormKey> {
    bins::stored_form(graph)
}

/// Checks the parameters. Returns the sources, ascending and distinct.
fn checked_sources(graph: &impl Graph, params: &PageRankParams) -> Result<Vec<VertexId>> {
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
    // `parts` cuts ascending sources into ranges.
    sources.sort_unstable();
    sources.dedup();
    Ok(sources)
}

/// A variant, prepared for its first round.
enum PreparedVariant<'a, T: Score> {
    Binned(PreparedForm<'a, Bins<T>>),
    /// With room for the contributions of the next round, if the budget has it.
    Pull(Vec<T>),
    /// With room for the sums.
    Push(Vec<T>),
}

impl<T: Score> PreparedVariant<'_, T> {
    fn variant(&self) -> Variant {
        match self {
            Self::Binned(_) => Variant::Binned,
            Self::Pull(_) => Variant::Pull,
            Self::Push(_) => Variant::Push,
        }
    }
}

fn run<T: Score>(
    ctx: &Context<'_>,
    graph: &impl Graph,
    params: &PageRankParams,
    sources: Vec<VertexId>,
) -> Result<PageRankResult> {
    let started = Instant::now();
    ctx.progress.stage("pagerank: prepare", None);
    let bound = graph.vertex_bound();
    let num_bytes = PageRankState::<T>::num_bytes(bound);
    let may_push = match params.variant {
        Variant::Auto => !graph.has_lists(Direction::In),
        variant => variant == Variant::Push,
    };
    let sums_bytes = if may_push { bound * size_of::<T>() } else { 0 };
    ctx.require_memory("pagerank", num_bytes + sums_bytes as u64)?;
    let mut state = PageRankState::<T>::new(ctx, graph, sources, |vertices, degrees| {
        write_degrees(graph, vertices, |index, degree| degrees[index] = T::from_f64(degree as f64));
    });
    let mut way = choose::<T>(ctx, graph, params, num_bytes)?;
    let variant = way.variant();
    let (bins_bytes, was_prepared) = match &way {
        PreparedVariant::Binned(bins) => (bins.num_bytes(), bins.was_kept()),
        _ => (0, false),
    };
    // Damaged lists look empty. Without any round, no later check follows.
    graph.check()?;
    let preparation_seconds = started.elapsed().as_secs_f64();

    let (iterations, delta) = iterate(ctx, graph, params, &mut state, |state, round| match &mut way {
        PreparedVariant::Binned(bins) => bins.round(ctx, state, round),
        PreparedVariant::Pull(next) => direct::pull_round(ctx, graph, next, state, round),
        PreparedVariant::Push(sums) => direct::push_round(ctx, graph, sums, state, round),
    })?;
    // Freed before the scores are widened, which takes this part of the budget. Bins go back to the cache.
    drop(way);
    let (scores, sum) = state.into_scores(ctx);
    Ok(PageRankResult { scores, iterations, delta, sum, variant, preparation_seconds, was_prepared, bins_bytes })
}

/// Calls `write` with the index and the out-degree of each vertex that has out-edges.
fn write_degrees(graph: &impl Graph, vertices: Range<VertexId>, mut write: impl FnMut(usize, usize)) {
    let first = vertices.start;
    let _ = graph.for_each_page(Direction::Out, vertices, |page| {
        match page {
            // Degrees of a dense page come from its offsets, without a lookup for each vertex.
            Page::Dense(page) => {
                page.vertices().enumerate().for_each(|(i, v)| write((v - first) as usize, page.degree(i)))
            }
            Page::Patched(vertices) => {
                vertices.for_each(|v| write((v - first) as usize, graph.degree(Direction::Out, v)));
            }
            Page::Empty(_) => {}
        }
        ControlFlow::Continue(())
    });
}

/// Runs rounds until the limit or the tolerance ends them. Returns their number and the change of the last.
fn iterate<T: Score>(
    ctx: &Context<'_>,
    graph: &impl Graph,
    params: &PageRankParams,
    state: &mut PageRankState<T>,
    mut make_round: impl FnMut(&mut PageRankState<T>, &Round<T>) -> Vec<PageRankBlockSums>,
) -> Result<(u32, f64)> {
    let (max_iterations, tolerance) = params.limits();
    ctx.progress.stage("pagerank", params.iterations.map(u64::from));
    let (mut iterations, mut delta) = (0, 0.0);
    while iterations < max_iterations {
        let round = state.next_round(params);
        let blocks = make_round(state, &round);
        // A cancelled round leaves sums incomplete, and a damaged page looks empty, so both are checked before its
        // result is used.
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

fn choose<'a, T: Score>(
    ctx: &Context<'a>,
    graph: &impl Graph,
    params: &PageRankParams,
    state_bytes: u64,
) -> Result<PreparedVariant<'a, T>> {
    let (bound, bits) = (graph.vertex_bound(), params.partition_bits);
    let push = || PreparedVariant::Push(T::zeros(bound));
    let pull = || {
        let len = PageRankState::<T>::num_contributions(bound);
        let has_room = ctx.allows(state_bytes + (len * size_of::<T>()) as u64);
        PreparedVariant::Pull(T::zeros(if has_room { len } else { 0 }))
    };
    let variant = match (params.variant, ctx.medium) {
        // Bins would be a copy of a graph that is larger than memory.
        (Variant::Auto, Medium::Disk) if graph.has_lists(Direction::In) => Variant::Pull,
        (Variant::Auto, Medium::Disk) => Variant::Push,
        (variant, _) => variant,
    };
    match variant {
        Variant::Pull if !graph.has_lists(Direction::In) => {
            Err(Error::Unsupported { kernel: "pagerank by pull", needs: "in-edges: load the graph with them" })
        }
        Variant::Pull => Ok(pull()),
        Variant::Push => Ok(push()),
        Variant::Binned => Ok(PreparedVariant::Binned(Bins::prepare(ctx, graph, bits, state_bytes)?)),
        Variant::Auto => {
            // Kept bins cost no build. Only scores that fit in a cache make the rounds of a pull faster than theirs.
            if (ctx.medium == Medium::Memory || !direct::fits_cache::<T>(bound))
                && let Some(bins) = Bins::kept(ctx, graph, bits, state_bytes)
            {
                return Ok(PreparedVariant::Binned(bins));
            }
            let wanted = ctx.medium == Medium::Memory || !direct::is_better::<T>(graph, params.limits().0);
            // The least size of the bins, 2 bytes an arc, tells early that the budget cannot hold them.
            let hopeful = wanted && ctx.allows(state_bytes + 2 * graph.num_arcs());
            // Bins beyond the budget are no error here: pull or push take over.
            if hopeful && let Ok(bins) = Bins::prepare(ctx, graph, bits, state_bytes) {
                return Ok(PreparedVariant::Binned(bins));
            }
            // The build also fails if it is cancelled.
            ctx.progress.check()?;
            Ok(if graph.has_lists(Direction::In) { pull() } else { push() })
        }
    }
}
