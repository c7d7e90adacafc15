//! Creates, drops and keeps indexes of properties.

use std::sync::Arc;

use base::VertexId;
use base::progress::{Progress, Silent};
use graph::Graph;
use graph::property::{PropertyColumn, PropertyValue};

use super::draft::Draft;
use super::{State, Store};
use crate::chain::LevelRef;
use crate::level::Level;
use crate::manifest::Manifest;
use crate::property::{
    IndexKind, IndexRecord, PropertyChanges, VertexColumn, entry_of, push_changes, push_column, split, value_hash,
    write_index,
};
use crate::view::View;
use crate::{Error, Result};

/// Rows of a column that are read at a time.
const GRAIN: usize = 1 << 16;

/// Bytes that the entry of a value takes while an index is made: itself, and room for as many again.
const ENTRY_BYTES: u64 = 2 * size_of::<u64>() as u64;

/// What the creation of an index holds whatever it is of: the program, and a buffer of the file.
const FIXED_BYTES: u64 = 24 << 20;

/// What is known of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexInfo {
    /// The name of the property.
    pub property: String,
    /// What it promises.
    pub kind: IndexKind,
    /// Its entries: a value and a vertex each. Values that were replaced count until the next merge.
    pub num_entries: u64,
    /// The bytes of its files.
    pub num_bytes: u64,
}

/// An index in the making, of what was there when it was begun.
#[derive(Debug)]
pub struct IndexDraft {
    property: String,
    kind: IndexKind,
    /// The newest version that it has.
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

    /// Collects the entries of a new index, of all versions that there are; others read and write meanwhile.
    ///
    /// Cost: reads the property in all versions. Memory: 16 bytes a value.
    ///
    /// # Errors
    /// There is no such property, or it has an index; two vertices have the same value and the index is to be unique; the
    /// memory does not suffice ([`set_memory`](Self::set_memory)); damage; the caller wanted it.
    pub fn draft_index(&self, property: &str, kind: IndexKind, progress: &dyn Progress) -> Result<IndexDraft> {
        self.lock()?;
        let state = self.state();
        let number = state.column_to_index(property)?;
        let view = state.newest(&self.path)?;
        require_memory(&view, self.memory())?;
        progress.stage("index", Some(view.vertex_bound() as u64));
        let mut entries = Vec::new();
        state.push_base_entries(number, progress, &mut entries)?;
        state.push_level_entries(number, 0, &mut entries)?;
        entries.sort_unstable();
        entries.dedup();
        let version = state.manifest.chain.newest().number;
        let draft = IndexDraft { property: property.to_owned(), kind, version, entries };
        draft.require_unique(number, &view)?;
        Ok(draft)
    }

    /// Makes an index part of the database, with what was appended since it was begun. When this returns, it survives a
    /// power cut.
    ///
    /// # Errors
    /// As [`draft_index`](Self::draft_index) and [`append`](Self::append).
    pub fn publish_index(&self, mut index: IndexDraft) -> Result<()> {
        let mut draft = self.begin()?;
        let state = Arc::clone(&draft.state);
        let number = state.column_to_index(&index.property)?;
        if state.manifest.chain.newest().number != index.version {
            // A merge made a base of a version that the index does not have. Where the versions before it were dropped, no
            // delta has its values any more.
            if state.manifest.chain.anchor > index.version {
                state.push_base_entries(number, &Silent, &mut index.entries)?;
            }
            state.push_level_entries(number, index.version, &mut index.entries)?;
            index.entries.sort_unstable();
            index.entries.dedup();
            index.require_unique(number, &state.newest(&self.path)?)?;
        }
        let mut manifest = state.manifest.clone();
        let parts = draft.write_index_part(&[&index.entries])?;
        manifest.properties[number as usize].index = Some(IndexRecord { kind: index.kind, parts });
        draft.publish(manifest)?;
        Ok(())
    }

