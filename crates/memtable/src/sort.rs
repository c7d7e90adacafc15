//! Sorts a batch by (source, target). The sort is stable, so that the last of several changes of an edge can win.
//!
//! A large batch is first cut into buckets by the highest bits of the source. A bucket fits in a cache and shares no
//! lowest directory with another. The worker that applies a bucket sorts it by its digits, lowest first, and applies
//! it from the cache. A bucket with very many changes, perhaps of one list, is sorted by all workers beforehand.

use std::ops::Range;

use anden_base::parallel::Pool;

use crate::change::{Change, ChangeSource, num_parts};
use crate::node::{FANOUT_BITS, PAGE_BITS};

/// Number of changes per bucket, within the limits for the number of buckets.
const BUCKET_CHANGES: usize = 1024;
const MAX_BUCKET_BITS: u32 = 10;
/// A small batch still has several buckets for each of a few workers.
const MIN_BUCKET_BITS: u32 = 3;
/// One thread cuts up to this many changes: waking others takes longer.
pub(crate) const SERIAL_CHANGES: usize = 1 << 16;
/// The calling thread applies batches up to this size alone: waking workers takes longer.
pub(crate) const SERIAL_BATCH: usize = 500;
/// Maximum width of a digit in bits.
const WIDEST: u32 = 11;
/// Up to this many changes are sorted by comparison.
const COMPARED: usize = 96;

/// Scratch space for sorting batches of one change type. The caller keeps it from batch to batch.
#[derive(Debug)]
pub struct Space<C> {
    pub(crate) sort: SortSpace<C>,
}

impl<C> Default for Space<C> {
    fn default() -> Self {
        Self { sort: SortSpace::default() }
    }
}

/// Scratch space for a batch, kept for the next one.
#[derive(Debug)]
pub(crate) struct SortSpace<C> {
    front: Vec<C>,
    back: Vec<C>,
}

impl<C> Default for SortSpace<C> {
    fn default() -> Self {
        Self { front: Vec::new(), back: Vec::new() }
    }
}

/// The changes of a range of sources, to be sorted.
#[derive(Debug)]
pub(crate) struct Bucket<'a, C> {
    front: &'a mut [C],
    back: &'a mut [C],
    key_bits: KeyBits,
    /// Whether all workers have sorted it, because it has too many changes for one.
    is_sorted: bool,
}

/// Widths of the lowest bits of source and target, in which changes may differ.
#[derive(Clone, Copy, Debug)]
struct KeyBits {
    source: u32,
    target: u32,
}

impl KeyBits {
    fn num(self) -> u32 {
        self.source + self.target
    }

    /// These bits as one number, which orders changes with equal higher bits.
    #[inline(always)]
    fn of<W, C: Change<W>>(self, change: &C) -> u64 {
        let source = u64::from(change.source()) & ((1 << self.source) - 1);
        source << self.target | u64::from(change.target())
    }

    /// Number of digits of at most `widest` bits, and the bits of each.
    fn digits(self, widest: u32) -> (u32, u32) {
        let num_digits = self.num().div_ceil(widest).max(1);
        (num_digits, self.num().div_ceil(num_digits).max(1))
    }
}

/// Number of bits in ids below `bound`.
fn id_bits(bound: usize) -> u32 {
    usize::BITS - bound.saturating_sub(1).leading_zeros()
}

impl<C: Copy + Send + Sync> SortSpace<C> {
    /// Cuts changes of vertices below `bound` into buckets, ascending by source. The pages of a lowest directory are
    /// all in one bucket.
    pub(crate) fn buckets<W>(
        &mut self,
        pool: &Pool,
        changes: &(impl ChangeSource<C> + ?Sized),
        bound: usize,
    ) -> Vec<Bucket<'_, C>>
    where
        C: Change<W>,
    {
        let Some(some) = changes.first() else { return Vec::new() };
        let bits = id_bits(bound);
        let wanted = (changes.len() / BUCKET_CHANGES).next_power_of_two().ilog2();
        let wanted = wanted.clamp(MIN_BUCKET_BITS, MAX_BUCKET_BITS);
        // No two workers then change one page, so they need no locks.
        let shift = bits.saturating_sub(wanted).max(PAGE_BITS + FANOUT_BITS);
        let num_buckets = ((bound.max(1) - 1) >> shift) + 1;
        // Never shortened: growing again would fill the vector again.
        self.front.resize(changes.len().max(self.front.len()), some);
        self.back.resize(changes.len().max(self.back.len()), some);
        let (front, back) = (&mut self.front[..changes.len()], &mut self.back[..changes.len()]);
        let bucket_of = |change: &C| (change.source() >> shift) as usize;
        let lens = partition(pool, changes, front, num_buckets, bucket_of);
        let (mut front, mut back) = (front, back);
        let mut buckets = Vec::with_capacity(num_buckets);
        for len in lens {
            let (own_front, rest_front) = front.split_at_mut(len);
            let (own_back, rest_back) = back.split_at_mut(len);
            (front, back) = (rest_front, rest_back);
            if len > 0 {
                let key_bits = KeyBits { source: shift.min(bits), target: bits };
                let bucket = Bucket { front: own_front, back: own_back, key_bits, is_sorted: false };
                // A bucket with most of the changes would keep one worker busy while the others wait.
                buckets.push(if num_parts(pool, len) == 1 { bucket } else { bucket.sorted_by_all(pool) });
            }
        }
        buckets
    }

