//! Saves what can be read of a damaged store, in a new one. The damaged store is only read.
//!
//! If the files of the newest version are whole, they are copied, with those of all older versions that deltas still
//! lead to. Otherwise the newest version with readable deltas is read page by page, and becomes the only one.
//!
//! Nothing is guessed: everything that is saved was verified by its checksums, and the new store is verified as a
//! whole.

mod keys;
mod lists;
mod loss;
mod values;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anden_base::bitmap::Bitmap;
use anden_base::parallel::Pool;
use anden_base::progress::Progress;
use anden_base::storage::{AppendedFile, Storage};
use anden_graph::{Direction, GraphKind};

use self::keys::SavedKeys;
use self::lists::{SavedLists, WrittenLists};
use self::loss::{lost_snapshots, ranges};
use self::values::{SavedValues, write_column, write_rows};
use crate::base::read_dead;
use crate::base_writer::{BaseWriter, column_name};
use crate::builder::{RestoredStore, StoreRestorer};
use crate::chain::{Chain, ChainVersion, DeltaRef};
use crate::changes::ApplyDirection;
use crate::delta::{Delta, DeltaFile};
use crate::file::{FileKind, FramedFile, SectionKind, WrittenFile};
use crate::manifest::{FileRecord, Manifest};
use crate::options::DatabaseId;
use crate::store::{Store, is_database, no_database, open_file};
use crate::table::PAGE_VERTICES;
use crate::{Error, Result, names};

pub use loss::{Loss, VertexSpan};

/// A store to read what is left of it. Only its manifest must be whole.
#[derive(Debug)]
pub struct DamagedStore {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    manifest: Manifest,
    manifest_bytes: Vec<u8>,
}

/// A store that was made from a damaged one, and is not published yet.
#[derive(Debug)]
pub struct RepairedStore {
    /// The new store.
    pub restored: RestoredStore,
    /// What is not in it.
    pub losses: Vec<Loss>,
    /// Whether the commits behind the newest snapshot can follow it: its newest version is that of the damaged store,
    /// perhaps without some edges, and all ids mean the vertices that they meant.
    pub goes_on: bool,
}

/// The version that is read page by page.
struct ReadableVersion {
    version: ChainVersion,
    /// The deltas that lead to it from the base.
    steps: Vec<(Delta, ApplyDirection)>,
}

/// The vertices of a version.
struct SavedVertices {
    /// Removed ones, and those whose keys are lost.
    dead: Bitmap,
    losses: Vec<Loss>,
}

impl DamagedStore {
    /// Reads the manifest of the store at `path`.
    ///
    /// # Errors
    /// The manifest is missing, damaged, or of another format version; the disk failed.
    pub fn open(storage: &dyn Storage, path: &Path) -> Result<Self> {
        let storage = storage.open_dir(path)?;
        let manifest_path = path.join(names::MANIFEST);
        if !is_database(&*storage, path)? {
            return Err(no_database(&*storage, path)?);
        }
        let manifest_bytes = storage.read_copy(&manifest_path)?;
        let mut manifest = Manifest::decode(&manifest_bytes, &manifest_path)?;
        // Kernels prepare their forms again.
        manifest.preparations.clear();
        manifest.files.retain(|file| file.kind != FileKind::Preparation);
        Ok(Self { storage, path: path.to_owned(), manifest, manifest_bytes })
    }

    /// The storage that holds the directory.
    pub fn storage(&self) -> &dyn Storage {
        &*self.storage
    }

    /// Id of the database.
    pub fn id(&self) -> DatabaseId {
        self.manifest.created.id
    }

    /// Epoch of the last commit in the newest version.
    pub fn epoch(&self) -> u64 {
        self.manifest.epoch
    }

    /// Refuses a store that another process has changed since its manifest was read.
    ///
    /// # Errors
    /// It was changed; the disk failed.
    pub fn require_unchanged(&self) -> Result<()> {
        let manifest_path = self.path.join(names::MANIFEST);
        match self.storage.read_copy(&manifest_path)? == self.manifest_bytes {
            true => Ok(()),
            false => Err(Error::Input(format!(
                "cannot repair {}: another process wrote it meanwhile; stop the writer",
                self.path.display()
            ))),
        }
    }

