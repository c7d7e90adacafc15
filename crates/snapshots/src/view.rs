//! Read access to the graph at a version, or to the edges that a range of versions added.

mod entries;
mod filtered;
mod filtered_changes;
mod isolated;
mod overlay_base;
mod whole_lists;

use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::Arc;

use anden_base::VertexId;
use anden_base::bitmap::Bitmap;
use anden_base::mapped::FileBytes;
use anden_graph::{
    DensePage, Direction, Graph, GraphKind, Page, Parts, PrefetchStage, SingleFragment, VertexMask, Weight, WeightType,
    WeightedEdges, WillNeed,
};

pub use self::entries::Entries;
pub use self::filtered::{EntryFilter, KeepEntries};
pub use self::overlay_base::OverlayBase;
pub use self::whole_lists::WholeLists;
use crate::adjacency::{AdjacencyView, FirstDamage, ListOrigin, ShownArcs, ViewSpec};
use crate::arc_columns::ArcRow;
use crate::base::{BaseLists, OpenBase};
use crate::changes::ApplyDirection;
use crate::delta::Delta;
use crate::dictionary::Dictionary;
use crate::file::FileEnds;
use crate::finder::Finder;
use crate::hook::Listener;
use crate::key::{Key, KeyRef};
use crate::options::{GraphOptions, KeyScheme};
use crate::overlay::Overlay;
use crate::property::{EdgeProperties, StoredRows};
use crate::table::PAGE_VERTICES;
use crate::vertex_properties::{StoredProperties, VertexProperties};
use crate::{Error, Result};

/// The graph at a version, or the edges that a range of versions added; clones share everything.
///
/// Lists come from the mapped files of the base, and from the deltas between the base and the version. The first read
/// of a page of 1,024 vertices verifies the page, and patches it if deltas change it. Later reads through this view do
/// neither. Lists of a damaged page look empty, and [`Graph::check`] reports the damage. The files stay readable while
/// the view lives, whatever happens to the database.
#[derive(Clone, Debug)]
pub struct SnapshotView {
    out_adjacency: AdjacencyView,
    /// For an undirected graph, a clone of the out-lists.
    in_adjacency: Option<AdjacencyView>,
    vertex_bound: usize,
    /// The changes in memory over the version.
    overlay: Option<Arc<dyn Overlay>>,
    /// The snapshot below these changes.
    below: Option<Arc<SnapshotView>>,
    /// Hook of the prefetcher.
    hook: Option<Arc<dyn Listener>>,
    shared: Arc<ViewShared>,
}

/// Parts of a version other than lists.
#[derive(Clone, Debug)]
struct ViewShared {
    version: Option<u32>,
    options: GraphOptions,
    num_vertices: usize,
    num_edges: u64,
    num_arcs: u64,
    /// The dead ids below the bound, if there are any.
    dead: Option<Bitmap>,
    /// Whether the dead ids include all vertices without edges.
    lacks_isolated: bool,
    dictionary: Arc<Dictionary>,
    properties: Arc<StoredProperties>,
    edge_properties: Arc<StoredRows>,
    files: Arc<FileEnds>,
    fault: FirstDamage,
}

/// The parts that a view is made of.
#[derive(Debug)]
pub(crate) struct ViewParts {
    /// The version's number, if the parts are all of one version.
    pub version: Option<u32>,
    pub base: Arc<OpenBase>,
    /// The deltas that lead from the base to the version, in the order of their application.
    pub steps: Vec<(Delta, ApplyDirection)>,
    pub options: GraphOptions,
    pub vertex_bound: usize,
    pub num_vertices: u64,
    pub num_edges: u64,
    pub num_arcs: u64,
    /// May hold younger vertices, too.
    pub dictionary: Arc<Dictionary>,
    pub properties: Arc<StoredProperties>,
    pub edge_properties: Arc<StoredRows>,
    /// The files behind all these.
    pub files: Arc<FileEnds>,
    /// Directory of the database, for messages.
    pub path: PathBuf,
}

