//! The writer's side: one for each live graph.

mod directories;

use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use base::parallel::Pool;
use base::{MAX_VERTICES, VertexId};
use graph::{Direction, Side};

use crate::arena::{Arena, LINE_WORDS, Limit, Newest, Stock};
use crate::batch::{Target, apply_sorted};
use crate::builder::Builder;
use crate::change::{Addition, Applied, Change, Edges, Fate, Removal, Sink, Source, Update};
use crate::crew::{Crew, Worker, lock};
use crate::graveyard::Graveyard;
use crate::list::Tiers;
use crate::node::{PAGE_BITS, PAGE_VERTICES};
use crate::options::Options;
use crate::overlay::{Base, Listed, Mirror, touch_lists};
use crate::pins::Publisher;
use crate::sort::{Bucket, SERIAL_CHANGES, SortSpace};
use crate::stale::Stale;
use crate::state::{NUM_PLANES, Plane, State, WORDS};
use crate::version::{Reader, Shared, Version};
use crate::{Error, Result, Value};

/// Batches up to this size are applied by the calling thread alone: others would not be awake in time.
pub(crate) const SERIAL_BATCH: usize = 500;
/// And up to this size by the calling thread and whoever wakes meanwhile. Of larger ones the workers are awake: they cut
/// them.
const HELPED_BATCH: usize = SERIAL_CHANGES;
/// While so few older versions are pinned, each group looks at all of them; of more, now and then.
const FEW_PINNED: usize = 64;
/// More directories than this are not left to be made later: who has to wait for them shall not wait for long.
const MOST_STALE: usize = 1 << 15;

const LINE_BYTES: u64 = (LINE_WORDS * size_of::<u32>()) as u64;

/// A live graph: lists that change in groups of batches, and the versions that readers hold.
///
/// There is one writer, who owns this. Each [`apply`](Self::apply) changes the version that is being
/// made, and [`publish`](Self::publish) shows it to readers, all planes at once. A node that a published
/// version leads to is never changed, so neither side waits for the other.
#[derive(Debug)]
pub struct Terrace<W: Value = ()> {
    shared: Arc<Shared>,
    tiers: Tiers,
    publisher: Publisher<WORDS>,
    /// The version that is being made; its epoch is that of the next group.
    next: State,
    /// The version that was published last.
    published: State,
    stock: Stock,
    graveyard: Graveyard,
    /// By plane.
    stale: [Mutex<Stale>; NUM_PLANES],
    /// Room for the older versions that are pinned.
    pinned: Vec<u64>,
    /// Whether something was done already for the version that is being made.
    has_begun: bool,
    /// One for each thread of the pool that applies batches.
    workers: Vec<Mutex<Worker<W>>>,
    /// As many, for parts of what one of them shares.
    helpers: Vec<Mutex<Worker<W>>>,
    /// How many groups to let pass before all pinned versions are looked at again.
    patience: usize,
    /// A group failed half way; only what was published can be read.
    is_broken: bool,
}

/// What a live graph takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes of nodes that a version which is pinned, or the newest, leads to.
    pub live_bytes: u64,
    /// Bytes that were ever written: nodes, and room for more.
    pub touched_bytes: u64,
    /// Nodes that only older versions lead to, or that were not looked at yet.
    pub num_kept_nodes: u64,
    /// Older versions that are pinned, as far as the writer knows.
    pub num_pinned_versions: u64,
}

/// Sorted changes as those that are applied.
type View<C, D> = fn(&[C]) -> &[D];

/// Who applies a part of a batch.
#[derive(Clone, Copy)]
struct Hand<'a> {
    pool: &'a Pool,
    worker: usize,
}

/// What a part of a batch did.
struct Part<S> {
    applied: Applied,
    sink: S,
}

