//! Read access to a graph at one version, by key.

mod part;
mod weights;

use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use anden_base::VertexId;
use anden_base::bitmap::Bitmap;
use anden_engine::PrefetchStats;
use anden_graph::{Direction, Graph, GraphKind, WeightType, WeightedEdges, WillNeed};
use anden_kernels::sssp::{WeightStatistics, scan_weights};
use anden_kernels::{Context, Preparations};
use anden_snapshots::{KeyRef, SnapshotView};
use parking_lot::Mutex;

use crate::cache::{CacheMoment, ViewCache};
use crate::degrees::{DegreeStatistics, degree};
use crate::error::NotFound;
use crate::filter::{Filter, FilteredPart, SingleLists, TestedLists, on_single};
use crate::pinned::Pin;
use crate::session::Beside;
use crate::session::Prefetch;
use crate::weighted::{ChosenWeights, on_weighted};
use crate::{Error, Key, Neighbors, Options, Progress, Result, Session};

/// Read access to a graph at one version.
///
/// Clones are cheap. A view owns the files that it reads, so no change of the database affects it.
#[derive(Clone)]
pub struct View {
    /// The stored graph, also if this view is a part of it.
    graph: SnapshotView,
    /// The filters that select a part; `None`: the view shows the whole graph.
    part: Option<Arc<FilteredPart>>,
    session: Session,
    seen: Arc<Seen>,
    weights: SharedStatistics,
    /// The property chosen as the weight.
    chosen: Option<Arc<ChosenWeights>>,
    last_weights: LastWeights,
}

/// State that clones share: the pin and the name.
struct Seen {
    _pin: Option<Pin>,
    /// Keeps the view open of which this one is a part.
    _whole: Option<Arc<Seen>>,
    /// Formatted on demand, because most views are never asked for a name.
    name: OnceLock<String>,
    /// The newest snapshot, from which the name is made if none is given.
    newest: Option<u32>,
    /// Memory of pages that deltas change. Computed once, and only under a budget.
    least_patch_bytes: OnceLock<u64>,
    /// The entries of this view in the cache.
    cache: ViewCache,
    /// The entries of the snapshot under the memtable; of a part: of the corresponding part of that snapshot.
    cache_below: ViewCache,
}

/// The last chosen weights, and their statistics.
type LastWeights = Arc<Mutex<Option<(Arc<ChosenWeights>, SharedStatistics)>>>;

/// Statistics for kernels that add weights up; computed at the first request.
type SharedStatistics = Arc<OnceLock<WeightStatistics>>;

