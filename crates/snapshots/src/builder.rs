//! Creates a database: all files are written first, and become visible together or never.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anden_base::storage::Storage;
use anden_graph::GraphKind;
use anden_graph::property::{PropertyColumn, PropertySchema, PropertyType};
use parking_lot::Mutex;

use crate::base_writer::{BaseWriter, FinishedBase};
use crate::chain::{Chain, ChainVersion};
use crate::dictionary::{DictionaryKeys, FinishedDictionary, PartFile, write_dictionary};
use crate::file::{FileKind, WrittenFile};
use crate::manifest::{Created, Manifest};
use crate::options::{GraphOptions, Identity, Retention, SnapshotTag};
use crate::property::{EdgeRecord, NewColumns, PropertyRecord, RowParts, RowRun, schema_of, write_columns};
use crate::store::{PublishedState, Store, WriterLock, give_name};
use crate::temp_file::TempFile;
use crate::{Error, Result, names};

mod deltas;
mod restore;

pub use deltas::{DeltasWriter, FinishedDeltas};
pub use restore::{RestoredStore, StoreRestorer};

/// Number of the base and of the dictionary part that a load writes.
const FIRST: u32 = 1;

/// A database under construction.
///
/// Nothing is visible before [`publish`](Self::publish). Dropping the builder before that removes files and directory.
/// The next attempt to create the database removes the remains of a crash.
#[derive(Debug)]
pub struct StoreBuilder {
    directory: UnpublishedDirectory,
    options: GraphOptions,
    identity: Identity,
    /// Property columns that were written.
    columns: Mutex<Vec<(PropertyRecord, WrittenFile, usize)>>,
    /// Rows of edges that were written.
    rows: Mutex<Option<BuiltRows>>,
}

/// Edge properties that were written.
#[derive(Debug)]
struct BuiltRows {
    records: Vec<EdgeRecord>,
    num_rows: u64,
    file: Option<WrittenFile>,
}

/// The directory of an unpublished database; removed with its files on drop.
#[derive(Debug)]
struct UnpublishedDirectory {
    /// Storage that the path leads from.
    outside: Arc<dyn Storage>,
    /// The open directory.
    storage: Arc<dyn Storage>,
    path: PathBuf,
    lock: Option<Arc<WriterLock>>,
    is_published: bool,
}

impl Store {
    /// Begins a new database; nothing is visible before [`StoreBuilder::publish`].
    ///
    /// # Errors
    /// [`Error::Exists`] if the place is taken, except by the remains of a failed attempt; another process creates this
    /// database; the disk failed.
    pub fn create(storage: Arc<dyn Storage>, path: &Path, options: GraphOptions) -> Result<StoreBuilder> {
        Self::create_as(storage, path, options, Identity::random())
    }

    /// As [`create`](Self::create), with a given identity, so that equal input gives equal bytes.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_as(
        storage: Arc<dyn Storage>,
        path: &Path,
        options: GraphOptions,
        identity: Identity,
    ) -> Result<StoreBuilder> {
        StoreBuilder::create(storage, path, options, identity)
    }
}

impl StoreBuilder {
    fn create(storage: Arc<dyn Storage>, path: &Path, options: GraphOptions, identity: Identity) -> Result<Self> {
        if options.ordered && options.graph_kind == GraphKind::Undirected {
            return Err(Error::Input("an ordered graph is directed: each edge leads to its larger end".into()));
        }
        let directory = UnpublishedDirectory::prepare(storage, path)?;
        Ok(Self { directory, options, identity, columns: Mutex::default(), rows: Mutex::default() })
    }

    /// The kind of graph.
    pub fn options(&self) -> &GraphOptions {
        &self.options
    }

    /// Begins the base of a graph with ids below `vertex_bound`. A database has one base.
    ///
    /// # Errors
    /// There are too many vertices, a base was begun before, or the disk failed.
    pub fn base_writer(&self, vertex_bound: usize) -> Result<BaseWriter> {
        let UnpublishedDirectory { storage, path, .. } = &self.directory;
        BaseWriter::create(&**storage, path, &self.options, self.identity.id, vertex_bound, FIRST)
    }

    /// Writes the keys of all vertices.
    ///
    /// Cost: checks order and uniqueness of the keys, then writes them once.
    ///
    /// # Errors
    /// The keys have another scheme than the graph, are out of order or not unique, or are not UTF-8; the disk failed.
    pub fn write_dictionary(&self, keys: DictionaryKeys<'_>) -> Result<FinishedDictionary> {
        let UnpublishedDirectory { storage, path, .. } = &self.directory;
        let (storage, directory) = (&**storage, &**path);
        let place = PartFile { storage, directory, id: self.identity.id, number: FIRST, first_id: 0 };
        write_dictionary(place, &keys, self.options.keys)
    }

