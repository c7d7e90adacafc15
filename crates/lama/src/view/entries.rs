//! The entries of out-lists side by side, with what stands beside them.

use std::ops::{ControlFlow, Range};

use base::VertexId;
use graph::{Graph, InEdges, Side, Weight, WeightType, WeightedEdges};

use super::View;
use crate::Result;
use crate::property::RowSetReader;

/// Entries of out-lists, side by side, ascending by source and target.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    /// The list of each.
    pub sources: Vec<VertexId>,
    /// The vertex that it leads to.
    pub targets: Vec<VertexId>,
    /// The bits of its weight; empty where edges have none.
    pub weights: Vec<u64>,
    /// The row of its properties; empty where edges have none.
    pub rows: Vec<u64>,
}

impl Entries {
    /// The number of entries.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether there are none.
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

    /// Whether entries lead to the same vertices as others do, with the same weights and rows.
    pub(super) fn is_same(&self, range: &Range<usize>, other: &Self, other_range: &Range<usize>) -> bool {
        fn same<T: PartialEq>(a: &[T], a_range: &Range<usize>, b: &[T], b_range: &Range<usize>) -> bool {
            a.get(a_range.clone()).unwrap_or_default() == b.get(b_range.clone()).unwrap_or_default()
        }
        same(&self.targets, range, &other.targets, other_range)
            && same(&self.weights, range, &other.weights, other_range)
            && same(&self.rows, range, &other.rows, other_range)
    }

    /// Leaves those at the places that `keeps` says.
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

    /// Sorts the entries from `start` on, which are of one list, by target and row.
    fn sort_from(&mut self, start: usize) {
        if self.targets[start..].is_sorted_by(|a, b| a < b) {
            return;
        }
        let row = |place: usize| self.rows.get(place).copied().unwrap_or(0);
        let mut order: Vec<usize> = (start..self.len()).collect();
        order.sort_by_key(|&place| (self.targets[place], row(place)));
        fn pick<T: Copy>(values: &mut [T], start: usize, order: &[usize]) {
            if !values.is_empty() {
                let picked: Vec<T> = order.iter().map(|&place| values[place]).collect();
                values[start..].copy_from_slice(&picked);
            }
        }
        pick(&mut self.targets, start, &order);
        pick(&mut self.weights, start, &order);
        pick(&mut self.rows, start, &order);
    }

    /// The same edges as entries of the lists of their targets, without the lists' vertices, and the end of each list.
    pub(super) fn turned(parts: &[Self], vertex_bound: usize) -> (Vec<usize>, Self) {
        let mut next = vec![0; vertex_bound + 1];
        parts.iter().flat_map(|part| &part.targets).for_each(|&target| next[target as usize + 1] += 1);
        (0..vertex_bound).for_each(|vertex| next[vertex + 1] += next[vertex]);
        let len = next[vertex_bound];
        let column = |is_there: bool| vec![0_u64; if is_there { len } else { 0 }];
        let is_there = |column: fn(&Self) -> &Vec<u64>| parts.iter().any(|part| !column(part).is_empty());
        let mut turned = Self {
            sources: Vec::new(),
            targets: vec![0; len],
            weights: column(is_there(|part| &part.weights)),
            rows: column(is_there(|part| &part.rows)),
        };
        for part in parts {
            for (place, (&source, &target)) in part.sources.iter().zip(&part.targets).enumerate() {
                let to = &mut next[target as usize];
                turned.targets[*to] = source;
                part.weights.get(place).into_iter().for_each(|&bits| turned.weights[*to] = bits);
                part.rows.get(place).into_iter().for_each(|&row| turned.rows[*to] = row);
                *to += 1;
            }
        }
        // Each start has become the end of its list.
        next.truncate(vertex_bound);
        (next, turned)
    }
}

impl View {
    /// Appends the entries of a list of a vertex for which `keeps` is true, by target and row: ascending by target and row.
    /// The row is 0 where edges have none. An in-list gives the vertex as the source of its entries, as an out-list does.
    ///
    /// # Errors
    /// Those of `keeps`.
    pub fn push_entries<E>(
        &self,
        side: Side,
        vertex: VertexId,
        to: &mut Entries,
        mut keeps: impl FnMut(VertexId, u64) -> Result<bool, E>,
    ) -> Result<(), E> {
        let start = to.len();
        let (targets, rows) = (&mut to.targets, &mut to.rows);
        // Weights are read in a second pass, in the same order: which entries stay is written down where weights follow.
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
                        failed = Some(error);
                        return ControlFlow::Break(());
                    }
                }
            }
            ControlFlow::Continue(())
        };
        let _ = match (self.options().has_rows(), side) {
            (true, Side::Out) => self.for_each_out_row(vertex, push),
            (true, Side::In) => self.for_each_in_row(vertex, push),
            (false, Side::Out) => self.for_each_out_fragment(vertex, |part| push(part, &[])),
            (false, Side::In) => self.for_each_in_fragment(vertex, |part| push(part, &[])),
        };
        if let Some(error) = failed {
            return Err(error);
        }
        if to.len() == start {
            return Ok(());
        }
        match self.options().weight_type {
            None => {}
            Some(WeightType::U32) => self.push_weights::<u32>(side, vertex, &kept, &mut to.weights),
            Some(WeightType::I64) => self.push_weights::<i64>(side, vertex, &kept, &mut to.weights),
            Some(WeightType::F32) => self.push_weights::<f32>(side, vertex, &kept, &mut to.weights),
            Some(WeightType::F64) => self.push_weights::<f64>(side, vertex, &kept, &mut to.weights),
        }
        to.sources.resize(to.targets.len(), vertex);
        to.sort_from(start);
        Ok(())
    }

    /// Appends the entries of an out-list whose rows a test let pass, or that were not tested, and whose targets
    /// `is_wanted` says; of a graph without weights.
    ///
    /// # Errors
    /// There is no such row; the numbers of rows are damaged.
    pub(super) fn push_passing(
        &self,
        vertex: VertexId,
        to: &mut Entries,
        reader: &mut RowSetReader<'_>,
        is_wanted: impl Fn(VertexId) -> bool,
    ) -> Result<()> {
        let (start, mut failed) = (to.len(), None);
        let _ = self.for_each_out_row(vertex, |targets, rows| {
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
        to.sort_from(start);
        failed.map_or(Ok(()), Err)
    }

    fn push_weights<W: Weight>(&self, side: Side, vertex: VertexId, kept: &[bool], to: &mut Vec<u64>) {
        let mut kept = kept.iter();
        let push = |_: &[VertexId], weights: &[W]| {
            let stays = weights.iter().zip(&mut kept).filter(|(_, is_kept)| **is_kept);
            to.extend(stays.map(|(weight, _)| weight.bits()));
            ControlFlow::Continue(())
        };
        let _ = match side {
            Side::Out => self.for_each_weighted_out_fragment(vertex, push),
            Side::In => self.for_each_weighted_in_fragment(vertex, push),
        };
    }
}
