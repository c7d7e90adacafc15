//! A database directory.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::storage::Storage;

use crate::base_run::{BaseRun, SideFiles};
use crate::builder::StoreBuilder;
use crate::dictionary::Dictionary;
use crate::file::{FileKind, FramedFile};
use crate::lists::ListRules;
use crate::manifest::{FileRecord, Manifest, Snapshot};
use crate::options::{GraphOptions, Identity, KeyScheme};
use crate::verify::{self, VerifyReport};
use crate::view::{View, ViewParts};
use crate::{Error, Result, names, run};

/// A database directory, open.
#[derive(Debug)]
pub struct Store {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    manifest: Manifest,
    snapshots: Vec<SnapshotInfo>,
    view: View,
    /// Held by the one writer.
    lock: Option<Lock>,
}

/// The exclusive lock on a database; dropped, it is free.
pub(crate) struct Lock {
    _held: Box<dyn Send + Sync>,
}

impl Lock {
    pub fn take(storage: &dyn Storage, directory: &Path) -> Result<Self> {
        Ok(Self { _held: storage.lock(&directory.join(names::LOCK))? })
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lock")
    }
}

/// What is known of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// Its number, from 1.
    pub number: u32,
    /// Its name, if it was given one.
    pub name: Option<String>,
    /// When it was made, in seconds since 1970.
    pub unix_time: u64,
    /// Its vertices.
    pub num_vertices: u64,
    /// Its edges; of an undirected graph, each counted once.
    pub num_edges: u64,
    /// The edges that it has and the snapshot before had not.
    pub added: u64,
    /// The edges that the snapshot before had and it has not.
    pub removed: u64,
    /// The bytes of the files that came with it.
    pub bytes: u64,
}

/// Sizes of what is on disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    /// All files, by name, with their bytes.
    pub files: Vec<(String, u64)>,
    /// The bytes of all files.
    pub bytes: u64,
    /// The bytes of edge and vertex tables for each stored entry of a list; 0 without edges.
    pub bytes_per_edge: f64,
    /// Pages of vertices with an offset for each, of both sides.
    pub dense_pages: usize,
    /// Pages of vertices without edges, of both sides.
    pub empty_pages: usize,
    /// Pages that a reader must look at vertex by vertex.
    pub patched_pages: usize,
    /// Runs.
    pub runs: usize,
    /// Levels.
    pub levels: usize,
}

impl Store {
    /// Begins a new database; nothing is visible before [`StoreBuilder::publish`].
    ///
    /// # Errors
    /// [`Error::Exists`] where something is already, except what a failed attempt left behind; another process creates
    /// the same database; the disk failed.
    pub fn create(storage: Arc<dyn Storage>, path: &Path, options: GraphOptions) -> Result<StoreBuilder> {
        Self::create_as(storage, path, options, Identity::random())
    }

    /// As [`create`](Self::create), with an identity that is given: the same input gives the same bytes.
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

    /// Opens a database as its one writer; removes what a crash left.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is none, [`base::Error::Locked`] where another writer has it, a newer version,
    /// damage in manifest, headers or indexes.
    pub fn open(storage: Arc<dyn Storage>, path: &Path) -> Result<Self> {
        require_manifest(&*storage, path)?;
        let lock = Lock::take(&*storage, path)?;
        let store = Self::assemble(Arc::clone(&storage), path)?;
        store.cut_torn_tail()?;
        store.remove_garbage()?;
        Ok(store.with_lock(Some(lock)))
    }

    /// Opens a database for reading; writes nothing, needs no lock.
    ///
    /// # Errors
    /// As [`open`](Self::open), but for the lock.
    pub fn open_read_only(storage: Arc<dyn Storage>, path: &Path) -> Result<Self> {
        require_manifest(&*storage, path)?;
        Self::assemble(storage, path)
    }

