//! What a reader sees: a manifest, and the files that it names, open.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use base::storage::Storage;

use crate::base_run::{BaseRun, SideFiles};
use crate::chain::{LevelRef, Version};
use crate::dictionary::Dictionary;
use crate::file::{FileKind, FramedFile};
use crate::level::{Level, LevelFile};
use crate::lists::ListRules;
use crate::manifest::{FileRecord, Manifest};
use crate::property::{
    ColumnFile, EdgeColumns, IndexPart, IndexRecord, PropertyRecord, StoredProperties, StoredRows, VertexColumn,
    VertexIndex,
};
use crate::side::Sense;
use crate::store::WriterLock;
use crate::view::{View, ViewParts};
use crate::{Error, Result, names, run};

/// How often a reader tries to open files that a writer removes meanwhile.
const MAX_ATTEMPTS: usize = 1000;

/// Files by name.
type OpenFiles = HashMap<String, Arc<FramedFile>>;

/// A database as it was published at one moment. Everything is open, so that nobody can take it away.
#[derive(Debug)]
pub(crate) struct State {
    pub manifest: Manifest,
    /// The bytes of the manifest.
    pub manifest_bytes: u64,
    pub base: Arc<BaseRun>,
    pub dictionary: Arc<Dictionary>,
    /// The properties of vertices.
    pub columns: Arc<Vec<VertexColumn>>,
    /// The properties of edges.
    pub rows: Arc<EdgeColumns>,
    /// All files, by name.
    pub files: OpenFiles,
    level_files: HashMap<u32, Arc<LevelFile>>,
    newest: Mutex<Option<View>>,
}

impl State {
    /// Reads the manifest and opens what it names.
    ///
    /// # Errors
    /// Something is missing, damaged, or does not fit together.
    pub fn read(storage: &dyn Storage, path: &Path) -> Result<Self> {
        let bytes = read_manifest(storage, path)?;
        let manifest = Manifest::decode(&bytes, &path.join(names::MANIFEST))?;
        Self::open(storage, path, manifest, bytes.len() as u64, None)
    }

    /// As [`read`](Self::read), for the writer, whose lock learns the manifest.
    pub fn read_locked(storage: &dyn Storage, path: &Path, lock: &WriterLock) -> Result<Self> {
        let manifest_path = path.join(names::MANIFEST);
        // A file that changes after this has another stamp.
        let stamp = storage.stamp(&manifest_path)?;
        let bytes = read_manifest(storage, path)?;
        let manifest = Manifest::decode(&bytes, &manifest_path)?;
        lock.know_manifest(stamp, &bytes);
        Self::open(storage, path, manifest, bytes.len() as u64, None)
    }

    /// As [`read`](Self::read), while a writer may publish: where a file is gone, there is a newer manifest that does
    /// not name it.
    pub fn read_beside_writer(storage: &dyn Storage, path: &Path) -> Result<Self> {
        Self::read_whole(storage, path, read_manifest(storage, path)?, None)
    }

    /// As [`read_beside_writer`](Self::read_beside_writer); takes over from `old` what is the same. `None` where the
    /// manifest is that of `old`.
    ///
    /// # Errors
    /// As [`read`](Self::read); [`Error::Replaced`] where `old` is of another database, or younger.
    pub fn read_newer(storage: &dyn Storage, path: &Path, old: &Self) -> Result<Option<Self>> {
        let bytes = read_manifest(storage, path)?;
        if Manifest::decode(&bytes, &path.join(names::MANIFEST))? == old.manifest {
            return Ok(None);
        }
        Self::read_whole(storage, path, bytes, Some(old)).map(Some)
    }

