//! Creates, drops and maintains indexes of vertex properties.

use std::sync::Arc;

use anden_base::VertexId;
use anden_base::progress::{Progress, Silent};
use anden_graph::Graph;
use anden_graph::property::{PropertyColumn, PropertyValue};

use super::draft::Draft;
use super::{PublishedState, Store};
use crate::chain::DeltaRef;
use crate::delta::Delta;
use crate::manifest::Manifest;
use crate::property::{
    IndexKind, IndexRecord, PropertyChanges, entry_of, push_changes, push_column, split, value_hash, write_index,
};
use crate::vertex_properties::VertexColumn;
use crate::view::SnapshotView;
use crate::{Error, Result};

/// Rows of a column that are read at once.
const GRAIN: usize = 1 << 16;

/// Bytes a value takes while an index is made: its entry, and room to grow by as much.
const ENTRY_BYTES: u64 = 2 * size_of::<u64>() as u64;

/// Memory of an index creation that does not depend on the graph: the program, and a file buffer.
const FIXED_BYTES: u64 = 24 << 20;

/// Description of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexInfo {
    /// Name of the property.
    pub property: String,
    /// Whether equal values are allowed.
    pub kind: IndexKind,
    /// Number of entries, each a value and a vertex. Entries of replaced values count until the next merge.
    pub num_entries: u64,
    /// Bytes of its files.
    pub num_bytes: u64,
}

/// An index under construction. It covers the versions that existed when it was begun.
#[derive(Debug)]
pub struct IndexDraft {
    property: String,
    kind: IndexKind,
    /// Newest version whose values are among `entries`.
    version: u32,
    /// Ascending.
    entries: Vec<u64>,
}

impl Store {
    /// The indexes, in the order of their properties.
    pub fn indexes(&self) -> Vec<IndexInfo> {
        let state = self.state();
        let info = |VertexColumn { record, index, .. }: &VertexColumn| {
            let (index, parts) = (index.as_ref()?, &record.index.as_ref()?.parts);
            let len = |part: &u32| state.files.get(&crate::names::index(*part)).map_or(0, |file| file.len());
            Some(IndexInfo {
                property: record.name.clone(),
                kind: index.kind,
                num_entries: index.num_entries(),
                num_bytes: parts.iter().map(len).sum(),
            })
        };
        state.columns.iter().filter_map(info).collect()
    }

    /// Collects the entries of a new index over all versions. Other threads read and write meanwhile.
    ///
    /// Cost: reads the property in all versions. Memory: 16 bytes a value.
    ///
    /// # Errors
    /// The property does not exist, or has an index; two vertices have equal values and the index is unique; the memory
    /// does not suffice ([`set_memory`](Self::set_memory)); damage; cancellation.
    pub fn draft_index(&self, property: &str, kind: IndexKind, progress: &dyn Progress) -> Result<IndexDraft> {
        // A read-only handle could not publish the index.
        self.lock()?;
        let state = self.state();
        let number = state.column_to_index(property)?;
        let view = state.newest(&self.path)?;
        require_memory(&view, self.memory())?;
        progress.stage("index", Some(view.vertex_bound() as u64));
        let mut entries = Vec::new();
        state.push_base_entries(number, progress, &mut entries)?;
        state.push_delta_entries(number, 0, &mut entries)?;
        entries.sort_unstable();
        // A value may be in the base and in several deltas.
        entries.dedup();
        let version = state.manifest.chain.newest().number;
        let draft = IndexDraft { property: property.to_owned(), kind, version, entries };
        draft.require_unique(number, &view)?;
        Ok(draft)
    }

    /// Publishes an index, with the versions that were appended since it was begun. When this returns, the index
    /// survives a power cut.
    ///
    /// # Errors
    /// As [`draft_index`](Self::draft_index) and [`append`](Self::append).
    pub fn publish_index(&self, mut index: IndexDraft) -> Result<()> {
        let mut draft = self.begin()?;
        let state = Arc::clone(&draft.state);
        let number = state.column_to_index(&index.property)?;
        // Other threads appended while the entries were collected without a lock.
        if state.manifest.chain.newest().number != index.version {
            // A merge made a base of a version that the index lacks. If the versions before it were dropped, no delta
            // holds its values any more.
            if state.manifest.chain.anchor > index.version {
                state.push_base_entries(number, &Silent, &mut index.entries)?;
            }
            state.push_delta_entries(number, index.version, &mut index.entries)?;
            index.entries.sort_unstable();
            index.entries.dedup();
            // The added versions may have brought an equal value.
            index.require_unique(number, &state.newest(&self.path)?)?;
        }
        let mut manifest = state.manifest.clone();
        let parts = draft.write_index_part(&[&index.entries])?;
        manifest.properties[number as usize].index = Some(IndexRecord { kind: index.kind, parts });
        draft.publish(manifest)?;
        Ok(())
    }

    /// Removes an index.
    ///
    /// # Errors
    /// The property has no index; as [`append`](Self::append).
    pub fn drop_index(&self, property: &str) -> Result<()> {
        let draft = self.begin()?;
        let mut manifest = draft.state.manifest.clone();
        let record = manifest.properties.iter_mut().find(|record| record.name == property);
        match record.and_then(|record| record.index.take()) {
            Some(_) => draft.publish(manifest).map(drop),
            None => Err(Error::NoIndex { property: property.to_owned() }),
        }
    }
}

/// Refuses if the budget does not hold the entries of all vertices.
fn require_memory(view: &SnapshotView, budget: Option<u64>) -> Result<()> {
    let needed = FIXED_BYTES + ENTRY_BYTES * view.vertex_bound() as u64;
    match budget {
        Some(budget) if budget < needed => Err(Error::Memory { what: "an index".into(), needed, budget }),
        _ => Ok(()),
    }
}