    /// Sorts a small batch as a whole.
    pub(crate) fn sorted<W>(&mut self, changes: &(impl ChangeSource<C> + ?Sized), bound: usize) -> &[C]
    where
        C: Change<W>,
    {
        let Some(some) = changes.first() else { return &[] };
        self.front.clear();
        self.front.reserve(changes.len());
        changes.for_each(0..changes.len(), |change| self.front.push(change));
        // Sorting by comparison needs no second vector.
        if changes.len() > COMPARED && self.back.len() < changes.len() {
            self.back.resize(changes.len(), some);
        }
        let back_len = if changes.len() > COMPARED { changes.len() } else { 0 };
        let bits = id_bits(bound);
        let is_in_back =
            sort_by_digits(&mut self.front, &mut self.back[..back_len], KeyBits { source: bits, target: bits });
        if is_in_back { &self.back[..back_len] } else { &self.front }
    }
}

/// Moves each change to its bucket, in their order. Returns the lengths of the buckets.
fn partition<C: Copy + Send + Sync>(
    pool: &Pool,
    changes: &(impl ChangeSource<C> + ?Sized),
    to: &mut [C],
    num_buckets: usize,
    bucket_of: impl Fn(&C) -> usize + Sync,
) -> Vec<usize> {
    let num_parts = if changes.len() <= SERIAL_CHANGES { 1 } else { pool.num_threads() };
    let part_len = changes.len().div_ceil(num_parts);
    // Each part counts its changes per bucket, and then writes to ranges of its own: no locks, and a stable order.
    let counts = pool.map_chunks(0..changes.len(), part_len, |_, chunk| {
        let mut counts = vec![0_usize; num_buckets];
        changes.for_each(chunk, |change| counts[bucket_of(&change)] += 1);
        counts
    });
    let mut places: Vec<Vec<&mut [C]>> = counts.iter().map(|_| Vec::with_capacity(num_buckets)).collect();
    let mut rest = to;
    let mut lens = vec![0; num_buckets];
    // Bucket by bucket and part by part: ranges in this order keep the sort stable.
    for bucket in 0..num_buckets {
        for (counts, places) in counts.iter().zip(&mut places) {
            let (own, others) = rest.split_at_mut(counts[bucket]);
            rest = others;
            lens[bucket] += own.len();
            places.push(own);
        }
    }
    let starts = (0..changes.len()).step_by(part_len);
    let parts: Vec<_> = starts.map(|start| start..changes.len().min(start + part_len)).zip(places).collect();
    let scatter = |_, (part, mut places): (Range<usize>, Vec<&mut [C]>)| {
        let mut next = vec![0_u32; num_buckets];
        changes.for_each(part, |change| {
            let bucket = bucket_of(&change);
            places[bucket][next[bucket] as usize] = change;
            next[bucket] += 1;
        });
    };
    if num_parts == 1 {
        parts.into_iter().for_each(|part| scatter(0, part));
    } else {
        pool.for_each_item(parts, scatter);
    }
    lens
}

