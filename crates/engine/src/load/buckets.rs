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
use bytemuck::Zeroable;

use super::arcs::KeyedArc;
use super::assemble::{Order, Retain, Turnstile};
use super::lists::ListSink;
use super::sort::{Sorter, bits_below};
use crate::{Error, Result};

/// An entry of a list.
pub(crate) type Entry = KeyedArc<()>;

/// Entries gathered for a part before they move.
const LINE_ARCS: usize = 8;
/// The most parts.
const MAX_PARTS: usize = 2048;
/// The most entries of a chunk: 16 KB.
const MAX_CHUNK: usize = 2048;
/// A part of so many entries is not too large to be sorted by one worker.
const LARGE_PART: usize = 1 << 20;
/// Nor is one of at most so many times the mean.
const MAX_SKEW: usize = 8;

/// A piece of memory for entries, and how many it holds.
type Chunk<'a> = (&'a mut [Entry], usize);

/// The sizes of chunks and parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// The entries of a chunk.
    chunk: usize,
    /// The number of parts.
    parts: usize,
}

impl Shape {
    /// As large as they may be without chunks that are half empty taking up more than an eighth of
    /// `num_arcs`; `None` where that leaves nothing of use.
    pub(crate) fn new(num_arcs: usize, num_threads: usize) -> Option<Self> {
        let room = num_arcs / (8 * num_threads);
        let parts = (room / LINE_ARCS).checked_ilog2().map(|log| (1 << log).min(MAX_PARTS))?;
        let chunk = (room / parts / LINE_ARCS * LINE_ARCS).min(MAX_CHUNK);
        (parts > 1 && chunk > 0).then_some(Self { chunk, parts })
    }
}

/// Memory for all chunks.
pub(crate) struct Arena<'a> {
    shape: Shape,
    fresh: Mutex<ChunksExactMut<'a, Entry>>,
    used: Mutex<Vec<&'a mut [Entry]>>,
}

impl<'a> Arena<'a> {
    pub(crate) fn new(memory: &'a mut [Entry], shape: Shape) -> Self {
        Self { shape, fresh: Mutex::new(memory.chunks_exact_mut(shape.chunk)), used: Mutex::new(Vec::new()) }
    }

    /// A chunk; none where all are in use.
    fn take(&self) -> Option<&'a mut [Entry]> {
        if let Some(chunk) = lock(&self.used).pop() {
            return Some(chunk);
        }
        lock(&self.fresh).next()
    }

    fn give_back(&self, chunks: impl IntoIterator<Item = &'a mut [Entry]>) {
        lock(&self.used).extend(chunks);
    }

    /// Whether `num_threads` workers can each spread `num_arcs` entries, and turn all of them later.
    pub(crate) fn has_room(&self, num_arcs: usize, num_threads: usize) -> bool {
        let each = 2 * self.shape.parts + num_arcs.div_ceil(self.shape.chunk);
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
    lines: Vec<[Entry; LINE_ARCS]>,
    fills: Vec<u8>,
    parts: Vec<Vec<Chunk<'a>>>,
    /// There was no chunk left when one was needed.
    is_short: bool,
}

impl<'a, 'b> Spreader<'a, 'b> {
    pub(crate) fn new(arena: &'b Arena<'a>, list_bits: u32) -> Self {
        let num_parts = arena.shape.parts;
        let parts = (0..num_parts).map(|_| Vec::new()).collect();
        let lines = vec![[Entry::zeroed(); LINE_ARCS]; num_parts];
        Self { arena, list_bits, lines, fills: vec![0; num_parts], parts, is_short: false }
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, entry: Entry) {
        let mut part = (entry.list() >> self.list_bits) as usize;
        if part >= self.fills.len() {
            self.widen(entry.list());
            part = (entry.list() >> self.list_bits) as usize;
        }
        let fill = self.fills[part] as usize;
        self.lines[part][fill % LINE_ARCS] = entry;
        self.fills[part] = fill as u8 + 1;
        if fill + 1 == LINE_ARCS {
            self.flush_line(part);
        }
    }

    fn flush_line(&mut self, part: usize) {
        let fill = std::mem::take(&mut self.fills[part]) as usize;
        if fill == LINE_ARCS
            && let Some((chunk, used)) = self.parts[part].last_mut()
            && let Some(line) = chunk[*used..].first_chunk_mut::<LINE_ARCS>()
        {
            // A length that is known here is moved by a few instructions in place of a call.
            *line = self.lines[part];
            *used += LINE_ARCS;
            return;
        }
        let mut rest = &self.lines[part][..fill];
        while !rest.is_empty() {
            let chunks = &mut self.parts[part];
            match chunks.last_mut() {
                Some((chunk, used)) if *used < chunk.len() => {
                    let (now, later) = rest.split_at(rest.len().min(chunk.len() - *used));
                    chunk[*used..*used + now.len()].copy_from_slice(now);
                    *used += now.len();
                    rest = later;
                }
                _ => match self.arena.take() {
                    Some(chunk) => chunks.push((chunk, 0)),
                    None => {
                        self.is_short = true;
                        return;
                    }
                },
            }
        }
    }

