//! Transactions, by key.

use std::sync::Arc;

use anden_base::VertexId;
use anden_engine::{Committed, Durability, EdgeWeight, NewEdge, OptimisticTransaction, TransactionGraph, Update};
use anden_graph::Direction;
use anden_graph::property::OwnedValue;
use anden_kernels::{Context, query};

use crate::changes::{CommitGuard, EdgeAction};
use crate::pinned::Pin;
use crate::property::NewValue;
use crate::query::{FoundEdge, Path, PathLength};
use crate::session::Beside;
use crate::{Database, EdgeId, Error, Key, Neighbors, Pending, Progress, Result, Session, View};

/// A read-write transaction. Dropping it discards its changes.
///
/// A transaction reads the version at which it began, plus its own writes. [`commit`](Self::commit) applies all writes
/// atomically, if no other commit changed what the transaction read. So transactions are serializable. A failed lookup
/// counts as a read too.
///
/// `add_*`, `remove_*` and `set` (without a unique index) read nothing, so they never conflict. `insert_*`, `has_*`,
/// `set_weight`, `set_edge`, `change_edge` and all queries read.
///
/// Reads take `&self` and may run on several threads. Writes take `&mut self`. A commit consumes the transaction:
///
/// ```compile_fail,E0382
/// # use anden::{Database, Options};
/// # let db = Database::in_memory(Options::default())?;
/// let mut tx = db.begin()?;
/// tx.add_edge(1, 2)?;
/// tx.commit()?;
/// tx.add_edge(2, 3)?; // there is no transaction any more
/// # Ok::<(), anden::Error>(())
/// ```
///
/// Two threads cannot write through one transaction:
///
/// ```compile_fail,E0499
/// # use anden::{Database, Options};
/// # let db = Database::in_memory(Options::default())?;
/// let mut tx = db.begin()?;
/// std::thread::scope(|scope| {
///     scope.spawn(|| tx.add_edge(1, 2));
///     scope.spawn(|| tx.add_edge(2, 3)); // the first one has it
/// });
/// # Ok::<(), anden::Error>(())
/// ```
///
/// All methods fail if a key has the wrong type for this graph ([`Error::InvalidInput`]), and on damage met on the way.
#[derive(Debug)]
pub struct Transaction<'db> {
    inner: OptimisticTransaction<'db>,
    database: &'db Database,
    /// The session with another progress report; `None`: that of the database.
    session: Option<Box<Session>>,
    /// Counts as an open view and keeps the version that the transaction reads.
    _pin: Pin,
}

