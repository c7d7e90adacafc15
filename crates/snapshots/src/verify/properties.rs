//! Checks the properties of every version against each other.
//!
//! Follows every delta from the column at the version of the base, forward and backward. The old value of a change must
//! be the value in the version before, and no dead vertex has a value.

use anden_graph::Direction;
use std::collections::HashMap;
use std::path::Path;

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_graph::property::{PropertyColumn, PropertyValue};

use super::Lives;
use crate::changes::PageChanges;
use crate::delta::{Delta, net_properties};
use crate::property::{ChangesRef, PropertyRecord, push_changes, push_column, split};
use crate::store::PublishedState;
use crate::{Result, names};

/// Checks all columns.
///
/// # Errors
/// The first fault, with its place.
pub(super) fn check_properties(state: &PublishedState, path: &Path, lives: &Lives, pool: &Pool) -> Result<()> {
    let columns = 0..state.columns.len();
    let results = pool.map_chunks(columns, 1, |_, columns| {
        columns.into_iter().try_for_each(|column| ColumnVerifier::new(state, lives, column)?.check(path))
    });
    results.into_iter().collect::<Result<()>>()?;
    check_merged_deltas(state)?;
    check_rows(state, path, pool)
}

/// One column in all versions.
struct ColumnVerifier<'a> {
    state: &'a PublishedState,
    lives: &'a Lives,
    column: u32,
    record: &'a PropertyRecord,
    stored: PropertyColumn,
    /// By version: the delta from the version before.
    deltas: Vec<Option<&'a Delta>>,
    anchor_index: usize,
}

/// Values that differ from the stored ones at a version.
type ChangedColumnValues<'a> = HashMap<VertexId, PropertyValue<'a>>;

impl<'a> ColumnVerifier<'a> {
    fn new(state: &'a PublishedState, lives: &'a Lives, column: usize) -> Result<Self> {
        let chain = &state.manifest.chain;
        let found = &state.columns[column];
        let stored = match &found.file {
            Some(file) => file.read(column as u32, found.record.property_type, 0..file.len())?,
            None => PropertyColumn::nulls(found.record.property_type, 0),
        };
        let deltas = chain.versions.iter().map(|version| state.delta_at(version.delta?)).collect();
        let anchor_index = chain.index(chain.anchor).unwrap_or(0);
        Ok(Self { state, lives, column: column as u32, record: &found.record, stored, deltas, anchor_index })
    }

    fn check(&self, path: &Path) -> Result<()> {
        let anchor = &self.state.manifest.chain.versions[self.anchor_index];
        let corrupt = |what: String| {
            let what = format!("the property {:?}: {what}", self.record.name);
            let file = self.record.file.map_or(path.to_owned(), |number| path.join(names::column(number)));
            anden_base::Error::corrupt(&file, 0, what).into()
        };
        if self.stored.len() as u64 > anchor.vertex_bound {
            return Err(corrupt(format!("{} values of {} vertices", self.stored.len(), anchor.vertex_bound)));
        }
        let is_bad =
            |&vertex: &usize| !self.stored.is_null(vertex) && self.lives.is_dead(vertex as VertexId, anchor.number);
        if let Some(vertex) = (0..self.stored.len()).find(is_bad) {
            return Err(corrupt(format!("vertex {vertex} is dead and has a value")));
        }
        self.check_index(path)?;
        let num_versions = self.deltas.len();
        let mut changed = ChangedColumnValues::new();
        for index in self.anchor_index + 1..num_versions {
            self.step(&mut changed, index, index)?;
        }
        // The walk backward starts from the base again.
        changed.clear();
        for index in (0..self.anchor_index).rev() {
            self.step(&mut changed, index + 1, index)?;
        }
        Ok(())
    }

    /// Checks that the column's index, if it has one, has an entry for each value of each version, and that entries
    /// ascend.
    fn check_index(&self, path: &Path) -> Result<()> {
        let Some(index) = &self.state.columns[self.column as usize].index else { return Ok(()) };
        for (_, part) in &index.parts {
            let entries = part.entries()?;
            // Readers search the entries, so they must ascend.
            if let Some(place) = entries.windows(2).position(|pair| pair[0] >= pair[1]) {
                return Err(part.corrupt(place + 1, "entries that ascend expected").into());
            }
        }
        let mut needed = Vec::new();
        push_column(0, &self.stored, &mut needed);
        // Old values of deltas are values of some version, too.
        for delta in self.deltas.iter().flatten() {
            self.changes(delta)?.into_iter().for_each(|changes| push_changes(changes, &mut needed));
        }
        for entry in needed {
            if !index.has(entry)? {
                let (_, vertex) = split(entry);
                let name = &self.record.name;
                let what = format!("the index of the property {name:?} lacks a value of vertex {vertex}");
                let file = index.parts.first().map_or(names::MANIFEST.to_owned(), |(number, _)| names::index(*number));
                return Err(anden_base::Error::corrupt(&path.join(file), 0, what).into());
            }
        }
        Ok(())
    }

