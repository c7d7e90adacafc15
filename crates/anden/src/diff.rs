//! What changed from one snapshot to another, by key.

mod across;

use base::VertexId;
use engine::{ChangedArc, EdgeChanges};
use graph::property::{OwnedValue, PropertyValue};
use graph::{Direction, Graph, Weight, WeightType, WeightedEdges};

use crate::properties::{NamedValues, row_values};
use crate::session::Beside;
use crate::{EdgeWeight, Key, KeyRef, Result, Session};

use across::Across;

/// The buffers of what is printed, and a page of changes.
const PAGE_BYTES: u64 = 8 << 20;
/// A vertex that came or went: its id, and its key where it is asked for.
const VERTEX_BYTES: u64 = 48;

/// What changed from one snapshot to another.
///
/// Edges are read when they are asked for, a page of source vertices at a time. An edge whose weight changed is removed with the old one and added with the new one.
#[derive(Debug)]
pub struct Diff {
    edges: Edges,
    session: Session,
    added_vertices: Vec<VertexId>,
    removed_vertices: Vec<VertexId>,
    /// By property, then by ids of the second.
    properties: Vec<(String, Vec<ChangedValue>)>,
    from_view: lama::View,
    to_view: lama::View,
    from: u32,
    to: u32,
}

/// Where the edges are read that changed.
#[derive(Debug)]
enum Edges {
    /// From what changed between two snapshots of a database.
    Between(EdgeChanges),
    /// From the lists of two databases.
    Across(Across),
}

impl Edges {
    fn num_parts(&self, here: Here) -> usize {
        match self {
            Self::Between(changes) => changes.num_pages(),
            Self::Across(across) => across.num_parts(here),
        }
    }
}

/// A vertex with its new value and its old one.
type ChangedValue = (VertexId, OwnedValue, OwnedValue);

/// A value of a property that is another in the second snapshot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiffProperty<'a> {
    /// The vertex, which the second snapshot has.
    pub vertex: KeyRef<'a>,
    /// The property.
    pub name: &'a str,
    /// The value in the first snapshot.
    pub old: PropertyValue<'a>,
    /// The value in the second snapshot.
    pub new: PropertyValue<'a>,
}

/// An edge that is in one of two snapshots only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiffEdge<'a> {
    /// Where it starts; of an undirected edge, the end with the smaller id.
    pub source: KeyRef<'a>,
    /// Where it leads.
    pub target: KeyRef<'a>,
    /// Its weight, where the graph has weights.
    pub weight: Option<EdgeWeight>,
    /// Its number, in a multigraph whose snapshots are compared; it is the same in both where the edge changed. Numbers of
    /// two databases have nothing to do with each other.
    pub number: Option<u64>,
    /// Where edges have properties: the row of this one's, and whether the second snapshot has it.
    row: Option<(u64, Here)>,
}

/// Which of the two snapshots has an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Here {
    First,
    Second,
}

impl DiffEdge<'_> {
    /// Whether edges of the graph have properties: [`Diff::edge_properties`] gives those of this one.
    pub fn has_properties(&self) -> bool {
        self.row.is_some()
    }
}

impl Diff {
    /// What `changes` and `edges` change on the way from one snapshot to another.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory).
    pub(crate) fn new(
        (changes, edges): (engine::Diff, EdgeChanges),
        from: (u32, lama::View),
        to: (u32, lama::View),
        session: &Session,
    ) -> Result<Self> {
        let is_in =
            |view: &lama::View, vertex: VertexId| (vertex as usize) < view.vertex_bound() && view.is_live(vertex);
        let num_vertices = changes.new_vertices.len() + changes.died.len() + changes.returned.len();
        // Keys are read in no order, so their pages stay in memory.
        let held = PAGE_BYTES + VERTEX_BYTES * num_vertices as u64 + to.1.dictionary().num_bytes();
        let beside = Beside { lists: edges.num_bytes(), ..Beside::default() };
        session.require_reader("a difference of snapshots", beside, held)?;
        let mut vertices: Vec<VertexId> = changes.new_vertices.clone().collect();
        vertices.extend(changes.died.iter().chain(&changes.returned));
        vertices.sort_unstable();
        vertices.dedup();
        let only_in = |view: &lama::View, other: &lama::View| {
            vertices.iter().copied().filter(|&vertex| is_in(view, vertex) && !is_in(other, vertex)).collect()
        };
        let (added_vertices, removed_vertices) = (only_in(&to.1, &from.1), only_in(&from.1, &to.1));
        let of_column = |(name, values): (String, lama::PropertyChanges)| {
            let values = values.iter().filter(|(vertex, ..)| is_in(&to.1, *vertex));
            (name, values.map(|(vertex, new, old)| (vertex, new.into(), old.into())).collect())
        };
        let properties = changes.properties.into_iter().map(of_column).collect();
        let (edges, session) = (Edges::Between(edges), session.clone());
        let (from_view, to_view) = (from.1, to.1);
        let (from, to) = (from.0, to.0);
        Ok(Self { edges, session, added_vertices, removed_vertices, properties, from_view, to_view, from, to })
    }

