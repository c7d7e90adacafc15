//! The workloads: those of "Buffer Management for LLAMA", and whole-graph scans.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, bail};
use base::VertexId;
use base::parallel::Pool;
use engine::View;
use graph::{Graph, Page};
use kernels::Context;
use kernels::bfs::{BfsParams, bfs};
use kernels::pagerank::{PageRankParams, pagerank};
use kernels::query::{friends_of_friends, path};
use kernels::triangles::{TriangleParams, triangles};
use kernels::wcc::{WccParams, wcc};

use crate::harness::seconds;

/// Iterations of PageRank in a phase.
pub(super) const ITERATIONS: u32 = 5;

/// The oracle says so many queries ahead what will be read.
const ORACLE_AHEAD: usize = 64;
/// And says it for so many at once.
const ORACLE_BATCH: usize = 16;

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
    Bfs,
    PageRank,
    Triangles,
    Wcc,
    /// Every list is read once, in order.
    Degrees,
}

impl Work {
    const ALL: [Self; 8] =
        [Self::Edges, Self::Fof, Self::Paths, Self::Bfs, Self::PageRank, Self::Triangles, Self::Wcc, Self::Degrees];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Edges => "edge queries",
            Self::Fof => "friends of friends",
            Self::Paths => "shortest path",
            Self::Bfs => "bfs",
            Self::PageRank => "pagerank",
            Self::Triangles => "triangles",
            Self::Wcc => "wcc",
            Self::Degrees => "degree scan",
        }
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
}

/// Does the work once over `sequence`, which some need, and says what came out.
pub(super) fn phase(work: Work, pool: &Pool, view: &View, sequence: &[VertexId], is_oracle: bool) -> Result<Phase> {
    // As a session without a budget of its own has it.
    let ctx = &Context { memory: Some(base::memory::available() / 8 * 7), ..Context::new(pool) };
    let (seconds, digest) = seconds(|| -> Result<u64> {
        let source = sequence.first().copied().unwrap_or(0);
        Ok(match work {
            Work::Edges => edges(view, sequence, is_oracle),
            Work::Fof => {
                let mut sum = 0_u64;
                for (place, &vertex) in sequence.iter().enumerate() {
                    announce(view, sequence, place, is_oracle);
                    sum = sum.wrapping_add(friends_of_friends(ctx, view, vertex)?.len() as u64);
                }
                sum
            }
            Work::Paths => {
                let mut sum = 0_u64;
                for pair in sequence.chunks_exact(2) {
                    sum += path(ctx, view, pair[0], pair[1])?.map_or(0, |path| path.vertices.len() as u64);
                }
                sum
            }
            Work::Bfs => bfs(ctx, view, &BfsParams { source, ..BfsParams::default() })?.reached,
            Work::PageRank => {
                let params = PageRankParams { iterations: Some(ITERATIONS), ..PageRankParams::default() };
                // Equal to 1e-9 of a sum of 1.
                (pagerank(ctx, view, &params)?.sum * 1e9).round() as u64
            }
            Work::Triangles => triangles(ctx, view, &TriangleParams::default())?.triangles,
            Work::Wcc => wcc(ctx, view, &WccParams::default())?.components,
            Work::Degrees => degrees(pool, view),
        })
    });
    let digest = digest?;
    view.check()?;
    Ok(Phase { seconds, digest })
}

/// Says what the queries after `place` will read, as nobody else can know.
fn announce(view: &View, sequence: &[VertexId], place: usize, is_oracle: bool) {
    use graph::WillNeed;
    if is_oracle && place.is_multiple_of(ORACLE_BATCH) {
        let from = if place == 0 { 0 } else { place + ORACLE_AHEAD };
        let next = &sequence[from.min(sequence.len())..(place + ORACLE_AHEAD + ORACLE_BATCH).min(sequence.len())];
        view.will_need_out(next);
    }
}

fn edges(view: &View, sequence: &[VertexId], is_oracle: bool) -> u64 {
    let mut sum = 0_u64;
    for (place, &vertex) in sequence.iter().enumerate() {
        announce(view, sequence, place, is_oracle);
        let _ = view.for_each_out_fragment(vertex, |targets| {
            sum = targets.iter().fold(sum, |sum, &target| sum.wrapping_add(u64::from(target)));
            ControlFlow::Continue(())
        });
    }
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
