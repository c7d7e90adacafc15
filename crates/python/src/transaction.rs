//! Transactions.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anden::changes::{CommitGuard, Committed, EdgeAction};
use anden::property::NewValue;
use anden::{EdgeId, OwnedValue};
use parking_lot::{Mutex, MutexGuard};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyType};
use self_cell::self_cell;

use crate::calls::{self, Watch};
use crate::error::{Failure, Result, misused};
use crate::key::{key_list, key_of};
use crate::opened::Opened;
use crate::options::{direction, durability};
use crate::pending::Pending;
use crate::queries::{found_edges, path_keys};
use crate::value::{owned_object, value_of, weight_object, weight_of};

type MaybeTransaction<'db> = Option<anden::Transaction<'db>>;

self_cell!(
    /// A transaction with the database that it borrows. The engine's transaction is bound to the life of a handle, and
    /// a Python object has no such bound, so it owns both.
    struct OwnedTransaction {
        owner: Arc<anden::Database>,
        #[not_covariant]
        dependent: MaybeTransaction,
    }
);

/// The state of a transaction: open, or ended in some way.
enum State {
    Open(OwnedTransaction),
    Ended(&'static str),
}

/// The answer of a commit, or why there is none; empty while the transaction is open.
type Outcome = OnceLock<Result<Committed, &'static str>>;

/// A transaction that its database can end.
pub struct TransactionState {
    current: Mutex<State>,
    /// Why the transaction ends once the call that uses it is done.
    wanted_end: OnceLock<&'static str>,
    /// Shared with the handles of new edges, which may outlive the transaction.
    outcome: Arc<Outcome>,
}

impl TransactionState {
    /// Ends the transaction without a commit, unless it has ended. A call that uses it ends it afterwards.
    pub fn end(&self, how: &'static str) {
        // The first reason counts.
        let _ = self.wanted_end.set(how);
        self.end_if_wanted();
    }

    /// Does the rest of [`end`](Self::end). A call asks after it has given the lock back, so that no end is lost.
    fn end_if_wanted(&self) {
        let Some(how) = self.wanted_end.get() else { return };
        let Some(mut state) = self.current.try_lock() else { return };
        if matches!(*state, State::Open(_)) {
            *state = State::Ended(how);
            // The outcome is empty: a commit would have taken the open transaction.
            let _ = self.outcome.set(Err(how));
        }
    }
}

impl Drop for TransactionState {
    fn drop(&mut self) {
        // Does nothing after a commit or another end.
        let _ = self.outcome.set(Err("it was dropped without a commit"));
    }
}

/// An edge that a transaction adds to a multigraph. Its number is known once the transaction is committed.
///
/// Examples
/// --------
/// >>> import anden
/// >>> db = anden.create(None, multigraph=True)
/// >>> with db.transaction() as tx:
/// ...     first, second = tx.add_edge(1, 2), tx.add_edge(1, 2)
/// >>> with db.transaction() as tx:
/// ...     tx.remove_edge(1, 2, number=first.number)
/// >>> [edge["number"] for edge in db.view().edges_between(1, 2)] == [second.number]
/// True
#[pyclass(frozen, module = "anden")]
pub struct NewEdge {
    edge: anden::changes::NewEdge,
    outcome: Arc<Outcome>,
}

impl NewEdge {
    /// The number, or why the edge has none.
    fn known_number(&self) -> Result<u64, String> {
        match self.outcome.get() {
            Some(Ok(committed)) => match committed.edge_id(&self.edge) {
                Some(id) => Ok(id.number),
                None => Err("an ordered graph does not store a loop".to_owned()),
            },
            Some(Err(how)) => Err(format!("the transaction has ended: {how}")),
            None => Err("the transaction is not committed yet".to_owned()),
        }
    }
}

#[pymethods]
impl NewEdge {
    /// The number of the edge, which names it among the parallel edges of its pair.
    ///
    /// Raises
    /// ------
    /// Error
    ///     The transaction is not committed: it is open, was rolled back, lost a conflict or was submitted.
    #[getter]
    fn number(&self) -> Result<u64> {
        self.known_number().map_err(|why| misused(format!("the new edge has no number: {why}")))
    }

