//! The writer of a memtable.

mod directories;

use std::marker::PhantomData;
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::{MAX_VERTICES, VertexId};
use anden_graph::{Direction, GraphKind};
use parking_lot::Mutex;

use crate::arena::{FreeLists, LINE_WORDS, Limit, Newest, NodeArena};
use crate::batch::{Target, apply_sorted};
use crate::builder::NodeBuilder;
use crate::change::{Addition, AppliedArcs, Change, ChangeSource, Edges, EntryUpdate, Op, Removal, Sink};
use crate::contexts::{MemtableWorker, WorkerContexts};
use crate::limbo_list::LimboList;
use crate::list::Tiers;
use crate::node::{PAGE_BITS, PAGE_VERTICES};
use crate::options::Options;
use crate::overlay::{Base, Listed, TransposedChanges, touch_lists};
use crate::pins::Publisher;
use crate::sort::{Bucket, SERIAL_BATCH, Space};
use crate::stale::Stale;
use crate::state::{AdjacencyTable, NUM_ADJACENCY_TABLES, VersionState, WORDS};
use crate::version::{Reader, TerraceShared, Version};
use crate::{EntryValue, Error, Result};

/// Up to this many pinned versions, each publication checks them all. With more, it checks them less often.
const FEW_PINNED: usize = 64;
/// Above this many stale directories, they are rewritten at once, so that no later batch pays for all of them.
const MOST_STALE: usize = 1 << 15;

const LINE_BYTES: u64 = (LINE_WORDS * size_of::<u32>()) as u64;

/// The container of a memtable: adjacency lists that change in groups of batches, and their versions.
///
/// One writer owns it. Each [`apply`](Self::apply) changes the next version, and [`publish`](Self::publish) shows it to
/// readers, all adjacency tables at once. A node that a published version reaches never changes, so readers and
/// the writer never wait for each other.
#[derive(Debug)]
pub struct Terrace<W: EntryValue = ()> {
    shared: Arc<TerraceShared>,
    tiers: Tiers,
    publisher: Publisher<WORDS>,
    /// The unpublished version. Its epoch is the number of the next group.
    next: VersionState,
    /// The newest published version.
    published: VersionState,
    free_lists: FreeLists,
    limbo_list: LimboList,
    /// Stale directories, by adjacency table.
    stale: [Mutex<Stale>; NUM_ADJACENCY_TABLES],
    /// Scratch space for the epochs of older pinned versions.
    pinned: Vec<u64>,
    /// Set by the first step of the current group.
    has_begun: bool,
    /// Contexts by worker index of the pool; the last is for a caller outside the pool.
    workers: Vec<Mutex<MemtableWorker<W>>>,
    /// Contexts by worker index, for the parts of a shared list.
    helpers: Vec<Mutex<MemtableWorker<W>>>,
    /// Number of publications to skip before all pinned versions are checked again.
    groups_to_sweep: usize,
    /// Set when a group failed half-way: only published versions are readable then.
    is_broken: bool,
}

/// Memory use of a memtable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes of nodes in use: reached by the newest or a pinned version, or replaced and not reclaimed yet.
    pub live_bytes: u64,
    /// Bytes ever handed out to workers: nodes, and free space for more.
    pub touched_bytes: u64,
    /// Nodes in the limbo list: replaced, and either reached by an older version or not examined yet.
    pub num_kept_nodes: u64,
    /// Number of older pinned versions, as of the writer's last check.
    pub num_pinned_versions: u64,
}

/// Reinterprets sorted changes as the type that is applied.
type ChangeCast<C, D> = fn(&[C]) -> &[D];

/// The worker that applies a part of a batch.
#[derive(Clone, Copy)]
struct WorkerContext<'a> {
    pool: &'a Pool,
    worker: usize,
}

/// The effect of one part of a batch.
struct BatchPartEffect<S> {
    applied: AppliedArcs,
    sink: S,
}