    /// Opens what a manifest names; where a file is gone, what the next one does. Files that were opened stay open: names
    /// are never given twice, so each attempt opens only what the writer published since the one before. A reader that
    /// began anew each time would never catch up with a fast writer.
    fn read_whole(storage: &dyn Storage, path: &Path, mut bytes: Vec<u8>, old: Option<&Self>) -> Result<Self> {
        let manifest_path = path.join(names::MANIFEST);
        let (mut opened, mut num_attempts) = (OpenFiles::new(), 0);
        loop {
            let manifest = Manifest::decode(&bytes, &manifest_path)?;
            num_attempts += 1;
            match open_files(storage, path, &manifest, old, &mut opened) {
                Err(Error::Base(error)) if error.io_kind() == Some(std::io::ErrorKind::NotFound) => {
                    let newer = read_manifest(storage, path)?;
                    if newer == bytes || num_attempts == MAX_ATTEMPTS {
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

    /// Opens what a manifest names.
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

    /// Reads what the files of a manifest say of each other.
    fn of_files(
        path: &Path,
        manifest: Manifest,
        manifest_bytes: u64,
        old: Option<&Self>,
        opened: OpenFiles,
    ) -> Result<Self> {
        let records = manifest.files.iter().map(|file| (&*file.name, file)).collect();
        let files = Files { path, records, manifest: &manifest, opened: &opened };
        let base = match old.filter(|old| old.manifest.run == manifest.run) {
            Some(old) => Arc::clone(&old.base),
            None => files.open_run(old.map_or_else(patch_bytes, |old| old.base.memory().limit()))?,
        };
        let mut level_files = HashMap::new();
        for LevelRef { file: number, .. } in manifest.chain.level_refs() {
            if level_files.contains_key(&number) {
                continue;
            }
            let file = match old.and_then(|old| old.level_files.get(&number)) {
                Some(file) => Arc::clone(file),
                None => {
                    let file = files.open(FileKind::Level, &names::level(number))?;
                    Arc::new(LevelFile::open(&file, &manifest.created.options)?)
                }
            };
            level_files.insert(number, file);
        }
        let known = old.map(|old| &*old.dictionary);
        let open = |number: u32| files.open(FileKind::Dictionary, &names::dictionary(number));
        let (scheme, num_keys) = (manifest.created.options.keys, manifest.chain.newest().vertex_bound);
        let dictionary = Arc::new(Dictionary::join(scheme, num_keys, &manifest.dictionary, known, open)?);
        let columns = Arc::new(files.open_columns(old)?);
        let rows = Arc::new(files.open_rows(old)?);
        let (newest, files) = (Mutex::new(None), opened);
        let state = Self { manifest, manifest_bytes, base, dictionary, columns, rows, files, level_files, newest };
        state.check_levels(path)?;
        Ok(state)
    }

    /// Whether `manifest`, with these files, can have become of this one: numbers never go back, and none is given to two
    /// files.
    fn precedes(&self, manifest: &Manifest) -> bool {
        let records: HashMap<&str, &FileRecord> = manifest.files.iter().map(|file| (&*file.name, file)).collect();
        let counters = |manifest: &Manifest| (manifest.next_file, manifest.next_number, manifest.epoch);
        let (old, new) = (counters(&self.manifest), counters(manifest));
        let same = |file: &FileRecord| records.get(&*file.name).is_none_or(|record| *record == file);
        self.manifest.created == manifest.created
            && old.0 <= new.0
            && old.1 <= new.1
            && old.2 <= new.2
            && self.manifest.files.iter().all(same)
    }

    /// Every level is there and leads from where to where the chain says.
    fn check_levels(&self, path: &Path) -> Result<()> {
        let chain = &self.manifest.chain;
        let check = |place: LevelRef, from: u32, to: u32| {
            let Some(level) = self.level_at(place) else {
                let what = format!("{} has no level {}", names::level(place.file), place.index);
                return Err(base::Error::corrupt(&path.join(names::MANIFEST), 0, what));
            };
            let vertex_bound = chain.version(to).map_or(0, |version| version.vertex_bound);
            if (level.from(), level.to(), level.vertex_bound() as u64) != (from, to, vertex_bound) {
                return Err(level.corrupt(format!(
                    "a level from version {from} to {to} with {vertex_bound} ids expected, one from {} to {} with {} \
                     found",
                    level.from(),
                    level.to(),
                    level.vertex_bound()
                )));
            }
            // The arcs of the base are counted; so no version has more than its files do.
            let num_arcs = |number| chain.version(number).map_or(0, |version| version.num_arcs);
            let (before, after, (added, removed)) = (num_arcs(from), num_arcs(to), level.num_arcs(graph::Side::Out));
            if before.checked_add(added).and_then(|sum| sum.checked_sub(removed)) != Some(after) {
                let what = format!(
                    "version {to}: {after} arcs found, where {before} of version {from}, {added} added and {removed} \
                     removed are expected"
                );
                return Err(base::Error::corrupt(&path.join(names::MANIFEST), 0, what));
            }
            match level.property_columns().last() {
                Some(last) if last as usize >= self.columns.len() => {
                    Err(level.corrupt(format!("column {last} changes, of {} in all", self.columns.len())))
                }
                _ => Ok(()),
            }
        };
        for pair in chain.versions.windows(2) {
            if let Some(place) = pair[1].level {
                check(place, pair[0].number, pair[1].number)?;
            }
        }
        chain.delta_runs.iter().try_for_each(|run| check(run.level, run.from, run.to))?;
        Ok(())
    }

    /// A level of an open file.
    pub fn level_at(&self, place: LevelRef) -> Option<&Level> {
        self.level_files.get(&place.file)?.levels().get(place.index as usize)
    }

    /// A level that the manifest names: it was there when the state was made.
    pub fn level(&self, place: LevelRef) -> &Level {
        self.level_at(place).expect("levels were looked at when they were opened")
    }

    /// All levels of a file that is open.
    pub fn levels_of(&self, file: u32) -> &[Level] {
        self.level_files.get(&file).map_or(&[], |file| file.levels())
    }

    /// The numbers of the files with levels, ascending.
    pub fn level_files(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = self.level_files.keys().copied().collect();
        numbers.sort_unstable();
        numbers
    }

    /// The levels after a version up to another.
    pub fn levels_between(&self, after: u32, last: u32) -> Vec<Level> {
        let places = self.manifest.chain.levels_between(after, last).into_iter();
        places.map(|place| self.level(place).clone()).collect()
    }

    /// A snapshot that users see.
    ///
    /// # Errors
    /// [`Error::NoSnapshot`].
    pub fn kept(&self, number: u32) -> Result<&Version> {
        let chain = &self.manifest.chain;
        chain
            .version(number)
            .filter(|version| version.is_kept)
            .ok_or_else(|| Error::NoSnapshot { number, existing: chain.kept().map(|version| version.number).collect() })
    }

    /// The newest version; all of these views are one.
    pub fn newest(&self, path: &Path) -> Result<View> {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let view = match &*newest {
            Some(view) => view.clone(),
            None => newest.insert(self.view(self.manifest.chain.newest().number, path)?).clone(),
        };
        graph::Graph::check(&view)?;
        Ok(view)
    }

    /// A version of the chain, kept or not.
    pub fn view(&self, number: u32, path: &Path) -> Result<View> {
        View::open(self.view_parts(number, path)?)
    }

    /// What a view of a version is made of.
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
            path: path.to_owned(),
        })
    }

    /// The properties of the vertices at a version.
    fn vertex_properties(&self, version: &Version) -> Result<Arc<StoredProperties>> {
        let (number, vertex_bound) = (version.number, version.vertex_bound as usize);
        let steps = if self.columns.is_empty() { Vec::new() } else { self.steps(number) };
        Ok(Arc::new(StoredProperties::new(&self.columns, &steps, number, vertex_bound)?))
    }

    /// What leads from the base run to a version.
    pub fn steps(&self, number: u32) -> Vec<(Level, Sense)> {
        let steps = self.manifest.chain.steps(number).into_iter();
        steps.map(|(place, sense)| (self.level(place).clone(), sense)).collect()
    }
}

/// The files of a manifest, open.
struct Files<'a> {
    path: &'a Path,
    records: HashMap<&'a str, &'a FileRecord>,
    manifest: &'a Manifest,
    opened: &'a OpenFiles,
}

/// Pages that levels change may take one in so many bytes of the memory that is free when the database is opened.
const PATCH_SHARE: u64 = 4;

impl Files<'_> {
    fn open(&self, kind: FileKind, name: &str) -> Result<Arc<FramedFile>> {
        match (self.records.get(name), self.opened.get(name)) {
            (Some(record), Some(file)) if record.kind == kind => Ok(Arc::clone(file)),
            _ => {
                let what = format!("there is no file {name}");
                Err(base::Error::corrupt(&self.path.join(names::MANIFEST), 0, what).into())
            }
        }
    }

