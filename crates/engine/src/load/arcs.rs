//! Arcs during a load: a sortable key, and the data beside it.

use anden_base::VertexId;
use anden_formats::{SerializedGraph, SourceFacts};
use anden_graph::{GraphKind, Weight, WeightType};
use anden_snapshots::{ArcData, BaseWriter, Direction, GraphOptions};
use bytemuck::{Pod, Zeroable};

use super::lists::BuiltLists;
use super::options::Duplicates;
use crate::Result;

/// An arc to be stored. The high half of the key is the vertex that owns the list, the low half the neighbor: sorting
/// by key orders the lists and their entries.
///
/// Packed, because these make up most of a load's memory.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, packed)]
pub(crate) struct LoadArc<P> {
    key: u64,
    payload: P,
}

impl<P: Payload> LoadArc<P> {
    #[inline(always)]
    pub(crate) fn new(list: VertexId, neighbor: VertexId, payload: P) -> Self {
        Self::from_key(u64::from(list) << 32 | u64::from(neighbor), payload)
    }

    #[inline(always)]
    pub(crate) fn from_key(key: u64, payload: P) -> Self {
        Self { key, payload }
    }

    #[inline(always)]
    pub(crate) fn key(self) -> u64 {
        self.key
    }

    #[inline(always)]
    pub(crate) fn payload(self) -> P {
        self.payload
    }

    /// The vertex that owns the list.
    #[inline(always)]
    pub(crate) fn list(self) -> VertexId {
        (self.key >> 32) as VertexId
    }

    #[inline(always)]
    pub(crate) fn neighbor(self) -> VertexId {
        self.key as VertexId
    }

    /// The arc as an entry in the list of its other end.
    #[inline(always)]
    pub(crate) fn reversed(self) -> Self {
        // A rotation by half swaps the vertex that owns the list and the neighbor.
        Self { key: self.key.rotate_left(32), payload: self.payload }
    }
}

/// The data of an arc: none, a weight, a row, or both.
pub(crate) trait Payload: Pod + Send + Sync + std::fmt::Debug {
    /// The weights of a block in the form that payloads are made of.
    type Given: Send;
    /// Whether there is no data.
    const IS_EMPTY: bool = false;

    /// Converts the weights of a block, which have the graph's type.
    fn given<W: Weight>(weights: Vec<W>) -> Vec<Self::Given>;

    /// The payload of the edge at an index of its block; the row is that index.
    fn at(given: &[Self::Given], place: usize) -> Self;

    /// The payload as bits.
    fn data(self) -> ArcData;

    /// The payload with another row, if it has a row.
    fn with_row(self, _row: u64) -> Self {
        self
    }

    /// The payload with a weight of these bits, if it has a weight beside a row.
    fn with_weight(self, _bits: u64) -> Self {
        self
    }

    /// Merges two parallel edges, of which `next` came later. `None` if their sum exceeds the type.
    fn merge(self, next: Self, _duplicates: Duplicates) -> Option<Self> {
        Some(next)
    }

    /// The weight as text for users, and its type.
    fn shown(self) -> (String, &'static str) {
        Default::default()
    }

    /// Reads entries of a serialized graph from `first` on; such a graph has no rows.
    fn read(
        graph: &SerializedGraph,
        direction: Direction,
        first: u64,
        targets: &mut [VertexId],
        _: &mut [Self],
    ) -> Result<()> {
        Ok(graph.read_neighbors(direction, first, targets)?)
    }

    /// Appends lists to a base.
    fn append(
        writer: &BaseWriter,
        direction: Direction,
        lists: &BuiltLists<Self>,
        options: &GraphOptions,
    ) -> Result<()>;
}

impl Payload for () {
    type Given = ();
    const IS_EMPTY: bool = true;

    fn given<W: Weight>(_: Vec<W>) -> Vec<()> {
        Vec::new()
    }

    #[inline(always)]
    fn at(_: &[()], _: usize) {}

    fn data(self) -> ArcData {
        ArcData::default()
    }

