//! Assigns edges to snapshots by their times: one snapshot for each period.
//!
//! While blocks are read, the period of each row is noted. After the last block, the periods that occur become
//! snapshots. The snapshot of a period has what a load of all rows until its end gives. A simple graph merges parallel
//! edges of these rows only, so the data of an edge may change from snapshot to snapshot. A vertex is in the snapshots
//! from that of its first edge on; a vertex that the inputs list is in all.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use anden_base::VertexId;
use anden_formats::{InputPath, SourceFacts};
use anden_graph::property::{MICROS_PER_DAY, PropertyColumn, PropertySchema, PropertyValue};
use anden_graph::{Weight, WeightType};
use anden_snapshots::{ArcData, GraphOptions, KeyScheme, SnapshotTag};
use parking_lot::Mutex;

use super::arcs::{LoadArc, Payload};
use super::budget::LoadBudget;
use super::later_arcs::{ChangedLists, LaterVertices};
use super::lists::BuiltLists;
use super::options::{Duplicates, LoadOptions, no_choice, too_large_a_sum};
use super::period::SnapshotBy;
use super::row_numbers::OpenNumbering;
use super::spread::MAX_SNAPSHOTS;
use crate::{Error, Result};

/// Bytes of a row: its period, and its snapshot while one becomes the other.
const ROW_BYTES: u64 = 8;
/// The snapshot of a vertex without edges.
const NEVER: u32 = u32::MAX;

/// Chooses the snapshot of an edge by its time.
pub(crate) struct TimeSplit {
    by: SnapshotBy,
    /// The place of the column among the edge properties of the inputs.
    place: usize,
    /// Whether the column is an edge property of the graph.
    is_stored: bool,
    graph: GraphOptions,
    duplicates: Duplicates,
    budget: LoadBudget,
    /// By block: its position in the input, and the periods of its rows.
    read: Mutex<Vec<(u64, Vec<i32>)>>,
    num_bytes: AtomicU64,
    snapshots: OnceLock<RowSnapshots>,
    /// By vertex: the first snapshot with an edge of it.
    firsts: OnceLock<Vec<AtomicU32>>,
}

/// The snapshots of all rows.
#[derive(Debug)]
struct RowSnapshots {
    /// By snapshot: the number of its period.
    periods: Vec<i32>,
    /// By row of the input: its snapshot, counted from 0.
    of_row: Vec<u32>,
}

/// The name and the time of a snapshot.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeriodTag {
    name: Option<String>,
    as_of: Option<i64>,
}

impl From<SnapshotTag<'_>> for PeriodTag {
    fn from(tag: SnapshotTag<'_>) -> Self {
        Self { name: tag.name.map(str::to_owned), as_of: tag.as_of }
    }
}

impl PeriodTag {
    pub(crate) fn as_tag(&self) -> SnapshotTag<'_> {
        SnapshotTag { name: self.name.as_deref(), as_of: self.as_of }
    }
}

impl TimeSplit {
    /// `None` unless the options ask for it. `stored` are the edge properties that the graph gets.
    pub(crate) fn new(
        options: &LoadOptions,
        facts: &SourceFacts,
        stored: &PropertySchema,
        budget: LoadBudget,
    ) -> Option<Self> {
        let by = options.snapshot_by.clone()?;
        // The source refuses inputs without the column.
        let place = facts.edge_properties.find(&by.column)?;
        let is_stored = stored.find(&by.column).is_some();
        Some(Self {
            by,
            place,
            is_stored,
            graph: options.graph,
            duplicates: options.duplicates,
            budget,
            read: Mutex::default(),
            num_bytes: AtomicU64::new(0),
            snapshots: OnceLock::new(),
            firsts: OnceLock::new(),
        })
    }

    /// Bytes of memory.
    pub(crate) fn num_bytes(&self) -> u64 {
        // Relaxed: the checks of the budget need no order.
        self.num_bytes.load(Ordering::Relaxed)
    }

