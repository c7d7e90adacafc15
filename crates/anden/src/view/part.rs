//! The result of filtering a view: laid out as a base if all of it is read, tested edge by edge before.

use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;

use anden_base::VertexId;
use anden_base::bitmap::Bitmap;
use anden_graph::{Graph, WillNeed};
use anden_snapshots::{Entries, EntryFilter, KeepEntries, RowSet, SnapshotView};

use super::View;
use crate::filter::{Filter, FilteredPart};
use crate::{Error, Key, Neighbors, Result};

/// Queries may test this many entries before a layout, however small the view is.
const LEAST_SPENT: u64 = 1 << 16;

/// The memtable is filtered alone if it changes at most this many lists, or one in [`TOUCHED_SHARE`] of all.
const LEAST_TOUCHED: usize = 1 << 10;
const TOUCHED_SHARE: usize = 8;

impl View {
    /// The part of this view in which the predicates are true. Without a predicate, all edges or vertices stay.
    /// Kernels, queries and exports work on the result as on any view.
    ///
    /// Vertex ids and the lengths of results do not change. A vertex that fails counts as removed, with its edges. An
    /// edge that fails removes no vertex. As in SQL, null does not pass.
    ///
    /// A predicate is an SQL expression over property names. It may use comparisons, `AND`, `OR`, `NOT`, `IN`,
    /// `BETWEEN`, `LIKE`, `ILIKE`, `IS NULL`, `+ - * / %` and `& | ^`. Numbers of different types compare as
    /// floating-point numbers if neither type holds both values. As in DuckDB and PostgreSQL, -0 equals 0, and NaN
    /// equals NaN and is greater than every number. Text beside a date or timestamp is parsed as one.
    /// `weight` is the weight of a graph with weights. Names that are not SQL identifiers stand in double quotes.
    ///
    /// Cost: the call reads nothing, unless a weight was [chosen](Self::with_weight). Then the part needs a copy of the
    /// weights, and the call lays it out. A query about single vertices or edges tests the edges that it meets. The
    /// first kernel, export or count lays the part out: it reads all lists and the columns of the predicates, and keeps
    /// the remaining graph in memory. The graph takes 4 bytes for each arc and direction, 4 or 8 more for a weight, and
    /// 8 for properties; building it takes about three times as much. A query lays the part out too, once earlier
    /// queries tested about as many edges as the view has. Afterwards the part is as fast as a loaded graph. The
    /// database [caches](crate::Session::with_cache) recent parts of snapshots.
    ///
    /// A part larger than the memory budget is written to temporary files (in `TMPDIR`), and is read like a graph
    /// larger than memory. The files are removed with the last view of the part.
    ///
    /// ```no_run
    /// let db = anden::Database::open_read_only("payments.anden")?;
    /// let large = db.view()?.filter(Some("amount > 10000 AND kind = 'wire'"), None)?;
    /// let components = large.wcc()?;
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidInput`] with the position: the predicate does not parse, names an unknown property, or compares
    /// incompatible types. [`Error::InvalidInput`]: a calculation overflows or divides by zero. To report such errors
    /// here, a part with calculations is laid out at once.
    ///
    /// Methods that read the part fail on damage, and if a part beyond the budget cannot be written to files. Methods
    /// that return no error, such as [`num_edges`](Self::num_edges), then show the whole graph, and
    /// [`check`](Graph::check) of [`graph`](Self::graph) returns the reason.
    pub fn filter(&self, edges: Option<&str>, vertices: Option<&str>) -> Result<Self> {
        let filter = Filter::new(self.stored(), edges, vertices)?;
        let can_fail = filter.can_fail();
        let part = self.with_part(filter, Some((edges, vertices)));
        // Report a failing calculation here, not at a later read.
        if can_fail {
            part.all_lists()?;
        }
        // Weights match arcs by position, so the part needs a copy of its own.
        self.chosen().map_or(Ok(part.clone()), |chosen| part.with_weight(chosen.name()))
    }
}

impl View {
    /// The induced subgraph of these vertices: the vertices, and all edges between them. A part as of
    /// [`filter`](Self::filter), which is not cached.
    ///
    /// ```
    /// use anden::{Database, Options, Update};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// db.apply(&[Update::add_edge(1, 2), Update::add_edge(2, 3), Update::add_edge(3, 4)])?;
    /// let part = db.view()?.induced(&[2.into(), 3.into(), 4.into()])?;
    /// assert_eq!((part.num_vertices(), part.num_edges()), (3, 2));
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`]: a vertex does not exist. Damage met on the way. As [`filter`](Self::filter).
    pub fn induced(&self, vertices: &[Key]) -> Result<Self> {
        let mut set = Bitmap::new(self.vertex_bound());
        for vertex in vertices {
            set.set(self.vertex(vertex.clone())? as usize);
        }
        let part = self.with_part(Filter::of_set(set), None);
        self.chosen().map_or(Ok(part.clone()), |chosen| part.with_weight(chosen.name()))
    }

    /// The ego network of a vertex: the [induced](Self::induced) subgraph of the vertices within `num_hops` steps along
    /// edges of a direction, the vertex included.
    ///
    /// # Errors
    /// As [`induced`](Self::induced); the direction needs in-edges and the graph has none.
    pub fn ego(&self, vertex: impl Into<Key>, num_hops: u32, direction: Neighbors) -> Result<Self> {
        let vertex = vertex.into();
        let mut vertices = self.khop_along(vertex.clone(), num_hops, direction)?;
        vertices.push(vertex);
        self.induced(&vertices)
    }
}

impl View {
    /// This view without isolated vertices, which have no edge here: they count as removed, as in a
    /// [window](crate::Database::window). So kernels on edges that a filter selects count only the vertices with such
    /// edges. It is not cached.
    ///
    /// Cost: lays a part out and reads its lists once; a bit for each vertex.
    ///
    /// ```
    /// use anden::{Changes, Database, Options};
    ///
    /// let db = Database::in_memory(Options { edge_properties: true, ..Options::default() })?;
    /// db.append(&Changes::default().add_edge(1, 2).with("amount", 7).add_edge(2, 3).with("amount", 90))?;
    /// let large = db.view()?.filter(Some("amount > 50"), None)?;
    /// assert_eq!((large.num_vertices(), large.without_isolated()?.num_vertices()), (3, 2));
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`filter`](Self::filter); damage met on the way; cancellation.
    pub fn without_isolated(&self) -> Result<Self> {
        let lists = self.all_lists()?;
        let context = self.context();
        Ok(self.with_fewer_vertices(lists.without_isolated(context.pool, context.progress)?))
    }
}

