//! Tables of edges.

use std::ops::Range;

use anden_base::VertexId;
use anden_graph::property::{PropertyColumn, PropertyType, PropertyValue};
use anden_graph::{Direction, GraphKind, WeightType};
use anden_snapshots::Entries;
use arrow_array::RecordBatch;

use super::vertices::VertexField;
use super::{Chosen, key_column, key_type, u64_column, with_names};
use crate::filter::{type_of_weight, weight_column};
use crate::weighted::OWN_WEIGHTS;
use crate::{Error, Key, Neighbors, Result, View};

/// A column of an edge table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum EdgeField {
    Source,
    Target,
    Weight(WeightType),
    /// In a multigraph only.
    Number,
    Property(usize, PropertyType),
}

impl EdgeField {
    /// Finds the column of a name. A property hides a built-in column of equal name.
    pub(super) fn find(view: &View, name: &str) -> Option<Self> {
        let (schema, options) = (view.edge_schema(), view.stored().options());
        if let Some(place) = schema.find(name) {
            return Some(Self::Property(place, schema.get(place)?.1));
        }
        match name {
            "source" => Some(Self::Source),
            "target" => Some(Self::Target),
            OWN_WEIGHTS => options.weight_type.map(Self::Weight),
            "number" if options.multigraph => Some(Self::Number),
            _ => None,
        }
    }

    /// All column names, built-in ones first.
    pub(super) fn names(view: &View) -> Vec<String> {
        let options = view.stored().options();
        let mut names = vec!["source".to_owned(), "target".to_owned()];
        names.extend(options.weight_type.map(|_| OWN_WEIGHTS.to_owned()));
        names.extend(options.multigraph.then(|| "number".to_owned()));
        with_names(names, view.edge_schema())
    }

    pub(super) fn property_type(self, view: &View) -> PropertyType {
        match self {
            Self::Source | Self::Target => key_type(view),
            Self::Weight(weight_type) => type_of_weight(weight_type),
            Self::Number => PropertyType::U64,
            Self::Property(_, property_type) => property_type,
        }
    }

    fn column(self, view: &View, entries: &Entries) -> Result<PropertyColumn> {
        let mut columns = Self::columns(&[self], view, entries, 0..entries.len())?;
        columns.pop().ok_or_else(|| Error::Internal("a property of edges is gone".into()))
    }

    /// The columns for a range of entries.
    pub(super) fn columns(
        fields: &[Self],
        view: &View,
        entries: &Entries,
        range: Range<usize>,
    ) -> Result<Vec<PropertyColumn>> {
        let properties = view.stored().edge_properties();
        // Entries have no rows in a graph without edge properties and numbers.
        let rows = entries.rows.get(range.clone()).unwrap_or_default();
        // One lookup of rows serves all properties.
        let place = |field: &Self| if let Self::Property(place, _) = field { Some(*place) } else { None };
        let places: Vec<usize> = fields.iter().filter_map(place).collect();
        let mut gathered = properties.gather(&places, rows)?.into_iter();
        let column = |field: &Self| match *field {
            Self::Source => key_column(view, &entries.sources[range.clone()]),
            Self::Target => key_column(view, &entries.targets[range.clone()]),
            Self::Weight(weight_type) => weight_column(weight_type, &entries.weights[range.clone()]),
            Self::Number => {
                let numbers = rows.iter().map(|&row| properties.number(row));
                u64_column(numbers.collect::<Result<Vec<_>, _>>()?.into_iter())
            }
            Self::Property(_, property_type) => {
                Ok(gathered.next().unwrap_or_else(|| PropertyColumn::nulls(property_type, range.len())))
            }
        };
        fields.iter().map(column).collect()
    }
}

impl Chosen<EdgeField> {
    /// The columns with these names; an empty slice selects all.
    pub(super) fn of_edges(view: &View, columns: &[&str]) -> Result<Self> {
        let names = EdgeField::names(view);
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        let columns = if columns.is_empty() { &all[..] } else { columns };
        Self::new(columns, "edges", &names, |name| EdgeField::find(view, name), |field| field.property_type(view))
    }