/// Number of contiguous fragments per out-list. Empty lists do not count.
///
/// Kernels receive a list as fragments. A list has at most three sources: base, deltas, memtable, and a fourth during a
/// checkpoint. Each source usually gives one fragment. A removed entry splits a fragment in two. A memtable list of
/// more than 1,020 entries has one fragment for each leaf of its B-tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FragmentStatistics {
    /// Largest number of fragments of a list; 0 in a graph without edges.
    pub max: u64,
    /// Mean over the non-empty lists; 0 in a graph without edges.
    pub mean: f64,
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl View {
    /// A view of `graph`, which was read after `moment`.
    pub(crate) fn new(graph: SnapshotView, session: Session, pin: Pin, name: String, moment: &CacheMoment) -> Self {
        Self::seen(graph, session, pin, (OnceLock::from(name), None), moment)
    }

    /// A view of everything committed; `newest` is the number of the newest snapshot.
    pub(crate) fn of_everything(
        graph: SnapshotView,
        session: Session,
        pin: Pin,
        newest: Option<u32>,
        moment: &CacheMoment,
    ) -> Self {
        // A checkpoint after the graph was read makes `newest` too young, and the graph knows its own version. A
        // version that was dropped has no name, so the snapshot before it stays the newest one.
        let version = graph.version().or_else(|| graph.below()?.version());
        let newest = newest.map(|newest| version.map_or(newest, |version| version.min(newest)));
        Self::seen(graph, session, pin, (OnceLock::new(), newest), moment)
    }

    fn seen(
        graph: SnapshotView,
        session: Session,
        pin: Pin,
        (name, newest): (OnceLock<String>, Option<u32>),
        moment: &CacheMoment,
    ) -> Self {
        let (cache, cache_below) = (moment.of(&graph, &session), moment.below(&graph, &session));
        let least_patch_bytes = OnceLock::new();
        let seen = Seen { _pin: Some(pin), _whole: None, name, newest, least_patch_bytes, cache, cache_below };
        let seen = Arc::new(seen);
        // The free memory at this moment decides whether lists are read ahead.
        let graph = session.prefetcher().attach(&graph, session.prefetch());
        let (weights, last_weights) = (Arc::default(), Arc::default());
        Self { graph, part: None, session, seen, weights, chosen: None, last_weights }
    }

    /// The part of this view that the filter selects. The predicates in text form name the part in the cache; without
    /// them, the part is not cached.
    pub(crate) fn with_part(&self, filter: Filter, predicates: Option<(Option<&str>, Option<&str>)>) -> Self {
        let named = |cache: &ViewCache| match predicates {
            Some((edges, vertices)) => cache.part(edges, vertices),
            None => cache.unnamed(),
        };
        let (cache, cache_below) = (named(&self.seen.cache), named(&self.seen.cache_below));
        // A cached part spares the layout, and the tests of single queries.
        let found = cache.find_part();
        let (graph, before) = match self.part.as_deref() {
            None => (self.graph.clone(), None),
            Some(part) => match part.laid_out() {
                // The lists have passed the earlier filters, so only the new one is left.
                Some(lists) => (lists.clone(), None),
                None => (self.graph.clone(), Some(part)),
            },
        };
        let part = Some(Arc::new(FilteredPart::new(before, filter, found)));
        let (seen, session, weights) = (self.seen_in_part(cache, cache_below), self.session.clone(), Arc::default());
        Self { graph, part, session, seen, weights, chosen: None, last_weights: Arc::default() }
    }

    /// This view with lists of its own vertices and edges, of which some vertices may be missing. Nothing of it is
    /// cached.
    pub(crate) fn with_fewer_vertices(&self, lists: SnapshotView) -> Self {
        let chosen = self.chosen().map(|chosen| Arc::new(chosen.with_graph(lists.clone())));
        let seen = self.seen_in_part(self.seen.cache.unnamed(), self.seen.cache_below.unnamed());
        let (session, weights) = (self.session.clone(), Arc::default());
        Self { graph: lists, part: None, session, seen, weights, chosen, last_weights: Arc::default() }
    }

    /// The shared state of a part of this view.
    fn seen_in_part(&self, cache: ViewCache, cache_below: ViewCache) -> Arc<Seen> {
        let (name, least_patch_bytes) = (OnceLock::from(format!("a part of {}", self.name())), OnceLock::new());
        // The whole view holds the pin, so that a part does not count as another view.
        let whole = Some(Arc::clone(&self.seen));
        Arc::new(Seen { _pin: None, _whole: whole, name, newest: None, least_patch_bytes, cache, cache_below })
    }

    /// The graph as the traits of kernels, for your own algorithms. If a [part](Self::filter) cannot be laid out,
    /// [`check`](Graph::check) returns the reason.
    pub fn graph(&self) -> &(impl WeightedEdges + use<>) {
        self.lists()
    }

    /// The stored graph, without regard to filters: for everything that a part shares with the whole.
    pub(crate) fn stored(&self) -> &SnapshotView {
        &self.graph
    }

    /// The lists that this view shows. On a part, call [`all_lists`](Self::all_lists) first, which returns the error if
    /// the part cannot be laid out.
    pub(crate) fn lists(&self) -> &SnapshotView {
        self.part.as_ref().map_or(&self.graph, |part| part.lay_out_or_fail(self))
    }

    /// The lists, for a query that reads a few of them. On a graph larger than memory, only these lists are read. On a
    /// part, each entry is tested as it is read, until the tests cost about as much as laying the part out.
    pub(crate) fn single_lists(&self) -> SingleLists<'_> {
        if self.graph.is_listening() && self.session.prefetch() != Prefetch::Sequential {
            // A query reads few lists: read-ahead around them would be wasted.
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

    /// The lists, for work on all of them. The caller announces its reads or reads in storage order.
    ///
    /// # Errors
    /// The part cannot be laid out: the memory budget is too small, a value is damaged, or the work is cancelled.
    pub(crate) fn all_lists(&self) -> Result<&SnapshotView> {
        if self.graph.is_listening() {
            // A scan profits from the read-ahead of the system.
            self.graph.read_exactly(false);
        }
        self.part.as_ref().map_or(Ok(&self.graph), |part| part.lay_out(self))
    }

    /// Runs the kernel of this name on all lists.
    pub(crate) fn on_all<T>(
        &self,
        kernel: &str,
        run: impl FnOnce(&Context<'_>, &SnapshotView) -> anden_kernels::Result<T>,
    ) -> Result<T> {
        let lists = self.all_lists()?;
        self.traced(kernel, || self.explained(run(&self.context(), lists)))
    }

    /// Reports damage met on the way. Damaged lists look empty.
    pub(crate) fn check_lists(&self) -> Result<()> {
        // A laid-out part may lie in files of its own, with damage of its own.
        self.graph.check()?;
        Ok(self.part.as_ref().and_then(|part| part.laid_out()).map_or(Ok(()), |lists| lists.check())?)
    }

    /// Like [`graph`](Self::graph), with the property chosen by [`with_weight`](Self::with_weight) as the weight;
    /// `None` if none was chosen.
    pub fn weighted_graph(&self) -> Option<&(impl WeightedEdges + use<>)> {
        self.chosen()
    }

    pub(crate) fn chosen(&self) -> Option<&ChosenWeights> {
        self.chosen.as_deref()
    }

    pub(crate) fn last_weights(&self) -> &Mutex<Option<(Arc<ChosenWeights>, SharedStatistics)>> {
        &self.last_weights
    }

    /// This view with the weights of the graph itself.
    pub(crate) fn with_own_weights(&self) -> Self {
        match self.chosen {
            Some(_) => Self { weights: Arc::default(), chosen: None, ..self.clone() },
            None => self.clone(),
        }
    }

    pub(crate) fn choosing(&self, chosen: Arc<ChosenWeights>, weights: SharedStatistics) -> Self {
        Self { weights, chosen: Some(chosen), ..self.clone() }
    }

    /// The entries of this view in the cache.
    pub(crate) fn cache(&self) -> &ViewCache {
        &self.seen.cache
    }

    /// The entries of the snapshot under the memtable; of a part: of the corresponding part of that snapshot.
    pub(crate) fn cache_below(&self) -> &ViewCache {
        &self.seen.cache_below
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// This view with another prefetch policy ([`Session::with_prefetch`]).
    #[must_use]
    pub fn with_prefetch(&self, prefetch: Prefetch) -> Self {
        let session = self.session.clone().with_prefetch(prefetch);
        let graph = session.prefetcher().attach(&self.graph, prefetch);
        // The lists of a part are in memory and need no prefetch.
        let chosen = match self.part {
            Some(_) => self.chosen.clone(),
            None => self.chosen().map(|chosen| Arc::new(chosen.with_graph(graph.clone()))),
        };
        // Cached weights still read through the old prefetcher.
        Self { graph, session, chosen, last_weights: LastWeights::default(), ..self.clone() }
    }

    /// This view with another progress report, which may cancel work on it.
    #[must_use]
    pub fn with_progress(&self, progress: Arc<dyn Progress + Send + Sync>) -> Self {
        Self { session: self.session.clone().with_progress(progress), ..self.clone() }
    }

    /// Counters of the prefetcher, over all views of the [`Session`].
    pub fn prefetch_stats(&self) -> PrefetchStats {
        self.session.prefetcher().stats()
    }

    /// The context of kernels on this view: workers, progress, memory budget. For your own algorithms.
    ///
    /// With it, kernels on [`graph`](Self::graph) of this view share what they prepare ([`Session::with_cache`]).
    pub fn context(&self) -> Context<'_> {
        let cache = &self.seen.cache;
        if cache.is_off() && !cache.has_stored() {
            return self.session.context(self.beside());
        }
        let lists = match &self.part {
            None => Some(&self.graph),
            Some(part) => part.laid_out(),
        };
        // Without lists to name, the work may still need the memory of the cache.
        let preparations = match lists {
            Some(lists) => Preparations::new(lists, cache),
            None => Preparations::without_graph(cache),
        };
        let beside = Beside { cached: cache.num_bytes(), ..self.beside() };
        Context { preparations: Some(preparations), ..self.session.context(beside) }
    }

    /// Checks that work that reads all lists and holds `num_bytes` itself fits in the budget. If so, the cache leaves
    /// room for it.
    ///
    /// # Errors
    /// [`Error::Memory`], with the total need.
    pub(crate) fn require_reader(&self, what: &str, num_bytes: u64) -> Result<()> {
        // Only the context of this view shrinks the cache; the session knows the total need.
        match self.context().require_memory("", num_bytes) {
            Ok(()) => Ok(()),
            Err(_) => self.session.require_reader(what, self.beside(), num_bytes),
        }
    }

    /// Memory in use beside the state of a kernel on this view.
    pub(crate) fn beside(&self) -> Beside {
        match self.part.as_ref().and_then(|part| part.laid_out()) {
            Some(lists) => Beside { taken: self.chosen_bytes(), lists: lists.stored_bytes(), ..Beside::default() },
            None => self.beside_stored(),
        }
    }

    /// Like [`beside`](Self::beside), while a part is read from the stored lists.
    pub(crate) fn beside_stored(&self) -> Beside {
        // Only a budget needs the estimate, which reads the index of each delta.
        let is_counted = self.session.memory().is_some() && self.graph.has_deltas();
        // The reader of the lists reports a damaged index, so this estimate ignores it.
        let patches = || self.graph.least_patch_bytes().unwrap_or(0);
        let patches = if is_counted { *self.seen.least_patch_bytes.get_or_init(patches) } else { 0 };
        let (has_patches, taken) = (self.graph.has_deltas(), self.chosen_bytes() + patches);
        Beside { has_patches, taken, lists: self.graph.stored_bytes(), cached: 0 }
    }

    fn chosen_bytes(&self) -> u64 {
        self.chosen().map_or(0, ChosenWeights::num_bytes)
    }

    /// The name of this version, such as `snapshot 1`.
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

    /// One more than the largest vertex id. Results by vertex id have this length.
    pub fn vertex_bound(&self) -> usize {
        self.graph.vertex_bound()
    }

    /// The number of edges. An undirected edge counts once.
    pub fn num_edges(&self) -> u64 {
        self.part.as_ref().map_or_else(|| self.graph.num_edges(), |part| part.num_edges(self).0)
    }

    /// The number of arcs. An undirected edge has two, an undirected loop one.
    pub fn num_arcs(&self) -> u64 {
        self.part.as_ref().map_or_else(|| self.graph.num_arcs(), |part| part.num_edges(self).1)
    }

    /// The options that were fixed when the database was created, such as direction and type of keys.
    pub fn options(&self) -> &Options {
        self.graph.options()
    }

    /// Whether edges have a direction.
    pub fn is_directed(&self) -> bool {
        self.graph.graph_kind() == GraphKind::Directed
    }

    /// Whether a pair of vertices may have several edges.
    pub fn is_multigraph(&self) -> bool {
        self.graph.is_multigraph()
    }

    /// Whether in-lists exist; always true in an undirected graph.
    pub fn has_in_edges(&self) -> bool {
        self.graph.has_lists(Direction::In)
    }

    /// The type of the weights; `None` in a graph without weights.
    pub fn weight_type(&self) -> Option<WeightType> {
        self.chosen().map_or_else(|| self.graph.weight_type(), |chosen| chosen.weight_type())
    }

    /// Statistics of the weights; `None` if one is negative or NaN. The first call on this view or a clone reads all
    /// weights.
    pub(crate) fn weight_statistics(&self) -> Result<Option<WeightStatistics>> {
        if let Some(statistics) = self.weights.get() {
            return Ok(Some(*statistics));
        }
        self.all_lists()?;
        let statistics = match on_weighted!(self, graph => scan_weights(&self.context(), graph)) {
            Err(anden_kernels::Error::Weight { .. }) => return Ok(None),
            statistics => self.explained(statistics)?,
        };
        // Two threads may scan at the same time; the first result stays.
        Ok(Some(*self.weights.get_or_init(|| statistics)))
    }

    /// Returns an error that names `what` if the graph has no weights.
    pub(crate) fn needs_weights(&self, what: &str) -> Result<()> {
        match self.weight_type() {
            Some(_) => Ok(()),
            None => {
                let schema = self.graph.edge_properties().schema();
                let numbers = schema.iter().filter(|(_, property_type)| property_type.is_numeric());
                let numbers = numbers.map(|(name, _)| name).collect::<Vec<_>>().join(", ");
                let needs = match numbers.is_empty() {
                    true => format!("{what} needs edge weights: load the graph with --weights"),
                    false => format!("{what} needs edge weights: choose one of the properties {numbers} with --weight"),
                };
                Err(Error::Unsupported(needs.into()))
            }
        }
    }

    /// Converts a kernel error: keys replace ids, and a memory error names the total need.
    pub(crate) fn explained<T>(&self, found: anden_kernels::Result<T>) -> Result<T> {
        found.map_err(|error| {
            let error = Error::with_keys(error, |vertex| self.key(vertex));
            self.session.in_all(error, || self.beside())
        })
    }

    /// Whether an id is a vertex; false at and beyond [`vertex_bound`](Self::vertex_bound).
    pub fn is_live(&self, vertex: VertexId) -> bool {
        // Methods that read the damaged value report it.
        self.has(vertex).unwrap_or(false)
    }

    /// Like [`is_live`](Self::is_live), but reports damage.
    pub(crate) fn has(&self, vertex: VertexId) -> Result<bool> {
        match (&self.part, self.part.as_ref().and_then(|part| part.laid_out())) {
            // One vertex does not justify a layout.
            (Some(part), None) => TestedLists::new(&self.graph, part).has(vertex),
            (_, laid_out) => Ok(laid_out.unwrap_or(&self.graph).is_live(vertex)),
        }
    }

    /// The ids below the bound that have property values and are no vertex of this view; `None`: there are none.
    pub(crate) fn hidden_vertices(&self) -> Result<Option<Bitmap>> {
        match &self.part {
            Some(part) => part.absent(self).map(Some),
            None if self.graph.lacks_isolated() => {
                let mut hidden = Bitmap::new(self.vertex_bound());
                let is_dead = |&vertex: &usize| !self.graph.is_live(vertex as VertexId);
                (0..self.vertex_bound()).filter(is_dead).for_each(|vertex| hidden.set(vertex));
                Ok(Some(hidden))
            }
            None => Ok(None),
        }
    }

    /// The id of a vertex. Converts between numbers and their text if the graph has keys of the other kind.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is no such vertex; damage met on the way.
    pub fn vertex(&self, key: impl Into<Key>) -> Result<VertexId> {
        let key = key.into();
        let find = |key: &Key| -> Result<_> { Ok(self.graph.vertex_dead_or_alive(key)?) };
        // The caller may have given a number as text, or text as a number.
        let found = match (find(&key)?, &key) {
            (Some(found), _) => Some(found),
            (None, Key::Integer(number)) => find(&Key::String(number.to_string()))?,
            (None, Key::String(text)) => {
                anden_engine::integer_key(text).map(|key| find(&Key::Integer(key))).transpose()?.flatten()
            }
        };
        let text = match found {
            Some((vertex, true)) if self.has(vertex)? => return Ok(vertex),
            Some((_, true)) => format!("vertex {key} is in the graph, but a filter leaves it out"),
            Some((_, false)) if self.graph.lacks_isolated() => {
                format!("vertex {key} has no edge in {}, and isolated vertices are left out", self.name())
            }
            _ => return Err(Error::no_vertex(&key)),
        };
        Err(Error::not_found(NotFound::Vertex(key), text))
    }

    /// The key of a vertex.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is no such vertex; damage met on the way.
    pub fn key(&self, vertex: VertexId) -> Result<Key> {
        self.require_id(vertex)?;
        Ok(self.graph.key(vertex)?)
    }

    /// Refuses an id that no vertex of this view can have.
    fn require_id(&self, vertex: VertexId) -> Result<()> {
        let bound = self.vertex_bound();
        match (vertex as usize) < bound {
            true => Ok(()),
            false => {
                let text = format!("there is no vertex with id {vertex}: ids are below {bound}");
                Err(Error::not_found(NotFound::VertexId(vertex), text))
            }
        }
    }

    /// As [`key`](Self::key), without a copy.
    ///
    /// # Errors
    /// As [`key`](Self::key).
    pub fn key_ref(&self, vertex: VertexId) -> Result<KeyRef<'_>> {
        self.require_id(vertex)?;
        Ok(self.graph.key_ref(vertex)?)
    }

    pub(crate) fn keys(&self, vertices: &[VertexId]) -> Result<Vec<Key>> {
        vertices.iter().map(|&vertex| self.key(vertex)).collect()
    }

    /// Refuses an id that no list has.
    fn require_below_bound(&self, vertex: VertexId) -> Result<()> {
        let bound = self.vertex_bound();
        match (vertex as usize) < bound {
            true => Ok(()),
            false => Err(Error::InvalidInput(format!("vertex {vertex} is not below {bound}").into())),
        }
    }

    /// The length of the out-list; 0 for an id without a vertex.
    ///
    /// # Errors
    /// [`Error::InvalidInput`]: the id is not below [`vertex_bound`](Self::vertex_bound). Damage met on the way.
    pub fn out_degree(&self, vertex: VertexId) -> Result<u64> {
        self.require_below_bound(vertex)?;
        let degree = on_single!(self, lists => lists.degree(Direction::Out, vertex) as u64);
        self.check_lists()?;
        Ok(degree)
    }

    /// The length of the in-list; `None` in a graph without in-lists.
    ///
    /// # Errors
    /// As [`out_degree`](Self::out_degree).
    pub fn in_degree(&self, vertex: VertexId) -> Result<Option<u64>> {
        self.require_below_bound(vertex)?;
        if !self.has_in_edges() {
            return Ok(None);
        }
        let degree = on_single!(self, lists => lists.degree(Direction::In, vertex) as u64);
        self.check_lists()?;
        Ok(Some(degree))
    }

    /// The distribution of out-degrees.
    ///
    /// # Errors
    /// Damage met on the way.
    pub fn out_degree_statistics(&self) -> Result<DegreeStatistics> {
        self.degree_statistics(Neighbors::Out)
    }

    /// The distribution of in-degrees.
    ///
    /// # Errors
    /// [`Error::Unsupported`] in a graph without in-lists; damage met on the way.
    pub fn in_degree_statistics(&self) -> Result<DegreeStatistics> {
        self.degree_statistics(Neighbors::In)
    }

    /// The distribution of out-degrees, in-degrees or their sums. In an undirected graph all three are equal.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the direction needs in-lists and the graph has none; damage met on the way.
    pub fn degree_statistics(&self, direction: Neighbors) -> Result<DegreeStatistics> {
        self.require_lists_of(direction)?;
        let lists = self.all_lists()?;
        let degree_of = |vertex| degree(lists, self.is_directed(), vertex, direction);
        let live = (0..self.vertex_bound() as VertexId).filter(|&vertex| lists.is_live(vertex));
        let degrees = live.map(degree_of).collect();
        // Damaged lists look empty, so the degrees count only if this check passes.
        lists.check()?;
        Ok(DegreeStatistics::of(degrees))
    }

    /// Refuses a direction that needs in-lists if the graph has none.
    pub(crate) fn require_lists_of(&self, direction: Neighbors) -> Result<()> {
        match direction == Neighbors::Out || self.has_in_edges() {
            true => Ok(()),
            false => Err(Error::Unsupported("in-degrees need in-edges: load without --out-only".into())),
        }
    }

    /// Counts the fragments of all out-lists. Cost: reads all out-lists.
    ///
    /// # Errors
    /// Damage met on the way.
    pub fn fragment_statistics(&self) -> Result<FragmentStatistics> {
        let lists = self.all_lists()?;
        let (mut max, mut sum, mut num_lists) = (0, 0, 0);
        for vertex in 0..self.vertex_bound() as VertexId {
            let mut num_fragments = 0_u64;
            let _ = lists.for_each_fragment(Direction::Out, vertex, |targets| {
                // A storage may pass an empty fragment for an empty list.
                num_fragments += u64::from(!targets.is_empty());
                ControlFlow::Continue(())
            });
            max = num_fragments.max(max);
            sum += num_fragments;
            num_lists += u64::from(num_fragments > 0);
        }
        lists.check()?;
        let mean = if num_lists == 0 { 0.0 } else { sum as f64 / num_lists as f64 };
        Ok(FragmentStatistics { max, mean })
    }
}