    /// The same between snapshots of two databases, whose vertices are matched by their keys.
    ///
    /// # Errors
    /// The graphs are of different kinds; [`Error::Memory`](crate::Error::Memory); damage met on the way.
    pub(crate) fn across(from: (u32, lama::View), to: (u32, lama::View), session: &Session) -> Result<Self> {
        across::compare(from, to, session)
    }

    /// The numbers of the two snapshots.
    pub fn snapshots(&self) -> (u32, u32) {
        (self.from, self.to)
    }

    /// Edges that the second has and the first has not; undirected ones counted once.
    ///
    /// Cost: as to go through [`added`](Self::added).
    ///
    /// # Errors
    /// Damage met on the way; cancellation.
    pub fn num_added(&self) -> Result<usize> {
        self.count(Here::Second)
    }

    /// Edges that the first has and the second has not.
    ///
    /// # Errors
    /// As [`num_added`](Self::num_added).
    pub fn num_removed(&self) -> Result<usize> {
        self.count(Here::First)
    }

    fn count(&self, here: Here) -> Result<usize> {
        let mut arcs = Vec::new();
        (0..self.edges.num_parts(here)).try_fold(0, |count, part| {
            arcs.clear();
            self.read_part(here, part, &mut arcs)?;
            Ok(count + arcs.len())
        })
    }

    /// Appends the edges of a part that only one of the snapshots has.
    fn read_part(&self, here: Here, part: usize, arcs: &mut Vec<ChangedArc>) -> Result<()> {
        self.session.progress().check()?;
        match (&self.edges, here) {
            (Edges::Between(changes), Here::Second) => changes.read_page(part, arcs, &mut Vec::new())?,
            (Edges::Between(changes), Here::First) => changes.read_page(part, &mut Vec::new(), arcs)?,
            (Edges::Across(across), Here::Second) => {
                across.read_part(here, [&self.to_view, &self.from_view], part, arcs)?;
            }
            (Edges::Across(across), Here::First) => {
                across.read_part(here, [&self.from_view, &self.to_view], part, arcs)?;
            }
        }
        Ok(())
    }

