//! A part of a view that changes lie over: the part of the snapshot below, with what is left of the changes over it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use base::VertexId;
use base::parallel::Pool;
use base::progress::Progress;
use graph::{Direction, Graph, Side};

use super::View;
use super::entries::Entries;
use super::filtered::EntryFilter;
use crate::key::{Key, KeyRef};
use crate::options::GraphOptions;
use crate::overlay::{AddedPiece, ListChanges, Overlay, Underlay};
use crate::property::{PropertyOverlay, RowOverlay};
use crate::{Error, Result};

/// Lists that a worker compares at once.
const COMPARED_LISTS: usize = 64;

impl View {
    /// The snapshot that changes in memory lie over; `None` where none do.
    pub fn below(&self) -> Option<&View> {
        self.overlay.as_ref()?.below()
    }

    /// How many out-lists changes in memory may touch.
    pub fn num_touched(&self) -> usize {
        self.touched(Side::Out).len()
    }

    /// As [`filtered`](Self::filtered), by a filter that hides no vertex; `part` is what the same filter leaves of the
    /// snapshot [`below`](Self::below).
    ///
    /// Cost: reads the lists that the changes touch, and keeps how they differ; ten bits a vertex and side.
    ///
    /// # Errors
    /// Those of `filter`; cancellation; damage met on the way.
    pub fn filtered_over<E: From<Error> + Send>(
        &self,
        part: &Self,
        filter: &EntryFilter<'_, E>,
        pool: &Pool,
        progress: &dyn Progress,
    ) -> Result<Self, E> {
        let Some(whole) = self.overlay.clone() else { return Ok(part.clone()) };
        let sides = [Some(Side::Out), self.options().stores_in_lists().then_some(Side::In)];
        let underlay = Underlay::brief(part, self.vertex_bound);
        let mut changes = FilteredChanges { num_edges: part.num_edges(), num_arcs: part.num_arcs(), ..whole.into() };
        let (mut num_arcs, mut num_loops) = (0, 0);
        for side in sides.into_iter().flatten() {
            let touched = self.touched(side);
            let found = pool.map_chunks(0..touched.len(), COMPARED_LISTS, |_, range| -> Result<Vec<_>, E> {
                progress.check().map_err(Error::from)?;
                self.compared(side, &touched[range], part, filter)
            });
            for (vertex, list) in found.into_iter().collect::<Result<Vec<_>, E>>()?.into_iter().flatten() {
                match list.removed.first() {
                    Some(&first) => underlay.cut(side, vertex, first),
                    None => underlay.touch(side, vertex),
                }
                if side == Side::Out {
                    num_arcs += list.added.len() as i64 - list.num_removed as i64;
                    num_loops += list.num_loops;
                }
                changes.lists(side).insert(vertex, list);
            }
        }
        self.check().map_err(Error::from)?;
        part.check().map_err(Error::from)?;
        let num_edges = match self.options().direction {
            Direction::Directed => num_arcs,
            Direction::Undirected => (num_arcs + num_loops) / 2,
        };
        changes.num_arcs = changes.num_arcs.saturating_add_signed(num_arcs);
        changes.num_edges = changes.num_edges.saturating_add_signed(num_edges);
        Ok(underlay.overlaid(Arc::new(changes)))
    }

    /// The vertices whose lists the changes may touch, ascending.
    fn touched(&self, side: Side) -> Vec<VertexId> {
        let touched = self.side(side).map_or(Vec::new(), |lists| lists.touched());
        touched.into_iter().filter(|&vertex| (vertex as usize) < self.vertex_bound).collect()
    }

