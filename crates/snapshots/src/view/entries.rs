//! Entries of lists in parallel arrays.

use std::ops::{ControlFlow, Range};

use anden_base::VertexId;
use anden_graph::{Direction, Graph, Weight, WeightType, WeightedEdges};

use super::SnapshotView;
use crate::Result;
use crate::property::RowSetReader;
use crate::table::{PAGE_VERTICES, page_of};

/// Entries of lists in parallel arrays, ascending by source and target.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    /// The vertex of each entry's list.
    pub sources: Vec<VertexId>,
    /// The target of each entry.
    pub targets: Vec<VertexId>,
    /// The bits of each weight; empty if edges have none.
    pub weights: Vec<u64>,
    /// The row of each entry; empty if edges have none.
    pub rows: Vec<u64>,
}

impl Entries {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    pub(super) fn num_bytes(&self) -> u64 {
        (4 * (self.sources.len() + self.targets.len()) + 8 * (self.weights.len() + self.rows.len())) as u64
    }

    /// Appends a range of other entries.
    pub fn extend_from(&mut self, other: &Self, range: Range<usize>) {
        self.sources.extend_from_slice(&other.sources[range.clone()]);
        self.targets.extend_from_slice(&other.targets[range.clone()]);
        self.weights.extend_from_slice(other.weights.get(range.clone()).unwrap_or_default());
        self.rows.extend_from_slice(other.rows.get(range).unwrap_or_default());
    }

    /// Whether two ranges of entries have equal targets, weights and rows.
    pub(super) fn is_same(&self, range: &Range<usize>, other: &Self, other_range: &Range<usize>) -> bool {
        fn same<T: PartialEq>(a: &[T], a_range: &Range<usize>, b: &[T], b_range: &Range<usize>) -> bool {
            a.get(a_range.clone()).unwrap_or_default() == b.get(b_range.clone()).unwrap_or_default()
        }
        same(&self.targets, range, &other.targets, other_range)
            && same(&self.weights, range, &other.weights, other_range)
            && same(&self.rows, range, &other.rows, other_range)
    }

    /// Keeps the entries at the positions for which `keeps` is true.
    pub fn retain(&mut self, keeps: impl Fn(usize) -> bool) {
        fn leave<T>(values: &mut Vec<T>, keeps: impl Fn(usize) -> bool) {
            let mut place = 0..;
            values.retain(|_| place.next().is_some_and(&keeps));
        }
        leave(&mut self.sources, &keeps);
        leave(&mut self.targets, &keeps);
        leave(&mut self.weights, &keeps);
        leave(&mut self.rows, &keeps);
    }

    /// Sorts the entries of each list from `start` on.
    fn sort_lists_from(&mut self, mut start: usize) {
        while let Some(source) = self.sources.get(start) {
            let len = self.sources[start..].iter().take_while(|other| *other == source).count();
            self.sort_list(start..start + len);
            start += len;
        }
    }

    /// Sorts the entries at `range`, which belong to one list, by target and row.
    fn sort_list(&mut self, range: Range<usize>) {
        // Most lists are sorted. Only several fragments or parallel edges need the sort.
        if self.targets[range.clone()].is_sorted_by(|a, b| a < b) {
            return;
        }
        let row = |place: usize| self.rows.get(place).copied().unwrap_or(0);
        let mut order: Vec<usize> = range.clone().collect();
        order.sort_by_key(|&place| (self.targets[place], row(place)));
        fn pick<T: Copy>(values: &mut [T], range: Range<usize>, order: &[usize]) {
            if !values.is_empty() {
                let picked: Vec<T> = order.iter().map(|&place| values[place]).collect();
                values[range].copy_from_slice(&picked);
            }
        }
        pick(&mut self.targets, range.clone(), &order);
        pick(&mut self.weights, range.clone(), &order);
        pick(&mut self.rows, range, &order);
    }
}

