//! Triangles: the number of sets of three pairwise adjacent vertices.
//!
//! # Result
//! The exact number of triangles of the graph without directions, loops and parallel edges. On request, also the number
//! of triangles at each vertex (`u64` by vertex id, 0 for dead vertices).
//!
//! # Algorithm
//! Vertices are ranked by degree, highest first. An *oriented* copy of the graph keeps each edge once, at its end of
//! later rank. So each triangle is found once, at its last vertex `u`: the list of `u` shares a vertex with the list of
//! its entry `v`. No list is longer than the square root of twice the number of edges. Ranks serve as ids in the copy,
//! so the most-read entries lie together.
//!
//! The first ranks are *hubs*, whose lists are also kept as rows of bits. If `v` is a hub, the common vertices are the
//! set bits that its row shares with the row of `u`. They are counted a cache line at a time, or tested one by one if
//! `u` has only a few hubs. Otherwise a map of bytes tells the entries of the list of `v` that are in the list of `u`.
//! A graph of small degree needs no copy: its lists are compared as they are, with ids as ranks. A sample of the
//! vertices tells which way is cheaper. Workers take a few vertices at a time. The count is an integer, so it does not
//! depend on the distribution of work.
//!
//! # Parameters
//! The number of hubs. Their rows take its square over 16 bytes. A row is read once for each edge to a hub, so the rows
//! should nearly fit in the second-level cache; see [`DEFAULT_HUBS`].
//!
//! # References
//! - T. Schank, D. Wagner: Finding, Counting and Listing All Triangles in Large Graphs, WEA 2005: the order by degree
//!   and the oriented lists (*forward*).
//! - M. Latapy: Main-memory triangle computations for very large (sparse (power-law)) graphs, Theoretical Computer
//!   Science 2008: the bound, and separate treatment of high degrees (*new-vertex-listing*).

pub(crate) mod by_vertex;
mod direct;
mod hubs;
pub(crate) mod oriented;
mod rows;
mod streamed;
mod verify;

use std::ops::Range;
use std::time::Instant;

use anden_base::VertexId;
use anden_graph::{Graph, StoredFormKey};
use parking_lot::Mutex;

use crate::context::FIXED_BYTES;
use crate::preparation::PreparedForm;
use crate::{Context, Result};
use by_vertex::{Noted, VertexTriangles};
use hubs::Hubs;
use oriented::Oriented;

pub use verify::verify;

/// The default number of hubs: rows of 32 MB, of which a bit less than half is read.
///
/// Among 4,096, 8,192, 16,384 and 32,768 hubs, this was best or second best on Kronecker graphs.
pub const DEFAULT_HUBS: usize = 16_384;

/// The default number of hubs for triangles by vertex: 4,096, and 8,192 from half a million vertices on. The larger
/// number makes a Kronecker graph of a million vertices a quarter faster; smaller web and social graphs lose a few per
/// cent.
pub fn default_vertex_hubs(vertex_bound: usize) -> usize {
    if vertex_bound < 1 << 19 { 4096 } else { 8192 }
}

/// The number of vertices that a worker takes at a time: small, since the lists of the first ranks are long.
const GRAIN: usize = 64;

/// Parameters of [`triangles`](triangles()).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TriangleParams {
    /// The number of vertices of highest degree with bit rows; `None`: [`DEFAULT_HUBS`], or [`default_vertex_hubs`] by
    /// vertex.
    pub num_hubs: Option<usize>,
    /// Whether to count the triangles at each vertex too, in about twice the time.
    pub by_vertex: bool,
}

/// Result of [`triangles`](triangles()).
#[derive(Clone, Debug, PartialEq)]
pub struct TriangleResult {
    /// The number of triangles.
    pub triangles: u64,
    /// The number of triangles at each vertex, by vertex id; `None` unless requested.
    pub by_vertex: Option<Vec<u64>>,
    /// The time to build the oriented copy and the hub rows, in seconds.
    pub preparation_seconds: f64,
    /// Whether an earlier run built them, or the database stores the copy.
    pub was_prepared: bool,
    /// The bytes of the oriented copy, or of its largest part, and of the hub rows.
    pub copy_bytes: u64,
    /// The number of hubs with rows: 0 if the budget forbade them.
    pub num_hubs: usize,
}

/// The form that a count without parameters reads from a database that stores it; `None`: the count takes another way.
pub fn stored_form(ctx: &Context<'_>, graph: &impl Graph) -> Option<StoredFormKey> {
    (!direct::is_cheaper(ctx, graph)).then(|| Oriented::stored_key(DEFAULT_HUBS.min(graph.vertex_bound())))
}

