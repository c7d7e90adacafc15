//! Edges without weights, spread over ranges of lists while they are read.
//!
//! Edges that carry nothing may come in any order, so they need not wait until all are read: each
//! worker hands every entry to a part, by the high bits of its list. How large lists get shows only
//! with time; a worker that meets one beyond its parts makes each part twice as wide, by joining
//! neighbours. A part is a chain of small chunks of one large allocation. Turning edges for the
//! in-lists gives chunks back while it takes others, so that both sides use the same memory: memory
//! that was never used costs more than what is done with it.

use std::slice::ChunksExactMut;
use std::sync::{Mutex, MutexGuard};

use base::VertexId;
use base::parallel::Pool;
use base::progress::Progress;
use base::simd::{stream_fence, stream_line};
use bytemuck::{Pod, Zeroable};

use super::Load;
use super::arcs::KeyedArc;
use super::assemble::{Order, Retain};
use super::keys::KeyMap;
use super::lists::{ListSink, Lists};
use super::raw::KeyForm;
use super::sort::{ListSorter, bits_below};
use crate::{Error, Result};

/// An entry of a list.
pub(crate) type Entry = KeyedArc<()>;

/// Entries gathered for a part before they move: few parts lie on a page that the processor has at hand, so that each
/// move waits for one, and four lines of the cache make it worth while.
const LINE_ARCS: usize = 32;
/// The most parts.
const MAX_PARTS: usize = 2048;
/// The most lines of a chunk: 16 KB.
const MAX_CHUNK_LINES: usize = 64;
/// A part of so many entries is not too large to be sorted by one worker.
const LARGE_PART: usize = 1 << 20;
/// Nor is one of at most so many times the mean.
const MAX_SKEW: usize = 8;

/// Entries that move together, on lines of the cache of their own.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([Entry; LINE_ARCS]);

/// A piece of memory for entries, and how many it holds.
struct Chunk<'a> {
    lines: &'a mut [Line],
    num_entries: usize,
}

impl Chunk<'_> {
    /// Whether a line may follow. One that was moved before it was full is the last of its chunk, so
    /// that all lines stay aligned.
    fn is_open(&self) -> bool {
        self.num_entries.is_multiple_of(LINE_ARCS) && self.num_entries / LINE_ARCS < self.lines.len()
    }

    fn entries(&self) -> &[Entry] {
        &bytemuck::cast_slice(self.lines)[..self.num_entries]
    }

    fn entries_mut(&mut self) -> &mut [Entry] {
        &mut bytemuck::cast_slice_mut(self.lines)[..self.num_entries]
    }
}

/// The sizes of chunks and parts.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// The lines of a chunk.
    chunk_lines: usize,
    /// The number of parts.
    parts: usize,
}

impl Shape {
    /// As large as they may be without chunks that are half empty taking up more than an eighth of
    /// `num_lines`; `None` where that leaves nothing of use.
    fn new(num_lines: usize, num_threads: usize) -> Option<Self> {
        let room = num_lines / (8 * num_threads);
        let parts = room.checked_ilog2().map(|log| (1 << log).min(MAX_PARTS))?;
        let chunk_lines = (room / parts).min(MAX_CHUNK_LINES);
        (parts > 1).then_some(Self { chunk_lines, parts })
    }

    fn chunk_entries(&self) -> usize {
        self.chunk_lines * LINE_ARCS
    }
}

/// Memory for all chunks.
pub(crate) struct Arena<'a> {
    shape: Shape,
    fresh: Mutex<ChunksExactMut<'a, Line>>,
    used: Mutex<Vec<&'a mut [Line]>>,
}

impl<'a> Arena<'a> {
    /// Divides `memory`, which need not have been touched yet, for so many workers; `None` where it is too small.
    pub(crate) fn new(memory: &'a mut [Entry], num_threads: usize) -> Option<Self> {
        // A vector of lines would be aligned from the start, but touched as a whole when it is allocated.
        let (_, lines, _) = bytemuck::pod_align_to_mut::<Entry, Line>(memory);
        let shape = Shape::new(lines.len(), num_threads)?;
        let fresh = Mutex::new(lines.chunks_exact_mut(shape.chunk_lines));
        Some(Self { shape, fresh, used: Mutex::new(Vec::new()) })
    }

