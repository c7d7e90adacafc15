//! Filtered views: the edges and vertices that pass a filter, laid out as a base.

mod layout;
mod spilled;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anden_base::VertexId;
use anden_base::bitmap::Bitmap;
use anden_base::parallel::Pool;
use anden_base::progress::Progress;
use anden_graph::{Direction, Graph, GraphKind};

use self::layout::KeptPage;
use super::entries::Entries;
use super::filtered_changes::{FilteredOverlay, ViewCounts};
use super::{SnapshotView, ViewParts, both_adjacencies};
use crate::adjacency::{FirstDamage, ShownArcs};
use crate::base::OpenBase;
use crate::overlay::Overlay;
use crate::property::RowSet;
use crate::table::PAGE_VERTICES;
use crate::{Error, Result};

/// Memory of a layout relative to its entries: the entries as read, and the arrays of both directions.
const LAYOUT_FACTOR: u64 = 3;

/// Decides for each of some entries whether it stays.
pub type KeepEntries<'a, E> = dyn Fn(&Entries) -> Result<Vec<bool>, E> + Sync + 'a;

/// Decides which entries stay.
pub struct EntryFilter<'a, E> {
    /// The rows that pass, as far as rows are in files.
    pub rows: Option<&'a RowSet<'a>>,
    /// Decides about entries that `rows` has not tested; without it, they stay.
    pub keeps: Option<&'a KeepEntries<'a, E>>,
}

impl<E: From<Error>> EntryFilter<'_, E> {
    /// Keeps those entries that `keeps` passes or need not decide about; their rows have passed `rows`.
    fn tested(&self, mut entries: Entries) -> Result<Entries, E> {
        let Some(keeps) = self.keeps.filter(|_| !entries.is_empty()) else { return Ok(entries) };
        let Some(rows) = self.rows else {
            let kept = keeps(&entries)?;
            entries.retain(|place| kept[place]);
            return Ok(entries);
        };
        let is_open: Vec<bool> = entries.rows.iter().map(|&row| !rows.has_tested(row)).collect();
        // Rows in memory are in no row set. Only these entries are evaluated one by one.
        if is_open.contains(&true) {
            let mut open = entries.clone();
            open.retain(|place| is_open[place]);
            let mut kept = keeps(&open)?.into_iter();
            let stays: Vec<bool> = is_open.iter().map(|&is_open| !is_open || kept.next() == Some(true)).collect();
            entries.retain(|place| stays[place]);
        }
        Ok(entries)
    }
}

impl SnapshotView {
    /// The entries of one page's lists that stay. Lists of `dead` vertices and entries that lead to them do not.
    fn kept_in_page<E: From<Error>>(
        &self,
        direction: Direction,
        vertices: Range<VertexId>,
        dead: Option<&Bitmap>,
        filter: &EntryFilter<'_, E>,
    ) -> Result<Entries, E> {
        // `push_passing` reads only out-lists, and no weights.
        let reads_by_rows = direction == Direction::Out && self.options().weight_type.is_none();
        let Some(rows) = filter.rows.filter(|_| reads_by_rows) else {
            return self.kept_entries(direction, vertices, dead, filter);
        };
        let mut entries = Entries::default();
        let is_wanted = |vertex: VertexId| !dead.is_some_and(|dead| dead.get(vertex as usize));
        self.push_passing(vertices, &mut entries, &mut rows.reader(), is_wanted)?;
        filter.tested(entries)
    }

    /// As [`kept_in_page`](Self::kept_in_page), for any vertices.
    pub(super) fn kept_entries<E: From<Error>>(
        &self,
        direction: Direction,
        vertices: impl Iterator<Item = VertexId>,
        dead: Option<&Bitmap>,
        filter: &EntryFilter<'_, E>,
    ) -> Result<Entries, E> {
        let mut entries = Entries::default();
        let mut reader = filter.rows.map(RowSet::reader);
        let is_dead = |vertex: VertexId| dead.is_some_and(|dead| dead.get(vertex as usize));
        for vertex in vertices.filter(|&vertex| !is_dead(vertex)) {
            let keeps = |target: VertexId, row: u64| -> Result<bool, E> {
                if is_dead(target) {
                    return Ok(false);
                }
                Ok(reader.as_mut().map_or(Ok(true), |reader| reader.may_pass(row))?)
            };
            self.push_entries(direction, vertex, &mut entries, keeps)?;
        }
        filter.tested(entries)
    }