    /// Writes the values of a vertex property of this type, by id; ids past the end have no value.
    ///
    /// # Errors
    /// The column has values of another type, the name is not valid, or another property has it; the disk failed.
    pub fn add_vertex_property(&self, name: &str, declared: PropertyType, column: &PropertyColumn) -> Result<()> {
        let mut columns = self.columns.lock();
        let number = FIRST + columns.len() as u32;
        let record = PropertyRecord { file: Some(number), ..PropertyRecord::new(name, declared, FIRST) };
        let records: Vec<_> = columns.iter().map(|(record, ..)| record).chain([&record]).cloned().collect();
        // Checked before the file is written: names must be valid and unique.
        schema_of(&records)?;
        let UnpublishedDirectory { storage, path, .. } = &self.directory;
        let types = [(number - FIRST, record.property_type)];
        let new = NewColumns {
            file_number: number,
            kind: FileKind::Column,
            runs: &[],
            num_rows: column.len() as u64,
            columns: &types,
        };
        let file = write_columns(&**storage, path, self.identity.id, new, &|_, take| take(column))?;
        columns.push((record, file, column.len()));
        Ok(())
    }

    /// Writes the properties of `num_rows` edges, by the rows that lists name. For a position in the schema, `parts`
    /// gives the rows of that property part by part, each time from the first row. A database has one set of rows.
    ///
    /// # Errors
    /// The graph has no edge properties by its options; a property has another number of rows; errors of `parts`; the
    /// disk failed.
    pub fn write_edge_rows(&self, schema: &PropertySchema, num_rows: u64, parts: &RowParts<'_>) -> Result<()> {
        if !self.options.has_rows() || !self.options.edge_properties && !schema.is_empty() {
            return Err(Error::Input("rows of properties of edges that have none".into()));
        }
        let columns: Vec<_> = (0..).zip(schema.iter()).map(|(number, (_, of))| (number, of.stored())).collect();
        let UnpublishedDirectory { storage, path, .. } = &self.directory;
        // A load numbers rows from 0, so one run covers all of them.
        let runs = [RowRun { number: 0, position: 0 }];
        let new = NewColumns { file_number: FIRST, kind: FileKind::Rows, runs: &runs, num_rows, columns: &columns };
        let write = || write_columns(&**storage, path, self.identity.id, new, parts);
        // Rows without values are not stored.
        let file = (num_rows > 0 && self.options.edge_properties).then(write).transpose()?;
        let record = |(name, declared): (&str, _)| EdgeRecord::new(name, declared, FIRST);
        let built = BuiltRows { records: schema.iter().map(record).collect(), num_rows, file };
        *self.rows.lock() = Some(built);
        Ok(())
    }

    /// Begins the deltas of a database with several snapshots, one for each but the first. The first snapshot has ids
    /// below `vertex_bound`.
    pub fn deltas_writer(&self, vertex_bound: usize) -> DeltasWriter {
        let UnpublishedDirectory { storage, path, .. } = &self.directory;
        let directory = path.clone();
        DeltasWriter::new(Arc::clone(storage), directory, self.options, self.identity.id, FIRST + 1, vertex_bound)
    }

    /// A scratch file in the database's directory, which is on the disk that must hold the result.
    ///
    /// # Errors
    /// A scratch file with this name exists, or the disk failed.
    pub fn temp_file(&self, name: &str) -> Result<TempFile> {
        let UnpublishedDirectory { storage, path, .. } = &self.directory;
        TempFile::create(storage, path, name)
    }