impl SnapshotView {
    /// The graph at a version. Cost: 8 bytes for each page and direction, and 18 more with deltas; no list is read.
    ///
    /// # Errors
    /// The lists of dead vertices are damaged, or contradict each other.
    pub(crate) fn open(parts: ViewParts) -> Result<Self> {
        let dead = dead_vertices(&parts)?;
        let num_dead = dead.as_ref().map_or(0, Bitmap::count_ones) as u64;
        if parts.num_vertices + num_dead != parts.vertex_bound as u64 {
            let what = format!("{} vertices and {num_dead} dead ones below {}", parts.num_vertices, parts.vertex_bound);
            return Err(anden_base::Error::corrupt(&parts.path, 0, what).into());
        }
        let fault = FirstDamage::default();
        let (out_adjacency, in_adjacency) = both_adjacencies(&parts, &parts.steps, ShownArcs::All, &fault);
        Ok(Self::new(parts, out_adjacency, in_adjacency, dead, fault))
    }

    /// The edges that `deltas` add and that are still present at the version of `parts`, which the last delta leads to.
    ///
    /// Cost: reads all deltas, and keeps their additions in memory.
    ///
    /// # Errors
    /// As [`open`](Self::open); a delta is damaged.
    pub(crate) fn window(mut parts: ViewParts, deltas: &[Delta]) -> Result<Self> {
        let dead = dead_vertices(&parts)?;
        let fault = FirstDamage::default();
        let steps: Vec<_> = deltas.iter().map(|delta| (delta.clone(), ApplyDirection::Forward)).collect();
        let (out_adjacency, in_adjacency) = both_adjacencies(&parts, &steps, ShownArcs::Added, &fault);
        parts.version = None;
        parts.num_arcs = out_adjacency.count_arcs();
        parts.num_edges = match parts.options.graph_kind {
            GraphKind::Directed => parts.num_arcs,
            // An undirected loop has one arc, any other edge two.
            GraphKind::Undirected => (parts.num_arcs + num_loops(&out_adjacency, parts.vertex_bound)) / 2,
        };
        let view = Self::new(parts, out_adjacency, in_adjacency, dead, fault);
        // Counting the arcs read every page, so damage is known here.
        view.check()?;
        Ok(view)
    }

    fn new(
        parts: ViewParts,
        out_adjacency: AdjacencyView,
        in_adjacency: Option<AdjacencyView>,
        dead: Option<Bitmap>,
        fault: FirstDamage,
    ) -> Self {
        let shared = ViewShared {
            version: parts.version,
            options: parts.options,
            num_vertices: parts.num_vertices as usize,
            num_edges: parts.num_edges,
            num_arcs: parts.num_arcs,
            dead,
            lacks_isolated: false,
            dictionary: parts.dictionary,
            properties: parts.properties,
            edge_properties: parts.edge_properties,
            files: parts.files,
            fault,
        };
        let (vertex_bound, shared) = (parts.vertex_bound, Arc::new(shared));
        Self { out_adjacency, in_adjacency, vertex_bound, overlay: None, below: None, hook: None, shared }
    }

    /// This version below `overlay`, which the directions contain already.
    fn with_overlay(
        self: &Arc<Self>,
        out_adjacency: AdjacencyView,
        in_adjacency: Option<AdjacencyView>,
        overlay: Arc<dyn Overlay>,
    ) -> Self {
        let vertex_bound = overlay.vertex_bound();
        let (overlay, below, shared) = (Some(overlay), Some(Arc::clone(self)), Arc::clone(&self.shared));
        Self { out_adjacency, in_adjacency, vertex_bound, overlay, below, hook: None, shared }
    }

    /// This view with a fault, which [`Graph::check`] then returns.
    #[must_use]
    pub fn failed(&self, error: anden_base::Error) -> Self {
        let fault = FirstDamage::default();
        let _ = fault.set(error);
        Self { shared: Arc::new(ViewShared { fault, ..ViewShared::clone(&self.shared) }), ..self.clone() }
    }

    /// This view with `hook` as the hook of a prefetcher; `None` removes the hook.
    ///
    /// With a hook, the graph is larger than memory and bytes count. A single list is read and verified alone, and a
    /// degree reads no list. Otherwise the first read verifies a whole page.
    #[must_use]
    pub fn with_hook(&self, hook: Option<Arc<dyn Listener>>) -> Self {
        let is_heard = hook.is_some();
        let in_adjacency = self.in_adjacency.as_ref().map(|lists| lists.lazy(is_heard));
        Self { hook, out_adjacency: self.out_adjacency.lazy(is_heard), in_adjacency, ..self.clone() }
    }

