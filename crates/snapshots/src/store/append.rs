//! Adds a snapshot.

use std::sync::Arc;

use anden_base::progress::{Progress, Silent};
use anden_base::{MAX_VERTICES, VertexId};
use anden_graph::Graph;
use anden_graph::property::{PropertyColumn, PropertySchema, PropertyType};

use super::deltas::estimated_bytes;
use super::draft::Draft;
use super::retention::given_up_at_append;
use super::{SnapshotInfo, Store, check_name};
use crate::chain::{ChainVersion, DeltaRef};
use crate::changes::ChangedArc;
use crate::dictionary::{DictionaryKeys, PartFile};
use crate::file::FileKind;
use crate::manifest::Manifest;
use crate::options::{GraphOptions, KeyScheme, SnapshotTag};
use crate::property::{
    EdgeColumns, EdgeRecord, MAX_ROWS, NewColumns, PropertyChanges, PropertyRecord, RowRun, schema_of, write_columns,
};
use crate::view::SnapshotView;
use crate::{Error, Result};

/// The changes of a new snapshot relative to the newest version. Changes must be *effective*: an added arc was absent,
/// a removed arc was present with the given weight. An edge with a new weight is removed with its old weight and added
/// with its new one.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeltaChanges<'a> {
    /// Epoch of the last commit in the snapshot; 0 if it has no commit that the database lacks. The epoch never goes
    /// back.
    pub epoch: u64,
    /// The new vertex bound: vertices from the old bound on are new.
    pub vertex_bound: usize,
    /// Vertices that die, ascending. Their edges are among the removed ones.
    pub died: &'a [VertexId],
    /// Vertices that were dead and live again, ascending.
    pub returned: &'a [VertexId],
    /// The keys of the new vertices, as for a dictionary of them alone; `None` if there are none, or if keys are ids.
    pub keys: Option<DictionaryKeys<'a>>,
    /// Arcs added to out-lists, sorted; an undirected edge has one for each end.
    pub out_added: &'a [ChangedArc],
    /// Arcs removed from out-lists, sorted.
    pub out_removed: &'a [ChangedArc],
    /// Arcs added to in-lists, sorted, if the graph stores in-lists apart: the arcs of the out-lists, turned around.
    pub in_added: &'a [ChangedArc],
    /// Arcs removed from in-lists, sorted.
    pub in_removed: &'a [ChangedArc],
    /// Vertex properties that are new in this snapshot; their columns follow the existing ones.
    pub new_properties: &'a [(String, PropertyType)],
    /// Edge properties that are new in this snapshot; their columns follow the existing ones.
    pub new_edge_properties: &'a [(String, PropertyType)],
    /// The rows of added edges, if edges have properties; added arcs name them by number.
    pub rows: NewRows<'a>,
    /// Changed values of vertex properties, by column. Vertices that die lose their values.
    pub properties: &'a [PropertyChanges],
    /// Number of edges added; an undirected edge counts once.
    pub num_edges_added: u64,
    /// Number of edges removed.
    pub num_edges_removed: u64,
}

/// New rows of edge properties.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewRows<'a> {
    /// Row numbers: ascending, none below [`Store::next_row`].
    pub numbers: &'a [u64],
    /// The next free row number after this snapshot, if it is more than the last number plus one.
    pub next_row: u64,
    /// One column for each edge property, old and new, in the order of their numbers; none if there are no rows.
    pub columns: &'a [PropertyColumn],
    /// In a multigraph, the first row of each row's edge, null if that is the row itself; `None` if that holds for all
    /// rows. A row without values that is the first of its edge need not be listed.
    pub first_rows: Option<&'a PropertyColumn>,
}

impl NewRows<'_> {
    /// The next free row number after these rows.
    fn end(&self) -> u64 {
        self.numbers.last().map_or(0, |last| last + 1).max(self.next_row)
    }
}