impl<W: EntryValue> Terrace<W> {
    /// Creates a container without vertices.
    ///
    /// # Errors
    /// An option is out of range, or the system grants too few addresses.
    pub fn new(options: &Options) -> Result<Self> {
        let tiers = options.tiers::<W>()?;
        let (arena, newest) = NodeArena::reserve(options.num_vertices.div_ceil(PAGE_VERTICES))?;
        let free_lists = FreeLists::new(&arena);
        let published = VersionState::empty();
        let publisher = Publisher::new(published.words());
        let shared = TerraceShared {
            arena,
            newest,
            epoch_slots: Arc::clone(publisher.epoch_slots()),
            tiers,
            graph_kind: options.graph_kind,
            has_in_lists: options.in_lists && options.graph_kind == GraphKind::Directed,
        };
        Ok(Self {
            shared: Arc::new(shared),
            tiers,
            publisher,
            next: VersionState { epoch: 1, ..published },
            published,
            free_lists,
            limbo_list: LimboList::default(),
            stale: Default::default(),
            pinned: Vec::new(),
            has_begun: false,
            workers: vec![Mutex::default()],
            helpers: Vec::new(),
            groups_to_sweep: 0,
            is_broken: false,
        })
    }

    /// Bound of the vertices that changes may name.
    pub fn vertex_bound(&self) -> usize {
        self.next.num_vertices as usize
    }

    /// Lets changes name vertices below `bound`. A bound below the current one has no effect.
    ///
    /// # Errors
    /// The bound exceeds [`MAX_VERTICES`] or the reserved addresses ([`Error::Vertices`]), the nodes fill the address
    /// range, or an earlier group failed half-way.
    pub fn grow(&mut self, bound: usize) -> Result<()> {
        self.require_whole()?;
        if bound > MAX_VERTICES {
            return Err(Error::Parameter(format!("a graph has at most {MAX_VERTICES} vertices, not {bound}")));
        }
        if bound as u64 <= self.next.num_vertices {
            return Ok(());
        }
        let num_pages = bound.div_ceil(PAGE_VERTICES);
        let most_pages = self.shared.newest[0].len();
        if num_pages > most_pages {
            return Err(Error::Vertices { bound, most: most_pages * PAGE_VERTICES });
        }
        // Begun with the old height: the directories of a pinned version are completed before `next` changes.
        self.begin(None)?;
        // A version keeps its height, so the newest one is completed before the trees grow.
        self.complete_published(None)?;
        let mut adjacency_tables = self.next.adjacency_tables;
        let mut height = self.next.height;
        let mut worker = self.workers[0].lock();
        let mut builder = self.builder(&mut worker);
        for (adjacency_table, i) in adjacency_tables.iter_mut().zip([
            AdjacencyTable::Out,
            AdjacencyTable::In,
            AdjacencyTable::OutRemoved,
            AdjacencyTable::InRemoved,
        ]) {
            let directory = self.next.directory(i).grown(&mut builder, num_pages as u64)?;
            (adjacency_table.root, height) = (directory.root, directory.height);
        }
        drop(worker);
        self.next = VersionState { num_vertices: bound as u64, height, adjacency_tables, ..self.next };
        Ok(())
    }

    /// Whether no adjacency table has arcs.
    pub fn is_empty(&self) -> bool {
        self.next.adjacency_tables.iter().all(|adjacency_table| adjacency_table.num_arcs == 0) && !self.is_broken
    }

    fn builder<'a>(&'a self, worker: &'a mut MemtableWorker<W>) -> NodeBuilder<'a> {
        NodeBuilder {
            arena: &self.shared.arena,
            free_lists: &self.free_lists,
            group: self.next.epoch,
            slots: &mut worker.slots,
            retired: &mut worker.retired,
        }
    }

    fn require_whole(&self) -> Result<()> {
        // A half-applied group may have replaced pages in the tables, so no later group can build on them.
        if self.is_broken {
            return Err(Error::Parameter("an earlier group did not fit in memory: the memtable is read-only".into()));
        }
        Ok(())
    }