    fn append(writer: &BaseWriter, direction: Direction, lists: &BuiltLists<()>, _: &GraphOptions) -> Result<()> {
        Ok(writer.append::<u32>(direction, &lists.degrees, &lists.neighbors, &[], &[])?)
    }
}

/// The row of an edge.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct EdgeRow(u64);

impl Payload for EdgeRow {
    type Given = ();

    fn given<W: Weight>(_: Vec<W>) -> Vec<()> {
        Vec::new()
    }

    fn at(_: &[()], place: usize) -> Self {
        Self(place as u64)
    }

    fn data(self) -> ArcData {
        ArcData::of_row(self.0)
    }

    fn with_row(self, row: u64) -> Self {
        Self(row)
    }

    fn append(
        writer: &BaseWriter,
        direction: Direction,
        lists: &BuiltLists<Self>,
        options: &GraphOptions,
    ) -> Result<()> {
        // A split by time needs rows during the load, also in a graph without rows.
        let rows = if options.has_rows() { bytemuck::cast_slice(&lists.payloads) } else { &[] };
        Ok(writer.append::<u32>(direction, &lists.degrees, &lists.neighbors, &[], rows)?)
    }
}

/// The row and the weight of an edge.
impl Payload for ArcData {
    type Given = u64;

    fn given<W: Weight>(weights: Vec<W>) -> Vec<u64> {
        weights.into_iter().map(Weight::bits).collect()
    }

    fn at(given: &[u64], place: usize) -> Self {
        Self { row: place as u64, weight: given[place] }
    }

    fn data(self) -> ArcData {
        self
    }

    fn with_row(self, row: u64) -> Self {
        Self { row, ..self }
    }

    fn with_weight(self, weight: u64) -> Self {
        Self { weight, ..self }
    }

    fn append(
        writer: &BaseWriter,
        direction: Direction,
        lists: &BuiltLists<Self>,
        options: &GraphOptions,
    ) -> Result<()> {
        fn append<W: Weight>(
            writer: &BaseWriter,
            direction: Direction,
            lists: &BuiltLists<ArcData>,
            has_rows: bool,
        ) -> Result<()> {
            // The writer takes weights and rows in arrays of their own.
            let weights: Vec<W> = lists.payloads.iter().map(|data| W::of_bits(data.weight)).collect();
            let rows: Vec<u64> = lists.payloads.iter().filter(|_| has_rows).map(|data| data.row).collect();
            Ok(writer.append(direction, &lists.degrees, &lists.neighbors, &weights, &rows)?)
        }
        let has_rows = options.has_rows();
        match options.weight_type {
            Some(WeightType::I64) => append::<i64>(writer, direction, lists, has_rows),
            Some(WeightType::F32) => append::<f32>(writer, direction, lists, has_rows),
            Some(WeightType::F64) => append::<f64>(writer, direction, lists, has_rows),
            Some(WeightType::U32) | None => append::<u32>(writer, direction, lists, has_rows),
        }
    }
}

macro_rules! impl_payload {
    ($($weight:ty),*) => {$(
        impl Payload for $weight {
            type Given = $weight;

            fn given<W: Weight>(weights: Vec<W>) -> Vec<$weight> {
                // The weights of a block have the graph's type, so the vector is taken over without a copy.
                bytemuck::allocation::cast_vec(weights)
            }

            #[inline(always)]
            fn at(given: &[$weight], place: usize) -> Self {
                given[place]
            }

            fn data(self) -> ArcData {
                ArcData::of_weight(self.bits())
            }

            #[inline(always)]
            fn merge(self, next: Self, duplicates: Duplicates) -> Option<Self> {
                match duplicates {
                    // Not `min`: of 0.0 and -0.0, the first one stays.
                    Duplicates::Auto | Duplicates::Min => Some(if next < self { next } else { self }),
                    Duplicates::Sum => self.checked_plus(next),
                    Duplicates::Last | Duplicates::Keep => Some(next),
                }
            }

            fn shown(self) -> (String, &'static str) {
                (self.to_string(), <$weight>::TYPE.name())
            }

            fn read(
                graph: &SerializedGraph,
                direction: Direction,
                first: u64,
                targets: &mut [VertexId],
                weights: &mut [Self],
            ) -> Result<()> {
                Ok(graph.read_weighted(direction, first, targets, weights)?)
            }

            fn append(writer: &BaseWriter, direction: Direction, lists: &BuiltLists<Self>, _: &GraphOptions) -> Result<()> {
                Ok(writer.append(direction, &lists.degrees, &lists.neighbors, &lists.payloads, &[])?)
            }
        }
    )*};
}