    fn __repr__(&self) -> String {
        match self.known_number() {
            Ok(number) => format!("<anden.NewEdge, number {number}>"),
            Err(why) => format!("<anden.NewEdge, no number: {why}>"),
        }
    }
}

/// A read-write transaction: ``with db.transaction() as tx:``.
///
/// It reads the version at which it began, and its own writes. A clean exit of the ``with`` block commits, an
/// exception rolls back. A commit fails with `Conflict` if another commit changed what this one read; then nothing is
/// changed.
///
/// Examples
/// --------
/// >>> import anden
/// >>> db = anden.create(None)
/// >>> with db.transaction() as tx:
/// ...     tx.add_edge(1, 2)
/// ...     tx.add_vertex(7)
/// >>> db.view().num_vertices
/// 3
#[pyclass(frozen, module = "anden")]
pub struct Transaction {
    state: Arc<TransactionState>,
    is_multigraph: bool,
    /// That of the database.
    num_submits: Arc<AtomicU32>,
}

impl Transaction {
    /// Begins a transaction.
    pub fn begin(opened: &Arc<Opened>) -> Result<Self> {
        let database = opened.database()?;
        let is_multigraph = database.options().multigraph;
        let owned = OwnedTransaction::try_new(database, |database| database.begin().map(Some))?;
        let current = Mutex::new(State::Open(owned));
        let state = Arc::new(TransactionState { current, wanted_end: OnceLock::new(), outcome: Arc::default() });
        opened.note(&state);
        Ok(Self { state, is_multigraph, num_submits: Arc::clone(&opened.num_submits) })
    }

    fn state(&self) -> Result<MutexGuard<'_, State>> {
        // Another thread may hold the lock for long, and a wait with the GIL would stop all threads.
        self.state
            .current
            .try_lock()
            .ok_or_else(|| misused("the transaction is in use by another thread, or by a call that was interrupted"))
    }

