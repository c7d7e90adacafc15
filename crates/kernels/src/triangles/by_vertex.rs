//! The triangles at each vertex, or the arcs between its neighbors.
//!
//! As in a plain count, a triangle of the ranks `w < v < u` is found at `u`, but it counts at all three vertices. If
//! `v` and `w` are hubs, the rows hold adjacent hubs in both directions. The bits that the rows of `v` and `u` share
//! are then the triangles with the edge from `u` to `v`, for any third vertex. `v` gets their number, and `u` half of
//! the sum over all such `v`. If `v` is no hub, the marked entries of the list of `v` are gathered without a branch,
//! and each is counted. Every worker has its own counts, added at the end, so no lock is needed.

use std::ops::{Deref, Range};
use std::time::Instant;

use anden_base::VertexId;
use anden_base::memory::zeroed_huge;
use anden_base::simd::and_count_ones;
use anden_graph::{Graph, StoredFormKey};
use parking_lot::Mutex;

use super::oriented::{Oriented, gather};
use super::rows::HubRows;
use super::{GRAIN, streamed};
use crate::context::FIXED_BYTES;
use crate::preparation::PreparedForm;
use crate::stored_arrays::copied;
use crate::{Context, Result};

/// The number of vertices whose counts are added at a time.
const SUM_GRAIN: usize = 1 << 14;

/// The weight of a triangle in the count of one of its vertices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noted {
    /// 1; degrees are not computed.
    Triangle,
    /// 1, for the edge between the other two vertices.
    Edge,
    /// The number of arcs between the other two vertices, 1 or 2.
    Arcs,
}

/// The counts at the vertices of all triangles.
pub(crate) struct VertexTriangles<'a> {
    /// The counts, by rank.
    pub(crate) counts: Vec<u64>,
    /// The number of neighbors in either direction, by rank; empty for [`Noted::Triangle`].
    pub(crate) degrees: Vec<u32>,
    /// The rank of each vertex, by vertex id.
    pub(crate) ranks: VertexRanks<'a>,
    /// The time to build the copy, in seconds.
    pub(crate) preparation_seconds: f64,
    /// Whether an earlier run built the copy, or the database stores it.
    pub(crate) was_prepared: bool,
    /// The most bytes of the copy, and those of the hub rows.
    pub(crate) copy_bytes: u64,
    /// The number of hubs with rows.
    pub(crate) num_hubs: usize,
}

/// The rank of each vertex, by vertex id: alone, or with the copy that goes back to the cache.
pub(crate) enum VertexRanks<'a> {
    Own(Vec<VertexId>),
    Prepared(PreparedForm<'a, RankedCopy>),
}

impl Deref for VertexRanks<'_> {
    type Target = [VertexId];

    fn deref(&self) -> &[VertexId] {
        match self {
            Self::Own(ranks) => ranks,
            Self::Prepared(copy) => &copy.ranks,
        }
    }
}

/// The oriented copy and the ranks of the vertices.
#[derive(Default)]
pub(crate) struct RankedCopy {
    oriented: Oriented,
    ranks: Vec<VertexId>,
}

impl RankedCopy {
    /// The copy that the database stores, if it does.
    fn read<'a>(ctx: &Context<'a>, graph: &impl Graph, num_hubs: usize) -> Option<PreparedForm<'a, Self>> {
        let decode = |arrays: &[&[u8]]| {
            let (oriented, ranks) = Oriented::from_arrays(ctx, graph, num_hubs as u64, arrays)?;
            Ok(Some(Self { oriented, ranks: copied(ctx, ranks) }))
        };
        PreparedForm::read(ctx.preparations, ctx.pool, graph, Oriented::stored_key(num_hubs), decode, Self::num_bytes)
    }

    fn num_bytes(&self) -> u64 {
        self.oriented.copy_bytes() + size_of_val(&self.ranks[..]) as u64
    }
}

/// The form that counts by vertex without parameters read from a database.
pub(crate) fn stored_form(graph: &impl Graph) -> StoredFormKey {
    let bound = graph.vertex_bound();
    Oriented::stored_key(super::default_vertex_hubs(bound).min(bound))
}