impl_payload!(u32, i64, f32, f64);

/// The arcs that an edge of the input becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expand {
    /// One, in the list of its source.
    AsGiven,
    /// One, in the list of its target.
    Reversed,
    /// One in the list of each end; a loop becomes one.
    Both,
    /// One, in the list of its smaller end; a loop becomes none.
    Ordered,
}

impl Expand {
    /// The expansion of edges in a graph; undirected input edges lead both ways.
    pub(crate) fn of(graph: &GraphOptions, leads_both_ways: bool) -> Self {
        match (graph.graph_kind, graph.ordered) {
            (_, true) => Self::Ordered,
            (GraphKind::Undirected, _) => Self::Both,
            (GraphKind::Directed, _) if leads_both_ways => Self::Both,
            (GraphKind::Directed, _) => Self::AsGiven,
        }
    }

    /// The expansion of the edges of inputs with these facts.
    ///
    /// # Errors
    /// Some edges lead both ways and others perhaps do not, which matters in this graph.
    pub(crate) fn of_inputs(graph: &GraphOptions, facts: &SourceFacts) -> Result<Self> {
        let is_directed = graph.graph_kind == GraphKind::Directed && !graph.ordered;
        // Not asked otherwise: mixed inputs are an error only where the direction matters.
        Ok(Self::of(graph, is_directed && facts.leads_both_ways()?))
    }

    /// Calls `body` with the arcs that an edge becomes.
    #[inline(always)]
    pub(crate) fn entries<P: Payload>(self, arc: LoadArc<P>, mut body: impl FnMut(LoadArc<P>)) {
        match self {
            Self::AsGiven => body(arc),
            Self::Reversed => body(arc.reversed()),
            Self::Both => {
                body(arc);
                if arc.list() != arc.neighbor() {
                    body(arc.reversed());
                }
            }
            Self::Ordered => match arc.list().cmp(&arc.neighbor()) {
                std::cmp::Ordering::Less => body(arc),
                std::cmp::Ordering::Greater => body(arc.reversed()),
                std::cmp::Ordering::Equal => {}
            },
        }
    }

    /// The most arcs that an edge becomes.
    pub(crate) fn factor(self) -> usize {
        if self == Self::Both { 2 } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(expand: Expand, source: u32, target: u32) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        expand.entries(LoadArc::new(source, target, ()), |arc| found.push((arc.list(), arc.neighbor())));
        found
    }

    #[test]
    fn an_edge_makes_its_entries() {
        assert_eq!(entries(Expand::AsGiven, 5, 3), [(5, 3)]);
        assert_eq!(entries(Expand::Reversed, 5, 3), [(3, 5)]);
        assert_eq!(entries(Expand::Both, 5, 3), [(5, 3), (3, 5)]);
        assert_eq!(entries(Expand::Both, 4, 4), [(4, 4)]);
        assert_eq!(entries(Expand::Ordered, 5, 3), [(3, 5)]);
        assert_eq!(entries(Expand::Ordered, 3, 5), [(3, 5)]);
        assert_eq!(entries(Expand::Ordered, 4, 4), []);
    }

    #[test]
    fn an_arc_takes_no_padding() {
        assert_eq!(size_of::<LoadArc<()>>(), 8);
        assert_eq!(size_of::<LoadArc<f32>>(), 12);
        assert_eq!(size_of::<LoadArc<i64>>(), 16);
    }
}
