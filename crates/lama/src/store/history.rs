//! Gives up snapshots, and tells what changed between two.

use std::ops::Range;

use base::VertexId;
use base::progress::Progress;
use graph::{Direction, Side};

use super::Store;
use super::counts::{changed_pages, net_page};
use crate::changes::{ChangedArc, ComposeScratch, Entries, PageChanges};
use crate::level::{Level, net_deaths, net_properties};
use crate::options::Retention;
use crate::property::PropertyChanges;
use crate::table::PAGE_VERTICES;
use crate::{Error, Result};

/// What changed from one snapshot to another, in all: what came and went in between is not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// Edges that the second snapshot has and the first has not, sorted; of an undirected graph once, from the smaller
    /// end. An edge with another weight is added and removed.
    pub added: Vec<ChangedArc>,
    /// Edges that the first snapshot has and the second has not.
    pub removed: Vec<ChangedArc>,
    /// Vertices that only the second snapshot can have, for they are younger than the first. Those of them that did not
    /// live to see it are among the dead.
    pub new_vertices: Range<VertexId>,
    /// Vertices that live in the first snapshot and not in the second, ascending; and new ones that are dead again.
    pub died: Vec<VertexId>,
    /// Vertices that are dead in the first snapshot and live in the second, ascending.
    pub returned: Vec<VertexId>,
    /// The properties with other values, by name.
    pub properties: Vec<(String, PropertyChanges)>,
}

/// The edges that changed from one snapshot to another, a page of source vertices at a time.
#[derive(Clone, Debug)]
pub struct EdgeChanges {
    levels: Vec<Level>,
    pages: Vec<usize>,
    is_undirected: bool,
    is_backward: bool,
}

impl EdgeChanges {
    /// The number of pages that have changes.
    pub fn num_pages(&self) -> usize {
        self.pages.len()
    }

    /// The bytes of levels that are read for all pages, about.
    pub fn num_bytes(&self) -> u64 {
        let num_arcs = |level: &Level| {
            let (num_added, num_removed) = level.num_arcs(Side::Out);
            num_added + num_removed
        };
        self.levels.iter().map(num_arcs).sum::<u64>() * size_of::<ChangedArc>() as u64
    }

    /// Appends the edges of the page at `index` that came to `added` and those that went to `removed`, in the order of
    /// [`Diff::added`].
    ///
    /// # Errors
    /// A level is damaged.
    pub fn read_page(&self, index: usize, added: &mut Vec<ChangedArc>, removed: &mut Vec<ChangedArc>) -> Result<()> {
        let page = self.pages[index];
        let (mut net, mut scratch) = (PageChanges::default(), ComposeScratch::default());
        net_page(&self.levels, Side::Out, page, &mut net, &mut scratch)?;
        let (added, removed) = if self.is_backward { (removed, added) } else { (added, removed) };
        let first = (page * PAGE_VERTICES) as VertexId;
        for list in net.lists() {
            let vertex = first + VertexId::from(list.local);
            let extend = |arcs: &mut Vec<ChangedArc>, entries: Entries<'_>| {
                let arcs_of_list = entries.targets.iter().enumerate().map(|(place, &neighbour)| ChangedArc {
                    list: vertex,
                    neighbour,
                    data: entries.data(place),
                });
                arcs.extend(arcs_of_list.filter(|arc| !self.is_undirected || arc.list <= arc.neighbour));
            };
            extend(added, list.added);
            extend(removed, list.removed);
        }
        Ok(())
    }
}

impl Store {
    /// The edges that changed after snapshot `a` up to snapshot `b`, or back where `a` is the younger one.
    ///
    /// Cost: reads which pages the levels in between change.
    ///
    /// # Errors
    /// [`Error::NoSnapshot`]; a level is damaged.
    pub fn edge_changes(&self, a: u32, b: u32) -> Result<EdgeChanges> {
        let state = self.state();
        let (first, last) = (a.min(b), a.max(b));
        state.kept(first)?;
        state.kept(last)?;
        let levels = state.levels_between(first, last);
        let pages = changed_pages(&levels, Side::Out)?;
        let is_undirected = self.options.direction == Direction::Undirected;
        Ok(EdgeChanges { levels, pages, is_undirected, is_backward: a > b })
    }

