//! Transactions, by key.

use base::VertexId;
use engine::{Committed, Durability, EdgeWeight, NewEdge, TransactionGraph, Update};
use graph::property::OwnedValue;
use kernels::query;
use kernels::sssp::DistanceValue;
use lama::Side as ListSide;

use crate::pinned::Pin;
use crate::session::Beside;
use crate::{
    Database, EdgeAction, EdgeId, Error, FoundEdge, Key, NewValue, Path, PathLength, Result, Session, Side, View,
};

/// Changes in the making, and what they depend on. Dropped, nothing has happened.
///
/// A transaction reads everything that was committed when it began, and what it writes itself. When it is
/// [committed](Self::commit), what it wrote happens as a whole, if nothing changed meanwhile that it read; it is as if it
/// had run at that moment, alone. What it looked for in vain counts as read too. `add`, `remove` and `set` read nothing, so
/// that they never conflict; `insert`, `has`, `set_weight`, `set_edge` and all questions read.
///
/// Reading takes `&self`, also from several threads; writing takes `&mut self`; a commit takes the transaction itself:
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
/// Nor do two threads write through one:
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
/// All methods fail where a key is none of this graph ([`Error::InvalidInput`]), and on damage met on the way.
#[derive(Debug)]
pub struct Transaction<'db> {
    inner: engine::Transaction<'db>,
    session: &'db Session,
    /// What it reads is kept meanwhile, and counts as a view that is open.
    _pin: Pin,
}

/// A commit that was asked for and is not waited for yet: it happens once somebody waits, for this one or a later one.
/// Dropped, it is waited for, and nobody learns what became of it.
#[derive(Debug)]
#[must_use = "a commit may fail, and only who waits for it learns that"]
pub struct Pending<'db>(engine::Pending<'db>);

impl Pending<'_> {
    /// Waits until it is committed. Returns an epoch from which on it is seen.
    ///
    /// # Errors
    /// As [`Transaction::commit`] and [`Database::apply`].
    pub fn wait(self) -> Result<u64> {
        Ok(self.0.wait()?)
    }
}

impl Database {
    /// Begins a transaction over everything that is committed.
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

    fn begun<'db>(&'db self, inner: engine::Transaction<'db>) -> Transaction<'db> {
        Transaction { inner, session: self.session(), _pin: self.pin() }
    }

    /// Runs `body` in a transaction and commits it, all over again where something changed meanwhile that it read: after
    /// some losses alone, so that it succeeds however many others there are. What it returns an error for has not
    /// happened.
    ///
    /// `body` may run several times, and must not wait for what another thread commits.
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
    /// Those of `body`, and of [`Transaction::commit`] but for conflicts.
    pub fn transact<R>(&self, mut body: impl FnMut(&mut Transaction<'_>) -> Result<R>) -> Result<R> {
        self.inner().transact_owned(self.session().pool(), |inner| {
            let mut transaction = self.begun(inner);
            let result = body(&mut transaction)?;
            Ok((result, transaction.inner))
        })
    }

    /// Reads everything that is committed: it waits for nobody, never conflicts, and sees nothing that is committed
    /// meanwhile.
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
    /// Those of `body`; damage that was met before.
    pub fn read<R>(&self, body: impl FnOnce(&View) -> Result<R>) -> Result<R> {
        body(&self.view()?)
    }

    /// As [`apply`](Self::apply), without waiting: several commits in flight make large groups, which cost less each.
    /// They act in the order in which one caller submits them.
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
    /// The database is open for reading only. What is wrong with the updates is said to who waits.
    pub fn submit(&self, updates: &[Update]) -> Result<Pending<'_>> {
        self.submit_with(updates, self.durability())
    }

    /// As [`submit`](Self::submit), with a durability of its own: the group that it comes into has at least that.
    ///
    /// ```
    /// use anden::{Database, Durability, Options, Update};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("calls.anden");
    /// let db = Database::create(&path, Options::default())?;
    /// db.submit_with(&[Update::add_edge(1, 2)], Durability::None)?.wait()?;
    /// assert_eq!(db.stats().live.log_syncs, 0);
    /// let first = db.submit_with(&[Update::add_edge(2, 3)], Durability::None)?;
    /// let second = db.submit_with(&[Update::add_edge(3, 4)], Durability::Sync)?;
    /// first.wait()?;
    /// second.wait()?;
    /// assert_eq!(db.stats().live.log_syncs, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn submit_with(&self, updates: &[Update], durability: Durability) -> Result<Pending<'_>> {
        Ok(Pending(self.inner().submit_with(updates, durability, self.session().pool())?))
    }
}

