//! The state that readers see: a manifest, and its files, open.

use anden_graph::Direction;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use anden_base::storage::Storage;
use parking_lot::Mutex;

use crate::base::{AdjacencyFiles, OpenBase};
use crate::chain::{ChainVersion, DeltaRef};
use crate::changes::ApplyDirection;
use crate::delta::{Delta, DeltaFile};
use crate::dictionary::Dictionary;
use crate::file::{FileEnds, FileKind, FramedFile};
use crate::lists::ListRules;
use crate::manifest::{FileRecord, Manifest};
use crate::options::DatabaseId;
use crate::property::{ColumnFile, EdgeColumns, IndexPart, IndexRecord, PropertyRecord, StoredRows, VertexIndex};
use crate::store::WriterLock;
use crate::vertex_properties::{StoredProperties, VertexColumn};
use crate::view::{SnapshotView, ViewParts};
use crate::{Error, Result, base_writer, names};

/// Attempts of a reader to open files while a writer removes them.
const MAX_ATTEMPTS: usize = 1000;

/// Open files by name.
type OpenFiles = HashMap<String, Arc<FramedFile>>;

/// A database as it was published at one moment. All files are open, so no writer can take them away. Files of prepared
/// forms are the exception: they are opened when they are read (`preparations.rs`).
#[derive(Debug)]
pub(crate) struct PublishedState {
    pub manifest: Manifest,
    /// Bytes of the manifest.
    pub manifest_bytes: u64,
    pub base: Arc<OpenBase>,
    pub dictionary: Arc<Dictionary>,
    /// Vertex properties.
    pub columns: Arc<Vec<VertexColumn>>,
    /// Edge properties.
    pub rows: Arc<EdgeColumns>,
    /// All files but those of prepared forms, by name.
    pub files: OpenFiles,
    delta_files: HashMap<u32, Arc<DeltaFile>>,
    newest: Mutex<Option<SnapshotView>>,
}

impl PublishedState {
    /// Reads the manifest, and opens its files.
    ///
    /// # Errors
    /// A file is missing, damaged, or does not fit the others.
    pub fn read(storage: &dyn Storage, path: &Path) -> Result<Self> {
        let bytes = read_manifest(storage, path)?;
        let manifest = Manifest::decode(&bytes, &path.join(names::MANIFEST))?;
        Self::open(storage, path, manifest, bytes.len() as u64, None)
    }

    /// As [`read`](Self::read), for the writer, whose lock records the manifest.
    pub fn read_locked(storage: &dyn Storage, path: &Path, lock: &WriterLock) -> Result<Self> {
        let manifest_path = path.join(names::MANIFEST);
        // Taken before the bytes are read, so that a later change gives another stamp.
        let stamp = storage.stamp(&manifest_path)?;
        let bytes = read_manifest(storage, path)?;
        let manifest = Manifest::decode(&bytes, &manifest_path)?;
        lock.know_manifest(stamp, &bytes);
        Self::open(storage, path, manifest, bytes.len() as u64, None)
    }

    /// As [`read`](Self::read), while a writer may publish. If a file is gone, a newer manifest no longer names it.
    pub fn read_beside_writer(storage: &dyn Storage, path: &Path) -> Result<Self> {
        Self::read_whole(storage, path, read_manifest(storage, path)?, None)
    }

    /// As [`read_beside_writer`](Self::read_beside_writer), with the files that `old` has open. `None` if the manifest
    /// is that of `old`.
    ///
    /// # Errors
    /// As [`read`](Self::read); [`Error::Replaced`] if `old` is of another database, or younger.
    pub fn read_newer(storage: &dyn Storage, path: &Path, old: &Self) -> Result<Option<Self>> {
        let bytes = read_manifest(storage, path)?;
        // Most refreshes find no change, and cost one read.
        if Manifest::decode(&bytes, &path.join(names::MANIFEST))? == old.manifest {
            return Ok(None);
        }
        Self::read_whole(storage, path, bytes, Some(old)).map(Some)
    }

