//! Read access to the graph at a version, or to what a range of versions added.

mod entries;
mod filtered;
mod filtered_changes;

use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::Arc;

use base::VertexId;
use base::bitmap::Bitmap;
use base::mapped::FileBytes;
use graph::{
    DensePage, Direction, Graph, InEdges, Page, Parts, SingleFragment, WantedLists, Weight, WeightType, WeightedEdges,
    WillNeed,
};

pub use self::entries::Entries;
pub use self::filtered::{EntryFilter, KeepEntries};
use crate::arc_columns::Row;
use crate::base_run::{BaseLists, BaseRun};
use crate::dictionary::Dictionary;
use crate::key::{Key, KeyRef};
use crate::level::Level;
use crate::listener::Listener;
use crate::options::{GraphOptions, KeyScheme};
use crate::overlay::Overlay;
use crate::property::{EdgeProperties, StoredProperties, StoredRows, VertexProperties};
use crate::side::{Fault, Recipe, Sense, Show, Side};
use crate::table::PAGE_VERTICES;
use crate::{Error, Result};

/// The graph at a version, or what a range of versions added; clones share everything.
///
/// Lists come from the files of the base run, which are mapped, and from the levels between it and the
/// version. A page of a thousand vertices is verified, and patched by the levels that change it, when the
/// first of its lists is read, and never again through this view. Lists of a damaged page look empty, and
/// [`Graph::check`] says what is wrong. The files stay readable while the view lives, whatever happens to
/// the database.
#[derive(Clone, Debug)]
pub struct View {
    out_side: Side,
    /// Of an undirected graph, the same as the out-side.
    in_side: Option<Side>,
    vertex_bound: usize,
    /// What is laid over the version.
    overlay: Option<Arc<dyn Overlay>>,
    /// Who is told what will be read next.
    listener: Option<Arc<dyn Listener>>,
    shared: Arc<ViewShared>,
}

/// What a version shows beside the lists.
#[derive(Clone, Debug)]
struct ViewShared {
    version: Option<u32>,
    options: GraphOptions,
    num_vertices: usize,
    num_edges: u64,
    num_arcs: u64,
    /// The ids below the bound that are no vertices, if there are any.
    dead: Option<Bitmap>,
    dictionary: Arc<Dictionary>,
    properties: Arc<StoredProperties>,
    edge_properties: Arc<StoredRows>,
    fault: Fault,
}

/// What a view is made of.
#[derive(Debug)]
pub(crate) struct ViewParts {
    /// The number of the version, where these are all of one.
    pub version: Option<u32>,
    pub base: Arc<BaseRun>,
    /// The levels that lead from the base run to the version, in the order in which they are applied.
    pub steps: Vec<(Level, Sense)>,
    pub options: GraphOptions,
    pub vertex_bound: usize,
    pub num_vertices: u64,
    pub num_edges: u64,
    pub num_arcs: u64,
    /// May know younger vertices too.
    pub dictionary: Arc<Dictionary>,
    pub properties: Arc<StoredProperties>,
    pub edge_properties: Arc<StoredRows>,
    /// Where the database is, for messages.
    pub path: PathBuf,
}

impl View {
    /// The graph at a version. Cost: 16 bytes for each page of vertices; no list is read.
    ///
    /// # Errors
    /// The lists of dead vertices are damaged, or do not fit together.
    pub(crate) fn open(parts: ViewParts) -> Result<Self> {
        let dead = dead_vertices(&parts)?;
        let num_dead = dead.as_ref().map_or(0, Bitmap::count_ones) as u64;
        if parts.num_vertices + num_dead != parts.vertex_bound as u64 {
            let what = format!("{} vertices and {num_dead} dead ones below {}", parts.num_vertices, parts.vertex_bound);
            return Err(base::Error::corrupt(&parts.path, 0, what).into());
        }
        let fault = Fault::default();
        let (out_side, in_side) = sides(&parts, &parts.steps, Show::Everything, &fault);
        Ok(Self::new(parts, out_side, in_side, dead, fault))
    }