    /// All stored targets of one direction in the base; `None` if the view has no lists of this direction.
    ///
    /// In an undirected graph, both directions share these bytes.
    pub fn stored_targets(&self, direction: Direction) -> Option<&FileBytes> {
        Some(self.lists_of(direction)?.base_lists()?.targets().bytes())
    }

    /// The stored weights, parallel to the targets, and the bytes of one weight. If entries have rows and no weights,
    /// the rows and the bytes of one row. `None` if entries have neither.
    pub fn stored_weights(&self, direction: Direction) -> Option<(FileBytes, usize)> {
        self.lists_of(direction)?.base_lists()?.weight_bytes()
    }

    /// Bytes of the stored lists of both directions, with weights or rows.
    pub fn stored_bytes(&self) -> u64 {
        let bytes = |direction| {
            let targets = self.stored_targets(direction).map_or(0, FileBytes::len);
            targets + self.stored_weights(direction).map_or(0, |(weights, _)| weights.len())
        };
        let in_bytes = if self.options().stores_in_lists() { bytes(Direction::In) } else { 0 };
        (bytes(Direction::Out) + in_bytes) as u64
    }

    /// Byte range of these vertices' lists in [`stored_targets`](Self::stored_targets). Changes by deltas and memory
    /// are elsewhere. Nothing is verified: in a damaged file, the range may be any within the bytes.
    pub fn stored_lists(&self, direction: Direction, vertices: Range<VertexId>) -> Range<usize> {
        let lists = self.lists_of(direction).and_then(AdjacencyView::base_lists);
        lists.map_or(0..0, |lists| lists.list_bytes(vertices))
    }

    /// As [`stored_lists`](Self::stored_lists) for one vertex; empty if its page was patched in memory already.
    pub fn stored_list(&self, direction: Direction, vertex: VertexId) -> Range<usize> {
        match self.lists_of(direction) {
            Some(lists) if !lists.is_rewritten(vertex) => {
                self.stored_lists(direction, vertex..vertex.saturating_add(1))
            }
            _ => 0..0,
        }
    }

    /// Sets whether the system must read only the requested bytes of the stored lists, and nothing around them. Applies
    /// to all views of this base.
    ///
    /// Cost: one check if the setting does not change.
    pub fn read_exactly(&self, is_exact: bool) {
        let directions = [Some(&self.out_adjacency), self.in_adjacency.as_ref()];
        directions
            .into_iter()
            .flatten()
            .filter_map(AdjacencyView::base_lists)
            .for_each(|lists| lists.read_exactly(is_exact));
    }

    /// Extends [`read_exactly`](Self::read_exactly) to the stored weights or rows, until it is turned off.
    pub fn read_weights_exactly(&self) {
        let directions = [Some(&self.out_adjacency), self.in_adjacency.as_ref()];
        directions
            .into_iter()
            .flatten()
            .filter_map(AdjacencyView::base_lists)
            .for_each(BaseLists::read_weights_exactly);
    }

    /// Last setting of [`read_exactly`](Self::read_exactly) for one direction.
    pub fn is_exact(&self, direction: Direction) -> bool {
        self.lists_of(direction).and_then(AdjacencyView::base_lists).is_some_and(BaseLists::is_exact)
    }

    /// Whether [`read_weights_exactly`](Self::read_weights_exactly) holds for one direction.
    pub fn are_weights_exact(&self, direction: Direction) -> bool {
        self.lists_of(direction).and_then(AdjacencyView::base_lists).is_some_and(BaseLists::are_weights_exact)
    }

