//! Rows of the edges that an append adds.
//!
//! Each requested edge gets a row after the existing ones. An edge that exists already and would not change keeps its
//! row, so that the delta does not contain it.

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_graph::Graph;
use anden_graph::property::{PropertySchema, PropertyValue};
use anden_snapshots::{ArcData, ChangedArc, SnapshotView};
use parking_lot::Mutex;

use super::properties::joined_schema;
use super::requests::RequestBlock;
use crate::Result;
use crate::live::AddedRows;

/// Arcs that a worker looks up at once.
const GRAIN: usize = 2 << 10;
/// Arcs by which prefetching runs ahead of the lookup.
const AHEAD: usize = 16;

/// Assigns rows from `first_row` on to the edges of blocks; `given` are the properties of the blocks.
///
/// # Errors
/// A property has another type than the existing one.
pub(crate) fn assign_rows(
    blocks: &mut [RequestBlock],
    known: &PropertySchema,
    given: &PropertySchema,
    first_row: u64,
) -> Result<AddedRows> {
    let (properties, places) = joined_schema(known, given, " of edges")?;
    let mut next = first_row;
    let mut parts = Vec::new();
    for block in blocks {
        let columns = std::mem::take(&mut block.edge_columns);
        // Rows without values need no part.
        if !columns.is_empty() {
            parts.push((next, places.iter().copied().zip(columns).collect()));
        }
        block.first_row = Some(next);
        next += block.edges.len() as u64;
    }
    Ok(AddedRows { properties, end: Some(next), parts, copies: Vec::new() })
}

/// Keeps existing edges of a simple graph unchanged if they are added with equal values, or without values. An edge
/// with a new weight and no values keeps its old values. `is_removed` tells edges that are removed before they are
/// added.
///
/// # Errors
/// Damage in the database.
pub(crate) fn keep_rows(
    view: &SnapshotView,
    added: &mut [ChangedArc],
    is_removed: impl Fn((VertexId, VertexId)) -> bool + Sync,
    rows: &mut AddedRows,
    pool: &Pool,
) -> Result<()> {
    let copies = Mutex::new(Ok(Vec::new()));
    let part = |arcs: &mut [ChangedArc]| -> Result<Vec<(u64, u64)>> {
        let mut finder = view.finder();
        let mut copies = Vec::new();
        for place in 0..arcs.len() {
            if let Some(later) = arcs.get(place + AHEAD).filter(|arc| is_known(view, arc)) {
                finder.prefetch(later.list);
                finder.prefetch_arc(later.list, later.neighbor);
            }
            let arc = &mut arcs[place];
            let ends = (arc.list, arc.neighbor);
            let old = if is_known(view, arc) { finder.first(ends.0, ends.1)? } else { None };
            let Some(old) = old else { continue };
            let ArcData { row, weight } = arc.data;
            // An edge that is removed first does not keep its values.
            let is_bare = values_of(rows, row).all(|(_, value)| value.is_null()) && !is_removed(ends);
            if weight != old.weight {
                copies.extend(is_bare.then_some((row, old.row)));
            } else if is_bare || is_same(view, rows, row, old.row)? {
                // The arc equals the existing one, so the delta will not contain it.
                arc.data = old;
            }
        }
        Ok(copies)
    };
    pool.for_each_part_mut(added, GRAIN, |_, arcs| {
        let found = part(arcs);
        let mut all = copies.lock();
        match (&mut *all, found) {
            (Ok(all), Ok(mut found)) => all.append(&mut found),
            (all, Err(error)) => *all = Err(error),
            (Err(_), Ok(_)) => {}
        }
    });
    rows.copies = copies.into_inner()?;
    // Both arcs of an undirected edge ask for the same copy, but a row is written once.
    rows.copies.sort_unstable();
    rows.copies.dedup();
    Ok(())
}

/// Whether both ends of an arc are ids of the view.
fn is_known(view: &SnapshotView, arc: &ChangedArc) -> bool {
    (arc.list.max(arc.neighbor) as usize) < view.vertex_bound()
}

/// The values given to a new row, with the indexes of their properties.
fn values_of(rows: &AddedRows, row: u64) -> impl Iterator<Item = (usize, PropertyValue<'_>)> {
    let part = rows.parts.partition_point(|&(first_row, _)| first_row <= row).checked_sub(1);
    let part = part.map(|part| &rows.parts[part]).into_iter();
    part.flat_map(move |(first_row, columns)| {
        // Later rows than those of the part have no values.
        let place = (row - first_row) as usize;
        let columns = columns.iter().filter(move |(_, column)| place < column.len());
        columns.map(move |(property, column)| (*property, column.get(place)))
    })
}

/// Whether a new row has the values of an existing one.
fn is_same(view: &SnapshotView, rows: &AddedRows, row: u64, old: u64) -> Result<bool> {
    let mut values = vec![PropertyValue::Null; rows.properties.len()];
    values_of(rows, row).for_each(|(place, value)| values[place] = value);
    for (place, value) in values.into_iter().enumerate() {
        // New properties are null in existing rows.
        if value != view.edge_properties().value(place, old)? {
            return Ok(false);
        }
    }
    Ok(true)
}