/// Counts the triangles of `graph`.
///
/// *Cost*: at most the number of edges times its square root, in practice much less. *Memory*: 4 bytes an edge
/// (directed: an arc) for the oriented copy, 20 to 28 bytes a vertex, and one for each vertex and worker. Each worker
/// takes 12 to 44 bytes for each entry of the longest list of the copy. The hub rows are left out if the budget forbids
/// them. Counts by vertex add up to 16 bytes a vertex, and 9 for each vertex and worker. They also add 64 for each
/// worker and entry of the longest list. *Determinism*: equal in every run.
///
/// If that does not fit, or the [medium](crate::Medium::Disk) is a disk, the copy is built in parts. Each vertex must
/// have all its neighbors in its own lists. This takes 8 bytes a vertex (by vertex 24), one for each vertex and worker,
/// and a part of the copy, at least an eighth. All lists are read twice for each part.
///
/// # Errors
/// The budget is too small, the graph is damaged, or the work was cancelled.
pub fn triangles(ctx: &Context<'_>, graph: &impl Graph, params: &TriangleParams) -> Result<TriangleResult> {
    if params.by_vertex {
        return by_vertex(ctx, graph, params.num_hubs);
    }
    let started = Instant::now();
    let bound = graph.vertex_bound();
    // A number of hubs asks for the copy.
    if params.num_hubs.is_none() && direct::is_cheaper(ctx, graph) {
        let (preparation_seconds, was_prepared) = (started.elapsed().as_secs_f64(), false);
        ctx.progress.stage("triangles: count", Some(bound as u64));
        let triangles = direct::count(ctx, graph);
        ctx.progress.check()?;
        graph.check()?;
        let (by_vertex, copy_bytes, num_hubs) = (None, 0, 0);
        return Ok(TriangleResult { triangles, by_vertex, preparation_seconds, was_prepared, copy_bytes, num_hubs });
    }
    let copy_bytes = Oriented::num_bytes(graph, ctx.pool.num_threads()) + FIXED_BYTES;
    let wanted_hubs = params.num_hubs.unwrap_or(DEFAULT_HUBS).min(bound);
    // Taken before the budget is asked, so that its bytes count once. If they do not fit, it goes back, and the checks
    // below evict it.
    let kept = PreparedForm::take(ctx.preparations, graph, wanted_hubs as u64, OrientedWithHubs::num_bytes);
    let kept = kept.filter(|_| ctx.allows(copy_bytes + Hubs::num_bytes(wanted_hubs)));
    if streamed::is_wanted(ctx, graph, copy_bytes) {
        drop(kept);
        return streamed::count(ctx, graph, params.num_hubs);
    }
    ctx.require_memory("triangles", copy_bytes)?;
    // The count needs no hubs to be exact.
    let num_hubs = if ctx.allows(copy_bytes + Hubs::num_bytes(wanted_hubs)) { wanted_hubs } else { 0 };
    let key = num_hubs as u64;
    let kept = kept.or_else(|| PreparedForm::take(ctx.preparations, graph, key, OrientedWithHubs::num_bytes));
    let prepared = match kept.or_else(|| OrientedWithHubs::read(ctx, graph, num_hubs)) {
        Some(kept) => kept,
        None => {
            let made = OrientedWithHubs::build(ctx, graph, num_hubs)?;
            let num_bytes = made.num_bytes();
            PreparedForm::new(ctx.preparations, graph, key, made, num_bytes)
        }
    };
    let preparation_seconds = started.elapsed().as_secs_f64();

    ctx.progress.stage("triangles: count", Some(bound as u64));
    let triangles = count(ctx, &prepared.oriented, &prepared.hubs);
    ctx.progress.check()?;
    graph.check()?;
    let (by_vertex, copy_bytes, was_prepared) = (None, prepared.num_bytes(), prepared.was_kept());
    Ok(TriangleResult { triangles, by_vertex, preparation_seconds, was_prepared, copy_bytes, num_hubs })
}

/// The oriented copy, with the rows of its hubs.
#[derive(Default)]
struct OrientedWithHubs {
    oriented: Oriented,
    hubs: Hubs,
}

impl OrientedWithHubs {
    fn build(ctx: &Context<'_>, graph: &impl Graph, num_hubs: usize) -> Result<Self> {
        ctx.progress.stage("triangles: orient", None);
        let (oriented, _) = Oriented::build(ctx, graph, num_hubs as VertexId)?;
        Ok(Self::new(oriented, num_hubs))
    }

    fn new(oriented: Oriented, num_hubs: usize) -> Self {
        let hubs = Hubs::build(&oriented, num_hubs);
        Self { oriented, hubs }
    }

