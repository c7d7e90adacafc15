//! Serializable, optimistic transactions.
//!
//! A transaction reads one version of the graph, records its read set, and buffers its writes. At the commit, the
//! leader of the group validates the read set against later changes. If nothing in it changed, all writes happen, as if
//! the whole transaction ran at that moment. Otherwise nothing happens, and the caller can try again. Absence counts as
//! read too: an edge or a key that was looked up and not found.
//!
//! `add`, `remove` and setting a value of a vertex read nothing, so they conflict with nothing. `insert`, `has`,
//! setting a weight or a value of an edge, and all queries read.

mod edges;
mod graph;
mod own;
mod properties;
mod retry;

use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use anden_base::parallel::Pool;
use anden_base::{MAX_VERTICES, VertexId};
use anden_graph::Graph;
use anden_snapshots::{Direction, Key, KeyScheme, SnapshotView};
use parking_lot::Mutex;

pub use self::edges::{FoundEdge, edges_between};
pub use self::graph::TransactionGraph;
use self::own::Own;
use crate::commit::{ExclusiveCommit, PendingCommit};
use crate::commit_queue::{CommitRequest, CommitUpdates, Committed};
use crate::fitting::fitting_key;
use crate::live::Update;
use crate::log::Durability;
use crate::validation::{CommitFailure, Conflict, ReadKey, ReadSet};
use crate::{Engine, Error, Result};

/// A transaction: buffered writes and a read set. Dropping it discards them.
///
/// Reading takes `&self` and works from several threads. Writing takes `&mut self`. A commit consumes the transaction.
#[derive(Debug)]
pub struct OptimisticTransaction<'db> {
    database: &'db Engine,
    pool: &'db Pool,
    view: SnapshotView,
    epoch: u64,
    reads: Mutex<ReadSet>,
    own: Own,
    updates: Vec<Update>,
    /// Number of edges that the updates add.
    num_added: usize,
    durability: Durability,
}

/// The id that a key resolves to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResolvedKey {
    /// An id of the view; the vertex may be removed.
    View(VertexId),
    /// A vertex that this transaction made, perhaps removed since.
    Own(VertexId),
    Nowhere,
}

impl Engine {
    /// Begins a transaction over all commits.
    ///
    /// Cost: that of a view. The first transaction of a database allocates 8 MB for the version table.
    ///
    /// # Errors
    /// The handle cannot write; an earlier read found damage.
    pub fn begin<'db>(&'db self, pool: &'db Pool) -> Result<OptimisticTransaction<'db>> {
        self.require_writer()?;
        // Counted before the view is taken: an index made in between must count as a change.
        let index_changes = self.live().index_changes();
        let (view, epoch) = self.live().pin(self.store())?;
        let own = Own::new(view.vertex_bound());
        let reads = Mutex::new(ReadSet::new(epoch, index_changes));
        let durability = self.durability();
        let (updates, num_added) = (Vec::new(), 0);
        Ok(OptimisticTransaction { database: self, pool, view, epoch, reads, own, updates, num_added, durability })
    }

    /// Reads one version with all commits. The read waits for no commit, and sees no later one.
    ///
    /// # Errors
    /// Those of `body`; an earlier read found damage.
    pub fn read<R, E: From<Error>>(&self, body: impl FnOnce(&SnapshotView) -> Result<R, E>) -> Result<R, E> {
        body(&self.view()?)
    }
}