impl Store {
    /// The next free row number; smaller numbers are never given again.
    pub fn next_row(&self) -> u64 {
        self.state().manifest.next_row
    }

    /// Adds a snapshot, even an empty one. Drops the snapshots that retention no longer keeps, and packs small deltas.
    ///
    /// Cost: writes the bytes of the changes; three syncs of files and two of the directory.
    ///
    /// # Errors
    /// The changes break a rule, the name is not valid or taken, the handle is read-only or poisoned, the disk failed.
    /// The database is then unchanged; only after a failed replacement of the manifest is its state unknown.
    pub fn append<'a>(&self, changes: &DeltaChanges<'_>, tag: impl Into<SnapshotTag<'a>>) -> Result<SnapshotInfo> {
        self.append_telling(changes, tag.into(), &Silent)
    }

    /// As [`append`](Self::append); reports the written bytes of deltas and keys to `progress`, at least every
    /// megabyte. So the caller can slow the writing down. Other writers wait meanwhile
    /// ([`is_awaited`](Self::is_awaited)).
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn append_telling(
        &self,
        changes: &DeltaChanges<'_>,
        tag: SnapshotTag<'_>,
        progress: &dyn Progress,
    ) -> Result<SnapshotInfo> {
        let mut draft = self.begin()?.telling(progress);
        check_name(tag.name, Some(&draft.state.manifest))?;
        let view = draft.state.newest(&self.path)?;
        check_changes(changes, &view, &self.options)?;
        let mut manifest = draft.state.manifest.clone();
        check_properties(changes, &view, &manifest)?;
        check_rows(changes, &manifest)?;
        let version = self.next_version(changes, &manifest, tag)?;
        let ChainVersion { number, epoch, next_row, .. } = version;

        // Retention counts the new version, so the rule looks at the longer chain.
        let mut longer = manifest.chain.clone();
        longer.versions.push(version.clone());
        // Held until the manifest is published, so that no lease is taken meanwhile.
        let unleased = self.unleased_of(&given_up_at_append(&longer, manifest.retention, version.unix_time));
        let given_up = &unleased.numbers;
        let new_bytes = estimated_bytes(changes, &self.options);
        // The new delta has no file yet, so its size is estimated.
        let bytes_of = |place: DeltaRef| draft.state.delta_at(place).map_or(new_bytes, |delta| delta.num_bytes());
        let plan = manifest.chain.with(version, given_up, bytes_of);
        manifest.chain = draft.carry_out(plan, Some(changes))?;
        // Dense keys are ids, and need no dictionary.
        let needs_keys = |keys: &DictionaryKeys<'_>| !keys.is_empty() && keys.scheme() != KeyScheme::Dense;
        if let Some(keys) = changes.keys.filter(needs_keys) {
            manifest.dictionary = draft.add_keys(&keys)?;
        }
        // The values of a new property are in deltas until a merge writes its column.
        let record = |(name, declared): &(String, _)| PropertyRecord::new(name, *declared, number);
        manifest.properties.extend(changes.new_properties.iter().map(record));
        draft.add_to_indexes(&mut manifest, changes.properties)?;
        let record = |(name, declared): &(String, _)| EdgeRecord::new(name, *declared, number);
        manifest.edge_properties.extend(changes.new_edge_properties.iter().map(record));
        if !changes.rows.numbers.is_empty() {
            manifest.rows = draft.add_rows(changes.rows, &manifest.edge_properties)?;
        }
        (manifest.next_number, manifest.epoch, manifest.next_row) = (number + 1, epoch, next_row);
        let state = draft.publish(manifest)?;
        if !given_up.is_empty() {
            tracing::info!(snapshots = ?given_up, "dropped snapshots that retention does not keep");
        }
        let info = state.snapshots().pop();
        info.ok_or_else(|| Error::NoSnapshot { number, existing: Vec::new() })
    }

    fn next_version(
        &self,
        changes: &DeltaChanges<'_>,
        manifest: &Manifest,
        tag: SnapshotTag<'_>,
    ) -> Result<ChainVersion> {
        let newest = manifest.chain.newest();
        let sum = |old: u64, added: u64, removed: u64, what: &str| {
            let sum = old.checked_add(added).and_then(|sum| sum.checked_sub(removed));
            sum.ok_or_else(|| Error::Input(format!("{removed} {what} removed of {old}, and {added} added")))
        };
        let number = manifest.next_number;
        // The number after this one must still fit in 32 bits.
        if number == u32::MAX {
            return Err(Error::Input("there are no numbers left for snapshots".into()));
        }
        let num_new = changes.vertex_bound as u64 - newest.vertex_bound + changes.returned.len() as u64;
        let (num_added, num_removed) = (changes.out_added.len() as u64, changes.out_removed.len() as u64);
        Ok(ChainVersion {
            number,
            is_kept: true,
            name: tag.name.map(str::to_owned),
            unix_time: self.time(),
            as_of: tag.as_of,
            // An append without commits has the epoch 0; the clock never goes back.
            epoch: manifest.epoch.max(changes.epoch),
            // Numbers behind the last stored row may be used up, too, and are not given again.
            next_row: manifest.next_row.max(changes.rows.end()),
            vertex_bound: changes.vertex_bound as u64,
            num_vertices: sum(newest.num_vertices, num_new, changes.died.len() as u64, "vertices")?,
            num_edges: sum(newest.num_edges, changes.num_edges_added, changes.num_edges_removed, "edges")?,
            num_arcs: sum(newest.num_arcs, num_added, num_removed, "arcs")?,
            num_added: changes.num_edges_added,
            num_removed: changes.num_edges_removed,
            delta: Some(DeltaRef::NEW),
        })
    }
}

