//! Spreads edges without weights over ranges of lists while they are read.
//!
//! Edges without data may be spread in any order, so they need not wait until all are read. Each worker adds every
//! entry to a part, by the high bits of its list. The largest list is unknown at first: a worker that meets a list
//! beyond its parts doubles their width by joining neighboring parts. A part is a chain of small chunks of one large
//! allocation. Turning edges for the in-lists returns chunks while it takes others, so that both directions use the same
//! memory. Fresh memory costs more than the work on it.

use std::slice::ChunksExactMut;

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_base::progress::Progress;
use anden_base::simd::{stream_fence, stream_line};
use bytemuck::{Pod, Zeroable};
use parking_lot::Mutex;

use super::Load;
use super::arcs::LoadArc;
use super::assemble::{ArcOrder, Retain};
use super::keys::KeyMap;
use super::lists::{BuiltLists, ListSink};
use super::raw::KeyForm;
use super::sort::{ListSorter, bits_below};
use crate::{Error, Result};

/// An entry of a list.
pub(crate) type BucketEntry = LoadArc<()>;

/// Entries gathered for a part before they move: four cache lines. Most parts lie on pages outside the TLB, so that
/// each move waits for one; a larger move amortizes the wait.
const LINE_ARCS: usize = 32;
/// The most parts.
const MAX_PARTS: usize = 2048;
/// The most lines of a chunk: 16 KB.
const MAX_CHUNK_LINES: usize = 64;
/// A part of up to this many entries can be sorted by one worker.
const LARGE_PART: usize = 1 << 20;
/// So can a part of up to this many times the mean.
const MAX_SKEW: usize = 8;

/// Entries that move together; aligned to cache lines.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(64))]
struct BucketLine([BucketEntry; LINE_ARCS]);

/// A piece of memory for entries, with its fill.
struct BucketChunk<'a> {
    lines: &'a mut [BucketLine],
    num_entries: usize,
}

impl BucketChunk<'_> {
    /// Whether another line fits. A line that was moved before it was full ends its chunk, so that all lines stay
    /// aligned.
    fn is_open(&self) -> bool {
        self.num_entries.is_multiple_of(LINE_ARCS) && self.num_entries / LINE_ARCS < self.lines.len()
    }

    fn entries(&self) -> &[BucketEntry] {
        &bytemuck::cast_slice(self.lines)[..self.num_entries]
    }

    fn entries_mut(&mut self) -> &mut [BucketEntry] {
        &mut bytemuck::cast_slice_mut(self.lines)[..self.num_entries]
    }
}

/// The sizes of chunks and parts.
#[derive(Clone, Copy, Debug)]
struct BucketShape {
    /// The lines of a chunk.
    chunk_lines: usize,
    /// The number of parts.
    parts: usize,
}

impl BucketShape {
    /// The largest shape in which half-empty chunks waste at most an eighth of `num_lines`. `None` if no useful shape
    /// is left.
    fn new(num_lines: usize, num_threads: usize) -> Option<Self> {
        let room = num_lines / (8 * num_threads);
        // A power of two, because the high bits of a list choose its part.
        let parts = room.checked_ilog2().map(|log| (1 << log).min(MAX_PARTS))?;
        let chunk_lines = (room / parts).min(MAX_CHUNK_LINES);
        (parts > 1).then_some(Self { chunk_lines, parts })
    }

    fn chunk_entries(&self) -> usize {
        self.chunk_lines * LINE_ARCS
    }
}

/// The memory of all chunks.
pub(crate) struct BucketArena<'a> {
    shape: BucketShape,
    fresh: Mutex<ChunksExactMut<'a, BucketLine>>,
    used: Mutex<Vec<&'a mut [BucketLine]>>,
}

impl<'a> BucketArena<'a> {
    /// Divides `memory`, perhaps untouched, for this many workers. `None` if it is too small.
    pub(crate) fn new(memory: &'a mut [BucketEntry], num_threads: usize) -> Option<Self> {
        // A vector of lines would be aligned, but its allocation would touch all of it.
        let (_, lines, _) = bytemuck::pod_align_to_mut::<BucketEntry, BucketLine>(memory);
        let shape = BucketShape::new(lines.len(), num_threads)?;
        let fresh = Mutex::new(lines.chunks_exact_mut(shape.chunk_lines));
        Some(Self { shape, fresh, used: Mutex::new(Vec::new()) })
    }

    /// A free chunk; `None` if all are in use.
    fn take(&self) -> Option<BucketChunk<'a>> {
        // Used chunks first, because fresh memory costs more than the work on it.
        let used = self.used.lock().pop();
        let lines = used.or_else(|| self.fresh.lock().next())?;
        Some(BucketChunk { lines, num_entries: 0 })
    }

    fn give_back(&self, chunk: BucketChunk<'a>) {
        self.used.lock().push(chunk.lines);
    }

    /// Whether `num_threads` workers can each spread `num_arcs` entries, and later turn all of them.
    pub(crate) fn has_room(&self, num_arcs: usize, num_threads: usize) -> bool {
        // In each direction, each part may end in a chunk that is not full.
        let each = 2 * self.shape.parts + num_arcs.div_ceil(self.shape.chunk_entries());
        self.fresh.lock().len() + self.used.lock().len() >= each * num_threads
    }
}