    /// Publishes the database with one snapshot, and opens it for writing.
    ///
    /// `num_edges` counts an undirected edge once. When this returns, the database survives a power cut.
    ///
    /// # Errors
    /// Base and dictionary do not fit together, the snapshot's name is not valid, or the disk failed; the database is
    /// then removed.
    pub fn publish<'a>(
        self,
        base: FinishedBase,
        dictionary: FinishedDictionary,
        num_edges: u64,
        tag: impl Into<SnapshotTag<'a>>,
    ) -> Result<Store> {
        self.publish_many(base, dictionary, num_edges, FinishedDeltas::none(), &[tag.into()])
    }

    /// Publishes the database with several snapshots, and opens it for writing. `base`, `dictionary` and `num_edges`
    /// belong to the newest snapshot. `deltas` lead from the first snapshot to the newest. `tags` has an entry for
    /// each.
    ///
    /// # Errors
    /// As [`publish`](Self::publish); the deltas do not lead to the graph of the base, by the numbers of vertices and
    /// edges.
    pub fn publish_many(
        mut self,
        base: FinishedBase,
        dictionary: FinishedDictionary,
        num_edges: u64,
        deltas: FinishedDeltas,
        tags: &[SnapshotTag<'_>],
    ) -> Result<Store> {
        self.check(&base, &dictionary, num_edges)?;
        let rows = std::mem::take(&mut self.rows).into_inner();
        let next_row = rows.as_ref().map_or(0, |rows| rows.num_rows);
        let newest = self.version_of(&base, num_edges, next_row);
        let columns = std::mem::take(&mut self.columns).into_inner();
        let next_file = deltas.next_file.max(FIRST + 1).max(FIRST + columns.len() as u32);
        let (versions, delta_files) = deltas.versions(newest, tags)?;
        let (UnpublishedDirectory { storage, path, outside, .. }, lock) = (&self.directory, self.directory.lock()?);
        lock.check()?;
        let mut files = Vec::new();
        let column_files = columns.iter().map(|(_, file, _)| file);
        let column_files = column_files.chain(rows.iter().filter_map(|rows| rows.file.as_ref()));
        for file in base.files.iter().chain(&dictionary.file).chain(&delta_files).chain(column_files) {
            files.push(give_name(&**storage, path, file)?);
        }
        remove_scratch(&**storage, path)?;
        // All names, and that of the directory, must be durable before the manifest refers to them.
        storage.sync_dir(path)?;
        outside.sync_dir(parent(path))?;
        let created = Created { id: self.identity.id, unix_time: self.identity.time(), options: self.options };
        let anchor = versions.len() as u32;
        let num_bytes = files.iter().map(|file| file.len).sum();
        let manifest = Manifest {
            created,
            next_number: anchor + 1,
            next_file,
            epoch: 0,
            bytes_loaded: num_bytes,
            bytes_written: num_bytes,
            retention: Retention::All,
            keep_wal: 0,
            files,
            base: FIRST,
            dictionary: dictionary.file.iter().map(|_| FIRST).collect(),
            properties: columns.into_iter().map(|(record, ..)| record).collect(),
            next_row,
            rows: rows.iter().filter_map(|rows| rows.file.as_ref()).map(|_| FIRST).collect(),
            edge_properties: rows.map_or(Vec::new(), |rows| rows.records),
            chain: Chain { versions, anchor, merged_deltas: Vec::new() },
            preparations: Vec::new(),
        };
        // The manifest gets its name last, after all files and their directory are synced. So a crash leaves no
        // half-written snapshot.
        lock.publish_manifest(&manifest.encode())?;

        let (state, storage) = (PublishedState::read(&**storage, path)?, Arc::clone(storage));
        self.directory.is_published = true;
        let lock = self.directory.lock.take();
        Ok(Store::with_state(storage, &self.directory.path, state, lock).with_unix_time(self.identity.unix_time))
    }

    /// The version of the base, without a name.
    fn version_of(&self, base: &FinishedBase, num_edges: u64, next_row: u64) -> ChainVersion {
        ChainVersion {
            number: 1,
            is_kept: true,
            name: None,
            unix_time: self.identity.time(),
            as_of: None,
            epoch: 0,
            next_row,
            vertex_bound: base.vertex_bound as u64,
            num_vertices: base.vertex_bound as u64,
            num_edges,
            num_arcs: base.num_arcs,
            num_added: num_edges,
            num_removed: 0,
            delta: None,
        }
    }

    fn check(&self, base: &FinishedBase, keys: &FinishedDictionary, num_edges: u64) -> Result<()> {
        let bad = |what: String| Err(Error::Input(what));
        let columns = self.columns.lock();
        if let Some((record, ..)) = columns.iter().find(|(.., num_rows)| *num_rows > base.vertex_bound) {
            return bad(format!("the property {:?} has more values than there are vertices", record.name));
        }
        if keys.num_keys != base.vertex_bound as u64 {
            return bad(format!("{} keys for {} vertices", keys.num_keys, base.vertex_bound));
        }
        if !self.options.can_have(num_edges, base.num_arcs) {
            return bad(format!("{num_edges} edges cannot have {} entries in lists", base.num_arcs));
        }
        Ok(())
    }
}