    /// A walk that reports to the hook, if there is one and the range is longer than a page.
    fn heard_walk<'a>(&'a self, direction: Direction, vertices: &Range<VertexId>) -> Option<ReportedWalk<'a>> {
        let hook = self.hook.as_ref().filter(|_| vertices.len() > PAGE_VERTICES)?;
        Some(ReportedWalk {
            hook: &**hook,
            direction,
            lists: self.lists_of(direction).and_then(AdjacencyView::base_lists)?,
        })
    }

    pub(crate) fn out_adjacency(&self) -> &AdjacencyView {
        &self.out_adjacency
    }

    /// The lists of one direction, if they are stored apart.
    pub(crate) fn adjacency(&self, direction: Direction) -> Option<&AdjacencyView> {
        match direction {
            Direction::Out => Some(&self.out_adjacency),
            Direction::In => self.in_adjacency.as_ref().filter(|_| self.shared.options.stores_in_lists()),
        }
    }

    /// The lists of one direction; both directions of an undirected graph share them.
    #[inline(always)]
    fn lists_of(&self, direction: Direction) -> Option<&AdjacencyView> {
        match direction {
            Direction::Out => Some(&self.out_adjacency),
            Direction::In => self.in_adjacency.as_ref(),
        }
    }

    /// Least memory, in bytes, that deltas cost a reader of all lists: their added and removed arcs. Patched pages come
    /// on top, while there is memory for them.
    ///
    /// Cost: one look at the index of each delta.
    ///
    /// # Errors
    /// An index is damaged.
    pub fn least_patch_bytes(&self) -> Result<u64> {
        let directions = [Some(&self.out_adjacency), self.in_adjacency.as_ref()];
        let bytes = directions
            .into_iter()
            .flatten()
            .map(AdjacencyView::least_patch_bytes)
            .collect::<anden_base::Result<Vec<_>>>()?;
        Ok(bytes.into_iter().sum())
    }

    /// The dead ids below the bound, ascending.
    pub(crate) fn dead(&self) -> Vec<VertexId> {
        self.shared.dead.as_ref().map_or(Vec::new(), |dead| dead.iter_ones().map(|v| v as VertexId).collect())
    }

    /// Whether deltas lead from the base to the version, so that reading may take memory for patched pages.
    pub fn has_deltas(&self) -> bool {
        self.out_adjacency.has_deltas()
    }

    /// The number of the version that the view shows. The snapshot of that number, if it was not dropped, shows this
    /// version; version numbers are unique. `None` for a window, for a filtered part, or under changes in memory.
    pub fn version(&self) -> Option<u32> {
        self.shared.version.filter(|_| self.overlay.is_none())
    }

    /// Whether changes in memory lie over the version.
    pub fn is_overlaid(&self) -> bool {
        self.overlay.is_some()
    }

    /// The kind of graph.
    pub fn options(&self) -> &GraphOptions {
        &self.shared.options
    }

    /// The keys of the vertices, and perhaps of younger ones.
    pub fn dictionary(&self) -> &Dictionary {
        &self.shared.dictionary
    }

    /// Vertex properties; a window has those of its last snapshot.
    pub fn properties(&self) -> VertexProperties<'_> {
        let laid_over = self.overlay.as_ref().and_then(|overlay| overlay.properties());
        VertexProperties::new(&self.shared.properties, laid_over, self.vertex_bound)
    }

    /// Edge properties, by the rows that [`for_each_row`](Self::for_each_row) gives.
    pub fn edge_properties(&self) -> EdgeProperties<'_> {
        let laid_over = self.overlay.as_ref().and_then(|overlay| overlay.rows());
        EdgeProperties::new(&self.shared.edge_properties, laid_over)
    }

    /// Fixes the order of the entries in the lists of this vertex. A caller can then read rows first, weights next, and
    /// match them by position. Without this call, two reads may give the entries in different orders: the first reads
    /// of a changed page merge single lists on demand, and later reads use the patched page.
    ///
    /// Cost: patches the page of the vertex, if deltas change the page and it is not patched yet.
    pub fn fix_list_order(&self, vertex: VertexId) {
        [Some(&self.out_adjacency), self.in_adjacency.as_ref()]
            .into_iter()
            .flatten()
            .for_each(|lists| lists.fix_list_order(vertex));
    }

    /// As [`Graph::for_each_fragment`], with the row of each edge beside its other end. Does not call `body` if edges
    /// have no rows. Rows of a damaged page look empty, as its lists do.
    pub fn for_each_row(
        &self,
        direction: Direction,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId], &[u64]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let body = |targets: &[VertexId], rows: &[ArcRow]| body(targets, bytemuck::cast_slice(rows));
        match self.lists_of(direction) {
            Some(lists) => lists.for_each_fragment_with(vertex, body),
            None => ControlFlow::Continue(()),
        }
    }

    /// The parts of a vertex's list. In an undirected graph, both directions give equal results. Empty if the view has
    /// no in-lists.
    ///
    /// Cost: reads the list, and all changes of its page in every delta of the view.
    ///
    /// # Errors
    /// The page is damaged.
    ///
    /// # Panics
    /// If `vertex` is not below the bound.
    pub fn list_origin(&self, vertex: VertexId, direction: Direction) -> Result<ListOrigin> {
        let direction = if self.options().graph_kind == GraphKind::Undirected { Direction::Out } else { direction };
        self.adjacency(direction).map_or_else(|| Ok(ListOrigin::default()), |lists| lists.origin(vertex))
    }

    /// Looks up arcs of this version; not for windows. Cost: none before the first lookup.
    pub fn finder(&self) -> Finder<'_> {
        Finder::new(&self.out_adjacency, self.vertex_bound)
    }

    /// The vertex with this key; `None` if no live vertex has it.
    ///
    /// # Errors
    /// The dictionary is damaged.
    pub fn vertex(&self, key: &Key) -> Result<Option<VertexId>> {
        let vertex = self.vertex_dead_or_alive(key)?;
        Ok(vertex.and_then(|(vertex, is_live)| is_live.then_some(vertex)))
    }

    /// The id of `key`, and whether it is live: a removed vertex keeps its id.
    ///
    /// # Errors
    /// The dictionary is damaged.
    pub fn vertex_dead_or_alive(&self, key: &Key) -> Result<Option<(VertexId, bool)>> {
        if let Some(vertex) = self.overlay.as_ref().and_then(|overlay| overlay.vertex(key)) {
            return Ok(Some((vertex, self.is_live(vertex))));
        }
        let vertex = match (self.shared.options.keys, key) {
            // The dictionary may hold younger vertices, but dense keys need no dictionary.
            (KeyScheme::Dense, Key::Integer(key)) => Some(*key).filter(|&key| key < self.vertex_bound as u64),
            _ => self.shared.dictionary.vertex(key)?.map(u64::from),
        };
        let vertex = vertex.filter(|&vertex| vertex < self.vertex_bound as u64);
        Ok(vertex.map(|vertex| (vertex as VertexId, self.is_live(vertex as VertexId))))
    }

    /// The key of `vertex`, which may be dead.
    ///
    /// # Errors
    /// There is no such vertex, or the dictionary is damaged.
    pub fn key(&self, vertex: VertexId) -> Result<Key> {
        self.key_ref(vertex).map(Key::from)
    }

    /// As [`key`](Self::key), without a copy.
    ///
    /// # Errors
    /// There is no such vertex, or the dictionary is damaged.
    pub fn key_ref(&self, vertex: VertexId) -> Result<KeyRef<'_>> {
        if vertex as usize >= self.vertex_bound {
            return Err(Error::Input(format!("vertex {vertex} is not below {}", self.vertex_bound)));
        }
        if self.shared.options.keys == KeyScheme::Dense {
            return Ok(KeyRef::Integer(vertex.into()));
        }
        match self.overlay.as_ref().and_then(|overlay| overlay.key(vertex)) {
            Some(key) => Ok(key),
            None => self.shared.dictionary.key_ref(vertex),
        }
    }
}

