//! Properties of edges that an append adds.
//!
//! Every edge that is asked for gets a row behind those that there are; once it is known what changes, the rows that
//! nothing needs go, and the others move up.

use std::collections::HashMap;

use base::VertexId;
use graph::property::{PropertyColumn, PropertySchema, PropertyType, PropertyValue};
use graph::{Direction, Graph};
use lama::{ChangedArc, View};

use super::effective::Effective;
use super::requests::{Block, Requests};
use crate::{Error, Result};

/// The rows of the edges that are asked for.
#[derive(Debug, Default)]
pub(crate) struct AskedRows {
    /// The first of them.
    first_row: u64,
    num_rows: usize,
    /// By property that the requests name.
    columns: Vec<PropertyColumn>,
    /// By property of the database, those that are new behind the others: which of the columns it is.
    places: Vec<Option<usize>>,
    types: Vec<PropertyType>,
    new: Vec<(String, PropertyType)>,
    /// Rows that are there, whose values edges with another weight keep; by place.
    kept: HashMap<usize, u64>,
}

/// The rows that are written.
#[derive(Debug, Default)]
pub(crate) struct EdgeRows {
    pub(crate) new: Vec<(String, PropertyType)>,
    pub(crate) numbers: Vec<u64>,
    pub(crate) next_row: u64,
    /// By property of the database.
    pub(crate) columns: Vec<PropertyColumn>,
}

impl AskedRows {
    /// Gives the edges of requests rows from `first_row` on; `known` are the properties that there are.
    ///
    /// # Errors
    /// A property is of another type than the one that is there; there are too many edges.
    pub(crate) fn assign(requests: &mut Requests, known: &PropertySchema, first_row: u64) -> Result<Self> {
        let mut rows = Self { first_row, places: vec![None; known.len()], ..Self::default() };
        rows.types = known.iter().map(|(_, property_type)| property_type).collect();
        for (place, (name, property_type)) in requests.edge_schema.iter().enumerate() {
            match known.find(name) {
                None => {
                    rows.new.push((name.to_owned(), property_type));
                    rows.places.push(Some(place));
                    rows.types.push(property_type);
                }
                Some(column) if rows.types[column] != property_type => {
                    let expected = rows.types[column];
                    let what = format!("the property {name:?} of edges is of type {expected}, not {property_type}");
                    return Err(Error::Option(what));
                }
                Some(column) => rows.places[column] = Some(place),
            }
            rows.columns.push(PropertyColumn::new(property_type));
        }
        for block in &mut requests.blocks {
            rows.take(block)?;
        }
        if u32::try_from(rows.num_rows).is_err() {
            return Err(Error::Option(format!("{} edges are too many for one append to such a graph", rows.num_rows)));
        }
        Ok(rows)
    }

    fn take(&mut self, block: &mut Block) -> Result<()> {
        let (first, len) = (self.first_row + self.num_rows as u64, block.edges.len());
        block.first_row = Some(first);
        self.num_rows += len;
        if block.edge_columns.is_empty() {
            self.columns.iter_mut().for_each(|column| column.push_nulls(len));
            return Ok(());
        }
        for (column, part) in self.columns.iter_mut().zip(std::mem::take(&mut block.edge_columns)) {
            column.append(&part)?;
        }
        Ok(())
    }

    /// The value of a column of the database, by the place of a row among those asked for.
    fn value(&self, column: usize, place: usize) -> PropertyValue<'_> {
        self.places[column].map_or(PropertyValue::Null, |found| self.columns[found].get(place))
    }

    /// Leaves edges as they are that are there with the same values, or are given again without any; then lets the
    /// rows of the others follow each other. `removed` are the entries that were asked to go, sorted.
    ///
    /// # Errors
    /// The database is damaged.
    pub(crate) fn settle(
        mut self,
        view: &View,
        effective: &mut Effective,
        removed: &[(VertexId, VertexId)],
    ) -> Result<EdgeRows> {
        self.leave_same(view, effective, removed)?;
        let mut used: Vec<u64> = effective.added.iter().map(|arc| arc.data.row).collect();
        used.sort_unstable();
        used.dedup();
        for arc in &mut effective.added {
            let rank = used.partition_point(|&row| row < arc.data.row);
            arc.data.row = self.first_row + rank as u64;
        }
        let places: Vec<u32> = used.iter().map(|row| (row - self.first_row) as u32).collect();
        let columns = (0..self.types.len()).map(|column| self.written(view, column, &places));
        let columns = columns.collect::<Result<_>>()?;
        let next_row = self.first_row + places.len() as u64;
        // Rows without values are not written.
        let written = if view.options().edge_properties { self.first_row..next_row } else { 0..0 };
        Ok(EdgeRows { columns, numbers: written.collect(), next_row, new: self.new })
    }

    /// The values of a column of the database in the rows at these places.
    fn written(&self, view: &View, column: usize, places: &[u32]) -> Result<PropertyColumn> {
        let property_type = self.types[column];
        if self.kept.is_empty() {
            return Ok(match self.places[column] {
                Some(found) => self.columns[found].gather(places),
                None => PropertyColumn::nulls(property_type, places.len()),
            });
        }
        let mut values = PropertyColumn::new(property_type);
        for &place in places {
            values.push(match self.kept.get(&(place as usize)) {
                Some(&row) => view.edge_properties().value(column, row)?,
                None => self.value(column, place as usize),
            })?;
        }
        Ok(values)
    }

    fn leave_same(&mut self, view: &View, effective: &mut Effective, removed: &[(VertexId, VertexId)]) -> Result<()> {
        if view.is_multigraph() {
            return Ok(());
        }
        let is_undirected = view.direction() == Direction::Undirected;
        let ends = |arc: &ChangedArc| (arc.list, arc.neighbour);
        let (mut stays_added, mut stays_removed) =
            (vec![true; effective.added.len()], vec![true; effective.removed.len()]);
        let mut r = 0;
        for (a, new) in effective.added.iter().enumerate() {
            while effective.removed.get(r).is_some_and(|old| ends(old) < ends(new)) {
                r += 1;
            }
            let Some(old) = effective.removed.get(r).filter(|old| ends(old) == ends(new)) else { continue };
            let place = (new.data.row - self.first_row) as usize;
            let is_bare = (0..self.types.len()).all(|column| self.value(column, place).is_null())
                && removed.binary_search(&ends(new)).is_err();
            if new.data.weight != old.data.weight {
                self.kept.extend(is_bare.then_some((place, old.data.row)));
            } else if is_bare || self.is_same(view, place, old.data.row)? {
                (stays_added[a], stays_removed[r]) = (false, false);
                let counts = u64::from(!is_undirected || new.list <= new.neighbour);
                effective.num_added -= counts;
                effective.num_removed -= counts;
            }
        }
        keep(&mut effective.added, &stays_added);
        keep(&mut effective.removed, &stays_removed);
        Ok(())
    }

    /// Whether a row that is asked for has the values of one that is there.
    fn is_same(&self, view: &View, place: usize, row: u64) -> Result<bool> {
        for column in 0..self.types.len() {
            // New properties are null in rows that are there.
            if self.value(column, place) != view.edge_properties().value(column, row)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Leaves the elements that stay.
fn keep(arcs: &mut Vec<ChangedArc>, stays: &[bool]) {
    let mut stays = stays.iter();
    arcs.retain(|_| stays.next().copied().unwrap_or(true));
}