    /// A chunk; none where all are in use.
    fn take(&self) -> Option<Chunk<'a>> {
        let used = lock(&self.used).pop();
        let lines = used.or_else(|| lock(&self.fresh).next())?;
        Some(Chunk { lines, num_entries: 0 })
    }

    fn give_back(&self, chunk: Chunk<'a>) {
        lock(&self.used).push(chunk.lines);
    }

    /// Whether `num_threads` workers can each spread `num_arcs` entries, and turn all of them later.
    pub(crate) fn has_room(&self, num_arcs: usize, num_threads: usize) -> bool {
        let each = 2 * self.shape.parts + num_arcs.div_ceil(self.shape.chunk_entries());
        lock(&self.fresh).len() + lock(&self.used).len() >= each * num_threads
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// The parts that one worker fills.
pub(crate) struct Spreader<'a, 'b> {
    arena: &'b Arena<'a>,
    /// The bits of a list within its part.
    list_bits: u32,
    lines: Vec<Line>,
    fills: Vec<u8>,
    parts: Vec<Vec<Chunk<'a>>>,
    /// There was no chunk left when one was needed.
    is_short: bool,
}

impl<'a, 'b> Spreader<'a, 'b> {
    pub(crate) fn new(arena: &'b Arena<'a>, list_bits: u32) -> Self {
        let num_parts = arena.shape.parts;
        let parts = (0..num_parts).map(|_| Vec::new()).collect();
        Self {
            arena,
            list_bits,
            lines: vec![Line::zeroed(); num_parts],
            fills: vec![0; num_parts],
            parts,
            is_short: false,
        }
    }

    /// Makes parts wide enough for `list`.
    pub(crate) fn reach(&mut self, list: VertexId) {
        if (list >> self.list_bits) as usize >= self.parts.len() {
            self.flush();
            while (list >> self.list_bits) as usize >= self.parts.len() {
                self.join();
            }
        }
    }

    /// Adds an entry of a list that parts reach.
    #[inline(always)]
    pub(crate) fn push(&mut self, entry: Entry) {
        let part = (entry.list() >> self.list_bits) as usize;
        let fill = self.fills[part] as usize;
        self.lines[part].0[fill % LINE_ARCS] = entry;
        self.fills[part] = fill as u8 + 1;
        if fill + 1 == LINE_ARCS {
            self.flush_line(part);
        }
    }

    fn flush_line(&mut self, part: usize) {
        let num_entries = std::mem::take(&mut self.fills[part]) as usize;
        let chunks = &mut self.parts[part];
        if !chunks.last().is_some_and(Chunk::is_open) {
            chunks.extend(self.arena.take());
        }
        match chunks.last_mut().filter(|chunk| chunk.is_open()) {
            Some(chunk) => {
                let target = &mut chunk.lines[chunk.num_entries / LINE_ARCS];
                let target: &mut [[u32; 16]; LINE_ARCS / 8] = bytemuck::cast_mut(target);
                let source: &[[u32; 16]; LINE_ARCS / 8] = bytemuck::cast_ref(&self.lines[part]);
                target.iter_mut().zip(source).for_each(|(target, source)| stream_line(target, source));
                chunk.num_entries += num_entries;
            }
            None => self.is_short = true,
        }
    }

    /// Joins neighbouring parts.
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
        stream_fence();
    }

    /// Calls `body` with everything so far and gives the memory back.
    pub(crate) fn drain(&mut self, mut body: impl FnMut(&[Entry]) -> Result<()>) -> Result<()> {
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
pub(crate) struct Buckets<'a> {
    list_bits: u32,
    /// Each in the order of the workers.
    parts: Vec<Vec<Chunk<'a>>>,
}

impl<'a> Buckets<'a> {
    /// Joins what workers spread.
    ///
    /// # Errors
    /// The memory did not suffice, though it was asked for.
    pub(crate) fn new<'b>(spreaders: Vec<Spreader<'a, 'b>>) -> Result<Self> {
        let list_bits = spreaders.iter().map(|spreader| spreader.list_bits).max().unwrap_or(0);
        let mut parts: Vec<Vec<Chunk<'a>>> = Vec::new();
        for mut spreader in spreaders {
            spreader.flush();
            if spreader.is_short {
                return Err(Error::Option("the memory set aside for edges is too small".into()));
            }
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

    /// Whether one part is so large that the workers would wait for it.
    pub(crate) fn is_skewed(&self) -> bool {
        let largest = self.parts.iter().map(|part| part_len(part)).max().unwrap_or(0);
        largest > LARGE_PART && largest > MAX_SKEW * self.len() / self.parts.len()
    }

    /// The first list of each part, as `id` tells it, and `end`.
    pub(crate) fn bounds(&self, end: u64, id: impl Fn(u64) -> u64) -> Vec<u64> {
        let starts = (0..self.parts.len() as u64).map(|part| id(part << self.list_bits).min(end));
        starts.chain([end]).collect()
    }

    /// All entries, in pieces.
    pub(crate) fn pieces(&self) -> Vec<&[Entry]> {
        self.parts.iter().flatten().map(Chunk::entries).collect()
    }

    /// Calls `body(worker, entries)` with all entries, in no order.
    pub(crate) fn for_each_mut(&mut self, pool: &Pool, body: impl Fn(usize, &mut [Entry]) + Sync) {
        pool.for_each_item(self.parts.iter_mut().collect(), |worker, part| {
            part.iter_mut().for_each(|chunk| body(worker, chunk.entries_mut()));
        });
    }

    /// Maps and sorts every part and hands the lists, which begin at `bounds`, to `sink`.
    pub(crate) fn assemble(
        &mut self,
        bounds: &[u64],
        map: &KeyMap,
        order: Order,
        retain: Retain,
        sink: &mut dyn ListSink<()>,
        load: &Load<'_>,
    ) -> Result<()> {
        let Load { pool, progress, .. } = *load;
        let work = self.parts.iter_mut().zip(bounds.windows(2));
        let make = |sorter: &mut ListSorter<()>,
                    (part, bounds): (&mut Vec<Chunk<'_>>, &[u64]),
                    (first, lists): &mut (VertexId, Lists<()>)| {
            progress.check()?;
            *first = bounds[0] as VertexId;
            let mut pieces: Vec<_> = part.iter_mut().map(Chunk::entries_mut).collect();
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
        let sorter = || ListSorter::new(order.neighbour_bits);
        pool.in_order(work, sorter, make, |(first, lists)| sink.append(*first, lists))
    }

    /// The same entries in the lists of their neighbours, of which there are `num_lists`; those of a
    /// list stay in order.
    pub(crate) fn turn(self, arena: &Arena<'a>, num_lists: u64, pool: &Pool, progress: &dyn Progress) -> Result<Self> {
        let list_bits = bits_below(num_lists).saturating_sub(arena.shape.parts.ilog2());
        let total = self.len();
        let mut shares: Vec<Vec<Vec<Chunk<'a>>>> = (0..pool.num_threads()).map(|_| Vec::new()).collect();
        let mut before = 0;
        for part in self.parts {
            let share = before * shares.len() / total.max(1);
            before += part_len(&part);
            let share = share.min(shares.len() - 1);
            shares[share].push(part);
        }
        let spread: Vec<_> = shares.iter().map(|_| Mutex::new(None)).collect();
        pool.for_each_item(shares.into_iter().enumerate().collect(), |_, (index, share)| {
            let mut spreader = Spreader::new(arena, list_bits);
            spreader.reach(num_lists.saturating_sub(1) as VertexId);
            for part in share {
                if progress.is_cancelled() {
                    return;
                }
                for chunk in part {
                    chunk.entries().iter().for_each(|entry| spreader.push(entry.turned()));
                    arena.give_back(chunk);
                }
            }
            *lock(&spread[index]) = Some(spreader);
        });
        progress.check()?;
        Self::new(spread.into_iter().filter_map(|s| s.into_inner().unwrap_or_else(|e| e.into_inner())).collect())
    }
}

fn part_len(part: &[Chunk<'_>]) -> usize {
    part.iter().map(|chunk| chunk.num_entries).sum()
}
