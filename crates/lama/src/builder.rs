//! Makes a new database: everything is written beside it, and becomes visible at once or never.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use base::storage::Storage;
use graph::Direction;
use graph::property::{PropertyColumn, PropertySchema};

use crate::chain::{Chain, Version};
use crate::dictionary::{DictionaryKeys, FinishedDictionary, PartFile, write_dictionary};
use crate::file::{FileKind, WrittenFile};
use crate::manifest::{Created, Manifest};
use crate::options::{GraphOptions, Identity, Retention};
use crate::property::{EdgeRecord, NewColumns, PropertyRecord, RowParts, RowRun, schema_of, write_columns};
use crate::run::{FinishedRun, RunWriter};
use crate::store::{State, Store, WriterLock, give_name};
use crate::temp_file::TempFile;
use crate::{Error, Result, names};

mod levels;

pub use levels::{FinishedLevels, LevelsWriter};

/// The number of the run and of the part of the dictionary that a load writes.
const FIRST: u32 = 1;

/// A database that is being made.
///
/// Nothing of it is visible before [`publish`](Self::publish). Dropped before that, it removes its
/// files and its directory; what a crash leaves of it, the next attempt to create it removes.
#[derive(Debug)]
pub struct StoreBuilder {
    directory: NewDirectory,
    options: GraphOptions,
    identity: Identity,
    /// Columns of properties that were written.
    columns: Mutex<Vec<(PropertyRecord, WrittenFile, usize)>>,
    /// The rows of edges that were written.
    rows: Mutex<Option<BuiltRows>>,
}

/// The properties of edges that were written.
#[derive(Debug)]
struct BuiltRows {
    records: Vec<EdgeRecord>,
    num_rows: u64,
    file: Option<WrittenFile>,
}

/// The directory of a database that is not there yet; dropped, it takes everything in it along.
#[derive(Debug)]
struct NewDirectory {
    /// Where the path leads from.
    outside: Arc<dyn Storage>,
    /// The directory, open.
    storage: Arc<dyn Storage>,
    path: PathBuf,
    lock: Option<Arc<WriterLock>>,
    is_published: bool,
}

impl StoreBuilder {
    pub(crate) fn create(
        storage: Arc<dyn Storage>,
        path: &Path,
        options: GraphOptions,
        identity: Identity,
    ) -> Result<Self> {
        if options.ordered && options.direction == Direction::Undirected {
            return Err(Error::Input("an ordered graph is directed: each edge leads to its larger end".into()));
        }
        let directory = NewDirectory::prepare(storage, path)?;
        Ok(Self { directory, options, identity, columns: Mutex::default(), rows: Mutex::default() })
    }

    /// The kind of graph.
    pub fn options(&self) -> &GraphOptions {
        &self.options
    }

    /// Begins the run of a graph with ids below `vertex_bound`. There is one run.
    ///
    /// # Errors
    /// There are too many vertices, a run was begun before, or the disk failed.
    pub fn run_writer(&self, vertex_bound: usize) -> Result<RunWriter> {
        let NewDirectory { storage, path, .. } = &self.directory;
        RunWriter::create(&**storage, path, &self.options, self.identity.id, vertex_bound, FIRST)
    }

    /// Writes the keys of all vertices.
    ///
    /// Cost: checks order and uniqueness of the keys, then writes them once.
    ///
    /// # Errors
    /// Keys are of another scheme than the graph's, are out of order, stand twice, or are not
    /// UTF-8; the disk failed.
    pub fn write_dictionary(&self, keys: DictionaryKeys<'_>) -> Result<FinishedDictionary> {
        let NewDirectory { storage, path, .. } = &self.directory;
        let (storage, directory) = (&**storage, &**path);
        let place = PartFile { storage, directory, id: self.identity.id, number: FIRST, first_id: 0 };
        write_dictionary(place, &keys, self.options.keys)
    }