    /// The copy that the database stores, if it does.
    fn read<'a>(ctx: &Context<'a>, graph: &impl Graph, num_hubs: usize) -> Option<PreparedForm<'a, Self>> {
        let decode = |arrays: &[&[u8]]| {
            let (oriented, _) = Oriented::from_arrays(ctx, graph, num_hubs as u64, arrays)?;
            Ok(Some(Self::new(oriented, num_hubs)))
        };
        PreparedForm::read(ctx.preparations, ctx.pool, graph, Oriented::stored_key(num_hubs), decode, Self::num_bytes)
    }

    fn num_bytes(&self) -> u64 {
        self.oriented.copy_bytes() + Hubs::num_bytes(self.hubs.len())
    }
}

fn by_vertex(ctx: &Context<'_>, graph: &impl Graph, num_hubs: Option<usize>) -> Result<TriangleResult> {
    let found = by_vertex::find(ctx, graph, "triangles", num_hubs, Noted::Triangle)?;
    let VertexTriangles { counts, ranks, preparation_seconds, was_prepared, copy_bytes, num_hubs, .. } = found;
    let by_vertex: Vec<u64> = ranks.iter().map(|&rank| counts[rank as usize]).collect();
    let (triangles, by_vertex) = (counts.iter().sum::<u64>() / 3, Some(by_vertex));
    Ok(TriangleResult { triangles, by_vertex, preparation_seconds, was_prepared, copy_bytes, num_hubs })
}

fn count(ctx: &Context<'_>, oriented: &Oriented, hubs: &Hubs) -> u64 {
    let new_counter = || Mutex::new(TriangleCounter::new(oriented.num_vertices(), hubs.len()));
    let counters: Vec<Mutex<TriangleCounter>> = (0..ctx.pool.num_threads()).map(|_| new_counter()).collect();
    ctx.pool.for_each_chunk(0..oriented.num_vertices(), GRAIN, |worker, ranks| {
        if !ctx.progress.is_cancelled() {
            counters[worker].lock().add(oriented, hubs, ranks.clone());
            ctx.progress.advance(ranks.len() as u64);
        }
    });
    counters.into_iter().map(|counter| counter.into_inner().triangles).sum()
}

/// Scratch memory and count of one worker.
struct TriangleCounter {
    /// The hubs in the current list, as a row.
    row: Vec<u64>,
    /// 1 for each vertex in the current list.
    marks: Vec<u8>,
    triangles: u64,
}

impl TriangleCounter {
    fn new(num_vertices: usize, num_hubs: usize) -> Self {
        Self { row: vec![0; num_hubs.div_ceil(64)], marks: anden_base::memory::zeroed_huge(num_vertices), triangles: 0 }
    }

    /// Counts the triangles with their last vertex in `ranks`.
    fn add(&mut self, oriented: &Oriented, hubs: &Hubs, ranks: Range<usize>) {
        for rank in ranks {
            let list = oriented.list(rank);
            // A triangle needs two earlier neighbors.
            if list.len() < 2 {
                continue;
            }
            let (to_hubs, to_others) = list.split_at(list.partition_point(|&v| (v as usize) < hubs.len()));
            // All earlier neighbors of a hub are hubs.
            if rank < hubs.len() {
                self.add_hub(hubs, rank, to_hubs);
                continue;
            }
            self.add_hubs(hubs, to_hubs);
            self.add_others([to_hubs, to_others], |v| oriented.list(v as usize));
        }
    }

    /// Counts adjacent pairs in the list of a hub.
    fn add_hub(&mut self, hubs: &Hubs, rank: usize, to_hubs: &[VertexId]) {
        let row = hubs.row(rank);
        self.triangles += to_hubs.iter().map(|&v| hubs.num_common(row, v)).sum::<u64>();
    }

    /// Counts adjacent pairs of hubs in the current list.
    fn add_hubs(&mut self, hubs: &Hubs, to_hubs: &[VertexId]) {
        if to_hubs.len() < 2 {
            return;
        }
        to_hubs.iter().for_each(|&v| self.row[v as usize / 64] |= 1 << (v % 64));
        for &v in to_hubs {
            // Testing a bit for each hub is cheaper than counting a row with more lines than hubs in the list.
            self.triangles += if Hubs::line_count(v) < to_hubs.len() {
                hubs.num_common(&self.row, v)
            } else {
                hubs.num_members(to_hubs, v)
            };
        }
        // Clears only the words that the list has set.
        to_hubs.iter().for_each(|&v| self.row[v as usize / 64] = 0);
    }

    /// Counts adjacent pairs in the current list whose later vertex is no hub.
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