impl<W: Value> Terrace<W> {
    /// A graph without vertices.
    ///
    /// # Errors
    /// The options are out of their range, or the system grants no addresses.
    pub fn new(options: &Options) -> Result<Self> {
        let tiers = options.tiers::<W>()?;
        let (arena, newest) = Arena::reserve()?;
        let stock = Stock::new(&arena);
        let published = State::empty();
        let publisher = Publisher::new(published.words());
        let shared = Shared {
            arena,
            newest,
            seats: Arc::clone(publisher.seats()),
            tiers,
            direction: options.direction,
            has_in_lists: options.in_lists && options.direction == Direction::Directed,
        };
        Ok(Self {
            shared: Arc::new(shared),
            tiers,
            publisher,
            next: State { epoch: 1, ..published },
            published,
            stock,
            graveyard: Graveyard::default(),
            stale: Default::default(),
            pinned: Vec::new(),
            has_begun: false,
            workers: vec![Mutex::default()],
            helpers: Vec::new(),
            patience: 0,
            is_broken: false,
        })
    }

    /// Vertices below this may be named by changes.
    pub fn vertex_bound(&self) -> usize {
        self.next.num_vertices as usize
    }

    /// Lets changes name vertices below `bound`; a smaller bound than before changes nothing.
    ///
    /// # Errors
    /// There cannot be so many vertices.
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
            let what =
                format!("the addresses that the system grants are enough for {} vertices", most_pages * PAGE_VERTICES);
            return Err(Error::Parameter(format!("{what}, not for {bound}: look at the limits (ulimit -v)")));
        }
        self.begin(None)?;
        self.complete_published(None)?;
        let mut planes = self.next.planes;
        let mut height = self.next.height;
        let mut worker = lock(&self.workers[0]);
        let mut builder = self.builder(&mut worker);
        for (plane, i) in planes.iter_mut().zip([Plane::Out, Plane::In, Plane::OutRemoved, Plane::InRemoved]) {
            let directory = self.next.directory(i).grown(&mut builder, num_pages as u64)?;
            (plane.root, height) = (directory.root, directory.height);
        }
        drop(worker);
        self.next = State { num_vertices: bound as u64, height, planes, ..self.next };
        Ok(())
    }

    fn builder<'a>(&'a self, worker: &'a mut Worker<W>) -> Builder<'a> {
        Builder {
            arena: &self.shared.arena,
            stock: &self.stock,
            group: self.next.epoch,
            slots: &mut worker.slots,
            retired: &mut worker.retired,
        }
    }

    fn require_whole(&self) -> Result<()> {
        if self.is_broken {
            return Err(Error::Parameter("an earlier group did not fit in memory: the live graph is read-only".into()));
        }
        Ok(())
    }

    /// Hints that lists of `vertex` change soon, in the planes of a side, once what [`Lists::prefetch`](crate::Lists::prefetch) asked for is there.
    #[inline]
    pub fn prefetch_lists(&self, side: Side, vertex: VertexId) {
        if vertex as usize >= self.vertex_bound() {
            return;
        }
        let number = (vertex >> PAGE_BITS) as usize;
        for plane in [Plane::added(side), Plane::removed(side)] {
            let newest = &self.shared.newest[plane as usize];
            if self.next.planes[plane as usize].num_arcs > 0
                && let Some(page) = newest.page(number, Limit::NONE)
            {
                let lines = 0..self.tiers.layout.page_lines();
                lines.for_each(|line| self.shared.arena.prefetch(page, line));
                newest.prefetch_before(number);
            }
        }
    }

    /// Applies a batch to a plane, on `pool` where it is large. Changes of one edge act in their order.
    ///
    /// Cost: changed lists and their pages are copied, each once; twice the batch for sorting.
    ///
    /// # Errors
    /// A change names a vertex that is not below the bound, and nothing has happened; or the nodes fill
    /// the address range, after which only what was published can be read.
    pub fn apply<C: Change<W>>(
        &mut self,
        pool: &Pool,
        plane: Plane,
        changes: &[C],
        space: &mut Space<C>,
    ) -> Result<Applied> {
        let parts = self.for_each_part(pool, changes, space, |terrace, hand, sorted| {
            terrace.apply_part::<C, ()>(hand, plane, sorted)
        })?;
        self.finish(pool, plane, parts)
    }

    /// Applies a batch to the out-lists over `base`, whose planes then hold what differs from the base and no more; and,
    /// where in-lists are kept, the other way round to those, without another look at the base. An undirected graph's
    /// batch names each edge both ways.
    ///
    /// Cost: as for [`apply`](Self::apply), and one search in the base for each edge; in-lists only pay for what had an
    /// effect.
    ///
    /// # Errors
    /// As for [`apply`](Self::apply); the base is damaged. After that only what was published can be read.
    pub fn apply_sides_over<C: Change<W>>(
        &mut self,
        pool: &Pool,
        base: &impl Base<W>,
        changes: &[C],
        space: &mut Space<C>,
        mirror: &mut Mirror<W>,
    ) -> Result<()> {
        self.apply_sorted_as(pool, base, changes, |sorted: &[C]| sorted, space, mirror)
    }

    /// Applies the changes that `view` makes of the sorted ones.
    fn apply_sorted_as<C: Change<W>, D: Change<W>>(
        &mut self,
        pool: &Pool,
        base: &impl Base<W>,
        changes: &(impl Source<C> + ?Sized),
        view: View<C, D>,
        space: &mut Space<C>,
        mirror: &mut Mirror<W>,
    ) -> Result<()> {
        if !self.shared.has_in_lists {
            self.apply_to_side::<C, D, ()>(pool, base, changes, view, space)?;
            return Ok(());
        }
        let effects = self.apply_to_side::<C, D, Listed<W>>(pool, base, changes, view, space)?;
        for (plane, effects) in [Plane::In, Plane::InRemoved].into_iter().zip(effects) {
            mirror.fill(pool, &effects);
            let Mirror { changes, space } = &mut *mirror;
            let parts = self.for_each_part(pool, &changes[..], space, |terrace, hand, sorted| {
                touch_lists(base, plane, sorted);
                terrace.apply_part::<_, ()>(hand, plane, sorted)
            })?;
            self.finish(pool, plane, parts)?;
        }
        Ok(())
    }

    /// Applies a batch to the planes of the out-lists; returns the effective changes of each, part by part.
    fn apply_to_side<C: Change<W>, D: Change<W>, S: Sink<Update<W>> + Sink<D>>(
        &mut self,
        pool: &Pool,
        base: &impl Base<W>,
        changes: &(impl Source<C> + ?Sized),
        view: View<C, D>,
        space: &mut Space<C>,
    ) -> Result<[Vec<S>; 2]> {
        let parts = self.for_each_part(pool, changes, space, |terrace, hand, sorted| {
            terrace.apply_split::<D, S>(hand, base, view(sorted))
        })?;
        let (mut applied, mut sinks) = ([Applied::default(); 2], [Vec::new(), Vec::new()]);
        for (added, removed) in parts {
            for (i, part) in [added, removed].into_iter().enumerate() {
                applied[i].join(part.applied);
                sinks[i].push(part.sink);
            }
        }
        self.count(pool, Plane::Out, applied[0])?;
        self.count(pool, Plane::OutRemoved, applied[1])?;
        Ok(sinks)
    }

    /// Sorts a batch and gives its parts to `body(self, worker, sorted)`; returns what it made of them, in
    /// their order.
    fn for_each_part<C: Change<W>, R: Send>(
        &mut self,
        pool: &Pool,
        changes: &(impl Source<C> + ?Sized),
        space: &mut Space<C>,
        body: impl Fn(&Self, Hand<'_>, &[C]) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        self.require_whole()?;
        let bound = self.vertex_bound();
        require_below(pool, changes, bound)?;
        if self.workers.len() <= pool.num_threads() {
            // And one for who calls and is none of them.
            self.workers.resize_with(pool.num_threads() + 1, Mutex::default);
            self.helpers.resize_with(pool.num_threads(), Mutex::default);
        }
        self.begin(Some(pool))?;
        let parts = if changes.len() <= SERIAL_BATCH {
            body(self, Hand { pool, worker: 0 }, space.sort.sorted(changes, bound)).map(|part| vec![part])
        } else {
            let buckets = space.sort.buckets(pool, changes, bound);
            let parts = Mutex::new(Vec::with_capacity(buckets.len()));
            let buckets: Vec<_> = buckets.into_iter().enumerate().collect();
            let apply = |worker: usize, (i, bucket): (usize, Bucket<'_, C>)| {
                let part = body(self, Hand { pool, worker }, bucket.sort());
                lock(&parts).push((i, part));
            };
            match changes.len() <= HELPED_BATCH {
                true => pool.for_each_item_helped(buckets, apply),
                false => pool.for_each_item(buckets, apply),
            }
            let mut parts = parts.into_inner().unwrap_or_else(|e| e.into_inner());
            parts.sort_unstable_by_key(|&(i, _)| i);
            parts.into_iter().map(|(_, part)| part).collect()
        };
        self.is_broken = parts.is_err();
        parts
    }

    fn apply_part<C: Change<W>, S: Sink<C>>(&self, hand: Hand<'_>, plane: Plane, sorted: &[C]) -> Result<Part<S>> {
        let mut worker = lock(&self.workers[hand.worker]);
        let mut work = std::mem::take(&mut worker.work);
        let mut stale = std::mem::take(&mut worker.stale);
        let mut part = Part { applied: Applied::default(), sink: S::default() };
        let newest = &self.shared.newest[plane as usize];
        let crew = Crew { pool: hand.pool, helpers: &self.helpers };
        let target = Target { tiers: &self.tiers, newest, crew: &crew };
        let mut builder = self.builder(&mut worker);
        part.applied = apply_sorted(&mut builder, target, &mut work, sorted, &mut stale, &mut part.sink)?;
        lock(&self.stale[plane as usize]).note(stale.drain(..));
        worker.stale = stale;
        worker.work = work;
        Ok(part)
    }

    /// The same over a base, for the out-lists: what it does to the planes of additions and of removals.
    fn apply_split<C: Change<W>, S: Sink<Update<W>> + Sink<C>>(
        &self,
        hand: Hand<'_>,
        base: &impl Base<W>,
        sorted: &[C],
    ) -> Result<(Part<S>, Part<S>)> {
        let is_any_removed = self.next.planes[Plane::OutRemoved as usize].num_arcs > 0;
        if base.is_empty() && !is_any_removed {
            let nothing = Part { applied: Applied::default(), sink: S::default() };
            touch_lists(base, Plane::Out, sorted);
            return Ok((self.apply_part::<C, S>(hand, Plane::Out, sorted)?, nothing));
        }
        let mut split = std::mem::take(&mut lock(&self.workers[hand.worker]).split);
        split.fill(hand.pool, base, sorted, is_any_removed, self.tiers.multigraph)?;
        touch_lists(base, Plane::Out, &split.added);
        touch_lists(base, Plane::OutRemoved, &split.removed);
        let added = self.apply_part::<_, S>(hand, Plane::Out, &split.added)?;
        let removed = self.apply_part::<_, S>(hand, Plane::OutRemoved, &split.removed)?;
        lock(&self.workers[hand.worker]).split = split;
        Ok((added, removed))
    }

    /// Counts what parts of a batch did to a plane.
    fn finish(&mut self, pool: &Pool, plane: Plane, parts: Vec<Part<()>>) -> Result<Applied> {
        let mut applied = Applied::default();
        parts.into_iter().for_each(|part| applied.join(part.applied));
        self.count(pool, plane, applied)?;
        Ok(applied)
    }

    /// Counts what a batch did to a plane.
    fn count(&mut self, pool: &Pool, plane: Plane, applied: Applied) -> Result<()> {
        let state = &mut self.next.planes[plane as usize];
        state.num_arcs = state.num_arcs + applied.num_added - applied.num_removed;
        state.num_loops = state.num_loops.wrapping_add_signed(applied.num_loops);
        if lock(&self.stale[plane as usize]).len() > MOST_STALE || self.next.epoch > Newest::LAST {
            self.complete(pool)?;
        }
        Ok(())
    }

    /// Shows readers what was applied since the last time, as one version; returns its epoch. Frees, as
    /// far as a few microseconds reach, nodes that no reader holds any more.
    pub fn publish(&mut self) -> u64 {
        // Who has the version before the newest is not forgotten where nothing changed.
        if self.is_broken || self.begin(None).is_err() {
            return self.published.epoch;
        }
        let before = self.published.epoch;
        for (plane, stale) in self.next.planes.iter_mut().zip(&mut self.stale) {
            plane.is_complete = stale_of(stale).len() == 0;
        }
        self.publisher.publish(self.next.epoch, self.next.words());
        self.published = self.next;
        self.next.epoch += 1;
        self.has_begun = false;
        let mut num_retired = 0;
        for worker in self.workers.iter_mut().chain(&mut self.helpers) {
            let worker = worker.get_mut().unwrap_or_else(|e| e.into_inner());
            worker.slots.settle(&self.stock);
            if !worker.retired.is_empty() {
                num_retired += worker.retired.len();
                self.graveyard.bury(before, &mut worker.retired);
            }
        }
        if self.patience > 0 {
            self.patience -= 1;
        } else {
            self.sweep();
        }
        self.free_some(2 * num_retired);
        self.published.epoch
    }

    /// Frees all nodes that no reader holds any more, and makes directories that lead to all that is published, so that
    /// there are no nodes but those that versions have. [`publish`](Self::publish) frees as many as it makes anew, so
    /// this is for a writer that rests.
    pub fn collect(&mut self) {
        if !self.is_broken {
            // Where there is no memory for it, the next batch will say so.
            let _ = self.begin(None).and_then(|()| self.complete_published(None));
        }
        self.sweep();
        self.free_some(usize::MAX);
    }

    fn sweep(&mut self) {
        let graveyard = &mut self.graveyard;
        self.publisher.sweep(|epoch| graveyard.release(epoch));
        let num_pinned = self.publisher.past().count();
        self.patience = if num_pinned <= FEW_PINNED { 0 } else { num_pinned / FEW_PINNED };
    }

    fn free_some(&mut self, at_least: usize) {
        self.pinned.clear();
        self.pinned.extend(self.publisher.past());
        let stock = &self.stock;
        self.graveyard.free_some(&self.pinned, at_least, |nodes| {
            stock.give_back(nodes.iter().map(|node| (node.handle, node.num_lines as usize)));
        });
    }

    /// For readers: pins what was published last.
    pub fn reader(&self) -> Reader<W> {
        Reader { shared: Arc::clone(&self.shared), marker: PhantomData }
    }

    /// The version that was published last.
    pub fn version(&self) -> Version<W> {
        self.reader().pin()
    }

    /// As [`Memory::live_bytes`]; cheap enough to be asked for after every batch.
    pub fn num_live_bytes(&self) -> u64 {
        self.stock.num_live().max(0) as u64 * LINE_BYTES
    }

    /// What the nodes take.
    pub fn memory(&self) -> Memory {
        Memory {
            live_bytes: self.num_live_bytes(),
            touched_bytes: self.stock.num_touched() as u64 * LINE_BYTES,
            num_kept_nodes: self.graveyard.num_kept() as u64,
            num_pinned_versions: self.publisher.past().count() as u64,
        }
    }
}