/// Counts the triangles at every vertex.
///
/// # Errors
/// The budget is too small, the graph is damaged, or the work was cancelled.
pub(crate) fn find<'a>(
    ctx: &Context<'a>,
    graph: &impl Graph,
    kernel: &'static str,
    wanted_hubs: Option<usize>,
    noted: Noted,
) -> Result<VertexTriangles<'a>> {
    let started = Instant::now();
    let wanted_hubs = wanted_hubs.unwrap_or_else(|| super::default_vertex_hubs(graph.vertex_bound()));
    let wanted_hubs = wanted_hubs.min(graph.vertex_bound());
    let (by_arcs, least) = (noted == Noted::Arcs, least_bytes(ctx, graph));
    let affordable_hubs = || affordable_hubs(ctx, least, wanted_hubs, by_arcs);
    // Taken before the budget is asked, so that its bytes count once. If they do not fit, it goes back, and the checks
    // below evict it.
    let kept = PreparedForm::take(ctx.preparations, graph, wanted_hubs as u64, RankedCopy::num_bytes);
    let kept = kept.filter(|_| ctx.allows(least) && affordable_hubs() == wanted_hubs);
    if streamed::is_wanted(ctx, graph, least) {
        drop(kept);
        return streamed::by_vertex(ctx, graph, kernel, noted);
    }
    ctx.require_memory(kernel, least)?;
    let num_hubs = affordable_hubs();
    let kept = kept.or_else(|| PreparedForm::take(ctx.preparations, graph, num_hubs as u64, RankedCopy::num_bytes));
    let copy = match kept.or_else(|| RankedCopy::read(ctx, graph, num_hubs)) {
        Some(kept) => kept,
        None => {
            ctx.progress.stage("triangles by vertex: orient", None);
            let (oriented, ranks) = Oriented::build(ctx, graph, num_hubs as VertexId)?;
            let made = RankedCopy { oriented, ranks };
            let num_bytes = made.num_bytes();
            PreparedForm::new(ctx.preparations, graph, num_hubs as u64, made, num_bytes)
        }
    };
    let oriented = &copy.oriented;
    let preparation_seconds = started.elapsed().as_secs_f64();
    ctx.progress.stage("triangles by vertex: count", Some(graph.vertex_bound() as u64));
    let counts = count(ctx, oriented, num_hubs, by_arcs)?;
    let degrees = if noted == Noted::Triangle { Vec::new() } else { degrees(ctx, oriented) };
    ctx.progress.check()?;
    graph.check()?;
    let copy_bytes = oriented.copy_bytes() + row_bytes(num_hubs, by_arcs);
    let (was_prepared, ranks) = (copy.was_kept(), VertexRanks::Prepared(copy));
    Ok(VertexTriangles { counts, degrees, ranks, preparation_seconds, was_prepared, copy_bytes, num_hubs })
}

/// The bytes needed without hubs.
fn least_bytes(ctx: &Context<'_>, graph: &impl Graph) -> u64 {
    let (bound, num_threads) = (graph.vertex_bound(), ctx.pool.num_threads());
    // Beside the copy and the ranks: a sum and a result, and for each worker a count and a mark.
    let bytes_a_vertex = 8 + 8 + 9 * num_threads as u64;
    // The current list, its classes, and the gathered entries, each in up to twice its room.
    let list_bytes = 64 * Oriented::longest_list(graph) * num_threads as u64;
    Oriented::num_bytes(graph, num_threads) + bytes_a_vertex * bound as u64 + list_bytes + FIXED_BYTES
}

/// The number of hubs that the budget allows: `wanted` or 0.
fn affordable_hubs(ctx: &Context<'_>, least: u64, wanted: usize, by_arcs: bool) -> usize {
    let hub_bytes = row_bytes(wanted, by_arcs) + (size_of::<u64>() * wanted * ctx.pool.num_threads()) as u64;
    if ctx.allows(least + hub_bytes) { wanted } else { 0 }
}

/// The bytes of the hub rows.
fn row_bytes(num_hubs: usize, by_arcs: bool) -> u64 {
    HubRows::num_bytes(num_hubs) * (1 + u64::from(by_arcs))
}

