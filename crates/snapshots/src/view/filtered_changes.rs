//! Filtered views under changes in memory: the filtered snapshot below, with the filtered changes over it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use anden_base::VertexId;
use anden_base::bitmap::Bitmap;
use anden_base::parallel::Pool;
use anden_base::progress::Progress;
use anden_graph::{Direction, Graph, GraphKind};

use super::SnapshotView;
use super::entries::Entries;
use super::filtered::EntryFilter;
use super::overlay_base::OverlayBase;
use crate::key::{Key, KeyRef};
use crate::options::GraphOptions;
use crate::overlay::{AddedFragment, ListChanges, Overlay};
use crate::property::RowOverlay;
use crate::vertex_properties::PropertyOverlay;
use crate::{Error, Result};

/// Lists that a worker compares at once.
const COMPARED_LISTS: usize = 64;

impl SnapshotView {
    /// The snapshot below the changes in memory; `None` if there are no changes.
    pub fn below(&self) -> Option<&SnapshotView> {
        self.below.as_deref()
    }

    /// Number of out-lists that changes in memory may touch.
    pub fn num_touched(&self) -> usize {
        self.dirty(Direction::Out).len()
    }

    /// As [`filtered`](Self::filtered), without the vertices of `hidden`, if any. `part` is the result of this filter
    /// for the snapshot [`below`](Self::below). `None` if more than `most` lists of a direction differ from the part,
    /// or if vertices appear or go and the lists that lead to them are unknown, for lack of in-lists.
    ///
    /// Cost: reads the lists that the changes touch and those that lead to vertices that appear or go, and keeps their
    /// differences; ten bits a vertex and direction. With `hidden`, a test of each vertex.
    ///
    /// # Errors
    /// Errors of `filter`; cancellation; damage.
    pub fn filtered_over<E: From<Error> + Send>(
        &self,
        part: &Self,
        hidden: Option<&Bitmap>,
        filter: &EntryFilter<'_, E>,
        most: usize,
        pool: &Pool,
        progress: &dyn Progress,
    ) -> Result<Option<Self>, E> {
        // Without changes in memory, the part of the snapshot is the result.
        let Some(whole) = self.overlay.clone() else { return Ok(Some(part.clone())) };
        let dead = hidden.map(|hidden| self.dead_or(hidden));
        let flipped = dead.as_ref().map_or(Vec::new(), |dead| self.flipped(part, dead));
        let directions = [Some(Direction::Out), self.options().stores_in_lists().then_some(Direction::In)];
        let overlay_base = OverlayBase::short_lived(part, self.vertex_bound);
        let num_vertices = match &dead {
            Some(dead) => self.vertex_bound - dead.count_ones(),
            None => whole.num_vertices(),
        };
        let counts = ViewCounts { num_vertices, num_edges: part.num_edges(), num_arcs: part.num_arcs() };
        let mut changes = FilteredOverlay::new(whole, counts, dead.clone());
        let (mut num_arcs, mut num_loops) = (0, 0);
        for direction in directions.into_iter().flatten() {
            let Some(dirty) = self.differing(direction, part, &flipped, most) else { return Ok(None) };
            let found = pool.map_chunks(0..dirty.len(), COMPARED_LISTS, |_, range| -> Result<Vec<_>, E> {
                progress.check().map_err(Error::from)?;
                self.compared(direction, &dirty[range], part, dead.as_ref(), filter)
            });
            for (vertex, list) in found.into_iter().collect::<Result<Vec<_>, E>>()?.into_iter().flatten() {
                // Only lists with tombstones pay for looking them up.
                match list.removed.first() {
                    Some(&first) => overlay_base.mark_tombstoned(direction, vertex, first),
                    None => overlay_base.mark_dirty(direction, vertex),
                }
                if direction == Direction::Out {
                    num_arcs += list.added.len() as i64 - list.num_removed as i64;
                    num_loops += list.num_loops;
                }
                changes.lists(direction).insert(vertex, list);
            }
        }
        // Damaged lists look empty, and must not make a result that looks whole.
        self.check().map_err(Error::from)?;
        part.check().map_err(Error::from)?;
        let num_edges = match self.options().graph_kind {
            GraphKind::Directed => num_arcs,
            // An undirected loop has one arc, any other edge two.
            GraphKind::Undirected => (num_arcs + num_loops) / 2,
        };
        changes.counts.num_arcs = counts.num_arcs.saturating_add_signed(num_arcs);
        changes.counts.num_edges = counts.num_edges.saturating_add_signed(num_edges);
        // The part is no snapshot, so the result has none below.
        Ok(Some(Self { below: None, ..overlay_base.overlaid(Arc::new(changes)) }))
    }