impl<'a, C: Copy + Send + Sync> Bucket<'a, C> {
    /// Sorts a bucket with all workers, because it has too many changes for one.
    fn sorted_by_all<W>(self, pool: &Pool) -> Self
    where
        C: Change<W>,
    {
        /// Number of changes that a worker examines at a time.
        const GRAIN: usize = 1 << 14;
        let Self { mut front, mut back, key_bits, .. } = self;
        let some = key_bits.of(&front[0]);
        let differing =
            |_, chunk: Range<usize>| front[chunk].iter().fold(0, |bits, change| bits | (key_bits.of(change) ^ some));
        let differing = pool.map_chunks(0..front.len(), GRAIN, differing).into_iter().fold(0, |a, b| a | b);
        let (num_digits, width) = key_bits.digits(WIDEST);
        for shift in (0..num_digits).map(|digit| digit * width) {
            let mask = (1 << width) - 1;
            // Changes that all have one digit need no pass.
            if differing >> shift & mask != 0 {
                let digit = |change: &C| (key_bits.of(change) >> shift & mask) as usize;
                partition(pool, &*front, back, 1 << width, digit);
                (front, back) = (back, front);
            }
        }
        Self { front, back, is_sorted: true, ..self }
    }

    /// Returns the sorted changes.
    pub(crate) fn sort<W>(self) -> &'a [C]
    where
        C: Change<W>,
    {
        let is_in_back = !self.is_sorted && sort_by_digits(self.front, self.back, self.key_bits);
        if is_in_back { self.back } else { self.front }
    }
}

/// Sorts changes that differ in these bits only. Returns whether the result is in `other`.
fn sort_by_digits<W, C: Change<W>>(changes: &mut [C], other: &mut [C], key_bits: KeyBits) -> bool {
    if changes.len() <= COMPARED {
        // The sort by comparison is stable, as the passes are.
        changes.sort_by_key(Change::key);
        return false;
    }
    // Few changes do not pay for long tables of counts.
    let (num_passes, width) = key_bits.digits(if changes.len() < 2048 { 8 } else { WIDEST });
    let num_digits = 1_usize << width;
    // One scan counts the digits of all passes.
    let mut counts = vec![0_u32; num_digits * num_passes as usize];
    for change in changes.iter() {
        let key = key_bits.of(change);
        for pass in 0..num_passes {
            counts[(pass as usize) << width | (key >> (pass * width)) as usize & (num_digits - 1)] += 1;
        }
    }
    let some = key_bits.of(&changes[0]);
    let (mut from, mut to) = (changes, other);
    let mut is_in_other = false;
    for (pass, counts) in counts.chunks_exact_mut(num_digits).enumerate() {
        let shift = pass as u32 * width;
        let digit = |key: u64| (key >> shift) as usize & (num_digits - 1);
        // All changes have one digit: no pass is needed.
        if counts[digit(some)] as usize == from.len() {
            continue;
        }
        let mut start = 0;
        for count in counts.iter_mut() {
            (*count, start) = (start, start + *count);
        }
        for change in from.iter() {
            let place = &mut counts[digit(key_bits.of(change))];
            to[*place as usize] = *change;
            *place += 1;
        }
        (from, to) = (to, from);
        is_in_other = !is_in_other;
    }
    is_in_other
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EntryUpdate;
    use anden_testkit::Random;

    #[test]
    fn batches_come_out_sorted_and_stable() {
        let seed = 0x5047;
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let mut space = SortSpace::default();
        for threads in [1, 3] {
            let pool = Pool::new(threads).unwrap();
            for (len, bound) in [(0, 10), (1, 1), (90, 50), (700, 30), (5000, 17), (9000, 1 << 20), (200_000, 70_000)] {
                // Nearly half of the sources are equal, so that one bucket is too long for one worker.
                let changes: Vec<EntryUpdate<u32>> = (0..len)
                    .map(|i| {
                        let source = random.below(bound) * random.below(2);
                        EntryUpdate { source, target: random.below(bound), addition: Some(i) }
                    })
                    .collect();
                let mut expected = changes.clone();
                expected.sort_by_key(Change::<u32>::key);
                assert_eq!(space.sorted(&changes[..], bound as usize), expected, "{len} below {bound}");
                let buckets = space.buckets::<u32>(&pool, &changes[..], bound as usize);
                let sorted: Vec<Vec<_>> = buckets.into_iter().map(|bucket| bucket.sort().to_vec()).collect();
                let directory = |change: &EntryUpdate<u32>| change.source >> (PAGE_BITS + FANOUT_BITS);
                assert!(sorted.windows(2).all(|pair| directory(&pair[0][pair[0].len() - 1]) < directory(&pair[1][0])));
                assert_eq!(sorted.concat(), expected, "{len} below {bound}, {threads} threads");
            }
        }
    }
}