impl FilteredPart {
    /// Lays the part out once single queries cost about as much as the layout. So queries take at most about twice the
    /// time of the better choice. `None` before that, or if the layout fails.
    pub(crate) fn lay_out_if_worth_it(&self, view: &View) -> Option<&SnapshotView> {
        if self.spent.load(Ordering::Relaxed) < view.stored().num_arcs().max(LEAST_SPENT) {
            return None;
        }
        let lists = self.lay_out(view).ok();
        if lists.is_none() {
            // A failed layout reads everything, so the next attempt waits for as many tests again.
            self.spent.store(0, Ordering::Relaxed);
        }
        lists
    }

    /// The lists of the part `view`, laid out at the first call.
    pub(crate) fn lay_out(&self, view: &View) -> Result<&SnapshotView> {
        if let Some(lists) = self.laid_out() {
            return Ok(lists);
        }
        let _alone = self.laying_out.lock();
        // Another thread may have finished while this one waited for the lock.
        if let Some(lists) = self.laid_out() {
            return Ok(lists);
        }
        let lists = match view.cache().find_part() {
            Some(lists) => lists,
            None => {
                let lists = self.left_of(view)?;
                view.cache().keep_part(&lists);
                lists
            }
        };
        Ok(self.laid_out.get_or_init(|| lists))
    }

