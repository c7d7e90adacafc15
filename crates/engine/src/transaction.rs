//! Transactions: serializable, optimistic.
//!
//! A transaction reads one version of the graph, notes what it read, and keeps what it writes to itself. When it is
//! committed, whoever leads the group holds what was read against what was changed since; if nothing was, what it writes
//! happens, as if the whole transaction had run at that moment. Otherwise nothing happens, and it can be tried again.
//! What was not there counts as read too: an edge that was looked for in vain, a key that named no vertex.
//!
//! `add`, `remove` and setting a value of a vertex read nothing and so conflict with nothing; `insert`, `has`, setting a
//! weight or a value of an edge, and all questions read.

mod edges;
mod graph;
mod own;
mod properties;
mod retry;

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ::graph::{Graph, InEdges};
use base::parallel::Pool;
use base::{MAX_VERTICES, VertexId};
use lama::{Key, KeyScheme, Side, View};

pub use self::edges::{FoundEdge, edges_between};
pub use self::graph::TransactionGraph;
use self::own::{Own, OwnList};
use crate::commit::{Alone, Pending};
use crate::commit_queue::{Committed, Request, Updates};
use crate::fitting::fitting_key;
use crate::live::Update;
use crate::log::Durability;
use crate::validation::{Conflict, Failure, ReadKey, ReadSet};
use crate::{Database, Error, Result};

/// Changes in the making, and what they depend on; dropped, nothing has happened.
///
/// Reading takes `&self`, also from several threads; writing takes `&mut self`; a commit takes the transaction, so that it
/// cannot be used afterwards.
#[derive(Debug)]
pub struct Transaction<'db> {
    database: &'db Database,
    pool: &'db Pool,
    view: View,
    epoch: u64,
    reads: Mutex<ReadSet>,
    own: Own,
    updates: Vec<Update>,
    /// Edges among the updates that are to be added.
    num_added: usize,
    durability: Durability,
}

/// Where a key leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// To an id of the view, that of a vertex or not.
    View(VertexId),
    /// To a vertex that was made here, or removed again.
    Own(VertexId),
    Nowhere,
}

impl Database {
    /// Begins a transaction over everything that is committed.
    ///
    /// Cost: that of a view; the first of a database allots 8 MB.
    ///
    /// # Errors
    /// The handle cannot write; damage that was met before.
    pub fn begin<'db>(&'db self, pool: &'db Pool) -> Result<Transaction<'db>> {
        self.require_writer()?;
        let index_changes = self.live().index_changes();
        let (view, epoch) = self.live().pin(self.store())?;
        let own = Own::new(view.vertex_bound());
        let reads = Mutex::new(ReadSet::new(epoch, index_changes));
        let durability = self.durability();
        let (updates, num_added) = (Vec::new(), 0);
        Ok(Transaction { database: self, pool, view, epoch, reads, own, updates, num_added, durability })
    }

    /// Reads everything that is committed: no commit is waited for, and nothing that is committed meanwhile is seen.
    ///
    /// # Errors
    /// Those of `body`; damage that was met before.
    pub fn read<R, E: From<Error>>(&self, body: impl FnOnce(&View) -> Result<R, E>) -> Result<R, E> {
        body(&self.view()?)
    }
}

