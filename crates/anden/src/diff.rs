//! The changes between two snapshots, by key.

mod across;

use anden_base::VertexId;
use anden_engine::{ChangedArc, EdgeChanges};
use anden_graph::property::{OwnedValue, PropertyType, PropertyValue};
use anden_graph::{Graph, GraphKind, Weight, WeightType, WeightedEdges};
use anden_snapshots::SnapshotView;

use crate::property::KeyRef;
use crate::property::{NamedValues, row_values};
use crate::session::Beside;
use crate::{EdgeWeight, Key, Result, Session};

use across::Across;

/// Memory for output buffers and one page of changes.
const PAGE_BYTES: u64 = 8 << 20;
/// Memory for an added or removed vertex: its id, and its key on request.
const VERTEX_BYTES: u64 = 48;

/// The changes from one snapshot to another.
///
/// Edges are read on demand, one page of source vertices at a time. An edge with a new weight is removed with the old
/// weight and added with the new one.
#[derive(Debug)]
pub struct Diff {
    edges: DiffEdgeSource,
    session: Session,
    added_vertices: Vec<VertexId>,
    removed_vertices: Vec<VertexId>,
    /// By property, then by vertex id in the second snapshot.
    properties: Vec<(String, Vec<ChangedValue>)>,
    from_view: SnapshotView,
    to_view: SnapshotView,
    from: u32,
    to: u32,
}

/// The source of changed edges.
#[derive(Debug)]
enum DiffEdgeSource {
    /// The deltas between two snapshots of one database.
    Between(EdgeChanges),
    /// The lists of two databases.
    Across(Across),
}

impl DiffEdgeSource {
    fn num_parts(&self, here: Here) -> usize {
        match self {
            Self::Between(changes) => changes.num_pages(),
            Self::Across(across) => across.num_parts(here),
        }
    }
}

/// A vertex with its new and its old value.
type ChangedValue = (VertexId, OwnedValue, OwnedValue);

/// A property value that differs between the snapshots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiffProperty<'a> {
    /// The vertex, which exists in the second snapshot.
    pub vertex: KeyRef<'a>,
    /// The name of the property.
    pub name: &'a str,
    /// The value in the first snapshot.
    pub old: PropertyValue<'a>,
    /// The value in the second snapshot.
    pub new: PropertyValue<'a>,
}

/// An edge that only one of the two snapshots has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiffEdge<'a> {
    /// The source; of an undirected edge, the end with the smaller id.
    pub source: KeyRef<'a>,
    /// The target.
    pub target: KeyRef<'a>,
    /// The weight; `None` in a graph without weights.
    pub weight: Option<EdgeWeight>,
    /// The number of the edge, if two snapshots of one multigraph are compared. A changed edge has one number in both.
    /// Numbers of two databases are unrelated.
    pub number: Option<u64>,
    /// The row of the edge and the snapshot that has it; `None` if edges have no properties.
    row: Option<(u64, Here)>,
}

/// The snapshot that has an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Here {
    First,
    Second,
}

impl DiffEdge<'_> {
    /// Whether edges of the graph have properties. [`Diff::edge_properties`] returns them.
    pub fn has_properties(&self) -> bool {
        self.row.is_some()
    }
}

impl Diff {
    /// Builds a diff from the changes of vertices and properties (`changes`) and of edges.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory).
    pub(crate) fn new(
        (changes, edges): (anden_engine::SnapshotDiff, EdgeChanges),
        from: (u32, SnapshotView),
        to: (u32, SnapshotView),
        session: &Session,
    ) -> Result<Self> {
        // An id may lie beyond the bound of the other snapshot, where `is_live` may panic.
        let is_in =
            |view: &SnapshotView, vertex: VertexId| (vertex as usize) < view.vertex_bound() && view.is_live(vertex);
        let num_vertices = changes.new_vertices.len() + changes.died.len() + changes.returned.len();
        // Keys are read in random order, so all their pages stay in memory.
        let held = PAGE_BYTES + VERTEX_BYTES * num_vertices as u64 + to.1.dictionary().num_bytes();
        let beside = Beside { lists: edges.num_bytes(), ..Beside::default() };
        session.require_reader("a difference of snapshots", beside, held)?;
        let mut vertices: Vec<VertexId> = changes.new_vertices.clone().collect();
        vertices.extend(changes.died.iter().chain(&changes.returned));
        vertices.sort_unstable();
        // A vertex may be in several of these lists, for example if it was removed and came back.
        vertices.dedup();
        // A vertex that died and returned between the snapshots is in neither list.
        let only_in = |view: &SnapshotView, other: &SnapshotView| {
            vertices.iter().copied().filter(|&vertex| is_in(view, vertex) && !is_in(other, vertex)).collect()
        };
        let (added_vertices, removed_vertices) = (only_in(&to.1, &from.1), only_in(&from.1, &to.1));
        // The removal of a vertex implies the loss of its values.
        let of_column = |(name, values): (String, anden_snapshots::PropertyChanges)| {
            let values = values.iter().filter(|(vertex, ..)| is_in(&to.1, *vertex));
            (name, values.map(|(vertex, new, old)| (vertex, new.into(), old.into())).collect())
        };
        let properties = changes.properties.into_iter().map(of_column).collect();
        let (edges, session) = (DiffEdgeSource::Between(edges), session.clone());
        let (from_view, to_view) = (from.1, to.1);
        let (from, to) = (from.0, to.0);
        Ok(Self { edges, session, added_vertices, removed_vertices, properties, from_view, to_view, from, to })
    }