    /// Makes a store at `to` of everything that can be read.
    ///
    /// Memory: a bit a vertex. If files of the newest version are damaged: the entries of damaged pages, a column of a
    /// property, the row numbers, and all keys if some are damaged.
    ///
    /// # Errors
    /// `to` exists, or is in the directory of a database; nothing can be read; the disk of the new store failed; cancellation.
    pub fn repair(
        &self,
        storage: &Arc<dyn Storage>,
        to: &Path,
        pool: &Pool,
        progress: &dyn Progress,
    ) -> Result<RepairedStore> {
        let outside = to.parent().unwrap_or(to);
        if storage.exists(&outside.join(names::MANIFEST))? {
            let what = format!("cannot repair to {}: {} is a database", to.display(), outside.display());
            return Err(Error::Input(what));
        }
        let mut restorer = Store::restore(Arc::clone(storage), to)?;
        let damaged = self.damaged_files(pool, progress)?;
        if let Some((manifest, losses)) = self.whole_versions(&damaged) {
            match self.copy(restorer, manifest, pool, progress) {
                Ok(restored) => return Ok(RepairedStore { restored, losses, goes_on: true }),
                Err(error) if is_damage(&error) => {
                    tracing::warn!(path = %self.path.display(), %error, "the files are whole and do not fit together");
                }
                Err(error) => return Err(error),
            }
            restorer = Store::restore(Arc::clone(storage), to)?;
        }
        self.read_pages(restorer, &damaged, pool, progress)
    }

    /// Names of the files that are not whole.
    fn damaged_files(&self, pool: &Pool, progress: &dyn Progress) -> Result<HashSet<String>> {
        progress.stage("verifying", Some(self.manifest.num_file_bytes()));
        let mut damaged = HashSet::new();
        for record in &self.manifest.files {
            progress.check()?;
            let verified = self.open_record(record).and_then(|file| file.verify(pool));
            if let Err(error) = verified {
                tracing::warn!(path = %self.path.display(), %error, "found damage");
                damaged.insert(record.name.clone());
            }
            progress.advance(record.len);
        }
        Ok(damaged)
    }

    /// The manifest of the versions whose files are whole, and the losses. `None` if the newest version is damaged.
    fn whole_versions(&self, damaged: &HashSet<String>) -> Option<(Manifest, Vec<Loss>)> {
        let mut manifest = self.manifest.clone();
        let mut losses = drop_indexes(&mut manifest, damaged);
        let is_spared = |file: &FileRecord| matches!(file.kind, FileKind::Delta | FileKind::Index);
        if manifest.files.iter().any(|file| !is_spared(file) && damaged.contains(&file.name)) {
            return None;
        }
        let chain = &mut manifest.chain;
        let is_lost = |delta: DeltaRef| damaged.contains(&names::delta(delta.file));
        let is_cut = |version: &ChainVersion| version.delta.is_some_and(is_lost);
        let anchor = chain.index(chain.anchor)?;
        if chain.versions[anchor + 1..].iter().any(is_cut) {
            return None;
        }
        // Versions before the base are read backward, up to the first damaged delta.
        let oldest = (1..=anchor).rev().find(|&index| is_cut(&chain.versions[index])).unwrap_or(0);
        chain.versions.drain(..oldest);
        if oldest > 0 {
            chain.versions[0].delta = None;
            if chain.kept().next().is_none() {
                chain.versions.last_mut()?.is_kept = true;
            }
            let first_kept = chain.versions.iter_mut().find(|version| version.is_kept)?;
            (first_kept.num_added, first_kept.num_removed) = (first_kept.num_edges, 0);
        }
        let first = chain.versions[0].number;
        chain.merged_deltas.retain(|merged| merged.from >= first && !is_lost(merged.delta));
        let needed = manifest.needed_files();
        manifest.files.retain(|file| needed.contains_key(&file.name));
        losses.extend(lost_snapshots(&self.manifest, &manifest));
        Some((manifest, losses))
    }

    /// Copies the files of a manifest.
    fn copy(
        &self,
        mut restorer: StoreRestorer,
        manifest: Manifest,
        pool: &Pool,
        progress: &dyn Progress,
    ) -> Result<RestoredStore> {
        progress.stage("copying", Some(manifest.num_file_bytes()));
        for record in &manifest.files {
            self.copy_file(&mut restorer, record, pool, progress)?;
        }
        progress.stage("verifying", None);
        restorer.finish_as(manifest, pool)
    }

