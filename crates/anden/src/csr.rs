//! The lists of a view as the arrays of a CSR.

use std::ops::{ControlFlow, Range};

use anden_base::VertexId;
use anden_base::mapped::{FileBytes, MappedSlice};
use anden_graph::walk::try_walk;
use anden_graph::{Direction, Graph, Parts, Weight, WeightType, WeightedEdges, Weights};
use anden_snapshots::WholeLists;
use bytemuck::Pod;

use crate::weighted::on_weighted;
use crate::{Error, Result, View};

/// Arcs of a part that one worker copies.
const PART_ARCS: u64 = 1 << 20;
/// Vertices whose degrees one worker reads.
const PART_VERTICES: usize = 1 << 18;

/// The lists of a view as arrays: the neighbors of vertex `v` are `targets[offsets[v]..offsets[v + 1]]`, by id.
///
/// Clones share the arrays, which live as long as a clone.
#[derive(Clone, Debug)]
pub struct CsrArrays {
    /// The start of each list, and the end of the last. *Shape*: [`vertex_bound`](View::vertex_bound) + 1.
    pub offsets: Vec<i64>,
    /// All lists, one after the other.
    pub targets: MappedSlice<VertexId>,
    /// The weights, parallel to the targets; `None` in a graph without weights.
    pub weights: Option<Weights>,
    /// Whether the targets are a copy, in place of the bytes that the database stores.
    pub is_copy: bool,
}

