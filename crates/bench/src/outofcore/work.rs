//! The workloads: those of "Buffer Management for LLAMA", and whole-graph scans.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_base::progress::Progress;
use anden_engine::SnapshotView;
use anden_graph::{Direction, Graph, Page, Parts, WillNeed};
use anden_kernels::bc::{BcParams, bc};
use anden_kernels::bfs::{BfsParams, bfs};
use anden_kernels::cdlp::{CdlpParams, cdlp};
use anden_kernels::kcore::{KcoreParams, kcore};
use anden_kernels::lcc::{LccParams, lcc};
use anden_kernels::pagerank::{PageRankParams, pagerank, weighted_pagerank};
use anden_kernels::query::{friends_of_friends, path, weighted_path};
use anden_kernels::scc::{SccParams, scc};
use anden_kernels::sssp::{DistanceValue, SsspAlgorithm, SsspParams, sssp};
use anden_kernels::triangles::{TriangleParams, triangles};
use anden_kernels::wcc::{WccParams, wcc};
use anden_kernels::{Context, SourceChoice};
use anyhow::{Result, bail};

use super::side::Side;
use crate::harness::seconds;

/// The iterations of PageRank in a phase.
pub(super) const ITERATIONS: u32 = 5;

/// The oracle announces reads this many queries ahead.
const ORACLE_AHEAD: usize = 64;
/// The oracle announces this many queries at once.
const ORACLE_BATCH: usize = 16;

/// One in this many of the shortest queries reads the clock.
const CHECKED: usize = 16;

/// The vertices of a chunk of a scan.
const SCAN_VERTICES: usize = 64 << 10;

/// A workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Reads the list of each vertex of a sequence.
    Edges,
    /// Finds the friends of friends of each vertex of a sequence.
    Fof,
    /// Finds the shortest path between the two vertices of each pair.
    Paths,
    /// Finds the lightest path between the two vertices of each pair.
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
    /// Reads every list once, in order.
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

    /// Whether the work consists of queries.
    pub(super) fn is_asked(self) -> bool {
        matches!(self, Self::Edges | Self::Fof | Self::Paths | Self::LightPaths)
    }

    /// Whether the kernel takes another path with a prefetcher.
    pub(super) fn has_two_ways(self) -> bool {
        matches!(self, Self::Bfs | Self::Bc | Self::Sssp | Self::Wcc | Self::Kcore)
    }

    /// The sides to compare.
    pub(super) fn sides(self) -> &'static [Side] {
        match self {
            work if work.is_asked() => &[Side::On, Side::Off, Side::Oracle],
            work if work.has_two_ways() => &[Side::On, Side::Off, Side::OffSameWay],
            _ => &[Side::On, Side::Off],
        }
    }

    /// The number of vertices of a query.
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

/// The measurements of a phase, with a digest of its results.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Phase {
    pub(super) seconds: f64,
    pub(super) digest: u64,
    /// The number of queries (or one for a kernel) that finished in time.
    pub(super) num_done: u64,
    /// Bytes read from disks meanwhile; 0 if the system does not tell.
    pub(super) bytes_read: u64,
}

/// The bytes that this process has read from disks.
fn bytes_read() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let number = text.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    number.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

/// The time limit of a phase.
struct Deadline {
    begin: Instant,
    most_seconds: f64,
}

impl Progress for Deadline {
    fn is_cancelled(&self) -> bool {
        self.begin.elapsed().as_secs_f64() > self.most_seconds
    }
}