    /// Opens the files of a manifest; if one is gone, those of the next manifest. Files that were opened stay open.
    /// Names are never reused, so each attempt opens only the files published since the one before. A reader that
    /// started over each time would never catch up with a fast writer.
    fn read_whole(storage: &dyn Storage, path: &Path, mut bytes: Vec<u8>, old: Option<&Self>) -> Result<Self> {
        let manifest_path = path.join(names::MANIFEST);
        let (mut opened, mut num_attempts) = (OpenFiles::new(), 0);
        loop {
            let manifest = Manifest::decode(&bytes, &manifest_path)?;
            num_attempts += 1;
            match open_files(storage, path, &manifest, old, &mut opened) {
                Err(Error::Base(error)) if error.io_kind() == Some(std::io::ErrorKind::NotFound) => {
                    let newer = read_manifest(storage, path)?;
                    // If the manifest did not change, a file that it names is missing: that is damage, not a race.
                    if newer == bytes {
                        return Err(error.missing_as_damage().into());
                    }
                    if num_attempts == MAX_ATTEMPTS {
                        return Err(error.into());
                    }
                    bytes = newer;
                }
                opening => {
                    opening?;
                    return Self::of_files(path, manifest, bytes.len() as u64, old, opened);
                }
            }
        }
    }

    /// Opens the files of a manifest.
    ///
    /// # Errors
    /// As [`read_newer`](Self::read_newer).
    pub fn open(
        storage: &dyn Storage,
        path: &Path,
        manifest: Manifest,
        manifest_bytes: u64,
        old: Option<&Self>,
    ) -> Result<Self> {
        let mut opened = OpenFiles::new();
        open_files(storage, path, &manifest, old, &mut opened)?;
        Self::of_files(path, manifest, manifest_bytes, old, opened)
    }

    /// Reads the open files of a manifest, and checks them against each other.
    fn of_files(
        path: &Path,
        manifest: Manifest,
        manifest_bytes: u64,
        old: Option<&Self>,
        opened: OpenFiles,
    ) -> Result<Self> {
        let records = manifest.files.iter().map(|file| (&*file.name, file)).collect();
        let files = ManifestFiles { path, records, manifest: &manifest, opened: &opened };
        let base = match old.filter(|old| old.manifest.base == manifest.base) {
            // Shared, so that its verified and patched pages stay.
            Some(old) => Arc::clone(&old.base),
            // A new base keeps the memory limit that was set for the old one.
            None => files.open_base(old.map_or_else(patch_bytes, |old| old.base.memory().limit()))?,
        };
        let mut delta_files = HashMap::new();
        for DeltaRef { file: number, .. } in manifest.chain.delta_refs() {
            // A file may hold many deltas, and is opened once.
            if delta_files.contains_key(&number) {
                continue;
            }
            let file = match old.and_then(|old| old.delta_files.get(&number)) {
                Some(file) => Arc::clone(file),
                None => {
                    let file = files.open(FileKind::Delta, &names::delta(number))?;
                    Arc::new(DeltaFile::open(&file, &manifest.created.options)?)
                }
            };
            delta_files.insert(number, file);
        }
        // Open parts are shared, with their verified blocks.
        let known = old.map(|old| &*old.dictionary);
        let open = |number: u32| files.open(FileKind::Dictionary, &names::dictionary(number));
        let (scheme, num_keys) = (manifest.created.options.keys, manifest.chain.newest().vertex_bound);
        let dictionary = Arc::new(Dictionary::join(scheme, num_keys, &manifest.dictionary, known, open)?);
        let columns = Arc::new(files.open_columns(old)?);
        let rows = Arc::new(files.open_rows(old)?);
        let (newest, files) = (Mutex::new(None), opened);
        let state = Self { manifest, manifest_bytes, base, dictionary, columns, rows, files, delta_files, newest };
        // Last, because the check reads the opened deltas and columns.
        state.check_deltas(path)?;
        Ok(state)
    }