    /// Like [`lay_out`](Self::lay_out), for callers that check for errors later ([`Graph::check`]). After an error, the
    /// lists are those of the whole view, until a call of [`lay_out`](Self::lay_out) succeeds.
    pub(crate) fn lay_out_or_fail(&self, view: &View) -> &SnapshotView {
        // A failed layout reads everything. Callers that return errors try again, and this one does not.
        if let Some(lists) = self.laid_out().or_else(|| self.failed.get()) {
            return lists;
        }
        self.lay_out(view).unwrap_or_else(|error| {
            let fault = |error: Error| {
                anden_base::Error::io("lay out a part", Path::new("(filtered)"), io::Error::other(error))
            };
            self.failed.get_or_init(|| view.stored().failed(fault(error)))
        })
    }

    /// The number of vertices; needs no layout.
    pub(crate) fn num_vertices(&self, view: &View) -> usize {
        if let Some(lists) = self.laid_out() {
            return lists.num_vertices();
        }
        // Without a predicate over vertices, all vertices stay.
        if self.filters().all(|filter| filter.vertices.is_none()) {
            return view.stored().num_vertices();
        }
        // On a damaged value, the layout reports the error.
        let Ok(hidden) = self.hidden(view, view.stored()) else { return self.lay_out_or_fail(view).num_vertices() };
        let is_shown = |&vertex: &usize| !hidden.get(vertex) && view.stored().is_live(vertex as VertexId);
        (0..view.vertex_bound()).filter(is_shown).count()
    }

    /// The numbers of edges and of arcs.
    pub(crate) fn num_edges(&self, view: &View) -> (u64, u64) {
        let lists = self.lay_out_or_fail(view);
        (lists.num_edges(), lists.num_arcs())
    }

    /// The ids below the bound that are no vertex of the part; needs no layout.
    pub(crate) fn absent(&self, view: &View) -> Result<Bitmap> {
        let (lists, mut absent) = match self.laid_out() {
            Some(lists) => (lists, Bitmap::new(view.vertex_bound())),
            None => (view.stored(), self.hidden(view, view.stored())?),
        };
        // The stored lists may be those of an earlier part, which lack the vertices that it excludes.
        (0..view.vertex_bound()).filter(|&id| !lists.is_live(id as VertexId)).for_each(|id| absent.set(id));
        Ok(absent)
    }

    /// The ids that a predicate over vertices excludes in these lists: those of the view, or of the snapshot under it.
    fn hidden(&self, view: &View, lists: &SnapshotView) -> Result<Bitmap> {
        let mut hidden = Bitmap::new(lists.vertex_bound());
        for vertices in self.filters().filter_map(|filter| filter.vertices.as_ref()) {
            vertices.hide(view.stored().properties().schema(), lists, &mut hidden)?;
        }
        Ok(hidden)
    }

    /// Lays out the filtered view.
    fn left_of(&self, view: &View) -> Result<SnapshotView> {
        let stored = view.stored();
        // A layout may take the whole budget.
        view.cache().yield_budget(view.session());
        // A layout reads all lists in stored order, so the system may read ahead.
        if stored.is_listening() {
            stored.read_exactly(false);
        }
        let left = match self.over_snapshot(view) {
            Ok(None) => self.left_of_lists(view, stored),
            Ok(Some(left)) => Ok(left),
            Err(error) => Err(error),
        };
        left.map_err(|error| view.session().in_all(error, || view.beside_stored()))
    }

