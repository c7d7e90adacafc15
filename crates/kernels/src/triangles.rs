//! Triangles: how many sets of three vertices are connected pairwise.
//!
//! # Result
//! The number of triangles of the graph without directions, loops and parallel edges, exactly; if asked
//! for, also that of the triangles at each vertex (`u64` by vertex id, 0 where there is none).
//!
//! # Algorithm
//! Vertices are ranked by degree, the highest first. An *oriented* copy of the graph keeps each edge
//! once, at its end of the later rank, so a triangle is found once, at its last vertex `u`, as a
//! vertex common to the lists of `u` and of an entry `v` of its list; and no list is longer than the
//! square root of twice the number of edges. The ranks serve as ids in the copy, which packs
//! what is read most.
//!
//! The first ranks are *hubs*, whose lists are kept as rows of bits, too. Where `v` is a hub, the
//! common vertices are the bits set in its row and in that of `u`, counted a cache line at a time,
//! or tested one by one where `u` has but a few hubs. Where it is not, a map of bytes tells which
//! entries of the list of `v` are in that of `u`. Vertices are handed to the workers a few at a
//! time; the count is an integer, so it does not depend on who counted what.
//!
//! # Parameters
//! The number of hubs: their rows take its square over 16 bytes and are read once for each edge to
//! a hub, so they should stay in the second-level cache or near it; see [`DEFAULT_HUBS`].
//!
//! # References
//! - T. Schank, D. Wagner: Finding, Counting and Listing All Triangles in Large Graphs, WEA 2005:
//!   the order by degree and the oriented lists (*forward*).
//! - M. Latapy: Main-memory triangle computations for very large (sparse (power-law)) graphs,
//!   Theoretical Computer Science 2008: the bound, and high degrees treated apart (*new-vertex-listing*).

pub(crate) mod corners;
mod hubs;
pub(crate) mod oriented;
mod rows;
mod streamed;
mod verify;

use std::ops::Range;
use std::sync::Mutex;
use std::time::Instant;

use base::VertexId;
use graph::InEdges;

use crate::context::FIXED_BYTES;
use crate::{Context, Result};
use corners::{Corners, Noted};
use hubs::Hubs;
use oriented::Oriented;

pub use verify::verify;

/// The number of hubs unless told otherwise: rows of 32 MB, of which a bit less than half is read.
///
/// Of 4,096, 8,192, 16,384 and 32,768, this one was the best or next to it on Kronecker graphs.
pub const DEFAULT_HUBS: usize = 16_384;

/// The number of hubs where triangles are noted at their corners, unless told otherwise: 4,096, and twice
/// as many from half a million vertices on. A Kronecker graph of a million vertices gains a quarter by that,
/// while web and social graphs with fewer lose some per cent.
pub fn default_corner_hubs(vertex_bound: usize) -> usize {
    if vertex_bound < 1 << 19 { 4096 } else { 8192 }
}

/// Vertices handed to a worker at a time: the lists of the first ranks are long.
const GRAIN: usize = 64;

/// How triangles are to be counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TriangleParams {
    /// How many vertices of the highest degrees have rows of bits; `None`: [`DEFAULT_HUBS`], or
    /// [`default_corner_hubs`] by vertex.
    pub num_hubs: Option<usize>,
    /// Whether the triangles at each vertex are wanted, too: about twice the time.
    pub by_vertex: bool,
}

/// What was counted.
#[derive(Clone, Debug, PartialEq)]
pub struct TriangleResult {
    /// The number of triangles.
    pub triangles: u64,
    /// Those that each vertex is a corner of, by vertex id; `None` unless they were asked for.
    pub by_vertex: Option<Vec<u64>>,
    /// The time for the oriented copy and the hubs, in seconds.
    pub preparation_seconds: f64,
    /// The bytes of the oriented copy, or of the largest part of it, and of the rows of the hubs.
    pub copy_bytes: u64,
    /// The number of hubs that had rows: 0 where the budget forbade them.
    pub num_hubs: usize,
}

/// Counts the triangles of `graph`.
///
/// Work: at most the number of edges times the square root of it, in practice much less. Memory: 4
/// bytes an edge for the oriented copy (an arc, where edges have directions), 20 to 28 bytes a vertex and
/// one a vertex and worker, 12 to 44 a worker and entry of the longest list of the copy, and the rows of the hubs, which
/// are left out where the budget forbids them. By vertex, up to 16 bytes a vertex, 9 a vertex and worker, and 64 a worker
/// and entry of the longest list of the copy come to that. Deterministic.
///
/// Where that does not fit, or is to be [read from a disk](crate::Medium::Disk), and each vertex has all its neighbours in
/// its own lists: 8 bytes a vertex (by vertex 24), one a vertex and worker, and a part of the copy, at least an eighth; all
/// lists are read twice for each part.
///
/// # Errors
/// The budget is too small, the graph is damaged, or the work was cancelled.
pub fn triangles(ctx: &Context<'_>, graph: &impl InEdges, params: &TriangleParams) -> Result<TriangleResult> {
    if params.by_vertex {
        return by_vertex(ctx, graph, params.num_hubs);
    }
    let started = Instant::now();
    let bound = graph.vertex_bound();
    let copy_bytes = Oriented::num_bytes(graph, ctx.pool.num_threads()) + FIXED_BYTES;
    if streamed::is_wanted(ctx, graph, copy_bytes) {
        return ctx.pool.enter(|| streamed::count(ctx, graph, params.num_hubs));
    }
    ctx.require_memory("triangles", copy_bytes)?;
    let mut num_hubs = params.num_hubs.unwrap_or(DEFAULT_HUBS).min(bound);
    if !ctx.allows(copy_bytes + Hubs::num_bytes(num_hubs)) {
        num_hubs = 0;
    }
    ctx.progress.stage("triangles: orient", None);
    let (oriented, _) = Oriented::build(ctx, graph, num_hubs as VertexId)?;
    ctx.progress.check()?;
    graph.check()?;
    let hubs = Hubs::build(&oriented, num_hubs);
    let preparation_seconds = started.elapsed().as_secs_f64();

    ctx.progress.stage("triangles: count", Some(bound as u64));
    let triangles = count(ctx, &oriented, &hubs);
    ctx.progress.check()?;
    graph.check()?;
    let copy_bytes = oriented.copy_bytes() + Hubs::num_bytes(num_hubs);
    Ok(TriangleResult { triangles, by_vertex: None, preparation_seconds, copy_bytes, num_hubs })
}

