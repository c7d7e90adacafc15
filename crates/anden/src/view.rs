//! Read access to a graph at one snapshot, by key.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, OnceLock};

use base::VertexId;
use graph::{Direction, Graph, InEdges, WeightType, WeightedEdges, WillNeed};
use kernels::Context;
use kernels::sssp::{WeightStatistics, scan_weights};

use crate::filter::{Filter, Part, SingleLists, TestedLists, on_single};
use crate::parts::{PartName, Parts};
use crate::pinned::Pin;
use crate::session::Beside;
use crate::weighted::{ChosenWeights, on_weighted};
use crate::{DegreeStatistics, Error, Job, JobOutput, Key, KeyRef, Prefetch, PrefetchStats, Result, Session, Side};

/// Read access to a graph at one snapshot.
///
/// Cheap to clone. It owns the files that it reads: nothing that happens to the database changes it.
#[derive(Clone)]
pub struct View {
    /// As stored, also of a part.
    graph: lama::View,
    /// What is left of the lists; `None` where all is.
    part: Option<Arc<Part>>,
    session: Session,
    seen: Arc<Seen>,
    weights: SharedStatistics,
    /// The property that is the weight, where one is chosen.
    chosen: Option<Arc<ChosenWeights>>,
    last_weights: LastWeights,
}

/// What clones of a view share: that it is open, and what it is called.
struct Seen {
    _pin: Option<Pin>,
    /// The view that this one is a part of.
    _whole: Option<Arc<Seen>>,
    /// Written when it is first asked for, unless it is given: most views are not asked.
    name: OnceLock<String>,
    /// Where the name is not given, that of the newest snapshot.
    newest: Option<u32>,
    /// What pages take that levels change, once somebody has a budget for it.
    least_patch_bytes: OnceLock<u64>,
    /// Under which name parts of this view are kept; `None`: they are not.
    part_name: Option<PartName>,
    /// The same of the snapshot that changes lie over.
    name_below: Option<PartName>,
}

/// The weights that were chosen last, and what they are like.
type LastWeights = Arc<Mutex<Option<(Arc<ChosenWeights>, SharedStatistics)>>>;

/// What kernels that add weights up want to know of them, once one has asked.
type SharedStatistics = Arc<OnceLock<WeightStatistics>>;