impl Database {
    /// Begins a transaction on everything committed.
    ///
    /// ```
    /// use anden::{Database, Error, Options};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// let (mut first, mut second) = (db.begin()?, db.begin()?);
    /// for tx in [&mut first, &mut second] {
    ///     // Both see that there is no edge back, and add one.
    ///     if !tx.has_edge(2, 1)? && !tx.has_edge(1, 2)? {
    ///         tx.add_edge(1, 2)?;
    ///     }
    /// }
    /// first.commit()?;
    /// let error = second.commit().unwrap_err();
    /// assert!(matches!(error, Error::Conflict(_)));
    /// assert!(error.to_string().starts_with("the existence of vertex 1 changed"));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The database is open for reading only; damage that was met before.
    pub fn begin(&self) -> Result<Transaction<'_>> {
        Ok(self.begun(self.inner().begin(self.session().pool())?))
    }

    fn begun<'db>(&'db self, inner: OptimisticTransaction<'db>) -> Transaction<'db> {
        Transaction { inner, database: self, session: None, _pin: self.pin() }
    }

    /// Runs `body` in a transaction and commits it. After a conflict, the transaction runs again on the newest version.
    /// After several conflicts it runs exclusively, so it succeeds under any load. If `body` returns an error, nothing
    /// is changed.
    ///
    /// `body` may run several times. It must neither wait for a commit of another thread nor await one of its own.
    ///
    /// ```
    /// use anden::{Database, Error, KeyScheme, Options};
    ///
    /// let db = Database::in_memory(Options { keys: KeyScheme::String, ..Options::default() })?;
    /// let friends = db.transact(|tx| {
    ///     tx.add_edge("ann", "bob")?;
    ///     tx.neighbors("ann")
    /// })?;
    /// assert_eq!(friends, ["bob".into()]);
    ///
    /// let refused = db.transact(|tx| {
    ///     tx.add_edge("ann", "cid")?;
    ///     if tx.degree("ann")? > 1 { Err(Error::InvalidInput("one friend is enough".into())) } else { Ok(()) }
    /// });
    /// assert!(refused.is_err());
    /// assert_eq!(db.view()?.num_edges(), 1);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Errors of `body`, and those of [`Transaction::commit`] except conflicts.
    pub fn transact<R>(&self, mut body: impl FnMut(&mut Transaction<'_>) -> Result<R>) -> Result<R> {
        self.inner().transact_owned(self.session().pool(), |inner| {
            // The engine retries after conflicts, so each attempt gets a wrapper of its own.
            let mut transaction = self.begun(inner);
            let result = body(&mut transaction)?;
            // The engine commits the returned transaction. A dropped one discards its writes.
            Ok((result, transaction.inner))
        })
    }

    /// Runs `body` on a view of everything committed. A read never waits for writers, never conflicts, and does not see
    /// later commits.
    ///
    /// ```
    /// use anden::{Database, Options, Update};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// db.apply(&[Update::add_edge(1, 2), Update::add_edge(2, 3)])?;
    /// let (edges, hops) = db.read(|view| Ok((view.num_edges(), view.bfs(1)?)))?;
    /// assert_eq!((edges, hops), (2, vec![0, 1, 2]));
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// Errors of `body`; damage met earlier.
    pub fn read<R>(&self, body: impl FnOnce(&View) -> Result<R>) -> Result<R> {
        body(&self.view()?)
    }

    /// Like [`apply`](Self::apply), without waiting. Many commits in flight form large groups, which cost less per
    /// commit. Commits of one caller take effect in the order of submission.
    ///
    /// ```
    /// use anden::{Database, Options, Update};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// let pending: Vec<_> = (0..100).map(|i| db.submit(&[Update::add_edge(i, i + 1)])).collect::<Result<_, _>>()?;
    /// for commit in pending {
    ///     commit.wait()?;
    /// }
    /// assert_eq!(db.view()?.num_edges(), 100);
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// The database is open for reading only. [`Pending::wait`] returns errors in the updates.
    pub fn submit(&self, updates: &[Update]) -> Result<Pending> {
        self.submit_with(updates, self.durability())
    }

    /// Like [`submit`](Self::submit), with this durability. The whole commit group becomes at least as durable.
    ///
    /// ```
    /// use anden::{Database, Durability, Options, Update};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("calls.anden");
    /// let db = Database::create(&path, Options::default())?;
    /// db.submit_with(&[Update::add_edge(1, 2)], Durability::None)?.wait()?;
    /// assert_eq!(db.metrics().live.log_syncs, 0);
    /// let first = db.submit_with(&[Update::add_edge(2, 3)], Durability::None)?;
    /// let second = db.submit_with(&[Update::add_edge(3, 4)], Durability::Sync)?;
    /// first.wait()?;
    /// second.wait()?;
    /// assert_eq!(db.metrics().live.log_syncs, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn submit_with(&self, updates: &[Update], durability: Durability) -> Result<Pending> {
        let commit = self.inner().submit_with(updates, durability, self.session().pool())?;
        Ok(Pending::new(self, commit))
    }
}

impl<'db> Transaction<'db> {
    /// Commits: applies all writes, if no other commit changed what this transaction read. A transaction without writes
    /// always succeeds.
    ///
    /// # Errors
    /// [`Error::Conflict`]: another commit changed what this one read; the message names it. A write no longer fits the
    /// graph, or the disk fails. Nothing is changed then.
    pub fn commit(self) -> Result<Committed> {
        Ok(self.inner.commit()?)
    }

