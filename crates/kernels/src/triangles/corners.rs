//! The triangles at each vertex, or the arcs between its neighbours.
//!
//! A triangle of the ranks `w < v < u` is found at `u`, as in a count of all of them, but it has to be
//! noted at all three. Where `v` and `w` are hubs, the rows of bits hold the hubs in both directions:
//! the bits in the row of `v` and in that of `u` are then the triangles with the edge from `u` to `v`,
//! whatever the third corner, and `v` gets their number while `u` gets half of the sum over all such
//! `v`. Where `v` is no hub, the entries of the list of `v` that are marked are gathered without a
//! branch, and a number beside the mark of each counts how often it was one of them; so the third
//! corner is written to once for each edge of `u`, and not once for each triangle.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use base::VertexId;
use base::memory::{as_atomic_u32, as_atomic_u64, zeroed_huge};
use base::simd::and_count_ones;
use graph::Graph;

use super::GRAIN;
use super::oriented::Oriented;
use super::rows::Rows;
use crate::context::FIXED_BYTES;
use crate::{Context, Result};

/// What was counted, by rank.
pub(crate) struct Corners {
    /// For each vertex, the edges that join two of its neighbours: as many as it has triangles; or the
    /// arcs that do, so that an edge with two arcs counts twice.
    pub(crate) counts: Vec<u64>,
    /// The number of its neighbours in either direction.
    pub(crate) degrees: Vec<u32>,
}

/// As many hubs as the budget allows: those that are wanted, or none.
///
/// # Errors
/// The budget is too small even without.
pub(crate) fn affordable_hubs(
    ctx: &Context<'_>,
    graph: &impl Graph,
    kernel: &'static str,
    wanted: Option<usize>,
    by_arcs: bool,
) -> Result<usize> {
    let (bound, num_threads) = (graph.vertex_bound(), ctx.pool.num_threads());
    // Beside the copy and the ranks: a count, a degree and a result, and by worker a mark and a number.
    let bytes_a_vertex = 8 + 4 + 8 + 5 * num_threads as u64;
    // A list as it was met, by class, and what is found in it, each in up to twice the room that it takes.
    let list_bytes = 64 * Oriented::longest_list(graph) * num_threads as u64;
    let least = Oriented::num_bytes(graph, num_threads) + bytes_a_vertex * bound as u64 + list_bytes + FIXED_BYTES;
    ctx.require_memory(kernel, least)?;
    let num_hubs = wanted.unwrap_or_else(|| super::default_corner_hubs(bound)).min(bound);
    let hub_bytes = row_bytes(num_hubs, by_arcs) + (size_of::<HubSum>() * num_hubs * num_threads) as u64;
    Ok(if ctx.allows(least + hub_bytes) { num_hubs } else { 0 })
}

/// The bytes of the rows of the hubs.
pub(crate) fn row_bytes(num_hubs: usize, by_arcs: bool) -> u64 {
    Rows::num_bytes(num_hubs) * (1 + u64::from(by_arcs))
}

/// Counts the triangles at every vertex; by arcs, each as often as arcs join the two other corners.
///
/// # Errors
/// The work was cancelled.
pub(crate) fn count(ctx: &Context<'_>, oriented: &Oriented, num_hubs: usize, by_arcs: bool) -> Result<Corners> {
    let bound = oriented.num_vertices();
    let hubs = Rows::build(ctx.pool, num_hubs, |rank| oriented.list(rank));
    let doubles = Rows::build(ctx.pool, if by_arcs { num_hubs } else { 0 }, |rank| oriented.parts(rank)[0]);
    let (mut counts, mut degrees) = (zeroed_huge(bound), zeroed_huge(bound));
    let shared = Shared {
        oriented,
        hubs: &hubs,
        doubles: &doubles,
        counts: as_atomic_u64(&mut counts),
        degrees: as_atomic_u32(&mut degrees),
    };
    let counters: Vec<_> = (0..ctx.pool.num_threads()).map(|_| Mutex::new(Counter::new(shared))).collect();
    ctx.pool.for_each_chunk(0..bound, GRAIN, |worker, ranks| {
        if !ctx.progress.is_cancelled() {
            let num_ranks = ranks.len() as u64;
            let mut counter = counters[worker].lock().unwrap_or_else(|e| e.into_inner());
            if by_arcs {
                counter.add::<true>(ranks)
            } else {
                counter.add::<false>(ranks)
            }
            ctx.progress.advance(num_ranks);
        }
    });
    ctx.progress.check()?;
    let sums = counters.into_iter().map(|counter| counter.into_inner().unwrap_or_else(|e| e.into_inner()).hub_sums);
    let sums: Vec<_> = sums.collect();
    for hub in 0..num_hubs {
        let sum = |figure: fn(&HubSum) -> u64| sums.iter().map(|sums| figure(&sums[hub])).sum::<u64>();
        counts[hub] += sum(|hub| hub.once) + sum(|hub| hub.twice) / 2;
        degrees[hub] += sum(|hub| hub.degree) as u32;
    }
    Ok(Corners { counts, degrees })
}