impl SnapshotView {
    /// Appends those entries of one list for which `keeps(target, row)` is true, ascending by target and row. The row
    /// is 0 if edges have none. An entry of an in-list has the vertex of the list as its source, as in an out-list.
    ///
    /// # Errors
    /// Those of `keeps`.
    pub fn push_entries<E>(
        &self,
        direction: Direction,
        vertex: VertexId,
        to: &mut Entries,
        mut keeps: impl FnMut(VertexId, u64) -> Result<bool, E>,
    ) -> Result<(), E> {
        let start = to.len();
        let (targets, rows) = (&mut to.targets, &mut to.rows);
        // A second pass reads the weights in equal order, and needs to know which entries stay.
        let has_weights = self.options().weight_type.is_some();
        if has_weights {
            self.fix_list_order(vertex);
        }
        let (mut kept, mut failed) = (Vec::new(), None);
        let mut push = |part: &[VertexId], part_rows: &[u64]| {
            for (place, &target) in part.iter().enumerate() {
                let row = part_rows.get(place).copied();
                match keeps(target, row.unwrap_or(0)) {
                    Ok(is_kept) => {
                        if is_kept {
                            targets.push(target);
                            rows.extend(row);
                        }
                        if has_weights {
                            kept.push(is_kept);
                        }
                    }
                    Err(error) => {
                        // A walk can only break, so the error is kept aside.
                        failed = Some(error);
                        return ControlFlow::Break(());
                    }
                }
            }
            ControlFlow::Continue(())
        };
        let _ = match (self.options().has_rows(), direction) {
            (true, Direction::Out) => self.for_each_row(Direction::Out, vertex, push),
            (true, Direction::In) => self.for_each_row(Direction::In, vertex, push),
            (false, Direction::Out) => self.for_each_fragment(Direction::Out, vertex, |part| push(part, &[])),
            (false, Direction::In) => self.for_each_fragment(Direction::In, vertex, |part| push(part, &[])),
        };
        if let Some(error) = failed {
            return Err(error);
        }
        // Without kept targets, no weight is read.
        if to.len() == start {
            return Ok(());
        }
        match self.options().weight_type {
            None => {}
            Some(WeightType::U32) => self.push_weights::<u32>(direction, vertex, &kept, &mut to.weights),
            Some(WeightType::I64) => self.push_weights::<i64>(direction, vertex, &kept, &mut to.weights),
            Some(WeightType::F32) => self.push_weights::<f32>(direction, vertex, &kept, &mut to.weights),
            Some(WeightType::F64) => self.push_weights::<f64>(direction, vertex, &kept, &mut to.weights),
        }
        to.sources.resize(to.targets.len(), vertex);
        // Fragments ascend, but together they may not.
        to.sort_list(start..to.len());
        Ok(())
    }

    /// Appends entries of the out-lists of `vertices`, which are on one page, in a graph without weights. An entry
    /// stays if `reader` passes or has not tested its row, and if `is_wanted` holds for both of its ends.
    ///
    /// # Errors
    /// An unknown row; damaged lists or row numbers.
    pub(super) fn push_passing(
        &self,
        vertices: Range<VertexId>,
        to: &mut Entries,
        reader: &mut RowSetReader<'_>,
        is_wanted: impl Fn(VertexId) -> bool,
    ) -> Result<()> {
        let page = page_of(vertices.start);
        let whole = self.out_adjacency.page_in_one_slice(page)?;
        let rows = whole.as_ref().and_then(|whole| whole.columns?.rows.as_ref());
        let (Some(whole), Some(rows)) = (&whole, rows) else {
            // A page in fragments has no array of rows, so its lists are read one by one.
            return vertices
                .filter(|&vertex| is_wanted(vertex))
                .try_for_each(|vertex| self.push_passing_list(vertex, to, reader, &is_wanted));
        };
        // Positions ascend, so one walk over the vertices finds the list of each. Lists without a passing row are not
        // read.
        let (start, first) = (to.len(), (page * PAGE_VERTICES) as VertexId);
        let place_of = |vertex: VertexId| whole.offsets[(vertex - first) as usize] as usize;
        let (places, mut source) = (place_of(vertices.start)..place_of(vertices.end), vertices.start);
        let rows = &rows[whole.edge_base + places.start..whole.edge_base + places.end];
        let targets = &whole.targets[places.clone()];
        reader.for_each_passing(rows, |place| {
            // Empty lists are passed over: their end is their start.
            while place_of(source + 1) <= places.start + place {
                source += 1;
            }
            if is_wanted(source) && is_wanted(targets[place]) {
                to.sources.push(source);
                to.targets.push(targets[place]);
                to.rows.push(rows[place]);
            }
        })?;
        // A simple graph has no parallel edges, so its lists are in order already.
        if self.options().multigraph {
            to.sort_lists_from(start);
        }
        Ok(())
    }

    fn push_passing_list(
        &self,
        vertex: VertexId,
        to: &mut Entries,
        reader: &mut RowSetReader<'_>,
        is_wanted: impl Fn(VertexId) -> bool,
    ) -> Result<()> {
        let (start, mut failed) = (to.len(), None);
        let _ = self.for_each_row(Direction::Out, vertex, |targets, rows| {
            let push = |place: usize| {
                if is_wanted(targets[place]) {
                    to.targets.push(targets[place]);
                    to.rows.push(rows[place]);
                }
            };
            match reader.for_each_passing(rows, push) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        });
        to.sources.resize(to.targets.len(), vertex);
        to.sort_list(start..to.len());
        failed.map_or(Ok(()), Err)
    }

    fn push_weights<W: Weight>(&self, direction: Direction, vertex: VertexId, kept: &[bool], to: &mut Vec<u64>) {
        let mut kept = kept.iter();
        let push = |_: &[VertexId], weights: &[W]| {
            let stays = weights.iter().zip(&mut kept).filter(|(_, is_kept)| **is_kept);
            to.extend(stays.map(|(weight, _)| weight.bits()));
            ControlFlow::Continue(())
        };
        let _ = self.for_each_weighted_fragment(direction, vertex, push);
    }
}