/// A walk over lists that reports its progress to the prefetcher's hook.
struct ReportedWalk<'a> {
    hook: &'a dyn Listener,
    direction: Direction,
    lists: &'a BaseLists,
}

impl ReportedWalk<'_> {
    /// As [`Graph::for_each_page`], with reports before and after each step.
    fn for_each_page(
        &self,
        lists: &AdjacencyView,
        vertices: Range<VertexId>,
        mut body: impl FnMut(Page<'_, u32>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let body: &mut dyn FnMut(Page<'_, u32>) -> ControlFlow<()> = &mut body;
        let mut first = vertices.start;
        while first < vertices.end {
            let part = first..self.lists.end_of_step(first).min(vertices.end);
            self.hook.will_walk(self.direction, Parts::Targets, part.clone());
            lists.for_each_page(part.clone(), &mut *body)?;
            first = part.end;
            self.hook.has_walked(self.direction, Parts::Targets, part);
        }
        ControlFlow::Continue(())
    }
}

/// The lists of both directions; those of an undirected graph are shared.
fn both_adjacencies(
    parts: &ViewParts,
    steps: &[(Delta, ApplyDirection)],
    shown: ShownArcs,
    fault: &FirstDamage,
) -> (AdjacencyView, Option<AdjacencyView>) {
    let options = &parts.options;
    let lists = |direction| {
        let spec = ViewSpec {
            base: Arc::clone(&parts.base),
            direction,
            steps: steps.to_vec(),
            shown,
            vertex_bound: parts.vertex_bound,
            options: *options,
            is_short_lived: false,
            path: parts.path.clone(),
        };
        AdjacencyView::new(spec, fault)
    };
    let out_adjacency = lists(Direction::Out);
    let in_adjacency = match options.graph_kind {
        GraphKind::Undirected => Some(out_adjacency.clone()),
        GraphKind::Directed => options.in_edges.then(|| lists(Direction::In)),
    };
    (out_adjacency, in_adjacency)
}

