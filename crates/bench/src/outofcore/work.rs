//! The workloads: those of "Buffer Management for LLAMA", and whole-graph scans.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Result, bail};
use base::VertexId;
use base::parallel::Pool;
use base::progress::Progress;
use engine::View;
use graph::{Graph, Page, Parts, WillNeed};
use kernels::Context;
use kernels::bc::{BcParams, BcSources, bc};
use kernels::bfs::{BfsParams, bfs};
use kernels::cdlp::{CdlpParams, cdlp};
use kernels::kcore::{KcoreParams, kcore};
use kernels::lcc::{LccParams, lcc};
use kernels::pagerank::{PageRankParams, pagerank, weighted_pagerank};
use kernels::query::{friends_of_friends, path, weighted_path};
use kernels::scc::{SccParams, scc};
use kernels::sssp::{DistanceValue, SsspAlgorithm, SsspParams, sssp};
use kernels::triangles::{TriangleParams, triangles};
use kernels::wcc::{WccParams, wcc};

use super::side::Side;
use crate::harness::seconds;

/// Iterations of PageRank in a phase.
pub(super) const ITERATIONS: u32 = 5;

/// The oracle says so many queries ahead what will be read.
const ORACLE_AHEAD: usize = 64;
/// And says it for so many at once.
const ORACLE_BATCH: usize = 16;

/// One in so many of the shortest queries looks at the clock.
const CHECKED: usize = 16;

/// Vertices of a piece of a scan.
const SCAN_VERTICES: usize = 64 << 10;

/// What is done with the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// The list of each vertex of a sequence is read.
    Edges,
    /// The friends of friends of each.
    Fof,
    /// The shortest path between each and the next.
    Paths,
    /// The lightest.
    LightPaths,
    Bfs,
    Sssp,
    BellmanFord,
    Bc,
    PageRank,
    WeightedPageRank,
    Triangles,
    Wcc,
    Kcore,
    Cdlp,
    Scc,
    Lcc,
    /// Every list is read once, in order.
    Degrees,
}

impl Work {
    const ALL: [Self; 17] = [
        Self::Edges,
        Self::Fof,
        Self::Paths,
        Self::LightPaths,
        Self::Bfs,
        Self::Sssp,
        Self::BellmanFord,
        Self::Bc,
        Self::PageRank,
        Self::WeightedPageRank,
        Self::Triangles,
        Self::Wcc,
        Self::Kcore,
        Self::Cdlp,
        Self::Scc,
        Self::Lcc,
        Self::Degrees,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Edges => "edge queries",
            Self::Fof => "friends of friends",
            Self::Paths => "shortest path",
            Self::LightPaths => "lightest path",
            Self::Bfs => "bfs",
            Self::Sssp => "sssp",
            Self::BellmanFord => "bellman-ford",
            Self::Bc => "bc",
            Self::PageRank => "pagerank",
            Self::WeightedPageRank => "pagerank by weight",
            Self::Triangles => "triangles",
            Self::Wcc => "wcc",
            Self::Kcore => "kcore",
            Self::Cdlp => "cdlp",
            Self::Scc => "scc",
            Self::Lcc => "lcc",
            Self::Degrees => "degree scan",
        }
    }

    /// Whether it is made of queries.
    pub(super) fn is_asked(self) -> bool {
        matches!(self, Self::Edges | Self::Fof | Self::Paths | Self::LightPaths)
    }

    /// Whether it takes another way with an advisor than without.
    pub(super) fn has_two_ways(self) -> bool {
        matches!(self, Self::Bfs | Self::Bc | Self::Sssp | Self::Wcc | Self::Kcore)
    }

    /// The sides on which it is compared.
    pub(super) fn sides(self) -> &'static [Side] {
        match self {
            work if work.is_asked() => &[Side::On, Side::Off, Side::Oracle],
            work if work.has_two_ways() => &[Side::On, Side::Off, Side::OffSameWay],
            _ => &[Side::On, Side::Off],
        }
    }

    /// The vertices of a query.
    pub(super) fn num_ends(self) -> usize {
        if matches!(self, Self::Paths | Self::LightPaths) { 2 } else { 1 }
    }

    pub(super) fn named(name: &str) -> Result<Self> {
        match Self::ALL.into_iter().find(|work| work.name() == name) {
            Some(work) => Ok(work),
            None => bail!("{name:?}: no such workload"),
        }
    }
}