    /// Calls `body` with the open transaction.
    fn with<T>(&self, body: impl FnOnce(&mut anden::Transaction<'_>) -> anden::Result<T>) -> Result<T> {
        let mut state = self.state()?;
        let found = match &mut *state {
            State::Open(owned) => owned.with_dependent_mut(|_, transaction| match transaction {
                Some(transaction) => Ok(body(transaction)?),
                None => Err(ended("it was committed")),
            }),
            State::Ended(how) => Err(ended(how)),
        };
        drop(state);
        self.state.end_if_wanted();
        found
    }

    /// Runs a long query without the GIL and with Ctrl-C, which leaves the transaction open.
    fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        query: impl FnOnce(&anden::Transaction<'_>) -> anden::Result<T> + Send + 'static,
    ) -> Result<T> {
        let this = self.share();
        calls::run(py, move |watch| {
            this.with(|tx| {
                tx.set_progress(watch);
                query(tx)
            })
        })
    }

    /// Another handle of the transaction.
    fn share(&self) -> Self {
        let (state, num_submits) = (Arc::clone(&self.state), Arc::clone(&self.num_submits));
        Self { state, is_multigraph: self.is_multigraph, num_submits }
    }

    /// Takes the open transaction out, which ends this object.
    fn take(&self, how: &'static str) -> Result<OwnedTransaction> {
        let mut state = self.state()?;
        match std::mem::replace(&mut *state, State::Ended(how)) {
            State::Open(owned) => Ok(owned),
            State::Ended(before) => {
                *state = State::Ended(before);
                Err(ended(before))
            }
        }
    }

    /// Commits. Returns the epoch. If `is_alone`, the thread of long calls keeps other commits out.
    fn commit_in(&self, py: Python<'_>, is_alone: bool) -> Result<u64> {
        let (owned, outcome) = (self.take("it was committed")?, Arc::clone(&self.state.outcome));
        // Once handed over, a commit cannot be cancelled, so it may happen after Ctrl-C.
        calls::run_guarded(py, &Watch::default(), move |guard| owned.commit(&outcome, guard.filter(|_| is_alone)))
    }

    /// Discards the changes, unless the transaction has ended.
    pub fn discard(&self) {
        self.state.end("it was rolled back");
    }

    /// The edge of a multigraph with a number.
    fn edge_id(source: &Bound<'_, PyAny>, target: &Bound<'_, PyAny>, number: u64) -> Result<EdgeId> {
        Ok(EdgeId { source: key_of(source)?, target: key_of(target)?, number })
    }
}

impl OwnedTransaction {
    /// Commits. Returns the epoch. With a guard, no other commit can come between.
    fn commit(mut self, outcome: &Outcome, guard: Option<&CommitGuard<'_>>) -> Result<u64> {
        let done = self.with_dependent_mut(|_, transaction| {
            transaction.take().map(|transaction| match guard {
                Some(guard) => transaction.commit_alone(guard),
                None => transaction.commit(),
            })
        });
        let committed = done.ok_or_else(|| ended("it was committed"))?;
        let (epoch, answer) = match committed {
            Ok(committed) => (Ok(committed.epoch), Ok(committed)),
            Err(error) => {
                let is_conflict = matches!(error, anden::Error::Conflict(_));
                (Err(error), Err(if is_conflict { "it lost a conflict" } else { "its commit failed" }))
            }
        };
        // No other call sets it: the caller took the transaction.
        let _ = outcome.set(answer);
        Ok(epoch?)
    }
}

fn ended(how: &str) -> Failure {
    misused(format!("the transaction has ended: {how}"))
}

#[pymethods]
impl Transaction {
    /// Add an edge and its missing ends. Reads nothing, so it never conflicts.
    ///
    /// A multigraph gets one more edge. Otherwise an existing edge gets the weight and the properties, and keeps its
    /// other properties.
    ///
    /// Parameters
    /// ----------
    /// source, target : int, str or tuple
    ///     The keys of the ends.
    /// weight : int or float, optional
    ///     The weight, if and only if the graph has weights.
    /// **properties
    ///     Values of properties, in a graph whose edges have some. A new name makes a property. None removes a value;
    ///     where no edge has such a property yet, that reads the edge.
    ///
    /// Returns
    /// -------
    /// NewEdge or None
    ///     In a multigraph, the new edge, with its ``number`` after the commit; else None.
    ///
    /// Examples
    /// --------
    /// >>> import anden
    /// >>> db = anden.create(None, weighted=True)
    /// >>> with db.transaction() as tx:
    /// ...     tx.add_edge(1, 2, weight=0.5)
    /// >>> calls = anden.create(None, multigraph=True, edge_properties=True)
    /// >>> call = calls.transact(lambda tx: tx.add_edge(1, 2, seconds=30))
    /// >>> calls.view().edges_between(1, 2) == [{"number": call.number, "seconds": 30}]
    /// True
    #[pyo3(signature = (source, target, weight=None, **properties))]
    fn add_edge(
        &self,
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
        weight: Option<&Bound<'_, PyAny>>,
        properties: Option<&Bound<'_, PyDict>>,
    ) -> Result<Option<NewEdge>> {
        let (source, target) = (key_of(source)?, key_of(target)?);
        let weight = weight.map(weight_of).transpose()?;
        let values = properties.map(named_values).transpose()?.unwrap_or_default();
        let edge = self.with(|tx| tx.add_edge_with(source, target, weight, values))?;
        Ok(self.is_multigraph.then(|| NewEdge { edge, outcome: Arc::clone(&self.state.outcome) }))
    }