    /// Writes the values of a property of vertices, by id; ids past the end have none.
    ///
    /// # Errors
    /// A property has the name already, or it is no name; the disk failed.
    pub fn add_vertex_property(&self, name: &str, column: &PropertyColumn) -> Result<()> {
        let mut columns = self.columns.lock().unwrap_or_else(PoisonError::into_inner);
        let number = FIRST + columns.len() as u32;
        let property_type = column.property_type();
        let record =
            PropertyRecord { name: name.to_owned(), property_type, since: FIRST, file: Some(number), index: None };
        let records: Vec<_> = columns.iter().map(|(record, ..)| record).chain([&record]).cloned().collect();
        schema_of(&records)?;
        let NewDirectory { storage, path, .. } = &self.directory;
        let types = [(number - FIRST, property_type)];
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

    /// Writes the properties of `num_rows` edges, by the rows that lists name: `parts` gives, for the property at a
    /// place of the schema, its rows part by part, each time from the first one. There is one set of rows.
    ///
    /// # Errors
    /// The graph was not to have properties of edges; a property has another number of rows; what `parts` gives; the
    /// disk failed.
    pub fn write_edge_rows(&self, schema: &PropertySchema, num_rows: u64, parts: &RowParts<'_>) -> Result<()> {
        if !self.options.has_rows() || !self.options.edge_properties && !schema.is_empty() {
            return Err(Error::Input("rows of properties of edges that have none".into()));
        }
        let columns: Vec<_> = (0..).zip(schema.iter()).map(|(number, (_, of))| (number, of)).collect();
        let NewDirectory { storage, path, .. } = &self.directory;
        let runs = [RowRun { number: 0, position: 0 }];
        let new = NewColumns { file_number: FIRST, kind: FileKind::Rows, runs: &runs, num_rows, columns: &columns };
        let write = || write_columns(&**storage, path, self.identity.id, new, parts);
        // Rows without values need not be stored.
        let file = (num_rows > 0 && self.options.edge_properties).then(write).transpose()?;
        let record =
            |(name, property_type): (&str, _)| EdgeRecord { name: name.to_owned(), property_type, since: FIRST };
        let built = BuiltRows { records: schema.iter().map(record).collect(), num_rows, file };
        *self.rows.lock().unwrap_or_else(PoisonError::into_inner) = Some(built);
        Ok(())
    }

    /// Begins the levels of a database with several snapshots: what each but the first changes. The first has ids below
    /// `vertex_bound`.
    pub fn levels_writer(&self, vertex_bound: usize) -> LevelsWriter {
        let NewDirectory { storage, path, .. } = &self.directory;
        let directory = path.clone();
        LevelsWriter::new(Arc::clone(storage), directory, self.options, self.identity.id, FIRST + 1, vertex_bound)
    }

    /// A scratch file in the database's directory, on the disk that must have room for the result.
    ///
    /// # Errors
    /// A scratch file has this name, or the disk failed.
    pub fn temp_file(&self, name: &str) -> Result<TempFile> {
        let NewDirectory { storage, path, .. } = &self.directory;
        TempFile::create(storage, path, name)
    }

    /// Makes the database visible, with this as its first snapshot, and opens it for writing.
    ///
    /// `num_edges` counts an edge of an undirected graph once. When this returns, the database
    /// survives a power cut.
    ///
    /// # Errors
    /// Run and dictionary do not fit together, the name of the snapshot is empty or a number, or
    /// the disk failed; the database is then removed.
    pub fn publish(
        self,
        run: FinishedRun,
        dictionary: FinishedDictionary,
        num_edges: u64,
        name: Option<&str>,
    ) -> Result<Store> {
        self.publish_many(run, dictionary, num_edges, FinishedLevels::none(), &[name])
    }

    /// Makes the database visible with several snapshots, and opens it for writing. `run`, `dictionary` and `num_edges`
    /// are those of the newest; `levels` lead from the first to it; `names` has one for each snapshot.
    ///
    /// # Errors
    /// As [`publish`](Self::publish); the levels do not lead to the graph of the run, as far as numbers tell.
    pub fn publish_many(
        mut self,
        run: FinishedRun,
        dictionary: FinishedDictionary,
        num_edges: u64,
        levels: FinishedLevels,
        names: &[Option<&str>],
    ) -> Result<Store> {
        self.check(&run, &dictionary, num_edges)?;
        let newest = Version {
            number: 1,
            is_kept: true,
            name: None,
            unix_time: self.identity.time(),
            vertex_bound: run.vertex_bound as u64,
            num_vertices: run.vertex_bound as u64,
            num_edges,
            num_arcs: run.num_arcs,
            num_added: num_edges,
            num_removed: 0,
            level: None,
        };
        let columns = std::mem::take(&mut self.columns).into_inner().unwrap_or_else(PoisonError::into_inner);
        let rows = std::mem::take(&mut self.rows).into_inner().unwrap_or_else(PoisonError::into_inner);
        let next_file = levels.next_file.max(FIRST + 1).max(FIRST + columns.len() as u32);
        let (versions, level_files) = levels.versions(newest, names)?;
        let (NewDirectory { storage, path, outside, .. }, lock) = (&self.directory, self.directory.lock()?);
        lock.check()?;
        let mut files = Vec::new();
        let column_files = columns.iter().map(|(_, file, _)| file);
        let column_files = column_files.chain(rows.iter().filter_map(|rows| rows.file.as_ref()));
        for file in run.files.iter().chain(&dictionary.file).chain(&level_files).chain(column_files) {
            files.push(give_name(&**storage, path, file)?);
        }
        for scratch in storage.list(path)?.iter().filter(|name| name.starts_with(names::TEMPORARY)) {
            storage.remove_file(&path.join(scratch))?;
        }
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
            files,
            run: FIRST,
            dictionary: dictionary.file.iter().map(|_| FIRST).collect(),
            properties: columns.into_iter().map(|(record, ..)| record).collect(),
            next_row: rows.as_ref().map_or(0, |rows| rows.num_rows),
            rows: rows.iter().filter_map(|rows| rows.file.as_ref()).map(|_| FIRST).collect(),
            edge_properties: rows.map_or(Vec::new(), |rows| rows.records),
            chain: Chain { versions, anchor, delta_runs: Vec::new() },
        };
        // Of the manifest, too, the name comes last: there is no database with half a first snapshot.
        lock.publish_manifest(&manifest.encode())?;

        let (state, storage) = (State::read(&**storage, path)?, Arc::clone(storage));
        self.directory.is_published = true;
        let lock = self.directory.lock.take();
        Ok(Store::with_state(storage, &self.directory.path, state, lock).with_unix_time(self.identity.unix_time))
    }