    /// The edges that `levels` add, in the graph at the version of `parts`, the one behind the last level.
    ///
    /// Cost: all levels are read, and what they add is kept in memory.
    ///
    /// # Errors
    /// As [`open`](Self::open); a level is damaged.
    pub(crate) fn window(mut parts: ViewParts, levels: &[Level]) -> Result<Self> {
        let dead = dead_vertices(&parts)?;
        let fault = Fault::default();
        let steps: Vec<_> = levels.iter().map(|level| (level.clone(), Sense::Forward)).collect();
        let (out_side, in_side) = sides(&parts, &steps, Show::Additions, &fault);
        parts.version = None;
        parts.num_arcs = out_side.count_arcs();
        parts.num_edges = match parts.options.direction {
            Direction::Directed => parts.num_arcs,
            Direction::Undirected => (parts.num_arcs + num_loops(&out_side, parts.vertex_bound)) / 2,
        };
        let view = Self::new(parts, out_side, in_side, dead, fault);
        view.check()?;
        Ok(view)
    }

    fn new(parts: ViewParts, out_side: Side, in_side: Option<Side>, dead: Option<Bitmap>, fault: Fault) -> Self {
        let shared = ViewShared {
            version: parts.version,
            options: parts.options,
            num_vertices: parts.num_vertices as usize,
            num_edges: parts.num_edges,
            num_arcs: parts.num_arcs,
            dead,
            dictionary: parts.dictionary,
            properties: parts.properties,
            edge_properties: parts.edge_properties,
            fault,
        };
        let (vertex_bound, shared) = (parts.vertex_bound, Arc::new(shared));
        Self { out_side, in_side, vertex_bound, overlay: None, listener: None, shared }
    }

    /// The same version, with `overlay` over it, which the sides know already.
    pub(crate) fn with_overlay(&self, out_side: Side, in_side: Option<Side>, overlay: Arc<dyn Overlay>) -> Self {
        let vertex_bound = overlay.vertex_bound();
        let shared = Arc::clone(&self.shared);
        Self { out_side, in_side, vertex_bound, overlay: Some(overlay), listener: None, shared }
    }

    /// The same view with a fault, which [`Graph::check`] gives: the caller learns of it there.
    #[must_use]
    pub fn failed(&self, error: base::Error) -> Self {
        let fault = Fault::default();
        let _ = fault.set(error);
        Self { shared: Arc::new(ViewShared { fault, ..ViewShared::clone(&self.shared) }), ..self.clone() }
    }

    /// The same, and `listener` hears what will be read next; `None`: nobody does.
    ///
    /// Where somebody listens, bytes count: a list that is asked for alone is read and verified alone, and a degree
    /// reads no list. Otherwise that happens to a page at once.
    #[must_use]
    pub fn with_listener(&self, listener: Option<Arc<dyn Listener>>) -> Self {
        let is_heard = listener.is_some();
        let in_side = self.in_side.as_ref().map(|side| side.sparing(is_heard));
        Self { listener, out_side: self.out_side.sparing(is_heard), in_side, ..self.clone() }
    }

    /// All entries of the lists of a side as they are in the base run; `None` where the view has none of them.
    ///
    /// Of an undirected graph, both sides are the same bytes.
    pub fn stored_targets(&self, side: graph::Side) -> Option<&FileBytes> {
        Some(self.lists_of(side)?.base_lists()?.targets().bytes())
    }

    /// The stored weights, parallel to the targets, and the bytes of a weight. Where entries have rows and no weights,
    /// the rows and the bytes of one row; `None` where entries have neither.
    pub fn stored_weights(&self, side: graph::Side) -> Option<(FileBytes, usize)> {
        self.lists_of(side)?.base_lists()?.weight_bytes()
    }

    /// The bytes of the stored lists of both sides, and of what stands beside their entries.
    pub fn stored_bytes(&self) -> u64 {
        let bytes = |side| {
            let targets = self.stored_targets(side).map_or(0, FileBytes::len);
            targets + self.stored_weights(side).map_or(0, |(weights, _)| weights.len())
        };
        let in_bytes = if self.options().stores_in_lists() { bytes(graph::Side::In) } else { 0 };
        (bytes(graph::Side::Out) + in_bytes) as u64
    }

    /// Where the lists of these vertices are in [`stored_targets`](Self::stored_targets). What levels and memory change
    /// in them is elsewhere. Nothing is verified: where files are damaged, it may be any place within the bytes.
    pub fn stored_lists(&self, side: graph::Side, vertices: Range<VertexId>) -> Range<usize> {
        let lists = self.lists_of(side).and_then(Side::base_lists);
        lists.map_or(0..0, |lists| lists.list_bytes(vertices))
    }