impl<'db> OptimisticTransaction<'db> {
    /// The epoch of the version that the transaction reads: it sees all commits up to this one.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The graph as this transaction sees it, for algorithms and queries.
    pub fn graph(&self) -> TransactionGraph<'_> {
        TransactionGraph::new(self)
    }

    /// Whether the transaction has no writes.
    pub fn is_read_only(&self) -> bool {
        self.updates.is_empty()
    }

    /// Whether a vertex exists.
    ///
    /// # Errors
    /// The key does not fit the graph's key scheme; damage in the dictionary.
    pub fn has_vertex(&self, key: &Key) -> Result<bool> {
        Ok(self.vertex(key)?.is_some())
    }

    /// The id of a vertex in [`graph`](Self::graph); `None` if there is no such vertex.
    ///
    /// # Errors
    /// As [`has_vertex`](Self::has_vertex).
    pub fn vertex(&self, key: &Key) -> Result<Option<VertexId>> {
        let key = &self.fitting(key)?;
        let place = self.place(key)?;
        match place {
            ResolvedKey::View(vertex) | ResolvedKey::Own(vertex) => {
                self.note_existence(vertex);
                Ok(self.is_live(vertex).then_some(vertex))
            }
            ResolvedKey::Nowhere => {
                self.note_absent(key);
                Ok(None)
            }
        }
    }

    /// The key of a vertex of [`graph`](Self::graph).
    ///
    /// # Errors
    /// There is no such vertex; damage in the dictionary.
    pub fn key(&self, vertex: VertexId) -> Result<Key> {
        match self.own.key(vertex, self.view.options()) {
            Some(key) => Ok(key),
            None => {
                // Another commit may make this vertex, so its absence counts as read.
                if vertex as usize >= self.own.vertex_bound {
                    self.note_existence(vertex);
                }
                Ok(self.view.key(vertex)?)
            }
        }
    }

    /// Adds a vertex if it does not exist. Reads nothing.
    ///
    /// # Errors
    /// As [`has_vertex`](Self::has_vertex); the graph has the most vertices possible.
    pub fn add_vertex(&mut self, key: &Key) -> Result<()> {
        let key = self.fitting(key)?;
        self.make(&key)?;
        self.updates.push(Update::AddVertex(key));
        Ok(())
    }

    /// Adds a vertex. Returns whether it did not exist.
    ///
    /// # Errors
    /// As [`add_vertex`](Self::add_vertex).
    pub fn insert_vertex(&mut self, key: &Key) -> Result<bool> {
        let is_new = !self.has_vertex(key)?;
        if is_new {
            self.add_vertex(key)?;
        }
        Ok(is_new)
    }

    /// Removes a vertex with its edges and values, if it exists. Reads nothing: edges that other transactions add to it
    /// before the commit are removed as well.
    ///
    /// # Errors
    /// As [`has_vertex`](Self::has_vertex).
    pub fn remove_vertex(&mut self, key: &Key) -> Result<()> {
        let key = self.fitting(key)?;
        if let ResolvedKey::View(vertex) | ResolvedKey::Own(vertex) = self.place(&key)? {
            self.own.remove_vertex(vertex, self.view.options());
        }
        self.updates.push(Update::RemoveVertex(key));
        Ok(())
    }

    /// The out-neighbors or in-neighbors of a vertex, ascending by id, each once.
    ///
    /// # Errors
    /// There is no such vertex; the graph has no in-edges; damage found on the way.
    pub fn neighbors(&self, key: &Key, direction: Direction) -> Result<Vec<Key>> {
        let vertex = self.require_vertex(key)?;
        let mut neighbors = Vec::new();
        let collect = |targets: &[VertexId]| {
            neighbors.extend_from_slice(targets);
            ControlFlow::Continue(())
        };
        self.require_lists(direction)?;
        let _ = self.graph().for_each_fragment(direction, vertex, collect);
        // A damaged page looks empty, so damage is asked for before the result counts.
        self.view.check()?;
        // The transaction's additions come after the view's fragments, and parallel edges repeat a neighbor.
        neighbors.sort_unstable();
        neighbors.dedup();
        neighbors.into_iter().map(|vertex| self.key(vertex)).collect()
    }

    /// The number of out-edges or in-edges of a vertex; parallel edges count.
    ///
    /// # Errors
    /// As [`neighbors`](Self::neighbors).
    pub fn degree(&self, key: &Key, direction: Direction) -> Result<usize> {
        let vertex = self.require_vertex(key)?;
        self.require_lists(direction)?;
        let degree = self.graph().degree(direction, vertex);
        self.view.check()?;
        Ok(degree)
    }

    /// All vertices, ascending by id. Conflicts with every transaction that adds or removes a vertex.
    ///
    /// # Errors
    /// Damage in the dictionary.
    pub fn vertices(&self) -> Result<Vec<Key>> {
        self.note(ReadKey::Vertices);
        let all = 0..self.own.vertex_bound as VertexId;
        all.filter(|&vertex| self.is_live(vertex)).map(|vertex| self.key(vertex)).collect()
    }

    /// The number of vertices. Conflicts with every transaction that adds or removes a vertex.
    pub fn num_vertices(&self) -> usize {
        self.graph().num_vertices()
    }

    /// The number of edges. Conflicts with every transaction that adds or removes an edge.
    ///
    /// Cost: reads the lists that were written; after a removal of a vertex, all lists.
    pub fn num_edges(&self) -> u64 {
        self.graph().num_edges()
    }

    /// Commits all writes, if nothing in the read set has changed. A transaction without writes always succeeds: it
    /// read one version.
    ///
    /// # Errors
    /// [`Error::Conflict`]: something in the read set changed. A write no longer fits the graph, for example because
    /// another commit gave a new property another type. The disk failed. Nothing has happened.
    pub fn commit(self) -> Result<Committed> {
        self.try_commit(None).map_err(Error::from)
    }

    /// As [`commit`](Self::commit), with its own durability.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_with(mut self, durability: Durability) -> Result<Committed> {
        self.set_durability(durability);
        self.commit()
    }

    /// Sets the durability of this commit; initially the default of the database.
    pub fn set_durability(&mut self, durability: Durability) {
        self.durability = durability;
    }

    /// As [`commit`](Self::commit), without waiting.
    ///
    /// # Errors
    /// An earlier commit panicked.
    pub fn submit(self) -> Result<PendingCommit<'db>> {
        let Self { database, pool, reads, updates, durability, .. } = self;
        let reads = reads.into_inner();
        database.enqueue(request(updates, durability, reads, None), pool)
    }

    /// As [`commit`](Self::commit), while `alone` keeps other commits of this database out. It goes before all that are
    /// queued.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_alone(self, alone: &ExclusiveCommit<'_>) -> Result<Committed> {
        self.try_commit(Some(alone)).map_err(Error::from)
    }

    /// Commits. With `alone`, the request goes before all that are queued.
    pub(crate) fn try_commit(self, alone: Option<&ExclusiveCommit<'_>>) -> Result<Committed, Lost> {
        let Self { database, pool, view, epoch, reads, own, updates, durability, .. } = self;
        // Without writes there is nothing to validate or commit: one version was read.
        if updates.is_empty() {
            return Ok(Committed { epoch, place: 0, numbers: Vec::new() });
        }
        let outcome = Arc::new(OnceLock::new());
        let reads = reads.into_inner();
        let request = request(updates, durability, reads, Some(Arc::clone(&outcome)));
        let done = match alone {
            Some(alone) => database.commit_first(alone, request, pool),
            None => database.enqueue(request, pool)?.finish(),
        };
        match done {
            Ok(()) => {
                let unknown = || Committed { epoch: database.epoch(), place: 0, numbers: Vec::new() };
                Ok(outcome.get().cloned().unwrap_or_else(unknown))
            }
            Err(CommitFailure::Error(error)) => Err(Lost::Error(error)),
            Err(CommitFailure::Conflict(conflict)) => {
                // Ids beyond the view's are provisional, so the transaction's own keys come first.
                let key = |vertex| own.key(vertex, view.options()).or_else(|| view.key(vertex).ok());
                let name = |vertex| key(vertex).map_or_else(|| format!("with id {vertex}"), |key| key.to_string());
                Err(Lost::Conflict(match conflict {
                    Conflict::Changed(item) => item.describe(name),
                    Conflict::Created(key) => format!("the existence of vertex {key}"),
                }))
            }
        }
    }

    fn fitting(&self, key: &Key) -> Result<Key> {
        fitting_key(key, self.view.options().keys)
    }

    fn place(&self, key: &Key) -> Result<ResolvedKey> {
        // First the keys that were made here, because the view does not know them.
        if let Some(vertex) = self.own.id(key, self.view.options()) {
            return Ok(ResolvedKey::Own(vertex));
        }
        let known = self.view.vertex_dead_or_alive(key)?;
        Ok(known.map_or(ResolvedKey::Nowhere, |(vertex, _)| ResolvedKey::View(vertex)))
    }

    /// The id of a key that is a vertex from now on.
    fn make(&mut self, key: &Key) -> Result<VertexId> {
        let vertex = match self.place(key)? {
            ResolvedKey::View(vertex) | ResolvedKey::Own(vertex) => vertex,
            ResolvedKey::Nowhere => {
                let next = match (self.view.options().keys, key) {
                    (KeyScheme::Dense, &Key::Integer(id)) => id,
                    _ => self.own.vertex_bound as u64,
                };
                if next >= MAX_VERTICES as u64 {
                    return Err(Error::no_id_left(key, self.view.options().keys));
                }
                return Ok(self.own.make(key, self.view.options()));
            }
        };
        // A known id may belong to a removed vertex: it is a vertex again.
        self.own.states.insert(vertex, true);
        Ok(vertex)
    }

    fn require_vertex(&self, key: &Key) -> Result<VertexId> {
        self.vertex(key)?.ok_or_else(|| Error::NoVertex { key: key.clone() })
    }

    fn require_lists(&self, direction: Direction) -> Result<()> {
        if self.view.has_lists(direction) { Ok(()) } else { Err(Error::NoInEdges) }
    }

    fn is_live(&self, vertex: VertexId) -> bool {
        self.own.is_live(vertex).unwrap_or_else(|| self.view.is_live(vertex))
    }

    fn note(&self, item: ReadKey) {
        self.reads.lock().push(item);
    }

    fn note_absent(&self, key: &Key) {
        self.reads.lock().push_absent(key);
    }

    /// Notes a read of a vertex. For a vertex made here, that is the absence of its key in other commits.
    fn note_of(&self, vertex: VertexId, item: ReadKey) {
        match self.own.key(vertex, self.view.options()) {
            None => self.note(item),
            Some(key) => self.note_absent(&key),
        }
    }

    /// Notes that the existence of a vertex was read, unless this transaction wrote it.
    fn note_existence(&self, vertex: VertexId) {
        if self.own.states.contains_key(&vertex) {
            return;
        }
        let is_key = self.view.options().keys == KeyScheme::Dense;
        match (vertex as usize) < self.own.vertex_bound || is_key {
            true => self.note_of(vertex, ReadKey::Existence(vertex)),
            // Another transaction that makes vertices may get this id.
            false => self.note(ReadKey::Vertices),
        }
    }

    fn note_list(&self, direction: Direction, vertex: VertexId) {
        let item = match direction {
            Direction::Out => ReadKey::OutList(vertex),
            Direction::In => ReadKey::in_list(self.view.options(), vertex),
        };
        self.note_of(vertex, item);
        let options = self.view.options();
        if options.ordered && options.keys != KeyScheme::Dense && vertex as usize >= self.own.first_new {
            self.note_order(vertex);
        }
    }

    /// In an ordered graph, the vertex with the lesser id stores the edge. The ids of two vertices made here depend on
    /// which of them another transaction makes first. An edge from here to a new vertex is turned if that vertex is
    /// made alone; the reader of its list notes that.
    fn note_order(&self, vertex: VertexId) {
        let targets = self.own.list(Direction::Out, vertex).targets();
        let keys = targets.filter_map(|target| self.own.key(target, self.view.options()));
        keys.for_each(|key| self.note_absent(&key));
    }
}

fn request(
    updates: Vec<Update>,
    durability: Durability,
    reads: ReadSet,
    outcome: Option<Arc<OnceLock<Committed>>>,
) -> CommitRequest {
    let is_empty = updates.is_empty();
    let updates = match <[Update; 1]>::try_from(updates) {
        // Most transactions have one update, which needs no vector.
        Ok([update]) => CommitUpdates::One(update),
        Err(updates) => CommitUpdates::Many(updates),
    };
    // A transaction without writes has read one version, whatever changed since.
    let reads = (!is_empty).then(|| Box::new(reads));
    CommitRequest { updates, durability, reads, outcome, sequence: None, has_failed: false }
}

/// Why a transaction was not committed.
#[derive(Debug)]
pub(crate) enum Lost {
    /// A description of the read key that changed.
    Conflict(String),
    Error(Error),
}

impl From<Error> for Lost {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<Lost> for Error {
    fn from(lost: Lost) -> Self {
        match lost {
            Lost::Conflict(what) => Self::Conflict { what },
            Lost::Error(error) => error,
        }
    }
}