    /// The edges that only one of the snapshots has.
    fn only_in(&self, here: Here) -> EdgeStream<'_> {
        let view = if here == Here::Second { &self.to_view } else { &self.from_view };
        EdgeStream { diff: self, view, here, parts: 0..self.edges.num_parts(here), arcs: Vec::new().into_iter() }
    }

    /// The edges that the second has and the first has not, by ascending ids. The iterator ends after an error.
    ///
    /// # Errors
    /// Of an item: damage met on the way; cancellation.
    pub fn added(&self) -> impl Iterator<Item = Result<DiffEdge<'_>>> {
        self.only_in(Here::Second)
    }

    /// The edges that the first has and the second has not, by ascending ids. The iterator ends after an error.
    ///
    /// # Errors
    /// Of an item: damage met on the way; cancellation.
    pub fn removed(&self) -> impl Iterator<Item = Result<DiffEdge<'_>>> {
        self.only_in(Here::First)
    }

    /// Whether a pair of vertices may have several edges in the second.
    pub fn is_multigraph(&self) -> bool {
        self.to_view.is_multigraph()
    }

    /// Whether edges have a direction.
    pub fn is_directed(&self) -> bool {
        self.to_view.direction() == Direction::Directed
    }

    /// All edges that the second has between the ends of an edge, in the order in which they came where that is known.
    ///
    /// # Errors
    /// Damage met on the way.
    pub fn edges_like(&self, edge: &DiffEdge<'_>) -> Result<Vec<DiffEdge<'_>>> {
        let view = &self.to_view;
        let id = |key: KeyRef<'_>| view.vertex(&Key::from(key));
        let (Some(source), Some(target)) = (id(edge.source)?, id(edge.target)?) else { return Ok(Vec::new()) };
        let mut arcs = Vec::new();
        let found = |_, data| arcs.push(ChangedArc { list: source, neighbour: target, data });
        view.finder().find(source, [target], found)?;
        arcs.sort_unstable();
        arcs.iter().map(|arc| self::edge(view, arc, Here::Second, self.is_one_database())).collect()
    }

    /// Whether edges have numbers, in the same way on both sides: two snapshots of one multigraph are compared.
    pub fn has_numbers(&self) -> bool {
        self.is_multigraph() && self.is_one_database()
    }

    /// Whether two snapshots of one database are compared.
    fn is_one_database(&self) -> bool {
        !matches!(self.edges, Edges::Across(_))
    }

    /// The properties of an edge of this difference that have a value.
    ///
    /// # Errors
    /// Damage in the properties.
    pub fn edge_properties(&self, edge: &DiffEdge<'_>) -> Result<NamedValues<'_>> {
        match edge.row {
            None => Ok(Vec::new()),
            Some((row, Here::First)) => row_values(&self.from_view, row),
            Some((row, Here::Second)) => row_values(&self.to_view, row),
        }
    }

    /// The properties of the second snapshot's vertices that have another value there; those of vertices that are gone
    /// are gone with them. By property, then by ascending ids.
    ///
    /// # Errors
    /// Of an item: damage in the dictionary.
    pub fn changed_properties(&self) -> impl Iterator<Item = Result<DiffProperty<'_>>> {
        self.properties.iter().flat_map(|(name, values)| {
            values.iter().map(|(vertex, new, old)| {
                let vertex = self.to_view.key_ref(*vertex)?;
                Ok(DiffProperty { vertex, name, old: old.as_value(), new: new.as_value() })
            })
        })
    }

    /// The vertices that the second has and the first has not, by ascending ids.
    ///
    /// # Errors
    /// Damage in the dictionary.
    pub fn added_vertices(&self) -> Result<Vec<Key>> {
        keys(&self.to_view, &self.added_vertices)
    }

    /// The vertices that the first has and the second has not, by ascending ids.
    ///
    /// # Errors
    /// Damage in the dictionary.
    pub fn removed_vertices(&self) -> Result<Vec<Key>> {
        keys(&self.from_view, &self.removed_vertices)
    }
}

/// The edges that only one of two snapshots has, read a part at a time.
struct EdgeStream<'a> {
    diff: &'a Diff,
    view: &'a lama::View,
    here: Here,
    /// Those that are still to be read.
    parts: std::ops::Range<usize>,
    arcs: std::vec::IntoIter<ChangedArc>,
}

impl<'a> Iterator for EdgeStream<'a> {
    type Item = Result<DiffEdge<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(arc) = self.arcs.next() {
                return Some(edge(self.view, &arc, self.here, self.diff.is_one_database()));
            }
            let (part, mut arcs) = (self.parts.next()?, Vec::new());
            if let Err(error) = self.diff.read_part(self.here, part, &mut arcs) {
                self.parts = 0..0;
                return Some(Err(error));
            }
            self.arcs = arcs.into_iter();
        }
    }
}

fn keys(view: &lama::View, vertices: &[VertexId]) -> Result<Vec<Key>> {
    vertices.iter().map(|&vertex| Ok(view.key(vertex)?)).collect()
}

fn edge<'a>(view: &'a lama::View, arc: &ChangedArc, here: Here, is_one_database: bool) -> Result<DiffEdge<'a>> {
    let weight = view.weight_type().map(|weight_type| match weight_type {
        WeightType::U32 => EdgeWeight::Integer(u32::of_bits(arc.data.weight).into()),
        WeightType::I64 => EdgeWeight::Integer(i64::of_bits(arc.data.weight)),
        WeightType::F32 => EdgeWeight::Real(f32::of_bits(arc.data.weight).into()),
        WeightType::F64 => EdgeWeight::Real(f64::of_bits(arc.data.weight)),
    });
    let (source, target) = (view.key_ref(arc.list)?, view.key_ref(arc.neighbour)?);
    let row = view.options().edge_properties.then_some((arc.data.row, here));
    let number = (view.options().multigraph && is_one_database).then(|| view.edge_properties().number(arc.data.row));
    Ok(DiffEdge { source, target, weight, number: number.transpose()?, row })
}