/// The dead ids below the bound of a version.
fn dead_vertices(parts: &ViewParts) -> Result<Option<Bitmap>> {
    let corrupt = |what: String| Error::from(anden_base::Error::corrupt(&parts.path, 0, what));
    let mut has_changes = false;
    for (delta, _) in &parts.steps {
        has_changes |= !delta.died()?.is_empty() || !delta.returned()?.is_empty();
    }
    // A bitmap of all vertices is too much for a view of a few deltas, so it exists only if needed.
    if !has_changes && parts.base.dead().is_empty() {
        return Ok(None);
    }
    let mut dead = Bitmap::new(parts.vertex_bound.max(parts.base.vertex_bound()));
    let mut num_dead = 0;
    let mut set = |vertices: &[VertexId], dies: bool| {
        for &vertex in vertices {
            if vertex as usize >= dead.len() || dead.get(vertex as usize) == dies {
                return Err(corrupt(format!("the deltas do not agree whether {vertex} is a vertex")));
            }
            if dies {
                dead.set(vertex as usize)
            } else {
                dead.unset(vertex as usize)
            }
            num_dead = if dies { num_dead + 1 } else { num_dead - 1 };
        }
        Ok(())
    };
    set(parts.base.dead(), true)?;
    for (delta, sense) in &parts.steps {
        let is_forward = *sense == ApplyDirection::Forward;
        set(delta.died()?, is_forward)?;
        set(delta.returned()?, !is_forward)?;
    }
    if num_dead == 0 {
        return Ok(None);
    }
    let mut fitting = Bitmap::new(parts.vertex_bound);
    for vertex in dead.iter_ones() {
        if vertex >= parts.vertex_bound {
            return Err(corrupt(format!("{vertex} is a dead vertex of a graph with ids below {}", parts.vertex_bound)));
        }
        fitting.set(vertex);
    }
    Ok(Some(fitting))
}

fn num_loops(lists: &AdjacencyView, vertex_bound: usize) -> u64 {
    let mut num_loops = 0;
    for vertex in 0..vertex_bound as VertexId {
        let _ = lists.for_each_fragment(vertex, |targets| {
            // Each of several parallel loops counts.
            let first = targets.partition_point(|&target| target < vertex);
            num_loops += targets[first..].iter().take_while(|&&target| target == vertex).count() as u64;
            ControlFlow::Continue(())
        });
    }
    num_loops
}

impl WillNeed for SnapshotView {
    #[inline(always)]
    fn prefetch(&self, direction: Direction, stage: PrefetchStage, vertex: VertexId) {
        let Some(lists) = self.lists_of(direction) else { return };
        match stage {
            PrefetchStage::TableEntry => lists.prefetch(vertex),
            PrefetchStage::Place => lists.prefetch_place(vertex),
            PrefetchStage::RoughDegree => lists.prefetch_rough_degree(vertex),
            PrefetchStage::List(parts) => lists.prefetch_list(parts, vertex),
        }
    }

    #[inline]
    fn is_listening(&self) -> bool {
        self.hook.is_some()
    }

    fn will_need(&self, direction: Direction, parts: Parts, vertices: &[VertexId]) {
        if let Some(hook) = &self.hook {
            hook.will_need(direction, parts, vertices);
        }
    }

    fn will_need_runs(&self, direction: Direction, parts: Parts, runs: &[Range<VertexId>]) {
        if let Some(hook) = &self.hook {
            hook.will_need_runs(direction, parts, runs);
        }
    }

    fn will_walk(&self, direction: Direction, parts: Parts, vertices: Range<VertexId>) {
        if let Some(hook) = &self.hook {
            hook.will_walk(direction, parts, vertices);
        }
    }

    fn has_walked(&self, direction: Direction, parts: Parts, vertices: Range<VertexId>) {
        if let Some(hook) = &self.hook {
            hook.has_walked(direction, parts, vertices);
        }
    }

    fn forget_needs(&self) {
        if let Some(hook) = &self.hook {
            hook.forget();
        }
    }
}