impl<'db> Transaction<'db> {
    /// Commits: what was written happens, all of it, if nothing changed that was read. One that wrote nothing always
    /// succeeds.
    ///
    /// # Errors
    /// [`Error::Conflict`]: something changed that was read, and the error says what; something that was written does not
    /// fit the graph any more; the disk fails. Nothing has happened then.
    pub fn commit(self) -> Result<Committed> {
        Ok(self.inner.commit()?)
    }

    /// As [`commit`](Self::commit), with a durability of its own.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_with(self, durability: Durability) -> Result<Committed> {
        Ok(self.inner.commit_with(durability)?)
    }

    /// Sets what of it survives a crash once it is committed, also in [`Database::transact`]; at first what is set for
    /// the database.
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
    /// assert_eq!(db.stats().live.log_syncs, 0);
    /// db.transact(|tx| tx.add_edge(2, 3))?;
    /// assert_eq!(db.stats().live.log_syncs, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_durability(&mut self, durability: Durability) {
        self.inner.set_durability(durability);
    }

    /// As [`commit`](Self::commit), without waiting.
    ///
    /// # Errors
    /// An earlier commit panicked.
    pub fn submit(self) -> Result<Pending<'db>> {
        Ok(Pending(self.inner.submit()?))
    }

    /// An epoch all of whose commits it sees.
    pub fn epoch(&self) -> u64 {
        self.inner.epoch()
    }

    /// The graph as the transaction sees it, for algorithms of one's own; all lists that are read are noted.
    pub fn graph(&self) -> TransactionGraph<'_> {
        self.inner.graph()
    }

    /// The id of a vertex in [`graph`](Self::graph); of one that was made here, it is good for nothing else.
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

    /// Whether a vertex is there.
    ///
    /// # Errors
    /// See above.
    pub fn has_vertex(&self, vertex: impl Into<Key>) -> Result<bool> {
        Ok(self.inner.has_vertex(&vertex.into())?)
    }

    /// Makes a vertex, if there is none; reads nothing.
    ///
    /// # Errors
    /// See above.
    pub fn add_vertex(&mut self, vertex: impl Into<Key>) -> Result<()> {
        Ok(self.inner.add_vertex(&vertex.into())?)
    }

    /// Makes a vertex; whether there was none.
    ///
    /// # Errors
    /// See above.
    pub fn insert_vertex(&mut self, vertex: impl Into<Key>) -> Result<bool> {
        Ok(self.inner.insert_vertex(&vertex.into())?)
    }

    /// Removes a vertex with its edges and values, if it is there; reads nothing.
    ///
    /// # Errors
    /// See above.
    pub fn remove_vertex(&mut self, vertex: impl Into<Key>) -> Result<()> {
        Ok(self.inner.remove_vertex(&vertex.into())?)
    }

    /// Whether there is an edge; there is none where an end is missing.
    ///
    /// # Errors
    /// See above.
    pub fn has_edge(&self, source: impl Into<Key>, target: impl Into<Key>) -> Result<bool> {
        Ok(self.inner.has_edge(&source.into(), &target.into())?)
    }

    /// Adds an edge, with its ends where they are missing, and to a multigraph one more; reads nothing. The answer of
    /// [`commit`](Self::commit) knows the lasting name of an edge that was added to a multigraph.
    ///
    /// ```
    /// use anden::{Database, EdgeAction, Options};
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

    /// The same with a weight, which one that is there gets too.
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

    /// Adds an edge if there is none; whether there was none.
    ///
    /// # Errors
    /// See above; the graph has weights.
    pub fn insert_edge(&mut self, source: impl Into<Key>, target: impl Into<Key>) -> Result<bool> {
        Ok(self.inner.insert_edge(&source.into(), &target.into(), None)?)
    }

    /// The same with a weight; an edge that is there keeps its own.
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

    /// Removes an edge if it is there, of a multigraph all of the pair; reads nothing.
    ///
    /// # Errors
    /// See above.
    pub fn remove_edge(&mut self, source: impl Into<Key>, target: impl Into<Key>) -> Result<()> {
        Ok(self.inner.remove_edge(&source.into(), &target.into())?)
    }

    /// The weight of an edge; `None` where there is no edge, or no weights.
    ///
    /// # Errors
    /// See above.
    pub fn weight(&self, source: impl Into<Key>, target: impl Into<Key>) -> Result<Option<EdgeWeight>> {
        Ok(self.inner.weight(&source.into(), &target.into())?)
    }

    /// Gives an edge that is there a weight, of a multigraph all of the pair.
    ///
    /// # Errors
    /// [`Error::NotFound`]: there is none. See above; the weight does not fit the graph.
    pub fn set_weight(
        &mut self,
        source: impl Into<Key>,
        target: impl Into<Key>,
        weight: impl Into<EdgeWeight>,
    ) -> Result<()> {
        Ok(self.inner.set_weight(&source.into(), &target.into(), weight.into())?)
    }

    /// The value of a vertex; null where it has none, or there is no such property.
    ///
    /// # Errors
    /// [`Error::NotFound`]: there is no such vertex.
    pub fn get(&self, vertex: impl Into<Key>, name: &str) -> Result<OwnedValue> {
        Ok(self.inner.vertex_value(&vertex.into(), name)?)
    }

    /// Gives a vertex a value, and makes the vertex where it is not there, as [`Update::set_vertex`] does. Null takes the
    /// value away and makes no vertex. A property that is not there yet is made. Reads nothing, unless the property
    /// has a unique index: then it reads which vertex has the value.
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
    /// [`Error::UniqueViolation`]: another vertex has the value, and the index is unique; the transaction is as before.
    /// See above; the value is none of the property's type.
    pub fn set(&mut self, vertex: impl Into<Key>, name: &str, value: impl Into<OwnedValue>) -> Result<()> {
        Ok(self.inner.set_vertex_value(&vertex.into(), name, value.into())?)
    }

    /// The vertices with a value of a property, ascending by id: those of [`View::find_vertices`], with what the
    /// transaction wrote. The transaction conflicts with each commit that gives a vertex this value, or changes or removes
    /// a vertex that was found; without an index, with each commit that sets the property of any vertex.
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
    /// [`Error::NotFound`]: there is no such property. [`Error::InvalidInput`]: the value is none of its type.
    pub fn find(&self, name: &str, value: impl Into<NewValue>) -> Result<Vec<Key>> {
        Ok(self.inner.find(name, &value.into())?)
    }

    /// The value of an edge, in a graph whose edges have properties; null where there is none. Of several edges of a
    /// pair, that of the one that was added last.
    ///
    /// # Errors
    /// See above.
    pub fn get_edge(&self, source: impl Into<Key>, target: impl Into<Key>, name: &str) -> Result<OwnedValue> {
        Ok(self.inner.edge_value(&source.into(), &target.into(), name)?)
    }

    /// Gives an edge that is there a value, in a graph whose edges have properties; null takes it away, and does nothing
    /// where there is no edge.
    ///
    /// # Errors
    /// [`Error::NotFound`]: there is no such edge to have the value; edges have no properties; the value is none of the property's type.
    pub fn set_edge(
        &mut self,
        source: impl Into<Key>,
        target: impl Into<Key>,
        name: &str,
        value: impl Into<OwnedValue>,
    ) -> Result<()> {
        Ok(self.inner.set_edge_value(&source.into(), &target.into(), name, value.into())?)
    }

    /// The edges from one vertex to another, in the order in which they were added; none where an end is not there.
    ///
    /// # Errors
    /// See above.
    pub fn edges_between(&self, source: impl Into<Key>, target: impl Into<Key>) -> Result<Vec<FoundEdge>> {
        Ok(self.inner.edges(&source.into(), &target.into())?)
    }

    /// Changes one edge of a multigraph, or removes it. Reads the edges of its pair.
    ///
    /// ```
    /// use anden::{Database, EdgeAction, EdgeId, Options, Update};
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
    /// [`Error::NotFound`]: there is no such edge. The graph is no multigraph; the weight or the value does not fit it. See
    /// above.
    pub fn change_edge(&mut self, id: &EdgeId, action: EdgeAction) -> Result<()> {
        Ok(self.inner.change_edge(id, action)?)
    }

    /// All vertices, by ascending id. The transaction conflicts with who makes or removes any.
    ///
    /// # Errors
    /// See above.
    pub fn vertices(&self) -> Result<Vec<Key>> {
        Ok(self.inner.vertices()?)
    }

    /// The number of vertices. The transaction conflicts with who makes or removes any.
    pub fn num_vertices(&self) -> usize {
        self.inner.num_vertices()
    }

    /// The number of edges. The transaction conflicts with who adds or removes any.
    pub fn num_edges(&self) -> u64 {
        self.inner.num_edges()
    }
}