/// In how many contiguous pieces out-lists lie; lists without entries do not count.
///
/// A piece is a slice that algorithms get, whatever it comes from. Of sources a list has three at most, the base run, what
/// all levels together add and what is live, and a fourth while a snapshot is written; with few changes each of them is one
/// piece. An entry that is gone from the middle of a piece makes two of it, and of what is live a list of more than 1,020
/// entries lies in leaves, each of them a piece.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieceStatistics {
    /// The most pieces of a list; 0 of a graph without edges.
    pub max: u64,
    /// The mean over the lists; 0 of a graph without edges.
    pub mean: f64,
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl View {
    pub(crate) fn new(graph: lama::View, session: Session, pin: Pin, name: String, parts: &Arc<Parts>) -> Self {
        Self::seen(graph, session, pin, (OnceLock::from(name), None), parts)
    }

    /// Of everything that is committed; the newest snapshot is called `newest`.
    pub(crate) fn of_everything(
        graph: lama::View,
        session: Session,
        pin: Pin,
        newest: Option<u32>,
        parts: &Arc<Parts>,
    ) -> Self {
        Self::seen(graph, session, pin, (OnceLock::new(), newest), parts)
    }

    fn seen(
        graph: lama::View,
        session: Session,
        pin: Pin,
        (name, newest): (OnceLock<String>, Option<u32>),
        parts: &Arc<Parts>,
    ) -> Self {
        let part_name = parts.name_of(&graph);
        let name_below = graph.below().and_then(|below| parts.name_of(below));
        let least_patch_bytes = OnceLock::new();
        let seen = Seen { _pin: Some(pin), _whole: None, name, newest, least_patch_bytes, part_name, name_below };
        let seen = Arc::new(seen);
        let graph = session.advisor().attach(&graph, session.prefetch());
        let (weights, last_weights) = (Arc::default(), Arc::default());
        Self { graph, part: None, session, seen, weights, chosen: None, last_weights }
    }

    /// What a filter by these predicates over edges and vertices leaves of this view.
    pub(crate) fn with_part(&self, filter: Filter, edges: Option<&str>, vertices: Option<&str>) -> Self {
        let part_name = self.seen.part_name.as_ref().map(|name| name.part(edges, vertices));
        let name_below = self.seen.name_below.as_ref().map(|name| name.part(edges, vertices));
        let (name, least_patch_bytes) = (OnceLock::from(format!("a part of {}", self.name())), OnceLock::new());
        let whole = Some(Arc::clone(&self.seen));
        let found = part_name.as_ref().and_then(PartName::find);
        let seen = Seen { _pin: None, _whole: whole, name, newest: None, least_patch_bytes, part_name, name_below };
        let (graph, before) = match self.part.as_deref() {
            None => (self.graph.clone(), None),
            Some(part) => match part.laid_out() {
                Some(lists) => (lists.clone(), None),
                None => (self.graph.clone(), Some(part)),
            },
        };
        let part = Some(Arc::new(Part::new(before, filter, found)));
        let (seen, session, weights) = (Arc::new(seen), self.session.clone(), Arc::default());
        Self { graph, part, session, seen, weights, chosen: None, last_weights: Arc::default() }
    }

    /// The graph behind the seam, for algorithms of one's own. Of a [part](Self::filter) that cannot be laid out,
    /// [`check`](Graph::check) says why.
    pub fn graph(&self) -> &(impl InEdges + WeightedEdges + use<>) {
        self.lists()
    }

    /// The lists as they are stored, from which a part leaves some out: for what the part has in common with the whole.
    pub(crate) fn stored(&self) -> &lama::View {
        &self.graph
    }

    /// The lists. Of a part, work on them begins with [`all_lists`](Self::all_lists), which says why they are not there.
    pub(crate) fn lists(&self) -> &lama::View {
        self.part.as_ref().map_or(&self.graph, |part| part.lay_out_or_fail(self))
    }

    /// The lists, for a question about a few of them: where they are larger than memory, nothing beside those is read. Of
    /// a part, entries are tested when they are read, until those tests took about as long as to lay all out.
    pub(crate) fn single_lists(&self) -> SingleLists<'_> {
        if self.graph.is_listening() && self.session.prefetch() != Prefetch::Sequential {
            self.graph.read_exactly(true);
        }
        match &self.part {
            None => SingleLists::Whole(&self.graph),
            Some(part) => match part.laid_out().or_else(|| part.lay_out_if_worth_it(self)) {
                Some(lists) => SingleLists::Whole(lists),
                None => SingleLists::Tested(TestedLists::new(&self.graph, part)),
            },
        }
    }

    /// The lists, for work on all of them, which says what it reads or reads them in their order.
    ///
    /// # Errors
    /// A part cannot be laid out: it is too large for the budget, a value is damaged, the work is cancelled.
    pub(crate) fn all_lists(&self) -> Result<&lama::View> {
        if self.graph.is_listening() {
            self.graph.read_exactly(false);
        }
        self.part.as_ref().map_or(Ok(&self.graph), |part| part.lay_out(self))
    }

    /// Runs a kernel on all lists.
    pub(crate) fn on_all<T>(&self, run: impl FnOnce(&Context<'_>, &lama::View) -> kernels::Result<T>) -> Result<T> {
        let lists = self.all_lists()?;
        self.explained(run(&self.context(), lists))
    }

    /// Damage met on the way, if any: lists with damage look empty.
    pub(crate) fn check_lists(&self) -> Result<()> {
        self.graph.check()?;
        Ok(self.part.as_ref().and_then(|part| part.laid_out()).map_or(Ok(()), |lists| lists.check())?)
    }

    /// The graph behind the seam with the property that was chosen as the weight ([`with_weight`](Self::with_weight));
    /// `None` where none was.
    pub fn weighted_graph(&self) -> Option<&(impl InEdges + WeightedEdges + use<>)> {
        self.chosen()
    }

    pub(crate) fn chosen(&self) -> Option<&ChosenWeights> {
        self.chosen.as_deref()
    }

    pub(crate) fn last_weights(&self) -> &Mutex<Option<(Arc<ChosenWeights>, SharedStatistics)>> {
        &self.last_weights
    }

    pub(crate) fn choosing(&self, chosen: Arc<ChosenWeights>, weights: SharedStatistics) -> Self {
        Self { weights, chosen: Some(chosen), ..self.clone() }
    }

    /// The name of this view among parts that are kept.
    pub(crate) fn part_name(&self) -> Option<&PartName> {
        self.seen.part_name.as_ref()
    }

    /// The same of the snapshot that changes lie over, or of the part of it that this view is with these changes.
    pub(crate) fn name_below(&self) -> Option<&PartName> {
        self.seen.name_below.as_ref()
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// The same view, with another choice of what is read ahead ([`Session::with_prefetch`]).
    #[must_use]
    pub fn with_prefetch(&self, prefetch: Prefetch) -> Self {
        let session = self.session.clone().with_prefetch(prefetch);
        let graph = session.advisor().attach(&self.graph, prefetch);
        // The lists of a part are in memory.
        let chosen = match self.part {
            Some(_) => self.chosen.clone(),
            None => self.chosen().map(|chosen| Arc::new(chosen.with_graph(graph.clone()))),
        };
        Self { graph, session, chosen, last_weights: LastWeights::default(), ..self.clone() }
    }

    /// What was read ahead so far, through all views of the [`Session`].
    pub fn prefetch_stats(&self) -> PrefetchStats {
        self.session.advisor().stats()
    }

    /// What kernels work with beside the graph, for algorithms of one's own.
    pub fn context(&self) -> Context<'_> {
        self.session.context(self.beside())
    }

    /// What is in memory beside the state of a kernel on this view.
    pub(crate) fn beside(&self) -> Beside {
        match self.part.as_ref().and_then(|part| part.laid_out()) {
            Some(lists) => Beside { has_patches: false, taken: self.chosen_bytes(), lists: lists.stored_bytes() },
            None => self.beside_stored(),
        }
    }

    /// The same while a part is read from the lists as they are stored.
    pub(crate) fn beside_stored(&self) -> Beside {
        let is_counted = self.session.memory().is_some() && self.graph.has_levels();
        // Where an index is damaged, whoever reads the lists says so.
        let patches = || self.graph.least_patch_bytes().unwrap_or(0);
        let patches = if is_counted { *self.seen.least_patch_bytes.get_or_init(patches) } else { 0 };
        let (has_patches, taken) = (self.graph.has_levels(), self.chosen_bytes() + patches);
        Beside { has_patches, taken, lists: self.graph.stored_bytes() }
    }

    fn chosen_bytes(&self) -> u64 {
        self.chosen().map_or(0, ChosenWeights::num_bytes)
    }

    /// What is seen: `snapshot 1`.
    pub fn name(&self) -> &str {
        self.seen.name.get_or_init(|| {
            let newest = self.seen.newest.map_or_else(|| "empty".into(), |number| format!("snapshot {number}"));
            match self.graph.is_overlaid() {
                true => format!("{newest} and what was committed since"),
                false => newest,
            }
        })
    }

    /// The number of vertices.
    pub fn num_vertices(&self) -> usize {
        self.part.as_ref().map_or_else(|| self.graph.num_vertices(), |part| part.num_vertices(self))
    }

    /// One more than the largest vertex id: the length of results by vertex id.
    pub fn vertex_bound(&self) -> usize {
        self.graph.vertex_bound()
    }

    /// The number of edges; of an undirected graph, each counted once.
    pub fn num_edges(&self) -> u64 {
        self.part.as_ref().map_or_else(|| self.graph.num_edges(), |part| part.num_edges(self).0)
    }

    /// The number of stored list entries: an undirected edge has two, a loop one.
    pub fn num_arcs(&self) -> u64 {
        self.part.as_ref().map_or_else(|| self.graph.num_arcs(), |part| part.num_edges(self).1)
    }

    /// Whether edges have a direction.
    pub fn is_directed(&self) -> bool {
        self.graph.direction() == Direction::Directed
    }

    /// Whether a pair of vertices may have several edges.
    pub fn is_multigraph(&self) -> bool {
        self.graph.is_multigraph()
    }

    /// Whether in-lists are there; of an undirected graph they always are.
    pub fn has_in_edges(&self) -> bool {
        self.graph.has_in_edges()
    }

    /// The type of the weights; `None` where edges have none.
    pub fn weight_type(&self) -> Option<WeightType> {
        self.chosen().map_or_else(|| self.graph.weight_type(), |chosen| chosen.weight_type())
    }

    /// What the weights are like; reads all of them at the first call on this view and its clones.
    pub(crate) fn weight_statistics(&self) -> Result<WeightStatistics> {
        if let Some(statistics) = self.weights.get() {
            return Ok(*statistics);
        }
        self.all_lists()?;
        let statistics = on_weighted!(self, graph => scan_weights(&self.context(), graph));
        let statistics = self.explained(statistics)?;
        Ok(*self.weights.get_or_init(|| statistics))
    }

    /// Refuses, for `what`, a graph without weights.
    pub(crate) fn needs_weights(&self, what: &str) -> Result<()> {
        match self.weight_type() {
            Some(_) => Ok(()),
            None => {
                let schema = self.edge_schema().iter().filter(|(_, property_type)| property_type.is_numeric());
                let numbers = schema.map(|(name, _)| name).collect::<Vec<_>>().join(", ");
                Err(Error::Unsupported(match numbers.is_empty() {
                    true => format!("{what} needs edge weights: load the graph with --weights"),
                    false => format!("{what} needs edge weights: choose one of the properties {numbers} with --weight"),
                }))
            }
        }
    }

    /// What a kernel found; or its error, with keys where it has ids, and with all memory that there must be where it has
    /// what the kernel must have.
    pub(crate) fn explained<T>(&self, found: kernels::Result<T>) -> Result<T> {
        found.map_err(|error| {
            let error = Error::with_keys(error, |vertex| self.key(vertex));
            self.session.in_all(error, || self.beside())
        })
    }

    /// Whether an id below the bound is a vertex.
    pub fn is_live(&self, vertex: VertexId) -> bool {
        // Where a value is damaged, methods that read it say so.
        self.has(vertex).unwrap_or(false)
    }

    /// The same, with damage met on the way.
    pub(crate) fn has(&self, vertex: VertexId) -> Result<bool> {
        match (&self.part, self.part.as_ref().and_then(|part| part.laid_out())) {
            (Some(part), None) => TestedLists::new(&self.graph, part).has(vertex),
            (_, laid_out) => Ok(laid_out.unwrap_or(&self.graph).is_live(vertex)),
        }
    }

    /// The id of a vertex. A number given as text, or text as a number, is understood.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is no such vertex; damage met on the way.
    pub fn vertex(&self, key: impl Into<Key>) -> Result<VertexId> {
        let key = key.into();
        let found = |key: &Key| -> Result<Option<VertexId>> {
            let found = self.graph.vertex(key)?;
            Ok(found.map(|vertex| Ok::<_, Error>(self.has(vertex)?.then_some(vertex))).transpose()?.flatten())
        };
        if let Some(vertex) = found(&key)? {
            return Ok(vertex);
        }
        let other = match &key {
            Key::Integer(number) => Some(Key::String(number.to_string())),
            Key::String(text) => engine::integer_key(text).map(Key::Integer),
        };
        match other.map(|other| found(&other)).transpose()?.flatten() {
            Some(vertex) => Ok(vertex),
            None => Err(Error::no_vertex(&key)),
        }
    }

    /// The key of a vertex.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is no such vertex; damage met on the way.
    pub fn key(&self, vertex: VertexId) -> Result<Key> {
        Ok(self.graph.key(vertex)?)
    }

    /// As [`key`](Self::key), without a copy.
    ///
    /// # Errors
    /// As [`key`](Self::key).
    pub fn key_ref(&self, vertex: VertexId) -> Result<KeyRef<'_>> {
        Ok(self.graph.key_ref(vertex)?)
    }

    pub(crate) fn keys(&self, vertices: &[VertexId]) -> Result<Vec<Key>> {
        vertices.iter().map(|&vertex| self.key(vertex)).collect()
    }

    /// All vertices, ascending by key: numbers by value, strings by their bytes.
    ///
    /// # Errors
    /// Damage met on the way.
    pub fn vertices_by_key(&self) -> Result<Vec<VertexId>> {
        let lists = self.all_lists()?;
        let mut vertices: Vec<VertexId> =
            (0..self.vertex_bound() as VertexId).filter(|&vertex| lists.is_live(vertex)).collect();
        let mut before = None;
        let mut is_sorted = true;
        for &vertex in &vertices {
            let key = self.key_ref(vertex)?;
            is_sorted &= before.is_none_or(|before| before < key);
            before = Some(key);
        }
        if !is_sorted {
            // Every key was read above, so none is missing here.
            vertices.sort_by_cached_key(|&vertex| self.key_ref(vertex).ok());
        }
        Ok(vertices)
    }

    /// All vertices ascending by key; `None` where their ids ascend so.
    pub(crate) fn order_of_keys(&self) -> Result<Option<Vec<VertexId>>> {
        if self.graph.options().keys == lama::KeyScheme::Dense {
            return Ok(None);
        }
        let vertices = self.vertices_by_key()?;
        Ok(if vertices.is_sorted() { None } else { Some(vertices) })
    }

    /// The length of the out-list.
    ///
    /// # Errors
    /// Damage met on the way.
    pub fn out_degree(&self, vertex: VertexId) -> Result<u64> {
        let degree = on_single!(self, lists => lists.out_degree(vertex) as u64);
        self.check_lists()?;
        Ok(degree)
    }

    /// The length of the in-list; `None` where in-lists are not there.
    ///
    /// # Errors
    /// Damage met on the way.
    pub fn in_degree(&self, vertex: VertexId) -> Result<Option<u64>> {
        if !self.has_in_edges() {
            return Ok(None);
        }
        let degree = on_single!(self, lists => lists.in_degree(vertex) as u64);
        self.check_lists()?;
        Ok(Some(degree))
    }

    /// How the lengths of the out-lists are spread.
    ///
    /// # Errors
    /// Damage met on the way.
    pub fn out_degree_statistics(&self) -> Result<DegreeStatistics> {
        self.degree_statistics(Side::Out)
    }

    /// How the lengths of the in-lists are spread.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where in-lists are not there; damage met on the way.
    pub fn in_degree_statistics(&self) -> Result<DegreeStatistics> {
        self.degree_statistics(Side::In)
    }

    /// How the degrees are spread: of out-lists, of in-lists, or of both together; of an undirected graph
    /// all three are the same.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where in-lists are asked for and are not there; damage met on the way.
    pub fn degree_statistics(&self, side: Side) -> Result<DegreeStatistics> {
        if side != Side::Out && !self.has_in_edges() {
            return Err(Error::Unsupported("in-degrees need in-edges: load without --out-only".into()));
        }
        let lists = self.all_lists()?;
        let degree = |vertex| match side {
            Side::Both if self.is_directed() => lists.out_degree(vertex) + lists.in_degree(vertex),
            Side::Out | Side::Both => lists.out_degree(vertex),
            Side::In => lists.in_degree(vertex),
        };
        let live = (0..self.vertex_bound() as VertexId).filter(|&vertex| lists.is_live(vertex));
        let degrees = live.map(|vertex| degree(vertex) as u64).collect();
        lists.check()?;
        Ok(DegreeStatistics::of(degrees))
    }

    /// In how many pieces out-lists lie; reads all of them.
    ///
    /// # Errors
    /// Damage met on the way.
    pub fn piece_statistics(&self) -> Result<PieceStatistics> {
        let lists = self.all_lists()?;
        let (mut max, mut sum, mut num_lists) = (0, 0, 0);
        for vertex in 0..self.vertex_bound() as VertexId {
            let mut num_pieces = 0_u64;
            let _ = lists.for_each_out_fragment(vertex, |targets| {
                num_pieces += u64::from(!targets.is_empty());
                ControlFlow::Continue(())
            });
            max = num_pieces.max(max);
            sum += num_pieces;
            num_lists += u64::from(num_pieces > 0);
        }
        lists.check()?;
        let mean = if num_lists == 0 { 0.0 } else { sum as f64 / num_lists as f64 };
        Ok(PieceStatistics { max, mean })
    }

    /// Runs a job of the table.
    ///
    /// # Errors
    /// A source that does not exist, a parameter outside its bounds, a graph that lacks what the
    /// kernel needs, too small a memory budget, damage met on the way, cancellation.
    pub fn run(&self, job: &Job) -> Result<JobOutput> {
        job.run(self)
    }
}