    /// Whether `manifest` can follow this state: counters never go back, and no name is given to two files.
    fn precedes(&self, manifest: &Manifest) -> bool {
        let records: HashMap<&str, &FileRecord> = manifest.files.iter().map(|file| (&*file.name, file)).collect();
        let counters = |manifest: &Manifest| (manifest.next_file, manifest.next_number, manifest.epoch);
        let (old, new) = (counters(&self.manifest), counters(manifest));
        // Open files are found by name, so a name must mean one file.
        let same = |file: &FileRecord| records.get(&*file.name).is_none_or(|record| *record == file);
        self.manifest.created == manifest.created
            && old.0 <= new.0
            && old.1 <= new.1
            && old.2 <= new.2
            && self.manifest.files.iter().all(same)
    }

    /// Checks that every delta is there, and leads between the versions that the chain names.
    fn check_deltas(&self, path: &Path) -> Result<()> {
        let chain = &self.manifest.chain;
        let check = |place: DeltaRef, from: u32, to: u32| {
            let Some(delta) = self.delta_at(place) else {
                let what = format!("{} has no delta {}", names::delta(place.file), place.index);
                return Err(anden_base::Error::corrupt(&path.join(names::MANIFEST), 0, what));
            };
            let vertex_bound = chain.version(to).map_or(0, |version| version.vertex_bound);
            if (delta.from(), delta.to(), delta.vertex_bound() as u64) != (from, to, vertex_bound) {
                return Err(delta.corrupt(format!(
                    "a delta from version {from} to {to} with {vertex_bound} ids expected, one from {} to {} with {} \
                     found",
                    delta.from(),
                    delta.to(),
                    delta.vertex_bound()
                )));
            }
            // The arcs of the base were counted. With this check, no version claims more arcs than its files have.
            let num_arcs = |number| chain.version(number).map_or(0, |version| version.num_arcs);
            let (before, after, (added, removed)) = (num_arcs(from), num_arcs(to), delta.num_arcs(Direction::Out));
            // The numbers are from files, so the sum is checked.
            if before.checked_add(added).and_then(|sum| sum.checked_sub(removed)) != Some(after) {
                let what = format!(
                    "version {to}: {after} arcs found, where {before} of version {from}, {added} added and {removed} \
                     removed are expected"
                );
                return Err(anden_base::Error::corrupt(&path.join(names::MANIFEST), 0, what));
            }
            // Columns ascend, so the last one is the largest.
            match delta.property_columns().last() {
                Some(last) if last as usize >= self.columns.len() => {
                    Err(delta.corrupt(format!("column {last} changes, of {} in all", self.columns.len())))
                }
                _ => Ok(()),
            }
        };
        for pair in chain.versions.windows(2) {
            if let Some(place) = pair[1].delta {
                check(place, pair[0].number, pair[1].number)?;
            }
        }
        chain.merged_deltas.iter().try_for_each(|merged| check(merged.delta, merged.from, merged.to))?;
        Ok(())
    }

    /// A delta of an open file.
    pub fn delta_at(&self, place: DeltaRef) -> Option<&Delta> {
        self.delta_files.get(&place.file)?.deltas().get(place.index as usize)
    }

    /// A delta that the manifest names; `check_deltas` found it.
    pub fn delta(&self, place: DeltaRef) -> &Delta {
        self.delta_at(place).expect("deltas were looked at when they were opened")
    }

    /// All deltas of an open file.
    pub fn deltas_of(&self, file: u32) -> &[Delta] {
        self.delta_files.get(&file).map_or(&[], |file| file.deltas())
    }

    /// Numbers of the files with deltas, ascending.
    pub fn delta_files(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = self.delta_files.keys().copied().collect();
        numbers.sort_unstable();
        numbers
    }