    fn check(&self, run: &FinishedRun, keys: &FinishedDictionary, num_edges: u64) -> Result<()> {
        let bad = |what: String| Err(Error::Input(what));
        let columns = self.columns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((record, ..)) = columns.iter().find(|(.., num_rows)| *num_rows > run.vertex_bound) {
            return bad(format!("the property {:?} has more values than there are vertices", record.name));
        }
        if keys.num_keys != run.vertex_bound as u64 {
            return bad(format!("{} keys for {} vertices", keys.num_keys, run.vertex_bound));
        }
        if !self.options.can_have(num_edges, run.num_arcs) {
            return bad(format!("{num_edges} edges cannot have {} entries in lists", run.num_arcs));
        }
        Ok(())
    }
}

/// The directory that holds the name of `path`.
fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

impl NewDirectory {
    /// Makes the directory, or takes over one that a failed attempt left.
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
        // Another process may have put a directory of its own here since it was made.
        if !is_leftover(&*storage, path) {
            return Err(exists());
        }
        let mut directory = Self { outside, storage, path: path.to_owned(), lock: None, is_published: !is_new };
        directory.lock = Some(Arc::new(WriterLock::take(Arc::clone(&directory.storage), path)?));
        // What a crash leaves is known for ours by the lock file: nothing may outlive that.
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

    /// Removes what makes it a database first, so that a crash in between leaves no database with holes.
    fn remove_files(&self) -> Result<()> {
        let manifest = self.path.join(names::MANIFEST);
        if self.storage.exists(&manifest)? {
            self.storage.remove_file(&manifest)?;
            self.storage.sync_dir(&self.path)?;
        }
        for name in self.storage.list(&self.path)? {
            if names::is_ours(&name) && name != names::LOCK {
                self.storage.remove_file(&self.path.join(name))?;
            }
        }
        Ok(())
    }

    /// Removes the directory, as far as it is still this attempt's.
    fn remove(&mut self) -> Result<()> {
        if let Some(lock) = &self.lock {
            if !lock.owns_directory() {
                return Ok(());
            }
            self.remove_files()?;
            // What a crash leaves of them is known for ours by the lock file.
            self.storage.sync_dir(&self.path)?;
            self.storage.remove_file(&self.path.join(names::LOCK))?;
        }
        // The lock is held until the directory is gone: no other attempt begins in it.
        self.storage.remove_dir(&self.path)?;
        Ok(self.outside.sync_dir(parent(&self.path))?)
    }
}

impl Drop for NewDirectory {
    fn drop(&mut self) {
        if !self.is_published {
            // What cannot be removed now is recognised by the next attempt to create the database.
            let _ = self.remove();
        }
    }
}

/// Whether a directory is what an attempt to create a database left behind: nothing at all, or `LOCK`, which comes
/// first and goes last, with files of ours and no manifest.
fn is_leftover(storage: &dyn Storage, path: &Path) -> bool {
    storage.list(path).is_ok_and(|list| {
        let is_part = |name: &String| names::is_ours(name) && name != names::MANIFEST;
        list.is_empty() || (list.iter().any(|name| name == names::LOCK) && list.iter().all(is_part))
    })
}
