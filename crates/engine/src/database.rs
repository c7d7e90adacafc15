//! A database: a directory with a graph in it.

use std::path::Path;
use std::sync::Arc;

use base::parallel::Pool;
use base::progress::Progress;
use base::storage::{DiskStorage, Storage};
use graph::formats::InputPath;
use lama::{Dictionary, DictionaryKeys, GraphOptions, KeyScheme, SnapshotInfo, Stats, Store, VerifyReport, View};

use crate::load::{LoadOptions, LoadReport};
use crate::{Error, Result};

/// An open database.
///
/// One handle at a time writes, in one process; any number read.
#[derive(Debug)]
pub struct Database {
    store: Store,
}

impl Database {
    /// Makes an empty database at `path`.
    ///
    /// # Errors
    /// Something is there already, the options contradict each other, or the disk failed; nothing
    /// is left behind.
    pub fn create(path: &Path, options: GraphOptions) -> Result<Self> {
        Self::create_in(Arc::new(DiskStorage), path, options)
    }

    /// As [`create`](Self::create), on any storage.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_in(storage: Arc<dyn Storage>, path: &Path, options: GraphOptions) -> Result<Self> {
        let builder = Store::create(storage, path, options)?;
        let dictionary = builder.write_dictionary(match options.keys {
            KeyScheme::Dense => DictionaryKeys::Dense(0),
            KeyScheme::Integer => DictionaryKeys::Integers { by_id: &[], sorted: None },
            KeyScheme::String => DictionaryKeys::Strings { text: &[], offsets: &[0], sorted: None },
        })?;
        let run = builder.run_writer(0)?.finish()?;
        Ok(Self { store: builder.publish(run, dictionary, 0, None)? })
    }

    /// Makes a database at `path` from `inputs`.
    ///
    /// Memory: what [`LoadOptions::memory`] allows; edges beyond it wait in scratch files in the new
    /// directory, vertices do not. The result is the same, bit for bit, at any number of threads and
    /// with any memory, but for its identity ([`LoadOptions::identity`]).
    ///
    /// # Errors
    /// Something is at `path` already, an input is not what it should be (with file and line), the
    /// vertices do not fit the memory, the disk failed, or the caller wanted it; nothing is left
    /// behind.
    pub fn load(
        path: &Path,
        inputs: &[InputPath],
        options: &LoadOptions,
        pool: &Pool,
        progress: &dyn Progress,
    ) -> Result<(Self, LoadReport)> {
        Self::load_in(Arc::new(DiskStorage), path, inputs, options, pool, progress)
    }

    /// As [`load`](Self::load), on any storage.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_in(
        storage: Arc<dyn Storage>,
        path: &Path,
        inputs: &[InputPath],
        options: &LoadOptions,
        pool: &Pool,
        progress: &dyn Progress,
    ) -> Result<(Self, LoadReport)> {
        let (store, report) = crate::load::load(storage, path, inputs, options, pool, progress)?;
        Ok((Self { store }, report))
    }

    /// Opens a database as its one writer.
    ///
    /// # Errors
    /// There is none, another process writes, it is of a newer version, or it is damaged.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_in(Arc::new(DiskStorage), path)
    }

    /// As [`open`](Self::open), on any storage.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_in(storage: Arc<dyn Storage>, path: &Path) -> Result<Self> {
        require(&*storage, path)?;
        Ok(Self { store: Store::open(storage, path)? })
    }

    /// Opens a database for reading, beside a writer if there is one.
    ///
    /// # Errors
    /// There is none, it is of a newer version, or it is damaged.
    pub fn open_read_only(path: &Path) -> Result<Self> {
        Self::open_read_only_in(Arc::new(DiskStorage), path)
    }

    /// As [`open_read_only`](Self::open_read_only), on any storage.
    ///
    /// # Errors
    /// As [`open_read_only`](Self::open_read_only).
    pub fn open_read_only_in(storage: Arc<dyn Storage>, path: &Path) -> Result<Self> {
        require(&*storage, path)?;
        Ok(Self { store: Store::open_read_only(storage, path)? })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.store.path()
    }

    /// The kind of graph.
    pub fn options(&self) -> &GraphOptions {
        self.store.options()
    }

    /// Whether this handle cannot write.
    pub fn is_read_only(&self) -> bool {
        self.store.is_read_only()
    }

    /// The graph at the newest snapshot.
    ///
    /// # Errors
    /// Damage that was met before.
    pub fn view(&self) -> Result<View> {
        Ok(self.store.view()?)
    }

    /// All snapshots, oldest first.
    pub fn snapshots(&self) -> Vec<SnapshotInfo> {
        self.store.snapshots()
    }

    /// The keys of the vertices.
    pub fn dictionary(&self) -> Arc<Dictionary> {
        self.store.dictionary()
    }

    /// Reads every byte and holds every structure against the others.
    ///
    /// # Errors
    /// The first fault, with its place.
    pub fn verify(&self, pool: &Pool) -> Result<VerifyReport> {
        Ok(self.store.verify(pool)?)
    }

    /// Sizes of what is on disk.
    pub fn stats(&self) -> Stats {
        self.store.stats()
    }
}

/// Says what to do where nothing is.
fn require(storage: &dyn Storage, path: &Path) -> Result<()> {
    match storage.exists(path)? {
        true => Ok(()),
        false => Err(Error::NotFound { path: path.to_owned() }),
    }
}
