//! Arcs on their way into lists: a sortable key and what travels beside it.

use base::VertexId;
use bytemuck::{Pod, Zeroable};
use graph::formats::{SerializedGraph, SourceFacts};
use graph::{Direction, Weight, WeightType};
use lama::{ArcData, GraphOptions, RunWriter, Side};

use super::lists::Lists;
use super::options::Duplicates;
use crate::Result;

/// One entry of a list to be: the list it belongs to in the high half of the key, the neighbour in
/// the low half, so that the order of keys is the order of the lists and within them.
///
/// Packed, because a graph in the making is mostly these.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, packed)]
pub(crate) struct KeyedArc<P> {
    key: u64,
    payload: P,
}

impl<P: Payload> KeyedArc<P> {
    #[inline(always)]
    pub(crate) fn new(list: VertexId, neighbour: VertexId, payload: P) -> Self {
        Self::from_key(u64::from(list) << 32 | u64::from(neighbour), payload)
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

    /// The vertex whose list it belongs to.
    #[inline(always)]
    pub(crate) fn list(self) -> VertexId {
        (self.key >> 32) as VertexId
    }

    #[inline(always)]
    pub(crate) fn neighbour(self) -> VertexId {
        self.key as VertexId
    }

    /// The same edge as an entry of the other end's list.
    #[inline(always)]
    pub(crate) fn turned(self) -> Self {
        Self { key: self.key.rotate_left(32), payload: self.payload }
    }
}

/// What an arc carries: nothing, a weight, the row of its edge, or both.
pub(crate) trait Payload: Pod + Send + Sync + std::fmt::Debug {
    /// Weights of a block, as payloads are made of them.
    type Given: Send;
    /// Whether nothing is carried.
    const IS_EMPTY: bool = false;

    /// The weights of a block, of the graph's type.
    fn given<W: Weight>(weights: Vec<W>) -> Vec<Self::Given>;

    /// The payload of the edge at a place of its block; its row is that place.
    fn at(given: &[Self::Given], place: usize) -> Self;

    /// The same as bits.
    fn data(self) -> ArcData;

    /// The same with another row, where there are rows.
    fn with_row(self, _row: u64) -> Self {
        self
    }

    /// What is left of two parallel edges, of which `next` came later; `None` where their sum is beyond the type.
    fn merge(self, next: Self, _duplicates: Duplicates) -> Option<Self> {
        Some(next)
    }

    /// The weight as users read it, and its type.
    fn shown(self) -> (String, &'static str) {
        Default::default()
    }

    /// Reads entries of a serialized graph from `first` on, which has no rows.
    fn read(graph: &SerializedGraph, side: Side, first: u64, targets: &mut [VertexId], _: &mut [Self]) -> Result<()> {
        Ok(graph.read_neighbours(side, first, targets)?)
    }

    /// Appends lists to a run.
    fn append(writer: &RunWriter, side: Side, lists: &Lists<Self>, options: &GraphOptions) -> Result<()>;
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

    fn append(writer: &RunWriter, side: Side, lists: &Lists<()>, _: &GraphOptions) -> Result<()> {
        Ok(writer.append::<u32>(side, &lists.degrees, &lists.neighbours, &[], &[])?)
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

    fn append(writer: &RunWriter, side: Side, lists: &Lists<Self>, _: &GraphOptions) -> Result<()> {
        let rows = bytemuck::cast_slice(&lists.payloads);
        Ok(writer.append::<u32>(side, &lists.degrees, &lists.neighbours, &[], rows)?)
    }
}

/// The row of an edge, and its weight.
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

