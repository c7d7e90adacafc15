//! Drops and renames snapshots, and lists the changes between two snapshots.

use std::ops::Range;

use anden_base::VertexId;
use anden_base::progress::Progress;
use anden_graph::{Direction, GraphKind};

use super::counts::{changed_pages, net_page};
use super::{PublishedState, Store, check_name};
use crate::changes::{ChangedArc, ComposeScratch, ListEntries, PageChanges};
use crate::delta::{Delta, net_deaths, net_properties};
use crate::property::PropertyChanges;
use crate::table::PAGE_VERTICES;
use crate::{Error, Result};

/// Net changes from one snapshot to another. Changes that cancel each other in between are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotDiff {
    /// Edges that only the second snapshot has, sorted. An undirected edge is listed once, from its smaller end. An
    /// edge with a new weight is both added and removed.
    pub added: Vec<ChangedArc>,
    /// Edges that only the first snapshot has.
    pub removed: Vec<ChangedArc>,
    /// Vertices that are younger than the first snapshot. Those that are dead in the second snapshot are also among
    /// `died`.
    pub new_vertices: Range<VertexId>,
    /// Vertices that live in the first snapshot and are dead in the second, ascending; new vertices that are dead
    /// again, too.
    pub died: Vec<VertexId>,
    /// Vertices that are dead in the first snapshot and live in the second, ascending.
    pub returned: Vec<VertexId>,
    /// The properties whose values changed, by name.
    pub properties: Vec<(String, PropertyChanges)>,
}

/// The edges that changed from one snapshot to another, read one page of source vertices at a time.
#[derive(Clone, Debug)]
pub struct EdgeChanges {
    deltas: Vec<Delta>,
    pages: Vec<usize>,
    is_undirected: bool,
    is_backward: bool,
}

impl EdgeChanges {
    /// The changes from a version to a later one.
    pub(super) fn between(state: &PublishedState, from: u32, to: u32) -> Result<Self> {
        let deltas = state.deltas_between(from, to);
        let pages = changed_pages(&deltas, Direction::Out)?;
        let is_undirected = state.manifest.created.options.graph_kind == GraphKind::Undirected;
        Ok(Self { deltas, pages, is_undirected, is_backward: false })
    }

    /// Number of pages with changes.
    pub fn num_pages(&self) -> usize {
        self.pages.len()
    }

    /// Approximate bytes of the changes of all pages, as [`ChangedArc`]s.
    pub fn num_bytes(&self) -> u64 {
        let num_arcs = |delta: &Delta| {
            let (num_added, num_removed) = delta.num_arcs(Direction::Out);
            num_added + num_removed
        };
        self.deltas.iter().map(num_arcs).sum::<u64>() * size_of::<ChangedArc>() as u64
    }

    /// Appends the edges that the page at `index` gained to `added`, and those that it lost to `removed`, in the order
    /// of [`SnapshotDiff::added`].
    ///
    /// # Errors
    /// A delta is damaged.
    pub fn read_page(&self, index: usize, added: &mut Vec<ChangedArc>, removed: &mut Vec<ChangedArc>) -> Result<()> {
        let page = self.pages[index];
        let (mut net, mut scratch) = (PageChanges::default(), ComposeScratch::default());
        net_page(&self.deltas, Direction::Out, page, &mut net, &mut scratch)?;
        // Read backward, additions are removals.
        let (added, removed) = if self.is_backward { (removed, added) } else { (added, removed) };
        let first = (page * PAGE_VERTICES) as VertexId;
        for list in net.lists() {
            let vertex = first + VertexId::from(list.local);
            let extend = |arcs: &mut Vec<ChangedArc>, entries: ListEntries<'_>| {
                let arcs_of_list = entries.targets.iter().enumerate().map(|(place, &neighbor)| ChangedArc {
                    list: vertex,
                    neighbor,
                    data: entries.data(place),
                });
                arcs.extend(arcs_of_list.filter(|arc| !self.is_undirected || arc.list <= arc.neighbor));
            };
            extend(added, list.added);
            extend(removed, list.removed);
        }
        Ok(())
    }
}

impl PublishedState {
    /// The changes from a version to a later one, without edges.
    pub(super) fn vertex_diff(&self, from: u32, to: u32) -> Result<SnapshotDiff> {
        let bound = |number| self.manifest.chain.version(number).map_or(0, |version| version.vertex_bound as VertexId);
        let deltas = self.deltas_between(from, to);
        let mut diff = SnapshotDiff { new_vertices: bound(from)..bound(to), ..SnapshotDiff::default() };
        (diff.died, diff.returned) = net_deaths(&deltas)?;
        for changes in net_properties(&deltas)? {
            if let Some(record) = self.manifest.properties.get(changes.column() as usize) {
                diff.properties.push((record.name.clone(), changes));
            }
        }
        Ok(diff)
    }
}

