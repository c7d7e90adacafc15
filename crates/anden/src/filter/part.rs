//! What a filtered view leaves of another: laid out once all of it is read, tested edge by edge before.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use base::VertexId;
use base::bitmap::Bitmap;
use graph::{Graph, Side, WillNeed};
use lama::{Entries, EntryFilter, KeepEntries, RowSet};

use super::{Filter, TestedLists};
use crate::parts::PartName;
use crate::{Error, Result, View};

/// Lists that a worker counts at once.
const COUNTED_LISTS: usize = 1 << 10;

/// Questions may take this much, in entries, however small the view is.
const LEAST_SPENT: u64 = 1 << 16;

/// Changes are filtered alone where they touch at most this many lists, or this share of all.
const LEAST_TOUCHED: usize = 1 << 10;
const TOUCHED_SHARE: usize = 8;

/// What is left of the lists of a view by some filters, one after the other.
#[derive(Debug)]
pub(crate) struct Part {
    filters: Vec<Arc<Filter>>,
    laid_out: OnceLock<lama::View>,
    /// One thread lays out, others wait.
    laying_out: Mutex<()>,
    /// Lists with the reason why the part cannot be laid out.
    failed: OnceLock<lama::View>,
    /// What it took to test entries so far, in entries of the whole view.
    spent: AtomicU64,
}

impl Part {
    /// Of a view that is a part already, the filters of both; `found` are its lists, if they are known.
    pub(crate) fn new(before: Option<&Self>, filter: Filter, found: Option<lama::View>) -> Self {
        let mut filters = before.map_or(Vec::new(), |before| before.filters.clone());
        filters.push(Arc::new(filter));
        let laid_out = found.map_or_else(OnceLock::new, OnceLock::from);
        Self { filters, laid_out, laying_out: Mutex::default(), failed: OnceLock::new(), spent: AtomicU64::new(0) }
    }

    pub(super) fn filters(&self) -> impl Iterator<Item = &Filter> {
        self.filters.iter().map(|filter| &**filter)
    }

    /// The lists, if they are laid out.
    pub(crate) fn laid_out(&self) -> Option<&lama::View> {
        self.laid_out.get()
    }

    /// Entries were tested for a question.
    pub(super) fn spend(&self, num_entries: usize) {
        self.spent.fetch_add(num_entries as u64, Ordering::Relaxed);
    }

    /// The lists, laid out where single questions have taken about as long as that takes: so all questions together take
    /// at most about twice the time of the better way. `None` where that is not so, or they cannot be laid out.
    pub(crate) fn lay_out_if_worth_it(&self, view: &View) -> Option<&lama::View> {
        if self.spent.load(Ordering::Relaxed) < view.stored().num_arcs().max(LEAST_SPENT) {
            return None;
        }
        let lists = self.lay_out(view).ok();
        if lists.is_none() {
            // The next attempt waits as long as this one did: each of them reads everything.
            self.spent.store(0, Ordering::Relaxed);
        }
        lists
    }