    /// Add an edge if it does not exist. Returns whether it was added.
    #[pyo3(signature = (source, target, weight=None))]
    fn insert_edge(
        &self,
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
        weight: Option<&Bound<'_, PyAny>>,
    ) -> Result<bool> {
        let (source, target) = (key_of(source)?, key_of(target)?);
        let weight = weight.map(weight_of).transpose()?;
        self.with(|tx| match weight {
            Some(weight) => tx.insert_weighted_edge(source, target, weight),
            None => tx.insert_edge(source, target),
        })
    }

    /// Remove an edge if it exists; in a multigraph all edges of the pair, or the one with this number.
    #[pyo3(signature = (source, target, *, number=None))]
    fn remove_edge(&self, source: &Bound<'_, PyAny>, target: &Bound<'_, PyAny>, number: Option<u64>) -> Result<()> {
        if let Some(number) = number {
            let id = Self::edge_id(source, target, number)?;
            return self.with(|tx| tx.change_edge(&id, EdgeAction::Remove));
        }
        let (source, target) = (key_of(source)?, key_of(target)?);
        self.with(|tx| tx.remove_edge(source, target))
    }

    /// Whether the edge exists; False if an end does not.
    fn has_edge(&self, source: &Bound<'_, PyAny>, target: &Bound<'_, PyAny>) -> Result<bool> {
        let (source, target) = (key_of(source)?, key_of(target)?);
        self.with(|tx| tx.has_edge(source, target))
    }