fn by_vertex(ctx: &Context<'_>, graph: &impl InEdges, num_hubs: Option<usize>) -> Result<TriangleResult> {
    let found = corners::find(ctx, graph, "triangles", num_hubs, Noted::Triangle)?;
    let Corners { counts, ranks, preparation_seconds, copy_bytes, num_hubs, .. } = found;
    let by_vertex: Vec<u64> = ranks.iter().map(|&rank| counts[rank as usize]).collect();
    let triangles = counts.iter().sum::<u64>() / 3;
    Ok(TriangleResult { triangles, by_vertex: Some(by_vertex), preparation_seconds, copy_bytes, num_hubs })
}

fn count(ctx: &Context<'_>, oriented: &Oriented, hubs: &Hubs) -> u64 {
    let new_counter = || Mutex::new(Counter::new(oriented.num_vertices(), hubs.len()));
    let counters: Vec<Mutex<Counter>> = (0..ctx.pool.num_threads()).map(|_| new_counter()).collect();
    ctx.pool.for_each_chunk(0..oriented.num_vertices(), GRAIN, |worker, ranks| {
        if !ctx.progress.is_cancelled() {
            counters[worker].lock().unwrap_or_else(|e| e.into_inner()).add(oriented, hubs, ranks.clone());
            ctx.progress.advance(ranks.len() as u64);
        }
    });
    counters.into_iter().map(|counter| counter.into_inner().unwrap_or_else(|e| e.into_inner()).triangles).sum()
}

/// The scratch space and the sum of one worker.
struct Counter {
    /// The hubs in the list at hand, as a row.
    row: Vec<u64>,
    /// 1 for each vertex in the list at hand.
    marks: Vec<u8>,
    triangles: u64,
}

impl Counter {
    fn new(num_vertices: usize, num_hubs: usize) -> Self {
        Self { row: vec![0; num_hubs.div_ceil(64)], marks: base::memory::zeroed_huge(num_vertices), triangles: 0 }
    }

    /// Counts the triangles whose last vertex is among `ranks`.
    fn add(&mut self, oriented: &Oriented, hubs: &Hubs, ranks: Range<usize>) {
        for rank in ranks {
            let list = oriented.list(rank);
            if list.len() < 2 {
                continue;
            }
            let (to_hubs, to_others) = list.split_at(list.partition_point(|&v| (v as usize) < hubs.len()));
            if rank < hubs.len() {
                self.add_hub(hubs, rank, to_hubs);
                continue;
            }
            self.add_hubs(hubs, to_hubs);
            self.add_others([to_hubs, to_others], |v| oriented.list(v as usize));
        }
    }

    /// Counts pairs in the list at hand, that of a hub.
    fn add_hub(&mut self, hubs: &Hubs, rank: usize, to_hubs: &[VertexId]) {
        let row = hubs.row(rank);
        self.triangles += to_hubs.iter().map(|&v| hubs.num_common(row, v)).sum::<u64>();
    }

    /// Counts pairs of hubs in the list at hand.
    fn add_hubs(&mut self, hubs: &Hubs, to_hubs: &[VertexId]) {
        if to_hubs.len() < 2 {
            return;
        }
        to_hubs.iter().for_each(|&v| self.row[v as usize / 64] |= 1 << (v % 64));
        for &v in to_hubs {
            self.triangles += if Hubs::line_count(v) < to_hubs.len() {
                hubs.num_common(&self.row, v)
            } else {
                hubs.num_members(to_hubs, v)
            };
        }
        to_hubs.iter().for_each(|&v| self.row[v as usize / 64] = 0);
    }

    /// Counts pairs in the list at hand, hubs and others, whose later vertex is no hub.
    #[inline(always)]
    fn add_others<'l>(&mut self, list: [&[VertexId]; 2], list_of: impl Fn(VertexId) -> &'l [VertexId]) {
        let [_, to_others] = list;
        if to_others.is_empty() {
            return;
        }
        list.into_iter().flatten().for_each(|&v| self.marks[v as usize] = 1);
        for &v in to_others {
            self.triangles += list_of(v).iter().map(|&w| u64::from(self.marks[w as usize])).sum::<u64>();
        }
        list.into_iter().flatten().for_each(|&v| self.marks[v as usize] = 0);
    }
}