/// What all workers see.
#[derive(Clone, Copy)]
struct Shared<'a> {
    oriented: &'a Oriented,
    hubs: &'a Rows,
    /// The hubs that arcs join both ways; none unless arcs are counted.
    doubles: &'a Rows,
    counts: &'a [AtomicU64],
    degrees: &'a [AtomicU32],
}

/// What a worker found at one hub. Hubs are met too often to be shared.
#[derive(Clone, Copy, Default)]
struct HubSum {
    /// Triangles.
    once: u64,
    /// The same, each met along both of its edges at this hub.
    twice: u64,
    degree: u64,
}

/// The scratch space of one worker.
struct Counter<'a> {
    shared: Shared<'a>,
    hub_sums: Vec<HubSum>,
    /// The hubs in the list at hand, as a row, and those joined both ways.
    row: Vec<u64>,
    double_row: Vec<u64>,
    /// For each vertex in the list at hand, how many arcs join it.
    marks: Vec<u8>,
    /// How many edges of other vertices in the list lead to it.
    hits: Vec<u32>,
    /// The entries of a list that are marked.
    found: Vec<VertexId>,
}

impl<'a> Counter<'a> {
    fn new(shared: Shared<'a>) -> Self {
        let (bound, row_words) = (shared.oriented.num_vertices(), shared.hubs.len().div_ceil(64));
        Self {
            shared,
            hub_sums: vec![HubSum::default(); shared.hubs.len()],
            row: vec![0; row_words],
            double_row: vec![0; row_words],
            marks: zeroed_huge(bound),
            hits: zeroed_huge(bound),
            found: Vec::new(),
        }
    }

    /// Counts the triangles whose last vertex is among `ranks`.
    fn add<const BY_ARCS: bool>(&mut self, ranks: Range<usize>) {
        let num_hubs = self.shared.hubs.len();
        for rank in ranks {
            let list = self.shared.oriented.list(rank);
            let (to_hubs, to_others) = list.split_at(list.partition_point(|&v| (v as usize) < num_hubs));
            to_hubs.iter().for_each(|&v| self.hub_sums[v as usize].degree += 1);
            for &v in to_others {
                self.shared.degrees[v as usize].fetch_add(1, Ordering::Relaxed);
            }
            self.add_degree(rank, list.len());
            if rank < num_hubs {
                self.add_hub::<BY_ARCS>(rank, to_hubs);
                continue;
            }
            if list.len() < 2 {
                continue;
            }
            let num_doubles = self.shared.oriented.parts(rank)[0].len();
            let found = if to_hubs.len() < 2 {
                0
            } else if to_hubs.len() / 2 < lines_of(to_hubs) {
                self.add_few_hubs::<BY_ARCS>(to_hubs, num_doubles)
            } else {
                self.add_hubs::<BY_ARCS>(to_hubs, num_doubles)
            };
            let found = found + if to_others.is_empty() { 0 } else { self.add_others::<BY_ARCS>(rank, list) };
            self.add_count(rank, found);
        }
    }

    #[inline]
    fn add_count(&mut self, rank: usize, count: u64) {
        if count == 0 {
        } else if let Some(hub) = self.hub_sums.get_mut(rank) {
            hub.once += count;
        } else {
            self.shared.counts[rank].fetch_add(count, Ordering::Relaxed);
        }
    }