impl Draft<'_> {
    /// Writes the keys of new vertices; returns the numbers of the dictionary's parts.
    fn add_keys(&mut self, keys: &DictionaryKeys<'_>) -> Result<Vec<u32>> {
        let number = self.next_file();
        let place = PartFile {
            storage: &*self.store.storage,
            directory: &self.store.path,
            id: self.state.manifest.created.id,
            number,
            first_id: 0,
        };
        let dictionary = &self.state.dictionary;
        // `write_addition` does not look into the parts that stay, so known keys are refused here.
        dictionary.check_new(keys)?;
        self.num_new_bytes += keys.num_bytes();
        let added = dictionary.write_addition(keys, place)?;
        if let Some(file) = added.file.file {
            self.progress.wrote(file.len);
            self.add(file);
        }
        Ok(added.numbers)
    }
}

impl Draft<'_> {
    /// Writes new rows of edges; returns the numbers of all parts. The last parts are rewritten with them while they
    /// are at most twice as long.
    fn add_rows(&mut self, rows: NewRows<'_>, records: &[EdgeRecord]) -> Result<Vec<u32>> {
        let old = Arc::clone(&self.state.rows);
        let mut num_together = rows.numbers.len() as u64;
        let mut num_kept = old.parts.len();
        // Joining parts of similar length keeps their number logarithmic.
        while num_kept > 0 && old.parts[num_kept - 1].1.len() as u64 <= 2 * num_together {
            num_kept -= 1;
            num_together += old.parts[num_kept].1.len() as u64;
        }
        let joined = EdgeColumns { records: records.to_vec(), parts: old.parts[num_kept..].to_vec() };
        let (mut runs, num_before) = EdgeColumns::joined_runs(&joined.parts)?;
        RowRun::push_numbers(&mut runs, rows.numbers, num_before);
        let types = joined.types(&joined.parts, rows.first_rows.is_some());
        let file_number = self.next_file();
        let new =
            NewColumns { file_number, kind: FileKind::Rows, runs: &runs, num_rows: num_together, columns: &types };
        let (storage, path, id) = (&*self.store.storage, &*self.store.path, self.state.manifest.created.id);
        let file = write_columns(storage, path, id, new, &|place, take| {
            // Old rows come first, because their numbers are smaller.
            joined.copy(&joined.parts, types[place].0, take)?;
            match (rows.columns.get(place), rows.first_rows) {
                (Some(column), _) | (None, Some(column)) => take(column),
                // Only older parts have later rows of edges: each new row is the first of its edge.
                (None, None) => take(&PropertyColumn::nulls(types[place].1, rows.numbers.len())),
            }
        })?;
        let num_bytes: usize = rows.columns.iter().map(PropertyColumn::num_bytes).sum();
        self.num_new_bytes += num_bytes as u64;
        self.add(file);
        Ok(old.parts[..num_kept].iter().map(|(number, _)| *number).chain([file_number]).collect())
    }
}