impl IndexDraft {
    /// Refuses a unique index if two vertices have equal values in `view`.
    fn require_unique(&self, number: u32, view: &SnapshotView) -> Result<()> {
        if self.kind != IndexKind::Unique {
            return Ok(());
        }
        let properties = view.properties().stored();
        for alike in self.entries.chunk_by(|a, b| split(*a).0 == split(*b).0).filter(|alike| alike.len() > 1) {
            // Distinct values rarely share a hash, so `seen` stays short. Equal values end the search at the second
            // one.
            let mut seen: Vec<(PropertyValue<'_>, VertexId)> = Vec::new();
            for &entry in alike {
                let (hash, vertex) = split(entry);
                let value = properties.value_of(number, vertex)?;
                // An entry may be of an older version, or stand for another value with this hash.
                if value_hash(value) != Some(hash) {
                    continue;
                }
                if let Some(&(_, first)) = seen.iter().find(|(known, _)| *known == value) {
                    let (first, second) = (view.key(first)?, view.key(vertex)?);
                    let property = &self.property;
                    return Err(Error::Input(format!(
                        "cannot create a unique index of {property:?}: the vertices {first} and {second} both have the \
                         value {value}; change one of them, or create an index that is not unique"
                    )));
                }
                seen.push((value, vertex));
            }
        }
        Ok(())
    }
}

impl PublishedState {
    /// Number of the column, if it can get an index.
    fn column_to_index(&self, property: &str) -> Result<u32> {
        let schema = crate::property::schema_of(&self.manifest.properties)?;
        let Some(number) = schema.find(property) else {
            let nearest = schema.nearest(property).map(str::to_owned);
            return Err(Error::NoProperty { property: property.to_owned(), nearest });
        };
        match self.columns[number].record.index {
            Some(_) => Err(Error::IndexExists { property: property.to_owned() }),
            None => Ok(number as u32),
        }
    }

    /// Appends the entries of the values in the base.
    fn push_base_entries(&self, number: u32, progress: &dyn Progress, entries: &mut Vec<u64>) -> Result<()> {
        let VertexColumn { record, file, .. } = &self.columns[number as usize];
        let Some(file) = file else { return Ok(()) };
        for start in (0..file.len()).step_by(GRAIN) {
            progress.check()?;
            let column = file.read(number, record.property_type, start..file.len().min(start + GRAIN))?;
            push_column(start, &column, entries);
            progress.advance(column.len() as u64);
        }
        Ok(())
    }

    /// Appends the entries of all values, old and new, in deltas that lead to versions after `after`.
    fn push_delta_entries(&self, number: u32, after: u32, entries: &mut Vec<u64>) -> Result<()> {
        for version in self.manifest.chain.versions.iter().filter(|version| version.number > after) {
            let delta = version.delta.and_then(|place: DeltaRef| self.delta_at(place));
            if let Some(changes) = delta.map(|delta: &Delta| delta.property_changes(number)).transpose()?.flatten() {
                push_changes(changes, entries);
            }
        }
        Ok(())
    }
}

impl Draft<'_> {
    /// Writes several ascending lists of entries as one part; returns its number, or none if there are no entries.
    fn write_index_part(&mut self, lists: &[&[u64]]) -> Result<Vec<u32>> {
        if lists.iter().all(|list| list.is_empty()) {
            return Ok(Vec::new());
        }
        let number = self.next_file();
        let (storage, path, id) = (&*self.store.storage, &*self.store.path, self.state.manifest.created.id);
        let file = write_index(storage, path, (id, number), lists)?;
        self.add(file);
        Ok(vec![number])
    }

    /// Adds the new values of a delta to the indexes of their properties. The last parts are rewritten with them while
    /// they are at most twice as long.
    pub fn add_to_indexes(&mut self, manifest: &mut Manifest, changes: &[PropertyChanges]) -> Result<()> {
        let state = Arc::clone(&self.state);
        for changes in changes {
            let column = state.columns.get(changes.column() as usize);
            let Some(old) = column.and_then(|column| column.index.as_ref()) else { continue };
            // Old values belong to earlier versions, whose entries are in the index already.
            let new = changes.iter().filter_map(|(vertex, new, _)| Some(entry_of(value_hash(new)?, vertex)));
            let mut entries: Vec<u64> = new.collect();
            entries.sort_unstable();
            let (mut num_together, mut num_kept) = (entries.len() as u64, old.parts.len());
            // Joining parts of similar length keeps their number logarithmic, and each entry is rewritten that often.
            while num_kept > 0 && old.parts[num_kept - 1].1.len() as u64 <= 2 * num_together {
                num_kept -= 1;
                num_together += old.parts[num_kept].1.len() as u64;
            }
            let mut lists = vec![&entries[..]];
            for (_, part) in &old.parts[num_kept..] {
                lists.push(part.entries()?);
            }
            let written = self.write_index_part(&lists)?;
            if let Some(index) = &mut manifest.properties[changes.column() as usize].index {
                index.parts.truncate(num_kept);
                index.parts.extend(written);
            }
        }
        Ok(())
    }

    /// Rewrites the index of a column from `values`, those of one version, and from all deltas. Entries of values that
    /// no version has are left out.
    pub fn renew_index(&mut self, number: u32, values: &PropertyColumn) -> Result<Vec<u32>> {
        let mut entries = Vec::new();
        push_column(0, values, &mut entries);
        self.state.push_delta_entries(number, 0, &mut entries)?;
        entries.sort_unstable();
        self.write_index_part(&[&entries])
    }
}
