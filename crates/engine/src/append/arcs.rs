//! The requested arcs, sorted.

use anden_base::parallel::Pool;
use anden_base::{NO_VERTEX, VertexId};
use anden_formats::InputPath;
use anden_graph::{Weight, WeightType};
use anden_snapshots::{ArcData, ChangedArc, GraphOptions};

use super::requests::RequestBlock;
use crate::Result;
use crate::load::{Duplicates, Expand, LoadArc, Payload, too_large_a_sum};

/// The least arcs of a share that a worker sorts.
const MIN_SHARE: usize = 16 << 10;

/// The arcs of the edges in `blocks`, whose keys are ids already; in input order.
pub(crate) fn added(blocks: Vec<RequestBlock>, expand: Expand) -> Vec<ChangedArc> {
    let num_edges: usize = blocks.iter().map(|block| block.edges.len()).sum();
    let mut arcs = Vec::with_capacity(num_edges * expand.factor());
    for block in blocks {
        for (i, &(source, target)) in block.edges.iter().enumerate() {
            let row = block.first_row.map_or(0, |first| first + i as u64);
            let data = ArcData { row, weight: block.weights.get(i).copied().unwrap_or(0) };
            expand.entries(LoadArc::new(source, target, ()), |entry| {
                arcs.push(ChangedArc { list: entry.list(), neighbor: entry.neighbor(), data });
            });
        }
    }
    arcs
}

/// Arcs to remove.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct RemovedEntries {
    /// Lists and neighbors, in input order.
    pub(crate) entries: Vec<(VertexId, VertexId)>,
    /// Edges with an end that was never a vertex.
    pub(crate) num_unknown: u64,
}

/// The arcs to remove for the edges in `blocks`, whose keys are ids already.
pub(crate) fn removed(blocks: Vec<RequestBlock>, expand: Expand) -> RemovedEntries {
    let mut removed = RemovedEntries::default();
    for (source, target) in blocks.into_iter().flat_map(|block| block.edges) {
        // An end without an id was never a vertex, so no list can have the edge.
        if source == NO_VERTEX || target == NO_VERTEX {
            removed.num_unknown += 1;
        } else {
            expand.entries(LoadArc::new(source, target, ()), |entry| {
                removed.entries.push((entry.list(), entry.neighbor()));
            });
        }
    }
    removed
}

/// Sorts arcs that come in input order, and treats parallel ones as `duplicates` says. Parallel arcs that are kept
/// ascend by row, or by the bits of their weight.
///
/// # Errors
/// A sum of weights exceeds their type.
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
    // A stable sort, so that parallel arcs stay in input order.
    sort_in_parallel(&mut arcs, pool, |arcs| arcs.sort_by_key(key));
    if graph.has_rows() {
        // With rows, the last edge of the input replaces the earlier ones.
        merge_arcs(&mut arcs, |_, next| Some(next));
        return Ok(arcs);
    }
    match graph.weight_type {
        // Without data, parallel arcs are equal.
        None => arcs.dedup(),
        Some(WeightType::U32) => merge_parallel::<u32>(&mut arcs, duplicates, inputs)?,
        Some(WeightType::I64) => merge_parallel::<i64>(&mut arcs, duplicates, inputs)?,
        Some(WeightType::F32) => merge_parallel::<f32>(&mut arcs, duplicates, inputs)?,
        Some(WeightType::F64) => merge_parallel::<f64>(&mut arcs, duplicates, inputs)?,
    }
    Ok(arcs)
}

/// A sort key for list and neighbor: one comparison instead of two.
fn key(arc: &ChangedArc) -> u64 {
    u64::from(arc.list) << 32 | u64::from(arc.neighbor)
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
            // Reported after the pass, because the closure cannot return an error.
            beyond = beyond.or(Some((first, second)));
        }
        merged
    });
    beyond.map_or(Ok(()), |(first, second)| Err(too_large_a_sum(inputs, first, second)))
}

/// Merges each group of parallel arcs, which must be sorted. `merge` returns the data of the result; `None` keeps the
/// first.
fn merge_arcs(arcs: &mut Vec<ChangedArc>, mut merge: impl FnMut(ArcData, ArcData) -> Option<ArcData>) {
    arcs.dedup_by(|next, kept| {
        let is_same = (next.list, next.neighbor) == (kept.list, kept.neighbor);
        if is_same {
            kept.data = merge(kept.data, next.data).unwrap_or(kept.data);
        }
        is_same
    });
}

/// Sorts arcs to remove, and drops duplicates.
pub(crate) fn sort_removed(entries: &mut Vec<(VertexId, VertexId)>, pool: &Pool) {
    sort_in_parallel(entries, pool, <[(VertexId, VertexId)]>::sort);
    entries.dedup();
}

/// Sorts shares in parallel, then merges them. `sort` must detect sorted runs.
fn sort_in_parallel<T: Send>(items: &mut [T], pool: &Pool, sort: impl Fn(&mut [T]) + Sync) {
    let share = items.len().div_ceil(pool.num_threads()).max(MIN_SHARE);
    // A single share is sorted below.
    if share < items.len() {
        pool.for_each_part_mut(items, share, |_, part| sort(part));
    }
    sort(items);
}