    /// This graph without the vertices of `hidden`, which count as removed, and without the edges that `filter` drops.
    /// Ids stay. The filter sees an undirected edge from both ends.
    ///
    /// Cost: reads all lists once. The result is laid out in arrays, with about three times its bytes while they are
    /// filled. If that exceeds `memory`, the lists of both directions are read, and written to files in the folder for
    /// temporary files.
    ///
    /// # Errors
    /// Errors of `filter`; cancellation; damage; the files cannot be written.
    pub fn filtered<E: From<Error> + Send>(
        &self,
        hidden: &Bitmap,
        filter: &EntryFilter<'_, E>,
        pool: &Pool,
        memory: Option<u64>,
        progress: &dyn Progress,
    ) -> Result<Self, E> {
        let dead = self.dead_or(hidden);
        let some_dead = (dead.count_ones() > 0).then_some(&dead);
        let memory = memory.map(|budget| budget.saturating_sub(filter.rows.map_or(0, RowSet::num_bytes)));
        let (base, num_loops) = match self.kept_pages(some_dead, filter, pool, memory, progress)? {
            Some(pages) => {
                // Damaged lists look empty, and must not make a result that looks whole.
                self.check().map_err(Error::from)?;
                let num_loops = pages.iter().map(KeptPage::num_loops).sum();
                (layout::lay_out(self.options(), self.vertex_bound, pages, pool)?, num_loops)
            }
            None => spilled::spill(self, some_dead, filter, pool, progress)?,
        };
        Ok(self.part_of(base, num_loops, dead))
    }

    /// The ids that are dead or hidden.
    pub(super) fn dead_or(&self, hidden: &Bitmap) -> Bitmap {
        let mut dead = Bitmap::new(self.vertex_bound);
        let mut set = |vertex: usize| dead.set(vertex);
        hidden.iter_ones().take_while(|&vertex| vertex < self.vertex_bound).for_each(&mut set);
        // Most graphs have no dead vertices, so only changes in memory require a check of each vertex.
        match (&self.overlay, &self.shared.dead) {
            (None, None) => {}
            (None, Some(known)) => known.iter_ones().for_each(set),
            (Some(_), _) => {
                let is_dead = |vertex: &usize| !self.is_live(*vertex as VertexId);
                (0..self.vertex_bound).filter(is_dead).for_each(set);
            }
        }
        dead
    }

    /// The out-lists that stay; `None` if they exceed the budget.
    fn kept_pages<E: From<Error> + Send>(
        &self,
        dead: Option<&Bitmap>,
        filter: &EntryFilter<'_, E>,
        pool: &Pool,
        memory: Option<u64>,
        progress: &dyn Progress,
    ) -> Result<Option<Vec<KeptPage>>, E> {
        let held = AtomicU64::new(layout::vertex_bytes(self.options(), self.vertex_bound, pool));
        let is_beyond = || memory.is_some_and(|budget| held.load(Ordering::Relaxed) > budget);
        let pages = pool.map_chunks(0..self.vertex_bound, PAGE_VERTICES, |_, vertices| {
            progress.check().map_err(Error::from)?;
            // The result goes to files then, so the other pages need not be read.
            if is_beyond() {
                return Ok(None);
            }
            let first = vertices.start;
            let vertices = first as VertexId..vertices.end as VertexId;
            let entries = self.kept_in_page(Direction::Out, vertices, dead, filter)?;
            // Relaxed: the sum only decides whether files are used. A late decision costs the memory of a few pages.
            held.fetch_add(LAYOUT_FACTOR * entries.num_bytes(), Ordering::Relaxed);
            Ok(Some(KeptPage::new(first, entries)?))
        });
        // The last page may have exceeded the budget, too.
        let pages = pages.into_iter().collect::<Result<Option<Vec<_>>, E>>()?;
        Ok(pages.filter(|_| !is_beyond()))
    }

    /// A view of the lists in `base`, with the keys and the properties of this view.
    fn part_of(&self, base: Arc<OpenBase>, num_loops: u64, dead: Bitmap) -> Self {
        let (options, vertex_bound) = (self.options(), self.vertex_bound);
        let num_arcs = base.num_arcs();
        let num_edges = match options.graph_kind {
            GraphKind::Directed => num_arcs,
            // An undirected loop has one arc, any other edge two.
            GraphKind::Undirected => (num_arcs + num_loops) / 2,
        };
        let num_vertices = vertex_bound - dead.count_ones();
        let parts = ViewParts {
            version: None,
            base,
            steps: Vec::new(),
            options: *options,
            vertex_bound,
            num_vertices: num_vertices as u64,
            num_edges,
            num_arcs,
            dictionary: Arc::clone(&self.shared.dictionary),
            properties: Arc::clone(&self.shared.properties),
            edge_properties: Arc::clone(&self.shared.edge_properties),
            files: Arc::clone(&self.shared.files),
            path: PathBuf::from("(filtered)"),
        };
        let fault = FirstDamage::default();
        let (out_adjacency, in_adjacency) = both_adjacencies(&parts, &parts.steps, ShownArcs::All, &fault);
        let overlay = self.overlay.clone().map(|whole| {
            let counts = ViewCounts { num_vertices, num_edges, num_arcs };
            Arc::new(FilteredOverlay::new(whole, counts, Some(dead.clone()))) as Arc<dyn Overlay>
        });
        Self { overlay, ..Self::new(parts, out_adjacency, in_adjacency, Some(dead), fault) }
    }
}
