//! Delta-stepping with buckets of each worker's own.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use base::VertexId;
use base::simd::prefetch;
use graph::{InEdges, Weight, WeightType, WeightedEdges};

use super::buckets::{Buckets, Width};
use super::cells::{Cell, distance_of, extended, marked};
use super::{SsspParams, scan_weights};
use crate::edge_map::beside;
use crate::{Context, Result};

/// Entries of a bucket that a worker takes at a time.
const GRAIN: usize = 64;

/// A worker goes on with its own part of the lowest bucket while that is smaller than this (GraphIt).
const FUSION_LIMIT: usize = 1000;

/// Targets ahead whose distance is fetched.
const LOOKAHEAD: usize = 16;

/// Entries of small buckets are worked off by one worker if they have fewer edges than this.
const SERIAL_EDGES: usize = 4096;

pub(super) fn distances<W: Weight, G: InEdges + WeightedEdges>(
    ctx: &Context<'_>,
    graph: &G,
    params: &SsspParams,
) -> Result<Vec<W::Distance>> {
    let is_weighted = graph.weight_type().is_some();
    let mean = match params.weights {
        Some(statistics) => statistics.mean,
        None if is_weighted => scan_weights(ctx, graph)?.mean,
        None => 1.0,
    };
    let is_integer = matches!(W::TYPE, WeightType::U32 | WeightType::I64);
    let delta = params.delta.unwrap_or_else(|| {
        let mean_degree = graph.num_arcs() as f64 / graph.num_vertices().max(1) as f64;
        let delta = mean / mean_degree.max(1.0);
        match is_integer {
            true => (delta as u64).max(1).next_power_of_two() as f64,
            false => {
                if delta > 0.0 {
                    delta
                } else {
                    1.0
                }
            }
        }
    });
    let width = Width::new(delta, is_integer);
    if W::TYPE == WeightType::U32
        && let Some(distances) = step::<AtomicU32, W, G>(ctx, graph, params.source, width)?
    {
        return Ok(distances);
    }
    let distances = step::<AtomicU64, W, G>(ctx, graph, params.source, width)?;
    Ok(distances.unwrap_or_default())
}

/// The work of all rounds.
struct Stepping<'a, C, W, G> {
    ctx: &'a Context<'a>,
    graph: &'a G,
    is_weighted: bool,
    width: Width,
    cells: &'a [C],
    /// A distance did not fit its cell.
    overflowed: AtomicBool,
    ones: [W; GRAIN],
}

/// The distances; nothing where they do not fit the cells.
fn step<C: Cell, W: Weight, G: InEdges + WeightedEdges>(
    ctx: &Context<'_>,
    graph: &G,
    source: VertexId,
    width: Width,
) -> Result<Option<Vec<W::Distance>>> {
    let mut words = C::unreached::<W::Distance>(ctx.pool, graph.vertex_bound());
    let stepping = Stepping::<C, W, G> {
        ctx,
        graph,
        is_weighted: graph.weight_type().is_some(),
        width,
        cells: C::share(&mut words),
        overflowed: AtomicBool::new(false),
        ones: [W::ONE; GRAIN],
    };
    stepping.cells[source as usize].lower(marked(W::Distance::default()));
    stepping.run(source)?;
    let fits = !stepping.overflowed.into_inner();
    Ok(fits.then(|| C::into_distances(ctx.pool, words)))
}