    /// The same of one vertex; nothing where its page was written anew in memory already.
    pub fn stored_list(&self, side: graph::Side, vertex: VertexId) -> Range<usize> {
        match self.lists_of(side) {
            Some(lists) if !lists.is_rewritten(vertex) => self.stored_lists(side, vertex..vertex.saturating_add(1)),
            _ => 0..0,
        }
    }

    /// Tells the system whether all that is read of the stored lists is asked for, through this and all other views:
    /// then it reads nothing around a place by itself.
    ///
    /// Cost: where that is so already, a look.
    pub fn read_exactly(&self, is_exact: bool) {
        let sides = [Some(&self.out_side), self.in_side.as_ref()];
        sides.into_iter().flatten().filter_map(Side::base_lists).for_each(|lists| lists.read_exactly(is_exact));
    }

    /// Tells the system that what is stored beside the entries is asked for too, until the lists are not
    /// [read exactly](Self::read_exactly) any more.
    pub fn read_weights_exactly(&self) {
        let sides = [Some(&self.out_side), self.in_side.as_ref()];
        sides.into_iter().flatten().filter_map(Side::base_lists).for_each(BaseLists::read_weights_exactly);
    }

    /// What was [said](Self::read_exactly) last of the lists of a side.
    pub fn is_exact(&self, side: graph::Side) -> bool {
        self.lists_of(side).and_then(Side::base_lists).is_some_and(BaseLists::is_exact)
    }

    /// Whether what is stored beside the entries of a side is [read exactly](Self::read_weights_exactly).
    pub fn are_weights_exact(&self, side: graph::Side) -> bool {
        self.lists_of(side).and_then(Side::base_lists).is_some_and(BaseLists::are_weights_exact)
    }

