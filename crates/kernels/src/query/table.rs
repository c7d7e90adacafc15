//! A hash table of the vertices that a search has visited, in memory that a thread keeps for its next query.
//!
//! A query that visits a thousand of millions of vertices must not pay for the others, nor for allocating, growing and
//! clearing tables. So incrementing a stamp empties a [`VertexHashTable`], and a thread keeps its last table unless
//! that is large.

use std::cell::Cell;
use std::thread::LocalKey;

use anden_base::VertexId;

/// The most bytes that a thread keeps, for each kind of query.
const MOST_KEPT_BYTES: usize = 1 << 20;

/// The smallest number of slots is two to this power.
const LEAST_BITS: u32 = 4;

/// A table shrinks after this many nearly empty queries in a row. Shrinking earlier would make the next large query
/// grow it again.
const SMALL_USES: u32 = 16;

/// The memory that a kind of query works with.
pub(super) trait QueryScratch: Default + 'static {
    /// The bytes that it holds.
    fn num_bytes(&self) -> usize;
}

/// Runs `body` with the scratch memory that the last query of this thread left in `place`.
pub(super) fn with_scratch<S: QueryScratch, R>(
    place: &'static LocalKey<Cell<Option<Box<S>>>>,
    body: impl FnOnce(&mut S) -> R,
) -> R {
    // Taken out: a nested query on this thread gets memory of its own.
    let mut scratch = place.take().unwrap_or_default();
    let result = body(&mut scratch);
    if scratch.num_bytes() <= MOST_KEPT_BYTES {
        place.set(Some(scratch));
    }
    result
}

/// A hash table keyed by vertex, with linear probing.
#[derive(Debug)]
pub(super) struct VertexHashTable<V> {
    slots: Vec<Slot<V>>,
    /// Two to this power slots are in use; more may be allocated.
    bits: u32,
    len: usize,
    /// The number of last queries in a row that left the table nearly empty.
    num_small: u32,
    /// Slots with another stamp are free.
    stamp: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot<V> {
    stamp: u32,
    vertex: VertexId,
    value: V,
}

/// Branch-free lookups in a table.
#[derive(Clone, Copy)]
pub(super) struct Glance<'a, V> {
    slots: &'a [Slot<V>],
    bits: u32,
    stamp: u32,
}

impl<'a, V> Glance<'a, V> {
    /// The value in the first slot probed for a vertex, and whether that slot holds the vertex. The vertex may also be
    /// in a later slot.
    #[inline(always)]
    pub(super) fn at(&self, vertex: VertexId) -> (&'a V, bool) {
        let slot = &self.slots[first_place(vertex, self.bits)];
        (&slot.value, (slot.stamp == self.stamp) & (slot.vertex == vertex))
    }
}

/// The first slot to probe for a vertex.
#[inline(always)]
fn first_place(vertex: VertexId, bits: u32) -> usize {
    // One multiplication, whose high bits are well mixed. No defense against chosen ids: their author could only slow
    // down his own query.
    (u64::from(vertex).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)) as usize
}

impl<V> Default for VertexHashTable<V> {
    fn default() -> Self {
        Self { slots: Vec::new(), bits: 0, len: 0, num_small: 0, stamp: 0 }
    }
}

impl<V: Copy + Default> VertexHashTable<V> {
    /// The most bytes for a vertex: after growth the table is three eighths full, and the old half-size table is still
    /// alive.
    pub(super) const MOST_BYTES: usize = 4 * size_of::<Slot<V>>();

    /// Empties the table. Cost: constant, except when the stamp wraps.
    pub(super) fn clear(&mut self) {
        // A table that is too large spreads its few entries over more cache lines.
        self.num_small = if self.len < 1 << self.bits >> 3 { self.num_small.saturating_add(1) } else { 0 };
        if self.bits > LEAST_BITS && self.num_small >= SMALL_USES {
            self.bits -= 1;
        }
        self.len = 0;
        self.stamp = self.stamp.wrapping_add(1);
        // The stamp wrapped: slots of old queries could look filled.
        if self.stamp == 0 {
            self.slots.fill(Slot::default());
            self.stamp = 1;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn num_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot<V>>()
    }

    /// The value of a vertex, inserted as `new` if absent, and whether it is new.
    #[inline]
    pub(super) fn entry(&mut self, vertex: VertexId, new: V) -> (&mut V, bool) {
        // Grown first: the search for a slot ends at a free one.
        if self.len >= self.limit() {
            self.grow();
        }
        let (place, is_new) = self.find(vertex);
        let slot = &mut self.slots[place];
        if is_new {
            *slot = Slot { stamp: self.stamp, vertex, value: new };
            self.len += 1;
        }
        (&mut slot.value, is_new)
    }

    /// A view for branch-free lookups. The table must not be empty.
    #[inline(always)]
    pub(super) fn glance(&self) -> Glance<'_, V> {
        Glance { slots: &self.slots, bits: self.bits, stamp: self.stamp }
    }