/// Checks numbers and columns of new rows, and that every added arc names a new row.
fn check_rows(changes: &DeltaChanges<'_>, manifest: &Manifest) -> Result<()> {
    let bad = |what: String| Err(Error::Input(what));
    let columns = changes.rows.columns;
    let numbers = changes.rows.numbers;
    let options = &manifest.created.options;
    if !(options.edge_properties || columns.is_empty() && changes.new_edge_properties.is_empty()) {
        return bad("the edges of this graph have no properties".into());
    }
    if !options.has_rows() && !numbers.is_empty() {
        return bad("the edges of this graph have no rows".into());
    }
    let records = manifest.edge_properties.iter().map(|record| (record.name.clone(), record.declared()));
    let schema = PropertySchema::new(records.chain(changes.new_edge_properties.iter().cloned()))?;
    let stored = schema.iter().map(|(_, property_type)| property_type.stored());
    let fits = stored.eq(columns.iter().map(PropertyColumn::property_type));
    let mut all_columns = columns.iter().chain(changes.rows.first_rows);
    if !(numbers.is_empty() || fits) || all_columns.any(|column| column.len() != numbers.len()) {
        return bad("a column of as many rows for each property of edges expected".into());
    }
    let follow = numbers.windows(2).all(|pair| pair[0] < pair[1]);
    // Numbers of rows are never given twice.
    if !follow || numbers.first().is_some_and(|&first| first < manifest.next_row) {
        return bad(format!("rows with numbers that ascend from {} on expected", manifest.next_row));
    }
    if numbers.last().is_some_and(|&last| last >= MAX_ROWS) || changes.rows.next_row > MAX_ROWS {
        return bad("there are no numbers left for rows of properties".into());
    }
    let end = changes.rows.end();
    // Only graphs with edge properties store rows. In others, a number in the new range suffices.
    let is_new = |row: u64| match options.edge_properties {
        true => numbers.binary_search(&row).is_ok(),
        false => !options.has_rows() || (manifest.next_row..end).contains(&row),
    };
    match changes.out_added.iter().find(|arc| !is_new(arc.data.row)) {
        Some(arc) => bad(format!("an edge is added with row {}, which is none of the new rows", arc.data.row)),
        None => Ok(()),
    }
}

/// Refuses changes that do not fit this kind of graph. Does not check that they are effective.
pub(crate) fn check_changes(changes: &DeltaChanges<'_>, newest: &SnapshotView, options: &GraphOptions) -> Result<()> {
    let bad = |what: String| Err(Error::Input(what));
    let (old_bound, bound) = (newest.vertex_bound(), changes.vertex_bound);
    // Ids are never given back.
    if bound < old_bound || bound > MAX_VERTICES {
        return bad(format!("a vertex bound from {old_bound} to {MAX_VERTICES} expected, {bound} found"));
    }
    let num_new = (bound - old_bound) as u64;
    if let Some(keys) = changes.keys.filter(|keys| keys.scheme() != options.keys) {
        return bad(format!("{:?} keys expected, {:?} keys found", options.keys, keys.scheme()));
    }
    let num_keys = changes.keys.map_or(0, |keys| keys.len());
    if num_keys != num_new && (options.keys != KeyScheme::Dense || changes.keys.is_some()) {
        return bad(format!("{num_keys} keys for {num_new} new vertices"));
    }
    for (vertices, was_live, what) in [(changes.died, true, "dies"), (changes.returned, false, "returns")] {
        if vertices.windows(2).any(|pair| pair[0] >= pair[1]) {
            return bad("vertices that die or return are not in ascending order".into());
        }
        // A new vertex may die in the same snapshot, so it counts as live.
        let fits = |&vertex: &VertexId| {
            let is_new = (old_bound..bound).contains(&(vertex as usize));
            (vertex as usize) < bound && (is_new || newest.is_live(vertex)) == was_live
        };
        if let Some(vertex) = vertices.iter().find(|vertex| !fits(vertex)) {
            return bad(format!("vertex {vertex} {what}, which it cannot"));
        }
    }
    check_arcs(changes, options)
}