/// The parts that one worker fills.
pub(crate) struct BucketSpreader<'a, 'b> {
    arena: &'b BucketArena<'a>,
    /// The bits of a list within its part.
    list_bits: u32,
    lines: Vec<BucketLine>,
    fills: Vec<u8>,
    parts: Vec<Vec<BucketChunk<'a>>>,
    /// Whether a chunk was needed and none was free.
    is_short: bool,
}

impl<'a, 'b> BucketSpreader<'a, 'b> {
    pub(crate) fn new(arena: &'b BucketArena<'a>, list_bits: u32) -> Self {
        let num_parts = arena.shape.parts;
        let parts = (0..num_parts).map(|_| Vec::new()).collect();
        Self {
            arena,
            list_bits,
            lines: vec![BucketLine::zeroed(); num_parts],
            fills: vec![0; num_parts],
            parts,
            is_short: false,
        }
    }

    /// Makes the parts wide enough for `list`.
    pub(crate) fn reach(&mut self, list: VertexId) {
        if (list >> self.list_bits) as usize >= self.parts.len() {
            // The gathered lines belong to the parts as they are before a join.
            self.flush();
            while (list >> self.list_bits) as usize >= self.parts.len() {
                self.join();
            }
        }
    }

    /// Adds an entry of a list that the parts cover.
    #[inline(always)]
    pub(crate) fn push(&mut self, entry: BucketEntry) {
        let part = (entry.list() >> self.list_bits) as usize;
        let fill = self.fills[part] as usize;
        // The modulo proves the bound to the compiler.
        self.lines[part].0[fill % LINE_ARCS] = entry;
        self.fills[part] = fill as u8 + 1;
        if fill + 1 == LINE_ARCS {
            self.flush_line(part);
        }
    }

    fn flush_line(&mut self, part: usize) {
        let num_entries = std::mem::take(&mut self.fills[part]) as usize;
        let chunks = &mut self.parts[part];
        if !chunks.last().is_some_and(BucketChunk::is_open) {
            chunks.extend(self.arena.take());
        }
        match chunks.last_mut().filter(|chunk| chunk.is_open()) {
            Some(chunk) => {
                let target = &mut chunk.lines[chunk.num_entries / LINE_ARCS];
                let target: &mut [[u32; 16]; LINE_ARCS / 8] = bytemuck::cast_mut(target);
                let source: &[[u32; 16]; LINE_ARCS / 8] = bytemuck::cast_ref(&self.lines[part]);
                // Streaming stores write past the cache: the chunk is not read soon.
                target.iter_mut().zip(source).for_each(|(target, source)| stream_line(target, source));
                chunk.num_entries += num_entries;
            }
            // The inner loop has no path for errors, so the shortage is only noted.
            None => self.is_short = true,
        }
    }

    /// Joins neighboring parts.
    fn join(&mut self) {
        let num_parts = self.parts.len();
        let mut old = std::mem::take(&mut self.parts).into_iter();
        while let Some(mut part) = old.next() {
            part.extend(old.next().into_iter().flatten());
            self.parts.push(part);
        }
        self.parts.resize_with(num_parts, Vec::new);
        self.list_bits += 1;
    }

    fn flush(&mut self) {
        for part in 0..self.fills.len() {
            if self.fills[part] > 0 {
                self.flush_line(part);
            }
        }
        // Streaming stores are weakly ordered, and other workers read the chunks next.
        stream_fence();
    }

    /// Calls `body` with all entries and returns the memory.
    pub(crate) fn drain(&mut self, mut body: impl FnMut(&[BucketEntry]) -> Result<()>) -> Result<()> {
        self.flush();
        for part in &mut self.parts {
            for chunk in part.drain(..) {
                body(chunk.entries())?;
                self.arena.give_back(chunk);
            }
        }
        Ok(())
    }
}

/// Entries in parts of consecutive lists.
pub(crate) struct ArcBuckets<'a> {
    list_bits: u32,
    /// The chunks of each part, in the order of the workers.
    parts: Vec<Vec<BucketChunk<'a>>>,
}