    /// Compares snapshots of two databases. Vertices are matched by key.
    ///
    /// # Errors
    /// The graphs differ in kind; [`Error::Memory`](crate::Error::Memory); damage met on the way.
    pub(crate) fn across(from: (u32, SnapshotView), to: (u32, SnapshotView), session: &Session) -> Result<Self> {
        across::compare(from, to, session)
    }

    /// The numbers of the two snapshots.
    pub fn snapshots(&self) -> (u32, u32) {
        (self.from, self.to)
    }

    /// Number of edges that only the second snapshot has. An undirected edge counts once.
    ///
    /// Cost: as iterating over [`added`](Self::added).
    ///
    /// # Errors
    /// Damage met on the way; cancellation.
    pub fn num_added(&self) -> Result<usize> {
        self.count(Here::Second)
    }

    /// Number of edges that only the first snapshot has.
    ///
    /// # Errors
    /// As [`num_added`](Self::num_added).
    pub fn num_removed(&self) -> Result<usize> {
        self.count(Here::First)
    }

    fn count(&self, here: Here) -> Result<usize> {
        // Only one part is in memory at a time, because the whole diff may not fit.
        let mut arcs = Vec::new();
        (0..self.edges.num_parts(here)).try_fold(0, |count, part| {
            arcs.clear();
            self.read_part(here, part, &mut arcs)?;
            Ok(count + arcs.len())
        })
    }

    /// Appends the edges of one part that only this snapshot has.
    fn read_part(&self, here: Here, part: usize, arcs: &mut Vec<ChangedArc>) -> Result<()> {
        // A part is one unit of work, so cancellation takes effect within one page.
        self.session.progress().check()?;
        match (&self.edges, here) {
            // A page composes additions and removals together, so the unwanted ones are dropped.
            (DiffEdgeSource::Between(changes), Here::Second) => changes.read_page(part, arcs, &mut Vec::new())?,
            (DiffEdgeSource::Between(changes), Here::First) => changes.read_page(part, &mut Vec::new(), arcs)?,
            (DiffEdgeSource::Across(across), Here::Second) => {
                across.read_part(here, [&self.to_view, &self.from_view], part, arcs)?;
            }
            (DiffEdgeSource::Across(across), Here::First) => {
                across.read_part(here, [&self.from_view, &self.to_view], part, arcs)?;
            }
        }
        Ok(())
    }