impl<C: Cell, W: Weight, G: InEdges + WeightedEdges> Stepping<'_, C, W, G> {
    fn run(&self, source: VertexId) -> Result<()> {
        let pool = self.ctx.pool;
        let mut workers: Vec<_> = (0..pool.num_threads()).map(|_| Mutex::new(Buckets::new())).collect();
        let (mut current, mut entries) = (0, vec![source]);
        while !entries.is_empty() {
            self.ctx.progress.check()?;
            self.ctx.progress.advance(entries.len() as u64);
            self.work_off(&workers, current, &mut entries);
            if self.overflowed.load(Ordering::Relaxed) {
                return Ok(());
            }
            (current, entries) = self.next_bucket(&mut workers, current, entries);
        }
        Ok(())
    }

    /// Relaxes the edges of all entries of the lowest bucket.
    fn work_off(&self, workers: &[Mutex<Buckets>], current: u64, entries: &mut [VertexId]) {
        if self.graph.is_listening() {
            entries.sort_unstable();
            self.graph.will_need_out(entries);
        }
        let grain = (entries.len() / (workers.len() * 8)).clamp(1, GRAIN);
        let next = AtomicUsize::new(0);
        let work = |worker: usize| {
            let mut buckets = workers[worker].lock().unwrap_or_else(|e| e.into_inner());
            loop {
                let start = next.fetch_add(grain, Ordering::Relaxed);
                if start >= entries.len() || self.ctx.progress.is_cancelled() {
                    break;
                }
                self.relax(&entries[start..entries.len().min(start + grain)], &mut buckets);
            }
            self.fuse(current, &mut buckets);
        };
        let degree = |&v: &VertexId| self.graph.out_degree(v);
        if entries.len() <= GRAIN && entries.iter().map(degree).sum::<usize>() < SERIAL_EDGES {
            work(0);
        } else {
            self.ctx.pool.on_each_worker(work);
        }
    }

    /// Goes on with the worker's own part of the bucket while that is small, which saves rounds.
    fn fuse(&self, current: u64, buckets: &mut Buckets) {
        let mut entries = Vec::new();
        while let Some(list) = buckets.list(current)
            && (1..FUSION_LIMIT).contains(&list.len())
        {
            entries.clear();
            entries.append(list);
            self.relax(&entries, buckets);
        }
    }

    #[inline]
    fn relax(&self, entries: &[VertexId], buckets: &mut Buckets) {
        for &vertex in entries {
            if let Some(cell) = self.cells[vertex as usize].take() {
                let distance = distance_of::<W::Distance>(cell);
                self.relax_list(vertex, distance, buckets);
            }
        }
    }

    #[inline]
    fn relax_list(&self, vertex: VertexId, distance: W::Distance, buckets: &mut Buckets) {
        let mut body = |targets: &[VertexId], weights: &[W]| {
            let mut largest = 0;
            for (i, (&target, &weight)) in targets.iter().zip(weights).enumerate() {
                if let Some(&ahead) = targets.get(i + LOOKAHEAD) {
                    prefetch(self.cells, ahead as usize);
                }
                let new = extended(distance, weight);
                largest |= new;
                let cell = &self.cells[target as usize];
                if new < cell.load() && cell.lower(new) {
                    buckets.push(self.width.bucket(distance_of::<W::Distance>(new)), target);
                }
            }
            if C::IS_NARROW && largest >= C::LIMIT {
                self.overflowed.store(true, Ordering::Relaxed);
            }
            ControlFlow::Continue(())
        };
        let _ = match self.is_weighted {
            true => self.graph.for_each_weighted_out_fragment::<W>(vertex, body),
            false => self.graph.for_each_out_fragment(vertex, |list| beside(list, &self.ones, &mut body)),
        };
    }

    /// The lowest bucket that has an entry, and its entries; none when all work is done.
    fn next_bucket(
        &self,
        workers: &mut [Mutex<Buckets>],
        current: u64,
        mut entries: Vec<VertexId>,
    ) -> (u64, Vec<VertexId>) {
        entries.clear();
        let mut all: Vec<_> = workers.iter_mut().map(|w| w.get_mut().unwrap_or_else(|e| e.into_inner())).collect();
        let mut lowest = all.iter().filter_map(|buckets| buckets.lowest(current)).min();
        if lowest.is_none() {
            lowest = all.iter_mut().filter_map(|buckets| buckets.lowest_far(|v| self.bucket_of(v))).min();
            if let Some(first) = lowest {
                all.iter_mut().for_each(|buckets| buckets.advance(first, |v| self.bucket_of(v)));
            }
        }
        let Some(lowest) = lowest else { return (current, entries) };
        for buckets in all {
            let list = buckets.take(lowest);
            if entries.is_empty() { entries = list } else { entries.extend_from_slice(&list) }
        }
        (lowest, entries)
    }

    /// Where a vertex waits, if it does.
    fn bucket_of(&self, vertex: VertexId) -> Option<u64> {
        let cell = self.cells[vertex as usize].load();
        (cell & 1 == 1).then(|| self.width.bucket(distance_of::<W::Distance>(cell)))
    }
}