impl Graph for SnapshotView {
    type Offset = u32;

    #[inline]
    fn vertex_bound(&self) -> usize {
        self.vertex_bound
    }

    fn num_vertices(&self) -> usize {
        self.overlay.as_ref().map_or(self.shared.num_vertices, |overlay| overlay.num_vertices())
    }

    fn num_edges(&self) -> u64 {
        self.overlay.as_ref().map_or(self.shared.num_edges, |overlay| overlay.num_edges())
    }

    fn num_arcs(&self) -> u64 {
        self.overlay.as_ref().map_or(self.shared.num_arcs, |overlay| overlay.num_arcs())
    }

    #[inline]
    fn is_live(&self, vertex: VertexId) -> bool {
        if vertex as usize >= self.vertex_bound {
            return false;
        }
        let laid_over = self.overlay.as_ref().and_then(|overlay| overlay.is_live(vertex));
        laid_over.unwrap_or_else(|| self.shared.dead.as_ref().is_none_or(|dead| !dead.get(vertex as usize)))
    }

    fn graph_kind(&self) -> GraphKind {
        self.shared.options.graph_kind
    }

    fn is_multigraph(&self) -> bool {
        self.shared.options.multigraph
    }

    fn has_lists(&self, direction: Direction) -> bool {
        self.lists_of(direction).is_some()
    }

    #[inline(always)]
    fn degree(&self, direction: Direction, vertex: VertexId) -> usize {
        self.lists_of(direction).map_or(0, |lists| lists.degree(vertex))
    }

    #[inline(always)]
    fn rough_degree(&self, direction: Direction, vertex: VertexId) -> usize {
        self.lists_of(direction).map_or(0, |lists| lists.rough_degree(vertex))
    }

    #[inline(always)]
    fn for_each_fragment(
        &self,
        direction: Direction,
        vertex: VertexId,
        body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self.lists_of(direction) {
            Some(lists) => lists.for_each_fragment(vertex, body),
            None => ControlFlow::Continue(()),
        }
    }

    #[inline]
    fn for_each_fragment_of(
        &self,
        direction: Direction,
        wanted: &VertexMask,
        body: impl FnMut(VertexId, &[VertexId]) -> ControlFlow<()>,
    ) {
        if let Some(lists) = self.lists_of(direction) {
            lists.for_each_fragment_of(wanted, body);
        }
    }

    #[inline(always)]
    fn dense_lists(&self, direction: Direction, wanted: &VertexMask) -> Option<(DensePage<'_, u32>, VertexMask)> {
        self.lists_of(direction)?.dense_lists(wanted)
    }

    #[inline]
    fn for_each_page(
        &self,
        direction: Direction,
        vertices: Range<VertexId>,
        mut body: impl FnMut(Page<'_, u32>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match (self.lists_of(direction), self.heard_walk(direction, &vertices)) {
            (Some(lists), Some(walk)) => walk.for_each_page(lists, vertices, body),
            (Some(lists), None) => lists.for_each_page(vertices, body),
            (None, _) => body(Page::Empty(vertices)),
        }
    }

    fn check(&self) -> anden_base::Result<()> {
        let fault = &self.shared.fault;
        match fault.get() {
            Some(error) => Err(error.clone()),
            // Kept as the fault: pages that this view has patched may hold the zeros for good.
            None => self.shared.files.check().map_err(|error| fault.get_or_init(|| error).clone()),
        }
    }
}

impl WeightedEdges for SnapshotView {
    fn weight_type(&self) -> Option<WeightType> {
        self.shared.options.weight_type
    }

    #[inline]
    fn for_each_weighted_fragment<W: Weight>(
        &self,
        direction: Direction,
        vertex: VertexId,
        body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self.lists_of(direction) {
            Some(lists) => lists.for_each_fragment_with(vertex, body),
            None => ControlFlow::Continue(()),
        }
    }

    #[inline(always)]
    fn weighted_list<W: Weight>(&self, direction: Direction, vertex: VertexId) -> Option<(&[VertexId], &[W])> {
        self.lists_of(direction)?.weighted_list(vertex)
    }
}

impl SingleFragment for SnapshotView {
    #[inline(always)]
    fn list(&self, direction: Direction, vertex: VertexId) -> Option<&[VertexId]> {
        self.lists_of(direction)?.single_list(vertex)
    }
}

#[cfg(test)]
mod tests;