    /// What changed after snapshot `a` up to snapshot `b`; where `a` is the younger one, what would have to change to
    /// get back.
    ///
    /// Cost: reads the levels in between, and holds what they change.
    ///
    /// # Errors
    /// [`Error::NoSnapshot`]; a level is damaged.
    pub fn diff(&self, a: u32, b: u32) -> Result<Diff> {
        let (edges, mut diff) = (self.edge_changes(a, b)?, self.vertex_diff(a, b)?);
        for index in 0..edges.num_pages() {
            edges.read_page(index, &mut diff.added, &mut diff.removed)?;
        }
        Ok(diff)
    }

    /// As [`diff`](Self::diff), without edges.
    ///
    /// # Errors
    /// As there.
    pub fn vertex_diff(&self, a: u32, b: u32) -> Result<Diff> {
        let state = self.state();
        let (first, last) = (a.min(b), a.max(b));
        let old_bound = state.kept(first)?.vertex_bound as VertexId;
        let new_bound = state.kept(last)?.vertex_bound as VertexId;
        let levels = state.levels_between(first, last);
        let mut diff = Diff { new_vertices: old_bound..new_bound, ..Diff::default() };
        (diff.died, diff.returned) = net_deaths(&levels)?;
        for changes in net_properties(&levels)? {
            if let Some(record) = state.manifest.properties.get(changes.column() as usize) {
                diff.properties.push((record.name.clone(), changes));
            }
        }
        Ok(if a <= b { diff } else { diff.reversed() })
    }

    /// Gives up snapshots, all of them or, on an error, none. What the newest one changed stays, though no snapshot
    /// shows it until the next one; the changes of another one go to the next younger.
    ///
    /// Cost: the levels of these snapshots and of those that follow them are read and written as one.
    ///
    /// # Errors
    /// [`Error::NoSnapshot`]; no snapshot would be left; as [`append`](Self::append).
    pub fn drop_snapshots(&self, numbers: &[u32], progress: &dyn Progress) -> Result<()> {
        let mut draft = self.begin()?;
        for &number in numbers {
            draft.state.kept(number)?;
        }
        let mut manifest = draft.state.manifest.clone();
        if manifest.chain.kept().all(|version| numbers.contains(&version.number)) {
            return Err(Error::Input("no snapshot would be left; remove the database instead".into()));
        }
        if numbers.is_empty() {
            return Ok(());
        }
        let plan = manifest.chain.without(numbers);
        manifest.chain = draft.carry_out(plan, None)?;
        progress.check()?;
        draft.publish(manifest)?;
        Ok(())
    }

    /// Sets which snapshots are kept, from now on whenever one is made, and gives up the others now; says which.
    ///
    /// Cost: as [`drop_snapshots`](Self::drop_snapshots).
    ///
    /// # Errors
    /// The rule keeps nothing; as [`append`](Self::append).
    pub fn retain(&self, retention: Retention) -> Result<Vec<u32>> {
        if retention == Retention::Last(0) {
            return Err(Error::Input("a database keeps at least its last snapshot".into()));
        }
        let mut draft = self.begin()?;
        let mut manifest = draft.state.manifest.clone();
        let given_up = manifest.chain.given_up(retention, self.time());
        manifest.retention = retention;
        if manifest == draft.state.manifest && given_up.is_empty() {
            return Ok(given_up);
        }
        let plan = manifest.chain.without(&given_up);
        manifest.chain = draft.carry_out(plan, None)?;
        draft.publish(manifest)?;
        Ok(given_up)
    }
}

impl Diff {
    /// The way back. Vertices that are younger die on it.
    fn reversed(self) -> Self {
        let bound = self.new_vertices.start;
        let is_old = |vertex: &VertexId| *vertex < bound;
        let young = self.new_vertices.clone().filter(|vertex| self.died.binary_search(vertex).is_err());
        Self {
            added: self.removed,
            removed: self.added,
            new_vertices: bound..bound,
            died: self.returned.iter().copied().filter(is_old).chain(young).collect(),
            returned: self.died.iter().copied().filter(is_old).collect(),
            properties: self.properties.into_iter().map(|(name, changes)| (name, changes.reversed())).collect(),
        }
    }
}