    /// The deltas after version `after`, up to version `last`.
    pub fn deltas_between(&self, after: u32, last: u32) -> Vec<Delta> {
        let places = self.manifest.chain.deltas_between(after, last).into_iter();
        places.map(|place| self.delta(place).clone()).collect()
    }

    /// The version of a snapshot that users see.
    ///
    /// # Errors
    /// [`Error::NoSnapshot`].
    pub fn kept(&self, number: u32) -> Result<&ChainVersion> {
        let chain = &self.manifest.chain;
        chain
            .version(number)
            .filter(|version| version.is_kept)
            .ok_or_else(|| Error::NoSnapshot { number, existing: chain.kept().map(|version| version.number).collect() })
    }

    /// The newest version. All callers share one view, and with it the verified pages.
    pub fn newest(&self, path: &Path) -> Result<SnapshotView> {
        // Locked while the view is made, so that all callers share it.
        let mut newest = self.newest.lock();
        let view = match &*newest {
            Some(view) => view.clone(),
            None => newest.insert(self.view(self.manifest.chain.newest().number, path)?).clone(),
        };
        // The shared view keeps its fault, so later callers learn of the damage at once.
        anden_graph::Graph::check(&view)?;
        Ok(view)
    }

    /// A view of any version of the chain, kept or not.
    pub fn view(&self, number: u32, path: &Path) -> Result<SnapshotView> {
        SnapshotView::open(self.view_parts(number, path)?)
    }

    /// The parts of a view of a version.
    pub fn view_parts(&self, number: u32, path: &Path) -> Result<ViewParts> {
        let chain = &self.manifest.chain;
        let version = chain.version(number).ok_or_else(|| Error::NoSnapshot { number, existing: Vec::new() })?;
        Ok(ViewParts {
            version: Some(number),
            base: Arc::clone(&self.base),
            steps: self.steps(number),
            options: self.manifest.created.options,
            vertex_bound: version.vertex_bound as usize,
            num_vertices: version.num_vertices,
            num_edges: version.num_edges,
            num_arcs: version.num_arcs,
            dictionary: Arc::clone(&self.dictionary),
            properties: self.vertex_properties(version)?,
            edge_properties: Arc::new(StoredRows::new(&self.rows, number)?),
            files: Arc::new(self.files_of(number)),
            path: path.to_owned(),
        })
    }

    /// The files that views of a version read.
    fn files_of(&self, number: u32) -> FileEnds {
        let steps = self.manifest.chain.steps(number).into_iter();
        let deltas: HashSet<String> = steps.map(|(place, _)| names::delta(place.file)).collect();
        let is_read = |name: &str, file: &FramedFile| file.kind() != FileKind::Delta || deltas.contains(name);
        FileEnds::of(self.files.iter().filter(|(name, file)| is_read(name, file)).map(|(_, file)| file))
    }

    /// Requires that no open file was cut. Else what was read of it may be zeros.
    ///
    /// # Errors
    /// The first file that was cut.
    pub fn check_files(&self) -> Result<()> {
        Ok(FileEnds::of(self.files.values()).check()?)
    }

    /// Vertex properties at a version.
    fn vertex_properties(&self, version: &ChainVersion) -> Result<Arc<StoredProperties>> {
        let (number, vertex_bound) = (version.number, version.vertex_bound as usize);
        // Without properties, no delta needs to be asked.
        let steps = if self.columns.is_empty() { Vec::new() } else { self.steps(number) };
        Ok(Arc::new(StoredProperties::new(&self.columns, &steps, number, vertex_bound)?))
    }

    /// The deltas that lead from the base to a version.
    pub fn steps(&self, number: u32) -> Vec<(Delta, ApplyDirection)> {
        let steps = self.manifest.chain.steps(number).into_iter();
        steps.map(|(place, sense)| (self.delta(place).clone(), sense)).collect()
    }
}

/// The open files of a manifest.
struct ManifestFiles<'a> {
    path: &'a Path,
    records: HashMap<&'a str, &'a FileRecord>,
    manifest: &'a Manifest,
    opened: &'a OpenFiles,
}