impl Store {
    /// The edges that changed after snapshot `a`, up to snapshot `b`. If `a` is younger, these are the changes that
    /// lead back.
    ///
    /// Cost: reads which pages the deltas in between change.
    ///
    /// # Errors
    /// [`Error::NoSnapshot`]; a delta is damaged.
    pub fn edge_changes(&self, a: u32, b: u32) -> Result<EdgeChanges> {
        let state = self.state();
        let (first, last) = (a.min(b), a.max(b));
        // Users compare snapshots that they see, although hidden versions have deltas, too.
        state.kept(first)?;
        state.kept(last)?;
        Ok(EdgeChanges { is_backward: a > b, ..EdgeChanges::between(&state, first, last)? })
    }

    /// The net changes after snapshot `a`, up to snapshot `b`. If `a` is younger, these are the changes that lead back.
    ///
    /// Cost: reads the deltas in between, and holds their changes.
    ///
    /// # Errors
    /// [`Error::NoSnapshot`]; a delta is damaged.
    pub fn diff(&self, a: u32, b: u32) -> Result<SnapshotDiff> {
        let (edges, mut diff) = (self.edge_changes(a, b)?, self.vertex_diff(a, b)?);
        for index in 0..edges.num_pages() {
            edges.read_page(index, &mut diff.added, &mut diff.removed)?;
        }
        Ok(diff)
    }

    /// As [`diff`](Self::diff), without edges.
    ///
    /// # Errors
    /// As [`diff`](Self::diff).
    pub fn vertex_diff(&self, a: u32, b: u32) -> Result<SnapshotDiff> {
        let state = self.state();
        let (first, last) = (a.min(b), a.max(b));
        state.kept(first)?;
        state.kept(last)?;
        let diff = state.vertex_diff(first, last)?;
        Ok(if a <= b { diff } else { diff.reversed() })
    }

    /// Drops snapshots: all of them or, on an error, none. Refuses snapshots with a [lease](Self::lease). The changes of
    /// the newest one stay, unseen until the next snapshot. The changes of any other go to the next younger snapshot.
    ///
    /// Cost: reads the deltas of these snapshots and of their successors, and writes them composed.
    ///
    /// # Errors
    /// [`Error::NoSnapshot`]; [`Error::Leased`]; no snapshot would be left; as [`append`](Self::append).
    pub fn drop_snapshots(&self, numbers: &[u32], progress: &dyn Progress) -> Result<()> {
        let _span = tracing::info_span!("drop", snapshots = ?numbers).entered();
        self.freeing(0, || self.drop_once(numbers, progress))
    }

    fn drop_once(&self, numbers: &[u32], progress: &dyn Progress) -> Result<()> {
        let mut draft = self.begin()?;
        // All numbers are checked first: on an error, none is dropped.
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
        // Held until the manifest is published, so that no lease is taken meanwhile.
        let _unleased = self.require_unleased(numbers)?;
        let plan = manifest.chain.without(numbers);
        manifest.chain = draft.carry_out(plan, None)?;
        // The last chance to cancel: `publish` makes the drop durable.
        progress.check()?;
        draft.publish(manifest)?;
        tracing::info!(snapshots = ?numbers, "dropped snapshots");
        Ok(())
    }

    /// Gives a snapshot another name, or takes its name away.
    ///
    /// # Errors
    /// [`Error::NoSnapshot`]; [`Error::NameTaken`]; the name is not valid; as [`append`](Self::append).
    pub fn rename_snapshot(&self, number: u32, name: Option<&str>) -> Result<()> {
        let draft = self.begin()?;
        // Without a change, no manifest is written, and the name is not taken by another snapshot.
        if draft.state.kept(number)?.name.as_deref() == name {
            return Ok(());
        }
        let mut manifest = draft.state.manifest.clone();
        check_name(name, Some(&manifest))?;
        if let Some(version) = manifest.chain.versions.iter_mut().find(|version| version.number == number) {
            version.name = name.map(str::to_owned);
        }
        draft.publish(manifest)?;
        tracing::info!(number, ?name, "renamed a snapshot");
        Ok(())
    }
}

impl SnapshotDiff {
    /// The reverse difference. Younger vertices die in it.
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