    /// The edges from one vertex to another, as dicts with `number` (in a multigraph), `weight` and properties.
    fn edges_between<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
    ) -> Result<Bound<'py, PyList>> {
        let (source, target) = (key_of(source)?, key_of(target)?);
        let edges = self.with(|tx| tx.edges_between(source, target))?;
        Ok(found_edges(py, &edges)?)
    }

    /// The weight of an edge; None if the edge does not exist or the graph has no weights.
    fn weight<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
    ) -> Result<Option<Bound<'py, PyAny>>> {
        let (source, target) = (key_of(source)?, key_of(target)?);
        let weight = self.with(|tx| tx.weight(source, target))?;
        Ok(weight.map(|weight| weight_object(py, weight)).transpose()?)
    }

    /// Set the weight of an existing edge; in a multigraph of all edges of the pair, or of the one with this number.
    #[pyo3(signature = (source, target, weight, *, number=None))]
    fn set_weight(
        &self,
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
        weight: &Bound<'_, PyAny>,
        number: Option<u64>,
    ) -> Result<()> {
        let weight = weight_of(weight)?;
        if let Some(number) = number {
            let id = Self::edge_id(source, target, number)?;
            return self.with(|tx| tx.change_edge(&id, EdgeAction::SetWeight(weight)));
        }
        let (source, target) = (key_of(source)?, key_of(target)?);
        self.with(|tx| tx.set_weight(source, target, weight))
    }

    /// Add a vertex if it does not exist, and set its properties. Reads nothing.
    #[pyo3(signature = (vertex, **properties))]
    fn add_vertex(&self, vertex: &Bound<'_, PyAny>, properties: Option<&Bound<'_, PyDict>>) -> Result<()> {
        let vertex = key_of(vertex)?;
        let values = properties.map(named_values).transpose()?.unwrap_or_default();
        self.with(|tx| {
            tx.add_vertex(vertex.clone())?;
            values.into_iter().try_for_each(|(name, value)| tx.set(vertex.clone(), &name, value))
        })
    }

    /// Add a vertex if it does not exist. Returns whether it was added.
    fn insert_vertex(&self, vertex: &Bound<'_, PyAny>) -> Result<bool> {
        let vertex = key_of(vertex)?;
        self.with(|tx| tx.insert_vertex(vertex))
    }

    /// Remove a vertex with its edges and properties, if it exists.
    fn remove_vertex(&self, vertex: &Bound<'_, PyAny>) -> Result<()> {
        let vertex = key_of(vertex)?;
        self.with(|tx| tx.remove_vertex(vertex))
    }

    /// Whether the vertex exists.
    fn has_vertex(&self, vertex: &Bound<'_, PyAny>) -> Result<bool> {
        let vertex = key_of(vertex)?;
        self.with(|tx| tx.has_vertex(vertex))
    }

    fn __contains__(&self, vertex: &Bound<'_, PyAny>) -> Result<bool> {
        self.has_vertex(vertex)
    }

    /// Set a property of a vertex, which is added if it does not exist. None removes the value. A new name makes a
    /// property.
    fn set(&self, vertex: &Bound<'_, PyAny>, name: &str, value: &Bound<'_, PyAny>) -> Result<()> {
        let (vertex, value) = (key_of(vertex)?, value_of(value)?);
        self.with(|tx| tx.set(vertex, name, value))
    }

    /// The value of a property of a vertex; None if it has none.
    fn get<'py>(&self, py: Python<'py>, vertex: &Bound<'_, PyAny>, name: &str) -> Result<Bound<'py, PyAny>> {
        let vertex = key_of(vertex)?;
        let value = self.with(|tx| tx.get(vertex, name))?;
        Ok(owned_object(py, &value)?)
    }

    /// Set a property of an existing edge; of several parallel ones, of the newest, or of the one with this number.
    /// None removes the value.
    #[pyo3(signature = (source, target, name, value, *, number=None))]
    fn set_edge(
        &self,
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
        name: &str,
        value: &Bound<'_, PyAny>,
        number: Option<u64>,
    ) -> Result<()> {
        let value = value_of(value)?;
        if let Some(number) = number {
            let id = Self::edge_id(source, target, number)?;
            let action = EdgeAction::SetProperty { name: name.to_owned(), value: NewValue::Value(value) };
            return self.with(|tx| tx.change_edge(&id, action));
        }
        let (source, target) = (key_of(source)?, key_of(target)?);
        self.with(|tx| tx.set_edge(source, target, name, value))
    }

    /// The value of a property of an edge; None if it has none. The newest of several parallel edges counts.
    fn get_edge<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
        name: &str,
    ) -> Result<Bound<'py, PyAny>> {
        let (source, target) = (key_of(source)?, key_of(target)?);
        let value = self.with(|tx| tx.get_edge(source, target, name))?;
        Ok(owned_object(py, &value)?)
    }

    /// The keys of the vertices with a value of a property.
    fn find<'py>(&self, py: Python<'py>, name: &str, value: &Bound<'_, PyAny>) -> Result<Bound<'py, PyList>> {
        let value = value_of(value)?;
        let keys = {
            let name = name.to_owned();
            self.run(py, move |tx| tx.find(&name, value))?
        };
        Ok(key_list(py, &keys)?)
    }

    /// The keys of all vertices, in ascending order of ids. Conflicts with each commit that adds or removes a vertex.
    fn vertices<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyList>> {
        let keys = self.run(py, |tx| tx.vertices())?;
        Ok(key_list(py, &keys)?)
    }

    /// The number of vertices.
    #[getter]
    fn num_vertices(&self) -> Result<usize> {
        self.with(|tx| Ok(tx.num_vertices()))
    }

    /// The number of edges.
    #[getter]
    fn num_edges(&self, py: Python<'_>) -> Result<u64> {
        self.run(py, |tx| Ok(tx.num_edges()))
    }

    /// The neighbors of a vertex: ``direction`` is ``"out"``, ``"in"`` or ``"both"``.
    #[pyo3(signature = (vertex, direction=None))]
    fn neighbors<'py>(
        &self,
        py: Python<'py>,
        vertex: &Bound<'_, PyAny>,
        direction: Option<&Bound<'_, PyAny>>,
    ) -> Result<Bound<'py, PyList>> {
        let (vertex, direction) = (key_of(vertex)?, self::direction(direction)?);
        let keys = self.with(|tx| tx.neighbors_on(vertex, direction))?;
        Ok(key_list(py, &keys)?)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, vertex: &Bound<'_, PyAny>) -> Result<Bound<'py, PyList>> {
        self.neighbors(py, vertex, None)
    }

    /// The number of out-edges of a vertex, or of its in-edges with ``direction="in"``.
    #[pyo3(signature = (vertex, direction=None))]
    fn degree(&self, vertex: &Bound<'_, PyAny>, direction: Option<&Bound<'_, PyAny>>) -> Result<usize> {
        let (vertex, direction) = (key_of(vertex)?, self::direction(direction)?);
        self.with(|tx| match direction {
            anden::Neighbors::Out => tx.degree(vertex),
            anden::Neighbors::In => tx.in_degree(vertex),
            anden::Neighbors::Both => Ok(tx.degree(vertex.clone())? + tx.in_degree(vertex)?),
        })
    }

    /// The vertices within ``hops`` steps, without the vertex itself.
    fn khop<'py>(&self, py: Python<'py>, vertex: &Bound<'_, PyAny>, hops: u32) -> Result<Bound<'py, PyList>> {
        let vertex = key_of(vertex)?;
        let keys = self.run(py, move |tx| tx.khop(vertex, hops))?;
        Ok(key_list(py, &keys)?)
    }

    /// Friends of friends: the vertices at a distance of exactly two.
    fn fof<'py>(&self, py: Python<'py>, vertex: &Bound<'_, PyAny>) -> Result<Bound<'py, PyList>> {
        let vertex = key_of(vertex)?;
        let keys = self.run(py, move |tx| tx.fof(vertex))?;
        Ok(key_list(py, &keys)?)
    }

    /// Whether a path exists. A vertex reaches itself.
    fn reachable(&self, py: Python<'_>, source: &Bound<'_, PyAny>, target: &Bound<'_, PyAny>) -> Result<bool> {
        let (source, target) = (key_of(source)?, key_of(target)?);
        self.run(py, move |tx| tx.is_reachable(source, target))
    }

    /// A path with the fewest edges, or with the smallest sum of weights, as a list of keys; None if there is none.
    #[pyo3(signature = (source, target, *, weighted=false))]
    fn path<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
        weighted: bool,
    ) -> Result<Option<Bound<'py, PyList>>> {
        let (source, target) = (key_of(source)?, key_of(target)?);
        let path = self.run(py, move |tx| match weighted {
            true => tx.weighted_path(source, target),
            false => tx.path(source, target),
        })?;
        Ok(path_keys(py, path)?)
    }

    /// Commit: apply all changes, or none. Returns the epoch from which on they are visible.
    ///
    /// Raises
    /// ------
    /// Conflict
    ///     Another commit changed what this transaction read. Nothing was changed; begin again.
    fn commit(&self, py: Python<'_>) -> Result<u64> {
        self.commit_in(py, false)
    }

    /// Commit without waiting. Returns a `Pending`, which does not tell the numbers of new edges.
    fn submit(&self, py: Python<'_>) -> Result<Pending> {
        let mut owned = self.take("it was submitted")?;
        let outcome = &self.state.outcome;
        Pending::submit(py, &self.num_submits, move || {
            let submit = |_: &_, transaction: &mut MaybeTransaction<'_>| transaction.take().map(|tx| tx.submit());
            let pending = owned.with_dependent_mut(submit).ok_or_else(|| ended("it was submitted"))??;
            let _ = outcome.set(Err("it was submitted, and a submitted commit tells no numbers"));
            Ok(pending)
        })
    }

    /// Discard all changes. A second rollback does nothing.
    fn rollback(&self) -> Result<()> {
        drop(self.state()?);
        self.discard();
        Ok(())
    }

    /// Set the durability of the commit: ``"sync"``, ``"batched"``, ``"batched:MS"`` or ``"none"``.
    fn set_durability(&self, durability: &Bound<'_, PyAny>) -> Result<()> {
        let durability = self::durability(durability)?;
        self.with(|tx| {
            tx.set_durability(durability);
            Ok(())
        })
    }

    /// An epoch such that the transaction sees all commits up to it.
    #[getter]
    fn epoch(&self) -> Result<u64> {
        self.with(|tx| Ok(tx.epoch()))
    }

    /// Whether the transaction can be used: it was not committed, submitted or rolled back.
    #[getter]
    fn is_open(&self) -> Result<bool> {
        Ok(matches!(*self.state()?, State::Open(_)))
    }

    fn __enter__(slf: PyRef<'_, Self>) -> Result<PyRef<'_, Self>> {
        match &*slf.state()? {
            State::Open(_) => {}
            State::Ended(how) => return Err(ended(how)),
        }
        Ok(slf)
    }

    #[pyo3(signature = (kind, _value, _traceback))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<&Bound<'_, PyType>>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> Result<bool> {
        if kind.is_some() {
            self.discard();
        } else if self.is_open()? {
            self.commit(py)?;
        }
        Ok(false)
    }

    fn __repr__(&self) -> String {
        match self.state.current.try_lock().as_deref() {
            Some(State::Open(_)) => "<anden.Transaction, open>".to_owned(),
            Some(State::Ended(how)) => format!("<anden.Transaction, ended: {how}>"),
            None => "<anden.Transaction, in use by another call>".to_owned(),
        }
    }
}

