//! Communities by label propagation, as LDBC Graphalytics defines them.
//!
//! **Result**: a label for every vertex; the vertices of a community share one. At first each vertex is its own label.
//! In each iteration, every vertex at once takes the most frequent label among its neighbors, the smallest among
//! equals. Out-edges and in-edges count alike, so a neighbor in both directions counts twice. A vertex without
//! neighbors keeps its label.
//!
//! **Algorithm**: two arrays of labels alternate. An iteration gathers the labels of a list. If the vertex's label of
//! two iterations ago has the majority, it is the result, and no write is needed. Otherwise short lists are compared
//! label by label, longer ones counted in a hash table, and those of hubs in an array of all labels. Labels that swing
//! between two values are as frequent as stable ones. So a vertex is skipped if all its neighbors have their labels of
//! two iterations ago: it then keeps its own label of that time. If all labels differ, as at first, no counting is
//! needed.
//!
//! **Parameters**: 10 iterations by default, as in most of Graphalytics' data sets.
//!
//! # Source
//! - U. N. Raghavan, R. Albert, S. Kumara: Near linear time algorithm to detect community structures in large-scale
//!   networks, Physical Review E 2007.
//! - A. Iosup and others: LDBC Graphalytics, VLDB 2016; the specification, section 2.3.4: the synchronous and
//!   deterministic form. Ours skips some vertices.

mod mode;
mod verify;

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use anden_base::VertexId;
use anden_base::bitmap::{AtomicBitmap, Bitmap, ones};
use anden_base::memory::{as_atomic_u32, zeroed_huge};
use anden_graph::{Direction, Graph, GraphKind, StoredFormKey};
use parking_lot::Mutex;

use crate::context::bytes_for;
use crate::transposed::Transposed;
use crate::walk::for_each_walked_chunk;
use crate::{Context, Error, Result};

use mode::{Counts, Labels};
pub use verify::verify;

/// Parameters of [`cdlp`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CdlpParams {
    /// The most iterations.
    pub iterations: u32,
    /// All vertices, the one with the smallest label first; `None`: by id.
    pub order: Option<Vec<VertexId>>,
}

impl Default for CdlpParams {
    /// 10 iterations, and labels in the order of the ids.
    fn default() -> Self {
        Self { iterations: 10, order: None }
    }
}

/// Result of [`cdlp`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CdlpResult {
    /// The label of each vertex, itself a vertex, by vertex id; a dead vertex has its own id.
    pub labels: Vec<VertexId>,
    /// The number of different labels, without those of dead vertices.
    pub communities: u64,
    /// The number of iterations up to the first that changed no label, or up to the limit.
    pub iterations: u32,
}

/// The most arrays of counts. Threads beyond that number wait for each other at hubs.
const MAX_COUNTS: usize = 4;

/// Vertices of a chunk: a multiple of 64, so that no two workers share a word of a bitmap.
const GRAIN: usize = 256;

/// The neighbors of swung vertices are marked active if the lists of swung vertices have less than one in this many
/// entries. Otherwise all vertices are active.
const ACTIVE_SHARE: u64 = 4;

/// The form that a run reads from a database that stores it; `None`: the graph has in-lists.
pub fn stored_form(graph: &impl Graph) -> Option<StoredFormKey> {
    crate::transposed::stored_form(graph)
}