/// Questions, as a [`View`] answers them, with what the transaction wrote. They fail where a key is no vertex
/// ([`Error::NotFound`]).
impl Transaction<'_> {
    /// The neighbours of a vertex by its out-edges, ascending by id, each once.
    ///
    /// # Errors
    /// See above.
    pub fn neighbors(&self, vertex: impl Into<Key>) -> Result<Vec<Key>> {
        Ok(self.inner.neighbors(&vertex.into(), ListSide::Out)?)
    }

    /// The neighbours of a vertex on any side.
    ///
    /// # Errors
    /// See above; in-neighbours of a graph without in-edges.
    pub fn neighbors_on(&self, vertex: impl Into<Key>, side: Side) -> Result<Vec<Key>> {
        let key = vertex.into();
        match side {
            Side::Out => self.neighbors(key),
            Side::In => Ok(self.inner.neighbors(&key, ListSide::In)?),
            Side::Both => {
                let vertex = self.vertex(key)?;
                self.keys(&query::neighbors(&self.graph(), vertex, query::Neighbors::Both)?)
            }
        }
    }

    /// The number of out-edges of a vertex.
    ///
    /// # Errors
    /// See above.
    pub fn degree(&self, vertex: impl Into<Key>) -> Result<usize> {
        Ok(self.inner.degree(&vertex.into(), ListSide::Out)?)
    }

    /// The number of in-edges of a vertex.
    ///
    /// # Errors
    /// See above; the graph has no in-edges.
    pub fn in_degree(&self, vertex: impl Into<Key>) -> Result<usize> {
        Ok(self.inner.degree(&vertex.into(), ListSide::In)?)
    }

    /// The vertices within `num_hops` steps, without the vertex itself.
    ///
    /// # Errors
    /// See above; cancellation.
    pub fn khop(&self, vertex: impl Into<Key>, num_hops: u32) -> Result<Vec<Key>> {
        let vertex = self.vertex(vertex)?;
        self.keys(&self.explained(query::khop(
            &self.session.context(Beside::default()),
            &self.graph(),
            vertex,
            num_hops,
        ))?)
    }

    /// Friends of friends: the vertices two steps away and no fewer.
    ///
    /// # Errors
    /// See above; cancellation.
    pub fn fof(&self, vertex: impl Into<Key>) -> Result<Vec<Key>> {
        let vertex = self.vertex(vertex)?;
        self.keys(&self.explained(query::friends_of_friends(
            &self.session.context(Beside::default()),
            &self.graph(),
            vertex,
        ))?)
    }

    /// Whether there is a path; a vertex reaches itself.
    ///
    /// # Errors
    /// See above; cancellation.
    pub fn is_reachable(&self, source: impl Into<Key>, target: impl Into<Key>) -> Result<bool> {
        Ok(self.path(source, target)?.is_some())
    }

    /// A path of the fewest edges; `None` where there is no path.
    ///
    /// # Errors
    /// See above; cancellation.
    pub fn path(&self, source: impl Into<Key>, target: impl Into<Key>) -> Result<Option<Path>> {
        let (source, target) = (self.vertex(source)?, self.vertex(target)?);
        let found =
            self.explained(query::path(&self.session.context(Beside::default()), &self.graph(), source, target))?;
        let Some(path) = found else { return Ok(None) };
        let length = PathLength::Hops(path.length() as u64);
        Ok(Some(Path { vertices: self.keys(&path.vertices)?, length }))
    }

    /// A path of the least sum of weights; `None` where there is no path.
    ///
    /// # Errors
    /// See above; the graph has no weights, or a negative one on the way; cancellation.
    pub fn weighted_path(&self, source: impl Into<Key>, target: impl Into<Key>) -> Result<Option<Path>> {
        let (source, target) = (self.vertex(source)?, self.vertex(target)?);
        let found = self.explained(query::weighted_path(
            &self.session.context(Beside::default()),
            &self.graph(),
            source,
            target,
        ))?;
        let Some(path) = found else { return Ok(None) };
        let length = match path.length {
            DistanceValue::Integer(sum) => PathLength::Integer(sum),
            DistanceValue::Float(sum) => PathLength::Real(sum),
        };
        Ok(Some(Path { vertices: self.keys(&path.vertices)?, length }))
    }

    /// What a query found; or its error, with keys and with all memory that there must be.
    fn explained<T>(&self, found: kernels::Result<T>) -> Result<T> {
        let explain = |error| self.session.in_all(Error::with_keys(error, |vertex| self.key(vertex)), Beside::default);
        found.map_err(explain)
    }

    fn keys(&self, vertices: &[VertexId]) -> Result<Vec<Key>> {
        vertices.iter().map(|&vertex| self.key(vertex)).collect()
    }
}