    fn copy_file(
        &self,
        restorer: &mut StoreRestorer,
        record: &FileRecord,
        pool: &Pool,
        progress: &dyn Progress,
    ) -> Result<()> {
        let scratch = restorer.scratch(&record.name);
        let mut copy = AppendedFile::new(restorer.storage().create(&scratch)?);
        self.open_record(record)?.copy(&mut |part| {
            progress.check()?;
            progress.advance(part.len() as u64);
            Ok(copy.append(part)?)
        })?;
        drop(copy);
        restorer.place_record(self.id(), record, &scratch, &self.path.join(&record.name), pool)
    }

    /// Makes a store of the newest version that can be read, page by page.
    fn read_pages(
        &self,
        restorer: StoreRestorer,
        damaged: &HashSet<String>,
        pool: &Pool,
        progress: &dyn Progress,
    ) -> Result<RepairedStore> {
        let readable = self.newest_readable()?;
        let bound = self.manifest.chain.newest().vertex_bound as usize;
        progress.stage("saving lists", None);
        let keys = SavedKeys::read(self, bound);
        let lists = SavedLists::read(self, &readable.steps, bound, progress)?;
        let values = SavedValues::open(self, &readable.steps, (readable.version.number, bound))?;
        let SavedVertices { dead, mut losses } = self.saved_vertices(&readable, &keys, &lists, &values)?;
        losses.extend(self.lost_edges(&readable, &keys, &lists)?);
        let is_newest = readable.version.number == self.manifest.chain.newest().number;
        let (manifest, next_file) = (self.manifest.clone(), self.manifest.next_file);
        let mut new = NewFiles { store: self, damaged, restorer, manifest, next_file, losses };
        let written = new.write_base(&lists, &dead, progress)?;
        new.write_keys(&keys)?;
        new.write_columns(&values, &keys, &dead)?;
        new.write_rows(&written.rows)?;
        let NewFiles { mut restorer, mut manifest, next_file, mut losses, .. } = new;
        losses.extend(drop_indexes(&mut manifest, damaged));
        manifest.next_file = next_file;
        let num_edges = match manifest.created.options.graph_kind {
            GraphKind::Directed => written.num_arcs,
            GraphKind::Undirected => (written.num_arcs + written.num_loops) / 2,
        };
        let version = ChainVersion {
            is_kept: true,
            // The clock and the numbers of rows never go back, although an older version is saved.
            epoch: manifest.epoch,
            next_row: manifest.next_row,
            vertex_bound: bound as u64,
            num_vertices: (bound - dead.count_ones()) as u64,
            num_edges,
            num_arcs: written.num_arcs,
            num_added: num_edges,
            num_removed: 0,
            delta: None,
            ..readable.version
        };
        manifest.chain = Chain { anchor: version.number, versions: vec![version], merged_deltas: Vec::new() };
        losses.extend(lost_snapshots(&self.manifest, &manifest));
        // Files that were not written anew are copied.
        let needed = manifest.needed_files();
        for record in self.manifest.files.iter().filter(|file| needed.contains_key(&file.name)) {
            self.copy_file(&mut restorer, record, pool, progress)?;
        }
        progress.stage("verifying", None);
        let goes_on = is_newest && keys.lost.count_ones() == 0;
        Ok(RepairedStore { restored: restorer.finish_as(manifest, pool)?, losses, goes_on })
    }

    /// The newest version to which readable deltas lead from the base.
    fn newest_readable(&self) -> Result<ReadableVersion> {
        let options = &self.manifest.created.options;
        let mut files: HashMap<u32, Option<DeltaFile>> = HashMap::new();
        for delta in self.manifest.chain.delta_refs() {
            let open = || {
                let file = self.open_file(FileKind::Delta, &names::delta(delta.file)).ok()?;
                DeltaFile::open(&file, options).ok()
            };
            files.entry(delta.file).or_insert_with(open);
        }
        let can_be_read = |delta: &Delta| {
            delta.pages(Direction::Out).is_ok() || options.stores_in_lists() && delta.pages(Direction::In).is_ok()
        };
        let unmerged = Chain { merged_deltas: Vec::new(), ..self.manifest.chain.clone() };
        for version in self.manifest.chain.versions.iter().rev() {
            for chain in [&self.manifest.chain, &unmerged] {
                let steps = chain.steps(version.number).into_iter();
                let steps: Option<Vec<_>> = steps
                    .map(|(place, sense)| {
                        let delta = files.get(&place.file)?.as_ref()?.deltas().get(place.index as usize)?;
                        can_be_read(delta).then(|| (delta.clone(), sense))
                    })
                    .collect();
                if let Some(steps) = steps {
                    return Ok(ReadableVersion { version: version.clone(), steps });
                }
            }
        }
        Err(Error::Input("the base is of no version".into()))
    }