impl<'a> ArcBuckets<'a> {
    /// Joins the parts of all workers.
    ///
    /// # Errors
    /// The memory did not suffice, although the workers had checked.
    pub(crate) fn new<'b>(spreaders: Vec<BucketSpreader<'a, 'b>>) -> Result<Self> {
        let list_bits = spreaders.iter().map(|spreader| spreader.list_bits).max().unwrap_or(0);
        let mut parts: Vec<Vec<BucketChunk<'a>>> = Vec::new();
        for mut spreader in spreaders {
            spreader.flush();
            if spreader.is_short {
                return Err(Error::internal("the memory set aside for edges is too small"));
            }
            // Workers that met larger lists have wider parts, to which the others are widened.
            while spreader.list_bits < list_bits {
                spreader.join();
            }
            parts.resize_with(spreader.parts.len(), Vec::new);
            for (part, more) in parts.iter_mut().zip(spreader.parts) {
                part.extend(more);
            }
        }
        Ok(Self { list_bits, parts })
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.parts.iter().map(|part| part_len(part)).sum()
    }

    /// Whether one part is so large that the other workers would wait for it.
    pub(crate) fn is_skewed(&self) -> bool {
        let largest = self.parts.iter().map(|part| part_len(part)).max().unwrap_or(0);
        largest > LARGE_PART && largest > MAX_SKEW * self.len() / self.parts.len()
    }

    /// The first list of each part, mapped by `id`, and `end`.
    pub(crate) fn bounds(&self, end: u64, id: impl Fn(u64) -> u64) -> Vec<u64> {
        let starts = (0..self.parts.len() as u64).map(|part| id(part << self.list_bits).min(end));
        starts.chain([end]).collect()
    }

    /// All entries, in pieces.
    pub(crate) fn pieces(&self) -> Vec<&[BucketEntry]> {
        self.parts.iter().flatten().map(BucketChunk::entries).collect()
    }

    /// Calls `body(worker, entries)` with all entries, in no order.
    pub(crate) fn for_each_mut(&mut self, pool: &Pool, body: impl Fn(usize, &mut [BucketEntry]) + Sync) {
        pool.for_each_item(self.parts.iter_mut().collect(), |worker, part| {
            part.iter_mut().for_each(|chunk| body(worker, chunk.entries_mut()));
        });
    }

    /// Maps and sorts every part, and hands the lists to `sink`; `bounds` are the first lists of the parts.
    pub(crate) fn assemble(
        &mut self,
        bounds: &[u64],
        map: &KeyMap,
        order: ArcOrder,
        retain: Retain,
        sink: &mut dyn ListSink<()>,
        load: &Load<'_>,
    ) -> Result<()> {
        let Load { pool, progress, .. } = *load;
        let work = self.parts.iter_mut().zip(bounds.windows(2));
        let make = |sorter: &mut ListSorter<()>,
                    (part, bounds): (&mut Vec<BucketChunk<'_>>, &[u64]),
                    (first, lists): &mut (VertexId, BuiltLists<()>)| {
            progress.check()?;
            *first = bounds[0] as VertexId;
            let mut pieces: Vec<_> = part.iter_mut().map(BucketChunk::entries_mut).collect();
            // Mapped here, while the part is in the cache (docs/decisions/0031).
            pieces.iter_mut().for_each(|piece| map.apply(KeyForm::Numbers, piece));
            sorter.sort(&mut pieces, bounds[0]..bounds[1], lists);
            progress.advance(lists.len() as u64);
            lists.merge(*first, order.duplicates);
            if retain == Retain::Merged {
                let mut places = part.iter_mut().flat_map(|chunk| chunk.entries_mut());
                lists.for_each_arc(*first, |arc| {
                    if let Some(place) = places.next() {
                        *place = arc;
                    }
                });
                let mut left = lists.len();
                for chunk in part.iter_mut() {
                    chunk.num_entries = left.min(chunk.num_entries);
                    left -= chunk.num_entries;
                }
            }
            Ok(())
        };
        let sorter = || ListSorter::new(order.neighbor_bits);
        pool.in_order(work, sorter, make, |(first, lists)| sink.append(*first, lists))
    }

    /// The entries as entries of their neighbors' lists, `num_lists` in number. The entries of a list stay in order.
    pub(crate) fn reverse(
        self,
        arena: &BucketArena<'a>,
        num_lists: u64,
        pool: &Pool,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let list_bits = bits_below(num_lists).saturating_sub(arena.shape.parts.ilog2());
        let total = self.len();
        let mut shares: Vec<Vec<Vec<BucketChunk<'a>>>> = (0..pool.num_threads()).map(|_| Vec::new()).collect();
        let mut before = 0;
        for part in self.parts {
            // Shares are contiguous, so that the entries of a list stay in order.
            let share = before * shares.len() / total.max(1);
            before += part_len(&part);
            let share = share.min(shares.len() - 1);
            shares[share].push(part);
        }
        let spread: Vec<_> = shares.iter().map(|_| Mutex::new(None)).collect();
        pool.for_each_item(shares.into_iter().enumerate().collect(), |_, (index, share)| {
            let mut spreader = BucketSpreader::new(arena, list_bits);
            spreader.reach(num_lists.saturating_sub(1) as VertexId);
            for part in share {
                // The check below refuses the incomplete result.
                if progress.is_cancelled() {
                    return;
                }
                for chunk in part {
                    chunk.entries().iter().for_each(|entry| spreader.push(entry.reversed()));
                    arena.give_back(chunk);
                }
            }
            *spread[index].lock() = Some(spreader);
        });
        progress.check()?;
        Self::new(spread.into_iter().filter_map(Mutex::into_inner).collect())
    }
}

fn part_len(part: &[BucketChunk<'_>]) -> usize {
    part.iter().map(|chunk| chunk.num_entries).sum()
}