impl View {
    /// The out-lists, or the in-lists, as arrays. Targets and weights are those that the database stores, without a
    /// copy, if the view is one base: after a load, a merge, or an append to a database without snapshots. Otherwise
    /// all workers copy the lists.
    ///
    /// ```
    /// use anden::graph::Direction;
    /// use anden::{Database, KeyScheme, Options};
    ///
    /// let db = Database::in_memory(Options { keys: KeyScheme::Dense, ..Options::default() })?;
    /// db.add_edges(&[(0, 1), (0, 2), (2, 1)])?;
    /// let csr = db.view()?.csr(Direction::Out)?;
    /// assert_eq!((&csr.offsets[..], &csr.targets[..]), (&[0, 2, 2, 3][..], &[1, 2, 1][..]));
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsupported`]: the graph has no in-lists. [`Error::Memory`]: the budget is too small for the arrays.
    /// Damage met on the way; cancellation.
    pub fn csr(&self, direction: Direction) -> Result<CsrArrays> {
        if !self.stored().has_lists(direction) {
            return Err(Error::Unsupported("in-lists are needed: load without --out-only".into()));
        }
        let lists = self.all_lists()?;
        let whole = if self.chosen().is_none() { lists.whole_lists(direction)? } else { None };
        let weight_bytes = self.weight_type().map_or(0, WeightType::num_bytes) as u64;
        let copied = if whole.is_some() { 0 } else { lists.num_arcs() * (4 + weight_bytes) };
        let num_bytes = 8 * (self.vertex_bound() as u64 + 1) + copied;
        self.require_reader("reading lists into arrays", num_bytes)?;
        let offsets = self.offsets(direction)?;
        let (whole, is_copy) = match whole {
            Some(whole) => (whole, false),
            None => (on_weighted!(self, graph => self.copied(graph, direction, &offsets))?, true),
        };
        // Damaged lists look empty, so the arrays are complete only if this check passes.
        self.check_lists()?;
        Ok(CsrArrays { offsets, targets: whole.targets, weights: whole.weights, is_copy })
    }

    fn offsets(&self, direction: Direction) -> Result<Vec<i64>> {
        let (context, lists, bound) = (self.context(), self.lists(), self.vertex_bound());
        let mut offsets = vec![0_i64; bound + 1];
        let parts = offsets[1..].chunks_mut(PART_VERTICES).enumerate().collect();
        context.pool.for_each_item(parts, |_, (part, degrees): (usize, &mut [i64])| {
            let first = part * PART_VERTICES;
            for (vertex, degree) in (first as VertexId..).zip(degrees) {
                *degree = lists.degree(direction, vertex) as i64;
            }
        });
        context.progress.check()?;
        let mut sum = 0;
        for offset in &mut offsets {
            sum += *offset;
            *offset = sum;
        }
        Ok(offsets)
    }

    /// Copies all lists to the places that the offsets give them.
    fn copied(&self, graph: &impl WeightedEdges, direction: Direction, offsets: &[i64]) -> Result<WholeLists> {
        let mut targets = ArrayRoom::<VertexId>::new(offsets);
        let weights = match graph.weight_type() {
            None => {
                self.fill(
                    graph,
                    direction,
                    offsets,
                    &mut targets,
                    &mut ArrayRoom::<VertexId>::new(&[]),
                    |vertex, lists, _| graph.for_each_fragment(direction, vertex, |list| lists.push(list)),
                )?;
                None
            }
            Some(WeightType::U32) => Some(self.weighted::<u32>(graph, direction, offsets, &mut targets)?),
            Some(WeightType::I64) => Some(self.weighted::<i64>(graph, direction, offsets, &mut targets)?),
            Some(WeightType::F32) => Some(self.weighted::<f32>(graph, direction, offsets, &mut targets)?),
            Some(WeightType::F64) => Some(self.weighted::<f64>(graph, direction, offsets, &mut targets)?),
        };
        Ok(WholeLists { targets: targets.finish(), weights })
    }

    fn weighted<W: Weight>(
        &self,
        graph: &impl WeightedEdges,
        direction: Direction,
        offsets: &[i64],
        targets: &mut ArrayRoom<VertexId>,
    ) -> Result<Weights> {
        let mut weights = ArrayRoom::<W>::new(offsets);
        self.fill(graph, direction, offsets, targets, &mut weights, |vertex, lists, values| {
            graph.for_each_weighted_fragment::<W>(direction, vertex, |list, weights| {
                values.push(weights)?;
                lists.push(list)
            })
        })?;
        Ok(W::column(weights.finish()))
    }

    /// Fills both arrays by parts of about equally many arcs, on all workers.
    fn fill<W: Pod + Send>(
        &self,
        graph: &impl WeightedEdges,
        direction: Direction,
        offsets: &[i64],
        targets: &mut ArrayRoom<VertexId>,
        weights: &mut ArrayRoom<W>,
        copy: impl Fn(VertexId, &mut ArrayPart<'_, VertexId>, &mut ArrayPart<'_, W>) -> ControlFlow<()> + Sync,
    ) -> Result<()> {
        let context = self.context();
        let parts = parts_of(offsets);
        let kind = if weights.len == 0 { Parts::Targets } else { Parts::Weighted };
        let places = targets.places(&parts, offsets).into_iter().zip(weights.places(&parts, offsets));
        let work = parts.iter().cloned().zip(places).collect();
        let copied = context.pool.share(work, |_, (vertices, (mut targets, mut weights))| -> Result<()> {
            context.progress.check()?;
            try_walk(graph, direction, kind, vertices, |vertex| {
                let start = offsets[vertex as usize] as usize;
                (targets.next, weights.next) = (start, start);
                // A list that does not fit was damaged after its degree was read, which the caller's check reports.
                let _ = copy(vertex, &mut targets, &mut weights);
                Ok(())
            })
        });
        copied.into_iter().collect()
    }
}

/// Ranges of vertices with about [`PART_ARCS`] arcs each.
fn parts_of(offsets: &[i64]) -> Vec<Range<VertexId>> {
    let mut parts = Vec::new();
    let (bound, mut first) = (offsets.len() - 1, 0);
    while first < bound {
        let end = offsets.partition_point(|&offset| offset <= offsets[first] + PART_ARCS as i64) - 1;
        let end = end.clamp(first + 1, bound);
        parts.push(first as VertexId..end as VertexId);
        first = end;
    }
    parts
}

/// An array that workers fill, in words, so that it becomes a [`MappedSlice`] without a copy.
struct ArrayRoom<T> {
    words: Vec<u64>,
    len: usize,
    marker: std::marker::PhantomData<T>,
}

/// The part of an array that one worker fills.
struct ArrayPart<'a, T> {
    values: &'a mut [T],
    /// The position of the first value in the whole array.
    start: usize,
    /// The position of the next value there.
    next: usize,
}

impl<T: Pod> ArrayRoom<T> {
    /// An array for all lists; without offsets, an array that stays empty.
    fn new(offsets: &[i64]) -> Self {
        let len = offsets.last().map_or(0, |&end| end as usize);
        let words = vec![0; (len * size_of::<T>()).div_ceil(size_of::<u64>())];
        Self { words, len, marker: std::marker::PhantomData }
    }

    fn places(&mut self, parts: &[Range<VertexId>], offsets: &[i64]) -> Vec<ArrayPart<'_, T>> {
        let len = self.len;
        let mut rest: &mut [T] = &mut bytemuck::cast_slice_mut(&mut self.words)[..len];
        let mut places = Vec::with_capacity(parts.len());
        for part in parts {
            let range = offsets[part.start as usize] as usize..offsets[part.end as usize] as usize;
            let (values, after) = std::mem::take(&mut rest).split_at_mut(range.len().min(len));
            places.push(ArrayPart { values, start: range.start, next: range.start });
            rest = after;
        }
        places
    }

    fn finish(self) -> MappedSlice<T> {
        let bytes = FileBytes::owned(self.words, self.len * size_of::<T>());
        bytes.and_then(MappedSlice::new).unwrap_or_else(MappedSlice::empty)
    }
}

impl<T: Pod> ArrayPart<'_, T> {
    /// Copies a fragment; breaks if it does not fit.
    fn push(&mut self, fragment: &[T]) -> ControlFlow<()> {
        let start = self.next - self.start;
        match self.values.get_mut(start..start + fragment.len()) {
            Some(values) => {
                values.copy_from_slice(fragment);
                self.next += fragment.len();
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        }
    }
}