    /// Filters the memtable alone, over the part of the snapshot under it, if that is faster: it changes few lists. The
    /// part of the snapshot is cached for the next version.
    fn over_snapshot(&self, view: &View) -> Result<Option<SnapshotView>> {
        let stored = view.stored();
        let cache = view.cache_below();
        let Some(below) = stored.below().filter(|_| cache.is_named()) else { return Ok(None) };
        let most = LEAST_TOUCHED.max(view.vertex_bound() / TOUCHED_SHARE);
        // With a budget, the part of the snapshot may be too large to be kept.
        if view.session().memory().is_some() || stored.num_touched() > most {
            return Ok(None);
        }
        let part = match cache.find_part() {
            Some(part) => part,
            None => {
                let part = self.left_of_lists(view, below)?;
                cache.keep_part(&part);
                part
            }
        };
        let hidden = self.hidden_over(view, below, &part)?;
        let context = view.session().context(view.beside_stored());
        let keeps = |entries: &Entries| self.keeps(stored, entries);
        let filter = EntryFilter { rows: None, keeps: Some(&keeps as &KeepEntries<'_, Error>) };
        stored.filtered_over(&part, hidden.as_ref(), &filter, most, context.pool, context.progress)
    }

    /// The ids that a predicate over vertices excludes in a view over the snapshot `below`, whose part is `part`;
    /// `None` without such predicates.
    ///
    /// Cost: a bit test for each vertex; evaluates the predicates for new vertices and changed values only.
    fn hidden_over(&self, view: &View, below: &SnapshotView, part: &SnapshotView) -> Result<Option<Bitmap>> {
        let filters: Vec<_> = self.filters().filter_map(|filter| filter.vertices.as_ref()).collect();
        if filters.is_empty() {
            return Ok(None);
        }
        let (stored, bound) = (view.stored(), view.vertex_bound() as VertexId);
        let places = filters.iter().flat_map(|filter| filter.columns());
        let mut open: Vec<_> = places.flat_map(|&place| stored.properties().changed(place)).collect();
        open.retain(|&vertex| vertex < bound);
        let mut hidden = Bitmap::new(bound as usize);
        for vertex in (0..bound).filter(|&vertex| !part.is_live(vertex)) {
            match below.is_live(vertex) {
                true => hidden.set(vertex as usize),
                // The snapshot does not have the vertex, so its part says nothing about it.
                false if stored.is_live(vertex) => open.push(vertex),
                false => {}
            }
        }
        open.sort_unstable();
        open.dedup();
        // The predicates over these vertices are evaluated below.
        open.iter().for_each(|&vertex| hidden.unset(vertex as usize));
        for filter in filters {
            let passing = filter.passing(stored, &open)?;
            let excluded = open.iter().zip(passing).filter(|(_, passes)| !passes);
            excluded.for_each(|(&vertex, _)| hidden.set(vertex as usize));
        }
        Ok(Some(hidden))
    }

    /// Filters these lists: those of the view, or of the snapshot under the memtable.
    fn left_of_lists(&self, view: &View, lists: &SnapshotView) -> Result<SnapshotView> {
        let context = view.session().context(view.beside_stored());
        context.progress.stage("filter", None);
        let hidden = self.hidden(view, lists)?;
        let edges = || self.filters().filter_map(|filter| filter.edges.as_ref());
        // The bitmap over rows may take at most half of the budget, because the lists need the rest.
        let num_bytes = lists.edge_properties().num_stored_rows() / u64::from(u8::BITS);
        let has_room = context.memory.is_none_or(|budget| num_bytes <= budget / 2);
        let rows = edges().filter(|_| has_room).map(|filter| filter.passing_rows(&context, lists));
        // The sets replace the test by entries only if every predicate has one.
        let rows = rows.collect::<Option<Vec<_>>>();
        let rows = rows.and_then(|rows| rows.into_iter().reduce(RowSet::both));
        context.progress.check()?;
        let keeps = |entries: &Entries| self.keeps(lists, entries);
        let keeps = edges().next().is_some().then_some(&keeps as &KeepEntries<'_, Error>);
        let filter = EntryFilter { rows: rows.as_ref(), keeps };
        lists.filtered(&hidden, &filter, context.pool, context.memory, context.progress)
    }
}