/// The counts, by rank.
///
/// # Errors
/// The work was cancelled.
fn count(ctx: &Context<'_>, oriented: &Oriented, num_hubs: usize, by_arcs: bool) -> Result<Vec<u64>> {
    let bound = oriented.num_vertices();
    let hubs = HubRows::build(ctx.pool, num_hubs, |rank| oriented.list(rank));
    let doubles = HubRows::build(ctx.pool, if by_arcs { num_hubs } else { 0 }, |rank| oriented.parts(rank)[0]);
    let shared = SharedRows { oriented, hubs: &hubs, doubles: &doubles };
    let counters: Vec<_> =
        (0..ctx.pool.num_threads()).map(|_| Mutex::new(VertexTriangleCounter::new(shared))).collect();
    ctx.pool.for_each_chunk(0..bound, GRAIN, |worker, ranks| {
        if !ctx.progress.is_cancelled() {
            let num_ranks = ranks.len() as u64;
            let mut counter = counters[worker].lock();
            if by_arcs {
                counter.add::<true>(ranks)
            } else {
                counter.add::<false>(ranks)
            }
            ctx.progress.advance(num_ranks);
        }
    });
    ctx.progress.check()?;
    let counters = counters.into_iter().map(Mutex::into_inner);
    let (by_worker, twice): (Vec<_>, Vec<_>) = counters.map(|counter| (counter.counts, counter.twice)).unzip();
    let mut counts = sum(ctx, by_worker);
    for (hub, count) in counts[..num_hubs].iter_mut().enumerate() {
        *count += twice.iter().map(|twice| twice[hub]).sum::<u64>() / 2;
    }
    Ok(counts)
}

/// The sums of the workers' counts, vertex by vertex.
fn sum<T: Copy + Send + Sync + std::ops::AddAssign>(ctx: &Context<'_>, by_worker: Vec<Vec<T>>) -> Vec<T> {
    let mut by_worker = by_worker.into_iter();
    // The counts of the first worker become the sums, which saves an array.
    let mut sums = by_worker.next().unwrap_or_default();
    for counts in by_worker {
        ctx.pool.for_each_part_mut(&mut sums, SUM_GRAIN, |start, sums| {
            sums.iter_mut().zip(&counts[start..]).for_each(|(sum, &count)| *sum += count);
        });
    }
    sums
}

/// The number of neighbors of every vertex in either direction, by rank.
fn degrees(ctx: &Context<'_>, oriented: &Oriented) -> Vec<u32> {
    let bound = oriented.num_vertices();
    let counters: Vec<Mutex<Vec<u32>>> = (0..ctx.pool.num_threads()).map(|_| Mutex::new(zeroed_huge(bound))).collect();
    ctx.pool.for_each_chunk(0..bound, SUM_GRAIN, |worker, ranks| {
        let mut degrees = counters[worker].lock();
        for rank in ranks {
            let list = oriented.list(rank);
            degrees[rank] += list.len() as u32;
            list.iter().for_each(|&v| degrees[v as usize] += 1);
        }
    });
    sum(ctx, counters.into_iter().map(Mutex::into_inner).collect())
}

/// The data that all workers share.
#[derive(Clone, Copy)]
struct SharedRows<'a> {
    oriented: &'a Oriented,
    hubs: &'a HubRows,
    /// The adjacency of hubs with arcs both ways; empty unless arcs are counted.
    doubles: &'a HubRows,
}

/// Scratch memory and counts of one worker.
struct VertexTriangleCounter<'a> {
    shared: SharedRows<'a>,
    /// The count at each vertex.
    counts: Vec<u64>,
    /// Twice the count at each hub: its triangles with other hubs are found along both of its edges.
    twice: Vec<u64>,
    /// The hubs in the current list, as a row, and those with arcs both ways.
    row: Vec<u64>,
    double_row: Vec<u64>,
    /// For each vertex in the current list, the number of arcs to it.
    marks: Vec<u8>,
    /// The marked entries of a list.
    found: Vec<VertexId>,
}

impl<'a> VertexTriangleCounter<'a> {
    fn new(shared: SharedRows<'a>) -> Self {
        let (bound, num_hubs) = (shared.oriented.num_vertices(), shared.hubs.len());
        let row = vec![0; num_hubs.div_ceil(64)];
        Self {
            shared,
            counts: zeroed_huge(bound),
            twice: vec![0; num_hubs],
            row: row.clone(),
            double_row: row,
            marks: zeroed_huge(bound),
            found: Vec::new(),
        }
    }