    /// Decides which vertices exist.
    fn saved_vertices(
        &self,
        readable: &ReadableVersion,
        keys: &SavedKeys,
        lists: &SavedLists<'_>,
        values: &SavedValues,
    ) -> Result<SavedVertices> {
        let (bound, mut losses) = (keys.lost.len(), Vec::new());
        let mut dead = match self.dead(readable, bound) {
            Some(dead) => dead,
            None => {
                // A vertex with an edge or a value exists. The others may have been removed.
                let mut live = lists.touched()?;
                for (number, record) in (0..).zip(&self.manifest.properties) {
                    let column = values.column(number, record.property_type)?.values;
                    (0..bound).filter(|&vertex| !column.get(vertex).is_null()).for_each(|vertex| live.set(vertex));
                }
                let mut dead = Bitmap::new(bound);
                (0..bound).filter(|&vertex| !live.get(vertex)).for_each(|vertex| dead.set(vertex));
                let num_live = (bound - dead.count_ones()) as u64;
                if num_live < readable.version.num_vertices {
                    losses.push(Loss::Vertices { num_vertices: readable.version.num_vertices - num_live });
                }
                dead
            }
        };
        let without_key = keys.lost.iter_ones().filter(|&vertex| !dead.get(vertex)).map(|vertex| vertex as u32);
        for (first, last) in ranges(without_key) {
            losses.push(Loss::Keys { vertices: VertexSpan { first, last, keys: None } });
        }
        keys.lost.iter_ones().for_each(|vertex| dead.set(vertex));
        Ok(SavedVertices { dead, losses })
    }

    /// The removed vertices of a version, as bits; `None` if they cannot be read.
    fn dead(&self, ReadableVersion { version, steps }: &ReadableVersion, bound: usize) -> Option<Bitmap> {
        let mut dead = Bitmap::new(bound);
        if version.num_vertices < version.vertex_bound {
            let table = self.open_base_file(FileKind::table(Direction::Out)).ok()?;
            if table.optional_section(SectionKind::DeadVertices).is_some() {
                let anchor_bound = self.anchor().vertex_bound as usize;
                let of_base = read_dead(&table, anchor_bound).ok()?;
                of_base.unverified().iter().for_each(|&vertex| dead.set(vertex as usize));
            }
            for (delta, sense) in steps {
                let (died, returned) = match sense {
                    ApplyDirection::Forward => (delta.died().ok()?, delta.returned().ok()?),
                    ApplyDirection::Backward => (delta.returned().ok()?, delta.died().ok()?),
                };
                died.iter().for_each(|&vertex| dead.set(vertex as usize));
                returned.iter().for_each(|&vertex| dead.unset(vertex as usize));
            }
        }
        // Ids from the bound on belong to vertices of later versions.
        (version.vertex_bound as usize..bound).for_each(|vertex| dead.set(vertex));
        Some(dead)
    }

    fn lost_edges(&self, readable: &ReadableVersion, keys: &SavedKeys, lists: &SavedLists<'_>) -> Result<Vec<Loss>> {
        if lists.num_arcs()? == readable.version.num_arcs {
            return Ok(Vec::new());
        }
        let bound = readable.version.vertex_bound as usize;
        let of = |pages: Range<usize>| {
            let last = (pages.end * PAGE_VERTICES).min(bound).checked_sub(1)?;
            let first = pages.start * PAGE_VERTICES;
            (first <= last).then(|| span(keys, (first as u32, last as u32)))
        };
        let edges = |(from, to): lists::LostPages| match to {
            Some(to) => Some(Loss::Edges { from: of(from)?, to: Some(of(to)?) }),
            None => Some(Loss::Edges { from: of(from)?, to: None }),
        };
        Ok(lists.lost_pages().into_iter().filter_map(edges).collect())
    }

    /// The version of the base.
    fn anchor(&self) -> &ChainVersion {
        let chain = &self.manifest.chain;
        chain.version(chain.anchor).unwrap_or_else(|| chain.newest())
    }

    fn open_base_file(&self, kind: FileKind) -> Result<Arc<FramedFile>> {
        self.open_file(kind, &names::base(self.manifest.base, column_name(kind)))
    }