    fn append(writer: &RunWriter, side: Side, lists: &Lists<Self>, options: &GraphOptions) -> Result<()> {
        fn append<W: Weight>(writer: &RunWriter, side: Side, lists: &Lists<ArcData>) -> Result<()> {
            let weights: Vec<W> = lists.payloads.iter().map(|data| W::of_bits(data.weight)).collect();
            let rows: Vec<u64> = lists.payloads.iter().map(|data| data.row).collect();
            Ok(writer.append(side, &lists.degrees, &lists.neighbours, &weights, &rows)?)
        }
        match options.weight_type {
            Some(WeightType::I64) => append::<i64>(writer, side, lists),
            Some(WeightType::F32) => append::<f32>(writer, side, lists),
            Some(WeightType::F64) => append::<f64>(writer, side, lists),
            Some(WeightType::U32) | None => append::<u32>(writer, side, lists),
        }
    }
}

macro_rules! impl_payload {
    ($($weight:ty),*) => {$(
        impl Payload for $weight {
            type Given = $weight;

            fn given<W: Weight>(weights: Vec<W>) -> Vec<$weight> {
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
                    // Not `<`: of 0.0 and -0.0 the first stays, whichever it is.
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
                side: Side,
                first: u64,
                targets: &mut [VertexId],
                weights: &mut [Self],
            ) -> Result<()> {
                Ok(graph.read_weighted(side, first, targets, weights)?)
            }

            fn append(writer: &RunWriter, side: Side, lists: &Lists<Self>, _: &GraphOptions) -> Result<()> {
                Ok(writer.append(side, &lists.degrees, &lists.neighbours, &lists.payloads, &[])?)
            }
        }
    )*};
}

impl_payload!(u32, i64, f32, f64);

/// Which entries an edge of the input makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expand {
    /// One, in the list of its source.
    AsGiven,
    /// One, in the list of its target.
    Turned,
    /// One in the list of each end; a loop makes one.
    Both,
    /// One, in the list of its smaller end; a loop makes none.
    Ordered,
}

impl Expand {
    /// What edges of inputs make in a graph; those without a direction lead both ways.
    pub(crate) fn of(graph: &GraphOptions, leads_both_ways: bool) -> Self {
        match (graph.direction, graph.ordered) {
            (_, true) => Self::Ordered,
            (Direction::Undirected, _) => Self::Both,
            (Direction::Directed, _) if leads_both_ways => Self::Both,
            (Direction::Directed, _) => Self::AsGiven,
        }
    }

    /// What edges make in a graph, of inputs that say so much of themselves.
    ///
    /// # Errors
    /// Some of them lead both ways and others perhaps do not, which matters in this graph.
    pub(crate) fn of_inputs(graph: &GraphOptions, facts: &SourceFacts) -> Result<Self> {
        let is_directed = graph.direction == Direction::Directed && !graph.ordered;
        Ok(Self::of(graph, is_directed && facts.leads_both_ways()?))
    }

    /// Calls `body` with the entries that `arc` makes.
    #[inline(always)]
    pub(crate) fn entries<P: Payload>(self, arc: KeyedArc<P>, mut body: impl FnMut(KeyedArc<P>)) {
        match self {
            Self::AsGiven => body(arc),
            Self::Turned => body(arc.turned()),
            Self::Both => {
                body(arc);
                if arc.list() != arc.neighbour() {
                    body(arc.turned());
                }
            }
            Self::Ordered => match arc.list().cmp(&arc.neighbour()) {
                std::cmp::Ordering::Less => body(arc),
                std::cmp::Ordering::Greater => body(arc.turned()),
                std::cmp::Ordering::Equal => {}
            },
        }
    }

    /// The most entries that one edge makes.
    pub(crate) fn factor(self) -> usize {
        if self == Self::Both { 2 } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(expand: Expand, source: u32, target: u32) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        expand.entries(KeyedArc::new(source, target, ()), |arc| found.push((arc.list(), arc.neighbour())));
        found
    }

    #[test]
    fn an_edge_makes_its_entries() {
        assert_eq!(entries(Expand::AsGiven, 5, 3), [(5, 3)]);
        assert_eq!(entries(Expand::Turned, 5, 3), [(3, 5)]);
        assert_eq!(entries(Expand::Both, 5, 3), [(5, 3), (3, 5)]);
        assert_eq!(entries(Expand::Both, 4, 4), [(4, 4)]);
        assert_eq!(entries(Expand::Ordered, 5, 3), [(3, 5)]);
        assert_eq!(entries(Expand::Ordered, 3, 5), [(3, 5)]);
        assert_eq!(entries(Expand::Ordered, 4, 4), []);
    }

    #[test]
    fn an_arc_takes_no_padding() {
        assert_eq!(size_of::<KeyedArc<()>>(), 8);
        assert_eq!(size_of::<KeyedArc<f32>>(), 12);
        assert_eq!(size_of::<KeyedArc<i64>>(), 16);
    }
}