/// The label of every vertex after some iterations.
///
/// *Cost*: an iteration reads every list and a label for each entry; later ones a part of them. *Memory*: 9 bytes a
/// vertex, and 4 for each of up to 4 threads, at least one, as the budget allows. Each thread takes 100 KB more. A
/// directed graph without in-edges gets them: 4 bytes an arc and 8 a vertex. *Determinism*: equal at any number of
/// threads.
///
/// # Errors
/// The order does not name every vertex once, the budget is too small, the graph is damaged, or the work was cancelled.
pub fn cdlp<G: Graph>(ctx: &Context<'_>, graph: &G, params: &CdlpParams) -> Result<CdlpResult> {
    let num_bytes = |num_counts: usize| {
        let workers = ctx.pool.num_threads() as u64 * Labels::NUM_BYTES;
        bytes_for(graph, 4 + 4 + 4 * num_counts as u64 + 1) + workers + Transposed::num_bytes(graph)
    };
    ctx.require_memory("cdlp", num_bytes(1))?;
    let most = ctx.pool.num_threads().min(MAX_COUNTS);
    let num_counts = (1..=most).rev().find(|&num_counts| ctx.allows(num_bytes(num_counts))).unwrap_or(1);
    if let Some(order) = &params.order {
        require_all_vertices(graph, order)?;
    }
    if Transposed::num_bytes(graph) > 0 {
        LabelPropagation::new(ctx, &Transposed::new(ctx, graph)?, params, num_counts).run()
    } else {
        LabelPropagation::new(ctx, graph, params, num_counts).run()
    }
}

/// Checks that the order names every live vertex once.
fn require_all_vertices<G: Graph>(graph: &G, order: &[VertexId]) -> Result<()> {
    let mut named = Bitmap::new(graph.vertex_bound());
    let is_new_vertex = |&v: &VertexId| {
        let is_good = (v as usize) < named.len() && graph.is_live(v) && !named.get(v as usize);
        if is_good {
            named.set(v as usize);
        }
        is_good
    };
    if order.len() == graph.num_vertices() && order.iter().all(is_new_vertex) {
        return Ok(());
    }
    Err(Error::Parameter(format!("the order of labels must name each of the {} vertices once", graph.num_vertices())))
}

/// A running label propagation. Inside, labels are positions in the order of labels.
struct LabelPropagation<'a, G> {
    ctx: &'a Context<'a>,
    graph: &'a G,
    params: &'a CdlpParams,
    is_directed: bool,
    workers: Vec<Mutex<Labels>>,
    counts: Vec<Mutex<Counts>>,
}

/// The changes of one iteration.
struct CdlpChanges {
    /// The number of labels that differ from those of the iteration before.
    num_changed: u64,
    /// The vertices with labels other than two iterations ago.
    swung: AtomicBitmap,
    /// The number of entries in the lists of those vertices.
    num_entries: u64,
}

impl<'a, G: Graph> LabelPropagation<'a, G> {
    fn new(ctx: &'a Context<'a>, graph: &'a G, params: &'a CdlpParams, num_counts: usize) -> Self {
        Self {
            ctx,
            graph,
            params,
            is_directed: graph.graph_kind() == GraphKind::Directed,
            workers: (0..ctx.pool.num_threads()).map(|_| Mutex::new(Labels::new())).collect(),
            counts: (0..num_counts).map(|_| Mutex::new(Counts::new(graph.vertex_bound()))).collect(),
        }
    }

    fn run(&self) -> Result<CdlpResult> {
        let num_vertices = self.graph.vertex_bound() as u64;
        self.ctx.progress.stage("label propagation", Some(u64::from(self.params.iterations) * num_vertices));
        let (labels, iterations) = self.iterate(self.own_labels())?;
        self.graph.check()?;
        let (labels, communities) = self.named(labels);
        Ok(CdlpResult { labels, communities, iterations })
    }

    /// The initial labels.
    fn own_labels(&self) -> Vec<u32> {
        let mut labels = zeroed_huge::<u32>(self.graph.vertex_bound());
        match &self.params.order {
            Some(order) => (0..).zip(order).for_each(|(place, &v)| labels[v as usize] = place),
            None => (0..).zip(&mut labels).for_each(|(v, label)| *label = v),
        }
        labels
    }

    /// Replaces positions in the order by vertices, and counts the different labels.
    fn named(&self, mut labels: Vec<u32>) -> (Vec<VertexId>, u64) {
        // Without dead vertices, the lookups are saved.
        let has_dead = self.graph.num_vertices() < labels.len();
        let mut used = Bitmap::new(labels.len());
        for (v, label) in (0..).zip(&mut labels) {
            if has_dead && !self.graph.is_live(v) {
                *label = v;
            } else {
                used.set(*label as usize);
                *label = self.params.order.as_ref().map_or(*label, |order| order[*label as usize]);
            }
        }
        (labels, used.count_ones() as u64)
    }