    /// The vertices that are in one of the two, this view without `dead` and the part.
    fn flipped(&self, part: &Self, dead: &Bitmap) -> Vec<VertexId> {
        let vertices = 0..self.vertex_bound as VertexId;
        vertices.filter(|&vertex| dead.get(vertex as usize) == part.is_live(vertex)).collect()
    }

    /// The vertices whose lists may differ from those of the part, ascending: dirty vertices, flipped ones, and those
    /// whose lists lead to flipped ones. `None` if they are more than `most`, or cannot be known.
    fn differing(&self, direction: Direction, part: &Self, flipped: &[VertexId], most: usize) -> Option<Vec<VertexId>> {
        let mut lists = self.dirty(direction);
        // An appearing vertex changes the lists that lead to it, which only in-lists can name.
        if !flipped.is_empty() && !self.has_lists(Direction::In) {
            return None;
        }
        if lists.len() > most {
            return None;
        }
        for &vertex in flipped {
            lists.push(vertex);
            for view in [self, part].into_iter().filter(|view| (vertex as usize) < view.vertex_bound) {
                let push = |others: &[VertexId]| {
                    lists.extend_from_slice(others);
                    // Stopped early: the neighbors of one hub may exceed `most`.
                    if lists.len() > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                };
                // An out-list changes where the vertex has an in-arc, and the other way round.
                let _ = view.for_each_fragment(direction.reversed(), vertex, push);
            }
            if lists.len() > most {
                return None;
            }
        }
        lists.sort_unstable();
        lists.dedup();
        Some(lists)
    }

    /// The vertices whose lists the changes may touch, ascending.
    fn dirty(&self, direction: Direction) -> Vec<VertexId> {
        let dirty = self.adjacency(direction).map_or(Vec::new(), |lists| lists.dirty());
        dirty.into_iter().filter(|&vertex| (vertex as usize) < self.vertex_bound).collect()
    }

    /// Differences between the filtered lists of these vertices and the lists of the part.
    fn compared<E: From<Error>>(
        &self,
        direction: Direction,
        vertices: &[VertexId],
        part: &Self,
        dead: Option<&Bitmap>,
        filter: &EntryFilter<'_, E>,
    ) -> Result<Vec<(VertexId, ListDifference)>, E> {
        // All lists of the chunk are filtered together: the filter is evaluated by column.
        let kept = self.kept_entries(direction, vertices.iter().copied(), dead, filter)?;
        let (mut differences, mut start) = (Vec::new(), 0);
        for &vertex in vertices {
            let end = start + kept.sources[start..].iter().take_while(|&&list| list == vertex).count();
            let mut before = Entries::default();
            if (vertex as usize) < part.vertex_bound {
                part.push_entries(direction, vertex, &mut before, |_, _| Ok::<_, E>(true))?;
            }
            let list = ListDifference::new(self.options(), vertex, &before, &kept, start..end);
            differences.extend(list.map(|list| (vertex, list)));
            start = end;
        }
        Ok(differences)
    }
}

/// Difference between two versions of a list: all entries with some targets are removed, others are added.
#[derive(Debug, Default)]
struct ListDifference {
    removed: Vec<VertexId>,
    /// Number of entries with these targets.
    num_removed: usize,
    added: Vec<VertexId>,
    /// Weights and rows of the added entries, as whole words or as weights of four bytes.
    words: Vec<u64>,
    weights: Vec<u32>,
    /// Number of added loops minus the removed ones.
    num_loops: i64,
}

impl ListDifference {
    /// The difference from one list to the entries at `range` of `after`; `None` if they are equal.
    fn new(
        options: &GraphOptions,
        vertex: VertexId,
        before: &Entries,
        after: &Entries,
        range: Range<usize>,
    ) -> Option<Self> {
        let mut list = Self::default();
        let group = |entries: &Entries, start: usize, end: usize| {
            let target = entries.targets[start];
            start..start + entries.targets[start..end].iter().take_while(|&&other| other == target).count()
        };
        let (mut old, mut new) = (0, range.start);
        while old < before.len() || new < range.end {
            let of_old = before.targets.get(old).copied();
            let of_new = after.targets[..range.end].get(new).copied();
            let old_group = match of_old {
                Some(target) if of_new.is_none_or(|other| target <= other) => group(before, old, before.len()),
                _ => old..old,
            };
            let new_group = match of_new {
                Some(target) if of_old.is_none_or(|other| target <= other) => group(after, new, range.end),
                _ => new..new,
            };
            (old, new) = (old_group.end, new_group.end);
            // Equal groups are left out, which keeps the overlay small.
            if before.is_same(&old_group, after, &new_group) {
                continue;
            }
            let num_loops = |entries: &Entries, group: &Range<usize>| {
                if entries.targets.get(group.start) == Some(&vertex) { group.len() as i64 } else { 0 }
            };
            if !old_group.is_empty() {
                // A tombstone removes all entries of its target, so one stands for the group.
                list.removed.push(before.targets[old_group.start]);
                list.num_removed += old_group.len();
                list.num_loops -= num_loops(before, &old_group);
            }
            if !new_group.is_empty() {
                list.num_loops += num_loops(after, &new_group);
                new_group.for_each(|place| list.add(options, after, place));
            }
        }
        (!list.removed.is_empty() || !list.added.is_empty()).then_some(list)
    }