    /// Counts the triangles with their last vertex in `ranks`.
    fn add<const BY_ARCS: bool>(&mut self, ranks: Range<usize>) {
        let num_hubs = self.shared.hubs.len();
        for rank in ranks {
            let list = self.shared.oriented.list(rank);
            // All earlier neighbors of a hub are hubs.
            if rank < num_hubs {
                self.add_hub::<BY_ARCS>(rank, list);
                continue;
            }
            self.fetch_ahead(rank);
            if list.len() < 2 {
                continue;
            }
            let (to_hubs, to_others) = list.split_at(list.partition_point(|&v| (v as usize) < num_hubs));
            let num_doubles = if BY_ARCS { self.shared.oriented.parts(rank)[0].len() } else { 0 };
            let found = if to_hubs.len() < 2 {
                0
            } else if to_hubs.len() / 2 < lines_of(to_hubs) {
                // The pairs of n hubs take n² / 2 tests; the rows take n times their number of lines.
                self.add_few_hubs::<BY_ARCS>(to_hubs, num_doubles)
            } else {
                self.add_hubs::<BY_ARCS>(to_hubs, num_doubles)
            };
            let found = found + if to_others.is_empty() { 0 } else { self.add_others::<BY_ARCS>(rank, list) };
            self.counts[rank] += found;
        }
    }

    /// Lists are short and looked up at random, so the data of later ranks is prefetched.
    #[inline(always)]
    fn fetch_ahead(&self, rank: usize) {
        /// Prefetch distances in ranks: first the place of a list and its count, then the list.
        const FAR: usize = 16;
        const NEAR: usize = 8;
        /// The most entries prefetched of a list; the reads of a longer list overlap by themselves.
        const MOST: usize = 8;
        let oriented = self.shared.oriented;
        let others = |ahead: usize| {
            let list = if rank + ahead < oriented.num_vertices() { oriented.list(rank + ahead) } else { &[] };
            list[list.len().saturating_sub(MOST)..].iter().map(|&v| v as usize)
        };
        for v in others(FAR) {
            oriented.prefetch_place(v);
            anden_base::simd::prefetch(&self.counts, v);
        }
        others(NEAR).for_each(|v| oriented.prefetch_list(v));
    }

    /// Counts triangles of three hubs, each along its three edges.
    fn add_hub<const BY_ARCS: bool>(&mut self, rank: usize, to_hubs: &[VertexId]) {
        let (hubs, doubles) = (self.shared.hubs, self.shared.doubles);
        let row = hubs.row(rank);
        let mut sum = 0;
        for &v in to_hubs {
            let other = hubs.row(v as usize);
            let common = and_count_ones(row, other);
            let (mut here, mut there) = (common, common);
            if BY_ARCS {
                here += and_count_ones(row, doubles.row(v as usize));
                there += and_count_ones(doubles.row(rank), other);
            }
            sum += here;
            self.twice[v as usize] += there;
        }
        self.twice[rank] += sum;
    }

    /// Counts adjacent pairs of hubs in the current list. Returns their number.
    fn add_hubs<const BY_ARCS: bool>(&mut self, to_hubs: &[VertexId], num_doubles: usize) -> u64 {
        let set = |row: &mut [u64], list: &[VertexId]| {
            list.iter().for_each(|&v| row[v as usize / 64] |= 1 << (v % 64));
        };
        set(&mut self.row, to_hubs);
        let is_double = BY_ARCS && num_doubles > 0;
        if is_double {
            set(&mut self.double_row, &to_hubs[..num_doubles]);
        }
        // `row` has no bits after the last hub of the list.
        let len = lines_of(to_hubs) * LINE_WORDS;
        let len = len.min(self.row.len());
        let (row, double_row) = (&self.row[..len], &self.double_row[..len]);
        let mut twice = 0;
        for &v in to_hubs {
            let other = &self.shared.hubs.row(v as usize)[..len];
            let common = and_count_ones(row, other);
            let (mut here, mut there) = (common, common);
            if BY_ARCS {
                here += and_count_ones(row, &self.shared.doubles.row(v as usize)[..len]);
            }
            if is_double {
                there += and_count_ones(double_row, other);
            }
            twice += here;
            self.counts[v as usize] += there;
        }
        to_hubs.iter().for_each(|&v| self.row[v as usize / 64] = 0);
        if is_double {
            to_hubs[..num_doubles].iter().for_each(|&v| self.double_row[v as usize / 64] = 0);
        }
        twice / 2
    }