    /// Opens the columns of properties; takes over from `old` what is the same.
    fn open_columns(&self, old: Option<&State>) -> Result<Vec<VertexColumn>> {
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
            if file.as_ref().is_some_and(|file| file.row_ends().is_some() || !file.columns().eq([expected])) {
                let what = format!("the column {column} of type {} expected, others found", record.property_type);
                let path = self.path.join(names::column(record.file.unwrap_or(0)));
                return Err(base::Error::corrupt(&path, 0, what).into());
            }
            let index = record.index.as_ref().map(|index| self.open_index(index, old)).transpose()?;
            Ok(VertexColumn { record: record.clone(), file, index })
        };
        self.manifest.properties.iter().enumerate().map(open).collect()
    }

    /// Opens the parts of an index; takes over from `old` those that it has.
    fn open_index(&self, record: &IndexRecord, old: Option<&State>) -> Result<VertexIndex> {
        let known = old.into_iter().flat_map(|old| &*old.columns).filter_map(|column| column.index.as_ref());
        let known: Vec<&(u32, Arc<IndexPart>)> = known.flat_map(|index| &index.parts).collect();
        let open = |&number: &u32| match known.iter().find(|(known, _)| *known == number) {
            Some((_, part)) => Ok((number, Arc::clone(part))),
            None => Ok((number, Arc::new(IndexPart::open(&*self.open(FileKind::Index, &names::index(number))?)?))),
        };
        let parts = record.parts.iter().map(open).collect::<Result<_>>()?;
        Ok(VertexIndex { kind: record.kind, parts })
    }

    /// Opens the rows of edges; takes over from `old` what is the same.
    fn open_rows(&self, old: Option<&State>) -> Result<EdgeColumns> {
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
                Err(base::Error::corrupt(&self.path.join(name), 0, what).into())
            }
        }
    }

    fn open_side(&self, side: graph::Side) -> Result<SideFiles> {
        let column = |kind| self.open(kind, &names::run(self.manifest.run, run::column_name(kind)));
        let options = &self.manifest.created.options;
        Ok(SideFiles {
            table: column(FileKind::table(side))?,
            targets: column(FileKind::targets(side))?,
            weights: match options.weight_type {
                Some(weight_type) => Some((column(FileKind::weights(side))?, weight_type)),
                None => None,
            },
            rows: options.has_rows().then(|| column(FileKind::rows(side))).transpose()?,
        })
    }

    fn open_run(&self, patch_bytes: u64) -> Result<Arc<BaseRun>> {
        let (options, chain) = (&self.manifest.created.options, &self.manifest.chain);
        let Some(anchor) = chain.version(chain.anchor) else {
            let what = "the base run is of no version";
            return Err(base::Error::corrupt(&self.path.join(names::MANIFEST), 0, what).into());
        };
        let out_files = self.open_side(graph::Side::Out)?;
        let in_files = options.stores_in_lists().then(|| self.open_side(graph::Side::In)).transpose()?;
        let rules = ListRules { vertex_bound: anchor.vertex_bound as usize, multigraph: options.multigraph };
        let base = BaseRun::open(&out_files, in_files.as_ref(), rules, patch_bytes)?;
        if base.num_arcs() != anchor.num_arcs {
            let what = format!("{} targets expected, {} found", anchor.num_arcs, base.num_arcs());
            return Err(out_files.targets.corrupt(what));
        }
        Ok(base)
    }
}

