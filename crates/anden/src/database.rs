//! A database: a graph with its snapshots, in a directory or in memory.

use std::path::Path;
use std::sync::Arc;

use anden_engine::{Engine, SnapshotInfo, VerifyReport};
use anden_formats::InputPath;
use anden_snapshots::SnapshotView;

use crate::cache::{CacheMoment, GraphCache};
use crate::load::LoadReport;
use crate::pinned::{Pin, Pins};
use crate::stats::{LockHolder, Metrics, Stats};
use crate::{LoadOptions, Options, Progress, Result, Session, View};

/// A database: a graph and its snapshots, in one directory or in memory.
///
/// One process may have it open for writing, any number for reading. A database [in memory](Self::in_memory) has no
/// directory. Its memory is freed with the handle and the last view. A [`Pending`](crate::Pending) commit keeps the
/// database open until it is answered or dropped.
pub struct Database {
    // Shared with `Pending` commits, which keep the database open.
    inner: Arc<Engine>,
    session: Session,
    // Shared with views, because a view may outlive the handle.
    pins: Arc<Pins>,
    cache: Arc<GraphCache>,
}

impl Drop for Database {
    fn drop(&mut self) {
        // A thread that works for futures must not outlive the handle, or the files would stay locked.
        self.inner.wait_for_pollers();
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").field("options", self.options()).finish_non_exhaustive()
    }
}

/// The load options, with the session's memory budget if they name none.
fn within_memory(options: &LoadOptions, session: &Session) -> LoadOptions {
    LoadOptions { memory: options.memory.or(session.memory()), ..options.clone() }
}

impl Database {
    /// Creates a database without vertices.
    ///
    /// # Errors
    /// [`Error::Exists`](crate::Error::Exists) if `path` exists. Errors of the disk.
    pub fn create(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        Self::create_with(path, options, &Session::new(0)?)
    }