    fn open_file(&self, kind: FileKind, name: &str) -> Result<Arc<FramedFile>> {
        let record = self.manifest.files.iter().find(|record| record.kind == kind && record.name == name);
        let record = record.ok_or_else(|| Error::Input(format!("there is no file {name}")))?;
        self.open_record(record).map(Arc::new)
    }

    fn open_record(&self, record: &FileRecord) -> Result<FramedFile> {
        open_file(&*self.storage, &self.path, self.id(), record)
    }
}

/// The files that a repair writes, and their manifest.
struct NewFiles<'a> {
    store: &'a DamagedStore,
    /// Names of the files that are not whole.
    damaged: &'a HashSet<String>,
    restorer: StoreRestorer,
    manifest: Manifest,
    next_file: u32,
    losses: Vec<Loss>,
}

impl NewFiles<'_> {
    fn number(&mut self) -> u32 {
        self.next_file += 1;
        self.next_file - 1
    }

    /// Gives a written file its name. Returns its number, or `None` without a file.
    fn add(&mut self, number: u32, file: Option<WrittenFile>) -> Result<Option<u32>> {
        file.map(|file| self.restorer.add(&file).map(|()| number)).transpose()
    }

    fn write_base(&mut self, lists: &SavedLists<'_>, dead: &Bitmap, progress: &dyn Progress) -> Result<WrittenLists> {
        self.manifest.base = self.number();
        let (options, bound) = (&self.manifest.created.options, dead.len());
        let (storage, path, id) = (self.restorer.storage(), self.restorer.path(), self.restorer.id());
        let writer = BaseWriter::create(&**storage, path, options, id, bound, self.manifest.base)?;
        let written = lists.write(&writer, dead, progress)?;
        let dead: Vec<u32> = dead.iter_ones().map(|vertex| vertex as u32).collect();
        let base = writer.finish_with_dead(&dead)?;
        base.files.iter().try_for_each(|file| self.restorer.add(file))?;
        Ok(written)
    }

    /// Writes all keys, if some of their files are damaged.
    fn write_keys(&mut self, keys: &SavedKeys) -> Result<()> {
        if self.manifest.dictionary.iter().any(|&number| self.damaged.contains(&names::dictionary(number))) {
            let number = self.number();
            let file = keys.write(&self.restorer, number)?;
            self.manifest.dictionary = self.add(number, file)?.into_iter().collect();
        }
        Ok(())
    }

    fn write_columns(&mut self, values: &SavedValues, keys: &SavedKeys, dead: &Bitmap) -> Result<()> {
        for column in 0..self.manifest.properties.len() {
            let number = self.number();
            let record = &self.manifest.properties[column];
            let saved = values.column(column as u32, record.property_type)?;
            let lost = saved.lost.iter_ones().filter(|&vertex| !dead.get(vertex));
            for range in ranges(lost.map(|vertex| vertex as u32)) {
                self.losses.push(Loss::Values { property: record.name.clone(), vertices: span(keys, range) });
            }
            let file = write_column(&self.restorer, number, (column as u32, record), &saved.values, dead)?;
            self.manifest.properties[column].file = self.add(number, file)?;
        }
        Ok(())
    }

    /// Writes the rows that lists name, if some of their files are damaged.
    fn write_rows(&mut self, rows: &[u64]) -> Result<()> {
        if self.manifest.rows.iter().any(|&number| self.damaged.contains(&names::rows(number))) {
            let number = self.number();
            let (file, losses) = write_rows(self.store, &self.restorer, number, rows)?;
            self.manifest.rows = self.add(number, file)?.into_iter().collect();
            self.losses.extend(losses);
        }
        Ok(())
    }
}

/// Vertices with their keys.
fn span(keys: &SavedKeys, (first, last): (u32, u32)) -> VertexSpan {
    VertexSpan { first, last, keys: keys.key(first).zip(keys.key(last)) }
}

/// Leaves out the indexes with damaged files.
fn drop_indexes(manifest: &mut Manifest, damaged: &HashSet<String>) -> Vec<Loss> {
    let mut losses = Vec::new();
    for record in &mut manifest.properties {
        let is_damaged = |&part: &u32| damaged.contains(&names::index(part));
        if record.index.take_if(|index| index.parts.iter().any(is_damaged)).is_some() {
            losses.push(Loss::Index { property: record.name.clone() });
        }
    }
    losses
}

/// Whether an error says that bytes are not what they should be.
fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Base(anden_base::Error::Corrupt { .. }))
}