/// What pages that levels change may take unless somebody says.
fn patch_bytes() -> u64 {
    base::memory::available() / PATCH_SHARE
}

fn read_manifest(storage: &dyn Storage, path: &Path) -> Result<Vec<u8>> {
    Ok(storage.read_copy(&path.join(names::MANIFEST))?)
}

/// Opens all files that a manifest names; takes those over that `old` has or an attempt before opened.
fn open_files(
    storage: &dyn Storage,
    path: &Path,
    manifest: &Manifest,
    old: Option<&State>,
    opened: &mut OpenFiles,
) -> Result<()> {
    // A file that is open is known by its name from here on.
    if old.is_some_and(|old| !old.precedes(manifest)) {
        return Err(Error::Replaced { path: path.to_owned() });
    }
    let mut before = std::mem::take(opened);
    for record in &manifest.files {
        let known = old.and_then(|old| old.files.get(&record.name)).cloned().or_else(|| before.remove(&record.name));
        let file = match known.filter(|file| is_of(file, record)) {
            Some(file) => file,
            None => match open_file(storage, path, manifest, record) {
                Ok(file) => Arc::new(file),
                Err(error) => {
                    // The next attempt takes over those that were not looked at yet, too.
                    opened.extend(before);
                    return Err(error);
                }
            },
        };
        opened.insert(record.name.clone(), file);
    }
    Ok(())
}

/// Whether a file is the one that a manifest means.
fn is_of(file: &FramedFile, record: &FileRecord) -> bool {
    (file.len(), file.header_crc()) == (record.len, record.header_crc)
}

/// Opens a file that the manifest names, and compares it with what the manifest says of it.
fn open_file(storage: &dyn Storage, directory: &Path, manifest: &Manifest, record: &FileRecord) -> Result<FramedFile> {
    let file = FramedFile::open(storage, &directory.join(&record.name), record.kind, manifest.created.id)?;
    match is_of(&file, record) {
        true => Ok(file),
        false => Err(file.corrupt("the file is not the one that the manifest names")),
    }
}