/// What one phase took, and what came out of it, in a form that can be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Phase {
    pub(super) seconds: f64,
    pub(super) digest: u64,
    /// The queries, or the one kernel, that were done before the time was up.
    pub(super) num_done: u64,
    /// What was read from disks meanwhile; 0 where the system does not say.
    pub(super) bytes_read: u64,
}

/// What this process had read from disks so far.
fn bytes_read() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let number = text.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    number.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

/// How long a phase may take.
struct Deadline {
    begin: Instant,
    most_seconds: f64,
}

impl Progress for Deadline {
    fn is_cancelled(&self) -> bool {
        self.begin.elapsed().as_secs_f64() > self.most_seconds
    }
}

/// Does the work once over `sequence`, which some need, for at most about so many seconds, and says what came out.
pub(super) fn phase(
    work: Work,
    pool: &Pool,
    view: &View,
    sequence: &[VertexId],
    side: Side,
    most_seconds: f64,
) -> Result<Phase> {
    let read_before = bytes_read();
    let deadline = &Deadline { begin: Instant::now(), most_seconds };
    // As a session without a budget of its own has it.
    let memory = Some(base::memory::available() / 8 * 7);
    let ctx = &Context { memory, progress: deadline, medium: side.medium(), ..Context::new(pool) };
    let (seconds, done) = seconds(|| match work {
        // As everybody has it who asks for single lists through the façade.
        work if work.is_asked() => {
            if view.is_listening() {
                view.read_exactly(true);
            }
            queries(ctx, work, view, sequence, side.is_oracle())
        }
        _ => match kernel(ctx, work, pool, view, sequence.first().copied().unwrap_or_else(|| first_with_edges(view))) {
            Err(_) if deadline.is_cancelled() => Ok((0, 0)),
            digest => Ok((1, digest?)),
        },
    });
    let (num_done, digest) = done?;
    view.check()?;
    Ok(Phase { seconds, digest, num_done, bytes_read: bytes_read() - read_before })
}

/// How many queries of a sequence were made in time, and the sum of what they found.
fn queries(ctx: &Context<'_>, work: Work, view: &View, sequence: &[VertexId], is_oracle: bool) -> Result<(u64, u64)> {
    let (mut num_done, mut sum) = (0, 0_u64);
    for (place, query) in sequence.chunks_exact(work.num_ends()).enumerate() {
        announce(view, sequence, work, place, is_oracle);
        let found = match work {
            Work::Fof => friends_of_friends(ctx, view, query[0]).map(|friends| friends.len() as u64),
            Work::Paths => {
                path(ctx, view, query[0], query[1]).map(|path| path.map_or(0, |path| path.vertices.len() as u64))
            }
            Work::LightPaths => {
                weighted_path(ctx, view, query[0], query[1]).map(|path| path.map_or(0, |path| integer(path.length)))
            }
            _ => Ok(list_sum(view, query[0])),
        };
        match found {
            Err(_) if ctx.progress.is_cancelled() => break,
            found => sum = sum.wrapping_add(found?),
        }
        num_done += 1;
        if (work != Work::Edges || place.is_multiple_of(CHECKED)) && ctx.progress.is_cancelled() {
            break;
        }
    }
    Ok((num_done, sum))
}

/// Where searches begin that are told nothing.
fn first_with_edges(view: &View) -> VertexId {
    let bound = view.vertex_bound() as VertexId;
    (0..bound).find(|&vertex| view.out_degree(vertex) > 0).unwrap_or(0)
}