    fn reserve(&self, num_bytes: u64) -> Result<()> {
        let num_bytes = self.num_bytes.fetch_add(num_bytes, Ordering::Relaxed) + num_bytes;
        self.budget.check("the times of the edges, which must be in memory,", num_bytes)
    }

    /// Notes the times of a block. Takes their column away if the graph does not store it.
    pub(crate) fn take_times(&self, sequence: u64, columns: &mut Vec<PropertyColumn>) -> Result<()> {
        let Some(column) = columns.get(self.place) else { return Ok(()) };
        self.reserve(ROW_BYTES * column.len() as u64)?;
        let periods = column.iter().map(|value| self.period(value)).collect::<Result<Vec<_>>>()?;
        self.read.lock().push((sequence, periods));
        if !self.is_stored {
            columns.remove(self.place);
        }
        Ok(())
    }

    fn period(&self, time: PropertyValue<'_>) -> Result<i32> {
        let micros = match time {
            PropertyValue::Timestamp(micros) => Some(micros),
            PropertyValue::Date(days) => i64::from(days).checked_mul(MICROS_PER_DAY),
            // The source refuses nulls and other types.
            _ => return Err(Error::internal(format!("{time} is no time of an edge"))),
        };
        micros.and_then(|micros| self.by.period.number(micros)).ok_or_else(|| {
            let column = &self.by.column;
            let what = format!("column {column:?}: {time} has no period, because its year is not from 0000 to 9999");
            Error::options(format!("{what}; leave out --snapshot-by, or correct the time"))
        })
    }

    /// Ends the input: the periods become snapshots.
    pub(crate) fn end_rows(&self) -> Result<()> {
        let mut blocks = std::mem::take(&mut *self.read.lock());
        // Rows count in the order of the input.
        blocks.sort_unstable_by_key(|(sequence, _)| *sequence);
        let mut periods: Vec<i32> = Vec::new();
        for (_, block) in &blocks {
            let is_new = |period: &i32| periods.binary_search(period).is_err();
            let new: Vec<i32> = block.iter().copied().filter(is_new).collect();
            periods.extend(new);
            periods.sort_unstable();
            periods.dedup();
        }
        if periods.len() > MAX_SNAPSHOTS as usize {
            let what = format!("the times have {} periods, and a load makes at most {MAX_SNAPSHOTS}", periods.len());
            return Err(Error::options(format!("{what} snapshots; choose a longer period for --snapshot-by")));
        }
        let mut of_row = Vec::with_capacity(blocks.iter().map(|(_, block)| block.len()).sum());
        let mut last = 0;
        for (_, block) in blocks {
            for period in block {
                // Most inputs are sorted by time, so the last answer usually holds again.
                if periods.get(last) != Some(&period) {
                    last = periods.partition_point(|&other| other < period);
                }
                of_row.push(last as u32);
            }
        }
        self.snapshots.get_or_init(|| RowSnapshots { periods, of_row });
        Ok(())
    }

    /// Begins to note the first edges of `num_vertices` vertices.
    pub(crate) fn begin_vertices(&self, num_vertices: u64) -> Result<()> {
        self.reserve(size_of::<u32>() as u64 * num_vertices)?;
        self.firsts.get_or_init(|| (0..num_vertices).map(|_| AtomicU32::new(NEVER)).collect());
        Ok(())
    }

    /// Notes that the inputs list a vertex.
    pub(crate) fn list_vertex(&self, vertex: VertexId) {
        self.see_vertex(vertex, 0);
    }

    fn see_vertex(&self, vertex: VertexId, snapshot: u32) {
        if let Some(first) = self.firsts.get().and_then(|firsts| firsts.get(vertex as usize)) {
            // Read first, because most edges are not the first of a vertex and a write is slow.
            if first.load(Ordering::Relaxed) > snapshot {
                first.fetch_min(snapshot, Ordering::Relaxed);
            }
        }
    }