    /// Whoever walks over more than a page of vertices tells the listener how far it has come.
    fn heard_walk<'a>(&'a self, side: graph::Side, vertices: &Range<VertexId>) -> Option<Walk<'a>> {
        let listener = self.listener.as_ref().filter(|_| vertices.len() > PAGE_VERTICES)?;
        Some(Walk { listener: &**listener, side, lists: self.lists_of(side).and_then(Side::base_lists)? })
    }

    pub(crate) fn out_side(&self) -> &Side {
        &self.out_side
    }

    /// The lists of a side, where they are stored on their own.
    pub(crate) fn side(&self, side: graph::Side) -> Option<&Side> {
        match side {
            graph::Side::Out => Some(&self.out_side),
            graph::Side::In => self.in_side.as_ref().filter(|_| self.shared.options.stores_in_lists()),
        }
    }

    /// The lists that are shown as those of a side; of an undirected graph, both are one.
    #[inline(always)]
    fn lists_of(&self, side: graph::Side) -> Option<&Side> {
        match side {
            graph::Side::Out => Some(&self.out_side),
            graph::Side::In => self.in_side.as_ref(),
        }
    }

    /// The bytes that a reader of all lists keeps in memory at least because levels change them: what they add and
    /// remove. Pages that are written anew, while there is memory for them, come on top.
    ///
    /// Cost: a look at the indexes of all levels.
    ///
    /// # Errors
    /// An index is damaged.
    pub fn least_patch_bytes(&self) -> Result<u64> {
        let sides = [Some(&self.out_side), self.in_side.as_ref()];
        let bytes = sides.into_iter().flatten().map(Side::least_patch_bytes).collect::<base::Result<Vec<_>>>()?;
        Ok(bytes.into_iter().sum())
    }

    /// The ids below the bound that are no vertices, ascending.
    pub(crate) fn dead(&self) -> Vec<VertexId> {
        self.shared.dead.as_ref().map_or(Vec::new(), |dead| dead.iter_ones().map(|v| v as VertexId).collect())
    }

    /// Whether levels lead from the base run to the version: reading it may take memory for pages that they change.
    pub fn has_levels(&self) -> bool {
        self.out_side.has_levels()
    }

    /// The number of the version that the view shows, as the snapshot of that number does, if that was not dropped. No two
    /// versions have one number. `None`: it shows something else, a window or a part, or changes lie over the version.
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

    /// The properties of the vertices; those of a window are those of its last snapshot.
    pub fn properties(&self) -> VertexProperties<'_> {
        let laid_over = self.overlay.as_ref().and_then(|overlay| overlay.properties());
        VertexProperties::new(&self.shared.properties, laid_over, self.vertex_bound)
    }

    /// The properties of the edges, by the rows that [`for_each_out_row`](Self::for_each_out_row) names.
    pub fn edge_properties(&self) -> EdgeProperties<'_> {
        let laid_over = self.overlay.as_ref().and_then(|overlay| overlay.rows());
        EdgeProperties::new(&self.shared.edge_properties, laid_over)
    }

    /// Fixes the order of the entries in the lists of this vertex, so that a caller can read rows first, weights next,
    /// and match them by position. Without this call, two reads may give the entries in different orders: the first
    /// reads of a changed page merge single lists on demand, and later reads use the patched page.
    ///
    /// Cost: patches the page of the vertex, if deltas change the page and it is not patched yet.
    pub fn fix_list_order(&self, vertex: VertexId) {
        [Some(&self.out_side), self.in_side.as_ref()]
            .into_iter()
            .flatten()
            .for_each(|side| side.fix_list_order(vertex));
    }

    /// As [`Graph::for_each_out_fragment`], with the row of each edge beside it. Calls nothing where edges have none. Rows
    /// of a damaged page look empty, as its lists do.
    pub fn for_each_out_row(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId], &[u64]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let body = |targets: &[VertexId], rows: &[Row]| body(targets, bytemuck::cast_slice(rows));
        self.out_side.for_each_fragment_with(vertex, body)
    }

    /// The same for in-lists.
    pub fn for_each_in_row(
        &self,
        vertex: VertexId,
        mut body: impl FnMut(&[VertexId], &[u64]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let body = |targets: &[VertexId], rows: &[Row]| body(targets, bytemuck::cast_slice(rows));
        self.in_side.as_ref().map_or(ControlFlow::Continue(()), |side| side.for_each_fragment_with(vertex, body))
    }

    /// The vertex that the user calls `key`; `None` where there is none.
    ///
    /// # Errors
    /// The dictionary is damaged.
    pub fn vertex(&self, key: &Key) -> Result<Option<VertexId>> {
        let vertex = self.vertex_dead_or_alive(key)?;
        Ok(vertex.and_then(|(vertex, is_live)| is_live.then_some(vertex)))
    }

    /// The id that belongs to `key`, and whether it is a vertex: a key that was removed keeps its id.
    ///
    /// # Errors
    /// The dictionary is damaged.
    pub fn vertex_dead_or_alive(&self, key: &Key) -> Result<Option<(VertexId, bool)>> {
        if let Some(vertex) = self.overlay.as_ref().and_then(|overlay| overlay.vertex(key)) {
            return Ok(Some((vertex, self.is_live(vertex))));
        }
        let vertex = match (self.shared.options.keys, key) {
            // The dictionary may know younger vertices, but keys that are ids need none.
            (KeyScheme::Dense, Key::Integer(key)) => Some(*key).filter(|&key| key < self.vertex_bound as u64),
            _ => self.shared.dictionary.vertex(key)?.map(u64::from),
        };
        let vertex = vertex.filter(|&vertex| vertex < self.vertex_bound as u64);
        Ok(vertex.map(|vertex| (vertex as VertexId, self.is_live(vertex as VertexId))))
    }

    /// What the user calls `vertex`, or called it before it was removed.
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

/// A walk over the lists of a side of which somebody is told.
struct Walk<'a> {
    listener: &'a dyn Listener,
    side: graph::Side,
    lists: &'a BaseLists,
}

impl Walk<'_> {
    /// As [`Graph::for_each_out_page`], with word of where it is in between.
    fn for_each_page(
        &self,
        side: &Side,
        vertices: Range<VertexId>,
        mut body: impl FnMut(Page<'_, u32>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let body: &mut dyn FnMut(Page<'_, u32>) -> ControlFlow<()> = &mut body;
        let mut first = vertices.start;
        while first < vertices.end {
            let part = first..self.lists.end_of_step(first).min(vertices.end);
            self.listener.will_walk(self.side, Parts::Targets, part.clone());
            side.for_each_page(part.clone(), &mut *body)?;
            first = part.end;
            self.listener.has_walked(self.side, Parts::Targets, part);
        }
        ControlFlow::Continue(())
    }
}