/// What a kernel found, as a number.
fn kernel(ctx: &Context<'_>, work: Work, pool: &Pool, view: &View, source: VertexId) -> Result<u64> {
    Ok(match work {
        Work::Sssp | Work::BellmanFord => {
            let algorithm = if work == Work::Sssp { SsspAlgorithm::DeltaStepping } else { SsspAlgorithm::BellmanFord };
            let found = sssp(ctx, view, &SsspParams { source, algorithm, ..SsspParams::default() })?;
            found.reached + integer(found.sum_distance)
        }
        Work::Bc => {
            let scores = bc(ctx, view, &BcParams { sources: BcSources::Given(vec![source]) })?.scores;
            scores.iter().filter(|&&score| score > 0.0).count() as u64
        }
        Work::Kcore => {
            let cores = kcore(ctx, view, &KcoreParams::default())?.cores;
            cores.into_iter().map(u64::from).sum()
        }
        Work::Cdlp => cdlp(ctx, view, &CdlpParams::default())?.communities,
        Work::Scc => scc(ctx, view, &SccParams::default())?.components,
        // Equal to 1e-9 of a mean of at most 1.
        Work::Lcc => (lcc(ctx, view, &LccParams::default())?.mean * 1e9).round() as u64,
        Work::Bfs => bfs(ctx, view, &BfsParams { source, ..BfsParams::default() })?.reached,
        Work::PageRank | Work::WeightedPageRank => {
            let params = PageRankParams { iterations: Some(ITERATIONS), ..PageRankParams::default() };
            let found = match work {
                Work::PageRank => pagerank(ctx, view, &params)?,
                _ => weighted_pagerank(ctx, view, &params)?,
            };
            weighted_sum(&found.scores)
        }
        Work::Triangles => triangles(ctx, view, &TriangleParams::default())?.triangles,
        Work::Wcc => wcc(ctx, view, &WccParams::default())?.components,
        Work::Degrees => degrees(pool, view),
        Work::Edges | Work::Fof | Work::Paths | Work::LightPaths => bail!("{}: no kernel", work.name()),
    })
}

/// Says what the queries after `place` will read first, as nobody else can know.
fn announce(view: &View, sequence: &[VertexId], work: Work, place: usize, is_oracle: bool) {
    if is_oracle && place.is_multiple_of(ORACLE_BATCH) {
        let from = if place == 0 { 0 } else { place + ORACLE_AHEAD };
        let part = [from, place + ORACLE_AHEAD + ORACLE_BATCH].map(|end| (end * work.num_ends()).min(sequence.len()));
        let parts = if work == Work::LightPaths { Parts::Weighted } else { Parts::Targets };
        view.will_need(graph::Side::Out, parts, &sequence[part[0]..part[1]]);
    }
}

/// A sum in which each score counts differently, as all of them together are 1 whatever they are; to 1e-9 of it.
fn weighted_sum(scores: &[f64]) -> u64 {
    let share = |vertex: usize| (vertex as u32).wrapping_mul(0x9e37_79b1) as f64 / f64::from(u32::MAX);
    let sum: f64 = scores.iter().enumerate().map(|(vertex, score)| share(vertex) * score).sum();
    (sum * 1e9).round() as u64
}

/// A sum of the weights that the benchmark's graphs have.
fn integer(sum: DistanceValue) -> u64 {
    match sum {
        DistanceValue::Integer(sum) => sum,
        DistanceValue::Float(sum) => sum as u64,
    }
}

fn list_sum(view: &View, vertex: VertexId) -> u64 {
    let mut sum = 0_u64;
    let _ = view.for_each_out_fragment(vertex, |targets| {
        sum = targets.iter().fold(sum, |sum, &target| sum.wrapping_add(u64::from(target)));
        ControlFlow::Continue(())
    });
    sum
}

/// Reads every entry; the sum of all targets.
fn degrees(pool: &Pool, view: &View) -> u64 {
    let sum = AtomicU64::new(0);
    pool.map_chunks(0..view.vertex_bound(), SCAN_VERTICES, |_, chunk| {
        let add = |targets: &[VertexId]| {
            let part = targets.iter().fold(0_u64, |sum, &target| sum.wrapping_add(u64::from(target)));
            sum.fetch_add(part, Ordering::Relaxed);
        };
        let _ = view.for_each_out_page(chunk.start as VertexId..chunk.end as VertexId, |page| {
            match page {
                Page::Dense(page) => add(page.all_targets()),
                Page::Empty(_) => {}
                Page::Patched(vertices) => {
                    for vertex in vertices {
                        let _ = view.for_each_out_fragment(vertex, |targets| {
                            add(targets);
                            ControlFlow::Continue(())
                        });
                    }
                }
            }
            ControlFlow::Continue(())
        });
    });
    sum.into_inner()
}