    /// Takes an index away.
    ///
    /// # Errors
    /// There is none; as [`append`](Self::append).
    pub fn drop_index(&self, property: &str) -> Result<()> {
        let draft = self.begin()?;
        let mut manifest = draft.state.manifest.clone();
        let record = manifest.properties.iter_mut().find(|record| record.name == property);
        match record.and_then(|record| record.index.take()) {
            Some(_) => draft.publish(manifest).map(drop),
            None => {
                let what = format!("cannot drop the index: the property {property:?} of vertices has none");
                Err(Error::Input(what))
            }
        }
    }
}

/// Wants what the entries of all vertices take.
fn require_memory(view: &View, budget: Option<u64>) -> Result<()> {
    let needed = FIXED_BYTES + ENTRY_BYTES * view.vertex_bound() as u64;
    match budget {
        Some(budget) if budget < needed => Err(Error::Memory { what: "an index".into(), needed, budget }),
        _ => Ok(()),
    }
}

impl IndexDraft {
    /// Refuses two vertices with the same value in `view` where the index is to be unique.
    fn require_unique(&self, number: u32, view: &View) -> Result<()> {
        if self.kind != IndexKind::Unique {
            return Ok(());
        }
        let properties = view.properties().stored();
        for alike in self.entries.chunk_by(|a, b| split(*a).0 == split(*b).0).filter(|alike| alike.len() > 1) {
            // Values with one hash are few, unless they are equal, and then the second one ends the search.
            let mut seen: Vec<(PropertyValue<'_>, VertexId)> = Vec::new();
            for &entry in alike {
                let (hash, vertex) = split(entry);
                let value = properties.value_of(number, vertex)?;
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

impl State {
    /// The number of a column that is to get an index.
    fn column_to_index(&self, property: &str) -> Result<u32> {
        let schema = crate::property::schema_of(&self.manifest.properties)?;
        let cannot = |why: &str| Error::Input(format!("cannot create an index of the property {property:?}: {why}"));
        let Some(number) = schema.find(property) else {
            let hint = schema.nearest(property).map(|known| format!("; did you mean {known:?}?"));
            return Err(cannot(&format!("no vertex has it{}", hint.unwrap_or_default())));
        };
        match self.columns[number].record.index {
            Some(_) => Err(cannot("it has one already; drop that one first")),
            None => Ok(number as u32),
        }
    }

    /// Appends the entries of the values that the base has.
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

    /// Appends the entries of all values, old and new, of levels that lead to versions after `after`.
    fn push_level_entries(&self, number: u32, after: u32, entries: &mut Vec<u64>) -> Result<()> {
        for version in self.manifest.chain.versions.iter().filter(|version| version.number > after) {
            let level = version.level.and_then(|place: LevelRef| self.level_at(place));
            if let Some(changes) = level.map(|level: &Level| level.property_changes(number)).transpose()?.flatten() {
                push_changes(changes, entries);
            }
        }
        Ok(())
    }
}

impl Draft<'_> {
    /// Writes the entries of several ascending lists as one part; gives the numbers of the parts, none where there are no
    /// entries.
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

    /// Adds the new values of a level to the indexes of their properties, together with the parts before them that are at
    /// most twice as long.
    pub fn add_to_indexes(&mut self, manifest: &mut Manifest, changes: &[PropertyChanges]) -> Result<()> {
        let state = Arc::clone(&self.state);
        for changes in changes {
            let column = state.columns.get(changes.column() as usize);
            let Some(old) = column.and_then(|column| column.index.as_ref()) else { continue };
            // The old values are those of earlier versions, whose entries are there.
            let new = changes.iter().filter_map(|(vertex, new, _)| Some(entry_of(value_hash(new)?, vertex)));
            let mut entries: Vec<u64> = new.collect();
            entries.sort_unstable();
            let (mut num_together, mut num_kept) = (entries.len() as u64, old.parts.len());
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

    /// Writes the index of a column anew, with the entries of `values`, those of a version, and of all levels. Entries of
    /// values that no version has go.
    pub fn renew_index(&mut self, number: u32, values: &PropertyColumn) -> Result<Vec<u32>> {
        let mut entries = Vec::new();
        push_column(0, values, &mut entries);
        self.state.push_level_entries(number, 0, &mut entries)?;
        entries.sort_unstable();
        self.write_index_part(&[&entries])
    }
}