    /// Both ends, weight and number, as far as the graph has them, then all properties.
    pub(super) fn of_whole_edges(view: &View) -> Self {
        let options = view.stored().options();
        let mut columns = vec![("source", EdgeField::Source), ("target", EdgeField::Target)];
        columns.extend(options.weight_type.map(|weight_type| (OWN_WEIGHTS, EdgeField::Weight(weight_type))));
        columns.extend(options.multigraph.then_some(("number", EdgeField::Number)));
        for (place, (name, property_type)) in view.edge_schema().iter().enumerate() {
            columns.push((name, EdgeField::Property(place, property_type)));
        }
        let (names, fields): (Vec<&str>, Vec<EdgeField>) = columns.into_iter().unzip();
        Self::of_fields(&names, fields, |field| field.property_type(view))
    }

    /// A batch with a range of entries.
    pub(super) fn edge_batch(&self, view: &View, entries: &Entries, range: Range<usize>) -> Result<RecordBatch> {
        self.batch(EdgeField::columns(&self.fields, view, entries, range)?)
    }
}

/// A choice among parallel edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParallelEdges {
    /// All edges, in the order of their rows: of insertion or last change.
    All,
    /// The first edge in that order.
    First,
    /// The edge with the smallest weight; among equal weights, the first.
    Lightest,
}

/// A column of a neighbor table: of the neighbor, or of the edge to it.
enum NeighborField {
    Neighbor(VertexField),
    Edge(EdgeField),
}

impl NeighborField {
    fn find(view: &View, name: &str) -> Option<Self> {
        let neighbor = || VertexField::find(view, name).map(Self::Neighbor);
        neighbor().or_else(|| EdgeField::find(view, name).map(Self::Edge))
    }

    fn property_type(&self, view: &View) -> PropertyType {
        match self {
            Self::Neighbor(field) => field.property_type(view),
            Self::Edge(field) => field.property_type(view),
        }
    }
}