impl<'db> Transaction<'db> {
    /// An epoch all of whose commits it sees.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The graph as the transaction sees it, for algorithms and questions.
    pub fn graph(&self) -> TransactionGraph<'_> {
        TransactionGraph::new(self)
    }

    /// Whether nothing was written.
    pub fn is_read_only(&self) -> bool {
        self.updates.is_empty()
    }

    /// Whether a vertex is there.
    ///
    /// # Errors
    /// The key is none of this graph; damage in the dictionary.
    pub fn has_vertex(&self, key: &Key) -> Result<bool> {
        Ok(self.vertex(key)?.is_some())
    }

    /// The id of a vertex in [`graph`](Self::graph); `None` where there is none.
    ///
    /// # Errors
    /// As [`has_vertex`](Self::has_vertex).
    pub fn vertex(&self, key: &Key) -> Result<Option<VertexId>> {
        let key = &self.fitting(key)?;
        let place = self.place(key)?;
        match place {
            Place::View(vertex) | Place::Own(vertex) => {
                self.note_existence(vertex);
                Ok(self.is_live(vertex).then_some(vertex))
            }
            Place::Nowhere => {
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
                if vertex as usize >= self.own.vertex_bound {
                    self.note_existence(vertex);
                }
                Ok(self.view.key(vertex)?)
            }
        }
    }

    /// Makes a vertex, if there is none. Reads nothing.
    ///
    /// # Errors
    /// As [`has_vertex`](Self::has_vertex); a graph cannot have so many.
    pub fn add_vertex(&mut self, key: &Key) -> Result<()> {
        let key = self.fitting(key)?;
        self.make(&key)?;
        self.updates.push(Update::AddVertex(key));
        Ok(())
    }

    /// Makes a vertex; whether there was none.
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

    /// Removes a vertex with its edges and values, if it is there. Reads nothing: edges that others add to it before the
    /// commit go as well.
    ///
    /// # Errors
    /// As [`has_vertex`](Self::has_vertex).
    pub fn remove_vertex(&mut self, key: &Key) -> Result<()> {
        let key = self.fitting(key)?;
        if let Place::View(vertex) | Place::Own(vertex) = self.place(&key)? {
            self.own.remove_vertex(vertex, self.view.options());
        }
        self.updates.push(Update::RemoveVertex(key));
        Ok(())
    }

    /// The neighbours of a vertex by its out-edges or in-edges, ascending by id, each once.
    ///
    /// # Errors
    /// There is no such vertex; in-edges are asked for and the graph has none; damage met on the way.
    pub fn neighbors(&self, key: &Key, side: Side) -> Result<Vec<Key>> {
        let vertex = self.require_vertex(key)?;
        let mut neighbors = Vec::new();
        let collect = |targets: &[VertexId]| {
            neighbors.extend_from_slice(targets);
            ControlFlow::Continue(())
        };
        let _ = match side {
            Side::Out => self.graph().for_each_out_fragment(vertex, collect),
            Side::In => {
                self.require_in_edges()?;
                self.graph().for_each_in_fragment(vertex, collect)
            }
        };
        self.view.check()?;
        neighbors.sort_unstable();
        neighbors.dedup();
        neighbors.into_iter().map(|vertex| self.key(vertex)).collect()
    }

    /// The number of out-edges or in-edges of a vertex; parallel edges count.
    ///
    /// # Errors
    /// As [`neighbors`](Self::neighbors).
    pub fn degree(&self, key: &Key, side: Side) -> Result<usize> {
        let vertex = self.require_vertex(key)?;
        let degree = match side {
            Side::Out => self.graph().out_degree(vertex),
            Side::In => {
                self.require_in_edges()?;
                self.graph().in_degree(vertex)
            }
        };
        self.view.check()?;
        Ok(degree)
    }

    /// All vertices, by ascending id. The transaction conflicts with who makes or removes any.
    ///
    /// # Errors
    /// Damage in the dictionary.
    pub fn vertices(&self) -> Result<Vec<Key>> {
        self.note(ReadKey::Vertices);
        let all = 0..self.own.vertex_bound as VertexId;
        all.filter(|&vertex| self.is_live(vertex)).map(|vertex| self.key(vertex)).collect()
    }

    /// The number of vertices. The transaction conflicts with who makes or removes any.
    pub fn num_vertices(&self) -> usize {
        self.graph().num_vertices()
    }

    /// The number of edges. The transaction conflicts with who adds or removes any.
    ///
    /// Cost: that of the lists that were written; where a vertex went, a look at all lists.
    pub fn num_edges(&self) -> u64 {
        self.graph().num_edges()
    }

    /// Commits: what was written happens, all of it, if nothing changed that was read. One that wrote nothing always
    /// succeeds: it read one version.
    ///
    /// # Errors
    /// [`Error::Conflict`]: something changed that was read; something that was written does not fit the graph any more,
    /// as a property whose type somebody else chose; the disk failed. Nothing has happened.
    pub fn commit(self) -> Result<Committed> {
        self.try_commit(None).map_err(Error::from)
    }

    /// As [`commit`](Self::commit), with a durability of its own.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_with(mut self, durability: Durability) -> Result<Committed> {
        self.set_durability(durability);
        self.commit()
    }

    /// Sets what of it survives a crash once it is committed; at first what is set for the database.
    pub fn set_durability(&mut self, durability: Durability) {
        self.durability = durability;
    }

    /// As [`commit`](Self::commit), without waiting.
    ///
    /// # Errors
    /// A commit panicked.
    pub fn submit(self) -> Result<Pending<'db>> {
        let Self { database, pool, reads, updates, durability, .. } = self;
        let reads = reads.into_inner().unwrap_or_else(PoisonError::into_inner);
        database.enqueue(request(updates, durability, reads, None), pool)
    }

    /// Commits, before all others who wait where the caller is alone.
    pub(crate) fn try_commit(self, alone: Option<&Alone<'_>>) -> Result<Committed, Lost> {
        let Self { database, pool, view, epoch, reads, own, updates, durability, .. } = self;
        if updates.is_empty() {
            return Ok(Committed { epoch, place: 0, numbers: Vec::new() });
        }
        let outcome = Arc::new(OnceLock::new());
        let reads = reads.into_inner().unwrap_or_else(PoisonError::into_inner);
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
            Err(Failure::Error(error)) => Err(Lost::Error(error)),
            Err(Failure::Conflict(conflict)) => {
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

    fn place(&self, key: &Key) -> Result<Place> {
        if let Some(vertex) = self.own.id(key, self.view.options()) {
            return Ok(Place::Own(vertex));
        }
        let known = self.view.vertex_dead_or_alive(key)?;
        Ok(known.map_or(Place::Nowhere, |(vertex, _)| Place::View(vertex)))
    }

    /// The id of a key that is to be a vertex from now on.
    fn make(&mut self, key: &Key) -> Result<VertexId> {
        let vertex = match self.place(key)? {
            Place::View(vertex) | Place::Own(vertex) => vertex,
            Place::Nowhere => {
                let next = match (self.view.options().keys, key) {
                    (KeyScheme::Dense, &Key::Integer(id)) => id,
                    _ => self.own.vertex_bound as u64,
                };
                if next >= MAX_VERTICES as u64 {
                    return Err(Error::Option(format!("vertex {key}: a graph has at most {MAX_VERTICES} vertices")));
                }
                return Ok(self.own.make(key, self.view.options()));
            }
        };
        self.own.states.insert(vertex, true);
        Ok(vertex)
    }

    fn require_vertex(&self, key: &Key) -> Result<VertexId> {
        self.vertex(key)?.ok_or_else(|| Error::NoVertex { key: key.to_string() })
    }

    fn require_in_edges(&self) -> Result<()> {
        match self.view.has_in_edges() {
            true => Ok(()),
            false => Err(Error::Option("in-neighbours need in-edges: load without --out-only".into())),
        }
    }

    fn is_live(&self, vertex: VertexId) -> bool {
        self.own.is_live(vertex).unwrap_or_else(|| self.view.is_live(vertex))
    }

    fn note(&self, item: ReadKey) {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner).push(item);
    }

    fn note_absent(&self, key: &Key) {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner).push_absent(key);
    }

    /// Something of a vertex is read; of one that was made here, that others did not make it.
    fn note_of(&self, vertex: VertexId, item: ReadKey) {
        match self.own.key(vertex, self.view.options()) {
            None => self.note(item),
            Some(key) => self.note_absent(&key),
        }
    }

    /// Whether a vertex is there is read, unless that was written here.
    fn note_existence(&self, vertex: VertexId) {
        if self.own.states.contains_key(&vertex) {
            return;
        }
        let is_key = self.view.options().keys == KeyScheme::Dense;
        match (vertex as usize) < self.own.vertex_bound || is_key {
            true => self.note_of(vertex, ReadKey::Existence(vertex)),
            // Whoever makes vertices may be given this id.
            false => self.note(ReadKey::Vertices),
        }
    }

    fn note_list(&self, side: Side, vertex: VertexId) {
        let item = match side {
            Side::Out => ReadKey::OutList(vertex),
            Side::In => ReadKey::in_list(self.view.options(), vertex),
        };
        self.note_of(vertex, item);
        let options = self.view.options();
        if options.ordered && options.keys != KeyScheme::Dense && vertex as usize >= self.own.first_new {
            self.note_order(vertex);
        }
    }

    /// In an ordered graph, the lesser id of two has their edge: of two vertices that were made here, that is decided by
    /// who else makes one of them before. Edges to a new vertex lead the other way if it is made alone, which is noted
    /// by who reads its list.
    fn note_order(&self, vertex: VertexId) {
        let targets = self.own.list(Side::Out, vertex).into_iter().flat_map(OwnList::targets);
        let keys = targets.filter_map(|target| self.own.key(target, self.view.options()));
        keys.for_each(|key| self.note_absent(&key));
    }
}

fn request(
    updates: Vec<Update>,
    durability: Durability,
    reads: ReadSet,
    outcome: Option<Arc<OnceLock<Committed>>>,
) -> Request {
    let is_empty = updates.is_empty();
    let updates = match <[Update; 1]>::try_from(updates) {
        Ok([update]) => Updates::One(update),
        Err(updates) => Updates::Many(updates),
    };
    // Who writes nothing has read one version, whatever changed since.
    let reads = (!is_empty).then(|| Box::new(reads));
    Request { updates, durability, reads, outcome, sequence: None, has_failed: false }
}

/// Why a transaction was not committed.
#[derive(Debug)]
pub(crate) enum Lost {
    /// This changed.
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