    /// Third prefetch stage, after [`Lists::prefetch`](crate::Lists::prefetch): fetches the pages of `vertex` in the
    /// adjacency tables of `direction`, for a change of its lists.
    #[inline]
    pub fn prefetch_lists(&self, direction: Direction, vertex: VertexId) {
        if vertex as usize >= self.vertex_bound() {
            return;
        }
        let number = (vertex >> PAGE_BITS) as usize;
        for adjacency_table in [AdjacencyTable::added(direction), AdjacencyTable::removed(direction)] {
            let newest = &self.shared.newest[adjacency_table as usize];
            // An empty adjacency table has no pages to fetch.
            if self.next.adjacency_tables[adjacency_table as usize].num_arcs > 0
                && let Some(page) = newest.page(number, Limit::NONE)
            {
                let lines = 0..self.tiers.layout.page_lines();
                lines.for_each(|line| self.shared.arena.prefetch(page, line));
                newest.prefetch_before(number);
            }
        }
    }

    /// Applies a batch to one adjacency table, on `pool` where it is large. Changes of one edge act in their order.
    ///
    /// Cost: copies each changed list and page once; sorting takes twice the memory of the batch.
    ///
    /// # Errors
    /// A change names a vertex outside the bound; then the batch has no effect. Or the nodes fill the address range;
    /// then only published versions stay readable.
    pub fn apply<C: Change<W>>(
        &mut self,
        pool: &Pool,
        adjacency_table: AdjacencyTable,
        changes: &[C],
        space: &mut Space<C>,
    ) -> Result<AppliedArcs> {
        let parts = self.for_each_part(pool, changes, space, |terrace, context, sorted| {
            terrace.apply_part::<C, ()>(context, adjacency_table, sorted)
        })?;
        self.finish(pool, adjacency_table, parts)
    }

    /// Applies a batch to the out-lists over `base`, so that their adjacency tables hold differences from the base
    /// only. Where in-lists are kept, applies the effective changes to them in transpose, without searching the base
    /// again. The batch of an undirected graph names each edge in both directions.
    ///
    /// Cost: as [`apply`](Self::apply), and one search in the base for each edge. In-lists pay for effective changes
    /// only.
    ///
    /// # Errors
    /// As [`apply`](Self::apply), or the base is damaged. In the second case, only published versions stay readable.
    pub fn apply_directions_over<C: Change<W>>(
        &mut self,
        pool: &Pool,
        base: &impl Base<W>,
        changes: &[C],
        space: &mut Space<C>,
        transpose: &mut TransposedChanges<W>,
    ) -> Result<()> {
        self.apply_sorted_as(pool, base, changes, |sorted: &[C]| sorted, space, transpose)
    }

    /// Applies the sorted changes as `view` reinterprets them.
    fn apply_sorted_as<C: Change<W>, D: Change<W>>(
        &mut self,
        pool: &Pool,
        base: &impl Base<W>,
        changes: &(impl ChangeSource<C> + ?Sized),
        view: ChangeCast<C, D>,
        space: &mut Space<C>,
        transpose: &mut TransposedChanges<W>,
    ) -> Result<()> {
        if !self.shared.has_in_lists {
            // Without in-lists, effects need not be collected.
            self.apply_to_direction::<C, D, ()>(pool, base, changes, view, space)?;
            return Ok(());
        }
        let effects = self.apply_to_direction::<C, D, Listed<W>>(pool, base, changes, view, space)?;
        for (adjacency_table, effects) in [AdjacencyTable::In, AdjacencyTable::InRemoved].into_iter().zip(effects) {
            transpose.fill(pool, &effects);
            let TransposedChanges { changes, space } = &mut *transpose;
            let parts = self.for_each_part(pool, &changes[..], space, |terrace, context, sorted| {
                touch_lists(base, adjacency_table, sorted);
                terrace.apply_part::<_, ()>(context, adjacency_table, sorted)
            })?;
            self.finish(pool, adjacency_table, parts)?;
        }
        Ok(())
    }

