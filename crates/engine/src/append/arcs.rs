//! Entries of lists that are asked for, in order.

use base::parallel::Pool;
use base::{NO_VERTEX, VertexId};
use graph::formats::InputPath;
use graph::{Weight, WeightType};
use lama::{ArcData, ChangedArc, GraphOptions};

use super::requests::Block;
use crate::Result;
use crate::load::{Duplicates, Expand, KeyedArc, Payload, too_large_a_sum};

/// Entries of a smaller share are sorted by one worker.
const MIN_SHARE: usize = 16 << 10;

/// The entries that the edges of `blocks`, whose keys are ids, make; in input order.
pub(crate) fn added(blocks: Vec<Block>, expand: Expand) -> Vec<ChangedArc> {
    let num_edges: usize = blocks.iter().map(|block| block.edges.len()).sum();
    let mut arcs = Vec::with_capacity(num_edges * expand.factor());
    for block in blocks {
        for (i, &(source, target)) in block.edges.iter().enumerate() {
            let row = block.first_row.map_or(0, |first| first + i as u64);
            let data = ArcData { row, weight: block.weights.get(i).copied().unwrap_or(0) };
            expand.entries(KeyedArc::new(source, target, ()), |entry| {
                arcs.push(ChangedArc { list: entry.list(), neighbour: entry.neighbour(), data });
            });
        }
    }
    arcs
}

/// Entries that are to go.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct RemovedEntries {
    /// Lists and neighbours, in input order.
    pub(crate) entries: Vec<(VertexId, VertexId)>,
    /// Edges of which an end has never been a vertex.
    pub(crate) num_unknown: u64,
}

/// The entries that the edges of `blocks`, whose keys are ids, have made.
pub(crate) fn removed(blocks: Vec<Block>, expand: Expand) -> RemovedEntries {
    let mut removed = RemovedEntries::default();
    for (source, target) in blocks.into_iter().flat_map(|block| block.edges) {
        if source == NO_VERTEX || target == NO_VERTEX {
            removed.num_unknown += 1;
        } else {
            expand.entries(KeyedArc::new(source, target, ()), |entry| {
                removed.entries.push((entry.list(), entry.neighbour()));
            });
        }
    }
    removed
}

/// Sorts entries that come in input order, and merges parallel ones as `duplicates` says; those that it keeps ascend by
/// their rows or the bits of their weights.
///
/// # Errors
/// A sum of weights is beyond their type.
pub(crate) fn sort_arcs(
    mut arcs: Vec<ChangedArc>,
    graph: &GraphOptions,
    duplicates: Duplicates,
    inputs: &[InputPath],
    pool: &Pool,
) -> Result<Vec<ChangedArc>> {
    if duplicates == Duplicates::Keep {
        sort_in_parallel(&mut arcs, pool, |arcs| arcs.sort_by_key(|arc| (key(arc), arc.data)));
        return Ok(arcs);
    }
    sort_in_parallel(&mut arcs, pool, |arcs| arcs.sort_by_key(key));
    if graph.has_rows() {
        merge_arcs(&mut arcs, |_, next| Some(next));
        return Ok(arcs);
    }
    match graph.weight_type {
        None => arcs.dedup(),
        Some(WeightType::U32) => merge_parallel::<u32>(&mut arcs, duplicates, inputs)?,
        Some(WeightType::I64) => merge_parallel::<i64>(&mut arcs, duplicates, inputs)?,
        Some(WeightType::F32) => merge_parallel::<f32>(&mut arcs, duplicates, inputs)?,
        Some(WeightType::F64) => merge_parallel::<f64>(&mut arcs, duplicates, inputs)?,
    }
    Ok(arcs)
}

/// A number whose order is that of list and neighbour: one comparison in place of two.
fn key(arc: &ChangedArc) -> u64 {
    u64::from(arc.list) << 32 | u64::from(arc.neighbour)
}

fn merge_parallel<P: Payload + Weight>(
    arcs: &mut Vec<ChangedArc>,
    duplicates: Duplicates,
    inputs: &[InputPath],
) -> Result<()> {
    let mut beyond = None;
    merge_arcs(arcs, |kept, next| {
        let (first, second) = (P::of_bits(kept.weight), P::of_bits(next.weight));
        let merged = first.merge(second, duplicates).map(|merged| ArcData::of_weight(merged.bits()));
        if merged.is_none() {
            beyond = beyond.or(Some((first, second)));
        }
        merged
    });
    beyond.map_or(Ok(()), |(first, second)| Err(too_large_a_sum(inputs, first, second)))
}

/// Leaves one of each group of parallel entries, which are sorted; `merge` says what stands beside it, or that it stays
/// as it is.
fn merge_arcs(arcs: &mut Vec<ChangedArc>, mut merge: impl FnMut(ArcData, ArcData) -> Option<ArcData>) {
    arcs.dedup_by(|next, kept| {
        let is_same = (next.list, next.neighbour) == (kept.list, kept.neighbour);
        if is_same {
            kept.data = merge(kept.data, next.data).unwrap_or(kept.data);
        }
        is_same
    });
}

/// Sorts entries that are to go, each once.
pub(crate) fn sort_removed(entries: &mut Vec<(VertexId, VertexId)>, pool: &Pool) {
    sort_in_parallel(entries, pool, <[(VertexId, VertexId)]>::sort);
    entries.dedup();
}

/// Lets each worker sort a share, then merges the shares: `sort` must be one that finds them sorted.
fn sort_in_parallel<T: Send>(items: &mut [T], pool: &Pool, sort: impl Fn(&mut [T]) + Sync) {
    let share = items.len().div_ceil(pool.num_threads()).max(MIN_SHARE);
    if share < items.len() {
        pool.for_each_part_mut(items, share, |_, part| sort(part));
    }
    sort(items);
}