    /// The labels after the last iteration, and the number of iterations.
    fn iterate(&self, mut now: Vec<u32>) -> Result<(Vec<u32>, u32)> {
        let num_iterations = self.params.iterations;
        let mut next = zeroed_huge::<u32>(now.len());
        let mut active = None;
        for iteration in 1..=num_iterations {
            let changes = if iteration == 1 {
                self.first_step(&now, &mut next)?
            } else {
                self.step(&now, &mut next, active.as_ref())?
            };
            std::mem::swap(&mut now, &mut next);
            // Labels that an iteration keeps stay for ever.
            if changes.num_changed == 0 {
                return Ok((now, iteration));
            }
            if iteration == 1 {
                // Two iterations ago, no labels existed.
                continue;
            }
            if changes.num_entries == 0 {
                // No label swung: from here on, the last two arrays alternate.
                let is_even = (num_iterations - iteration).is_multiple_of(2);
                return Ok((if is_even { now } else { next }, num_iterations));
            }
            let is_calm = changes.num_entries < self.graph.num_arcs() / ACTIVE_SHARE;
            active = if is_calm { Some(self.neighbors_of(&changes.swung)?) } else { None };
        }
        Ok((now, num_iterations))
    }

    /// The first iteration.
    fn first_step(&self, now: &[u32], next: &mut [u32]) -> Result<CdlpChanges> {
        // Parallel edges count repeatedly, and ranks do not ascend with ids.
        if self.graph.is_multigraph() || self.params.order.is_some() {
            return self.step(now, next, None);
        }
        self.each_vertex(now, next, None, |_, _, v, _| {
            // Labels are ids, and a list without parallel edges has each id once: the smallest neighbor wins, unless
            // one counts in both directions.
            let label = if self.is_directed { self.first_in_both(v) } else { self.first(v) };
            (label.unwrap_or(v), 0)
        })
    }

    /// One iteration of the active vertices. The others keep the labels of two iterations ago, which `next` holds.
    fn step(&self, now: &[u32], next: &mut [u32], active: Option<&AtomicBitmap>) -> Result<CdlpChanges> {
        self.each_vertex(now, next, active, |worker, labels, v, before| {
            labels.clear();
            let mut num_entries = 0;
            self.each_list(v, |list| {
                num_entries += list.len();
                labels.gather(list, now);
            });
            let label = match num_entries {
                0 => now[v as usize],
                1..=Labels::MAX => labels.most_frequent(before),
                // These labels did not all fit into `labels`.
                _ => self.most_frequent_of_hub(worker, v, now),
            };
            (label, num_entries as u64)
        })
    }

    fn most_frequent_of_hub(&self, worker: usize, v: VertexId, now: &[u32]) -> u32 {
        // Workers share few arrays, because each takes 4 bytes a vertex.
        let mut counts = self.counts[worker % self.counts.len()].lock();
        self.each_list(v, |list| counts.add(list, now));
        let label = counts.most_frequent();
        self.each_list(v, |list| counts.forget(list, now));
        label
    }

