//! Arcs on their way into lists: a sortable key and what travels beside it.

use base::VertexId;
use bytemuck::{Pod, Zeroable};
use graph::formats::SourceFacts;
use graph::{Direction, Weight};
use lama::GraphOptions;

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

/// What an arc carries: nothing, or a weight.
pub(crate) trait Payload: Pod + Send + Sync + std::fmt::Debug {
    /// The type that inputs and runs take; unused where nothing is carried.
    type Weight: Weight;
    /// Whether anything is carried.
    const IS_WEIGHTED: bool;

    fn from_weight(weight: Self::Weight) -> Self;

    /// The weight, where there is one.
    fn weight(self) -> Option<Self::Weight>;

    /// What is left of two parallel edges, of which `next` came later; `None` where their sum is beyond the type.
    fn merge(self, next: Self, duplicates: Duplicates) -> Option<Self>;
}

impl Payload for () {
    type Weight = u32;
    const IS_WEIGHTED: bool = false;

    #[inline(always)]
    fn from_weight(_: u32) {}

    #[inline(always)]
    fn weight(self) -> Option<u32> {
        None
    }

    #[inline(always)]
    fn merge(self, _: Self, _: Duplicates) -> Option<Self> {
        Some(())
    }
}

macro_rules! impl_payload {
    ($($weight:ty),*) => {$(
        impl Payload for $weight {
            type Weight = $weight;
            const IS_WEIGHTED: bool = true;

            #[inline(always)]
            fn from_weight(weight: $weight) -> Self {
                weight
            }

            #[inline(always)]
            fn weight(self) -> Option<$weight> {
                Some(self)
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