/// Keyword arguments as values of properties.
fn named_values(properties: &Bound<'_, PyDict>) -> Result<Vec<(String, OwnedValue)>> {
    properties.iter().map(|(name, value)| Ok((name.extract()?, value_of(&value)?))).collect()
}

/// Conflicts in a row after which a transaction runs alone.
const MOST_CONFLICTS: u32 = 6;
/// The longest pause after the first conflict; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_micros(8);

/// Calls `function` in a transaction until it commits. The engine's own loop lends the transaction to its body for one
/// call, and a Python object may live longer, so this loop begins a transaction of its own each time.
pub fn transact(py: Python<'_>, opened: &Arc<Opened>, function: &Bound<'_, PyAny>) -> Result<Py<PyAny>> {
    let mut num_conflicts = 0;
    loop {
        let attempted = match num_conflicts < MOST_CONFLICTS {
            true => attempt(py, opened, function, false),
            // Other commits wait, so this attempt cannot conflict.
            false => calls::alone(py, opened.database()?, || attempt(py, opened, function, true)),
        };
        match attempted {
            Err(Failure::Engine(error)) if matches!(*error, anden::Error::Conflict(_)) => {}
            other => return other,
        }
        num_conflicts += 1;
        py.detach(|| pause(num_conflicts));
        // An interrupt between two attempts ends the loop.
        py.check_signals()?;
    }
}

/// One attempt of `transact`. An error of the engine comes from the commit, an exception from the function.
fn attempt(py: Python<'_>, opened: &Arc<Opened>, function: &Bound<'_, PyAny>, is_alone: bool) -> Result<Py<PyAny>> {
    let transaction = py.detach(|| Transaction::begin(opened))?;
    let mine = transaction.share();
    match function.call1((transaction,)) {
        Ok(result) => {
            // The function may have committed or rolled back by itself.
            mine.commit_in(py, is_alone)?;
            Ok(result.unbind())
        }
        Err(error) => {
            mine.discard();
            Err(error.into())
        }
    }
}

/// Waits for a time that grows with the conflicts, so that two transactions do not collide again.
fn pause(num_conflicts: u32) {
    match num_conflicts {
        // The commit that caused the conflict is done, so an attempt at once may succeed.
        1 => std::thread::yield_now(),
        // `RandomState::new` seeds each hasher at random.
        _ => {
            let share = RandomState::new().hash_one(num_conflicts) as f64 / u64::MAX as f64;
            std::thread::sleep((FIRST_PAUSE * (1 << num_conflicts.min(8))).mul_f64(share));
        }
    }
}