    /// Reads the manifest and opens the files of the newest snapshot.
    pub(crate) fn assemble(storage: Arc<dyn Storage>, path: &Path) -> Result<Self> {
        let manifest_path = path.join(names::MANIFEST);
        let manifest = Manifest::decode(&storage.read_copy(&manifest_path)?, &manifest_path)?;
        let view = open_view(&*storage, path, &manifest)?;
        let snapshots = manifest.snapshots.iter().map(SnapshotInfo::from).collect();
        Ok(Self { storage, path: path.to_owned(), manifest, snapshots, view, lock: None })
    }

    pub(crate) fn with_lock(mut self, lock: Option<Lock>) -> Self {
        self.lock = lock;
        self
    }

    /// The kind of graph.
    pub fn options(&self) -> &GraphOptions {
        &self.manifest.created.options
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this handle is not the writer's.
    pub fn is_read_only(&self) -> bool {
        self.lock.is_none()
    }

    /// All snapshots, oldest first.
    pub fn snapshots(&self) -> &[SnapshotInfo] {
        &self.snapshots
    }

    /// The newest snapshot. All views of a store share what was verified.
    ///
    /// # Errors
    /// Damage that was met before.
    pub fn view(&self) -> Result<View> {
        graph::Graph::check(&self.view)?;
        Ok(self.view.clone())
    }

    /// The keys of the vertices.
    pub fn dictionary(&self) -> &Dictionary {
        self.view.dictionary()
    }

    /// Reads every byte again, whatever was verified before, and holds every structure against the others.
    ///
    /// Cost: reads every file twice.
    ///
    /// # Errors
    /// The first fault, with its place.
    pub fn verify(&self, pool: &base::parallel::Pool) -> Result<VerifyReport> {
        verify::verify(&*self.storage, &self.path, &self.manifest, pool)
    }

    /// Sizes of what is on disk.
    pub fn stats(&self) -> Stats {
        let mut files = vec![(names::MANIFEST.to_owned(), self.manifest.valid_len)];
        files.extend(self.manifest.files().map(|file| (file.name.clone(), file.len)));
        let sides: Vec<_> =
            [run::Side::Out, run::Side::In].into_iter().filter_map(|side| self.view.side(side)).collect();
        let num_arcs = self.manifest.newest().num_arcs * sides.len() as u64;
        let is_table = |file: &&FileRecord| {
            let kinds = [run::Side::Out, run::Side::In].map(|side| [side.targets(), side.table()]);
            kinds.as_flattened().contains(&file.kind)
        };
        let table_bytes: u64 = self.manifest.newest().files.iter().filter(is_table).map(|file| file.len).sum();
        let pages: Vec<_> = sides.iter().map(|side| side.count_pages()).collect();
        Stats {
            bytes: files.iter().map(|(_, bytes)| bytes).sum(),
            files,
            bytes_per_edge: if num_arcs == 0 { 0.0 } else { table_bytes as f64 / num_arcs as f64 },
            dense_pages: pages.iter().map(|pages| pages.dense).sum(),
            empty_pages: pages.iter().map(|pages| pages.empty).sum(),
            patched_pages: pages.iter().map(|pages| pages.patched).sum(),
            runs: 1,
            levels: self.manifest.snapshots.len(),
        }
    }

    /// Cuts off what an interrupted append left behind the last valid record of the manifest.
    fn cut_torn_tail(&self) -> Result<()> {
        let file = self.storage.open_write(&self.path.join(names::MANIFEST))?;
        if file.len()? > self.manifest.valid_len {
            file.set_len(self.manifest.valid_len)?;
            file.sync()?;
        }
        Ok(())
    }

    /// Removes our files that the manifest does not name.
    fn remove_garbage(&self) -> Result<()> {
        for name in unknown_files(&*self.storage, &self.path, &self.manifest)? {
            if names::is_ours(&name) {
                self.storage.remove_file(&self.path.join(name))?;
            }
        }
        Ok(())
    }
}

impl From<&Snapshot> for SnapshotInfo {
    fn from(snapshot: &Snapshot) -> Self {
        Self {
            number: snapshot.number,
            name: snapshot.name.clone(),
            unix_time: snapshot.unix_time,
            num_vertices: snapshot.vertex_bound,
            num_edges: snapshot.num_edges,
            added: snapshot.num_added,
            removed: snapshot.num_removed,
            bytes: snapshot.num_bytes(),
        }
    }
}

fn require_manifest(storage: &dyn Storage, path: &Path) -> Result<()> {
    if storage.exists(&path.join(names::MANIFEST))? { Ok(()) } else { Err(Error::NotFound { path: path.to_owned() }) }
}

/// The names in a database directory that the manifest does not know.
pub(crate) fn unknown_files(storage: &dyn Storage, path: &Path, manifest: &Manifest) -> Result<Vec<String>> {
    let is_known = |name: &String| {
        name == names::MANIFEST || name == names::LOCK || manifest.files().any(|file| file.name == *name)
    };
    Ok(storage.list(path)?.into_iter().filter(|name| !is_known(name)).collect())
}

/// Opens a file that the manifest names, and compares it with what the manifest says of it.
pub(crate) fn open_file(
    storage: &dyn Storage,
    directory: &Path,
    manifest: &Manifest,
    record: &FileRecord,
) -> Result<FramedFile> {
    let file = FramedFile::open(storage, &directory.join(&record.name), record.kind, manifest.created.id)?;
    if (file.len(), file.header_crc()) != (record.len, record.header_crc) {
        return Err(file.corrupt("the file is not the one that the manifest names"));
    }
    Ok(file)
}

/// Opens the newest snapshot: headers, directories and indexes of its files are verified.
pub(crate) fn open_view(storage: &dyn Storage, directory: &Path, manifest: &Manifest) -> Result<View> {
    let snapshot = manifest.newest();
    let options = manifest.created.options;
    let corrupt =
        |what: String| Error::from(base::Error::corrupt(&directory.join(names::MANIFEST), manifest.valid_len, what));
    let open = |kind: FileKind| {
        let record = snapshot.file(kind);
        let record = record.ok_or_else(|| corrupt(format!("snapshot {} has no file {kind:?}", snapshot.number)))?;
        open_file(storage, directory, manifest, record)
    };
    let rules = ListRules { vertex_bound: snapshot.vertex_bound as usize, multigraph: options.multigraph };
    let open_side = |side: run::Side| -> Result<_> {
        let (table, targets) = (open(side.table())?, open(side.targets())?);
        let weights = options.weight_type.map(|_| open(side.weights())).transpose()?;
        Ok((table, targets, weights))
    };
    let out_files = open_side(run::Side::Out)?;
    let in_files = options.stores_in_lists().then(|| open_side(run::Side::In)).transpose()?;
    let base = BaseRun::open(
        &side_files(&out_files, &options),
        in_files.as_ref().map(|files| side_files(files, &options)).as_ref(),
        rules,
    )?;
    if base.num_arcs() != snapshot.num_arcs {
        let what = format!("{} targets expected, {} found", snapshot.num_arcs, base.num_arcs());
        return Err(out_files.1.corrupt(what));
    }
    let parts = match options.keys {
        KeyScheme::Dense => Vec::new(),
        KeyScheme::Integer | KeyScheme::String => vec![open(FileKind::Dictionary)?],
    };
    let dictionary = Dictionary::open(options.keys, snapshot.vertex_bound, &parts)?;
    View::open(ViewParts {
        num_vertices: snapshot.vertex_bound - base.dead().len() as u64,
        base,
        steps: Vec::new(),
        options,
        vertex_bound: snapshot.vertex_bound as usize,
        num_edges: snapshot.num_edges,
        num_arcs: snapshot.num_arcs,
        dictionary: Arc::new(dictionary),
        path: directory.to_owned(),
    })
}

fn side_files<'a>(
    (table, targets, weights): &'a (FramedFile, FramedFile, Option<FramedFile>),
    options: &GraphOptions,
) -> SideFiles<'a> {
    SideFiles { table, targets, weights: weights.as_ref().zip(options.weight_type) }
}