    /// As [`add_hubs`](Self::add_hubs), testing pair by pair: cheaper for few hubs.
    fn add_few_hubs<const BY_ARCS: bool>(&mut self, to_hubs: &[VertexId], num_doubles: usize) -> u64 {
        // Entries with arcs both ways come first in the list.
        let arcs_to = |place: usize| 1 + u64::from(BY_ARCS && place < num_doubles);
        let mut sum = 0;
        for (i, &v) in to_hubs.iter().enumerate().skip(1) {
            let mut at_v = 0;
            for (j, &w) in to_hubs[..i].iter().enumerate() {
                let bit = self.shared.hubs.bit(v, w);
                sum += bit + if BY_ARCS { self.shared.doubles.bit(v, w) } else { 0 };
                at_v += bit * arcs_to(j);
                self.counts[w as usize] += bit * arcs_to(i);
            }
            self.counts[v as usize] += at_v;
        }
        sum
    }

    /// Counts adjacent pairs in the current list whose later vertex is no hub. Returns their number.
    fn add_others<const BY_ARCS: bool>(&mut self, rank: usize, list: &[VertexId]) -> u64 {
        if BY_ARCS {
            return self.add_others_by_arcs(rank, list);
        }
        let num_hubs = self.shared.hubs.len();
        list.iter().for_each(|&v| self.marks[v as usize] = 1);
        let mut sum = 0;
        for &v in list.iter().filter(|&&v| v as usize >= num_hubs) {
            let num_found = self.find(self.shared.oriented.list(v as usize));
            self.found[..num_found].iter().for_each(|&w| self.counts[w as usize] += 1);
            self.counts[v as usize] += num_found as u64;
            sum += num_found as u64;
        }
        list.iter().for_each(|&v| self.marks[v as usize] = 0);
        sum
    }

    fn add_others_by_arcs(&mut self, rank: usize, list: &[VertexId]) -> u64 {
        // In the order of `Oriented::parts`.
        const ARCS: [u8; 3] = [2, 1, 2];
        let num_hubs = self.shared.hubs.len();
        let parts = self.shared.oriented.parts(rank);
        for (part, arcs) in parts.into_iter().zip(ARCS) {
            part.iter().for_each(|&v| self.marks[v as usize] = arcs);
        }
        let mut sum = 0;
        for (part, arcs_to_v) in parts.into_iter().zip(ARCS) {
            for &v in part.iter().filter(|&&v| v as usize >= num_hubs) {
                let mut at_v = 0;
                for (part, arcs_between) in self.shared.oriented.parts(v as usize).into_iter().zip(ARCS) {
                    let num_found = self.find(part);
                    sum += (num_found * usize::from(arcs_between)) as u64;
                    for &w in &self.found[..num_found] {
                        self.counts[w as usize] += u64::from(arcs_to_v);
                        at_v += u64::from(self.marks[w as usize]);
                    }
                }
                self.counts[v as usize] += at_v;
            }
        }
        list.iter().for_each(|&v| self.marks[v as usize] = 0);
        sum
    }

    /// Gathers the marked entries of a list. Returns their number.
    #[inline(always)]
    fn find(&mut self, list: &[VertexId]) -> usize {
        let marks = &self.marks;
        gather(list.iter().map(|&w| (w, marks[w as usize] != 0)), list.len(), &mut self.found, 0)
    }
}

/// Words of a cache line, the unit of counting.
const LINE_WORDS: usize = 8;

/// The number of cache lines of a row up to the last of these hubs.
fn lines_of(hubs: &[VertexId]) -> usize {
    let last = hubs.iter().copied().max().unwrap_or(0);
    last as usize / (64 * LINE_WORDS) + 1
}