    /// Like [`commit`](Self::commit), with this durability.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_with(self, durability: Durability) -> Result<Committed> {
        Ok(self.inner.commit_with(durability)?)
    }

    /// Like [`commit`](Self::commit), while `guard` keeps other commits out. If the transaction began after that, it
    /// cannot conflict.
    ///
    /// # Errors
    /// As [`commit`](Self::commit). The guard belongs to another database.
    pub fn commit_alone(self, guard: &CommitGuard<'_>) -> Result<Committed> {
        Ok(self.inner.commit_alone(guard.of(self.database)?)?)
    }

    /// Sets the durability of this transaction, also inside [`Database::transact`]. Initially that of the database.
    ///
    /// ```
    /// use anden::{Database, Durability, Options};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("calls.anden");
    /// let db = Database::create(&path, Options::default())?;
    /// db.transact(|tx| {
    ///     tx.set_durability(Durability::None);
    ///     tx.add_edge(1, 2)
    /// })?;
    /// assert_eq!(db.metrics().live.log_syncs, 0);
    /// db.transact(|tx| tx.add_edge(2, 3))?;
    /// assert_eq!(db.metrics().live.log_syncs, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_durability(&mut self, durability: Durability) {
        self.inner.set_durability(durability);
    }

    /// Reports the progress of long queries to `progress`, which may cancel them. A cancelled query leaves the
    /// transaction open, and changes nothing.
    ///
    /// ```no_run
    /// use std::sync::Arc;
    ///
    /// use anden::{Database, Error, Options, Progress};
    ///
    /// struct Cancelled;
    /// impl Progress for Cancelled {
    ///     fn is_cancelled(&self) -> bool {
    ///         true
    ///     }
    /// }
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// let mut tx = db.begin()?;
    /// tx.add_edge(1, 2)?;
    /// tx.set_progress(Arc::new(Cancelled));
    /// assert!(matches!(tx.khop(1, 5), Err(Error::Cancelled)));
    /// tx.commit()?;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn set_progress(&mut self, progress: Arc<dyn Progress + Send + Sync>) {
        self.session = Some(Box::new(self.database.session().clone().with_progress(progress)));
    }

    fn session(&self) -> &Session {
        self.session.as_deref().unwrap_or_else(|| self.database.session())
    }

    /// Like [`commit`](Self::commit), without waiting.
    ///
    /// # Errors
    /// An earlier commit panicked.
    pub fn submit(self) -> Result<Pending> {
        Ok(Pending::new(self.database, self.inner.submit()?))
    }

    /// An epoch such that the transaction sees all commits up to it.
    pub fn epoch(&self) -> u64 {
        self.inner.epoch()
    }

    /// The graph as the transaction sees it, for your own algorithms. Every list that is read joins the read set.
    pub fn graph(&self) -> TransactionGraph<'_> {
        self.inner.graph()
    }

    /// The id of a vertex in [`graph`](Self::graph). The id of a vertex that this transaction added is valid only
    /// there.
    ///
    /// # Errors
    /// [`Error::NotFound`]: there is no such vertex.
    pub fn vertex(&self, vertex: impl Into<Key>) -> Result<VertexId> {
        let key = vertex.into();
        self.inner.vertex(&key)?.ok_or_else(|| Error::no_vertex(&key))
    }

    /// The key of a vertex of [`graph`](Self::graph).
    ///
    /// # Errors
    /// There is no such vertex.
    pub fn key(&self, vertex: VertexId) -> Result<Key> {
        Ok(self.inner.key(vertex)?)
    }

    /// Whether the vertex exists.
    ///
    /// # Errors
    /// See above.
    pub fn has_vertex(&self, vertex: impl Into<Key>) -> Result<bool> {
        Ok(self.inner.has_vertex(&vertex.into())?)
    }

    /// Adds a vertex if it does not exist. Reads nothing.
    ///
    /// # Errors
    /// See above.
    pub fn add_vertex(&mut self, vertex: impl Into<Key>) -> Result<()> {
        Ok(self.inner.add_vertex(&vertex.into())?)
    }

    /// Adds a vertex if it does not exist. Returns whether it was added.
    ///
    /// # Errors
    /// See above.
    pub fn insert_vertex(&mut self, vertex: impl Into<Key>) -> Result<bool> {
        Ok(self.inner.insert_vertex(&vertex.into())?)
    }

    /// Removes a vertex with its edges and properties, if it exists. Reads nothing.
    ///
    /// # Errors
    /// See above.
    pub fn remove_vertex(&mut self, vertex: impl Into<Key>) -> Result<()> {
        Ok(self.inner.remove_vertex(&vertex.into())?)
    }

    /// Whether the edge exists; false if an end vertex is missing.
    ///
    /// # Errors
    /// See above.
    pub fn has_edge(&self, source: impl Into<Key>, target: impl Into<Key>) -> Result<bool> {
        Ok(self.inner.has_edge(&source.into(), &target.into())?)
    }

    /// Adds an edge and its missing end vertices; in a multigraph, one more parallel edge. Reads nothing. In a
    /// multigraph, the result of [`commit`](Self::commit) maps the returned handle to an [`EdgeId`].
    ///
    /// ```
    /// use anden::{Database, Options};
    /// use anden::changes::EdgeAction;
    ///
    /// let db = Database::in_memory(Options { multigraph: true, ..Options::default() })?;
    /// let mut tx = db.begin()?;
    /// let (first, second) = (tx.add_edge(1, 2)?, tx.add_edge(1, 2)?);
    /// let committed = tx.commit()?;
    /// let id = committed.edge_id(&first).expect("edges of a multigraph have names");
    /// db.transact(|tx| tx.change_edge(&id, EdgeAction::Remove))?;
    /// let left = db.view()?.edges_between(1, 2)?;
    /// assert_eq!(left[0].number, committed.edge_id(&second).map(|id| id.number));
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// See above; the graph has weights.
    pub fn add_edge(&mut self, source: impl Into<Key>, target: impl Into<Key>) -> Result<NewEdge> {
        Ok(self.inner.add_edge(&source.into(), &target.into(), None)?)
    }

    /// Like [`add_edge`](Self::add_edge), with a weight. An existing edge gets this weight.
    ///
    /// # Errors
    /// See above; the weight does not fit the graph.
    pub fn add_weighted_edge(
        &mut self,
        source: impl Into<Key>,
        target: impl Into<Key>,
        weight: impl Into<EdgeWeight>,
    ) -> Result<NewEdge> {
        Ok(self.inner.add_edge(&source.into(), &target.into(), Some(weight.into()))?)
    }

    /// Like [`add_edge`](Self::add_edge), with properties, and with a weight if the graph has weights, in one update.
    /// In a multigraph the new edge gets the values. In a simple graph an existing edge gets them, and keeps its other
    /// values. A new property name creates the property. Reads nothing, with one exception: a null value of a property
    /// that does not exist, in a simple graph.
    ///
    /// ```
    /// use anden::{Database, Options};
    ///
    /// let db = Database::in_memory(Options { edge_properties: true, multigraph: true, ..Options::default() })?;
    /// let mut tx = db.begin()?;
    /// tx.add_edge_with(1, 2, None, [("kind", "card")])?;
    /// tx.add_edge_with(1, 2, None, [("kind", "wire")])?;
    /// assert_eq!(tx.get_edge(1, 2, "kind")?, "wire".into());
    /// tx.commit()?;
    /// assert_eq!(db.view()?.edges_between(1, 2)?.len(), 2);
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// See above; the weight does not fit the graph. Edges of this graph have no properties. A value does not have the
    /// type of its property.
    pub fn add_edge_with<N: Into<Arc<str>>, V: Into<OwnedValue>>(
        &mut self,
        source: impl Into<Key>,
        target: impl Into<Key>,
        weight: Option<EdgeWeight>,
        properties: impl IntoIterator<Item = (N, V)>,
    ) -> Result<NewEdge> {
        let properties = properties.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Ok(self.inner.add_edge_with(&source.into(), &target.into(), weight, properties)?)
    }

    /// Adds an edge if it does not exist. Returns whether it was added.
    ///
    /// # Errors
    /// See above; the graph has weights.
    pub fn insert_edge(&mut self, source: impl Into<Key>, target: impl Into<Key>) -> Result<bool> {
        Ok(self.inner.insert_edge(&source.into(), &target.into(), None)?)
    }

    /// Like [`insert_edge`](Self::insert_edge), with a weight. An existing edge keeps its weight.
    ///
    /// # Errors
    /// See above; the weight does not fit the graph.
    pub fn insert_weighted_edge(
        &mut self,
        source: impl Into<Key>,
        target: impl Into<Key>,
        weight: impl Into<EdgeWeight>,
    ) -> Result<bool> {
        Ok(self.inner.insert_edge(&source.into(), &target.into(), Some(weight.into()))?)
    }

    /// Removes an edge if it exists; in a multigraph, all parallel edges of the pair. Reads nothing.
    ///
    /// # Errors
    /// See above.
    pub fn remove_edge(&mut self, source: impl Into<Key>, target: impl Into<Key>) -> Result<()> {
        Ok(self.inner.remove_edge(&source.into(), &target.into())?)
    }

    /// The weight of an edge; `None` if the edge does not exist or the graph has no weights.
    ///
    /// # Errors
    /// See above.
    pub fn weight(&self, source: impl Into<Key>, target: impl Into<Key>) -> Result<Option<EdgeWeight>> {
        Ok(self.inner.weight(&source.into(), &target.into())?)
    }

    /// Sets the weight of an existing edge; in a multigraph, of all parallel edges of the pair.
    ///
    /// # Errors
    /// [`Error::NotFound`]: the edge does not exist. See above; the weight does not fit the graph.
    pub fn set_weight(
        &mut self,
        source: impl Into<Key>,
        target: impl Into<Key>,
        weight: impl Into<EdgeWeight>,
    ) -> Result<()> {
        Ok(self.inner.set_weight(&source.into(), &target.into(), weight.into())?)
    }

    /// The value of a property of a vertex; null if the vertex has no value or the property does not exist.
    ///
    /// # Errors
    /// [`Error::NotFound`]: the vertex does not exist.
    pub fn get(&self, vertex: impl Into<Key>, name: &str) -> Result<OwnedValue> {
        Ok(self.inner.vertex_value(&vertex.into(), name)?)
    }

    /// Sets a property of a vertex, and adds the vertex if it does not exist, like [`Update::set_vertex`]. A null value
    /// removes the value and adds no vertex. A new property name creates the property. Reads nothing, unless the
    /// property has a unique index: then it reads which vertex has the value.
    ///
    /// ```
    /// use anden::{Database, Options};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// db.transact(|tx| tx.set(7, "name", "seven"))?;
    /// assert_eq!(db.view()?.num_vertices(), 1);
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UniqueViolation`]: the index is unique, and another vertex has the value; the transaction is unchanged.
    /// See above; the value does not have the type of the property.
    pub fn set(&mut self, vertex: impl Into<Key>, name: &str, value: impl Into<OwnedValue>) -> Result<()> {
        Ok(self.inner.set_vertex_value(&vertex.into(), name, value.into())?)
    }

    /// The vertices with a value of a property, in ascending order of ids: those of [`View::find_vertices`] with the
    /// writes of this transaction applied. The transaction conflicts with commits that give a vertex this value, or
    /// change or remove a found vertex. Without an index, it conflicts with every commit that sets the property.
    ///
    /// ```
    /// use anden::{Database, Options};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// db.transact(|tx| tx.set(7, "email", "ann@example.org"))?;
    /// let found = db.transact(|tx| tx.find("email", "ann@example.org"))?;
    /// assert_eq!(found, [7.into()]);
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`]: the property does not exist. [`Error::InvalidInput`]: the value does not have its type.
    pub fn find(&self, name: &str, value: impl Into<NewValue>) -> Result<Vec<Key>> {
        Ok(self.inner.find(name, &value.into())?)
    }

    /// The value of a property of an edge; null if it has none. Among parallel edges, that of the newest one.
    ///
    /// # Errors
    /// See above.
    pub fn get_edge(&self, source: impl Into<Key>, target: impl Into<Key>, name: &str) -> Result<OwnedValue> {
        Ok(self.inner.edge_value(&source.into(), &target.into(), name)?)
    }

    /// Sets a property of an existing edge. A null value removes the value, and does nothing if the edge does not
    /// exist.
    ///
    /// # Errors
    /// [`Error::NotFound`]: the edge does not exist. Edges of this graph have no properties. The value does not have
    /// the type of the property.
    pub fn set_edge(
        &mut self,
        source: impl Into<Key>,
        target: impl Into<Key>,
        name: &str,
        value: impl Into<OwnedValue>,
    ) -> Result<()> {
        Ok(self.inner.set_edge_value(&source.into(), &target.into(), name, value.into())?)
    }

    /// The edges from one vertex to another, in the order of insertion; empty if an end vertex does not exist.
    ///
    /// # Errors
    /// See above.
    pub fn edges_between(&self, source: impl Into<Key>, target: impl Into<Key>) -> Result<Vec<FoundEdge>> {
        Ok(self.inner.edges(&source.into(), &target.into())?)
    }

    /// Changes or removes one edge of a multigraph. Reads the parallel edges of its pair.
    ///
    /// ```
    /// use anden::{Database, EdgeId, Options, Update};
    /// use anden::changes::EdgeAction;
    ///
    /// let db = Database::in_memory(Options { multigraph: true, ..Options::default() })?;
    /// db.apply(&[Update::add_edge(1, 2), Update::add_edge(1, 2)])?;
    /// db.transact(|tx| {
    ///     let number = tx.edges_between(1, 2)?[0].number.unwrap();
    ///     tx.change_edge(&EdgeId { source: 1.into(), target: 2.into(), number }, EdgeAction::Remove)
    /// })?;
    /// assert_eq!(db.view()?.num_edges(), 1);
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`]: the edge does not exist. The graph is not a multigraph. The weight or value does not fit
    /// the graph. See above.
    pub fn change_edge(&mut self, id: &EdgeId, action: EdgeAction) -> Result<()> {
        Ok(self.inner.change_edge(id, action)?)
    }

    /// All vertices, in ascending order of ids. Conflicts with every commit that adds or removes a vertex.
    ///
    /// # Errors
    /// See above.
    pub fn vertices(&self) -> Result<Vec<Key>> {
        Ok(self.inner.vertices()?)
    }

    /// The number of vertices. Conflicts with every commit that adds or removes a vertex.
    pub fn num_vertices(&self) -> usize {
        self.inner.num_vertices()
    }

    /// The number of edges. Conflicts with every commit that adds or removes an edge.
    pub fn num_edges(&self) -> u64 {
        self.inner.num_edges()
    }
}

/// Queries, answered as by a [`View`] with the writes of this transaction applied. They fail if a vertex does not exist
/// ([`Error::NotFound`]).
impl Transaction<'_> {
    /// The out-neighbors of a vertex, each once, in ascending order of ids.
    ///
    /// # Errors
    /// See above.
    pub fn neighbors(&self, vertex: impl Into<Key>) -> Result<Vec<Key>> {
        Ok(self.inner.neighbors(&vertex.into(), Direction::Out)?)
    }

    /// The neighbors of a vertex in one direction or in both.
    ///
    /// # Errors
    /// See above; the graph has no in-lists.
    pub fn neighbors_on(&self, vertex: impl Into<Key>, direction: Neighbors) -> Result<Vec<Key>> {
        let key = vertex.into();
        match direction {
            Neighbors::Out => self.neighbors(key),
            Neighbors::In => Ok(self.inner.neighbors(&key, Direction::In)?),
            Neighbors::Both => {
                // The engine reads one direction. The kernel merges both and drops duplicates.
                let vertex = self.vertex(key)?;
                self.keys(&query::neighbors(&self.graph(), vertex, Neighbors::Both)?)
            }
        }
    }

    /// The number of out-edges of a vertex.
    ///
    /// # Errors
    /// See above.
    pub fn degree(&self, vertex: impl Into<Key>) -> Result<usize> {
        Ok(self.inner.degree(&vertex.into(), Direction::Out)?)
    }

    /// The number of in-edges of a vertex.
    ///
    /// # Errors
    /// See above; the graph has no in-lists.
    pub fn in_degree(&self, vertex: impl Into<Key>) -> Result<usize> {
        Ok(self.inner.degree(&vertex.into(), Direction::In)?)
    }

    /// The vertices within `num_hops` steps, without the vertex itself.
    ///
    /// # Errors
    /// See above; cancellation.
    pub fn khop(&self, vertex: impl Into<Key>, num_hops: u32) -> Result<Vec<Key>> {
        let vertex = self.vertex(vertex)?;
        self.keys(&self.explained(query::khop(&self.context(), &self.graph(), vertex, num_hops))?)
    }

    /// Friends of friends: the vertices at a distance of exactly two.
    ///
    /// # Errors
    /// See above; cancellation.
    pub fn fof(&self, vertex: impl Into<Key>) -> Result<Vec<Key>> {
        let vertex = self.vertex(vertex)?;
        self.keys(&self.explained(query::friends_of_friends(&self.context(), &self.graph(), vertex))?)
    }

    /// Whether a path exists. A vertex reaches itself.
    ///
    /// # Errors
    /// See above; cancellation.
    pub fn is_reachable(&self, source: impl Into<Key>, target: impl Into<Key>) -> Result<bool> {
        Ok(self.path(source, target)?.is_some())
    }

    /// A path with the fewest edges; `None` if no path exists.
    ///
    /// # Errors
    /// See above; cancellation.
    pub fn path(&self, source: impl Into<Key>, target: impl Into<Key>) -> Result<Option<Path>> {
        let (source, target) = (self.vertex(source)?, self.vertex(target)?);
        let found = self.explained(query::path(&self.context(), &self.graph(), source, target))?;
        let Some(path) = found else { return Ok(None) };
        let length = PathLength::Hops(path.length() as u64);
        Ok(Some(Path { vertices: self.keys(&path.vertices)?, length }))
    }

    /// A path with the smallest sum of weights; `None` if no path exists.
    ///
    /// # Errors
    /// See above; the graph has no weights, or the search meets a negative weight; cancellation.
    pub fn weighted_path(&self, source: impl Into<Key>, target: impl Into<Key>) -> Result<Option<Path>> {
        let (source, target) = (self.vertex(source)?, self.vertex(target)?);
        let found = self.explained(query::weighted_path(&self.context(), &self.graph(), source, target))?;
        let Some(path) = found else { return Ok(None) };
        Ok(Some(Path { vertices: self.keys(&path.vertices)?, length: PathLength::of(path.length) }))
    }

    /// The context of queries.
    fn context(&self) -> Context<'_> {
        // Queries read few lists, so file pages need no room in the budget.
        self.session().context(Beside::default())
    }

    /// Converts a kernel error: keys replace ids, and a memory error names the total need.
    fn explained<T>(&self, found: anden_kernels::Result<T>) -> Result<T> {
        let explain =
            |error| self.session().in_all(Error::with_keys(error, |vertex| self.key(vertex)), Beside::default);
        found.map_err(explain)
    }

    fn keys(&self, vertices: &[VertexId]) -> Result<Vec<Key>> {
        vertices.iter().map(|&vertex| self.key(vertex)).collect()
    }
}
