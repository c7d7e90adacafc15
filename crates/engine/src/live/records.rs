//! Append-only lists that are read without a lock.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Slots of the first chunk; each later chunk has twice as many as the one before.
const FIRST_CHUNK: usize = 1 << 10;
/// This many chunks hold more than memory does.
const NUM_CHUNKS: usize = 40;

/// Slots by index. A chunk is allocated on the first access to it, and slots never move.
#[derive(Debug)]
pub(crate) struct Chunks<T> {
    chunks: [OnceLock<Box<[T]>>; NUM_CHUNKS],
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self { chunks: [const { OnceLock::new() }; NUM_CHUNKS] }
    }
}

impl<T> Chunks<T> {
    /// The slot at an index, if its chunk is allocated.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        let (chunk, place) = place_of(index);
        self.chunks.get(chunk)?.get().map(|slots| &slots[place])
    }
}

impl<T: Default> Chunks<T> {
    /// The slot at an index, allocated on demand.
    #[inline]
    pub(crate) fn get_or_default(&self, index: usize) -> &T {
        let (chunk, place) = place_of(index);
        // Concurrent workers may need the chunk, and one of them allocates it.
        let slots = self.chunks[chunk].get_or_init(|| (0..FIRST_CHUNK << chunk).map(|_| T::default()).collect());
        &slots[place]
    }
}

/// Records in the order in which they were added. One writer at a time.
#[derive(Debug)]
pub(crate) struct Records<T> {
    slots: Chunks<OnceLock<T>>,
    len: AtomicUsize,
}

impl<T> Default for Records<T> {
    fn default() -> Self {
        Self { slots: Chunks::default(), len: AtomicUsize::new(0) }
    }
}

impl<T> Records<T> {
    /// Adds a record and returns its index.
    pub(crate) fn push(&self, record: T) -> usize {
        let index = self.len();
        let is_new = self.slots.get_or_default(index).set(record).is_ok();
        debug_assert!(is_new, "there is one writer");
        // Stored after the slot: below `len`, a reader finds every record.
        self.len.store(index + 1, Ordering::Release);
        index
    }

    /// The record at an index.
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        self.slots.get(index)?.get()
    }

    /// The number of records.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }
}

/// The chunk of a record and its place in the chunk.
fn place_of(index: usize) -> (usize, usize) {
    // The chunks before chunk `c` have `FIRST_CHUNK * (2^c - 1)` slots together.
    let chunk = ((index / FIRST_CHUNK) + 1).ilog2() as usize;
    (chunk, index - FIRST_CHUNK * ((1 << chunk) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_stay_where_they_came() {
        let records = Records::default();
        for index in 0..20_000 {
            assert_eq!(records.get(index), None);
            assert_eq!(records.push(index.to_string()), index);
        }
        assert!((0..20_000).all(|index| records.get(index) == Some(&index.to_string())));
        assert_eq!((records.len(), records.get(20_000), records.get(1 << 40)), (20_000, None, None));
    }

    #[test]
    fn chunks_follow_each_other() {
        let mut next = (0, 0);
        for index in 0..20 * FIRST_CHUNK {
            assert_eq!(place_of(index), next);
            next = if next.1 + 1 == FIRST_CHUNK << next.0 { (next.0 + 1, 0) } else { (next.0, next.1 + 1) };
        }
    }
}