    /// Applies the delta of the version `delta_index`, so that the values become those of the version `to_index`.
    fn step(&self, changed: &mut ChangedColumnValues<'a>, delta_index: usize, to_index: usize) -> Result<()> {
        let Some(delta) = self.deltas[delta_index] else { return Ok(()) };
        let number = self.state.manifest.chain.versions[to_index].number;
        let is_forward = delta_index == to_index;
        let wrong = |vertex: VertexId, what: &str| -> Result<()> {
            let name = &self.record.name;
            Err(delta.corrupt(format!("vertex {vertex}, version {number}: the property {name:?} {what}")).into())
        };
        if let Some(changes) = self.changes(delta)? {
            for (vertex, new, old) in changes.iter() {
                let (to, from) = if is_forward { (new, old) } else { (old, new) };
                // The old value of a change must be the value before it.
                if self.value(changed, vertex) != from {
                    return wrong(vertex, "had another value before");
                }
                if !to.is_null() && self.lives.is_dead(vertex, number) {
                    return wrong(vertex, "has a value although the vertex is dead");
                }
                changed.insert(vertex, to);
            }
        }
        // Backward, a vertex that returned is dead again.
        let dying = if is_forward { delta.died()? } else { delta.returned()? };
        match dying.iter().find(|&&vertex| !self.value(changed, vertex).is_null()) {
            Some(&vertex) => wrong(vertex, "outlives its vertex"),
            None => Ok(()),
        }
    }

    fn changes(&self, delta: &'a Delta) -> Result<Option<ChangesRef<'a>>> {
        let Some(changes) = delta.property_changes(self.column)? else { return Ok(None) };
        changes.check_type(self.record.property_type).map_err(|what| delta.corrupt(what))?;
        Ok(Some(changes))
    }

    fn value(&self, changed: &ChangedColumnValues<'a>, vertex: VertexId) -> PropertyValue<'_> {
        let stored = || match self.stored.len() > vertex as usize {
            true => self.stored.get(vertex as usize),
            false => PropertyValue::Null,
        };
        changed.get(&vertex).copied().unwrap_or_else(stored)
    }
}

/// Checks that merged deltas equal the deltas that they stand for.
fn check_merged_deltas(state: &PublishedState) -> Result<()> {
    for run in &state.manifest.chain.merged_deltas {
        let delta = state.delta(run.delta);
        let expected = net_properties(&state.deltas_between(run.from, run.to))?;
        if expected != net_properties(std::slice::from_ref(delta))? {
            return Err(delta.corrupt("properties are not what its deltas make of them").into());
        }
    }
    Ok(())
}

/// Checks that every row of edges is readable, that row numbers ascend, and that every entry of a list names a row.
fn check_rows(state: &PublishedState, path: &Path, pool: &Pool) -> Result<()> {
    let (manifest, rows) = (&state.manifest, &state.rows);
    if !manifest.created.options.has_rows() {
        return Ok(());
    }
    let types = rows.types(&rows.parts, false);
    // Reading verifies; the values themselves are not needed.
    let results = pool.map_chunks(0..types.len(), 1, |_, columns| {
        columns.into_iter().try_for_each(|place| rows.copy(&rows.parts, types[place].0, &mut |_| Ok(())))
    });
    results.into_iter().collect::<Result<()>>()?;
    rows.parts.iter().try_for_each(|(_, part)| part.runs().map(drop))?;
    let has_values = manifest.created.options.edge_properties;
    let first_missing = |named: &[u64]| -> Result<Option<u64>> {
        for &row in named {
            // Rows without values need not be stored.
            if row >= manifest.next_row || has_values && rows.place(row)?.is_none() {
                return Ok(Some(row));
            }
        }
        Ok(None)
    };
    for version in manifest.chain.versions.iter().filter_map(|version| version.delta) {
        let delta = state.delta(version);
        for page in delta.pages(Direction::Out)? {
            let mut changes = PageChanges::default();
            delta.read_page(Direction::Out, page as usize, &mut changes)?;
            if let Some(row) = first_missing(changes.entries().rows)? {
                return Err(delta.corrupt(format!("row {row} is named, which is not there")).into());
            }
        }
    }
    // Every arc of a version comes from the base or from a delta.
    let view = state.view(manifest.chain.anchor, path)?;
    for page in 0..view.out_adjacency().num_pages() {
        let whole = view.out_adjacency().whole_page(page)?;
        if let Some(row) = first_missing(&whole.entries.rows)? {
            let what = format!("page {page}: row {row} is named, which is not there");
            return Err(anden_base::Error::corrupt(path, 0, what).into());
        }
    }
    Ok(())
}