    /// The edges that only this snapshot has.
    fn only_in(&self, here: Here) -> EdgeStream<'_> {
        let view = if here == Here::Second { &self.to_view } else { &self.from_view };
        EdgeStream { diff: self, view, here, parts: 0..self.edges.num_parts(here), arcs: Vec::new().into_iter() }
    }

    /// The edges that only the second snapshot has, in ascending order of ids. The iterator ends after an error.
    ///
    /// # Errors
    /// An item fails on damage and on cancellation.
    pub fn added(&self) -> impl Iterator<Item = Result<DiffEdge<'_>>> {
        self.only_in(Here::Second)
    }

    /// The edges that only the first snapshot has, in ascending order of ids. The iterator ends after an error.
    ///
    /// # Errors
    /// An item fails on damage and on cancellation.
    pub fn removed(&self) -> impl Iterator<Item = Result<DiffEdge<'_>>> {
        self.only_in(Here::First)
    }

    /// Whether the second snapshot is of a multigraph.
    pub fn is_multigraph(&self) -> bool {
        self.to_view.is_multigraph()
    }

    /// Whether edges have a direction.
    pub fn is_directed(&self) -> bool {
        self.to_view.graph_kind() == GraphKind::Directed
    }

    /// All edges of the second snapshot between the ends of `edge`, in the order of their rows.
    ///
    /// # Errors
    /// Damage met on the way.
    pub fn edges_like(&self, edge: &DiffEdge<'_>) -> Result<Vec<DiffEdge<'_>>> {
        let view = &self.to_view;
        let id = |key: KeyRef<'_>| view.vertex(&Key::from(key));
        let (Some(source), Some(target)) = (id(edge.source)?, id(edge.target)?) else { return Ok(Vec::new()) };
        let mut arcs = Vec::new();
        let found = |_, data| arcs.push(ChangedArc { list: source, neighbor: target, data });
        // A finder searches this one list without patching its page.
        view.finder().find(source, [target], found)?;
        // `ArcData` orders by row first, as the documentation promises.
        arcs.sort_unstable();
        arcs.iter().map(|arc| self::edge(view, arc, Here::Second, self.is_one_database())).collect()
    }

    /// Whether edges have numbers: if two snapshots of one multigraph are compared.
    pub fn has_numbers(&self) -> bool {
        self.is_multigraph() && self.is_one_database()
    }

    /// Whether the snapshots belong to one database.
    fn is_one_database(&self) -> bool {
        !matches!(self.edges, DiffEdgeSource::Across(_))
    }

    /// The properties of an edge of this diff that are not null.
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

    /// The changed property values of vertices in the second snapshot. A removed vertex has no entry. Ordered by
    /// property, then by vertex id.
    ///
    /// # Errors
    /// An item fails on damage in the dictionary.
    pub fn changed_properties(&self) -> impl Iterator<Item = Result<DiffProperty<'_>>> {
        self.properties.iter().flat_map(|(name, values)| {
            values.iter().map(|(vertex, new, old)| {
                let vertex = self.to_view.key_ref(*vertex)?;
                Ok(DiffProperty { vertex, name, old: old.as_value(), new: new.as_value() })
            })
        })
    }

    /// The type of a vertex property in the second snapshot, or else in the first; `None` if both lack it.
    pub fn property_type(&self, name: &str) -> Option<PropertyType> {
        let found = |view: &SnapshotView| view.properties().schema().type_of(name);
        found(&self.to_view).or_else(|| found(&self.from_view))
    }

    /// As [`property_type`](Self::property_type), of a property of edges.
    pub fn edge_property_type(&self, name: &str) -> Option<PropertyType> {
        let found = |view: &SnapshotView| view.edge_properties().schema().type_of(name);
        found(&self.to_view).or_else(|| found(&self.from_view))
    }

    /// The vertices that only the second snapshot has, in ascending order of ids.
    ///
    /// # Errors
    /// Damage in the dictionary.
    pub fn added_vertices(&self) -> Result<Vec<Key>> {
        keys(&self.to_view, &self.added_vertices)
    }

    /// The vertices that only the first snapshot has, in ascending order of ids.
    ///
    /// # Errors
    /// Damage in the dictionary.
    pub fn removed_vertices(&self) -> Result<Vec<Key>> {
        keys(&self.from_view, &self.removed_vertices)
    }
}

/// An iterator over the edges of one side of a diff, read part by part.
struct EdgeStream<'a> {
    diff: &'a Diff,
    view: &'a SnapshotView,
    here: Here,
    /// The parts not yet read.
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
                // Edges of later parts would make the stream look complete.
                self.parts = 0..0;
                return Some(Err(error));
            }
            self.arcs = arcs.into_iter();
        }
    }
}

fn keys(view: &SnapshotView, vertices: &[VertexId]) -> Result<Vec<Key>> {
    vertices.iter().map(|&vertex| Ok(view.key(vertex)?)).collect()
}

fn edge<'a>(view: &'a SnapshotView, arc: &ChangedArc, here: Here, is_one_database: bool) -> Result<DiffEdge<'a>> {
    let weight = view.weight_type().map(|weight_type| match weight_type {
        WeightType::U32 => EdgeWeight::Integer(u32::of_bits(arc.data.weight).into()),
        WeightType::I64 => EdgeWeight::Integer(i64::of_bits(arc.data.weight)),
        WeightType::F32 => EdgeWeight::Real(f32::of_bits(arc.data.weight).into()),
        WeightType::F64 => EdgeWeight::Real(f64::of_bits(arc.data.weight)),
    });
    let (source, target) = (view.key_ref(arc.list)?, view.key_ref(arc.neighbor)?);
    let row = view.options().edge_properties.then_some((arc.data.row, here));
    // Numbers of two databases are unrelated, and would mislead.
    let number = (view.options().multigraph && is_one_database).then(|| view.edge_properties().number(arc.data.row));
    Ok(DiffEdge { source, target, weight, number: number.transpose()?, row })
}