    fn add(&mut self, options: &GraphOptions, entries: &Entries, place: usize) {
        self.added.push(entries.targets[place]);
        if options.has_rows() {
            self.words.push(entries.rows[place]);
        }
        match options.weight_type {
            // As readers expect: a column alone in its own width, or words beside rows.
            Some(weight_type) if !options.has_rows() && weight_type.num_bytes() == 4 => {
                self.weights.push(entries.weights[place] as u32);
            }
            Some(_) => self.words.push(entries.weights[place]),
            None => {}
        }
    }

    fn bytes(&self) -> &[u8] {
        if self.weights.is_empty() { bytemuck::cast_slice(&self.words) } else { bytemuck::cast_slice(&self.weights) }
    }
}

/// Sizes of a view.
#[derive(Clone, Copy, Debug)]
pub(super) struct ViewCounts {
    pub num_vertices: usize,
    pub num_edges: u64,
    pub num_arcs: u64,
}

/// Overlay of a filtered view under changes in memory. Keys and properties are those of `whole`, the unfiltered
/// overlay; sizes, dead vertices and changed lists are its own.
#[derive(Debug)]
pub(super) struct FilteredOverlay {
    whole: Arc<dyn Overlay>,
    counts: ViewCounts,
    /// The dead ids; `None` if they are those of `whole`.
    dead: Option<Bitmap>,
    /// Differences to lists of the filtered snapshot; empty if the lists were laid out with all changes.
    out_lists: HashMap<VertexId, ListDifference>,
    in_lists: HashMap<VertexId, ListDifference>,
}

impl FilteredOverlay {
    pub(super) fn new(whole: Arc<dyn Overlay>, counts: ViewCounts, dead: Option<Bitmap>) -> Self {
        Self { whole, counts, dead, out_lists: HashMap::new(), in_lists: HashMap::new() }
    }

    fn lists(&mut self, direction: Direction) -> &mut HashMap<VertexId, ListDifference> {
        match direction {
            Direction::Out => &mut self.out_lists,
            Direction::In => &mut self.in_lists,
        }
    }

    fn list(&self, direction: Direction, vertex: VertexId) -> Option<&ListDifference> {
        match direction {
            Direction::Out => self.out_lists.get(&vertex),
            Direction::In => self.in_lists.get(&vertex),
        }
    }
}

impl Overlay for FilteredOverlay {
    fn vertex_bound(&self) -> usize {
        self.whole.vertex_bound()
    }

    fn num_vertices(&self) -> usize {
        self.counts.num_vertices
    }

    fn num_edges(&self) -> u64 {
        self.counts.num_edges
    }

    fn num_arcs(&self) -> u64 {
        self.counts.num_arcs
    }

    fn is_live(&self, vertex: VertexId) -> Option<bool> {
        match &self.dead {
            Some(dead) => Some(!dead.get(vertex as usize)),
            None => self.whole.is_live(vertex),
        }
    }

    fn vertex(&self, key: &Key) -> Option<VertexId> {
        self.whole.vertex(key)
    }

    fn key(&self, vertex: VertexId) -> Option<KeyRef<'_>> {
        self.whole.key(vertex)
    }

    fn properties(&self) -> Option<&dyn PropertyOverlay> {
        self.whole.properties()
    }

    fn rows(&self) -> Option<&dyn RowOverlay> {
        self.whole.rows()
    }

    fn num_changes(&self, direction: Direction, vertex: VertexId) -> ListChanges {
        self.list(direction, vertex).map_or_else(ListChanges::default, |list| ListChanges {
            removed: list.num_removed,
            added: list.added.len(),
        })
    }

    fn removed(&self, direction: Direction, vertex: VertexId) -> Cow<'_, [VertexId]> {
        Cow::Borrowed(self.list(direction, vertex).map_or(&[], |list| &list.removed))
    }

    fn for_each_added(&self, direction: Direction, vertex: VertexId, body: &mut AddedFragment<'_>) -> ControlFlow<()> {
        match self.list(direction, vertex) {
            Some(list) if !list.added.is_empty() => body(&list.added, list.bytes()),
            _ => ControlFlow::Continue(()),
        }
    }
}
