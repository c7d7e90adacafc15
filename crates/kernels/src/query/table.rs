//! What a search knows of the vertices that it has seen, in memory that a thread keeps from query to query.
//!
//! A query that sees a thousand vertices of millions must neither look at the others nor spend its time on
//! allocating, growing and clearing tables. So a [`Table`] is emptied by counting a stamp up, and a thread
//! keeps what it used last, unless that is large.

use std::cell::Cell;
use std::thread::LocalKey;

use base::VertexId;

/// What is kept for the next query of a thread, at most, of each kind of query.
const MOST_KEPT_BYTES: usize = 1 << 20;

/// The least slots of a table, as a power of two.
const LEAST_BITS: u32 = 4;

/// A table becomes smaller once so many queries in a row have left it nearly empty: the next one may well need it as it
/// is.
const PATIENCE: u32 = 16;

/// What a kind of query works with.
pub(super) trait Scratch: Default + 'static {
    /// The bytes that it holds.
    fn num_bytes(&self) -> usize;
}

/// Runs `body` with what the last query of this thread left in `place`.
pub(super) fn with_scratch<S: Scratch, R>(
    place: &'static LocalKey<Cell<Option<Box<S>>>>,
    body: impl FnOnce(&mut S) -> R,
) -> R {
    let mut scratch = place.take().unwrap_or_default();
    let result = body(&mut scratch);
    if scratch.num_bytes() <= MOST_KEPT_BYTES {
        place.set(Some(scratch));
    }
    result
}

/// A hash table by vertex, with linear probing.
#[derive(Debug)]
pub(super) struct Table<V> {
    slots: Vec<Slot<V>>,
    /// The slots in use are two to this power; there may be more.
    bits: u32,
    len: usize,
    /// How many of the last queries, in a row, left it nearly empty.
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

/// Looks at a table that take no branch.
#[derive(Clone, Copy)]
pub(super) struct Glance<'a, V> {
    slots: &'a [Slot<V>],
    bits: u32,
    stamp: u32,
}

impl<'a, V> Glance<'a, V> {
    /// The value at the place where a vertex is looked for first, and whether it is that of the vertex, which may also
    /// be at another place.
    #[inline(always)]
    pub(super) fn at(&self, vertex: VertexId) -> (&'a V, bool) {
        let slot = &self.slots[first_place(vertex, self.bits)];
        (&slot.value, (slot.stamp == self.stamp) & (slot.vertex == vertex))
    }
}

/// Where a vertex is looked for first.
#[inline(always)]
fn first_place(vertex: VertexId, bits: u32) -> usize {
    // One multiplication, whose high bits are good. Ids are not chosen by an adversary, who could do no more than
    // slow down his own question.
    (u64::from(vertex).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)) as usize
}

impl<V> Default for Table<V> {
    fn default() -> Self {
        Self { slots: Vec::new(), bits: 0, len: 0, num_small: 0, stamp: 0 }
    }
}

impl<V: Copy + Default> Table<V> {
    /// Room for a vertex at its worst: slots are at least three eighths full, and twice as many are made while they
    /// are still there.
    pub(super) const MOST_BYTES: usize = 4 * size_of::<Slot<V>>();

    /// Empties the table.
    pub(super) fn clear(&mut self) {
        // A table that is nearly empty spreads what it holds over more of the cache than need be.
        self.num_small = if self.len < 1 << self.bits >> 3 { self.num_small.saturating_add(1) } else { 0 };
        if self.bits > LEAST_BITS && self.num_small >= PATIENCE {
            self.bits -= 1;
        }
        self.len = 0;
        self.stamp = self.stamp.wrapping_add(1);
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

    /// The value of a vertex, which is `new` unless there is one; and whether it is new.
    #[inline]
    pub(super) fn entry(&mut self, vertex: VertexId, new: V) -> (&mut V, bool) {
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

    /// To look at vertices of a table that is not empty.
    #[inline(always)]
    pub(super) fn glance(&self) -> Glance<'_, V> {
        Glance { slots: &self.slots, bits: self.bits, stamp: self.stamp }
    }

    pub(super) fn get(&self, vertex: VertexId) -> Option<V> {
        if self.len == 0 {
            return None;
        }
        let (place, is_new) = self.find(vertex);
        (!is_new).then(|| self.slots[place].value)
    }

    /// The vertices, in no order that means anything.
    pub(super) fn vertices(&self) -> impl Iterator<Item = VertexId> + '_ {
        self.filled().map(|slot| slot.vertex)
    }

    /// Their values, in the same order.
    pub(super) fn values(&self) -> impl Iterator<Item = V> + '_ {
        self.filled().map(|slot| slot.value)
    }

    fn filled(&self) -> impl Iterator<Item = &Slot<V>> {
        self.slots.iter().take(1 << self.bits).filter(|slot| slot.stamp == self.stamp)
    }

    /// As many vertices as there may be.
    #[inline(always)]
    fn limit(&self) -> usize {
        if self.slots.is_empty() { 0 } else { (1 << self.bits) / 4 * 3 }
    }

    /// Where a vertex is, or where it would be, and which of the two.
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
    fn tables_hold_what_they_were_given_since_they_were_emptied() {
        let mut table = Table::<u32>::default();
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
    fn a_table_shrinks_once_many_small_queries_followed_each_other() {
        let mut table = Table::<()>::default();
        let mut fill = |num_vertices: u32| {
            table.clear();
            (0..num_vertices).for_each(|v| {
                table.entry(v, ());
            });
            table.bits
        };
        let bits = fill(1000);
        // A large one begins anew.
        for _ in 0..2 {
            assert!((0..PATIENCE).all(|_| fill(3) == bits));
            assert_eq!(fill(1000), bits);
        }
        assert!((0..PATIENCE).all(|_| fill(3) == bits));
        assert_eq!(fill(3), bits - 1);
    }

    #[test]
    fn stamps_begin_anew() {
        let mut table = Table::<()>::default();
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
    fn what_a_query_leaves_is_there_for_the_next_unless_it_is_large() {
        #[derive(Default)]
        struct Left(usize);
        impl Scratch for Left {
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