/// Checks columns, types and vertices of changed properties.
fn check_properties(changes: &DeltaChanges<'_>, newest: &SnapshotView, manifest: &Manifest) -> Result<()> {
    let mut schema = schema_of(&manifest.properties)?;
    for (name, property_type) in changes.new_properties {
        schema.add(name.clone(), *property_type)?;
    }
    let bad = |what: String| Err(Error::Input(what));
    if changes.properties.windows(2).any(|pair| pair[0].column() >= pair[1].column()) {
        return bad("changed properties are not in the order of their columns".into());
    }
    let is_live = |vertex: VertexId| {
        let lived = vertex as usize >= newest.vertex_bound() || newest.is_live(vertex);
        (lived || changes.returned.binary_search(&vertex).is_ok()) && changes.died.binary_search(&vertex).is_err()
    };
    for column in changes.properties {
        let Some((name, property_type)) = schema.get(column.column() as usize) else {
            return bad(format!("there is no column {} of properties", column.column()));
        };
        column.as_ref().check(changes.vertex_bound).map_err(Error::Input)?;
        column.as_ref().check_type(property_type.stored()).map_err(Error::Input)?;
        if let Some((vertex, ..)) = column.iter().find(|&(vertex, new, _)| !new.is_null() && !is_live(vertex)) {
            return bad(format!("vertex {vertex} is none, and gets the property {name:?}"));
        }
    }
    Ok(())
}

/// Checks the order, the ends and the numbers of changed arcs.
pub(crate) fn check_arcs(changes: &DeltaChanges<'_>, options: &GraphOptions) -> Result<()> {
    let bad = |what: &str| Err(Error::Input(what.to_owned()));
    let directions = [(changes.out_added, changes.in_added), (changes.out_removed, changes.in_removed)];
    for (out_arcs, in_arcs) in directions {
        if in_arcs.len() != if options.stores_in_lists() { out_arcs.len() } else { 0 } {
            return bad("in-lists do not change as out-lists do");
        }
        for arcs in [out_arcs, in_arcs] {
            if !arcs.is_sorted() || (!options.multigraph && has_pair(arcs)) {
                return bad("changed arcs are not sorted, or stand twice");
            }
            if arcs.iter().any(|arc| arc.list.max(arc.neighbor) as usize >= changes.vertex_bound) {
                return bad("a changed arc has an end that is no vertex");
            }
        }
    }
    let counts = [
        (changes.num_edges_added, changes.out_added.len() as u64),
        (changes.num_edges_removed, changes.out_removed.len() as u64),
    ];
    let fits = |&(num_edges, num_arcs): &(u64, u64)| options.can_have(num_edges, num_arcs);
    if counts.iter().all(fits) { Ok(()) } else { bad("the number of changed edges is not that of the arcs") }
}

/// Whether two successive arcs have equal ends.
fn has_pair(arcs: &[ChangedArc]) -> bool {
    arcs.windows(2).any(|pair| (pair[0].list, pair[0].neighbor) == (pair[1].list, pair[1].neighbor))
}