/// Patched pages may take one part in this many of the memory that is free when the database is opened.
const PATCH_SHARE: u64 = 4;

impl ManifestFiles<'_> {
    fn open(&self, kind: FileKind, name: &str) -> Result<Arc<FramedFile>> {
        match (self.records.get(name), self.opened.get(name)) {
            (Some(record), Some(file)) if record.kind == kind => Ok(Arc::clone(file)),
            _ => {
                let what = format!("there is no file {name}");
                Err(anden_base::Error::corrupt(&self.path.join(names::MANIFEST), 0, what).into())
            }
        }
    }

    /// Opens the columns of vertex properties, or takes them from `old`.
    fn open_columns(&self, old: Option<&PublishedState>) -> Result<Vec<VertexColumn>> {
        let known = old.map_or(&[][..], |old| &old.columns[..]);
        let open = |(column, record): (usize, &PropertyRecord)| {
            let same =
                known.iter().find(|column| column.record.file == record.file).and_then(|column| column.file.clone());
            let file = match (record.file, same) {
                (None, _) => None,
                (Some(_), Some(file)) => Some(file),
                (Some(number), None) => {
                    let file = self.open(FileKind::Column, &names::column(number))?;
                    Some(Arc::new(ColumnFile::open(&file)?))
                }
            };
            let expected = (column as u32, record.property_type);
            // A column counts its rows by id, so it has no row numbers.
            if file.as_ref().is_some_and(|file| file.row_ends().is_some() || !file.columns().eq([expected])) {
                let what = format!("the column {column} of type {} expected, others found", record.property_type);
                let path = self.path.join(names::column(record.file.unwrap_or(0)));
                return Err(anden_base::Error::corrupt(&path, 0, what).into());
            }
            let index = record.index.as_ref().map(|index| self.open_index(index, old)).transpose()?;
            Ok(VertexColumn { record: record.clone(), file, index })
        };
        self.manifest.properties.iter().enumerate().map(open).collect()
    }

    /// Opens the parts of an index, or takes them from `old`.
    fn open_index(&self, record: &IndexRecord, old: Option<&PublishedState>) -> Result<VertexIndex> {
        let known = old.into_iter().flat_map(|old| &*old.columns).filter_map(|column| column.index.as_ref());
        let known: Vec<&(u32, Arc<IndexPart>)> = known.flat_map(|index| &index.parts).collect();
        let open = |&number: &u32| match known.iter().find(|(known, _)| *known == number) {
            Some((_, part)) => Ok((number, Arc::clone(part))),
            None => Ok((number, Arc::new(IndexPart::open(&*self.open(FileKind::Index, &names::index(number))?)?))),
        };
        let parts = record.parts.iter().map(open).collect::<Result<_>>()?;
        Ok(VertexIndex { kind: record.kind, parts })
    }

    /// Opens the parts of the rows of edges, or takes them from `old`.
    fn open_rows(&self, old: Option<&PublishedState>) -> Result<EdgeColumns> {
        let known = old.map_or(&[][..], |old| &old.rows.parts[..]);
        let mut parts = Vec::new();
        for &number in &self.manifest.rows {
            let part = match known.iter().find(|(known, _)| *known == number) {
                Some((_, part)) => Arc::clone(part),
                None => Arc::new(ColumnFile::open(&*self.open(FileKind::Rows, &names::rows(number))?)?),
            };
            parts.push((number, part));
        }
        let rows = EdgeColumns { records: self.manifest.edge_properties.clone(), parts };
        match rows.fault(self.manifest.next_row) {
            None => Ok(rows),
            Some((place, what)) => {
                let name = rows.parts.get(place).map_or(names::MANIFEST.to_owned(), |(number, _)| names::rows(*number));
                Err(anden_base::Error::corrupt(&self.path.join(name), 0, what).into())
            }
        }
    }

    fn open_direction(&self, direction: Direction) -> Result<AdjacencyFiles> {
        let column = |kind| self.open(kind, &names::base(self.manifest.base, base_writer::column_name(kind)));
        let options = &self.manifest.created.options;
        Ok(AdjacencyFiles {
            table: column(FileKind::table(direction))?,
            targets: column(FileKind::targets(direction))?,
            weights: match options.weight_type {
                Some(weight_type) => Some((column(FileKind::weights(direction))?, weight_type)),
                None => None,
            },
            rows: options.has_rows().then(|| column(FileKind::rows(direction))).transpose()?,
        })
    }

    fn open_base(&self, patch_bytes: u64) -> Result<Arc<OpenBase>> {
        let (options, chain) = (&self.manifest.created.options, &self.manifest.chain);
        let Some(anchor) = chain.version(chain.anchor) else {
            let what = "the base is of no version";
            return Err(anden_base::Error::corrupt(&self.path.join(names::MANIFEST), 0, what).into());
        };
        let out_files = self.open_direction(Direction::Out)?;
        let in_files = options.stores_in_lists().then(|| self.open_direction(Direction::In)).transpose()?;
        let rules = ListRules { vertex_bound: anchor.vertex_bound as usize, multigraph: options.multigraph };
        let base = OpenBase::open(&out_files, in_files.as_ref(), rules, patch_bytes)?;
        if base.num_arcs() != anchor.num_arcs {
            let what = format!("{} targets expected, {} found", anchor.num_arcs, base.num_arcs());
            return Err(out_files.targets.corrupt(what));
        }
        Ok(base)
    }
}