    /// Notes the ends of edges, which are ids and have rows.
    pub(crate) fn see<P: Payload>(&self, edges: &[LoadArc<P>]) {
        for edge in edges {
            let snapshot = self.snapshot(edge.payload());
            self.see_vertex(edge.list(), snapshot);
            self.see_vertex(edge.neighbor(), snapshot);
        }
    }

    /// The snapshot of a row of the input.
    fn snapshot(&self, edge: impl Payload) -> u32 {
        let of_row = self.snapshots.get().map_or(&[][..], |snapshots| &snapshots.of_row);
        of_row[edge.data().row as usize]
    }

    /// Notes the changes of later snapshots in lists with all rows of the input, merges parallel edges if the graph is
    /// simple, and renumbers rows.
    pub(crate) fn note<P: Payload>(
        &self,
        first: VertexId,
        lists: &mut BuiltLists<P>,
        noted: &mut ChangedLists,
        numbering: Option<&mut OpenNumbering<'_>>,
        inputs: &[InputPath],
    ) -> Result<()> {
        let mut work = HistoryWriter { split: self, noted, numbering, inputs, occurrences: Vec::new() };
        let BuiltLists { degrees, neighbors, payloads, num_loops, .. } = &mut *lists;
        let (mut at, mut len) = (0, 0);
        for (list, degree) in (first..).zip(degrees) {
            let (end, kept_start) = (at + *degree as usize, len);
            while at < end {
                let neighbor = neighbors[at];
                let num_parallel = match self.duplicates {
                    Duplicates::Keep => 1,
                    _ => neighbors[at..end].iter().take_while(|&&other| other == neighbor).count(),
                };
                let key = u64::from(list) << 32 | u64::from(neighbor);
                let parallel = at..at + num_parallel;
                // Written behind the reads, because merging only removes arcs.
                payloads[len] = match num_parallel {
                    1 => work.appear(key, payloads[at]),
                    _ => work.merge(key, &payloads[parallel.clone()])?,
                };
                neighbors[len] = neighbor;
                if list == neighbor {
                    *num_loops -= num_parallel as u64 - 1;
                }
                len += 1;
                at = parallel.end;
            }
            *degree = (len - kept_start) as u32;
        }
        neighbors.truncate(len);
        payloads.truncate(len);
        Ok(())
    }

    /// Data of an arc as it is stored; `None` if the graph stores none.
    fn stored(&self, edge: impl Payload) -> Option<ArcData> {
        let ArcData { row, weight } = edge.data();
        (!self.graph.is_plain()).then_some(ArcData { row: if self.graph.has_rows() { row } else { 0 }, weight })
    }

    /// The vertices, names and times of all snapshots.
    pub(crate) fn finish(self, vertex_bound: usize) -> (LaterVertices, Vec<PeriodTag>) {
        let periods = self.snapshots.into_inner().map_or(Vec::new(), |snapshots| snapshots.periods);
        let tag = |&number: &i32| PeriodTag {
            name: Some(self.by.period.name(number)),
            as_of: Some(self.by.period.last_micro(number)),
        };
        let tags: Vec<_> = periods.iter().map(tag).collect();
        if tags.is_empty() {
            // Inputs without edges make a snapshot, too.
            return (LaterVertices::constant(1, vertex_bound), vec![PeriodTag::default()]);
        }
        let mut vertices = LaterVertices::constant(tags.len(), vertex_bound);
        let firsts = self.firsts.into_inner().unwrap_or_default().into_iter().map(AtomicU32::into_inner);
        match self.graph.keys {
            KeyScheme::Dense => {
                // All ids up to the largest one are vertices.
                vertices.bounds.fill(0);
                for (vertex, first) in firsts.enumerate().filter(|&(_, first)| first != NEVER) {
                    vertices.bounds[first as usize] = vertex + 1;
                }
                let mut most = 0;
                for bound in &mut vertices.bounds {
                    most = most.max(*bound);
                    *bound = most;
                }
            }
            KeyScheme::Integer | KeyScheme::String => {
                for (vertex, first) in (0..).zip(firsts).filter(|&(_, first)| first != NEVER && first > 0) {
                    vertices.returned[first as usize].push(vertex);
                }
            }
        }
        (vertices, tags)
    }
}

