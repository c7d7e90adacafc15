//! Tables of edges.

use std::ops::Range;

use arrow_array::RecordBatch;
use base::VertexId;
use graph::property::{PropertyColumn, PropertyType, PropertyValue};
use graph::{Direction, WeightType};
use lama::Entries;

use super::vertices::VertexField;
use super::{Chosen, key_column, key_type, u64_column, with_names};
use crate::filter::{type_of_weight, weight_column};
use crate::weighted::OWN_WEIGHTS;
use crate::{Error, Key, Result, Side, View};

/// What a column shows of an edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum EdgeField {
    Source,
    Target,
    Weight(WeightType),
    /// Of a multigraph.
    Number,
    Property(usize, PropertyType),
}

impl EdgeField {
    /// What a name shows; a property that bears the name of another column stands for itself.
    fn find(view: &View, name: &str) -> Option<Self> {
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

    /// All names, those that every edge has first.
    fn names(view: &View) -> Vec<String> {
        let options = view.stored().options();
        let mut names = vec!["source".to_owned(), "target".to_owned()];
        names.extend(options.weight_type.map(|_| OWN_WEIGHTS.to_owned()));
        names.extend(options.multigraph.then(|| "number".to_owned()));
        with_names(names, view.edge_schema())
    }

    fn property_type(self, view: &View) -> PropertyType {
        match self {
            Self::Source | Self::Target => key_type(view),
            Self::Weight(weight_type) => type_of_weight(weight_type),
            Self::Number => PropertyType::U64,
            Self::Property(_, property_type) => property_type,
        }
    }

    fn column(self, view: &View, entries: &Entries) -> Result<PropertyColumn> {
        let mut columns = Self::columns(&[self], view, entries, 0..entries.len())?;
        columns.pop().ok_or_else(|| Error::NotFound("a property of edges is gone".into()))
    }

    /// The columns of a range of entries.
    fn columns(fields: &[Self], view: &View, entries: &Entries, range: Range<usize>) -> Result<Vec<PropertyColumn>> {
        let properties = view.stored().edge_properties();
        let rows = entries.rows.get(range.clone()).unwrap_or_default();
        // Rows are looked up once for all properties.
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
    /// The columns with these names; all where there are none.
    pub(super) fn of_edges(view: &View, columns: &[&str]) -> Result<Self> {
        let names = EdgeField::names(view);
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        let columns = if columns.is_empty() { &all[..] } else { columns };
        Self::new(columns, "edges", &names, |name| EdgeField::find(view, name), |field| field.property_type(view))
    }

    /// The rows of a range of entries.
    pub(super) fn edge_batch(&self, view: &View, entries: &Entries, range: Range<usize>) -> Result<RecordBatch> {
        self.batch(EdgeField::columns(&self.fields, view, entries, range)?)
    }
}

/// Which edges of a pair of vertices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParallelEdges {
    /// All of them, in the order in which they were added.
    All,
    /// The first.
    First,
    /// The one of the least weight: the first of those.
    Lightest,
}

/// A column of the edges at a vertex: of an edge, or of the vertex at its other end.
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
    /// Chosen columns of the neighbours of a vertex and of the edges that lead there: `key`, `out_degree`, `in_degree` and
    /// properties of the neighbour, then `source`, `target`, `weight`, of a multigraph `number`, and properties of the
    /// edge. A name that both have is the neighbour's.
    ///
    /// A row a neighbour, by ascending id, where all columns are of vertices; else a row an edge: those of the out-list
    /// first.
    ///
    /// ```
    /// use anden::{Database, Options, Side, Update};
    ///
    /// let db = Database::in_memory(Options { edge_properties: true, ..Options::default() })?;
    /// db.apply(&[Update::add_edge_with(1, 2, [("amount", 5_i64)])])?;
    /// let rows = db.view()?.neighbor_rows(1, Side::Out, &["key", "amount"])?;
    /// assert_eq!((rows.num_rows(), rows.num_columns()), (1, 2));
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`]: there is no such vertex or column; in-neighbours of a graph without in-edges; damage met on
    /// the way.
    pub fn neighbor_rows(&self, vertex: impl Into<Key>, side: Side, columns: &[&str]) -> Result<RecordBatch> {
        let vertex = self.vertex(vertex)?;
        let mut known = VertexField::names(self);
        known.extend(EdgeField::names(self));
        let find = |name: &str| NeighborField::find(self, name);
        let chosen =
            Chosen::new(columns, "vertices or edges", &known, find, |field: &NeighborField| field.property_type(self))?;
        if chosen.fields.iter().all(|field| matches!(field, NeighborField::Neighbor(_))) {
            return self.vertex_rows_of(&self.neighbor_ids(vertex, side)?, columns);
        }
        let (entries, others) = self.edges_at(vertex, side)?;
        self.check_lists()?;
        let column = |field: &NeighborField| match field {
            NeighborField::Neighbor(field) => field.column(self, &others),
            NeighborField::Edge(field) => field.column(self, &entries),
        };
        chosen.batch(chosen.fields.iter().map(column).collect::<Result<_>>()?)
    }

    /// The edges at a vertex, and the other end of each.
    fn edges_at(&self, vertex: VertexId, side: Side) -> Result<(Entries, Vec<VertexId>)> {
        let is_directed = self.is_directed();
        if side != Side::Out && !self.has_in_edges() {
            return Err(Error::Unsupported("in-neighbours need in-edges: load without --out-only".into()));
        }
        let mut entries = Entries::default();
        if side != Side::In || !is_directed {
            entries = self.single_lists().entries(graph::Side::Out, vertex, |_| true)?;
        }
        let mut others = entries.targets.clone();
        if side != Side::Out && is_directed {
            let num_out = entries.len();
            // A loop is in both lists.
            let is_wanted = |source: VertexId| side == Side::In || source != vertex;
            let into = self.single_lists().entries(graph::Side::In, vertex, is_wanted)?;
            entries.extend_from(&into, 0..into.len());
            others.extend_from_slice(&entries.targets[num_out..]);
            let Entries { sources, targets, .. } = &mut entries;
            sources[num_out..].swap_with_slice(&mut targets[num_out..]);
        }
        Ok((entries, others))
    }

    /// Chosen columns of the edges from each of these vertices to the next one, as along a path; the columns are those of
    /// [`edges`](Self::edges). [`ParallelEdges::Lightest`] goes by the weight that was chosen
    /// ([`with_weight`](Self::with_weight)), or the graph's own.
    ///
    /// # Errors
    /// [`Error::NotFound`]: there is no such vertex or column; the lightest edge of a graph without weights; damage met on
    /// the way.
    pub fn edge_rows(&self, vertices: &[Key], parallel: ParallelEdges, columns: &[&str]) -> Result<RecordBatch> {
        let chosen = Chosen::of_edges(self, columns)?;
        let weight = match (parallel, self.chosen()) {
            (ParallelEdges::Lightest, Some(chosen)) => EdgeField::find(self, chosen.name()),
            (ParallelEdges::Lightest, None) => {
                self.needs_weights("the lightest edge")?;
                EdgeField::find(self, OWN_WEIGHTS)
            }
            _ => None,
        };
        let mut entries = Entries::default();
        for pair in vertices.windows(2) {
            let (source, target) = (self.vertex(pair[0].clone())?, self.vertex(pair[1].clone())?);
            let found = self.single_lists().entries(graph::Side::Out, source, |other| other == target)?;
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
        self.check_lists()?;
        chosen.edge_batch(self, &entries, 0..entries.len())
    }

    /// Whether an entry of an out-list stands for its edge: of an undirected edge, which has two, the one at the lower end.
    pub(super) fn is_listed(&self, source: VertexId, target: VertexId) -> bool {
        self.stored().options().direction == Direction::Directed || target >= source
    }
}

/// The place of the least weight, the first of those; 0 where there are none.
fn lightest(weights: &PropertyColumn) -> usize {
    let key = |place: usize| match weights.get(place) {
        PropertyValue::I64(weight) => (i128::from(weight), 0.0),
        PropertyValue::U64(weight) => (i128::from(weight), 0.0),
        PropertyValue::F32(weight) => (0, f64::from(weight)),
        PropertyValue::F64(weight) => (0, weight),
        _ => (i128::MAX, f64::INFINITY),
    };
    let is_less = |a: (i128, f64), b: (i128, f64)| (a.0, a.1.max(0.0)) < (b.0, b.1.max(0.0));
    (1..weights.len()).fold(0, |best, place| if is_less(key(place), key(best)) { place } else { best })
}