/// Runs the work once, over `sequence` if it has queries, for about `most_seconds` at most.
pub(super) fn phase(
    work: Work,
    pool: &Pool,
    view: &SnapshotView,
    sequence: &[VertexId],
    side: Side,
    most_seconds: f64,
) -> Result<Phase> {
    let read_before = bytes_read();
    let deadline = &Deadline { begin: Instant::now(), most_seconds };
    // The default budget of a session.
    let memory = Some(anden_base::memory::available() / 8 * 7);
    let ctx = &Context { memory, progress: deadline, medium: side.medium(), ..Context::new(pool) };
    let (seconds, done) = seconds(|| match work {
        // The public API sets this for queries about single lists.
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

/// The number of queries that finished in time, and the sum of their results.
fn queries(
    ctx: &Context<'_>,
    work: Work,
    view: &SnapshotView,
    sequence: &[VertexId],
    is_oracle: bool,
) -> Result<(u64, u64)> {
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

/// The first vertex with edges, from which searches begin by default.
fn first_with_edges(view: &SnapshotView) -> VertexId {
    let bound = view.vertex_bound() as VertexId;
    (0..bound).find(|&vertex| view.degree(Direction::Out, vertex) > 0).unwrap_or(0)
}

/// Runs a kernel. Returns a digest of its result.
fn kernel(ctx: &Context<'_>, work: Work, pool: &Pool, view: &SnapshotView, source: VertexId) -> Result<u64> {
    Ok(match work {
        Work::Sssp | Work::BellmanFord => {
            let algorithm = if work == Work::Sssp { SsspAlgorithm::DeltaStepping } else { SsspAlgorithm::BellmanFord };
            let found = sssp(ctx, view, &SsspParams { source, algorithm, ..SsspParams::default() })?;
            found.reached + integer(found.sum_distance)
        }
        Work::Bc => {
            let scores = bc(ctx, view, &BcParams { sources: SourceChoice::Given(vec![source]) })?.scores;
            scores.iter().filter(|&&score| score > 0.0).count() as u64
        }
        Work::Kcore => {
            let cores = kcore(ctx, view, &KcoreParams::default())?.cores;
            cores.into_iter().map(u64::from).sum()
        }
        Work::Cdlp => cdlp(ctx, view, &CdlpParams::default())?.communities,
        Work::Scc => scc(ctx, view, &SccParams::default())?.components,
        // The mean is at most 1; the digest has a precision of 1e-9.
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

/// Announces the first reads of the queries after `place`, for the oracle.
fn announce(view: &SnapshotView, sequence: &[VertexId], work: Work, place: usize, is_oracle: bool) {
    if is_oracle && place.is_multiple_of(ORACLE_BATCH) {
        let from = if place == 0 { 0 } else { place + ORACLE_AHEAD };
        let part = [from, place + ORACLE_AHEAD + ORACLE_BATCH].map(|end| (end * work.num_ends()).min(sequence.len()));
        let parts = if work == Work::LightPaths { Parts::Weighted } else { Parts::Targets };
        view.will_need(Direction::Out, parts, &sequence[part[0]..part[1]]);
    }
}

/// A weighted sum of the scores, to a precision of 1e-9. Their plain sum is always 1.
fn weighted_sum(scores: &[f64]) -> u64 {
    let share = |vertex: usize| (vertex as u32).wrapping_mul(0x9e37_79b1) as f64 / f64::from(u32::MAX);
    let sum: f64 = scores.iter().enumerate().map(|(vertex, score)| share(vertex) * score).sum();
    (sum * 1e9).round() as u64
}

/// The sum as an integer, because the benchmark's graphs have integer weights.
fn integer(sum: DistanceValue) -> u64 {
    match sum {
        DistanceValue::Integer(sum) => sum,
        DistanceValue::Float(sum) => sum as u64,
    }
}

fn list_sum(view: &SnapshotView, vertex: VertexId) -> u64 {
    let mut sum = 0_u64;
    let _ = view.for_each_fragment(Direction::Out, vertex, |targets| {
        sum = targets.iter().fold(sum, |sum, &target| sum.wrapping_add(u64::from(target)));
        ControlFlow::Continue(())
    });
    sum
}

/// Reads every entry. Returns the sum of all targets.
fn degrees(pool: &Pool, view: &SnapshotView) -> u64 {
    let sum = AtomicU64::new(0);
    pool.map_chunks(0..view.vertex_bound(), SCAN_VERTICES, |_, chunk| {
        let add = |targets: &[VertexId]| {
            let part = targets.iter().fold(0_u64, |sum, &target| sum.wrapping_add(u64::from(target)));
            sum.fetch_add(part, Ordering::Relaxed);
        };
        let _ = view.for_each_page(Direction::Out, chunk.start as VertexId..chunk.end as VertexId, |page| {
            match page {
                Page::Dense(page) => add(page.all_targets()),
                Page::Empty(_) => {}
                Page::Patched(vertices) => {
                    for vertex in vertices {
                        let _ = view.for_each_fragment(Direction::Out, vertex, |targets| {
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