    /// The lists of the part `view`, laid out at the first call.
    pub(crate) fn lay_out(&self, view: &View) -> Result<&lama::View> {
        if let Some(lists) = self.laid_out() {
            return Ok(lists);
        }
        let _alone = self.laying_out.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lists) = self.laid_out() {
            return Ok(lists);
        }
        let name = view.part_name();
        let lists = match name.and_then(PartName::find) {
            Some(lists) => lists,
            None => {
                let lists = self.left_of(view)?;
                name.into_iter().for_each(|name| name.keep(&lists, view.session()));
                lists
            }
        };
        Ok(self.laid_out.get_or_init(|| lists))
    }

    /// The same for callers that ask for errors later ([`Graph::check`]): where there is one, the lists are those of the
    /// whole view.
    pub(crate) fn lay_out_or_fail(&self, view: &View) -> &lama::View {
        self.lay_out(view).unwrap_or_else(|error| {
            let fault =
                |error: Error| base::Error::io("lay out a part", Path::new("(filtered)"), io::Error::other(error));
            self.failed.get_or_init(|| view.stored().failed(fault(error)))
        })
    }

    /// The number of vertices; nothing is laid out for it.
    pub(crate) fn num_vertices(&self, view: &View) -> usize {
        if let Some(lists) = self.laid_out() {
            return lists.num_vertices();
        }
        if self.filters().all(|filter| filter.vertices.is_none()) {
            return view.stored().num_vertices();
        }
        // Where a value is damaged, the lists say so.
        let Ok(hidden) = self.hidden(view) else { return self.lay_out_or_fail(view).num_vertices() };
        let is_shown = |&vertex: &usize| !hidden.get(vertex) && view.stored().is_live(vertex as VertexId);
        (0..view.vertex_bound()).filter(is_shown).count()
    }

    /// The numbers of edges and of entries. Where the budget has no room for the lists, they are counted one by one.
    pub(crate) fn num_edges(&self, view: &View) -> (u64, u64) {
        match self.lay_out(view) {
            Ok(lists) => (lists.num_edges(), lists.num_arcs()),
            Err(_) => self.counted(view),
        }
    }

    fn counted(&self, view: &View) -> (u64, u64) {
        let tested = TestedLists::new(view.stored(), self);
        let count = |_, vertices: Range<usize>| {
            let (mut num_arcs, mut num_loops) = (0, 0);
            for vertex in vertices {
                // Lists with damage look empty.
                let entries = tested.entries(Side::Out, vertex as VertexId, |_| true).unwrap_or_default();
                num_arcs += entries.len() as u64;
                num_loops += entries.targets.iter().filter(|&&target| target as usize == vertex).count() as u64;
            }
            (num_arcs, num_loops)
        };
        let counted = view.context().pool.map_chunks(0..view.vertex_bound(), COUNTED_LISTS, count);
        let (arcs, loops) = counted.into_iter().fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
        (if view.is_directed() { arcs } else { (arcs + loops) / 2 }, arcs)
    }

    /// The ids that some predicate over vertices leaves out.
    fn hidden(&self, view: &View) -> Result<Bitmap> {
        let mut hidden = Bitmap::new(view.vertex_bound());
        for vertices in self.filters().filter_map(|filter| filter.vertices.as_ref()) {
            vertices.hide(view, &mut hidden)?;
        }
        Ok(hidden)
    }

    /// Lays out what is left of the view.
    fn left_of(&self, view: &View) -> Result<lama::View> {
        let stored = view.stored();
        if stored.is_listening() {
            stored.read_exactly(false);
        }
        let left = match self.below(view)? {
            Some(below) => {
                let context = view.session().context(view.beside_stored());
                let keeps = |entries: &Entries| self.keeps(stored, entries);
                let filter = EntryFilter { rows: None, keeps: Some(&keeps as &KeepEntries<'_, Error>) };
                stored.filtered_over(&below, &filter, context.pool, context.progress)
            }
            None => self.left_of_lists(view, stored),
        };
        left.map_err(|error| view.session().in_all(error, || view.beside_stored()))
    }

    /// What is left of the snapshot that changes lie over, where it is faster to filter these alone: they are few, they
    /// hide no vertex, and the part of the snapshot is kept for the next version.
    fn below(&self, view: &View) -> Result<Option<lama::View>> {
        let (Some(below), Some(name)) = (view.stored().below(), view.name_below()) else { return Ok(None) };
        let most = LEAST_TOUCHED.max(view.vertex_bound() / TOUCHED_SHARE);
        let has_vertices = self.filters().any(|filter| filter.vertices.is_some());
        if has_vertices || view.session().memory().is_some() || view.stored().num_touched() > most {
            return Ok(None);
        }
        if let Some(part) = name.find() {
            return Ok(Some(part));
        }
        let part = self.left_of_lists(view, below)?;
        name.keep(&part, view.session());
        Ok(Some(part))
    }

    /// What is left of these lists: those of the view, or of the snapshot below.
    fn left_of_lists(&self, view: &View, lists: &lama::View) -> Result<lama::View> {
        let context = view.session().context(view.beside_stored());
        context.progress.stage("filter", None);
        let hidden = self.hidden(view)?;
        let edges = || self.filters().filter_map(|filter| filter.edges.as_ref());
        let rows = edges().map(|filter| filter.passing_rows(view, lists)).collect::<Option<Vec<_>>>();
        let rows = rows.and_then(|rows| rows.into_iter().reduce(RowSet::both));
        context.progress.check()?;
        let keeps = |entries: &Entries| self.keeps(lists, entries);
        let keeps = edges().next().is_some().then_some(&keeps as &KeepEntries<'_, Error>);
        let filter = EntryFilter { rows: rows.as_ref(), keeps };
        lists.filtered(&hidden, &filter, context.pool, context.memory, context.progress)
    }

    /// Which entries pass all predicates over edges. A later one is asked about what the earlier ones let pass.
    fn keeps(&self, lists: &lama::View, entries: &Entries) -> Result<Vec<bool>> {
        let mut kept = vec![true; entries.len()];
        for (index, filter) in self.filters().filter_map(|filter| filter.edges.as_ref()).enumerate() {
            if index == 0 {
                kept = filter.passing(lists, entries)?;
                continue;
            }
            let mut left = entries.clone();
            left.retain(|place| kept[place]);
            let mut passing = filter.passing(lists, &left)?.into_iter();
            kept.iter_mut().filter(|kept| **kept).for_each(|kept| *kept = passing.next() == Some(true));
        }
        Ok(kept)
    }
}