/// The two sides of a view; those of an undirected graph are one.
fn sides(parts: &ViewParts, steps: &[(Level, Sense)], show: Show, fault: &Fault) -> (Side, Option<Side>) {
    let options = &parts.options;
    let side = |side| {
        let recipe = Recipe {
            base: Arc::clone(&parts.base),
            side,
            steps: steps.to_vec(),
            show,
            vertex_bound: parts.vertex_bound,
            options: *options,
            is_brief: false,
            path: parts.path.clone(),
        };
        Side::new(recipe, fault)
    };
    let out_side = side(graph::Side::Out);
    let in_side = match options.direction {
        Direction::Undirected => Some(out_side.clone()),
        Direction::Directed => options.in_edges.then(|| side(graph::Side::In)),
    };
    (out_side, in_side)
}

/// The ids below the bound of a version that are no vertices.
fn dead_vertices(parts: &ViewParts) -> Result<Option<Bitmap>> {
    let corrupt = |what: String| Error::from(base::Error::corrupt(&parts.path, 0, what));
    let mut has_changes = false;
    for (level, _) in &parts.steps {
        has_changes |= !level.died()?.is_empty() || !level.returned()?.is_empty();
    }
    // A bit a vertex is much for a view of a few levels.
    if !has_changes && parts.base.dead().is_empty() {
        return Ok(None);
    }
    let mut dead = Bitmap::new(parts.vertex_bound.max(parts.base.vertex_bound()));
    let mut num_dead = 0;
    let mut set = |vertices: &[VertexId], dies: bool| {
        for &vertex in vertices {
            if vertex as usize >= dead.len() || dead.get(vertex as usize) == dies {
                return Err(corrupt(format!("the levels do not agree whether {vertex} is a vertex")));
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
    for (level, sense) in &parts.steps {
        let is_forward = *sense == Sense::Forward;
        set(level.died()?, is_forward)?;
        set(level.returned()?, !is_forward)?;
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

fn num_loops(side: &Side, vertex_bound: usize) -> u64 {
    let mut num_loops = 0;
    for vertex in 0..vertex_bound as VertexId {
        let _ = side.for_each_fragment(vertex, |targets| {
            // Of parallel loops, each counts.
            let first = targets.partition_point(|&target| target < vertex);
            num_loops += targets[first..].iter().take_while(|&&target| target == vertex).count() as u64;
            ControlFlow::Continue(())
        });
    }
    num_loops
}

impl WillNeed for View {
    #[inline(always)]
    fn prefetch(&self, side: graph::Side, vertex: VertexId) {
        if let Some(lists) = self.lists_of(side) {
            lists.prefetch(vertex);
        }
    }

    #[inline(always)]
    fn prefetch_place(&self, side: graph::Side, vertex: VertexId) {
        if let Some(lists) = self.lists_of(side) {
            lists.prefetch_place(vertex);
        }
    }

    #[inline(always)]
    fn prefetch_rough_degree(&self, side: graph::Side, vertex: VertexId) {
        if let Some(lists) = self.lists_of(side) {
            lists.prefetch_rough_degree(vertex);
        }
    }

    #[inline(always)]
    fn prefetch_list(&self, side: graph::Side, parts: Parts, vertex: VertexId) {
        if let Some(lists) = self.lists_of(side) {
            lists.prefetch_list(parts, vertex);
        }
    }

    #[inline]
    fn is_listening(&self) -> bool {
        self.listener.is_some()
    }

    fn will_need(&self, side: graph::Side, parts: Parts, vertices: &[VertexId]) {
        if let Some(listener) = &self.listener {
            listener.will_need(side, parts, vertices);
        }
    }

    fn will_need_runs(&self, side: graph::Side, parts: Parts, runs: &[Range<VertexId>]) {
        if let Some(listener) = &self.listener {
            listener.will_need_runs(side, parts, runs);
        }
    }

    fn will_walk(&self, side: graph::Side, parts: Parts, vertices: Range<VertexId>) {
        if let Some(listener) = &self.listener {
            listener.will_walk(side, parts, vertices);
        }
    }

    fn has_walked(&self, side: graph::Side, parts: Parts, vertices: Range<VertexId>) {
        if let Some(listener) = &self.listener {
            listener.has_walked(side, parts, vertices);
        }
    }

    fn forget_needs(&self) {
        if let Some(listener) = &self.listener {
            listener.forget();
        }
    }
}

impl Graph for View {
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

    fn direction(&self) -> Direction {
        self.shared.options.direction
    }

    fn is_multigraph(&self) -> bool {
        self.shared.options.multigraph
    }

    #[inline(always)]
    fn out_degree(&self, vertex: VertexId) -> usize {
        self.out_side.degree(vertex)
    }

    #[inline(always)]
    fn for_each_out_fragment(
        &self,
        vertex: VertexId,
        body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.out_side.for_each_fragment(vertex, body)
    }

    #[inline]
    fn for_each_out_fragment_of(
        &self,
        wanted: &WantedLists,
        body: impl FnMut(VertexId, &[VertexId]) -> ControlFlow<()>,
    ) {
        self.out_side.for_each_fragment_of(wanted, body);
    }

    #[inline(always)]
    fn dense_out_lists(&self, wanted: &WantedLists) -> Option<(DensePage<'_, u32>, WantedLists)> {
        self.out_side.dense_lists(wanted)
    }

    #[inline(always)]
    fn rough_out_degree(&self, vertex: VertexId) -> usize {
        self.out_side.rough_degree(vertex)
    }

    #[inline]
    fn for_each_out_page(
        &self,
        vertices: Range<VertexId>,
        body: impl FnMut(Page<'_, u32>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self.heard_walk(graph::Side::Out, &vertices) {
            Some(walk) => walk.for_each_page(&self.out_side, vertices, body),
            None => self.out_side.for_each_page(vertices, body),
        }
    }

    fn check(&self) -> base::Result<()> {
        match self.shared.fault.get() {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }
}

impl InEdges for View {
    fn has_in_edges(&self) -> bool {
        self.in_side.is_some()
    }

    #[inline(always)]
    fn in_degree(&self, vertex: VertexId) -> usize {
        self.in_side.as_ref().map_or(0, |side| side.degree(vertex))
    }

    #[inline(always)]
    fn rough_in_degree(&self, vertex: VertexId) -> usize {
        self.in_side.as_ref().map_or(0, |side| side.rough_degree(vertex))
    }

    #[inline(always)]
    fn for_each_in_fragment(
        &self,
        vertex: VertexId,
        body: impl FnMut(&[VertexId]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match &self.in_side {
            Some(side) => side.for_each_fragment(vertex, body),
            None => ControlFlow::Continue(()),
        }
    }

    #[inline]
    fn for_each_in_fragment_of(
        &self,
        wanted: &WantedLists,
        body: impl FnMut(VertexId, &[VertexId]) -> ControlFlow<()>,
    ) {
        if let Some(side) = &self.in_side {
            side.for_each_fragment_of(wanted, body);
        }
    }

    #[inline(always)]
    fn dense_in_lists(&self, wanted: &WantedLists) -> Option<(DensePage<'_, u32>, WantedLists)> {
        self.in_side.as_ref()?.dense_lists(wanted)
    }

    #[inline]
    fn for_each_in_page(
        &self,
        vertices: Range<VertexId>,
        mut body: impl FnMut(Page<'_, u32>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match (&self.in_side, self.heard_walk(graph::Side::In, &vertices)) {
            (Some(side), Some(walk)) => walk.for_each_page(side, vertices, body),
            (Some(side), None) => side.for_each_page(vertices, body),
            (None, _) => body(Page::Empty(vertices)),
        }
    }
}

impl WeightedEdges for View {
    fn weight_type(&self) -> Option<WeightType> {
        self.shared.options.weight_type
    }

    #[inline]
    fn for_each_weighted_out_fragment<W: Weight>(
        &self,
        vertex: VertexId,
        body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.out_side.for_each_fragment_with(vertex, body)
    }

    #[inline(always)]
    fn weighted_out_list<W: Weight>(&self, vertex: VertexId) -> Option<(&[VertexId], &[W])> {
        self.out_side.weighted_list(vertex)
    }

    #[inline]
    fn for_each_weighted_in_fragment<W: Weight>(
        &self,
        vertex: VertexId,
        body: impl FnMut(&[VertexId], &[W]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match &self.in_side {
            Some(side) => side.for_each_fragment_with(vertex, body),
            None => ControlFlow::Continue(()),
        }
    }
}

impl SingleFragment for View {
    #[inline(always)]
    fn out_list(&self, vertex: VertexId) -> Option<&[VertexId]> {
        self.out_side.single_list(vertex)
    }
}

#[cfg(test)]
mod tests;