    /// How the lists of these vertices, filtered, differ from those of the part.
    fn compared<E: From<Error>>(
        &self,
        side: Side,
        vertices: &[VertexId],
        part: &Self,
        filter: &EntryFilter<'_, E>,
    ) -> Result<Vec<(VertexId, ListDifference)>, E> {
        let kept = self.kept_entries(side, vertices.iter().copied(), None, filter)?;
        let (mut differences, mut start) = (Vec::new(), 0);
        for &vertex in vertices {
            let end = start + kept.sources[start..].iter().take_while(|&&list| list == vertex).count();
            let mut before = Entries::default();
            if (vertex as usize) < part.vertex_bound {
                part.push_entries(side, vertex, &mut before, |_, _| Ok::<_, E>(true))?;
            }
            let list = ListDifference::new(self.options(), vertex, &before, &kept, start..end);
            differences.extend(list.map(|list| (vertex, list)));
            start = end;
        }
        Ok(differences)
    }
}

/// How a list differs: all entries with some targets go, and others come.
#[derive(Debug, Default)]
struct ListDifference {
    removed: Vec<VertexId>,
    /// How many entries have these targets.
    num_removed: usize,
    added: Vec<VertexId>,
    /// What stands beside each that comes: in whole words, or weights of four bytes.
    words: Vec<u64>,
    weights: Vec<u32>,
    /// Loops that come, less those that go.
    num_loops: i64,
}

impl ListDifference {
    /// From the entries of a list to those at `range` of others; `None` where they are the same.
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
            if before.is_same(&old_group, after, &new_group) {
                continue;
            }
            let num_loops = |entries: &Entries, group: &Range<usize>| {
                if entries.targets.get(group.start) == Some(&vertex) { group.len() as i64 } else { 0 }
            };
            if !old_group.is_empty() {
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

/// What is left of the changes over a snapshot. Keys, properties and vertices are those of the changes; lists are its own.
#[derive(Debug)]
struct FilteredChanges {
    whole: Arc<dyn Overlay>,
    num_edges: u64,
    num_arcs: u64,
    out_lists: HashMap<VertexId, ListDifference>,
    in_lists: HashMap<VertexId, ListDifference>,
}

impl From<Arc<dyn Overlay>> for FilteredChanges {
    fn from(whole: Arc<dyn Overlay>) -> Self {
        Self { whole, num_edges: 0, num_arcs: 0, out_lists: HashMap::new(), in_lists: HashMap::new() }
    }
}

impl FilteredChanges {
    fn lists(&mut self, side: Side) -> &mut HashMap<VertexId, ListDifference> {
        match side {
            Side::Out => &mut self.out_lists,
            Side::In => &mut self.in_lists,
        }
    }

    fn list(&self, side: Side, vertex: VertexId) -> Option<&ListDifference> {
        match side {
            Side::Out => self.out_lists.get(&vertex),
            Side::In => self.in_lists.get(&vertex),
        }
    }
}

impl Overlay for FilteredChanges {
    fn vertex_bound(&self) -> usize {
        self.whole.vertex_bound()
    }

    fn num_vertices(&self) -> usize {
        self.whole.num_vertices()
    }

    fn num_edges(&self) -> u64 {
        self.num_edges
    }

    fn num_arcs(&self) -> u64 {
        self.num_arcs
    }

    fn is_live(&self, vertex: VertexId) -> Option<bool> {
        self.whole.is_live(vertex)
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

    fn num_changes(&self, side: Side, vertex: VertexId) -> ListChanges {
        self.list(side, vertex).map_or_else(ListChanges::default, |list| ListChanges {
            removed: list.num_removed,
            added: list.added.len(),
        })
    }

    fn removed(&self, side: Side, vertex: VertexId) -> Cow<'_, [VertexId]> {
        Cow::Borrowed(self.list(side, vertex).map_or(&[], |list| &list.removed))
    }

    fn for_each_added(&self, side: Side, vertex: VertexId, body: &mut AddedPiece<'_>) -> ControlFlow<()> {
        match self.list(side, vertex) {
            Some(list) if !list.added.is_empty() => body(&list.added, list.bytes()),
            _ => ControlFlow::Continue(()),
        }
    }
}
