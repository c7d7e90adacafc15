//! The arcs of a batch, as the container takes them, in the order of their updates.

use std::ops::Range;

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_snapshots::{ArcData, GraphOptions};
use parking_lot::Mutex;

use super::delta::{ArcDataWidth, Bits, for_widths};

/// An arc to insert with this data, or to delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArcUpdate {
    pub(crate) list: VertexId,
    pub(crate) neighbor: VertexId,
    pub(crate) addition: Option<ArcData>,
}

/// Arcs to insert or delete, with data of one width. Its memory is reused from batch to batch.
#[derive(Debug)]
pub(crate) enum ArcBatch {
    None(Vec<anden_memtable::EntryUpdate<()>>),
    Narrow(Vec<anden_memtable::EntryUpdate<u32>>),
    Wide(Vec<anden_memtable::EntryUpdate<u64>>),
    Full(Vec<anden_memtable::EntryUpdate<[u64; 2]>>),
}

impl ArcBatch {
    /// An empty batch.
    pub(crate) fn new(options: &GraphOptions) -> Self {
        match ArcDataWidth::of(options) {
            ArcDataWidth::None => Self::None(Vec::new()),
            ArcDataWidth::Narrow => Self::Narrow(Vec::new()),
            ArcDataWidth::Wide => Self::Wide(Vec::new()),
            ArcDataWidth::Full => Self::Full(Vec::new()),
        }
    }

    /// Whether the batch has no arcs.
    pub(crate) fn is_empty(&self) -> bool {
        for_widths!(Self, self, arcs => arcs.is_empty())
    }

    /// The number of arcs.
    pub(crate) fn len(&self) -> usize {
        for_widths!(Self, self, arcs => arcs.len())
    }

    /// Calls `body` with all arcs, in order.
    pub(crate) fn for_each(&self, options: &GraphOptions, mut body: impl FnMut(ArcUpdate)) {
        let has_rows = options.has_rows();
        for_widths!(Self, self, arcs => for &anden_memtable::EntryUpdate { source, target, addition } in arcs {
            let addition = addition.map(|value| Bits::into_data(value, has_rows));
            body(ArcUpdate { list: source, neighbor: target, addition });
        });
    }

    /// Removes all arcs.
    pub(crate) fn clear(&mut self) {
        for_widths!(Self, self, arcs => arcs.clear());
    }

    /// Appends an arc.
    pub(crate) fn push(&mut self, update: ArcUpdate) {
        for_widths!(Self, self, arcs => arcs.push(typed(update)));
    }

    /// Appends the arc of each item.
    pub(crate) fn extend<T: Sync>(&mut self, items: &[T], pool: &Pool, arc: impl Fn(&T) -> ArcUpdate + Sync) {
        self.collect(pool, items.len(), 1, |places, push| items[places].iter().for_each(|item| push(arc(item))));
    }

    /// Calls `body` with the ends of the arcs to insert, in order.
    pub(crate) fn for_each_addition(&self, mut body: impl FnMut(VertexId, VertexId)) {
        for_widths!(Self, self, arcs => {
            let additions = arcs.iter().filter(|arc| arc.addition.is_some());
            additions.for_each(|arc| body(arc.source, arc.target));
        });
    }

    /// Appends the arcs that `body(updates, push)` makes of chunks of `num_updates` updates, at most `arcs_each` for
    /// each update. Returns the results of the calls, in the order of the chunks.
    pub(crate) fn collect<R: Send>(
        &mut self,
        pool: &Pool,
        num_updates: usize,
        arcs_each: usize,
        body: impl Fn(Range<usize>, &mut dyn FnMut(ArcUpdate)) -> R + Sync,
    ) -> Vec<R> {
        for_widths!(Self, self, arcs => collect(arcs, pool, num_updates, arcs_each, body))
    }
}

fn typed<W: Bits>(update: ArcUpdate) -> anden_memtable::EntryUpdate<W> {
    anden_memtable::EntryUpdate { source: update.list, target: update.neighbor, addition: update.addition.map(W::of) }
}

/// Updates of a chunk.
const GRAIN: usize = 1 << 14;

fn collect<W: Bits, R: Send>(
    arcs: &mut Vec<anden_memtable::EntryUpdate<W>>,
    pool: &Pool,
    num_updates: usize,
    arcs_each: usize,
    body: impl Fn(Range<usize>, &mut dyn FnMut(ArcUpdate)) -> R + Sync,
) -> Vec<R> {
    let first = arcs.len();
    let room = GRAIN * arcs_each;
    // Each chunk has room for the most arcs, so workers write to parts of their own without a lock.
    arcs.resize(first + num_updates * arcs_each, typed(ArcUpdate { list: 0, neighbor: 0, addition: None }));
    let results = Mutex::new(Vec::with_capacity(num_updates.div_ceil(GRAIN)));
    pool.for_each_part_mut(&mut arcs[first..], room, |start, part| {
        // Chunks are as large as their room, so the start tells the updates of a chunk.
        let updates = start / arcs_each..(start + part.len()) / arcs_each;
        let mut len = 0;
        let result = body(updates, &mut |update| {
            part[len] = typed(update);
            len += 1;
        });
        results.lock().push((start, len, result));
    });
    let mut results = results.into_inner();
    // Workers finish in any order.
    results.sort_unstable_by_key(|&(start, ..)| start);
    // Close the gaps behind chunks that have fewer arcs than room.
    let mut end = first;
    for &(start, len, _) in &results {
        let start = first + start;
        if end < start {
            arcs.copy_within(start..start + len, end);
        }
        end += len;
    }
    arcs.truncate(end);
    results.into_iter().map(|(_, _, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use anden_graph::WeightType;

    use super::*;

    #[test]
    fn arcs_come_in_the_order_of_their_updates() {
        let pool = Pool::new(3).unwrap();
        let num_updates = 5 * GRAIN + 17;
        let options = GraphOptions { weight_type: Some(WeightType::U32), ..GraphOptions::default() };
        let mut batch = ArcBatch::new(&options);
        for _ in 0..2 {
            batch.clear();
            batch.push(ArcUpdate { list: 7, neighbor: 8, addition: None });
            let counts = batch.collect(&pool, num_updates, 2, |updates, push| {
                let first = updates.start;
                for update in updates {
                    let arc = ArcUpdate {
                        list: update as u32,
                        neighbor: 1,
                        addition: Some(ArcData::of_weight(update as u64)),
                    };
                    (0..update % 3).for_each(|_| push(arc));
                }
                first
            });
            assert_eq!(counts, (0..6).map(|piece| piece * GRAIN).collect::<Vec<_>>());
            let mut all = Vec::new();
            batch.for_each_addition(|list, _| all.push(list));
            let expected = (0..num_updates as u32).flat_map(|update| (0..update % 3).map(move |_| update));
            assert!(all.into_iter().eq(expected));
        }
    }
}