    /// Like [`create`](Self::create), with the threads, budget and progress of a session.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_with(path: impl AsRef<Path>, options: Options, session: &Session) -> Result<Self> {
        Ok(Self::new(Engine::create(path.as_ref(), options)?, session))
    }

    /// Creates a database without vertices in memory. It supports everything that a database on disk does.
    ///
    /// Memory: as many bytes as the files would have. Adjacency lists lie on huge pages if the system grants them.
    ///
    /// ```
    /// use anden::{Changes, Database, Options};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// db.append(&Changes::default().add_edge(1, 2).add_edge(2, 3))?;
    /// db.append(&Changes::default().remove_edge(1, 2))?;
    /// assert_eq!((db.snapshot(2)?.num_edges(), db.view()?.num_edges()), (2, 1));
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// The options contradict each other, or memory is short.
    pub fn in_memory(options: Options) -> Result<Self> {
        Self::in_memory_with(options, &Session::new(0)?)
    }

    /// Like [`in_memory`](Self::in_memory), with the threads, budget and progress of a session. Many small databases
    /// can share the threads of one session.
    ///
    /// ```
    /// use anden::{Database, Options, Session};
    ///
    /// let session = Session::new(2)?;
    /// let databases = [(); 3].map(|()| Database::in_memory_with(Options::default(), &session));
    /// assert!(databases.iter().all(Result::is_ok));
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`in_memory`](Self::in_memory).
    pub fn in_memory_with(options: Options, session: &Session) -> Result<Self> {
        Ok(Self::new(Engine::in_memory(options)?, session))
    }

    /// Creates a database from files. A failed load leaves nothing behind.
    ///
    /// # Errors
    /// [`Error::Exists`](crate::Error::Exists) if `path` exists; [`Error::InvalidInput`](crate::Error::InvalidInput)
    /// with file and line; [`Error::Memory`](crate::Error::Memory); errors of the disk; cancellation.
    pub fn load(
        path: impl AsRef<Path>,
        inputs: &[InputPath],
        options: &LoadOptions,
        session: &Session,
    ) -> Result<(Self, LoadReport)> {
        let options = within_memory(options, session);
        let loaded = Engine::load(path.as_ref(), inputs, &options, session.pool(), session.progress())?;
        Ok((Self::new(loaded.0, session), loaded.1))
    }

    /// Creates a database [in memory](Self::in_memory) from files. The files are only read.
    ///
    /// A memory budget limits the working memory of the load, not the database. Edges beyond the budget stay in memory
    /// too.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_in_memory(
        inputs: &[InputPath],
        options: &LoadOptions,
        session: &Session,
    ) -> Result<(Self, LoadReport)> {
        let options = within_memory(options, session);
        let loaded = Engine::load_in_memory(inputs, &options, session.pool(), session.progress())?;
        Ok((Self::new(loaded.0, session), loaded.1))
    }

    pub(crate) fn new(inner: Engine, session: &Session) -> Self {
        // Without a budget, the engine chooses the memory for patched pages from the free memory.
        if let Some(bytes) = session.patch_memory() {
            inner.set_patch_memory(bytes);
            inner.set_memory(session.memory());
        }
        let cache = Arc::<GraphCache>::default();
        // Cached parts hold files open that left the database.
        let retired = Arc::clone(&cache);
        inner.on_retirement(move || retired.clear());
        Self { inner: Arc::new(inner), session: session.clone(), pins: Arc::default(), cache }
    }

    /// Another handle of this database, whose long work reports to `progress`. So one of several callers can cancel its
    /// own work. The database stays open until the last handle is dropped; [`close`](Self::close) on one of them makes
    /// the last snapshot.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use anden::{Database, Error, Options, Progress, Update};
    ///
    /// struct Cancelled;
    /// impl Progress for Cancelled {
    ///     fn is_cancelled(&self) -> bool {
    ///         true
    ///     }
    /// }
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// db.apply(&[Update::add_edge(1, 2)])?;
    /// db.checkpoint(None)?;
    /// db.apply(&[Update::add_edge(2, 3)])?;
    /// let cancelled = db.with_progress(Arc::new(Cancelled));
    /// assert!(matches!(cancelled.merge(), Err(Error::Cancelled)));
    /// assert!(matches!(cancelled.view()?.wcc(), Err(Error::Cancelled)));
    /// assert_eq!(db.view()?.wcc()?, [0, 0, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn with_progress(&self, progress: Arc<dyn Progress + Send + Sync>) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            session: self.session.clone().with_progress(progress),
            pins: Arc::clone(&self.pins),
            cache: Arc::clone(&self.cache),
        }
    }

    pub(crate) fn inner(&self) -> &Arc<Engine> {
        &self.inner
    }

    /// The options that were fixed when the database was created, such as direction and type of keys.
    pub fn options(&self) -> &Options {
        self.inner.options()
    }

    /// Reads what a writer in another process committed since the last refresh, or since this handle was opened.
    /// Returns whether anything is new. Existing views do not change. A handle that writes is always up to date.
    ///
    /// # Errors
    /// As [`open_read_only`](Self::open_read_only). The handle then shows the old version or a newer one.
    pub fn refresh(&self) -> Result<bool> {
        Ok(self.inner.refresh()?)
    }

    /// Returns a view of everything committed. On a read-only handle: of everything committed when it was opened or
    /// last [refreshed](Self::refresh).
    ///
    /// # Errors
    /// Damage met earlier.
    pub fn view(&self) -> Result<View> {
        self.view_in(&self.session)
    }

    /// Like [`view`](Self::view), with the threads of `session`.
    pub(crate) fn view_in(&self, session: &Session) -> Result<View> {
        let moment = self.moment();
        // A checkpoint in between is no fault: the view takes the lesser number.
        let (graph, newest) = (self.inner.view()?, self.inner.newest_number());
        Ok(View::of_everything(graph, session.clone(), self.pin(), newest, &moment))
    }

    /// Counts one more open view.
    pub(crate) fn pin(&self) -> Pin {
        self.pins.pin()
    }

    /// Wraps a snapshot or window, which was read after `moment`, as a view with this name.
    pub(crate) fn opened(&self, graph: SnapshotView, session: &Session, name: String, moment: &CacheMoment) -> View {
        View::new(graph, session.clone(), self.pin(), name, moment)
    }

    /// The cache before a graph is read, and the forms that are stored then.
    pub(crate) fn moment(&self) -> CacheMoment {
        self.cache.now(self.inner.stored_forms())
    }

    /// What views cache.
    pub(crate) fn cache(&self) -> &Arc<GraphCache> {
        &self.cache
    }

    /// Returns all snapshots, the oldest first.
    pub fn snapshots(&self) -> Vec<SnapshotInfo> {
        self.inner.snapshots()
    }

    /// Returns the counters and gauges of this handle, for monitoring.
    ///
    /// Cost: some microseconds, and no read of a file. Waits at most a tenth of a second for a running commit; then the
    /// size of the memtable is that of the call before.
    ///
    /// ```
    /// use anden::{Database, Options, Update};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// db.apply(&[Update::add_edge(1, 2)])?;
    /// let metrics = db.metrics();
    /// assert_eq!((metrics.epoch, metrics.commits.commits, metrics.live.added), (1, 1, 1));
    /// assert!(metrics.to_prometheus(&[]).contains("\nanden_commits_total 1\n"));
    /// # Ok::<(), anden::Error>(())
    /// ```
    pub fn metrics(&self) -> Metrics {
        let engine = &self.inner;
        Metrics {
            epoch: engine.epoch(),
            snapshots: engine.num_snapshots(),
            newest_snapshot: engine.newest_number(),
            snapshot_bytes: engine.snapshot_bytes(),
            is_read_only: engine.is_read_only(),
            write_error: engine.write_error().map(|error| error.to_string()),
            commits: engine.commit_stats(),
            live: engine.live_stats_soon(),
            views: self.pins.stats(),
            cache: self.cache.stats(&self.session),
            prefetch: self.session.prefetcher().stats(),
        }
    }

    /// Returns the process that has this database open for writing, or `None` if there is none. Takes no lock, and so
    /// keeps no process from opening it.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn lock_holder(&self) -> Result<Option<LockHolder>> {
        Ok(self.inner.lock_holder()?)
    }

    /// Returns sizes on disk, and the [`metrics`](Self::metrics).
    ///
    /// The number of fragments per list needs a read of all lists: see
    /// [`View::fragment_statistics`](crate::View::fragment_statistics).
    ///
    /// Cost: visits every page of the vertex table.
    pub fn stats(&self) -> Stats {
        Stats { storage: self.inner.stats(), metrics: self.metrics() }
    }

    /// Verifies every checksum and checks all structures against each other. [Prepared](Self::prepare) forms are prepared
    /// anew and compared; for a form that does not fit in the memory, the checksums must do.
    ///
    /// # Errors
    /// The first fault, with its place.
    pub fn verify(&self) -> Result<VerifyReport> {
        let report = self.inner.verify(self.session.pool())?;
        self.verify_forms()?;
        Ok(report)
    }

    /// The threads, memory budget and progress of this handle.
    pub fn session(&self) -> &Session {
        &self.session
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Update;

    #[test]
    fn views_read_before_a_checkpoint_keep_their_number() {
        let db = Database::in_memory(Options::default()).unwrap();
        let named = |graph: SnapshotView| {
            let newest = db.inner.newest_number();
            View::of_everything(graph, db.session.clone(), db.pin(), newest, &db.moment()).name().to_owned()
        };
        let first = db.inner.view().unwrap();
        db.apply(&[Update::add_edge(1, 2)]).unwrap();
        let live = db.inner.view().unwrap();
        assert_eq!(named(live.clone()), "snapshot 1 and what was committed since");
        db.checkpoint(None).unwrap();
        assert_eq!(named(live), "snapshot 1 and what was committed since");
        assert_eq!((named(first), db.view().unwrap().name()), ("snapshot 1".to_owned(), "snapshot 2"));
    }
}