    /// Sets the label of each active vertex by `label_of`, which gets the vertex and its label of two iterations ago.
    /// `label_of` returns the new label and the number of list entries.
    fn each_vertex(
        &self,
        now: &[u32],
        next: &mut [u32],
        active: Option<&AtomicBitmap>,
        label_of: impl Fn(usize, &mut Labels, VertexId, u32) -> (u32, u64) + Sync,
    ) -> Result<CdlpChanges> {
        let bound = now.len();
        let (swung, next) = (AtomicBitmap::new(bound), as_atomic_u32(next));
        let (num_changed, num_entries) = (AtomicU64::new(0), AtomicU64::new(0));
        let visit = |worker: usize, chunk: Range<usize>| {
            if self.ctx.progress.is_cancelled() {
                return;
            }
            // Never contended: each worker has its own memory.
            let mut labels = self.workers[worker].lock();
            let mut entries = 0;
            for index in chunk.start / 64..chunk.end.div_ceil(64) {
                let all = !0 >> (64 - (chunk.end - index * 64).min(64));
                let mut swings = 0;
                for bit in ones(active.map_or(all, |active| active.words()[index].load(Ordering::Relaxed))) {
                    let v = index * 64 + bit;
                    let before = next[v].load(Ordering::Relaxed);
                    let (label, degree) = label_of(worker, &mut labels, v as VertexId, before);
                    // A label of two iterations ago is in `next` already and needs no write.
                    if label != before {
                        next[v].store(label, Ordering::Relaxed);
                        swings |= 1 << bit;
                        entries += degree;
                    }
                }
                // A chunk holds whole words, so one worker owns this word.
                swung.words()[index].store(swings, Ordering::Relaxed);
            }
            let is_changed = |(now, next): &(&u32, &AtomicU32)| **now != next.load(Ordering::Relaxed);
            let changed = now[chunk.clone()].iter().zip(&next[chunk.clone()]).filter(is_changed).count();
            // Added once a chunk, because all workers share these counters.
            num_changed.fetch_add(changed as u64, Ordering::Relaxed);
            num_entries.fetch_add(entries, Ordering::Relaxed);
            self.ctx.progress.advance(chunk.len() as u64);
        };
        for_each_walked_chunk(self.ctx, self.graph, GRAIN, active, visit);
        self.ctx.progress.check()?;
        Ok(CdlpChanges { num_changed: num_changed.into_inner(), swung, num_entries: num_entries.into_inner() })
    }

    /// The vertices with a neighbor in the set.
    fn neighbors_of(&self, set: &AtomicBitmap) -> Result<AtomicBitmap> {
        let neighbors = AtomicBitmap::new(set.len());
        for_each_walked_chunk(self.ctx, self.graph, GRAIN, Some(set), |_, chunk| {
            for index in chunk.start / 64..chunk.end.div_ceil(64) {
                for bit in ones(set.words()[index].load(Ordering::Relaxed)) {
                    // Neighborhood is symmetric here, so these lists lead to all vertices that may change.
                    self.each_list((index * 64 + bit) as VertexId, |list| {
                        list.iter().for_each(|&u| {
                            neighbors.set(u as usize);
                        });
                    });
                }
            }
        });
        self.ctx.progress.check()?;
        Ok(neighbors)
    }

    /// Calls `body` with the lists of `v` whose entries count.
    #[inline(always)]
    fn each_list(&self, v: VertexId, mut body: impl FnMut(&[VertexId])) {
        let mut body = |list: &[VertexId]| {
            body(list);
            ControlFlow::Continue(())
        };
        let _ = self.graph.for_each_fragment(Direction::Out, v, &mut body);
        if self.is_directed {
            let _ = self.graph.for_each_fragment(Direction::In, v, &mut body);
        }
    }

    /// The smallest neighbor.
    fn first(&self, v: VertexId) -> Option<VertexId> {
        let mut first: Option<VertexId> = None;
        self.each_list(v, |list| first = first.into_iter().chain(list.first().copied()).min());
        first
    }

    /// The smallest neighbor in both directions; if none exists, the smallest in either.
    fn first_in_both(&self, v: VertexId) -> Option<VertexId> {
        let mut in_both: Option<VertexId> = None;
        let _ = self.graph.for_each_fragment(Direction::Out, v, |out_list| {
            self.graph.for_each_fragment(Direction::In, v, |in_list| {
                in_both = in_both.into_iter().chain(first_common(out_list, in_list)).min();
                ControlFlow::Continue(())
            })
        });
        in_both.or_else(|| self.first(v))
    }
}

/// The first common entry of two ascending lists.
fn first_common(mut a: &[VertexId], mut b: &[VertexId]) -> Option<VertexId> {
    while let (Some(x), Some(y)) = (a.first(), b.first()) {
        match x.cmp(y) {
            std::cmp::Ordering::Equal => return Some(*x),
            std::cmp::Ordering::Less => a = &a[1..],
            std::cmp::Ordering::Greater => b = &b[1..],
        }
    }
    None
}