    pub(super) fn get(&self, vertex: VertexId) -> Option<V> {
        // An empty table may have no slots.
        if self.len == 0 {
            return None;
        }
        let (place, is_new) = self.find(vertex);
        (!is_new).then(|| self.slots[place].value)
    }

    /// The vertices, in arbitrary order.
    pub(super) fn vertices(&self) -> impl Iterator<Item = VertexId> + '_ {
        self.filled().map(|slot| slot.vertex)
    }

    /// The values, in the order of [`vertices`](Self::vertices).
    pub(super) fn values(&self) -> impl Iterator<Item = V> + '_ {
        self.filled().map(|slot| slot.value)
    }

    fn filled(&self) -> impl Iterator<Item = &Slot<V>> {
        self.slots.iter().take(1 << self.bits).filter(|slot| slot.stamp == self.stamp)
    }

    /// The most vertices before the table grows.
    #[inline(always)]
    fn limit(&self) -> usize {
        if self.slots.is_empty() { 0 } else { (1 << self.bits) / 4 * 3 }
    }

    /// The slot of a vertex, or the free slot for it, and whether the slot is free.
    #[inline(always)]
    fn find(&self, vertex: VertexId) -> (usize, bool) {
        let mut place = first_place(vertex, self.bits);
        loop {
            let slot = &self.slots[place];
            if slot.stamp != self.stamp {
                return (place, true);
            }
            if slot.vertex == vertex {
                return (place, false);
            }
            place = (place + 1) & ((1 << self.bits) - 1);
        }
    }

    #[cold]
    fn grow(&mut self) {
        let bits = if self.slots.is_empty() { LEAST_BITS } else { self.bits + 1 };
        let old = std::mem::replace(&mut self.slots, vec![Slot::default(); 1 << bits]);
        let num_old = if self.bits == 0 { 0 } else { 1 << self.bits };
        // Stamp 0 would make fresh slots look filled.
        (self.bits, self.stamp) = (bits, self.stamp.max(1));
        for slot in old.into_iter().take(num_old).filter(|slot| slot.stamp == self.stamp) {
            let place = self.find(slot.vertex).0;
            self.slots[place] = slot;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_holds_entries_since_last_clear() {
        let mut table = VertexHashTable::<u32>::default();
        assert_eq!(table.get(0), None);
        for num_vertices in [1, 5, 3000, 2, 0, 12, 100_000, 1, 1, 1, 40] {
            table.clear();
            for v in 0..num_vertices {
                let vertex = v * 7 + num_vertices;
                assert_eq!(table.get(vertex), None, "{vertex} of {num_vertices}");
                assert_eq!(table.entry(vertex, v), (&mut { v }, true));
                assert_eq!(table.entry(vertex, 0), (&mut { v }, false));
            }
            *table.entry(u32::MAX, 1).0 += 1;
            assert_eq!((table.get(u32::MAX), table.get(num_vertices + 1)), (Some(2), None));
            let mut all: Vec<_> = table.vertices().collect();
            all.sort_unstable();
            assert!(all.into_iter().eq((0..num_vertices).map(|v| v * 7 + num_vertices).chain([u32::MAX])));
            assert_eq!(table.len(), num_vertices as usize + 1);
        }
    }

    #[test]
    fn table_shrinks_after_many_small_queries() {
        let mut table = VertexHashTable::<()>::default();
        let mut fill = |num_vertices: u32| {
            table.clear();
            (0..num_vertices).for_each(|v| {
                table.entry(v, ());
            });
            table.bits
        };
        let bits = fill(1000);
        // A large query resets the count.
        for _ in 0..2 {
            assert!((0..SMALL_USES).all(|_| fill(3) == bits));
            assert_eq!(fill(1000), bits);
        }
        assert!((0..SMALL_USES).all(|_| fill(3) == bits));
        assert_eq!(fill(3), bits - 1);
    }

    #[test]
    fn stamps_begin_anew() {
        let mut table = VertexHashTable::<()>::default();
        table.clear();
        table.entry(3, ());
        table.stamp = u32::MAX - 1;
        for _ in 0..4 {
            table.clear();
            assert_eq!(table.get(3), None);
            table.entry(3, ());
        }
    }

    #[test]
    fn small_scratch_is_kept_for_the_next_query() {
        #[derive(Default)]
        struct Left(usize);
        impl QueryScratch for Left {
            fn num_bytes(&self) -> usize {
                self.0
            }
        }
        thread_local!(static PLACE: Cell<Option<Box<Left>>> = const { Cell::new(None) });
        let leave = |num_bytes| with_scratch(&PLACE, |left: &mut Left| std::mem::replace(&mut left.0, num_bytes));
        assert_eq!(
            (leave(7), leave(MOST_KEPT_BYTES), leave(MOST_KEPT_BYTES + 1), leave(2)),
            (0, 7, MOST_KEPT_BYTES, 0)
        );
    }
}