/// Removes what was written before the files got their names.
fn remove_scratch(storage: &dyn Storage, path: &Path) -> Result<()> {
    for scratch in storage.list(path)?.iter().filter(|name| name.starts_with(names::TEMPORARY)) {
        storage.remove_file(&path.join(scratch))?;
    }
    Ok(())
}

/// The directory that contains the last component of `path`.
fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

impl UnpublishedDirectory {
    /// Creates the directory, or takes over the remains of a failed attempt.
    fn prepare(outside: Arc<dyn Storage>, path: &Path) -> Result<Self> {
        let exists = || Error::Exists { path: path.to_owned() };
        let is_new = !outside.exists(path)?;
        if is_new {
            outside.create_dir(path).map_err(|error| match error.io_kind() {
                Some(std::io::ErrorKind::AlreadyExists) => exists(),
                _ => error.into(),
            })?;
        }
        let storage = match outside.open_dir(path) {
            Err(error) if error.io_kind() == Some(std::io::ErrorKind::NotADirectory) => return Err(exists()),
            storage => storage?,
        };
        // Another process may have put its own directory here meanwhile.
        if !is_leftover(&*storage, path) {
            return Err(exists());
        }
        // An existing directory is removed after an error only once it is known to be ours.
        let mut directory = Self { outside, storage, path: path.to_owned(), lock: None, is_published: !is_new };
        directory.lock = Some(Arc::new(WriterLock::take(Arc::clone(&directory.storage), path)?));
        // The lock file marks the remains of a crash as ours, so it must be durable before any other file.
        directory.storage.sync_dir(path)?;
        // Another holder of the lock may have published meanwhile.
        if !is_leftover(&*directory.storage, path) {
            directory.is_published = true;
            return Err(exists());
        }
        directory.is_published = false;
        directory.remove_files()?;
        Ok(directory)
    }

    /// The lock, which is held until the database is published.
    fn lock(&self) -> Result<&WriterLock> {
        self.lock.as_deref().ok_or_else(|| Error::ReadOnly { path: self.path.clone() })
    }

    /// Removes all files but the lock. The manifest goes first, so that a crash leaves no database with missing files.
    fn remove_files(&self) -> Result<()> {
        let manifest = self.path.join(names::MANIFEST);
        if self.storage.exists(&manifest)? {
            self.storage.remove_file(&manifest)?;
            self.storage.sync_dir(&self.path)?;
        }
        let list = self.storage.list(&self.path)?;
        if list.iter().any(|name| name == names::RESTORING) {
            for name in list.iter().filter(|name| names::is_log(name)) {
                self.storage.remove_file(&self.path.join(name))?;
            }
            // The mark goes later than the WAL, which would otherwise look like that of a database.
            self.storage.sync_dir(&self.path)?;
        }
        for name in list {
            if names::is_ours(&name) && name != names::LOCK {
                self.storage.remove_file(&self.path.join(name))?;
            }
        }
        Ok(())
    }

    /// Removes the directory, as far as it is still this attempt's.
    fn remove(&mut self) -> Result<()> {
        if let Some(lock) = &self.lock {
            // The directory may be another's by now, so nothing in it is removed.
            if !lock.owns_directory() {
                return Ok(());
            }
            self.remove_files()?;
            // The lock file goes last, because it marks the remains of a crash as ours.
            self.storage.sync_dir(&self.path)?;
            self.storage.remove_file(&self.path.join(names::LOCK))?;
        }
        // The lock is held until the directory is gone, so no other attempt begins in it.
        self.storage.remove_dir(&self.path)?;
        Ok(self.outside.sync_dir(parent(&self.path))?)
    }
}

impl Drop for UnpublishedDirectory {
    fn drop(&mut self) {
        if !self.is_published {
            // The next attempt to create the database recognizes and removes the rest.
            let _ = self.remove();
        }
    }
}

/// Whether a directory is the remains of an attempt to create a database: empty, or `LOCK`, which is created first and
/// removed last, with our files and no manifest. A WAL is a leftover only beside the mark of a restoration.
fn is_leftover(storage: &dyn Storage, path: &Path) -> bool {
    storage.list(path).is_ok_and(|list| {
        let is_restoring = list.iter().any(|name| name == names::RESTORING);
        let is_part =
            |name: &String| names::is_ours(name) && name != names::MANIFEST || is_restoring && names::is_log(name);
        list.is_empty() || (list.iter().any(|name| name == names::LOCK) && list.iter().all(is_part))
    })
}