    /// Applies a batch to the adjacency tables of the out-lists. Returns the effective changes of each adjacency
    /// table, part by part.
    fn apply_to_direction<C: Change<W>, D: Change<W>, S: Sink<EntryUpdate<W>> + Sink<D>>(
        &mut self,
        pool: &Pool,
        base: &impl Base<W>,
        changes: &(impl ChangeSource<C> + ?Sized),
        view: ChangeCast<C, D>,
        space: &mut Space<C>,
    ) -> Result<[Vec<S>; 2]> {
        let parts = self.for_each_part(pool, changes, space, |terrace, context, sorted| {
            terrace.apply_split::<D, S>(context, base, view(sorted))
        })?;
        let (mut applied, mut sinks) = ([AppliedArcs::default(); 2], [Vec::new(), Vec::new()]);
        for (added, removed) in parts {
            for (i, part) in [added, removed].into_iter().enumerate() {
                applied[i].join(part.applied);
                sinks[i].push(part.sink);
            }
        }
        self.count(pool, AdjacencyTable::Out, applied[0])?;
        self.count(pool, AdjacencyTable::OutRemoved, applied[1])?;
        Ok(sinks)
    }

    /// Sorts a batch and calls `body(self, worker, sorted)` for each part. Returns the results in the order of the
    /// parts.
    fn for_each_part<C: Change<W>, R: Send>(
        &mut self,
        pool: &Pool,
        changes: &(impl ChangeSource<C> + ?Sized),
        space: &mut Space<C>,
        body: impl Fn(&Self, WorkerContext<'_>, &[C]) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        self.require_whole()?;
        let bound = self.vertex_bound();
        // Before any change, so that a refused batch has no effect.
        require_below(pool, changes, bound)?;
        if self.workers.len() < pool.num_threads() {
            self.workers.resize_with(pool.num_threads(), Mutex::default);
            self.helpers.resize_with(pool.num_threads(), Mutex::default);
        }
        // Directories of pinned versions are rewritten before the table of newest pages changes.
        self.begin(Some(pool))?;
        let parts = if changes.len() <= SERIAL_BATCH {
            body(self, WorkerContext { pool, worker: 0 }, space.sort.sorted(changes, bound)).map(|part| vec![part])
        } else {
            let buckets = space.sort.buckets(pool, changes, bound);
            let parts = Mutex::new(Vec::with_capacity(buckets.len()));
            let buckets: Vec<_> = buckets.into_iter().enumerate().collect();
            let apply = |worker: usize, (i, bucket): (usize, Bucket<'_, C>)| {
                let part = body(self, WorkerContext { pool, worker }, bucket.sort());
                parts.lock().push((i, part));
            };
            pool.for_each_item(buckets, apply);
            let mut parts = parts.into_inner();
            // Parts end in any order.
            parts.sort_unstable_by_key(|&(i, _)| i);
            parts.into_iter().map(|(_, part)| part).collect()
        };
        self.is_broken = parts.is_err();
        parts
    }

    fn apply_part<C: Change<W>, S: Sink<C>>(
        &self,
        context: WorkerContext<'_>,
        adjacency_table: AdjacencyTable,
        sorted: &[C],
    ) -> Result<BatchPartEffect<S>> {
        let mut worker = self.workers[context.worker].lock();
        let mut work = std::mem::take(&mut worker.work);
        let mut stale = std::mem::take(&mut worker.stale);
        let mut part = BatchPartEffect { applied: AppliedArcs::default(), sink: S::default() };
        let newest = &self.shared.newest[adjacency_table as usize];
        let contexts = WorkerContexts { pool: context.pool, helpers: &self.helpers };
        let target = Target { tiers: &self.tiers, newest, contexts: &contexts };
        let mut builder = self.builder(&mut worker);
        // On an error, the scratch space is lost, which does no harm: the memtable takes no more batches.
        part.applied = apply_sorted(&mut builder, target, &mut work, sorted, &mut stale, &mut part.sink)?;
        // One lock per part, not one per page.
        self.stale[adjacency_table as usize].lock().note(stale.drain(..));
        worker.stale = stale;
        worker.work = work;
        Ok(part)
    }

    /// Searches the base for each edge, and applies the results to the two adjacency tables of the out-lists.
    fn apply_split<C: Change<W>, S: Sink<EntryUpdate<W>> + Sink<C>>(
        &self,
        context: WorkerContext<'_>,
        base: &impl Base<W>,
        sorted: &[C],
    ) -> Result<(BatchPartEffect<S>, BatchPartEffect<S>)> {
        let is_any_removed = self.next.adjacency_tables[AdjacencyTable::OutRemoved as usize].num_arcs > 0;
        // An empty base has no edge to find, and the table of removals stays empty: no search is needed.
        if base.is_empty() && !is_any_removed {
            let nothing = BatchPartEffect { applied: AppliedArcs::default(), sink: S::default() };
            // Readers must know of a changed list before its version is published.
            touch_lists(base, AdjacencyTable::Out, sorted);
            return Ok((self.apply_part::<C, S>(context, AdjacencyTable::Out, sorted)?, nothing));
        }
        // Taken out, because `apply_part` locks this entry of `workers`.
        let mut split = std::mem::take(&mut self.workers[context.worker].lock().split);
        split.fill(context.pool, base, sorted, is_any_removed, self.tiers.multigraph)?;
        // Before publication, as above.
        touch_lists(base, AdjacencyTable::Out, &split.added);
        touch_lists(base, AdjacencyTable::OutRemoved, &split.removed);
        let added = self.apply_part::<_, S>(context, AdjacencyTable::Out, &split.added)?;
        let removed = self.apply_part::<_, S>(context, AdjacencyTable::OutRemoved, &split.removed)?;
        self.workers[context.worker].lock().split = split;
        Ok((added, removed))
    }

    /// Adds up the effects of the parts of a batch on an adjacency table.
    fn finish(
        &mut self,
        pool: &Pool,
        adjacency_table: AdjacencyTable,
        parts: Vec<BatchPartEffect<()>>,
    ) -> Result<AppliedArcs> {
        let mut applied = AppliedArcs::default();
        parts.into_iter().for_each(|part| applied.join(part.applied));
        self.count(pool, adjacency_table, applied)?;
        Ok(applied)
    }

    /// Adds the effect of a batch to the counts of an adjacency table.
    fn count(&mut self, pool: &Pool, adjacency_table: AdjacencyTable, applied: AppliedArcs) -> Result<()> {
        let state = &mut self.next.adjacency_tables[adjacency_table as usize];
        state.num_arcs = state.num_arcs + applied.num_added - applied.num_removed;
        state.num_loops = state.num_loops.wrapping_add_signed(applied.num_loops);
        // After group `LAST`, the tables identify no page, so every version needs directories.
        if self.stale[adjacency_table as usize].lock().len() > MOST_STALE || self.next.epoch > Newest::LAST {
            self.complete(pool)?;
        }
        Ok(())
    }

    /// Publishes all changes since the last call as one version, and returns its epoch. Also reclaims a bounded
    /// number of replaced nodes, which takes a few microseconds.
    pub fn publish(&mut self) -> u64 {
        // A group without changes needs `begin` too: only now is the version before the newest checked for pins and
        // given directories.
        if self.is_broken || self.begin(None).is_err() {
            return self.published.epoch;
        }
        let before = self.published.epoch;
        // The root word carries this flag, so it is set before the words are published.
        for (adjacency_table, stale) in self.next.adjacency_tables.iter_mut().zip(&mut self.stale) {
            adjacency_table.is_complete = stale.get_mut().len() == 0;
        }
        // All nodes are sealed and all pages set, so the release store in `publish` shows them to readers.
        self.publisher.publish(self.next.epoch, self.next.words());
        self.published = self.next;
        self.next.epoch += 1;
        self.has_begun = false;
        let mut num_retired = 0;
        for worker in self.workers.iter_mut().chain(&mut self.helpers) {
            let worker = worker.get_mut();
            // Lines are counted once per group, not once per node.
            worker.slots.count_taken(&self.free_lists);
            if !worker.retired.is_empty() {
                num_retired += worker.retired.len();
                // The version before this group is the youngest that reaches these nodes.
                self.limbo_list.retire(before, &mut worker.retired);
            }
        }
        if self.groups_to_sweep > 0 {
            self.groups_to_sweep -= 1;
        } else {
            self.sweep();
        }
        // Twice as many as were retired, so that the limbo list shrinks.
        self.free_some(2 * num_retired);
        self.published.epoch
    }

    /// Reclaims all nodes that no reader holds, and completes the directories of the newest version, so that only
    /// nodes of versions remain. [`publish`](Self::publish) keeps up with a busy writer; this call is for an idle
    /// one.
    pub fn collect(&mut self) {
        if !self.is_broken {
            // If memory is short, the next batch reports it.
            let _ = self.begin(None).and_then(|()| self.complete_published(None));
        }
        // After the completion above, because the directories that it replaced are freed here, too.
        self.sweep();
        self.free_some(usize::MAX);
    }

    fn sweep(&mut self) {
        let limbo_list = &mut self.limbo_list;
        self.publisher.sweep(|epoch| limbo_list.release(epoch));
        let num_pinned = self.publisher.past().count();
        self.groups_to_sweep = if num_pinned <= FEW_PINNED { 0 } else { num_pinned / FEW_PINNED };
    }

    fn free_some(&mut self, at_least: usize) {
        self.pinned.clear();
        self.pinned.extend(self.publisher.past());
        let free_lists = &self.free_lists;
        self.limbo_list.free_some(&self.pinned, at_least, |nodes| {
            free_lists.give_back(nodes.iter().map(|node| (node.handle, node.num_lines as usize)));
        });
    }

    /// Creates a reader, which pins the newest published version on request.
    pub fn reader(&self) -> Reader<W> {
        Reader { shared: Arc::clone(&self.shared), marker: PhantomData }
    }

    /// Pins the newest published version.
    pub fn version(&self) -> Version<W> {
        self.reader().pin()
    }

    /// As [`Memory::live_bytes`], and cheap enough for a call after every batch.
    pub fn num_live_bytes(&self) -> u64 {
        self.free_lists.num_live().max(0) as u64 * LINE_BYTES
    }

    /// Returns the memory use.
    pub fn memory(&self) -> Memory {
        Memory {
            live_bytes: self.num_live_bytes(),
            touched_bytes: self.free_lists.num_touched() as u64 * LINE_BYTES,
            num_kept_nodes: self.limbo_list.num_kept() as u64,
            num_pinned_versions: self.publisher.past().count() as u64,
        }
    }
}

impl Terrace<()> {
    /// As [`apply_directions_over`](Self::apply_directions_over), for edges in the caller's format.
    ///
    /// # Errors
    /// As for [`apply_directions_over`](Self::apply_directions_over).
    pub fn apply_edges_over(
        &mut self,
        pool: &Pool,
        base: &impl Base<()>,
        edges: Edges<'_>,
        space: &mut Space<Addition>,
        transpose: &mut TransposedChanges<()>,
    ) -> Result<()> {
        match edges.op {
            Op::Insert => self.apply_sorted_as(pool, base, &edges, |sorted| sorted, space, transpose),
            // Removals have the memory layout of additions, so both are sorted in one space.
            Op::Delete => {
                let view: ChangeCast<Addition, Removal> = |sorted| bytemuck::cast_slice(sorted);
                self.apply_sorted_as(pool, base, &edges, view, space, transpose)
            }
        }
    }
}

/// # Errors
/// A change names a vertex that is not below `bound`.
fn require_below<W, C: Change<W>>(pool: &Pool, changes: &(impl ChangeSource<C> + ?Sized), bound: usize) -> Result<()> {
    const GRAIN: usize = 1 << 16;
    let largest = |chunk| {
        let mut largest = 0;
        changes.for_each(chunk, |change| largest = largest.max(change.source()).max(change.target()));
        largest
    };
    let vertex: Option<VertexId> = match changes.len() {
        0 => None,
        len if len <= GRAIN => Some(largest(0..len)),
        len => pool.map_chunks(0..len, GRAIN, |_, chunk| largest(chunk)).into_iter().max(),
    };
    match vertex {
        Some(vertex) if vertex as usize >= bound => Err(Error::Vertex { vertex, bound }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