impl View {
    /// A table of the neighbors of a vertex and of the edges to them. Columns of the neighbor: `key`, `out_degree`,
    /// `in_degree` and properties. Columns of the edge: `source`, `target`, `weight`, `number` (multigraphs) and
    /// properties. The neighbor has precedence if both have a name.
    ///
    /// With vertex columns only, each neighbor is one row, in ascending order of keys. Otherwise each edge is one row,
    /// out-edges first.
    ///
    /// ```
    /// use anden::{Database, Neighbors, Options, Update};
    ///
    /// let db = Database::in_memory(Options { edge_properties: true, ..Options::default() })?;
    /// db.apply(&[Update::add_edge_with(1, 2, [("amount", 5_i64)])])?;
    /// let rows = db.view()?.neighbor_rows(1, Neighbors::Out, &["key", "amount"])?;
    /// assert_eq!((rows.num_rows(), rows.num_columns()), (1, 2));
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`]: the vertex or column does not exist. The graph has no in-lists. Damage met on the way.
    pub fn neighbor_rows(&self, vertex: impl Into<Key>, direction: Neighbors, columns: &[&str]) -> Result<RecordBatch> {
        let vertex = self.vertex(vertex)?;
        let mut known = VertexField::names(self);
        known.extend(EdgeField::names(self));
        let find = |name: &str| NeighborField::find(self, name);
        let chosen =
            Chosen::new(columns, "vertices or edges", &known, find, |field: &NeighborField| field.property_type(self))?;
        // Without edge columns, parallel edges would only repeat rows.
        if chosen.fields.iter().all(|field| matches!(field, NeighborField::Neighbor(_))) {
            let mut neighbors = self.neighbor_ids(vertex, direction)?;
            self.sort_by_key(&mut neighbors)?;
            return self.vertex_rows_of(&neighbors, columns);
        }
        let (entries, others) = self.edges_at(vertex, direction)?;
        // Damaged lists look empty, so the entries are complete only if this check passes.
        self.check_lists()?;
        let column = |field: &NeighborField| match field {
            NeighborField::Neighbor(field) => field.column(self, &others),
            NeighborField::Edge(field) => field.column(self, &entries),
        };
        chosen.batch(chosen.fields.iter().map(column).collect::<Result<_>>()?)
    }

    /// A table of the out-edges of a vertex, in ascending order of targets. Columns as in [`edges`](Self::edges).
    ///
    /// Cost: reads one list.
    ///
    /// ```
    /// use anden::{Database, Options, Update};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// db.apply(&[Update::add_edge(1, 2), Update::add_edge(1, 3), Update::add_edge(2, 3)])?;
    /// assert_eq!(db.view()?.out_edge_rows(1, &["target"])?.num_rows(), 2);
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`]: the vertex or column does not exist. Damage met on the way.
    pub fn out_edge_rows(&self, vertex: impl Into<Key>, columns: &[&str]) -> Result<RecordBatch> {
        let chosen = Chosen::of_edges(self, columns)?;
        let (entries, _) = self.edges_at(self.vertex(vertex)?, Neighbors::Out)?;
        // Damaged lists look empty, so the entries are complete only if this check passes.
        self.check_lists()?;
        chosen.edge_batch(self, &entries, 0..entries.len())
    }

    /// The edges at a vertex, and the other end of each.
    fn edges_at(&self, vertex: VertexId, direction: Neighbors) -> Result<(Entries, Vec<VertexId>)> {
        let is_directed = self.is_directed();
        if direction != Neighbors::Out && !self.has_in_edges() {
            return Err(Error::Unsupported("in-neighbors need in-edges: load without --out-only".into()));
        }
        let mut entries = Entries::default();
        if direction != Neighbors::In || !is_directed {
            entries = self.single_lists().entries(Direction::Out, vertex, |_| true)?;
        }
        let mut others = entries.targets.clone();
        if direction != Neighbors::Out && is_directed {
            let num_out = entries.len();
            // A loop is in both lists; with both directions, it counts once.
            let is_wanted = |source: VertexId| direction == Neighbors::In || source != vertex;
            let into = self.single_lists().entries(Direction::In, vertex, is_wanted)?;
            entries.extend_from(&into, 0..into.len());
            others.extend_from_slice(&entries.targets[num_out..]);
            let Entries { sources, targets, .. } = &mut entries;
            // The entries of an in-list are the sources of its edges.
            sources[num_out..].swap_with_slice(&mut targets[num_out..]);
        }
        Ok((entries, others))
    }

    /// A table of the edges between consecutive vertices, for example along a path. Columns as in
    /// [`edges`](Self::edges). [`ParallelEdges::Lightest`] uses the weight chosen by
    /// [`with_weight`](Self::with_weight), or the graph's own weight.
    ///
    /// # Errors
    /// [`Error::NotFound`]: the vertex or column does not exist. The lightest edge is requested in a graph without
    /// weights. Damage met on the way.
    pub fn edge_rows(&self, vertices: &[Key], parallel: ParallelEdges, columns: &[&str]) -> Result<RecordBatch> {
        let chosen = Chosen::of_edges(self, columns)?;
        let weight = match (parallel, self.chosen()) {
            (ParallelEdges::Lightest, Some(chosen)) => EdgeField::find(self, chosen.name()),
            (ParallelEdges::Lightest, None) => {
                self.needs_weights("the lightest edge")?;
                // Not by name: a property called `weight` would hide the weight of the graph.
                self.weight_type().map(EdgeField::Weight)
            }
            _ => None,
        };
        let mut entries = Entries::default();
        for pair in vertices.windows(2) {
            let (source, target) = (self.vertex(pair[0].clone())?, self.vertex(pair[1].clone())?);
            let found = self.single_lists().entries(Direction::Out, source, |other| other == target)?;
            let picked = match (parallel, weight) {
                (ParallelEdges::All, _) => 0..found.len(),
                (ParallelEdges::Lightest, Some(weight)) => {
                    let lightest = lightest(&weight.column(self, &found)?);
                    lightest..found.len().min(lightest + 1)
                }
                _ => 0..found.len().min(1),
            };
            entries.extend_from(&found, picked);
        }
        // Damaged lists look empty, so a missing edge counts only if this check passes.
        self.check_lists()?;
        chosen.edge_batch(self, &entries, 0..entries.len())
    }

    /// Whether an arc represents its edge. An undirected edge is represented by the arc of its end with the smaller id.
    pub(super) fn is_listed(&self, source: VertexId, target: VertexId) -> bool {
        self.stored().options().graph_kind == GraphKind::Directed || target >= source
    }
}

/// The position of the first smallest weight; 0 if there are none.
fn lightest(weights: &PropertyColumn) -> usize {
    // `i128` holds both integer types. A column has one type, so one half decides.
    let key = |place: usize| match weights.get(place) {
        PropertyValue::I64(weight) => (i128::from(weight), 0.0),
        PropertyValue::U64(weight) => (i128::from(weight), 0.0),
        PropertyValue::F32(weight) if !weight.is_nan() => (0, f64::from(weight)),
        PropertyValue::F64(weight) if !weight.is_nan() => (0, weight),
        // Null and NaN are no weights.
        _ => (i128::MAX, f64::INFINITY),
    };
    (1..weights.len()).fold(0, |best, place| if key(place) < key(best) { place } else { best })
}