/// Default memory for patched pages, in bytes.
fn patch_bytes() -> u64 {
    anden_base::memory::available() / PATCH_SHARE
}

pub(super) fn read_manifest(storage: &dyn Storage, path: &Path) -> Result<Vec<u8>> {
    Ok(storage.read_copy(&path.join(names::MANIFEST))?)
}

/// Opens all files of a manifest, or takes them from `old` or from an earlier attempt.
fn open_files(
    storage: &dyn Storage,
    path: &Path,
    manifest: &Manifest,
    old: Option<&PublishedState>,
    opened: &mut OpenFiles,
) -> Result<()> {
    // Open files are found by name from here on, so the manifest must follow `old`.
    if old.is_some_and(|old| !old.precedes(manifest)) {
        return Err(Error::Replaced { path: path.to_owned() });
    }
    // Files that the new manifest does not name stay in `before`, and are closed.
    let mut before = std::mem::take(opened);
    for record in manifest.files.iter().filter(|record| record.kind != FileKind::Preparation) {
        let known = old.and_then(|old| old.files.get(&record.name)).cloned().or_else(|| before.remove(&record.name));
        let file = match known.filter(|file| is_of(file, record)) {
            Some(file) => file,
            None => match open_file(storage, path, manifest.created.id, record) {
                Ok(file) => Arc::new(file),
                Err(error) => {
                    // The next attempt also takes over the files that this one did not reach.
                    opened.extend(before);
                    return Err(error);
                }
            },
        };
        opened.insert(record.name.clone(), file);
    }
    Ok(())
}

/// Whether an open file is the one that the manifest means.
fn is_of(file: &FramedFile, record: &FileRecord) -> bool {
    (file.len(), file.header_crc()) == (record.len, record.header_crc)
}

/// Opens a file, and compares it with its record in the manifest.
pub(crate) fn open_file(
    storage: &dyn Storage,
    directory: &Path,
    id: DatabaseId,
    record: &FileRecord,
) -> Result<FramedFile> {
    let file = FramedFile::open(storage, &directory.join(&record.name), record.kind, id)?;
    // Equal names do not suffice: an operator may have copied another file here.
    match is_of(&file, record) {
        true => Ok(file),
        false => Err(file.corrupt("the file is not the one that the manifest names")),
    }
}