/// Writes the history of each edge.
struct HistoryWriter<'a, 'b, P> {
    split: &'a TimeSplit,
    noted: &'a mut ChangedLists,
    numbering: Option<&'a mut OpenNumbering<'b>>,
    inputs: &'a [InputPath],
    /// Parallel edges with their snapshots.
    occurrences: Vec<(u32, P)>,
}

impl<P: Payload> HistoryWriter<'_, '_, P> {
    /// The edge with the number of its row.
    fn numbered(&mut self, edge: P) -> P {
        match &mut self.numbering {
            Some(numbering) => edge.with_row(numbering.number(edge.data().row)),
            None => edge,
        }
    }

    /// Notes an edge without parallel ones. Returns it as it is stored.
    fn appear(&mut self, key: u64, edge: P) -> P {
        let snapshot = self.split.snapshot(edge);
        let edge = self.numbered(edge);
        self.noted.add(snapshot as usize, key, self.split.stored(edge));
        edge
    }

    /// Notes the history of an edge that occurs in several rows, which come in input order. Returns the edge of the last
    /// snapshot.
    fn merge(&mut self, key: u64, parallel: &[P]) -> Result<P> {
        let split = self.split;
        let row = |edge: &P| edge.data().row;
        if split.duplicates == Duplicates::Auto {
            return Err(no_choice(row(&parallel[0]) + 1, row(&parallel[1]) + 1));
        }
        let mut occurrences = std::mem::take(&mut self.occurrences);
        occurrences.clear();
        occurrences.extend(parallel.iter().map(|&edge| (split.snapshot(edge), edge)));
        // Stable: rows of a snapshot stay in input order.
        occurrences.sort_by_key(|&(snapshot, _)| snapshot);
        let mut value = occurrences[0].1;
        let mut shown: Option<P> = None;
        for rows in occurrences.chunk_by(|a, b| a.0 == b.0) {
            for &(_, edge) in rows {
                // The value begins as the first edge.
                if row(&edge) != row(&value) {
                    value = self.merged(value, edge)?;
                }
            }
            let (snapshot, now) = (rows[0].0 as usize, self.numbered(value));
            let before = shown.map(|shown| split.stored(shown));
            if before != Some(split.stored(now)) {
                if let Some(before) = before {
                    self.noted.remove(snapshot, key, before);
                }
                self.noted.add(snapshot, key, split.stored(now));
            }
            shown = Some(now);
        }
        self.occurrences = occurrences;
        Ok(shown.unwrap_or(value))
    }

    /// Merges two parallel edges.
    fn merged(&self, edge: P, next: P) -> Result<P> {
        let merge = match self.split.graph.weight_type {
            // Input order decides, and rows count in input order.
            _ if self.split.duplicates == Duplicates::Last => {
                return Ok(if next.data().row > edge.data().row { next } else { edge });
            }
            None => return Ok(edge),
            Some(WeightType::U32) => merged_weights::<u32>,
            Some(WeightType::I64) => merged_weights::<i64>,
            Some(WeightType::F32) => merged_weights::<f32>,
            Some(WeightType::F64) => merged_weights::<f64>,
        };
        let (first, second) = (edge.data().weight, next.data().weight);
        Ok(edge.with_weight(merge(first, second, self.split.duplicates, self.inputs)?))
    }
}

/// The bits of the merged weight of two parallel edges.
fn merged_weights<W: Weight + Payload>(
    first: u64,
    second: u64,
    duplicates: Duplicates,
    inputs: &[InputPath],
) -> Result<u64> {
    let (first, second) = (W::of_bits(first), W::of_bits(second));
    let merged = first.merge(second, duplicates);
    merged.map(Weight::bits).ok_or_else(|| too_large_a_sum(inputs, first, second))
}
