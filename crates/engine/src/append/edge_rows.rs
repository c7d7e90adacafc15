//! The rows of edges that an append adds.
//!
//! Every edge that is asked for gets a row behind those that there are. An edge that is there already and would be the
//! same keeps its row, so that nothing changes.

use std::sync::{Mutex, PoisonError};

use base::VertexId;
use base::parallel::Pool;
use graph::Graph;
use graph::property::{PropertySchema, PropertyValue};
use lama::{ArcData, ChangedArc, View};

use super::properties::joined_schema;
use super::requests::Block;
use crate::Result;
use crate::live::AddedRows;

/// Entries that a worker looks for at once.
const GRAIN: usize = 2 << 10;
/// How many entries before its turn the place of one is fetched.
const AHEAD: usize = 16;

/// Gives the edges of blocks rows from `first_row` on; `given` are the properties that blocks come with.
///
/// # Errors
/// A property is of another type than the one that is there.
pub(crate) fn assign_rows(
    blocks: &mut [Block],
    known: &PropertySchema,
    given: &PropertySchema,
    first_row: u64,
) -> Result<AddedRows> {
    let (properties, places) = joined_schema(known, given, " of edges")?;
    let mut next = first_row;
    let mut parts = Vec::new();
    for block in blocks {
        let columns = std::mem::take(&mut block.edge_columns);
        if !columns.is_empty() {
            parts.push((next, places.iter().copied().zip(columns).collect()));
        }
        block.first_row = Some(next);
        next += block.edges.len() as u64;
    }
    Ok(AddedRows { properties, end: Some(next), parts, copies: Vec::new() })
}

/// Leaves edges of a simple graph as they are that are there with the same values, or are given again without any; an edge
/// without values that gets another weight keeps the values that it has. `is_removed`: an edge goes before it comes.
///
/// # Errors
/// The database is damaged.
pub(crate) fn keep_rows(
    view: &View,
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
                finder.prefetch_arc(later.list, later.neighbour);
            }
            let arc = &mut arcs[place];
            let ends = (arc.list, arc.neighbour);
            let old = if is_known(view, arc) { finder.first(ends.0, ends.1)? } else { None };
            let Some(old) = old else { continue };
            let ArcData { row, weight } = arc.data;
            let is_bare = values_of(rows, row).all(|(_, value)| value.is_null()) && !is_removed(ends);
            if weight != old.weight {
                copies.extend(is_bare.then_some((row, old.row)));
            } else if is_bare || is_same(view, rows, row, old.row)? {
                arc.data = old;
            }
        }
        Ok(copies)
    };
    pool.for_each_part_mut(added, GRAIN, |_, arcs| {
        let found = part(arcs);
        let mut all = copies.lock().unwrap_or_else(PoisonError::into_inner);
        match (&mut *all, found) {
            (Ok(all), Ok(mut found)) => all.append(&mut found),
            (all, Err(error)) => *all = Err(error),
            (Err(_), Ok(_)) => {}
        }
    });
    rows.copies = copies.into_inner().unwrap_or_else(PoisonError::into_inner)?;
    Ok(())
}

/// Whether both ends of an entry are ids of the view.
fn is_known(view: &View, arc: &ChangedArc) -> bool {
    (arc.list.max(arc.neighbour) as usize) < view.vertex_bound()
}

/// The values that a new row was given, with the places of their properties.
fn values_of(rows: &AddedRows, row: u64) -> impl Iterator<Item = (usize, PropertyValue<'_>)> {
    let part = rows.parts.partition_point(|&(first_row, _)| first_row <= row).checked_sub(1);
    let part = part.map(|part| &rows.parts[part]).into_iter();
    part.flat_map(move |(first_row, columns)| {
        // A row behind the last of its part was given none.
        let place = (row - first_row) as usize;
        let columns = columns.iter().filter(move |(_, column)| place < column.len());
        columns.map(move |(property, column)| (*property, column.get(place)))
    })
}

/// Whether a new row has the values of one that is there.
fn is_same(view: &View, rows: &AddedRows, row: u64, old: u64) -> Result<bool> {
    let mut values = vec![PropertyValue::Null; rows.properties.len()];
    values_of(rows, row).for_each(|(place, value)| values[place] = value);
    for (place, value) in values.into_iter().enumerate() {
        // New properties are null in rows that are there.
        if value != view.edge_properties().value(place, old)? {
            return Ok(false);
        }
    }
    Ok(true)
}