    #[inline]
    fn add_degree(&mut self, rank: usize, degree: usize) {
        match self.hub_sums.get_mut(rank) {
            Some(hub) => hub.degree += degree as u64,
            None => {
                self.shared.degrees[rank].fetch_add(degree as u32, Ordering::Relaxed);
            }
        }
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
            self.hub_sums[v as usize].twice += there;
        }
        self.hub_sums[rank].twice += sum;
    }

    /// Counts pairs of hubs in the list at hand; gives how many there are.
    fn add_hubs<const BY_ARCS: bool>(&mut self, to_hubs: &[VertexId], num_doubles: usize) -> u64 {
        let set = |row: &mut [u64], list: &[VertexId]| {
            list.iter().for_each(|&v| row[v as usize / 64] |= 1 << (v % 64));
        };
        set(&mut self.row, to_hubs);
        let is_double = BY_ARCS && num_doubles > 0;
        if is_double {
            set(&mut self.double_row, &to_hubs[..num_doubles]);
        }
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
            self.hub_sums[v as usize].once += there;
        }
        to_hubs.iter().for_each(|&v| self.row[v as usize / 64] = 0);
        if is_double {
            to_hubs[..num_doubles].iter().for_each(|&v| self.double_row[v as usize / 64] = 0);
        }
        twice / 2
    }

    /// The same, testing pair by pair.
    fn add_few_hubs<const BY_ARCS: bool>(&mut self, to_hubs: &[VertexId], num_doubles: usize) -> u64 {
        let arcs_to = |place: usize| 1 + u64::from(BY_ARCS && place < num_doubles);
        let mut sum = 0;
        for (i, &v) in to_hubs.iter().enumerate().skip(1) {
            let mut at_v = 0;
            for (j, &w) in to_hubs[..i].iter().enumerate() {
                let bit = self.shared.hubs.bit(v, w);
                sum += bit + if BY_ARCS { self.shared.doubles.bit(v, w) } else { 0 };
                at_v += bit * arcs_to(j);
                self.hub_sums[w as usize].once += bit * arcs_to(i);
            }
            self.hub_sums[v as usize].once += at_v;
        }
        sum
    }

    /// Counts pairs in the list at hand whose later vertex is no hub; gives how many there are.
    fn add_others<const BY_ARCS: bool>(&mut self, rank: usize, list: &[VertexId]) -> u64 {
        let num_hubs = self.shared.hubs.len();
        let parts = self.shared.oriented.parts(rank);
        let arcs = [2, 1, 2].map(|arcs| if BY_ARCS { arcs } else { 1 });
        for (part, arcs) in parts.into_iter().zip(arcs) {
            part.iter().for_each(|&v| self.marks[v as usize] = arcs);
        }
        let mut sum = 0;
        for (part, arcs_to_v) in parts.into_iter().zip(arcs) {
            for &v in part.iter().filter(|&&v| v as usize >= num_hubs) {
                let mut at_v = 0;
                for (part, arcs_between) in self.shared.oriented.parts(v as usize).into_iter().zip(arcs) {
                    let num_found = self.find(part);
                    sum += (num_found * usize::from(arcs_between)) as u64;
                    for &w in &self.found[..num_found] {
                        self.hits[w as usize] += u32::from(arcs_to_v);
                        at_v += u64::from(self.marks[w as usize]);
                    }
                }
                self.add_count(v as usize, at_v);
            }
        }
        for &w in list {
            self.marks[w as usize] = 0;
            let hits = std::mem::take(&mut self.hits[w as usize]);
            self.add_count(w as usize, u64::from(hits));
        }
        sum
    }

    /// Gathers the marked entries of a list, without a branch that depends on them.
    #[inline(always)]
    fn find(&mut self, list: &[VertexId]) -> usize {
        if self.found.len() <= list.len() {
            self.found.resize(2 * list.len() + 1, 0);
        }
        let found = &mut self.found[..list.len() + 1];
        let mut num_found = 0;
        for &w in list {
            found[num_found] = w;
            num_found += usize::from(self.marks[w as usize] != 0);
        }
        num_found
    }
}

/// Words of a cache line, the step of the counting.
const LINE_WORDS: usize = 8;

/// The lines of a row up to the last of these hubs.
fn lines_of(hubs: &[VertexId]) -> usize {
    let last = hubs.iter().copied().max().unwrap_or(0);
    last as usize / (64 * LINE_WORDS) + 1
}