    /// Joins parts until there is one for `list`.
    #[cold]
    fn widen(&mut self, list: VertexId) {
        self.flush();
        while (list >> self.list_bits) as usize >= self.parts.len() {
            self.join();
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
        (0..self.fills.len()).for_each(|part| self.flush_line(part));
    }

    /// Calls `body` with everything so far and gives the memory back.
    pub(crate) fn drain(&mut self, mut body: impl FnMut(&[Entry]) -> Result<()>) -> Result<()> {
        self.flush();
        for part in &mut self.parts {
            for (chunk, used) in part.drain(..) {
                body(&chunk[..used])?;
                self.arena.give_back([chunk]);
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
        self.parts.iter().map(part_len).sum()
    }

    /// Whether one part is so large that the workers would wait for it.
    pub(crate) fn is_skewed(&self) -> bool {
        let largest = self.parts.iter().map(part_len).max().unwrap_or(0);
        largest > LARGE_PART && largest > MAX_SKEW * self.len() / self.parts.len()
    }

    /// The first list of each part, as `id` tells it, and `end`.
    pub(crate) fn bounds(&self, end: u64, id: impl Fn(u64) -> u64) -> Vec<u64> {
        let starts = (0..self.parts.len() as u64).map(|part| id(part << self.list_bits).min(end));
        starts.chain([end]).collect()
    }

    /// All entries, in pieces.
    pub(crate) fn pieces(&self) -> Vec<&[Entry]> {
        self.parts.iter().flatten().map(|(chunk, used)| &chunk[..*used]).collect()
    }

    /// Calls `body(worker, entries)` with all entries, in no order.
    pub(crate) fn for_each_mut(&mut self, pool: &Pool, body: impl Fn(usize, &mut [Entry]) + Sync) {
        pool.for_each_item(self.parts.iter_mut().collect(), |worker, part| {
            part.iter_mut().for_each(|(chunk, used)| body(worker, &mut chunk[..*used]));
        });
    }

    /// Sorts every part and hands the lists, which begin at `bounds`, to `sink`.
    pub(crate) fn assemble(
        &mut self,
        bounds: &[u64],
        order: Order,
        retain: Retain,
        sink: &mut dyn ListSink<()>,
        pool: &Pool,
        progress: &dyn Progress,
    ) -> Result<()> {
        let list_bits = bits_below(bounds.last().copied().unwrap_or(0));
        let turns = Turnstile::new(sink, 2 * pool.num_threads());
        let workers: Vec<_> = (0..pool.num_threads()).map(|_| Mutex::new((None, Vec::new()))).collect();
        let work: Vec<_> = self.parts.iter_mut().zip(bounds.windows(2)).enumerate().collect();
        pool.for_each_item(work, |worker, (index, (part, bounds))| {
            let _watch = turns.watch();
            if turns.has_failed() || turns.note(progress.check().map_err(Error::from)).is_none() {
                return;
            }
            let mut state = lock(&workers[worker]);
            let (sorter, entries) = &mut *state;
            let sorter = sorter.get_or_insert_with(|| Sorter::new(order.neighbour_bits, list_bits));
            entries.clear();
            part.iter().for_each(|(chunk, used)| entries.extend_from_slice(&chunk[..*used]));
            let mut lists = turns.spare();
            lists.collect(sorter.sort(entries), bounds[0]..bounds[1], order.duplicates);
            if retain == Retain::Merged {
                let mut places = part.iter_mut().flat_map(|(chunk, _)| chunk.iter_mut());
                lists.for_each_arc(bounds[0] as VertexId, |arc| {
                    if let Some(place) = places.next() {
                        *place = arc;
                    }
                });
                let mut left = lists.len();
                for (chunk, used) in part.iter_mut() {
                    *used = left.min(chunk.len());
                    left -= *used;
                }
            }
            progress.advance(entries.len() as u64);
            turns.submit(index, bounds[0] as VertexId, lists);
        });
        turns.finish()
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
            for part in share {
                if progress.is_cancelled() {
                    return;
                }
                for (chunk, used) in part {
                    chunk[..used].iter().for_each(|entry| spreader.push(entry.turned()));
                    arena.give_back([chunk]);
                }
            }
            *lock(&spread[index]) = Some(spreader);
        });
        progress.check()?;
        Self::new(spread.into_iter().filter_map(|s| s.into_inner().unwrap_or_else(|e| e.into_inner())).collect())
    }
}

fn part_len(part: &Vec<Chunk<'_>>) -> usize {
    part.iter().map(|(_, used)| used).sum()
}