impl Terrace<()> {
    /// As [`apply_sides_over`](Self::apply_sides_over), for edges as the caller holds them.
    ///
    /// # Errors
    /// As for [`apply_sides_over`](Self::apply_sides_over).
    pub fn apply_edges_over(
        &mut self,
        pool: &Pool,
        base: &impl Base<()>,
        edges: Edges<'_>,
        space: &mut Space<Addition>,
        mirror: &mut Mirror<()>,
    ) -> Result<()> {
        match edges.fate {
            Fate::Come => self.apply_sorted_as(pool, base, &edges, |sorted| sorted, space, mirror),
            // They lie in memory as additions do, so there need be no other room to sort them in.
            Fate::Go => {
                let view: View<Addition, Removal> = |sorted| bytemuck::cast_slice(sorted);
                self.apply_sorted_as(pool, base, &edges, view, space, mirror)
            }
        }
    }
}

/// Room for sorting batches of one type of change, kept by the caller from batch to batch.
#[derive(Debug)]
pub struct Space<C> {
    pub(crate) sort: SortSpace<C>,
}

impl<C> Default for Space<C> {
    fn default() -> Self {
        Self { sort: SortSpace::default() }
    }
}

/// What the caller owns.
fn stale_of(stale: &mut Mutex<Stale>) -> &mut Stale {
    stale.get_mut().unwrap_or_else(|e| e.into_inner())
}

/// # Errors
/// A change names a vertex that is not below `bound`.
fn require_below<W, C: Change<W>>(pool: &Pool, changes: &(impl Source<C> + ?Sized), bound: usize) -> Result<()> {
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
